"""Evidence of a run from its folder, counted task by task."""

from collections.abc import Sequence

import msgspec

from benchctl.errors import BenchctlError
from benchctl.report.numbers import counted
from benchctl.results.evidence import (
    GC_DTYPES,
    GC_FILE,
    JIT_DTYPES,
    JIT_FILE,
    OS_DTYPES,
    OS_FILE,
    fork_evidence,
)
from benchctl.results.model import ForkRecord, RunRecord
from benchctl.results.plan import EvidenceKind, Place
from benchctl.results.reading import task_windows
from benchctl.results.store import RunFolder
from benchctl.stats.evidence import (
    GcActivity,
    JitActivity,
    OsActivity,
    TaskEvidence,
    gc_activity,
    jit_activity,
    os_activity,
)
from benchctl.stats.metrics import challenge_title, places, task_at

COUNTED: tuple[EvidenceKind, ...] = ("jit", "gc", "os")
"""Kinds that are counted here; inlining and profiles have commands of their own."""


class RunEvidence(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a run collected.

    Attributes:
        run: its id.
        kinds: of the evidence that is shown.
        variants: in table order.
        forks: variant -> blocks of its forks that carry any of it.
        tasks: in the order in which they ran.
        folders: of the forks, relative to the run.
        absent: what of it cannot be shown, in words.
    """

    run: str
    kinds: tuple[EvidenceKind, ...]
    variants: tuple[str, ...]
    forks: dict[str, tuple[int, ...]]
    tasks: tuple[TaskEvidence, ...]
    folders: tuple[str, ...]
    absent: tuple[str, ...] = ()


class _Forks(msgspec.Struct):
    """Activities of one variant's forks so far, by place."""

    jit: dict[Place, list[JitActivity]] = {}
    gc: dict[Place, list[GcActivity]] = {}
    os: dict[Place, list[OsActivity]] = {}


def read_run_evidence(
    folder: RunFolder,
    record: RunRecord,
    *,
    kinds: Sequence[EvidenceKind] = COUNTED,
    variants: Sequence[str] = (),
    block: int | None = None,
) -> RunEvidence:
    """Count the evidence of a run's finished forks.

    Args:
        folder: of the run.
        record: of it.
        kinds: which evidence.
        variants: whose; empty for all.
        block: of one fork only; None for all forks that carry any.
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
            if unread:
                lines = counted(unread, "line")
                absent.append(f"fork {fork.block} of {name}: {lines} of the compilers' log could not be read")
    return RunEvidence(
        run=record.id,
        kinds=tuple(kind for kind in kinds if any(kind in fork.evidence for fork in _all(carrying))),
        variants=tuple(names),
        forks={name: tuple(fork.block for fork in forks) for name, forks in carrying.items()},
        tasks=tuple(_task(record, place, found) for place in _shown(record, _all(carrying))),
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
        (one.schedule, one.task) for fork in forks for one in fork.summaries if one.reported and one.samples
    }
    return [place for place in places(record.plan) if place in measured]


def _task(record: RunRecord, place: Place, found: dict[str, _Forks]) -> TaskEvidence:
    return TaskEvidence(
        schedule=place[0],
        challenge=challenge_title(record.plan, place[0]),
        task=place[1],
        label=task_at(record.plan, place).label,
        jit={name: tuple(forks.jit[place]) for name, forks in found.items() if place in forks.jit},
        gc={name: tuple(forks.gc[place]) for name, forks in found.items() if place in forks.gc},
        os={name: tuple(forks.os[place]) for name, forks in found.items() if place in forks.os},
    )


def _add(found: _Forks, folder: RunFolder, fork: ForkRecord, kinds: Sequence[EvidenceKind]) -> int:
    """Count what one fork has; gives the lines of its compilers' log that were not understood."""
    windows = task_windows(folder, fork)
    unread = 0
    if "jit" in kinds and (events := fork_evidence(folder, fork, JIT_FILE, JIT_DTYPES)) is not None:
        unread = int((events["what"] == "unread").sum())
        logged = any("deoptimization" in word for boot in fork.boots for word in boot.command)
        for place, window in windows.items():
            activity = jit_activity(events, window, deoptimisations=logged)
            found.jit.setdefault(place, []).append(activity)
    if "gc" in kinds and (events := fork_evidence(folder, fork, GC_FILE, GC_DTYPES)) is not None:
        for place, window in windows.items():
            found.gc.setdefault(place, []).append(gc_activity(events, window))
    if "os" in kinds and (events := fork_evidence(folder, fork, OS_FILE, OS_DTYPES)) is not None:
        for place, window in windows.items():
            found.os.setdefault(place, []).append(os_activity(events, window))
    return unread
