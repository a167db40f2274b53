"""A stored run's profiles, counted as they were asked for: as tables, as JSON, and as a flame graph."""

import base64
import hashlib
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

import msgspec
from markupsafe import Markup

import benchctl
from benchctl.errors import UsageError, suggestion
from benchctl.evidence.profile import (
    Choice,
    Counted,
    Difference,
    ForkProfile,
    Share,
    Stack,
    collapse,
    count_fork,
    differences,
    engine_neutral,
    fork_profiles,
    merged,
    method_of,
    shares,
    without_lines,
)
from benchctl.report.html.parts import STYLE, embedded, templates, text_of
from benchctl.report.numbers import counted, json_text
from benchctl.report.table import Table, worded
from benchctl.results.model import RunRecord
from benchctl.results.plan import Place, Plan, task_named
from benchctl.results.reading import UnknownTimesError
from benchctl.results.store import RunFolder
from benchctl.stats.metrics import places

Mode = Literal["cpu", "native"]

# With these a share of 5% is known to within 4.3 points.
LEAST_SAMPLES = 100
_SHARE_FOR_PRECISION = 0.05
_NORMAL_95 = 1.96
_CALLER = "  at "


@dataclass(frozen=True)
class Heading:
    """Subject of a table."""

    name: str
    forks: int
    samples: int
    total: int
    cut: int = 0  # of those counted, how many have a truncated stack
    unread: int = 0
    native: int = 0  # samples of threads in native code that did not wait there; in no share of mode `cpu`
    native_frame: str = ""  # where most of these were; empty without any

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
    """Counting and display of samples."""

    # `cpu` for threads that ran Java, `native` for those in native code that did not wait there.
    mode: Mode = "cpu"
    size: int = 1
    lines: bool = False  # whether lines of a method are told apart
    inclusive: bool = False
    top: int = 30
    thread: str = ""  # the regular expression that threads' names match; empty for all
    task: str = ""  # whose measured window they were taken in; empty for that of any task
    recorded: bool = False  # whether everything recorded counts, including startup, warm-up and pauses

    @property
    def when(self) -> str:
        """Period of the counted samples, in words."""
        return "all that was recorded" if self.recorded else self.task or "all, while measured"


def summary_lines(heading: Heading, found: Sequence[Share], form: Form) -> list[str]:
    """Return a variant's table, what it counts above it, and what it leaves out below."""
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
    """Return both sides' shares of what differs most, with the least part of that due to chance."""
    shown = found[: form.top]
    rows = [
        [
            _percent(difference.baseline.share),
            _percent(difference.contender.share),
            f"{100 * difference.difference:+.2f}",
            f"{100 * difference.noise:.2f}" + (" " if abs(difference.difference) > difference.noise else "~"),
        ]
        for difference in shown
    ]
    headers = [baseline.name, contender.name, "POINTS", "CHANCE "]
    notes = [
        f"POINTS: {contender.name} minus {baseline.name}, percentage points of each side's own samples.",
        "CHANCE: 95% of the differences that sampling alone makes are smaller, at least; ~ is within it.",
        *_native_note(baseline, form),
        *(_native_note(contender, form) if form.mode == "cpu" else ()),
        "Shares say where the time goes, not how much it is: what a side saves makes its other shares grow.",
    ]
    if len(found) > len(shown):
        notes.append(f"{len(shown)} of {counted(len(found), 'frame')} shown.")
    table = _table(headers, rows, [difference.stack for difference in shown])
    heads = [*heading_lines(baseline, form), *heading_lines(contender, form)[:2]]
    return [*heads, *_shortages(baseline, contender), *table, "", *notes]


def heading_lines(heading: Heading, form: Form) -> list[str]:
    """Return what the samples are."""
    words = {
        "mode": form.mode,
        "count": form.top,
        "stacksize": form.size,
        "linenumbers": str(form.lines).lower(),
        "inclusive": str(form.inclusive).lower(),
        "threads": form.thread or "all",
        "task": form.when,
    }
    return [
        f"Profile of {heading.name}, {counted(heading.forks, 'fork')}:",
        f"PROFILE SUMMARY from {heading.samples} events (total: {heading.total})",
        *(f"  profile.{name}={value}" for name, value in words.items()),
    ]


