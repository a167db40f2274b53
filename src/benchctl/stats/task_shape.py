"""One fork's samples of one task -> how they were distributed and how they went along, in bounded memory."""

import math

import msgspec
import numpy as np

from benchctl.results.samples import Columns, Outcome, select
from benchctl.stats.arrays import Floats, Integers
from benchctl.stats.counts import ValueCounts
from benchctl.stats.course import START_BINS
from benchctl.stats.quantiles import linear_quantiles
from benchctl.stats.shape import LEVELS, GroupedCounts, ecdf, magnitudes, quantile_curve

_NS_PER_S = 1_000_000_000
_MOST_CELLS = 1024
_ECDF_POINTS = 120
_COURSE_QUANTILES = (0.1, 0.5, 0.9)


class Distribution(msgspec.Struct, frozen=True):
    """How one kind of time of one fork's task was distributed.

    Attributes:
        requests: successful measured ones.
        values_ns, shares: points of the empirical distribution function.
        levels_ns: quantiles at `shape.LEVELS`.
        curve_ns: quantiles at `shape.ODDS`; NaN where there were too few requests.
    """

    requests: int
    values_ns: Integers
    shares: Floats
    levels_ns: Floats
    curve_ns: Floats


class CourseLine(msgspec.Struct, frozen=True):
    """Service times in the order of the requests' starts, successful ones, several a point; shapes are (n,).

    Attributes:
        requests: of each point; a point is of warm-up or of measured requests, never of both.
        ranks: of its first request: measured ones count from 0, warm-up goes up to -1.
        seconds: start of that request, from the beginning of the measured window.
        p10_ns, p50_ns, p90_ns: of their service times.
    """

    requests: Integers
    ranks: Integers
    seconds: Floats
    p10_ns: Floats
    p50_ns: Floats
    p90_ns: Floats


class Flow(msgspec.Struct, frozen=True):
    """Units completed over time, in cells of equal length; one begins where the measured window does.

    Attributes:
        cell_s: length of a cell, seconds: a power of two.
        first: number of the first cell; those of the warm-up are negative.
        units: completed in each cell, warm-up included, shape (cells,).
        begin_s, end_s: start of the first request and end of the last, from the measured window's start.
    """

    cell_s: float
    first: int
    units: Floats
    begin_s: float
    end_s: float


class TaskShape(msgspec.Struct, frozen=True):
    """One fork's samples of one task.

    Attributes:
        warmup, samples, failures: operations: successful ones of warm-up, successful measured ones, and
            measured ones that failed.
        origin_ns: beginning of the measured window, on the clock of the fork's samples.
        service: distribution of service time; None without samples.
        latency: of latency, from when requests were due; None for a closed loop.
        course: None when no request succeeded.
        flow: completions.
    """

    warmup: int
    samples: int
    failures: int
    origin_ns: int
    service: Distribution | None
    latency: Distribution | None
    course: CourseLine | None
    flow: Flow


class HitTimes:
    """Service times by order of magnitude of the hits, of as many forks as are added.

    Attributes:
        service_ns: grouped by `shape.magnitudes`; requests whose hits are not known are not in it.
        unknown: requests whose hits are not known.
        bounded: requests whose hits the engine stopped counting: they had as many or more.
        least, most: hits that were seen; None before any.
    """

    def __init__(self) -> None:
        self.service_ns = GroupedCounts()
        self.unknown = self.bounded = 0
        self.least: int | None = None
        self.most: int | None = None

    @property
    def vary(self) -> bool:
        """Whether there was more than one number of hits."""
        return self.least != self.most

    def add(self, ok: Columns) -> None:
        """Take successful measured operations."""
        hits = ok["hits"]
        known = hits >= 0
        self.unknown += int((~known).sum())
        if not known.any():
            return
        self.bounded += int((known & ~ok["hits_exact"]).sum())
        hits = hits[known]
        least, most = int(hits.min()), int(hits.max())
        self.least = least if self.least is None else min(self.least, least)
        self.most = most if self.most is None else max(self.most, most)
        self.service_ns.add(magnitudes(hits), (ok["end_ns"] - ok["start_ns"])[known])


class Survey:
    """What a first reading finds: counts, clocks, distributions, and the starts that requests are ordered by.

    Args:
        throttled: requests had a due time, from which latency and the measured window count.
    """

    def __init__(self, *, throttled: bool) -> None:
        self.failures = 0
        self.service, self.latency = ValueCounts(), ValueCounts()
        self.warmup_starts, self.starts = ValueCounts(START_BINS), ValueCounts(START_BINS)
        self.begin_ns: int | None = None
        self.end_ns: int | None = None
        self._opens_ns: int | None = None
        self._throttled = throttled

    def add(self, rows: Columns) -> None:
        """Take more rows of the task."""
        whole = select(rows, (rows["part"] == 0) & (rows["outcome"] != Outcome.CANCELLED))
        if whole["start_ns"].size == 0:
            return
        self.begin_ns = _least(self.begin_ns, whole["start_ns"])
        self.end_ns = -_least(None if self.end_ns is None else -self.end_ns, -whole["end_ns"])
        measured = select(whole, ~whole["warmup"])
        if measured["start_ns"].size:
            self._opens_ns = _least(
                self._opens_ns, measured["intended_ns" if self._throttled else "start_ns"]
            )
        ok = successes(measured)
        self.failures += measured["start_ns"].size - ok["start_ns"].size
        self.service.add(ok["end_ns"] - ok["start_ns"])
        if self._throttled:
            self.latency.add(ok["end_ns"] - ok["intended_ns"])
        self.starts.add(ok["start_ns"])
        self.warmup_starts.add(successes(select(whole, whole["warmup"]))["start_ns"])

    @property
    def began(self) -> bool:
        """Whether any operation was sent and not cut off by the driver."""
        return self.begin_ns is not None

    @property
    def origin_ns(self) -> int:
        """Beginning of the measured window; of a task that never got there, its end."""
        return self._opens_ns if self._opens_ns is not None else self.end_ns or 0


