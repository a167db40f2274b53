"""The samples of a run's forks as the few points that charts of them need, task by task."""

import math
from collections.abc import Iterable, Mapping

import msgspec
import numpy as np
import numpy.typing as npt

from benchctl.errors import BenchctlError
from benchctl.results.figures import Course
from benchctl.results.model import C2_LEVEL
from benchctl.results.plan import Place, Plan
from benchctl.results.reading import ForkSource, TaskWindow, Telemetry
from benchctl.results.samples import Columns, Outcome, select
from benchctl.stats.arrays import Floats, Integers, StartOrder, ValueCounts, start_counts
from benchctl.stats.metrics import places, task_at
from benchctl.stats.quantiles import (
    LEVELS,
    GroupedCounts,
    by_place,
    ecdf,
    linear_quantiles,
    quantile_curve,
)

_NS_PER_S = 1_000_000_000
_MOST_CELLS = 1024
_ECDF_POINTS = 120
_COURSE_QUANTILES = (0.1, 0.5, 0.9)


class Distribution(msgspec.Struct, frozen=True):
    """Distribution of one kind of time in one fork's task."""

    requests: int
    values_ns: Integers
    shares: Floats
    levels_ns: Floats  # quantiles at `shape.LEVELS`
    curve_ns: Floats  # quantiles at `shape.ODDS`; NaN where there were too few requests


class CourseLine(msgspec.Struct, frozen=True):
    """Service times of successful requests in the order of their starts, several a point; shapes are (n,)."""

    requests: Integers  # of each point; a point is of warm-up or of measured requests, never of both
    ranks: Integers  # of its first request: measured ones count from 0, warm-up goes up to -1
    seconds: Floats
    p10_ns: Floats
    p50_ns: Floats
    p90_ns: Floats


class Flow(msgspec.Struct, frozen=True):
    """Units completed over time, in cells of equal length; one begins where the measured window does."""

    cell_s: float  # length of a cell, seconds: a power of two
    first: int  # number of the first cell; those of the warm-up are negative
    units: Floats  # completed in each cell, warm-up included, shape (cells,)
    begin_s: float
    end_s: float


class TaskShape(msgspec.Struct, frozen=True):
    """A fork's samples of one task."""

    # `warmup`, `samples`, `failures`: operations: successful ones of warm-up, successful measured ones, and
    # measured ones that failed.
    warmup: int
    samples: int
    failures: int
    origin_ns: int
    service: Distribution | None  # distribution of service time; None without samples
    latency: Distribution | None  # of latency, from when requests were due; None for a closed loop
    course: CourseLine | None  # None when no request succeeded
    flow: Flow


class Survey:
    """The first reading: counts, clocks, distributions, and the starts that requests are ordered by.

    Requests that are `throttled` had a due time, from which latency and the measured window count.
    """

    def __init__(self, *, throttled: bool) -> None:
        self.failures = 0
        self.service, self.latency = ValueCounts(), ValueCounts()
        self.warmup_starts, self.starts = start_counts(), start_counts()
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
        """True if any operation was sent and not cut off by the driver."""
        return self.begin_ns is not None

    @property
    def origin_ns(self) -> int:
        """Beginning of the measured window; of a task that never got there, its end."""
        return self._opens_ns if self._opens_ns is not None else self.end_ns or 0


class Sequel:
    """The second reading: requests in the order of their starts, and completions over time.

    Requests that share a place in the order, as rounded starts do beyond 65,536 of them, share a point:
    points are then of roughly equal numbers of requests. The course gets about `points`.
    """

    def __init__(self, survey: Survey, points: int) -> None:
        self._survey = survey
        self._warm = StartOrder(survey.warmup_starts)
        self._order = StartOrder(survey.starts)
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
        """Return the course, after everything was added."""
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
        """Return the completions, after everything was added."""
        return Flow(self._cell_s, self._first, self._units, *self._span)

    def shape(self) -> TaskShape:
        """Return all of it, after everything was added."""
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


def successes(rows: Columns) -> Columns:
    """Return the successful operations among rows, those of warm-up included."""
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


_NS_PER_MS = 1e6
_MOST_POINTS = 150
_READ_EVERY_NS = 1_000_000_000


class Usage(msgspec.Struct, frozen=True):
    """Resource usage during one task of one fork; shapes are (n,) for readings and (m,) for pauses."""

    readings: Integers
    seconds: Floats  # when a point's last reading was made, from the beginning of the measured window
    # `node_cpu_percent`, `driver_cpu_percent`: 100 is one CPU; NaN where unknown.
    node_cpu_percent: Floats
    driver_cpu_percent: Floats
    merges: Floats  # that were running; NaN where nobody asked
    pause_counts: Integers
    pause_s: Floats  # when a mark's first pause began
    pause_ms: Floats
    pauses: int
    pauses_ms: float
    longest: str  # what the longest was, in the JVM's words; empty without pauses


