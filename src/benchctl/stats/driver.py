"""The load of a task: offered by the driver, served by the cluster, or limited by either."""

from collections.abc import Mapping, Sequence
from statistics import median

import msgspec

from benchctl.results.figures import DriverFigures, TaskSummary
from benchctl.results.metrics import METRIC_KINDS
from benchctl.results.model import ForkRecord
from benchctl.results.plan import Place, Plan
from benchctl.stats.analysis import DriverRow, LoadState
from benchctl.stats.caveat import Caveat, plain
from benchctl.stats.metrics import DEFAULT_METRICS, Metric, collect, places, task_at
from benchctl.track.model import Task

_NS_PER_S = 1e9
_NS_PER_MS = 1e6
_NS_PER_US = 1e3

# The cluster: a task is saturated when less than this came of the rate, and requests waited more than that.
_LEAST_SHARE_OF_TARGET = 0.99
_MOST_WAIT_SHARE = 0.01
_MOST_WAIT_NS = 1e6

# The driver. A latency to which it adds a tenth of a typical answer is not a ground for a verdict. Under a
# millisecond the host's own scheduler cannot be told from the driver.
_MOST_LAG_SHARE = 0.1
_MOST_LAG_NS = 1e6
_LEAST_SHARE_OF_POSSIBLE = 0.98
# Pauses of clients that are alike on both sides shrink a difference; unlike ones make one. Of the margin:
_MOST_PAUSES_APART = 0.2
# Threads of one Python process share one core between them: near that they wait for each other.
_MOST_CPU_SHARE = 0.8

# Under so many requests the p99 is the maximum, and one hiccup of the host a large share of the time: there
# only what is typical counts. CPU time of a shorter window is mostly that of starting and ending.
_REQUESTS_FOR_TAIL = 100
_LEAST_CPU_WINDOW_S = 0.1


class DriverLimit(msgspec.Struct, frozen=True):
    """A way in which the driver, not the cluster, decided on figures."""

    text: str  # what it did, as a clause whose subject is benchctl
    figures: frozenset[str]


class LoadCheck(msgspec.Struct, frozen=True):
    """Load delivered for one task and variant."""

    # The rate that the cluster kept up with, where that was not the rate asked for.
    saturated_per_s: float | None
    limits: tuple[DriverLimit, ...]  # what the driver did to the figures; empty is how it should be
    advice: str

    @property
    def states(self) -> tuple[LoadState, ...]:
        """Description for tables; empty if the load was delivered."""
        saturated: tuple[LoadState, ...] = ("saturated",) if self.saturated_per_s is not None else ()
        return (*saturated, "driver-limited") if self.limits else saturated

    @property
    def withheld(self) -> tuple[str, ...]:
        """Titles of the metrics that the driver's limits leave without a verdict."""
        return tuple(metric.title for metric in DEFAULT_METRICS if self.withholds(metric.kind.name))

    def withholds(self, figure: str) -> bool:
        """Return whether the driver leaves a figure without a verdict; a saturated task gets none in any."""
        return any(figure in limit.figures for limit in self.limits)


def check_load(task: Task, summaries: Sequence[TaskSummary]) -> LoadCheck:
    """Judge the load of a task of one variant.

    Each figure is the median over forks, so that a single disturbed fork decides nothing. Where
    another tool measured, nothing is known of its driver, which then limits nothing.
    """
    measured = [(summary, summary.driver) for summary in summaries if summary.driver is not None]
    # Of a log's shapes, all together: alone, each waits for clients that are at others.
    limits = _shortfall(measured) if task.throttled and not task.mixed else []
    hosts = dict.fromkeys(host.name for summary in summaries for host in summary.hosts)
    # One host that lags spoils the figures of all.
    limits += [
        DriverLimit(f"{limit.text} (host {name})", limit.figures)
        for name in hosts
        for limit in _own_limits(task, _of_host(summaries, name))
    ] or _own_limits(task, measured)
    most_hosts = max((len(summary.hosts) for summary in summaries), default=0) or 1
    return LoadCheck(
        saturated_per_s=_saturated_rate(task.rate_per_s, summaries),
        limits=tuple(limits),
        advice=_advice(task, [driver for _, driver in measured], most_hosts),
    )


class Pauses(msgspec.Struct, frozen=True):
    """The time of clients between a response and their next request, on both sides of a comparison."""

    share: float = 0.0  # of all their time, of the side where it is more; 0 where figures are without it
    doubt: Caveat | None = None  # why the difference may be that of the pauses


