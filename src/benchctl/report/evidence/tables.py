"""Evidence as tables: a line a task, for every figure a column a variant, means over forks."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeVar

from benchctl.report.evidence.read import RunEvidence
from benchctl.report.grid import ABOVE, OPERATION, Cell, Grid, worded
from benchctl.report.numbers import NOT_AVAILABLE, figure
from benchctl.stats.evidence import Cause, GcActivity, JitActivity, OsActivity, TaskEvidence, Thirds

_MB = 1e6

A = TypeVar("A")
Cells = Sequence[tuple[str, Callable[[Sequence[A]], str]]]
"""(what the column is called, its cell of one variant's forks)."""


def evidence_grids(found: RunEvidence) -> list[Grid]:
    """The tables of what was collected; kinds of which there is nothing have none."""
    grids = []
    if any(task.jit for task in found.tasks):
        grids.append(_grid(found, _JIT_TITLE, _JIT, lambda task: task.jit))
    if any(task.gc for task in found.tasks):
        grids.append(_grid(found, _PAUSES_TITLE, _PAUSES, lambda task: task.gc))
    if any(_causes(task) for task in found.tasks):
        grids.append(_cause_grid(found))
    if any(task.gc for task in found.tasks):
        grids.append(_grid(found, _SAFEPOINTS_TITLE, _SAFEPOINTS, lambda task: task.gc))
    if any(task.os for task in found.tasks):
        grids.append(_grid(found, _CPU_TITLE, _CPU, lambda task: task.os))
        grids.append(_grid(found, _THREADS_TITLE, _THREADS, lambda task: task.os))
        grids.append(_grid(found, _MEMORY_TITLE, _MEMORY, lambda task: task.os))
    return grids


def evidence_lines(found: RunEvidence) -> list[str]:
    """What the tables rest on, and what they lack."""
    forks = ", ".join(
        f"fork{'s' if len(blocks) > 1 else ''} {' '.join(map(str, blocks))} of {name}"
        for name, blocks in found.forks.items()
        if blocks
    )
    return [f"Of the measured part of each task; means over {forks}.", *found.absent]


def _grid(
    found: RunEvidence, title: str, cells: Cells[A], of: Callable[[TaskEvidence], Mapping[str, Sequence[A]]]
) -> Grid:
    headers = [
        f"{name} {variant}" if len(found.variants) > 1 else name
        for name, _ in cells
        for variant in found.variants
    ]
    lines = tuple(
        (
            _name(task, found),
            *(
                cell(forks) if (forks := of(task).get(variant)) else NOT_AVAILABLE
                for _, cell in cells
                for variant in found.variants
            ),
        )
        for task in found.tasks
    )
    return Grid.of(title, (OPERATION, *headers), lines)


def _name(task: TaskEvidence, found: RunEvidence) -> str:
    several = len({one.schedule for one in found.tasks}) > 1
    return f"{task.challenge}: {task.label}" if several else task.label


def _mean(forks: Sequence[A], of: Callable[[A], float | None], unit: float = 1.0) -> str:
    """The mean over forks; nothing where one of them has none."""
    values = [of(one) for one in forks]
    known = [value for value in values if value is not None]
    return figure(sum(known) / len(known) / unit) if len(known) == len(values) else NOT_AVAILABLE


def _mean_count(forks: Sequence[A], of: Callable[[A], int]) -> str:
    return _count(sum(of(one) for one in forks) / len(forks))


def _thirds(of: Callable[[JitActivity], Thirds | None]) -> Callable[[Sequence[JitActivity]], str]:
    """`330 (120, 4)`: in all, in the first and in the last third."""

    def cell(forks: Sequence[JitActivity]) -> str:
        known = [thirds for one in forks if (thirds := of(one)) is not None]
        if len(known) < len(forks):
            return NOT_AVAILABLE
        whole, first, last = (
            _count(sum(getattr(thirds, name) for thirds in known) / len(known))
            for name in ("count", "first", "last")
        )
        return f"{whole} ({first}, {last})"

    return cell


def _count(value: float) -> str:
    """A mean of counts: whole where it is."""
    return f"{value:,.0f}" if value == round(value) else f"{value:,.1f}"


_JIT_TITLE = (
    "jit: compilations that began, code of C2 that was given up, deoptimisations; in brackets those of the "
    "first and of the last third of the time"
)
_JIT: Cells[JitActivity] = (
    ("C1", _thirds(lambda one: one.c1)),
    ("C2", _thirds(lambda one: one.c2)),
    ("Given up", _thirds(lambda one: one.c2_given_up)),
    ("Deopts", _thirds(lambda one: one.deoptimised)),
)

_PAUSES_TITLE = "gc: pauses of the collector, ms in all and of the longest; MB allocated a second"
_PAUSES: Cells[GcActivity] = (
    ("Pauses", lambda forks: _mean_count(forks, lambda one: one.pauses)),
    ("ms", lambda forks: _mean(forks, lambda one: one.pause_ms)),
    ("Longest", lambda forks: figure(max(one.longest_ms for one in forks))),
    ("MB/s", lambda forks: _mean(forks, lambda one: one.allocated_bytes_per_s, _MB)),
)

_SAFEPOINTS_TITLE = "gc: safepoints, collections included, ms in all, and ms until the last thread stopped"
_SAFEPOINTS: Cells[GcActivity] = (
    ("Stops", lambda forks: _mean_count(forks, lambda one: one.safepoints)),
    ("ms", lambda forks: _mean(forks, lambda one: one.safepoint_ms)),
    ("To stop", lambda forks: figure(max(one.longest_reach_ms for one in forks))),
)

_CPU_TITLE = "os: seconds of the task, and of CPU that the node used in it, as user and as system"
_CPU: Cells[OsActivity] = (
    ("Task", lambda forks: _mean(forks, lambda one: one.seconds)),
    ("User", lambda forks: _mean(forks, lambda one: one.user_s)),
    ("System", lambda forks: _mean(forks, lambda one: one.system_s)),
)

_THREADS_TITLE = (
    "os: context switches of the node's threads that waited, and of those that were made to; most threads"
)
_THREADS: Cells[OsActivity] = (
    ("Waited", lambda forks: _mean(forks, lambda one: one.voluntary_switches)),
    ("Made to", lambda forks: _mean(forks, lambda one: one.involuntary_switches)),
    ("Threads", lambda forks: _mean(forks, lambda one: one.threads)),
)

_MEMORY_TITLE = (
    "os: page faults of the node, minor and major; MB read from and written to storage; most memory, MB"
)
_MEMORY: Cells[OsActivity] = (
    ("Minor", lambda forks: _mean(forks, lambda one: one.minor_faults)),
    ("Major", lambda forks: _mean(forks, lambda one: one.major_faults)),
    ("Read", lambda forks: _mean(forks, lambda one: one.read_bytes, _MB)),
    ("Written", lambda forks: _mean(forks, lambda one: one.write_bytes, _MB)),
    ("RSS", lambda forks: _mean(forks, lambda one: one.rss_bytes, _MB)),
)


def _causes(task: TaskEvidence) -> list[str]:
    """Why threads were stopped in a task, on any side; the costliest first."""
    total_ms: dict[str, float] = {}
    for forks in task.gc.values():
        for one in forks:
            for cause, pauses in one.causes.items():
                total_ms[cause] = total_ms.get(cause, 0.0) + pauses.total_ms
    return sorted(total_ms, key=lambda cause: -total_ms[cause])


def _cause_grid(found: RunEvidence) -> Grid:
    headers = [
        f"{name} {variant}" if len(found.variants) > 1 else name
        for name in ("Pauses", "ms")
        for variant in found.variants
    ]
    lines = tuple(line for task in found.tasks for line in _cause_lines(task, found))
    title = "gc: pauses of the collector by cause, in the JVM's words"
    return Grid.of(title, (OPERATION, worded("Cause"), *headers), lines)


def _cause_lines(task: TaskEvidence, found: RunEvidence) -> Iterator[tuple[Cell | str, ...]]:
    for place, cause in enumerate(_causes(task)):
        sides = [
            [one.causes.get(cause, Cause(0, 0.0)) for one in task.gc.get(variant, ())]
            for variant in found.variants
        ]
        counts = [
            _count(sum(one.count for one in side) / len(side)) if side else NOT_AVAILABLE for side in sides
        ]
        spent = [_mean(side, lambda one: one.total_ms) if side else NOT_AVAILABLE for side in sides]
        yield (_name(task, found) if place == 0 else ABOVE, cause, *counts, *spent)
