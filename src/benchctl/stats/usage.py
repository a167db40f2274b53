"""A fork's telemetry -> what its node and the driver used while one task ran, in few points."""

import msgspec
import numpy as np

from benchctl.results.reading import Telemetry
from benchctl.results.samples import Columns
from benchctl.stats.arrays import Floats, Integers

_NS_PER_S = 1_000_000_000
_NS_PER_MS = 1e6
_MOST_POINTS = 150
_READ_EVERY_NS = 1_000_000_000


class Usage(msgspec.Struct, frozen=True):
    """What was used during one task of one fork; shapes are (n,) for readings and (m,) for pauses.

    Attributes:
        readings: of each point: with many, a point is their mean.
        seconds: when a point's last reading was made, from the beginning of the measured window.
        node_cpu_percent, driver_cpu_percent: 100 is one CPU; NaN where unknown.
        merges: that were running; NaN where nobody asked.
        pause_counts: of each mark: with many pauses, a mark stands for those of a stretch of time.
        pause_s: when a mark's first pause began.
        pause_ms: the longest of a mark.
        pauses: how many there were.
        pauses_ms: how long they were together.
        longest: what the longest was, in the JVM's words; empty without pauses.
    """

    readings: Integers
    seconds: Floats
    node_cpu_percent: Floats
    driver_cpu_percent: Floats
    merges: Floats
    pause_counts: Integers
    pause_s: Floats
    pause_ms: Floats
    pauses: int
    pauses_ms: float
    longest: str


def task_usage(telemetry: Telemetry, begin_ns: int, end_ns: int, origin_ns: int) -> Usage:
    """Cut one task out of a fork's telemetry.

    Args:
        telemetry: of the fork.
        begin_ns: of the task, warm-up included, on the clock of the fork's samples.
        end_ns: of the task.
        origin_ns: the beginning of its measured window, on the same clock.
    """
    times_ns = telemetry.series["t_ns"]
    # A reading is about the second before it: the first one after the end is about the task, too.
    first = int(np.searchsorted(times_ns, begin_ns, side="right"))
    stop = int(np.searchsorted(times_ns, end_ns, side="left"))
    if stop < times_ns.size and times_ns[stop] < end_ns + _READ_EVERY_NS:
        stop += 1
    group = np.arange(stop - first) // _per_point(stop - first)
    series = {name: values[first:stop] for name, values in telemetry.series.items()}
    lasts = np.flatnonzero(np.diff(group, append=-1))
    began_ns = telemetry.pauses["t_ns"]
    within = (began_ns >= begin_ns) & (began_ns <= end_ns)
    pauses = {name: values[within] for name, values in telemetry.pauses.items()}
    marks = _marks(pauses, begin_ns, end_ns)
    longest = int(pauses["pause_ns"].argmax()) if within.any() else None
    return Usage(
        readings=np.bincount(group),
        seconds=(series["t_ns"][lasts] - origin_ns) / _NS_PER_S,
        node_cpu_percent=_means(series["node_cpu_percent"], group),
        driver_cpu_percent=_means(series["driver_cpu_percent"], group),
        merges=_means(series["merges_current"], group),
        pause_counts=np.bincount(marks),
        pause_s=(pauses["t_ns"][np.flatnonzero(np.diff(marks, prepend=-1))] - origin_ns) / _NS_PER_S,
        pause_ms=_greatest(pauses["pause_ns"], marks) / _NS_PER_MS,
        pauses=int(within.sum()),
        pauses_ms=float(pauses["pause_ns"].sum()) / _NS_PER_MS,
        longest="" if longest is None else str(pauses["what"][longest]),
    )


def _per_point(readings: int) -> int:
    return max(1, -(-readings // _MOST_POINTS))


def _means(values: Floats, group: Integers) -> Floats:
    """The mean of what is known of each group; NaN for one of which nothing is."""
    known = ~np.isnan(values)
    sums = np.bincount(group, weights=np.where(known, values, 0.0))
    counts = np.bincount(group, weights=known)
    means: Floats = np.divide(sums, counts, out=np.full(sums.shape, np.nan), where=counts > 0)
    return means


def _marks(pauses: Columns, begin_ns: int, end_ns: int) -> Integers:
    """The mark of each pause, from 0 without gaps: its own, or that of its stretch of time."""
    began_ns: Integers = pauses["t_ns"]
    if began_ns.size <= _MOST_POINTS:
        return np.arange(began_ns.size)
    stretches = (began_ns - begin_ns) * _MOST_POINTS // max(end_ns - begin_ns + 1, 1)
    return np.unique(stretches, return_inverse=True)[1].astype(np.int64)


def _greatest(values: Integers, marks: Integers) -> Floats:
    firsts = np.flatnonzero(np.diff(marks, prepend=-1))
    return np.maximum.reduceat(values, firsts).astype(np.float64) if firsts.size else np.zeros(0)
