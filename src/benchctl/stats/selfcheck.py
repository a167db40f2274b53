"""Whether a task's load was what was asked for: served by the cluster, and offered by the driver."""

from collections.abc import Mapping, Sequence
from statistics import median

import msgspec

from benchctl.results.figures import Calibration, DriverFigures, TaskSummary
from benchctl.results.model import ForkRecord
from benchctl.results.plan import Plan
from benchctl.stats.analysis import DriverRow, LoadState
from benchctl.stats.metrics import LATENCY, METRICS, SERVICE_TIME, THROUGHPUT, MetricKey
from benchctl.stats.values import collect, places, task_at
from benchctl.track.model import Task

_NS_PER_S = 1e9
_NS_PER_MS = 1e6

# The cluster: a task is saturated when less than this came of the rate, and requests waited more than that.
_LEAST_SHARE_OF_TARGET = 0.99
_MOST_WAIT_SHARE = 0.01
_MOST_WAIT_NS = 1e6

# The driver. A throughput that it understates by clearly more than the practical margin (3 %) is no ground
# for a verdict; nor is a latency to which it adds a tenth of a typical answer. Under a millisecond the host's
# own scheduler cannot be told from the driver.
MOST_THINK_SHARE = 0.05
MOST_LAG_SHARE = 0.1
MOST_LAG_NS = 1e6
LEAST_SHARE_OF_POSSIBLE = 0.98
# Threads of one Python process share one core between them: near that they wait for each other.
MOST_CPU_SHARE = 0.8

# Under so many requests the p99 is the maximum, and one hiccup of the host a large share of the time: there
# only what is typical counts. CPU time of a shorter window is mostly that of starting and ending.
_REQUESTS_FOR_TAIL = 100
_LEAST_CPU_WINDOW_S = 0.1

# A service time of at least this many times the driver's own error leaves a tenth of it in doubt.
FLOOR_FACTOR = 10


class DriverLimit(msgspec.Struct, frozen=True):
    """One way in which the driver, not the cluster, decided on figures.

    Attributes:
        text: what it did, as a clause whose subject is benchctl.
        metrics: the figures concerned.
    """

    text: str
    metrics: frozenset[MetricKey]


class LoadCheck(msgspec.Struct, frozen=True):
    """What became of the load of one task and variant.

    Attributes:
        saturated_per_s: the rate that the cluster kept up with, where that was not the rate asked for.
        limits: what the driver did to the figures; empty is how it should be.
        advice: what would help against the limits.
    """

    saturated_per_s: float | None
    limits: tuple[DriverLimit, ...]
    advice: str

    @property
    def states(self) -> tuple[LoadState, ...]:
        """The same in words for tables; empty when all is well."""
        saturated: tuple[LoadState, ...] = ("saturated",) if self.saturated_per_s is not None else ()
        return (*saturated, "driver-limited") if self.limits else saturated

    @property
    def withheld(self) -> tuple[str, ...]:
        """Titles of the metrics that the driver's limits leave without a verdict."""
        concerned = frozenset[MetricKey]().union(*(limit.metrics for limit in self.limits))
        return tuple(metric.title for metric in METRICS if metric.key in concerned)

    def withholds(self, metric: MetricKey) -> bool:
        """Whether the driver leaves this metric without a verdict; a saturated task gets none in any."""
        return any(metric in limit.metrics for limit in self.limits)


def check_load(task: Task, summaries: Sequence[TaskSummary]) -> LoadCheck:
    """Judge the load of a task.

    Each figure is the median over forks, so that a single disturbed fork decides nothing. What the driver did
    is unknown in records from before it was kept, and then limits nothing.

    Args:
        task: the task.
        summaries: of one variant, one a fork.
    """
    known = [(summary, summary.driver) for summary in summaries if summary.driver is not None]
    limits = []
    if known and not task.throttled:
        limits += _thinking(known)
    elif known:
        limits += _shortfall(known)
        limits += _lateness(known)
    limits += _processor(task, [driver for _, driver in known])
    return LoadCheck(
        saturated_per_s=_saturated_rate(task.rate_per_s, summaries),
        limits=tuple(limits),
        advice=_advice(task, max((driver.workers for _, driver in known), default=1), limits),
    )