def task_usage(telemetry: Telemetry, begin_ns: int, end_ns: int, origin_ns: int) -> Usage:
    """Cut one task, warm-up included, out of a fork's telemetry.

    All times are on the clock of the fork's samples; `origin_ns` is the beginning of the measured window.
    """
    times_ns = telemetry.series["t_ns"]
    # A reading is about the second before it: the first one after the end is about the task, too.
    first = int(np.searchsorted(times_ns, begin_ns, side="right"))
    stop = int(np.searchsorted(times_ns, end_ns, side="left"))
    if stop < times_ns.size and times_ns[stop] < end_ns + _READ_EVERY_NS:
        stop += 1
    group = np.arange(stop - first) // max(1, -(-(stop - first) // _MOST_POINTS))
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


def _means(values: Floats, group: Integers) -> Floats:
    """The mean of the known values of each group; NaN without any."""
    is_known = ~np.isnan(values)
    sums = np.bincount(group, weights=np.where(is_known, values, 0.0))
    counts = np.bincount(group, weights=is_known)
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


_MOST_TASK_POINTS = 400
_LEAST_POINTS = 120
# Of all courses of a page together: what it takes to load is bounded, whatever the number of forks.
_POINTS_OF_A_PAGE = 40_000
# Of the forks of one variant, which are drawn over each other: more would be noise.
_POINTS_OF_A_PANEL = 1_500


class ForkShape(msgspec.Struct, frozen=True):
    """A task of one fork."""

    label: str
    block: int
    shape: TaskShape
    course: Course | None  # the segments of its service times; None if unknown
    usage: Usage | None  # telemetry of the task; None if none was kept

    @property
    def name(self) -> str:
        """Label in charts: `es, fork 3`."""
        return fork_name(self.label, self.block)


class TaskShapes(msgspec.Struct, frozen=True):
    """A task, by variant."""

    timed: bool
    throttled: bool
    unit: str
    forks: dict[str, tuple[ForkShape, ...]]  # label -> forks with samples, in order of their blocks


class RunShapes(msgspec.Struct, frozen=True):
    """Every task of which there are samples."""

    tasks: dict[Place, TaskShapes]
    # Forks of which something is not there or cannot be read: `es, fork 3: no samples were kept`.
    absent: tuple[str, ...] = ()


def fork_name(label: str, block: int) -> str:
    """Return one fork among those of all variants."""
    return f"{label}, fork {block}"


def run_shapes(plan: Plan, sources: Iterable[ForkSource]) -> RunShapes:
    """Read all samples, fork after fork in display order, and keep only what is drawn.

    Every fork is read twice, in chunks: memory is bounded by one chunk and the tallies of one fork.
    Samples of a red-line search are of its steps, not of a task: they are not read.

    Raises:
        BenchctlError: If samples could be read once, and not again.
    """
    if plan.redline is not None:
        return RunShapes({})
    throttled = {place: task_at(plan, place).throttled for place in places(plan)}
    points = _points(plan)
    forks: dict[Place, dict[str, list[ForkShape]]] = {place: {} for place in throttled}
    units: dict[Place, str] = {}
    absent = []
    for source in sources:
        name = fork_name(source.label, source.block)
        if source.absent:
            absent.append(f"{name}: {source.absent}")
        if source.samples is None:
            continue
        try:
            surveys = _surveys(source.samples, throttled)
        except BenchctlError:
            # One damaged file of many: the others are drawn.
            absent.append(f"{name}: its samples cannot be read")
            continue
        shapes = _fork_shapes(source.samples, surveys, points)
        summaries = {(summary.schedule, summary.task): summary for summary in source.summaries}
        for place, shape in shapes.items():
            summary = summaries.get(place)
            course = None if summary is None else summary.course
            forks[place].setdefault(source.label, []).append(
                ForkShape(source.label, source.block, shape, course, _usage(source, shape))
            )
            if summary is not None:
                units.setdefault(place, summary.unit)
    return RunShapes(
        {
            place: TaskShapes(
                timed=_timed(plan, place),
                throttled=throttled[place],
                unit=units.get(place, "queries"),
                forks={label: tuple(group) for label, group in found.items()},
            )
            for place, found in forks.items()
            if found
        },
        tuple(absent),
    )