def frame_words(frame: str) -> str:
    """Return a frame in luceneutil's form: `org.apache.lucene.util.BytesRefHash#equals()`, and its line."""
    method = method_of(frame)
    owner, dot, name = method.rpartition(".")
    return f"{owner}#{name}(){frame[len(method) :]}" if dot and not frame.startswith("(") else frame


def _shortages(*headings: Heading) -> list[str]:
    return [heading.shortage for heading in headings if heading.shortage]


def _native_note(heading: Heading, form: Form) -> list[str]:
    """Return why native code is not ranked with Java: the JVM samples one such thread at a time."""
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
    """Return what the table leaves out, and how certain it is."""
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
        notes.append(f"With this many samples, a share of 5% is known to within {points:.1f} points at best.")
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


SECTION_LINES = 10


_SMALLEST_SHARE = 1 / 4000
_SMALLER = "(smaller ones)"
_ALL = "all"
_POLICY = (
    "default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; img-src data:; "
    "base-uri 'none'; form-action 'none'"
)


class FlameData(msgspec.Struct, frozen=True):
    """Data of the page's script."""

    names: tuple[str, ...]
    totals: tuple[int, ...]
    frames: tuple[str, ...]  # every name once
    # (depth, position in frames, samples of each side), parents before their children.
    nodes: tuple[tuple[int, ...], ...]


@dataclass
class _Node:
    """A frame under its callers."""

    samples: list[int]
    children: "dict[str, _Node]" = field(default_factory=dict)


def flame_data(names: Sequence[str], sides: Sequence[Counted]) -> FlameData:
    """Lay out the stacks of one side, or of a baseline and a contender, as one tree.

    Frames with under a 4,000th of the samples are merged with their neighbours of that size.
    """
    totals = tuple(side.samples for side in sides)
    root = _tree(sides)
    frames: dict[str, int] = {}
    nodes = tuple(
        (depth, frames.setdefault(name, len(frames)), *node.samples)
        for depth, name, node in _in_order(root, totals)
    )
    return FlameData(tuple(names), totals, tuple(frames), nodes)


def render_flame(title: str, lines: Sequence[str], data: FlameData) -> str:
    """Write the page; `lines` say what the samples are."""
    script = text_of("flame.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return (
        templates()
        .get_template("flame.html.jinja")
        .render(
            version=benchctl.__version__,
            policy=_POLICY.format(digest=digest),
            title=title,
            lines=(*lines, _drawn(data)),
            names=data.names,
            style=Markup(text_of(STYLE)),  # noqa: S704 - our own file
            script=Markup(script),  # noqa: S704 - our own file
            profile=embedded(data),
        )
    )


def _drawn(data: FlameData) -> str:
    smaller = next((place for place, name in enumerate(data.frames) if name == _SMALLER), None)
    text = f"{counted(len(data.nodes), 'frame')} drawn"
    if smaller is None:
        return f"{text}."
    joint = sum(node[1] == smaller for node in data.nodes)
    return f"{text}, {joint:,} of them for several that have under 1/4,000 of the samples each."


def _tree(sides: Sequence[Counted]) -> _Node:
    root = _Node([side.samples for side in sides])
    for place, side in enumerate(sides):
        for stack, count in side.stacks.items():
            node = root
            for frame in stack:
                node = node.children.setdefault(frame, _Node([0] * len(sides)))
                node.samples[place] += count
    return root


def _in_order(root: _Node, totals: Sequence[int]) -> Iterator[tuple[int, str, _Node]]:
    """Depth, name and node, parents before their children and these by name."""
    # Not by recursion: stacks are deeper than Python's own may be.
    waiting = [(0, _ALL, root)]
    while waiting:
        depth, name, node = waiting.pop()
        yield depth, name, node
        large = {child: one for child, one in node.children.items() if _share(one, totals) >= _SMALLEST_SHARE}
        small = [one for child, one in node.children.items() if child not in large]
        if small:
            large[_SMALLER] = _Node(
                [sum(side) for side in zip(*(node.samples for node in small), strict=True)]
            )
        waiting += [(depth + 1, child, large[child]) for child in sorted(large, reverse=True)]