def driver_rows(done: Mapping[str, Sequence[ForkRecord]], plan: Plan) -> tuple[DriverRow, ...]:
    """What the driver did, task by task and variant by variant; without those of which it is not known.

    Args:
        done: label -> finished forks.
        plan: of the run.
    """
    return tuple(
        _driver_row(place, task_at(plan, place), label, [summary for _, summary in forks])
        for place in places(plan)
        for label, forks in collect(done, place, task_at(plan, place)).items()
        if any(summary.driver is not None for _, summary in forks)
    )


def near_floor(summaries: Sequence[TaskSummary], calibration: Calibration | None) -> float | None:
    """The typical service time in nanoseconds where the driver's own error is a notable part of it.

    Args:
        summaries: of one variant, one a fork.
        calibration: of the run.

    Returns:
        The median over forks of their medians; None where all is well, or nothing is known.
    """
    middles = [summary.service_time.p50 for summary in summaries if summary.service_time is not None]
    if calibration is None or not middles:
        return None
    typical_ns = median(middles)
    return typical_ns if typical_ns < FLOOR_FACTOR * calibration.error_p50_ns else None


_Known = Sequence[tuple[TaskSummary, DriverFigures]]


def _thinking(known: _Known) -> list[DriverLimit]:
    """A closed loop's throughput lacks the time that clients spend between an answer and the next request."""
    share = _median([_think_share(summary, driver) for summary, driver in known])
    if share is None or share <= MOST_THINK_SHARE:
        return []
    text = f"let {100 * share:.0f} % of its clients' time pass between an answer and the next request"
    return [DriverLimit(text, frozenset({THROUGHPUT.key}))]


def _think_share(summary: TaskSummary, driver: DriverFigures) -> float | None:
    if driver.requests >= _REQUESTS_FOR_TAIL:
        return driver.think_share
    if driver.lag_p50_ns is None or summary.service_time is None:
        return None
    return driver.lag_p50_ns / (driver.lag_p50_ns + summary.service_time.p50)


def _shortfall(known: _Known) -> list[DriverLimit]:
    """Less was offered than schedule and answers allowed: every figure is one of another load."""
    kept = _median([_share_of_possible(driver) for _, driver in known])
    if kept is None or kept >= LEAST_SHARE_OF_POSSIBLE:
        return []
    offered = _median([driver.offered_per_s for _, driver in known]) or 0.0
    text = f"sent {offered:.3g}/s, {100 * (1 - kept):.0f} % less than was possible"
    return [DriverLimit(text, frozenset(metric.key for metric in METRICS))]


def _share_of_possible(driver: DriverFigures) -> float | None:
    if not driver.offered_per_s or not driver.possible_per_s:
        return None
    lost_ns = driver.requests * (1 / driver.offered_per_s - 1 / driver.possible_per_s) * _NS_PER_S
    return driver.offered_per_s / driver.possible_per_s if lost_ns > MOST_LAG_NS else 1.0


def _lateness(known: _Known) -> list[DriverLimit]:
    """Latency counts from when a request was due, the driver's own lateness included."""
    lag_ns = _median([_telling_lag_ns(driver) for _, driver in known])
    typical_ns = _median([one.service_time.p50 for one, _ in known if one.service_time is not None])
    if lag_ns is None or typical_ns is None or lag_ns <= max(MOST_LAG_NS, MOST_LAG_SHARE * typical_ns):
        return []
    many = median(driver.requests for _, driver in known) >= _REQUESTS_FOR_TAIL
    share = "1 %" if many else "half"
    text = f"sent {share} of its requests at least {lag_ns / _NS_PER_MS:.3g} ms late"
    return [DriverLimit(text, frozenset({LATENCY.key}))]


def _telling_lag_ns(driver: DriverFigures) -> float | None:
    return driver.lag_p99_ns if driver.requests >= _REQUESTS_FOR_TAIL else driver.lag_p50_ns


