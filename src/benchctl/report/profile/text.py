"""Shares of samples as luceneutil prints them (PERCENT, CPU SAMPLES, STACK), and two sides in one table."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from benchctl.jvm.profile import Difference, Share, Stack, method_of
from benchctl.report.numbers import counted

Mode = Literal["cpu", "native"]

# With these a share of 5 % is known to within 4.3 points.
LEAST_SAMPLES = 100
_SHARE_FOR_PRECISION = 0.05
_NORMAL_95 = 1.96
_CALLER = "  at "


@dataclass(frozen=True)
class Heading:
    """What a table is about.

    Attributes:
        name: of the variant.
        samples: that were counted.
        total: that were recorded.
        cut: of those counted, how many have a truncated stack.
        unread: lines of the recordings that were not understood.
        native: samples of threads in native code that did not wait there; in no share of mode `cpu`.
        native_frame: where most of these were; empty without any.
        nodes: that they come from, in a fork.
    """

    name: str
    forks: int
    samples: int
    total: int
    cut: int = 0
    unread: int = 0
    native: int = 0
    native_frame: str = ""
    nodes: int = 1

    @property
    def shortage(self) -> str:
        """Warning of too few samples; empty when there are enough."""
        if self.samples >= LEAST_SAMPLES:
            return ""
        return (
            f"Too few samples of {self.name} to rank methods: {self.samples}, and it takes {LEAST_SAMPLES}. "
            "Measure for longer, or more forks."
        )


@dataclass(frozen=True)
class Form:
    """How samples are counted and shown.

    Attributes:
        mode: `cpu` for threads that ran Java, `native` for those in native code that did not wait there.
        size: frames of a stack that are told apart.
        lines: whether lines of a method are told apart.
        inclusive: whether a frame counts wherever it is in a stack.
        top: how many are shown.
        thread: the regular expression that threads' names match; empty for all.
        task: whose measured window they were taken in; empty for that of any task.
        recorded: whether everything recorded counts, including startup, warm-up and pauses.
        node: whose samples they are; empty for all of a variant's.
    """

    mode: Mode = "cpu"
    size: int = 1
    lines: bool = False
    inclusive: bool = False
    top: int = 30
    thread: str = ""
    task: str = ""
    recorded: bool = False
    node: str = ""

    @property
    def when(self) -> str:
        """When the counted samples were taken, in words."""
        return "all that was recorded" if self.recorded else self.task or "all, while measured"


def summary_lines(heading: Heading, found: Sequence[Share], form: Form) -> list[str]:
    """A variant's table, what it counts above it, and what it leaves out below."""
    several = heading.forks > 1
    shown = found[: form.top]
    headers = ["PERCENT", "FORKS"] if several else ["PERCENT"]
    rows = [
        [
            _percent(share.share),
            *([f"{100 * share.least:.2f}-{100 * share.most:.2f}%"] if several else []),
            f"{share.samples}",
        ]
        for share in shown
    ]
    table = _table([*headers, "CPU SAMPLES" if form.mode == "cpu" else "NATIVE SAMPLES"], rows,
                   [share.stack for share in shown])  # fmt: skip
    return [*heading_lines(heading, form), *_shortages(heading), *table, *_rest(found, shown, heading, form)]


def difference_lines(
    baseline: Heading, contender: Heading, found: Sequence[Difference], form: Form
) -> list[str]:
    """Both sides' shares of what differs most, with the least part of that due to chance."""
    shown = found[: form.top]
    rows = [
        [
            _percent(one.baseline.share),
            _percent(one.contender.share),
            f"{100 * one.difference:+.2f}",
            f"{100 * one.noise:.2f}" + (" " if abs(one.difference) > one.noise else "~"),
        ]
        for one in shown
    ]
    headers = [baseline.name, contender.name, "POINTS", "CHANCE "]
    notes = [
        f"POINTS: {contender.name} minus {baseline.name}, percentage points of each side's own samples.",
        "CHANCE: 95 % of the differences that sampling alone makes are smaller, at least; ~ is within it.",
        *_native_note(baseline, form),
        *(_native_note(contender, form) if form.mode == "cpu" else ()),
        "Shares say where the time goes, not how much it is: what a side saves makes its other shares grow.",
    ]
    if len(found) > len(shown):
        notes.append(f"{len(shown)} of {counted(len(found), 'frame')} shown.")
    table = _table(headers, rows, [one.stack for one in shown])
    heads = [*heading_lines(baseline, form), *heading_lines(contender, form)[:2]]
    return [*heads, *_shortages(baseline, contender), *table, "", *notes]