def _share(node: _Node, totals: Sequence[int]) -> float:
    return max(count / total if total else 0.0 for count, total in zip(node.samples, totals, strict=True))


@dataclass(frozen=True)
class Side:
    """A variant's samples: fork by fork, and pooled over forks under the names of their thread pools."""

    heading: Heading
    forks: tuple[Counted, ...]
    pooled: Counted


def profile_sides(folder: RunFolder, record: RunRecord, names: Sequence[str], form: Form) -> list[Side]:
    """Count the samples of a run's variants, in the order of `names`; without any, of all that have profiles.

    Raises:
        UsageError: If there is no such variant, profile, task or sample, or the form makes no sense.
        BenchctlError: If a profile cannot be read, or it is not known when the task ran.
    """
    known = [variant.name for variant in record.plan.variants]
    for name in names:
        if name not in known:
            raise UsageError(f"the run has no variant '{name}'", hint=suggestion(name, known))
    found = {name: fork_profiles(folder, record, name) for name in names or known}
    empty = [name for name, forks in found.items() if not forks]
    if len(empty) == len(found) or (names and empty):
        raise UsageError(
            f"run {record.id} has no profile of {' or '.join(empty)}",
            hint="profiles are collected by: benchctl run --evidence profile",
        )
    try:
        sides = [_side(folder, record, name, forks, form) for name, forks in found.items() if forks]
    except UnknownTimesError as err:
        raise UnknownTimesError(err.message, hint="give --recorded to count all that was sampled") from err
    for side in sides:
        if not side.heading.samples:
            ways = "remove --thread or --mode" if form.recorded else "remove --thread, --task or --mode"
            raise UsageError(
                f"none of the {side.heading.total} samples of {side.heading.name} is among those asked for",
                hint=ways if form.recorded else f"{ways}, or give --recorded",
            )
    return sides


def profile_text(sides: Sequence[Side], form: Form) -> str:
    """Return a table for each variant, as luceneutil prints them."""
    return "\n\n".join(
        "\n".join(
            summary_lines(side.heading, shares(side.forks, size=form.size, inclusive=form.inclusive), form)
        )
        for side in sides
    )


def difference_text(sides: Sequence[Side], form: Form) -> str:
    """Return one table of how the second of two sides differs most from the first."""
    baseline, contender = sides
    found = differences(*_neutral(sides), size=form.size, inclusive=form.inclusive)
    return "\n".join(difference_lines(baseline.heading, contender.heading, found, form))


def document_text(run: str, sides: Sequence[Side], form: Form, *, differ: bool) -> str:
    """Return JSON: the difference of two sides if `differ`, else the shares of each."""
    found: list[Difference] = []
    listed: list[list[Share]] = [[] for _ in sides]
    if differ:
        found = differences(*_neutral(sides), size=form.size, inclusive=form.inclusive)[: form.top]
    else:
        listed = [shares(side.forks, size=form.size, inclusive=form.inclusive)[: form.top] for side in sides]
    return json_text(
        {
            "run": run,
            "mode": form.mode,
            "stack_size": form.size,
            "line_numbers": form.lines,
            "inclusive": form.inclusive,
            "thread": form.thread,
            "task": form.task,
            "recorded": form.recorded,
            "variants": [_side_document(side.heading, own) for side, own in zip(sides, listed, strict=True)],
            "differences": [
                {
                    "stack": difference.stack,
                    "baseline": difference.baseline.share,
                    "contender": difference.contender.share,
                    "difference": difference.difference,
                    "chance": difference.noise,
                }
                for difference in found
            ]
            if differ
            else None,
        }
    )