def _points(plan: Plan) -> int:
    courses = len(places(plan)) * plan.forks * len(plan.variants)
    wanted = min(_POINTS_OF_A_PAGE // max(courses, 1), _POINTS_OF_A_PANEL // max(plan.forks, 1))
    return min(max(wanted, _LEAST_POINTS), _MOST_TASK_POINTS)


def _surveys(chunks: Iterable[Columns], throttled: Mapping[Place, bool]) -> dict[Place, Survey]:
    """The first reading of one fork."""
    surveys: dict[Place, Survey] = {}
    for place, rows in by_place(chunks):
        if place in throttled:
            surveys.setdefault(place, Survey(throttled=throttled[place])).add(rows)
    return surveys


def _fork_shapes(
    chunks: Iterable[Columns],
    surveys: Mapping[Place, Survey],
    points: int,
) -> dict[Place, TaskShape]:
    """The tasks of one fork that sent anything."""
    sequels = {place: Sequel(survey, points) for place, survey in surveys.items() if survey.began}
    for place, rows in by_place(chunks):
        if place in sequels:
            sequels[place].add(rows)
    return {place: sequels[place].shape() for place in sorted(sequels)}


def _usage(source: ForkSource, shape: TaskShape) -> Usage | None:
    if source.telemetry is None:
        return None
    flow = shape.flow
    begin_ns, end_ns = (shape.origin_ns + round(second * 1e9) for second in (flow.begin_s, flow.end_s))
    return task_usage(source.telemetry, begin_ns, end_ns, shape.origin_ns)


def _timed(plan: Plan, place: Place) -> bool:
    task = task_at(plan, place)
    return task.time_period is not None or task.warmup_time_period is not None


_MOST_RATE_CELLS = 120
_LEAST_CELLS = 5
_REQUESTS_A_CELL = 5


def common_cell(shapes: Iterable[TaskShape]) -> float:
    """A cell for at least one fork, seconds: short enough to see changes, long enough for some requests."""
    return max(_cell(shape) for shape in shapes)


def _cell(shape: TaskShape) -> float:
    flow, operations = shape.flow, shape.samples + shape.warmup
    cells = min(max(operations // _REQUESTS_A_CELL, _LEAST_CELLS), _MOST_RATE_CELLS)
    wanted_s = (flow.end_s - flow.begin_s) / cells
    return max(flow.cell_s, 2.0 ** math.ceil(math.log2(max(wanted_s, flow.cell_s))))


def rates(flow: Flow, cell_s: float) -> tuple[Floats, Floats]:
    """Units a second in cells of `cell_s`, which is the flow's own times a power of two.

    A task rarely begins and ends where cells do: the first and the last one count for the time that they
    cover, and are merged with their neighbour when that is less than half a cell.

    Returns:
        The middle of each cell, seconds from the beginning of the measured window; and its rate. Shape (n,).
    """
    factor = round(cell_s / flow.cell_s)
    numbers = (np.arange(flow.units.size) + flow.first) // factor
    units = np.bincount(numbers - numbers[0], weights=flow.units)
    edges = (numbers[0] + np.arange(units.size + 1)) * cell_s
    edges[0], edges[-1] = flow.begin_s, flow.end_s
    inner = np.ones(units.size, dtype=bool)  # which cells begin something of their own
    if units.size > 1 and edges[1] - edges[0] < cell_s / 2:
        inner[1] = False
    if units.size > 1 and edges[-1] - edges[-2] < cell_s / 2:
        inner[-1] = False
    firsts = np.flatnonzero(inner)
    edges = np.append(edges[firsts], edges[-1])
    lengths = np.diff(edges)
    sums = np.add.reduceat(units, firsts)
    per_s = np.divide(sums, lengths, out=np.zeros(sums.shape), where=lengths > 0)
    return (edges[:-1] + edges[1:]) / 2, per_s


_MOST_JIT_POINTS = 300
_CELLS = 60


class JitCourse(msgspec.Struct, frozen=True):
    """Chart data of one fork's task; seconds count from the beginning of its measured part."""

    label: str
    block: int
    seconds: Floats  # in the middle of each point's requests, shape (n,)
    service_ns: Floats  # the median of each point's service times, shape (n,)
    requests: int
    edges: Floats  # of the cells in which events are counted, seconds, shape (m + 1,)
    # `c1`, `c2`, `deoptimised`: events of each cell, shape (m,).
    c1: Integers
    c2: Integers
    deoptimised: Integers


def jit_course(label: str, block: int, requests: Columns, events: Columns, window: TaskWindow) -> JitCourse:
    """Put requests and events on one clock.

    `requests` are samples of the task, warm-up included, with `start_ns`, `end_ns` and what tells
    successes; `events` are columns of `results.evidence.JIT_DTYPES` on the clock of the samples.
    """
    ok = successes(requests)
    order = np.argsort(ok["start_ns"], kind="stable")
    starts = (ok["start_ns"][order] - window.measured_ns) / _NS_PER_S
    service_ns = (ok["end_ns"] - ok["start_ns"])[order].astype(np.float64)
    each = max(1, -(-starts.size // _MOST_JIT_POINTS))
    firsts = range(0, starts.size, each)
    edges = (
        np.linspace(window.begin_ns, max(window.end_ns, window.begin_ns + 1), _CELLS + 1) - window.measured_ns
    ) / _NS_PER_S
    what, level = events["what"], events["level"]
    at_s = (events["t_ns"] - window.measured_ns) / _NS_PER_S

    def counted(chosen: npt.NDArray[np.bool_]) -> Integers:
        return np.histogram(at_s[chosen], edges)[0].astype(np.int64)

    return JitCourse(
        label=label,
        block=block,
        seconds=np.array([np.median(starts[first : first + each]) for first in firsts]),
        service_ns=np.array([np.median(service_ns[first : first + each]) for first in firsts]),
        requests=each,
        edges=edges,
        c1=counted((what == "compiled") & (level >= 1) & (level < C2_LEVEL)),
        c2=counted((what == "compiled") & (level == C2_LEVEL)),
        deoptimised=counted(what == "deoptimised"),
    )
