"""Evidence of a run from its folder, counted task by task."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeVar

import msgspec

from benchctl.errors import BenchctlError
from benchctl.evidence.activity import (
    Cause,
    GcActivity,
    JitActivity,
    OsActivity,
    TaskEvidence,
    Thirds,
    gc_activity,
    jit_activity,
    os_activity,
)
from benchctl.evidence.files import (
    GC_DTYPES,
    GC_FILE,
    JIT_DTYPES,
    JIT_FILE,
    OS_DTYPES,
    OS_FILE,
    fork_evidence,
)
from benchctl.report.numbers import NOT_AVAILABLE, counted, figure
from benchctl.report.table import ABOVE, OPERATION, Cell, Table, worded
from benchctl.results.model import ForkRecord, RunRecord
from benchctl.results.plan import Place
from benchctl.results.reading import task_windows
from benchctl.results.store import RunFolder
from benchctl.spec import EvidenceKind
from benchctl.stats.metrics import challenge_title, places, task_at


class RunEvidence(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Evidence of a run."""

    run: str
    kinds: tuple[EvidenceKind, ...]
    variants: tuple[str, ...]
    forks: dict[str, tuple[int, ...]]  # variant -> blocks of its forks that carry any of it
    tasks: tuple[TaskEvidence, ...]
    folders: tuple[str, ...]
    absent: tuple[str, ...] = ()


class _Forks(msgspec.Struct):
    """Activities of one variant's forks so far, by place and node."""

    jit: dict[tuple[Place, str], list[JitActivity]] = {}
    gc: dict[tuple[Place, str], list[GcActivity]] = {}
    os: dict[tuple[Place, str], list[OsActivity]] = {}


def read_run_evidence(
    folder: RunFolder,
    record: RunRecord,
    *,
    kinds: Sequence[EvidenceKind],
    variants: Sequence[str] = (),
    block: int | None = None,
    node: str = "",
) -> RunEvidence:
    """Count the evidence of a run's finished forks.

    Of all `variants` and each node if these are empty, and all blocks if None.
    """
    names = [spec.name for spec in record.plan.variants if not variants or spec.name in variants]
    carrying = {
        name: [
            fork
            for fork in record.done(name)
            if set(fork.evidence) & set(kinds) and block in (None, fork.block)
        ]
        for name in names
    }
    found = {name: _Forks() for name in names}
    absent: list[str] = []
    for name, forks in carrying.items():
        for fork in forks:
            try:
                unread = _add(found[name], folder, fork, kinds)
            except BenchctlError as err:
                absent.append(err.message)
                continue
            absent += [
                f"fork {fork.block} of {name}: {fate.node} was {fate.what}, and has no evidence"
                for boot in fork.boots
                for fate in boot.fates
                if fate.what != "started again" and node in {"", fate.node}
            ]
            if unread:
                lines = counted(unread, "line")
                absent.append(f"fork {fork.block} of {name}: {lines} of the compilers' log could not be read")
    return RunEvidence(
        run=record.id,
        kinds=tuple(kind for kind in kinds if any(kind in fork.evidence for fork in _all(carrying))),
        variants=tuple(names),
        forks={name: tuple(fork.block for fork in forks) for name, forks in carrying.items()},
        tasks=tuple(
            _task(record, place, name, found)
            for place in _shown(record, _all(carrying))
            for name in nodes_of(_all(carrying))
            if node in {"", name}
        ),
        folders=tuple(
            str(folder.evidence_folder(fork.variant, fork.block, 0).parent.relative_to(folder.path))
            for fork in _all(carrying)
        ),
        absent=tuple(absent),
    )


def _all(carrying: dict[str, list[ForkRecord]]) -> list[ForkRecord]:
    return [fork for forks in carrying.values() for fork in forks]


def _shown(record: RunRecord, forks: Sequence[ForkRecord]) -> list[Place]:
    """Tasks that tables show, in the order in which they ran."""
    measured = {
        (summary.schedule, summary.task)
        for fork in forks
        for summary in fork.summaries
        if summary.reported and summary.samples
    }
    return [place for place in places(record.plan) if place in measured]


def nodes_of(forks: Sequence[ForkRecord]) -> tuple[str, ...]:
    """Return the names of all their nodes; a single one's is empty."""
    return tuple(dict.fromkeys(jvm.name for fork in forks for boot in fork.boots for jvm in boot.jvms))


