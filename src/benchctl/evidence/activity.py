"""Evidence of forks: what it shows task by task, and what collecting it cost."""

import math
from collections import Counter
from collections.abc import Sequence

import msgspec
import numpy as np

from benchctl.results.model import C2_LEVEL, ForkRecord, RunRecord
from benchctl.results.plan import Place, Plan
from benchctl.results.reading import TaskWindow
from benchctl.results.samples import Columns
from benchctl.spec import EvidenceKind
from benchctl.stats.analysis import EvidenceCost, TaskCost
from benchctl.stats.arrays import Floats, Integers
from benchctl.stats.caveat import Caveat
from benchctl.stats.inference import difference_of
from benchctl.stats.metrics import collect, places, task_at


def evidence_cost(record: RunRecord) -> EvidenceCost | None:
    """Compare a run's forks with evidence to its plain ones.

    Those with evidence run after all others, so a host that slowed down meanwhile adds to the cost. None
    when no extra forks were planned for evidence, or the run searched for a red-line.
    """
    plan, evidence = record.plan, record.plan.evidence
    if evidence is None or not evidence.extra_forks or plan.redline is not None:
        return None
    found = []
    for place in places(plan):
        for spec in plan.variants:
            done = record.done(spec.name)
            usual = [fork for fork in done if not plan.is_extra(fork.block)]
            extra = [fork for fork in done if plan.is_extra(fork.block)]
            found.append(_cost(plan, place, spec.name, usual, extra))
    tasks = tuple(cost for cost in found if cost is not None)
    return EvidenceCost(evidence.kinds, evidence.extra_forks, tasks)


def evidence_everywhere(kinds: Sequence[EvidenceKind]) -> Caveat:
    """Return all compared forks carried evidence: alike on both sides, but unlike plain runs."""
    return Caveat(
        "evidence",
        f"every fork carried evidence ({', '.join(kinds)}): what it cost is not known; run with "
        "--evidence-forks 1 to see",
    )


def _cost(
    plan: Plan, place: Place, variant: str, without: Sequence[ForkRecord], with_it: Sequence[ForkRecord]
) -> TaskCost | None:
    plain, carrying = _values(without, plan, place), _values(with_it, plan, place)
    if not plain.size or not carrying.size:
        return None
    tested = difference_of(plain, carrying, paired=False)
    low, high = (None, None) if tested is None else map(_percent, tested.interval(0.95))
    return TaskCost(
        schedule=place[0],
        task=place[1],
        label=task_at(plan, place).label,
        variant=variant,
        plain=plain.size,
        evidence=carrying.size,
        percent=_percent(float(carrying.mean() - plain.mean())),
        low_percent=low,
        high_percent=high,
    )


def _values(forks: Sequence[ForkRecord], plan: Plan, place: Place) -> Floats:
    """Logarithms of mean service times of a task that tables show, one a fork, shape (n,)."""
    found = collect({"": forks}, place, task_at(plan, place))[""]
    return np.array([math.log(one.mean_ns) for _, one in found if one.reported and one.mean_ns])


def _percent(log_ratio: float) -> float:
    return 100 * math.expm1(log_ratio)


_NS_PER_MS = 1e6
_NS_PER_S = 1e9