class Sequel:
    """What a second reading adds: requests in the order of their starts, and completions over time.

    Requests that share a place in the order, as rounded starts do where there are more than 65,536, share a
    point: points are then of about as many requests as they should be.

    Args:
        survey: of the first reading.
        points: about how many the course gets at most.
    """

    def __init__(self, survey: Survey, points: int) -> None:
        self._survey = survey
        self._warm = _Order(survey.warmup_starts)
        self._order = _Order(survey.starts)
        self._each = max(1, math.ceil((self._warm.size + self._order.size) / points))
        self._warm_bins = math.ceil(self._warm.size / self._each)
        self._course = GroupedCounts()
        begin_s = ((survey.begin_ns or 0) - survey.origin_ns) / _NS_PER_S
        end_s = ((survey.end_ns or 0) - survey.origin_ns) / _NS_PER_S
        self._cell_s = 2.0 ** math.ceil(math.log2(max(end_s - begin_s, 1e-6) / (_MOST_CELLS - 2)))
        self._first = math.floor(begin_s / self._cell_s)
        self._span = (begin_s, end_s)
        self._units = np.zeros(math.floor(end_s / self._cell_s) - self._first + 1)

    def add(self, rows: Columns) -> None:
        """Take more rows of the task."""
        ok = successes(rows)
        if ok["start_ns"].size == 0:
            return
        seconds = (ok["end_ns"] - self._survey.origin_ns) / _NS_PER_S
        cells = np.floor(seconds / self._cell_s).astype(np.int64) - self._first
        self._units += np.bincount(cells, weights=ok["weight"], minlength=self._units.size)
        for part, order, shift in (
            (select(ok, ok["warmup"]), self._warm, -self._warm.size),
            (select(ok, ~ok["warmup"]), self._order, 0),
        ):
            ranks = order.ranks(part["start_ns"]) + shift
            self._course.add(ranks // self._each + self._warm_bins, part["end_ns"] - part["start_ns"])

    def course(self) -> CourseLine | None:
        """The course, after everything was added."""
        requests: list[int] = []
        quantiles: list[Floats] = []
        for _, values, counts in self._course.groups():
            requests.append(int(counts.sum()))
            quantiles.append(linear_quantiles(values, counts, _COURSE_QUANTILES))
        if not requests:
            return None
        sizes = np.array(requests)
        ranks = np.cumsum(sizes) - sizes - self._warm.size
        starts = np.where(ranks < 0, self._warm.starts(ranks + self._warm.size), self._order.starts(ranks))
        p10, p50, p90 = np.array(quantiles).T
        return CourseLine(sizes, ranks, (starts - self._survey.origin_ns) / _NS_PER_S, p10, p50, p90)

    def flow(self) -> Flow:
        """The completions, after everything was added."""
        return Flow(self._cell_s, self._first, self._units, *self._span)

    def shape(self) -> TaskShape:
        """All of it, after everything was added."""
        survey = self._survey
        return TaskShape(
            warmup=self._warm.size,
            samples=self._order.size,
            failures=survey.failures,
            origin_ns=survey.origin_ns,
            service=_distribution(survey.service),
            latency=_distribution(survey.latency),
            course=self.course(),
            flow=self.flow(),
        )


class _Order:
    """Which request is the how manyth, by the distinct starts of all of them."""

    def __init__(self, starts: ValueCounts) -> None:
        self.size = starts.size
        self._counted = starts
        self._starts, counts = starts.pairs()
        self._before = np.cumsum(counts) - counts

    def ranks(self, starts: Integers) -> Integers:
        """How many requests start before each, of those that share its rounded start none; shape (n,)."""
        return self._before[np.searchsorted(self._starts, self._counted.rounded(starts))]

    def starts(self, ranks: Integers) -> Integers:
        """The start of each rank; of one that is out of range, that of the nearest."""
        if self.size == 0:
            return np.zeros_like(ranks)
        places = np.searchsorted(self._before, ranks, side="right") - 1
        return self._starts[np.maximum(places, 0)]


def successes(rows: Columns) -> Columns:
    """The successful operations among rows, those of warm-up included."""
    return select(rows, (rows["part"] == 0) & (rows["outcome"] == Outcome.OK))


def _distribution(counted: ValueCounts) -> Distribution | None:
    if counted.size == 0:
        return None
    values, counts = counted.pairs()
    points, shares = ecdf(values, counts, _ECDF_POINTS)
    levels = linear_quantiles(values, counts, LEVELS)
    return Distribution(counted.size, points, shares, levels, quantile_curve(values, counts))


def _least(known: int | None, values: Integers) -> int:
    least = int(values.min())
    return least if known is None else min(known, least)