def _task(record: RunRecord, place: Place, node: str, found: dict[str, _Forks]) -> TaskEvidence:
    where = place, node
    return TaskEvidence(
        schedule=place[0],
        challenge=challenge_title(record.plan, place[0]),
        task=place[1],
        label=task_at(record.plan, place).label,
        jit={name: tuple(forks.jit[where]) for name, forks in found.items() if where in forks.jit},
        gc={name: tuple(forks.gc[where]) for name, forks in found.items() if where in forks.gc},
        os={name: tuple(forks.os[where]) for name, forks in found.items() if where in forks.os},
        node=node,
    )


def _add(found: _Forks, folder: RunFolder, fork: ForkRecord, kinds: Sequence[EvidenceKind]) -> int:
    """Count one fork's evidence; return how many lines of its compilers' log were not understood."""
    windows = task_windows(folder, fork)
    logged = any("deoptimization" in word for boot in fork.boots for word in boot.command)
    unread = 0
    for node in nodes_of([fork]):
        if "jit" in kinds and (events := fork_evidence(folder, fork, JIT_FILE, JIT_DTYPES, node)) is not None:
            unread += int((events["what"] == "unread").sum())
            for place, window in windows.items():
                activity = jit_activity(events, window, deoptimisations=logged)
                found.jit.setdefault((place, node), []).append(activity)
        if "gc" in kinds and (events := fork_evidence(folder, fork, GC_FILE, GC_DTYPES, node)) is not None:
            for place, window in windows.items():
                found.gc.setdefault((place, node), []).append(gc_activity(events, window))
        if "os" in kinds and (events := fork_evidence(folder, fork, OS_FILE, OS_DTYPES, node)) is not None:
            for place, window in windows.items():
                found.os.setdefault((place, node), []).append(os_activity(events, window))
    return unread


_MB = 1e6

A = TypeVar("A")
Cells = Sequence[tuple[str, Callable[[Sequence[A]], str]]]
"""(what the column is called, its cell of one variant's forks)."""


def evidence_tables(found: RunEvidence) -> list[Table]:
    """Return the tables of what was collected; kinds without anything have none."""
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
    """Return what the tables rest on, and what is missing."""
    forks = ", ".join(
        f"fork{'s' if len(blocks) > 1 else ''} {' '.join(map(str, blocks))} of {name}"
        for name, blocks in found.forks.items()
        if blocks
    )
    return [f"Of the measured part of each task; means over {forks}.", *found.absent]


def _grid(
    found: RunEvidence, title: str, cells: Cells[A], of: Callable[[TaskEvidence], Mapping[str, Sequence[A]]]
) -> Table:
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
    return Table.of(title, (OPERATION, *headers), lines)


def _name(task: TaskEvidence, found: RunEvidence) -> str:
    several = len({evidence.schedule for evidence in found.tasks}) > 1
    name = f"{task.challenge}: {task.label}" if several else task.label
    return f"{name}, {task.node}" if task.node else name


def _mean(forks: Sequence[A], of: Callable[[A], float | None], unit: float = 1.0) -> str:
    """The mean over forks; nothing if one of them has none."""
    values = [of(fork) for fork in forks]
    known = [value for value in values if value is not None]
    return figure(sum(known) / len(known) / unit) if len(known) == len(values) else NOT_AVAILABLE


def _mean_count(forks: Sequence[A], of: Callable[[A], int]) -> str:
    return _count(sum(of(fork) for fork in forks) / len(forks))


def _thirds(of: Callable[[JitActivity], Thirds | None]) -> Callable[[Sequence[JitActivity]], str]:
    """`330 (120, 4)`: in all, in the first and in the last third."""

    def cell(forks: Sequence[JitActivity]) -> str:
        thirdses = [thirds for fork in forks if (thirds := of(fork)) is not None]
        if len(thirdses) < len(forks):
            return NOT_AVAILABLE
        whole, first, last = (
            _count(sum(getattr(thirds, name) for thirds in thirdses) / len(thirdses))
            for name in ("count", "first", "last")
        )
        return f"{whole} ({first}, {last})"

    return cell


def _count(value: float) -> str:
    """A mean of counts: whole where it is."""
    return f"{value:,.0f}" if value == round(value) else f"{value:,.1f}"