class Thirds(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Number of events: in total, and in the first and last third of the time."""

    count: int
    first: int
    last: int


class JitActivity(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Activity of the compilers."""

    seconds: float
    # `c1`, `c2`: compilations that began, by compiler.
    c1: Thirds
    c2: Thirds
    c2_given_up: Thirds  # code of C2 that no thread enters any more
    # Threads that left compiled code because an assumption was wrong; None where the JVM does not log it.
    deoptimised: Thirds | None


class Cause(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Pauses for one reason: how many, and how long together."""

    count: int
    total_ms: float


class GcActivity(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Pauses of threads, and their reasons."""

    seconds: float
    pauses: int
    pause_ms: float
    longest_ms: float
    causes: dict[str, Cause]  # in the JVM's words -> pauses for that reason
    safepoints: int
    safepoint_ms: float
    reach_ms: float  # of it, until the last thread had stopped: sum, longest
    longest_reach_ms: float
    # By the heap between collections that lie around the task or in it; None where there are none.
    allocated_bytes_per_s: float | None


class OsActivity(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Kernel's counters of the process; None where unavailable.

    Between readings, what grows is taken to grow evenly.
    """

    seconds: float
    user_s: float | None
    system_s: float | None
    minor_faults: float | None
    major_faults: float | None
    read_bytes: float | None
    write_bytes: float | None
    voluntary_switches: float | None  # of threads: they waited, or another one had the CPU
    involuntary_switches: float | None
    threads: float | None  # the most of any reading
    rss_bytes: float | None


class TaskEvidence(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Activity during one task: variant -> an entry per fork, in block order."""

    schedule: int
    challenge: str
    task: int
    label: str
    # `jit`, `gc`, `os`: by kind; variants without that evidence are missing.
    jit: dict[str, tuple[JitActivity, ...]] = {}
    gc: dict[str, tuple[GcActivity, ...]] = {}
    os: dict[str, tuple[OsActivity, ...]] = {}
    node: str = ""  # whose it is, where variants have several; empty for a single one


def jit_activity(events: Columns, window: TaskWindow, *, deoptimisations: bool) -> JitActivity:
    """Count what the compilers did: columns of `results.evidence.JIT_DTYPES` on the clock of the samples.

    `deoptimisations` says whether the JVM logs them.
    """
    what, level, t_ns = events["what"], events["level"], events["t_ns"]
    compiled = what == "compiled"
    return JitActivity(
        seconds=window.seconds,
        c1=_thirds(t_ns[compiled & (level >= 1) & (level < C2_LEVEL)], window),
        c2=_thirds(t_ns[compiled & (level == C2_LEVEL)], window),
        c2_given_up=_thirds(t_ns[(what == "invalidated") & (level == C2_LEVEL)], window),
        deoptimised=_thirds(t_ns[what == "deoptimised"], window) if deoptimisations else None,
    )


def gc_activity(events: Columns, window: TaskWindow) -> GcActivity:
    """Count stops of threads: columns of `results.evidence.GC_DTYPES` on the clock of the samples."""
    within = (events["t_ns"] >= window.measured_ns) & (events["t_ns"] <= window.end_ns)
    pauses = {name: values[within & (events["what"] == "pause")] for name, values in events.items()}
    safepoints = {name: values[within & (events["what"] == "safepoint")] for name, values in events.items()}
    counts: Counter[str] = Counter(pauses["cause"])
    return GcActivity(
        seconds=window.seconds,
        pauses=int(pauses["t_ns"].size),
        pause_ms=float(pauses["total_ns"].sum()) / _NS_PER_MS,
        longest_ms=float(pauses["total_ns"].max(initial=0)) / _NS_PER_MS,
        causes={
            cause: Cause(count, float(pauses["total_ns"][pauses["cause"] == cause].sum()) / _NS_PER_MS)
            for cause, count in sorted(counts.items())
        },
        safepoints=int(safepoints["t_ns"].size),
        safepoint_ms=float(safepoints["total_ns"].sum()) / _NS_PER_MS,
        reach_ms=float(safepoints["reach_ns"].sum()) / _NS_PER_MS,
        longest_reach_ms=float(safepoints["reach_ns"].max(initial=0)) / _NS_PER_MS,
        allocated_bytes_per_s=_allocated(events, window),
    )


def os_activity(readings: Columns, window: TaskWindow) -> OsActivity:
    """Kernel's counters in a window: columns of `results.evidence.OS_DTYPES` on the samples' clock.

    Counters start from 0 with every node start, and no task spans two of them.
    """
    t_ns = readings["t_ns"]
    return OsActivity(
        seconds=window.seconds,
        user_s=_grown(t_ns, readings["user_s"], window),
        system_s=_grown(t_ns, readings["system_s"], window),
        minor_faults=_grown(t_ns, readings["minor_faults"], window),
        major_faults=_grown(t_ns, readings["major_faults"], window),
        read_bytes=_grown(t_ns, readings["read_bytes"], window),
        write_bytes=_grown(t_ns, readings["write_bytes"], window),
        voluntary_switches=_grown(t_ns, readings["voluntary_switches"], window),
        involuntary_switches=_grown(t_ns, readings["involuntary_switches"], window),
        threads=_most(t_ns, readings["threads"], window),
        rss_bytes=_most(t_ns, readings["rss_bytes"], window),
    )


def _thirds(t_ns: Integers, window: TaskWindow) -> Thirds:
    begin, end = window.measured_ns, window.end_ns
    length = (end - begin) / 3

    def count(start: float, stop: float) -> int:
        return int(((t_ns >= start) & (t_ns <= stop)).sum())

    return Thirds(count(begin, end), count(begin, begin + length), count(end - length, end))


def _allocated(events: Columns, window: TaskWindow) -> float | None:
    """Bytes a second, from how much the heap filled between the end of one collection and the next."""
    known = (events["what"] == "pause") & (events["before_bytes"] >= 0) & (events["after_bytes"] >= 0)
    begins, lengths = events["t_ns"][known], events["total_ns"][known]
    if begins.size < 2:  # noqa: PLR2004 - between two
        return None
    starts, stops = (begins + lengths)[:-1], begins[1:]
    grown = np.maximum(events["before_bytes"][known][1:] - events["after_bytes"][known][:-1], 0)
    shares = np.minimum(stops, window.end_ns) - np.maximum(starts, window.measured_ns)
    shares = np.clip(shares, 0, None)
    if not shares.any():
        return None
    rates = grown / np.maximum(stops - starts, 1) * _NS_PER_S
    return float(np.average(rates, weights=shares))


def _grown(t_ns: Integers, values: Floats, window: TaskWindow) -> float | None:
    known = ~np.isnan(values)
    if not known.any():
        return None
    before, after = np.interp([window.measured_ns, window.end_ns], t_ns[known], values[known])
    return float(after - before)


def _most(t_ns: Integers, values: Floats, window: TaskWindow) -> float | None:
    """The most of any reading, from the last one before the window to the first one after it."""
    known = ~np.isnan(values)
    t_ns, values = t_ns[known], values[known]
    if not values.size:
        return None
    first = max(int(np.searchsorted(t_ns, window.measured_ns, side="right")) - 1, 0)
    last = min(int(np.searchsorted(t_ns, window.end_ns, side="left")), values.size - 1)
    return float(values[first : last + 1].max())
