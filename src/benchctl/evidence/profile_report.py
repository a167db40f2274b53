"""A stored run's profiles as tables, JSON and a flame graph; and evidence on the page of a run."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import msgspec
from markupsafe import Markup

import benchctl
from benchctl.errors import BenchctlError, UsageError, suggestion
from benchctl.evidence.inlining_report import history_tables
from benchctl.evidence.profile import (
    Difference,
    Share,
    Stack,
    differences,
    engine_neutral,
    fork_profiles,
    merged,
    method_of,
    renamed,
    shares,
)
from benchctl.report.charts import Chart
from benchctl.report.html import STYLE, embedded, inline_policy, inline_script, templates, text_of
from benchctl.report.numbers import counted, json_text
from benchctl.report.table import Table, plain, worded
from benchctl.results.model import RunRecord
from benchctl.results.plan import task_named
from benchctl.results.store import RunFolder
from benchctl.stats.analysis import Analysis
from benchctl.stats.metrics import places

LEAST_SAMPLES = 100
"""With these a share of 5% is known to within 4.3 points."""
_ROWS_ON_PAGES = 10
_METHOD = worded("Method")
_NATIVE = "Threads in native code, such as decompression, are not sampled."


@dataclass(frozen=True)
class Form:
    """Counting and display of samples."""

    task: str = ""  # whose measured window they were taken in; empty for that of any task
    size: int = 1  # frames of a stack that are told apart, from the running one outwards
    lines: bool = False  # whether lines of a method are told apart
    inclusive: bool = False
    top: int = 30


@dataclass(frozen=True)
class Side:
    """A variant's samples, fork by fork."""

    name: str
    forks: tuple[Counter[Stack], ...]
    unread: int = 0  # lines of the recordings that could not be parsed

    @cached_property
    def stacks(self) -> Counter[Stack]:
        """The samples of all forks."""
        return merged(self.forks)

    @property
    def title(self) -> str:
        """Number and kind of the samples."""
        samples = counted(self.stacks.total(), "sample")
        return f"{self.name}, {samples} of threads that ran Java in {counted(len(self.forks), 'fork')}"

    @property
    def shortage(self) -> str:
        """Warning of too few samples; empty when there are enough."""
        samples = self.stacks.total()
        if samples >= LEAST_SAMPLES:
            return ""
        return (
            f"Too few samples of {self.name} to rank methods: {samples} of {LEAST_SAMPLES} required. "
            "Measure longer, or more forks."
        )


def profile_sides(folder: RunFolder, record: RunRecord, names: Sequence[str], form: Form) -> list[Side]:
    """Count the samples of a run's variants, in the order of `names`; without any, of all that have profiles.

    Raises:
        UsageError: If there is no such variant, profile, task or sample.
        BenchctlError: If a profile cannot be read, or it is not known when the task ran.
    """
    known = [variant.name for variant in record.plan.variants]
    for name in names:
        if name not in known:
            raise UsageError(f"the run has no variant '{name}'", hint=suggestion(name, known))
    found = {name: fork_profiles(folder, record, name) for name in names or known}
    empty = [name for name, profiles in found.items() if not profiles]
    if len(empty) == len(found) or (names and empty):
        raise UsageError(
            f"run {record.id} has no profile of {' or '.join(empty)}",
            hint="profiles are collected by: benchctl run --evidence profile",
        )
    tasks = [task_named(record.plan, form.task)] if form.task else places(record.plan)
    sides = []
    for name, profiles in found.items():
        forks = [profile.count(folder, tasks) for profile in profiles]
        if not form.lines:
            forks = [renamed(fork, method_of) for fork in forks]
        if profiles:
            unread = sum(boot.unread for profile in profiles for boot in profile.boots.values())
            sides.append(Side(name, tuple(forks), unread))
    for side in sides:
        if not side.stacks:
            raise UsageError(f"the profile of {side.name} has no sample of {form.task or 'measured tasks'}")
    return sides


def profile_text(sides: Sequence[Side], form: Form, width: int) -> str:
    """Return a table for each variant, and what it leaves out."""
    found = [(side, _shares(side, form)) for side in sides]
    return plain(
        [section for side, own in found for section in ([_table(side, own, form)], _notes(side, own, form))],
        width,
    )


def _shares(side: Side, form: Form) -> list[Share]:
    return shares(side.forks, size=form.size, inclusive=form.inclusive)


def _table(side: Side, found: Sequence[Share], form: Form) -> Table:
    """Return the hottest frames, callers one below the other."""
    lines: list[tuple[str, ...]] = []
    for share in found[: form.top]:
        spread = f"{100 * share.least:.2f}-{100 * share.most:.2f}" if len(side.forks) > 1 else ""
        lines.append((share.stack[0], f"{100 * share.share:.2f}", spread, f"{share.samples:,}"))
        lines += [(f"at {caller}", "", "", "") for caller in share.stack[1:]]
    title = ". ".join(filter(None, (f"Profile of {side.title}, {_when(form)}", side.shortage)))
    return Table.of(title, (_METHOD, "%", "Forks", "Samples"), lines).without_empty("Forks")


def _when(form: Form) -> str:
    return f"while {form.task} was measured" if form.task else "while tasks were measured"


def _notes(side: Side, found: Sequence[Share], form: Form) -> list[str]:
    """Return what the table leaves out."""
    hidden = len(found) - form.top
    notes = [f"{counted(hidden, 'more frame')}: see --top."] if hidden > 0 else []
    notes.append(_NATIVE)
    if side.unread:
        notes.append(f"{counted(side.unread, 'line')} of the recordings not parsed.")
    return notes