def _processor(task: Task, drivers: Sequence[DriverFigures]) -> list[DriverLimit]:
    """A driver at the end of its strength delays whatever it measures, and takes CPUs from the node."""
    share = _median([driver.cpu_share for driver in drivers if _long_enough(driver)])
    if share is None or share <= MOST_CPU_SHARE:
        return []
    process = "its process" if max(driver.workers for driver in drivers) == 1 else "each of its processes"
    metrics = {THROUGHPUT.key, SERVICE_TIME.key} | ({LATENCY.key} if task.throttled else set())
    return [DriverLimit(f"kept {process} busy for {100 * share:.0f} % of the time", frozenset(metrics))]


def _long_enough(driver: DriverFigures) -> bool:
    return bool(driver.offered_per_s) and driver.requests / (driver.offered_per_s or 1) >= _LEAST_CPU_WINDOW_S


def _advice(task: Task, workers: int, limits: Sequence[DriverLimit]) -> str:
    """What makes the driver's part smaller; further processes need clients to work in them."""
    if not task.throttled and task.clients == 1:
        longer = "take an operation that lasts longer"
        spared = not any(SERVICE_TIME.key in limit.metrics for limit in limits)
        return f"compare its service times, or {longer}" if spared else longer
    ways = ["a lower rate" if task.throttled else "fewer clients"]
    if task.clients > workers:
        ways.append(f"--workers {2 * workers}")
    return f"take {', '.join(ways)} or a machine with idle CPUs"


def _saturated_rate(target_per_s: float | None, summaries: Sequence[TaskSummary]) -> float | None:
    """The rate that came of the target where requests queued; None where it was served.

    A short task misses its rate just because its last request takes time, so requests must have waited, too.
    """
    if target_per_s is None:
        return None
    share = _median([_share_kept_up(summary, target_per_s) for summary in summaries])
    if share is None or share >= _LEAST_SHARE_OF_TARGET or not any(map(_waited, summaries)):
        return None
    return share * target_per_s


def _share_kept_up(summary: TaskSummary, target_per_s: float) -> float | None:
    """Of the requests that were due: throughput may count documents, and leaves out what failed."""
    if summary.throughput_per_s is None:
        return None
    driver = summary.driver
    if driver is not None and driver.possible_per_s is not None and driver.due_per_s:
        return driver.possible_per_s / driver.due_per_s
    return summary.throughput_per_s / target_per_s


def _waited(summary: TaskSummary) -> bool:
    if summary.latency is None or summary.service_time is None:
        return False
    wait_ns = summary.latency.p90 - summary.service_time.p90
    return wait_ns > max(_MOST_WAIT_NS, _MOST_WAIT_SHARE * summary.service_time.p90)


def _driver_row(
    place: tuple[int, int], task: Task, label: str, summaries: Sequence[TaskSummary]
) -> DriverRow:
    drivers = [summary.driver for summary in summaries if summary.driver is not None]
    return DriverRow(
        schedule=place[0],
        task=place[1],
        label=task.label,
        variant=label,
        target_per_s=task.rate_per_s,
        offered_per_s=_median([driver.offered_per_s for driver in drivers]),
        possible_per_s=_median([driver.possible_per_s for driver in drivers]),
        lag_p50_ns=_median([driver.lag_p50_ns for driver in drivers]),
        lag_p99_ns=_median([driver.lag_p99_ns for driver in drivers]),
        lag_max_ns=max((one.lag_max_ns for one in drivers if one.lag_max_ns is not None), default=None),
        think_share=_median([driver.think_share for driver in drivers]),
        cpu_share=_median([driver.cpu_share for driver in drivers]),
        gap_s=_median([driver.gap_s for driver in drivers]),
        workers=max(driver.workers for driver in drivers),
        load=check_load(task, summaries).states,
    )


def _median(values: Sequence[float | None]) -> float | None:
    """Of those that are known; None without any."""
    known = [value for value in values if value is not None]
    return float(median(known)) if known else None