def compare_pauses(metric: Metric, sides: Mapping[str, Sequence[TaskSummary]]) -> Pauses:
    """Compare the pauses of clients in closed loops, by label; each the median over forks.

    With a service time S and a pause g, the throughput is clients / (S + g): where g is the same, the
    logarithm of a ratio is 1 - g / (S + g) of that of S, and so is its error. One client's throughput is
    without its pauses.
    """
    if metric.kind.loop != "closed":
        return Pauses()
    seen = {
        label: [
            (summary.mean_ns / (1 - share), share)
            for summary in own
            if (share := _pause_share(summary)) is not None and summary.mean_ns
        ]
        for label, own in sides.items()
    }
    # Of a request and the pause before the next, which throughput has together; means of a fork.
    pause_ns = {label: median(ns * share for ns, share in cycles) for label, cycles in seen.items() if cycles}
    if not pause_ns:
        return Pauses()
    share = max(median(share for _, share in cycles) for cycles in seen.values() if cycles)
    cycle_ns = min(median(ns for ns, _ in cycles) for cycles in seen.values() if cycles)
    if max(pause_ns.values()) - min(pause_ns.values()) <= _MOST_PAUSES_APART * metric.margin * cycle_ns:
        return Pauses(share)
    listed = " and ".join(f"{pause / _NS_PER_US:,.0f} us on {label}" for label, pause in pause_ns.items())
    text = (
        f"driver-limited: between a response and the next request, benchctl took {listed}: no verdict on "
        f"{metric.title}; compare its service times, or use fewer clients"
    )
    return Pauses(share, Caveat("driver-limited", text))


def _pause_share(summary: TaskSummary) -> float | None:
    """Return the share of pauses in a client's time, as throughput has them; None where that is unknown."""
    driver = summary.driver
    if driver is None or driver.think_share is None:
        return None
    return driver.think_share if driver.clients > 1 else 0.0


def driver_rows(
    done: Mapping[str, Sequence[ForkRecord]], plan: Plan
) -> tuple[tuple[DriverRow, ...], tuple[DriverRow, ...]]:
    """Return what the driver did, task by task and variant by variant, and what each of several hosts did."""
    whole, by_host = [], []
    for place in places(plan):
        task = task_at(plan, place)
        for label, forks in collect(done, place, task).items():
            summaries = [summary for _, summary in forks]
            if drivers := [summary.driver for summary in summaries if summary.driver is not None]:
                load = check_load(task, summaries).states
                whole.append(msgspec.structs.replace(_row(place, task, label, drivers), load=load))
            for name in dict.fromkeys(host.name for summary in summaries for host in summary.hosts):
                hosts = [host for summary in summaries for host in summary.hosts if host.name == name]
                by_host.append(
                    msgspec.structs.replace(
                        _row(place, task, label, [host.driver for host in hosts]),
                        host=name,
                        clients=max(host.clients for host in hosts),
                        start_late_ns=known_median([host.start_late_ns for host in hosts]),
                        clock_error_ns=max(host.clock_error_ns for host in hosts),
                    )
                )
    return tuple(whole), tuple(by_host)


def _row(place: Place, task: Task, label: str, drivers: Sequence[DriverFigures]) -> DriverRow:
    return DriverRow(
        schedule=place[0],
        task=place[1],
        label=task.label,
        variant=label,
        target_per_s=task.rate_per_s,
        lag_max_ns=max((one.lag_max_ns for one in drivers if one.lag_max_ns is not None), default=None),
        workers=max(driver.workers for driver in drivers),
        offered_per_s=known_median([driver.offered_per_s for driver in drivers]),
        lag_p50_ns=known_median([driver.lag_p50_ns for driver in drivers]),
        lag_p99_ns=known_median([driver.lag_p99_ns for driver in drivers]),
        cpu_share=known_median([driver.cpu_share for driver in drivers]),
        gap_s=known_median([driver.gap_s for driver in drivers]),
    )


_Known = Sequence[tuple[TaskSummary, DriverFigures]]


def _of_host(summaries: Sequence[TaskSummary], name: str) -> _Known:
    return [(summary, host.driver) for summary in summaries for host in summary.hosts if host.name == name]


def known_median(values: Sequence[float | None]) -> float | None:
    """Of those that are known; None without any."""
    numbers = [value for value in values if value is not None]
    return float(median(numbers)) if numbers else None