_JIT_TITLE = (
    "jit: compilations that began, code of C2 that was given up, deoptimizations; in brackets those of the "
    "first and of the last third of the time"
)
_JIT: Cells[JitActivity] = (
    ("C1", _thirds(lambda activity: activity.c1)),
    ("C2", _thirds(lambda activity: activity.c2)),
    ("Given up", _thirds(lambda activity: activity.c2_given_up)),
    ("Deopts", _thirds(lambda activity: activity.deoptimised)),
)

_PAUSES_TITLE = "gc: pauses of the collector, ms in all and of the longest; MB allocated a second"
_PAUSES: Cells[GcActivity] = (
    ("Pauses", lambda forks: _mean_count(forks, lambda activity: activity.pauses)),
    ("ms", lambda forks: _mean(forks, lambda activity: activity.pause_ms)),
    ("Longest", lambda forks: figure(max(fork.longest_ms for fork in forks))),
    ("MB/s", lambda forks: _mean(forks, lambda activity: activity.allocated_bytes_per_s, _MB)),
)

_SAFEPOINTS_TITLE = "gc: safepoints, collections included, ms in all, and ms until the last thread stopped"
_SAFEPOINTS: Cells[GcActivity] = (
    ("Stops", lambda forks: _mean_count(forks, lambda activity: activity.safepoints)),
    ("ms", lambda forks: _mean(forks, lambda activity: activity.safepoint_ms)),
    ("To stop", lambda forks: figure(max(fork.longest_reach_ms for fork in forks))),
)

_CPU_TITLE = "os: seconds of the task, and of CPU that the node used in it, as user and as system"
_CPU: Cells[OsActivity] = (
    ("Task", lambda forks: _mean(forks, lambda activity: activity.seconds)),
    ("User", lambda forks: _mean(forks, lambda activity: activity.user_s)),
    ("System", lambda forks: _mean(forks, lambda activity: activity.system_s)),
)

_THREADS_TITLE = (
    "os: context switches of the node's threads that waited, and of those that were made to; most threads"
)
_THREADS: Cells[OsActivity] = (
    ("Waited", lambda forks: _mean(forks, lambda activity: activity.voluntary_switches)),
    ("Made to", lambda forks: _mean(forks, lambda activity: activity.involuntary_switches)),
    ("Threads", lambda forks: _mean(forks, lambda activity: activity.threads)),
)

_MEMORY_TITLE = (
    "os: page faults of the node, minor and major; MB read from and written to storage; most memory, MB"
)
_MEMORY: Cells[OsActivity] = (
    ("Minor", lambda forks: _mean(forks, lambda activity: activity.minor_faults)),
    ("Major", lambda forks: _mean(forks, lambda activity: activity.major_faults)),
    ("Read", lambda forks: _mean(forks, lambda activity: activity.read_bytes, _MB)),
    ("Written", lambda forks: _mean(forks, lambda activity: activity.write_bytes, _MB)),
    ("RSS", lambda forks: _mean(forks, lambda activity: activity.rss_bytes, _MB)),
)


def _causes(task: TaskEvidence) -> list[str]:
    """Return why threads were stopped in a task, on any side; the costliest first."""
    total_ms: dict[str, float] = {}
    for forks in task.gc.values():
        for fork in forks:
            for cause, pauses in fork.causes.items():
                total_ms[cause] = total_ms.get(cause, 0.0) + pauses.total_ms
    return sorted(total_ms, key=lambda cause: -total_ms[cause])


def _cause_grid(found: RunEvidence) -> Table:
    headers = [
        f"{name} {variant}" if len(found.variants) > 1 else name
        for name in ("Pauses", "ms")
        for variant in found.variants
    ]
    lines = tuple(line for task in found.tasks for line in _cause_lines(task, found))
    title = "gc: pauses of the collector by cause, in the JVM's words"
    return Table.of(title, (OPERATION, worded("Cause"), *headers), lines)


def _cause_lines(task: TaskEvidence, found: RunEvidence) -> Iterator[tuple[Cell | str, ...]]:
    for place, cause in enumerate(_causes(task)):
        sides = [
            [activity.causes.get(cause, Cause(0, 0.0)) for activity in task.gc.get(variant, ())]
            for variant in found.variants
        ]
        counts = [
            _count(sum(cause.count for cause in side) / len(side)) if side else NOT_AVAILABLE
            for side in sides
        ]
        spent = [_mean(side, lambda cause: cause.total_ms) if side else NOT_AVAILABLE for side in sides]
        yield (_name(task, found) if place == 0 else ABOVE, cause, *counts, *spent)