def heading_lines(heading: Heading, form: Form) -> list[str]:
    """What the samples are."""
    words = {
        "mode": form.mode,
        "count": form.top,
        "stacksize": form.size,
        "linenumbers": str(form.lines).lower(),
        "inclusive": str(form.inclusive).lower(),
        "threads": form.thread or "all",
        "task": form.when,
    }
    nodes = form.node or (counted(heading.nodes, "node") if heading.nodes > 1 else "")
    return [
        f"Profile of {', '.join(filter(None, (heading.name, counted(heading.forks, 'fork'), nodes)))}:",
        f"PROFILE SUMMARY from {heading.samples} events (total: {heading.total})",
        *(f"  profile.{name}={value}" for name, value in words.items()),
    ]


def frame_words(frame: str) -> str:
    """A frame as luceneutil writes it: `org.apache.lucene.util.BytesRefHash#equals()`, and its line."""
    method = method_of(frame)
    owner, dot, name = method.rpartition(".")
    return f"{owner}#{name}(){frame[len(method) :]}" if dot and not frame.startswith("(") else frame


def _shortages(*headings: Heading) -> list[str]:
    return [one.shortage for one in headings if one.shortage]


def _native_note(heading: Heading, form: Form) -> list[str]:
    """Why native code is not ranked beside Java: the JVM samples one thread in native code at a time."""
    if form.mode == "native":
        return ["One thread in native code is looked at at a time, waiting ones too: no shares of time."]
    if not heading.native:
        return []
    where = frame_words(heading.native_frame)
    samples = counted(heading.native, "sample")
    return [
        f"Not in these shares: {samples} of {heading.name} in native code, most in {where}: --mode native."
    ]


def _rest(found: Sequence[Share], shown: Sequence[Share], heading: Heading, form: Form) -> list[str]:
    """What the table leaves out, and how certain it is."""
    notes = []
    hidden = found[len(shown) :]
    if hidden and not form.inclusive:
        left = sum(share.share for share in hidden)
        notes.append(f"{counted(len(hidden), 'more line')} with {_percent(left)} together: see --top.")
    elif hidden:
        notes.append(f"{counted(len(hidden), 'more line')}: see --top.")
    if heading.samples:
        p = _SHARE_FOR_PRECISION
        points = 100 * _NORMAL_95 * math.sqrt(p * (1 - p) / heading.samples)
        notes.append(f"Of so many samples, a share of 5 % is known to within {points:.1f} points at best.")
    notes += _native_note(heading, form)
    if heading.cut:
        notes.append(
            f"{counted(heading.cut, 'stack')} deeper than what is recorded: outermost callers are missing."
        )
    if heading.unread:
        notes.append(f"{counted(heading.unread, 'line')} of the recordings not understood.")
    return ["", *notes] if notes else []


def _table(headers: Sequence[str], rows: Sequence[Sequence[str]], stacks: Iterable[Stack]) -> list[str]:
    """Figures flush right in columns, and stacks behind them, callers one below the other."""
    widths = [max(map(len, column)) for column in zip(headers, *rows, strict=True)]
    lines = ["  ".join([*(text.rjust(width) for text, width in zip(headers, widths, strict=True)), "STACK"])]
    indent = " " * (sum(widths) + 2 * len(widths))
    for row, stack in zip(rows, stacks, strict=True):
        cells = [text.rjust(width) for text, width in zip(row, widths, strict=True)]
        first, *callers = map(frame_words, stack)
        lines.append("  ".join([*cells, first]))
        lines += [f"{indent}{_CALLER}{caller}" for caller in callers]
    return lines


def _percent(share: float) -> str:
    return f"{100 * share:.2f}%"