def _typical_ns(summaries: Sequence[TaskSummary]) -> float | None:
    return known_median(
        [summary.service_time.p50 for summary in summaries if summary.service_time is not None]
    )


def _limit(text: str, *loops: str) -> list[DriverLimit]:
    figures = (kind for kind in METRIC_KINDS if kind.loop in loops and not kind.quality)
    return [DriverLimit(text, frozenset(kind.name for kind in figures))]


def _own_limits(task: Task, known: _Known) -> list[DriverLimit]:
    """Return what a driver did to what it measured itself."""
    return (_lateness(known) if task.throttled else []) + _processor(task, known)


def _shortfall(known: _Known) -> list[DriverLimit]:
    """Less was offered than schedule and answers allowed: every figure is of another load."""
    kept = known_median([_share_of_possible(driver) for _, driver in known])
    if kept is None or kept >= _LEAST_SHARE_OF_POSSIBLE:
        return []
    offered = known_median([driver.offered_per_s for _, driver in known]) or 0.0
    text = f"sent {plain(offered)}/s, {100 * (1 - kept):.0f}% less than was possible"
    return _limit(text, "any", "open", "closed")


def _share_of_possible(driver: DriverFigures) -> float | None:
    if not driver.offered_per_s or not driver.possible_per_s:
        return None
    lost_ns = driver.requests * (1 / driver.offered_per_s - 1 / driver.possible_per_s) * _NS_PER_S
    return driver.offered_per_s / driver.possible_per_s if lost_ns > _MOST_LAG_NS else 1.0


def _lateness(known: _Known) -> list[DriverLimit]:
    """Latency counts from when a request was due, the driver's own lateness included."""
    lag_ns = known_median(
        [one.lag_p99_ns if one.requests >= _REQUESTS_FOR_TAIL else one.lag_p50_ns for _, one in known]
    )
    typical_ns = _typical_ns([summary for summary, _ in known])
    if lag_ns is None or typical_ns is None or lag_ns <= max(_MOST_LAG_NS, _MOST_LAG_SHARE * typical_ns):
        return []
    many = median(driver.requests for _, driver in known) >= _REQUESTS_FOR_TAIL
    share = "1%" if many else "half"
    return _limit(f"sent {share} of its requests at least {plain(lag_ns / _NS_PER_MS)} ms late", "open")


def _processor(task: Task, known: _Known) -> list[DriverLimit]:
    """A driver short of CPU delays whatever it measures, and takes CPUs from the node."""
    drivers = [driver for _, driver in known]
    share = known_median([driver.cpu_share for driver in drivers if _long_enough(driver)])
    if share is None or share <= _MOST_CPU_SHARE:
        return []
    process = "its process" if max(driver.workers for driver in drivers) == 1 else "each of its processes"
    text = f"kept {process} busy for {100 * share:.0f}% of the time"
    return _limit(text, "any", "closed", *(["open"] if task.throttled else []))


def _long_enough(driver: DriverFigures) -> bool:
    return bool(driver.offered_per_s) and driver.requests / (driver.offered_per_s or 1) >= _LEAST_CPU_WINDOW_S


def _advice(task: Task, drivers: Sequence[DriverFigures], hosts: int) -> str:
    """Return how to make the driver's part smaller; further processes need clients to work in them."""
    workers = max((driver.workers for driver in drivers), default=1)
    if not task.throttled and task.clients == 1:
        return "use an operation that takes longer"
    ways = ["a lower rate" if task.throttled else "fewer clients"]
    if task.clients > workers:
        ways.append(f"--workers {2 * workers // hosts}")
    return f"use {', '.join(ways)} or a machine with idle CPUs"


def _saturated_rate(target_per_s: float | None, summaries: Sequence[TaskSummary]) -> float | None:
    """The rate that was reached if requests queued; None if the target was.

    A short task misses its rate just because its last request takes time, so requests must have waited,
    too.
    """
    if target_per_s is None:
        return None
    share = known_median([_share_kept_up(summary, target_per_s) for summary in summaries])
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
    latency_ns, service_ns = (
        None if times is None else times.p90 for times in (summary.latency, summary.service_time)
    )
    if latency_ns is None or service_ns is None:
        return False
    return latency_ns - service_ns > max(_MOST_WAIT_NS, _MOST_WAIT_SHARE * service_ns)