def difference_text(sides: Sequence[Side], form: Form, width: int) -> str:
    """Return one table of how the second of two sides differs most from the first."""
    baseline, contender = sides
    lines: list[tuple[str, ...]] = []
    for each in _differences(sides, form):
        percents = (f"{100 * each.baseline:.2f}", f"{100 * each.contender:.2f}")
        lines.append((each.stack[0], *percents, f"{100 * each.difference:+.2f}", f"{100 * each.chance:.2f}"))
        lines += [(f"at {caller}", "", "", "", "") for caller in each.stack[1:]]
    title = f"Profiles, {_when(form)}: {baseline.title}; {contender.title}"
    table = Table.of(title, (_METHOD, f"{baseline.name} %", f"{contender.name} %", "Points", "Chance"), lines)
    notes = [
        *(side.shortage for side in sides if side.shortage),
        f"Points: {contender.name} minus {baseline.name}, percentage points of each side's own samples.",
        "Chance: at least 95% of the differences caused by sampling alone are smaller.",
        "Shares show where time is spent, not how much: time saved in one method increases other shares.",
        _NATIVE,
    ]
    return plain([[table], notes], width)


def _differences(sides: Sequence[Side], form: Form) -> list[Difference]:
    neutral = [[renamed(fork, engine_neutral) for fork in side.forks] for side in sides]
    return differences(*neutral, size=form.size, inclusive=form.inclusive)[: form.top]


def document_text(run: str, sides: Sequence[Side], form: Form, *, differ: bool) -> str:
    """Return JSON: the difference of two sides if `differ`, else the shares of each."""
    variants = [
        {
            "name": side.name,
            "forks": len(side.forks),
            "samples": side.stacks.total(),
            "unread": side.unread,
            "caveat": side.shortage,
            "shares": [] if differ else _shares(side, form)[: form.top],
        }
        for side in sides
    ]
    found = _differences(sides, form) if differ else None
    return json_text({"run": run, "form": form, "variants": variants, "differences": found})


# Flame graphs.

_SCRIPT = "flame.js"


class FlameData(msgspec.Struct, frozen=True):
    """The stacks of one side, or of a baseline and a contender, as one tree for the page's script."""

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


def flame_page(run: str, sides: Sequence[Side], form: Form) -> str:
    """Return a flame graph of one variant, or of how a second differs from it."""
    names = [side.name for side in sides]
    stacks = [side.stacks if len(sides) == 1 else renamed(side.stacks, engine_neutral) for side in sides]
    lines = [f"Run {run}, {_when(form)}", *(f"Profile of {side.title}" for side in sides)]
    lines += [side.shortage for side in sides if side.shortage]
    return (
        templates()
        .get_template("flame.html.jinja")
        .render(
            version=benchctl.__version__,
            policy=inline_policy(_SCRIPT),
            title=f"Profile of {' against '.join(names)}",
            lines=lines,
            names=names,
            style=Markup(text_of(STYLE)),  # noqa: S704 - our own file
            script=inline_script(_SCRIPT),
            profile=embedded(flame_data(names, stacks)),
        )
    )


def flame_data(names: Sequence[str], sides: Sequence[Counter[Stack]]) -> FlameData:
    """Lay out the stacks of one or two sides."""
    totals = tuple(side.total() for side in sides)
    root = _Node(list(totals))
    for place, side in enumerate(sides):
        for stack, count in side.items():
            node = root
            for frame in stack:
                node = node.children.setdefault(frame, _Node([0] * len(sides)))
                node.samples[place] += count
    frames: dict[str, int] = {}
    nodes = tuple(
        (depth, frames.setdefault(name, len(frames)), *node.samples) for depth, name, node in _in_order(root)
    )
    return FlameData(tuple(names), totals, tuple(frames), nodes)


def _in_order(root: _Node) -> Iterator[tuple[int, str, _Node]]:
    """Depth, name and node, parents before their children and these by name."""
    # Not by recursion: stacks are deeper than Python's own may be.
    waiting = [(0, "all", root)]
    while waiting:
        depth, name, node = waiting.pop()
        yield depth, name, node
        waiting += [(depth + 1, child, own) for child, own in sorted(node.children.items(), reverse=True)]


# The page of a run.


def page(
    _analysis: Analysis, folder: RunFolder | None = None, record: RunRecord | None = None
) -> tuple[list[Chart], list[Table]]:
    """Return tables of call sites and profiles, and no charts; nothing for a comparison.

    A profile that cannot be read does not cost a reader the page.
    """
    if folder is None or record is None:
        return [], []
    try:
        profiles = profile_tables(folder, record)
    except BenchctlError as err:
        profiles = [Table.of("Profiles", (worded("Cannot be read"),), ((err.message,),))]
    return [], [*history_tables(folder, record), *profiles]


def profile_tables(folder: RunFolder, record: RunRecord) -> list[Table]:
    """Return a short table for each variant of a run that has profiles; none without any.

    Raises:
        BenchctlError: If a profile cannot be read, or it is not known when tasks ran.
    """
    if not any("profile" in fork.evidence for fork in record.forks if fork.status == "done"):
        return []
    form = Form(top=_ROWS_ON_PAGES)
    return [_table(side, _shares(side, form), form) for side in profile_sides(folder, record, (), form)]