def _side_document(heading: Heading, found: Sequence[Share]) -> dict[str, object]:
    counts = ("name", "forks", "samples", "total", "cut", "unread", "native")
    return {**{name: getattr(heading, name) for name in counts}, "caveat": heading.shortage, "shares": found}


def collapsed_text(side: Side) -> str:
    """Return collapsed stacks, each under the name of its thread pool."""
    return collapse(side.pooled.stacks)


def flame_page(run: str, sides: Sequence[Side], form: Form) -> str:
    """Return a flame graph of one variant, or of how a second differs from it."""
    names = [side.heading.name for side in sides]
    stacks = [side.pooled if len(sides) == 1 else engine_neutral(side.pooled) for side in sides]
    lines = [" ".join(heading_lines(side.heading, form)[:2]) for side in sides]
    lines += [side.heading.shortage for side in sides if side.heading.shortage]
    how = f"Mode: {form.mode}. Threads: {form.thread or 'all'}. Task: {form.when}."
    title = f"Profile of {' against '.join(names)}"
    return render_flame(title, [f"Run {run}", *lines, how], flame_data(names, stacks))


def profile_tables(folder: RunFolder, record: RunRecord) -> list[Table]:
    """Return a short table for each variant of a run that has profiles, for its pages; none without any.

    Raises:
        BenchctlError: If a profile cannot be read.
    """
    profiles = {variant.name: fork_profiles(folder, record, variant.name) for variant in record.plan.variants}
    grids = []
    for name, forks in profiles.items():
        if not forks:
            continue
        try:
            grids.append(_grid(_side(folder, record, name, forks, Form()), "while tasks were measured"))
        except UnknownTimesError:
            recorded = _side(folder, record, name, forks, Form(recorded=True))
            grids.append(_grid(recorded, "all that was recorded, since it is not known when tasks ran"))
    return grids


def _side(
    folder: RunFolder, record: RunRecord, name: str, profiles: Sequence[ForkProfile], form: Form
) -> Side:
    try:
        thread = re.compile(form.thread) if form.thread else None
    except re.error as err:
        raise UsageError(f"--thread '{form.thread}' is not a regular expression: {err}") from err
    tasks = _tasks(record.plan, form)

    def count(*, native: bool, pools: bool) -> list[Counted]:
        choice = Choice(native, thread)
        counts = [
            count_fork(profile, choice, folder=folder, tasks=tasks, pools=pools) for profile in profiles
        ]
        return counts if form.lines else [without_lines(fork) for fork in counts]

    in_native_code = form.mode == "native"
    pooled = merged(count(native=in_native_code, pools=True))
    native = merged(count(native=True, pools=False))
    hottest = shares([native])
    heading = Heading(
        name=name,
        forks=len(profiles),
        samples=pooled.samples,
        total=pooled.total,
        cut=pooled.cut,
        unread=sum(profile.unread for profile in profiles),
        native=native.samples,
        native_frame=hottest[0].stack[0] if hottest else "",
    )
    return Side(heading, tuple(count(native=in_native_code, pools=False)), pooled)


def _tasks(plan: Plan, form: Form) -> Sequence[Place] | None:
    """Return whose measured windows count; None for all that was recorded."""
    if form.recorded:
        return None
    return [task_named(plan, form.task)] if form.task else places(plan)


def _neutral(sides: Sequence[Side]) -> list[list[Counted]]:
    return [[engine_neutral(fork) for fork in side.forks] for side in sides]


def _grid(side: Side, when: str) -> Table:
    shown = shares(side.forks)[:SECTION_LINES]
    heading = side.heading
    title = (
        f"Profile of {heading.name}: {counted(heading.samples, 'sample')} of threads that ran Java, "
        f"{counted(heading.forks, 'fork')}, {when}"
    )
    if heading.shortage:
        title = f"{title}. {heading.shortage}"
    lines = ((frame_words(share.stack[0]), f"{100 * share.share:.2f}", f"{share.samples}") for share in shown)
    return Table.of(title, (worded("Method"), "%", "Samples"), lines)
