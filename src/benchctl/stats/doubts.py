"""What weakens a comparison, found in the forks themselves, and in how their load was made."""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean, median, stdev
from types import MappingProxyType

import msgspec

from benchctl.results.figures import (
    DOCUMENTS,
    FIGURES,
    Calibration,
    DriverFigures,
    HostFigures,
    Quantiles,
    TaskSummary,
)
from benchctl.results.model import AnswerCheck, ForkRecord, IndexFacts, stray_boots
from benchctl.results.plan import Plan
from benchctl.stats import caveat
from benchctl.stats.analysis import DriverRow, HostRow, LoadState, Row
from benchctl.stats.caveat import Caveat
from benchctl.stats.compare import forks_by_build, several_builds
from benchctl.stats.disturbed import Disturbance, busy_host, stalls
from benchctl.stats.metrics import (
    METRICS,
    REDLINE,
    ForkSummaries,
    Metric,
    collect,
    open_loop,
    places,
    task_at,
)
from benchctl.stats.redline import MOST_THINK_SHARE
from benchctl.stats.scale import rounded_ratio
from benchctl.stats.steady import Steadiness, advice
from benchctl.track.model import Task

_NS_PER_S = 1e9
_NS_PER_MS = 1e6

# The cluster: a task is saturated when less than this came of the rate, and requests waited more than that.
_LEAST_SHARE_OF_TARGET = 0.99
_MOST_WAIT_SHARE = 0.01
_MOST_WAIT_NS = 1e6

# The driver. A throughput that it understates by clearly more than the practical margin (3 %) is not a ground
# for a verdict; nor is a latency to which it adds a tenth of a typical answer. Under a millisecond the host's
# own scheduler cannot be told from the driver.
MOST_LAG_SHARE = 0.1
MOST_LAG_NS = 1e6
LEAST_SHARE_OF_POSSIBLE = 0.98
# Threads of one Python process share one core between them: near that they wait for each other.
MOST_CPU_SHARE = 0.8

# Under so many requests the p99 is the maximum, and one hiccup of the host a large share of the time: there
# only what is typical counts. CPU time of a shorter window is mostly that of starting and ending.
_REQUESTS_FOR_TAIL = 100
_LEAST_CPU_WINDOW_S = 0.1

# Engines give whole milliseconds of a search; not all of them count those of a bulk request exactly.
_SEARCHES = "queries"
_TOOK_ERROR_NS = 2e6

# A node that counts fewer of its searches has not answered all of them.
_LEAST_SHARE_COUNTED = 0.99

# Of an index in the page cache: what counts as emptied, and what its node's own start put there.
_EMPTIED_SHARE = 0.5
_NOTABLE_SHARE = 0.1

# A service time of at least this many times the driver's own error leaves a tenth of it in doubt.
FLOOR_FACTOR = 10


class DriverLimit(msgspec.Struct, frozen=True):
    """A way in which the driver, not the cluster, decided on figures."""

    text: str  # what it did, as a clause whose subject is benchctl
    figures: frozenset[str]


class LoadCheck(msgspec.Struct, frozen=True):
    """What became of the load of one task and variant."""

    # The rate that the cluster kept up with, where that was not the rate asked for.
    saturated_per_s: float | None
    limits: tuple[DriverLimit, ...]  # what the driver did to the figures; empty is how it should be
    advice: str

    @property
    def states(self) -> tuple[LoadState, ...]:
        """The same in words for tables; empty when all is well."""
        saturated: tuple[LoadState, ...] = ("saturated",) if self.saturated_per_s is not None else ()
        return (*saturated, "driver-limited") if self.limits else saturated

    @property
    def withheld(self) -> tuple[str, ...]:
        """Titles of the metrics that the driver's limits leave without a verdict."""
        return tuple(metric.title for metric in METRICS if self.withholds(metric.figure.name))

    def withholds(self, figure: str) -> bool:
        """Return whether the driver leaves a figure without a verdict; a saturated task gets none in any."""
        return any(figure in limit.figures for limit in self.limits)


def check_load(task: Task, summaries: Sequence[TaskSummary]) -> LoadCheck:
    """Judge the load of a task of one variant.

    Each figure is the median over forks, so that a single disturbed fork decides nothing. Where
    another tool measured, nothing is known of its driver, which then limits nothing.
    """
    known = [(summary, summary.driver) for summary in summaries if summary.driver is not None]
    limits = _shortfall(known) if known and task.throttled else []
    limits += _limits_by_host(task, summaries) or _own_limits(task, known)
    return LoadCheck(
        saturated_per_s=_saturated_rate(task.rate_per_s, summaries),
        limits=tuple(limits),
        advice=_advice(task, [driver for _, driver in known], limits, hosts=_most_hosts(summaries)),
    )


def driver_rows(done: Mapping[str, Sequence[ForkRecord]], plan: Plan) -> tuple[DriverRow, ...]:
    """Return what the driver did, task by task and variant by variant, if known."""
    return tuple(
        _driver_row(place, task_at(plan, place), label, [summary for _, summary in forks])
        for place in places(plan)
        for label, forks in collect(done, place, task_at(plan, place)).items()
        if any(summary.driver is not None for _, summary in forks)
    )


def near_floor(summaries: Sequence[TaskSummary], calibration: Calibration | None) -> float | None:
    """Return the typical service time, ns, if the driver's own error is a notable part of it; else None.

    It is the median over one variant's forks of their medians.
    """
    typical_ns = _median([one.service_time.p50 for one in summaries if one.service_time is not None])
    if calibration is None or typical_ns is None:
        return None
    return typical_ns if typical_ns < FLOOR_FACTOR * calibration.error_p50_ns else None


_Known = Sequence[tuple[TaskSummary, DriverFigures]]


def _of_loops(*loops: str) -> frozenset[str]:
    return frozenset(figure.name for figure in FIGURES if figure.loop in loops)


def _own_limits(task: Task, known: _Known) -> list[DriverLimit]:
    """Return what a driver did to what it measured itself."""
    found = []
    if known:
        found += _lateness(known) if task.throttled else _thinking(known)
    return found + _processor(task, [driver for _, driver in known])


def _limits_by_host(task: Task, summaries: Sequence[TaskSummary]) -> list[DriverLimit]:
    """The same of each host that has such limits: one that lags spoils the figures of all."""
    found = []
    for name in dict.fromkeys(one.name for summary in summaries for one in summary.hosts):
        known = [(summary, one.driver) for summary in summaries for one in summary.hosts if one.name == name]
        found += [
            DriverLimit(f"{limit.text} (host {name})", limit.figures) for limit in _own_limits(task, known)
        ]
    return found


def host_rows(done: Mapping[str, Sequence[ForkRecord]], plan: Plan) -> tuple[HostRow, ...]:
    """Return what each host that load came from did, task by task and variant by variant."""
    return tuple(
        _host_row(place, task_at(plan, place), label, name, theirs)
        for place in places(plan)
        for label, forks in collect(done, place, task_at(plan, place)).items()
        for name in dict.fromkeys(one.name for _, summary in forks for one in summary.hosts)
        for theirs in ([one for _, summary in forks for one in summary.hosts if one.name == name],)
    )


def _host_row(
    place: tuple[int, int], task: Task, label: str, name: str, forks: Sequence[HostFigures]
) -> HostRow:
    drivers = [one.driver for one in forks]
    return HostRow(
        schedule=place[0],
        task=place[1],
        label=task.label,
        variant=label,
        host=name,
        clients=max(one.clients for one in forks),
        start_late_ns=_median([one.start_late_ns for one in forks]),
        clock_error_ns=max(one.clock_error_ns for one in forks),
        offered_per_s=_median([driver.offered_per_s for driver in drivers]),
        lag_p50_ns=_median([driver.lag_p50_ns for driver in drivers]),
        lag_p99_ns=_median([driver.lag_p99_ns for driver in drivers]),
        lag_max_ns=max((one.lag_max_ns for one in drivers if one.lag_max_ns is not None), default=None),
        cpu_share=_median([driver.cpu_share for driver in drivers]),
    )


def _thinking(known: _Known) -> list[DriverLimit]:
    """A closed loop's throughput lacks the time that clients spend between an answer and the next request."""
    share = _median([_think_share(summary, driver) for summary, driver in known])
    if share is None or share <= MOST_THINK_SHARE:
        return []
    text = f"let {100 * share:.0f} % of its clients' time pass between an answer and the next request"
    return [DriverLimit(text, _of_loops("closed"))]


def _think_share(summary: TaskSummary, driver: DriverFigures) -> float | None:
    if driver.requests >= _REQUESTS_FOR_TAIL:
        return driver.think_share
    typical_ns = None if summary.service_time is None else summary.service_time.p50
    if driver.lag_p50_ns is None or typical_ns is None:
        return None
    return driver.lag_p50_ns / (driver.lag_p50_ns + typical_ns)


def _shortfall(known: _Known) -> list[DriverLimit]:
    """Less was offered than schedule and answers allowed: every figure is of another load."""
    kept = _median([_share_of_possible(driver) for _, driver in known])
    if kept is None or kept >= LEAST_SHARE_OF_POSSIBLE:
        return []
    offered = _median([driver.offered_per_s for _, driver in known]) or 0.0
    text = f"sent {offered:.3g}/s, {100 * (1 - kept):.0f} % less than was possible"
    return [DriverLimit(text, _of_loops("any", "open", "closed"))]


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
    return [DriverLimit(text, _of_loops("open"))]


def _telling_lag_ns(driver: DriverFigures) -> float | None:
    return driver.lag_p99_ns if driver.requests >= _REQUESTS_FOR_TAIL else driver.lag_p50_ns


def _processor(task: Task, drivers: Sequence[DriverFigures]) -> list[DriverLimit]:
    """A driver short of CPU delays whatever it measures, and takes CPUs from the node."""
    share = _median([driver.cpu_share for driver in drivers if _long_enough(driver)])
    if share is None or share <= MOST_CPU_SHARE:
        return []
    process = "its process" if max(driver.workers for driver in drivers) == 1 else "each of its processes"
    spoiled = _of_loops("any", "closed", *(["open"] if task.throttled else []))
    return [DriverLimit(f"kept {process} busy for {100 * share:.0f} % of the time", spoiled)]


def _long_enough(driver: DriverFigures) -> bool:
    return bool(driver.offered_per_s) and driver.requests / (driver.offered_per_s or 1) >= _LEAST_CPU_WINDOW_S


def _most_hosts(summaries: Sequence[TaskSummary]) -> int:
    return max((len(summary.hosts) for summary in summaries), default=0) or 1


def _advice(task: Task, drivers: Sequence[DriverFigures], limits: Sequence[DriverLimit], hosts: int) -> str:
    """Return how to make the driver's part smaller; further processes need clients to work in them."""
    workers = max((driver.workers for driver in drivers), default=1)
    if not task.throttled and task.clients == 1:
        longer = "take an operation that lasts longer"
        spared = not any("service_time" in limit.figures for limit in limits)
        return f"compare its service times, or {longer}" if spared else longer
    ways = ["a lower rate" if task.throttled else "fewer clients"]
    if task.clients > workers:
        ways.append(f"--workers {2 * workers // hosts}")
    return f"take {', '.join(ways)} or a machine with idle CPUs"


def _saturated_rate(target_per_s: float | None, summaries: Sequence[TaskSummary]) -> float | None:
    """The rate that was reached if requests queued; None if the target was.

    A short task misses its rate just because its last request takes time, so requests must have waited,
    too.
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
    latency_ns, service_ns = (
        None if times is None else times.p90 for times in (summary.latency, summary.service_time)
    )
    if latency_ns is None or service_ns is None:
        return False
    return latency_ns - service_ns > max(_MOST_WAIT_NS, _MOST_WAIT_SHARE * service_ns)


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


# Numbers of requests, and what requests count, that are no farther apart are the same.
_ALIKE_SAMPLES = 1.1
_NOTABLE_BIAS = 0.2
_LARGE_PART = 0.5
_LEAST_FOR_SPREAD = 3
_ALIKE_UNITS = 1.01
_SENT_OF_PLANNED = 0.99

# Means over the requests that succeeded.
_MEANS = frozenset({"mean", "engine_time", "client_time"})
_NOTABLE_SCALE = 10.0
_MEDIAN = 0.5

# With these a verdict would judge the load, not the engine; what the driver limits is told by `check_load`.
WITHHOLDING = frozenset(
    {
        "coarse",
        "counted-less",
        "hits-changed",
        "lower-bound",
        "offered-rate",
        "same-builds",
        "saturated",
        "unlike-units",
    }
)


def row_doubts(
    metric: Metric, task: Task, found: Mapping[str, ForkSummaries], answers: AnswerCheck | None
) -> list[Caveat]:
    """Doubts about one task and metric, variant by variant, the baseline first."""
    doubts = [*unit_doubts(metric, found), *_load_doubts(metric, task, found)]
    baseline = next(iter(found))
    for label, forks in found.items():
        doubts += _variant_doubts(metric, label, forks)
        doubts += _answer_doubts(task.operation, label, baseline, answers)
        doubts += _cut_short(task, label, forks)
    return [*doubts, *_coarse(metric, found), *_sample_doubts(metric, found), *_clocks(metric, found)]


def settling_doubts(
    task: Task, found: Mapping[str, ForkSummaries], settled: Mapping[str, Steadiness]
) -> Iterator[Caveat]:
    """Yield the variants that had not settled, with how to warm them up."""
    for label, one in settled.items():
        if one.trend is not None:
            summaries = [summary for _, summary in found[label]]
            yield caveat.not_steady(label, one.trend, one.text, advice(one.trend, summaries, task))


def host_doubts(
    metric: Metric, found: Mapping[str, ForkSummaries], noisy: Sequence[Disturbance]
) -> Iterator[Caveat]:
    """Yield forks whose values stand out together with the host's probe around them.

    That is by more than the practical margin beyond those of all quiet forks, and slower where the probe
    was.
    """
    for label, forks in found.items():
        off = {one.block: one.off_percent for one in noisy if one.variant == label}
        values = {block: value for block, summary in forks if (value := metric.value(summary)) is not None}
        quiet = [value for block, value in values.items() if block not in off]
        if not quiet:
            continue
        low, high = min(quiet) / (1 + metric.margin), max(quiet) * (1 + metric.margin)
        marked = [
            block
            for block, by in off.items()
            if block in values
            # A slow host makes times longer, and rates lower.
            and (values[block] < low if (by > 0) == metric.higher_is_better else values[block] > high)
        ]
        if marked:
            yield caveat.noisy_host(label, marked)


def node_doubts(done: Mapping[str, Sequence[ForkRecord]]) -> Iterator[Caveat]:
    """Yield where the nodes of clusters were that benchctl started, and what became of single ones."""
    for label, forks in done.items():
        starts = next((boot.node_starts for fork in forks for boot in fork.boots if boot.node_starts), ())
        by_host: dict[str, list[str]] = {}
        for node in starts:
            by_host.setdefault(node.host, []).append(node.name)
        if len(by_host) < len(starts):
            yield caveat.shared_host(label, by_host)
        lost = {
            fork.block: [fate.node for boot in fork.boots for fate in boot.fates if fate.what == "lost"]
            for fork in forks
        }
        blocks = [block for block, nodes in lost.items() if nodes]
        if blocks:
            names = dict.fromkeys(name for block in blocks for name in lost[block])
            yield caveat.node_lost(label, blocks, tuple(names))
        yield from _count_doubts(label, forks)
        copied = {fork.block: sum(boot.recovered_bytes or 0 for boot in fork.boots) for fork in forks}
        blocks = [block for block, copied_bytes in copied.items() if copied_bytes]
        if blocks:
            yield caveat.copied_shards(label, blocks, max(copied.values()))
        begun = [
            boot.resident_begun or 0.0
            for fork in forks
            for boot in fork.boots
            if boot.resident is not None and boot.resident < _EMPTIED_SHARE
        ]
        if max(begun, default=0.0) >= _NOTABLE_SHARE:
            yield caveat.warmed_by_start(label, max(begun))


def _count_doubts(label: str, forks: Sequence[ForkRecord]) -> Iterator[Caveat]:
    """Compare the searches that nodes counted with those that they were sent."""
    counts = [
        (fork.block, boot.searches_counted, boot.searches_sent)
        for fork in forks
        for boot in stray_boots(fork)
        if boot.searches_counted is not None
    ]
    less = [one for one in counts if one[1] < one[2] * _LEAST_SHARE_COUNTED]
    more = [one for one in counts if one[1] > one[2]]
    for found, say in ((less, caveat.counted_less), (more, caveat.counted_more)):
        if found:
            _, counted, sent = max(found, key=lambda one: abs(one[1] - one[2]))
            yield say(label, [block for block, _, _ in found], counted, sent)


def cold_doubts(plan: Plan, task: Task) -> Iterator[Caveat]:
    """Yield whether anything warmed a page cache that was to be cold, before the task was measured."""
    warm_up = task.warmup_iterations or task.warmup_time_period or plan.warmup_challenges
    if plan.page_cache == "cold" and warm_up:
        yield caveat.warmed_by_requests()


def unsupported_reason(forks: ForkSummaries) -> str | None:
    """Return the node's reason, from the first fork that has one."""
    return next((summary.unsupported for _, summary in forks if summary.unsupported), None)


def general_doubts(
    forks: Mapping[str, Sequence[ForkRecord]],
    done: Mapping[str, Sequence[ForkRecord]],
    rows: Sequence[Row],
    *,
    prepared: bool = True,
    builds: Mapping[str, Sequence[IndexFacts]] = MappingProxyType({}),
) -> tuple[Caveat, ...]:
    """Doubts about the whole analysis.

    `prepared` says whether forks began on copies of the same build; if each builds its own, the spread of
    forks includes that of builds. `builds` are those of each variant.
    """
    busy = busy_host(fork for group in done.values() for fork in group)
    doubts = [] if busy is None else [busy]
    doubts += [
        caveat.failed_forks(label, len(group) - len(done[label]))
        for label, group in forks.items()
        if len(group) > len(done[label])
    ]
    # A start by benchctl takes time: in 0 s, a running cluster was used as it was.
    running = [
        label
        for label, group in done.items()
        if any(boot.start_s == 0 for fork in group for boot in fork.boots)
    ]
    if running:
        doubts.append(caveat.not_restarted(running))
    furthest = max((row.scale.ratio for row in rows if row.scale), default=0.0)
    if furthest >= _NOTABLE_SCALE:
        doubts.append(caveat.small_scale(rounded_ratio(furthest)))
    units = [(min(one.replicates), one.replicate) for row in rows for one in row.comparisons]
    units = units or [(len(group), "fork") for group in done.values()]
    if several := [unit for unit in units if unit[0] > 1]:
        doubts.append(caveat.missed_states(*min(several)))
    return (*doubts, *_builds(done, builds)) if prepared and any(done.values()) else tuple(doubts)


def _builds(
    done: Mapping[str, Sequence[ForkRecord]], builds: Mapping[str, Sequence[IndexFacts]]
) -> Iterator[Caveat]:
    """Yield whether builds of the index are in the intervals."""
    contents = {label: [one.content for one in own if one.content] for label, own in builds.items()}
    if differing := {label: found for label, found in contents.items() if len(set(found)) > 1}:
        yield caveat.builds_differ(differing)
    if several_builds(done):
        yield caveat.builds({label: forks_by_build(group) for label, group in done.items()})
    elif all(contents.get(label) for label, group in done.items() if group):
        yield caveat.deterministic_build()
    else:
        yield caveat.one_index_build()


def _coarse(metric: Metric, found: Mapping[str, ForkSummaries]) -> Iterator[Caveat]:
    """Two values that are cut to whole steps are up to a step off, which has to be little of the margin."""
    step = metric.figure.resolution
    least = 2 * step / metric.margin
    medians = {label: _median([metric.value(one) for _, one in forks]) for label, forks in found.items()}
    low = [label for label, value in medians.items() if value is not None and value < least]
    if low:
        yield caveat.coarse(low, metric.title, f"{step:g} {metric.unit}", f"{least:.3g} {metric.unit}")


def _of_target(summary: TaskSummary) -> bool:
    # Only targets tell it.
    return "heap_used" in summary.meters


def _clocks(metric: Metric, found: Mapping[str, ForkSummaries]) -> Iterator[Caveat]:
    """Yield what targets tell by their own statistics is not quite what is read from other nodes."""
    figure = metric.figure
    if not (figure.target and figure.own_nodes):
        return
    told = [label for label, forks in found.items() if any(_of_target(one) for _, one in forks)]
    if told and len(told) < len(found):
        yield caveat.other_clocks(told, metric.title, figure.target, figure.own_nodes)


def _sample_doubts(metric: Metric, found: Mapping[str, ForkSummaries]) -> Iterator[Caveat]:
    """Yield what is unfit for a verdict, and quantiles whose own error is much of the spread of forks."""
    unfit = unfit_values(metric, found)
    yield from dict.fromkeys(unfit.values())
    for label, forks in found.items():
        error = _own_error(metric, forks)
        if label in unfit or error is None or error <= metric.margin / 2:
            continue
        spread = _spread([metric.value(summary) for _, summary in forks])
        if spread is None or error**2 >= _LARGE_PART * spread**2:
            fewest = min(summary.samples for _, summary in forks if summary.samples)
            yield caveat.few_samples(label, fewest, metric.title, error, spread)


def unfit_values(metric: Metric, found: Mapping[str, ForkSummaries]) -> dict[str, Caveat]:
    """Return the variants whose values get no verdict, for what is in them, with a caveat each.

    Too many requests failed, there were too few for the quantile, or their number is another one than that of
    the first variant, and decides.
    """
    failing = {
        label: share
        for label, forks in found.items()
        if (share := max((_unbounded_share(metric, summary) for _, summary in forks), default=0.0))
    }
    doubts = {label: caveat.unbounded(label, metric.title, share) for label, share in failing.items()}
    if metric.quantile is None:
        return doubts
    extreme = "slowest" if metric.quantile > _MEDIAN else "fastest"
    first, few = next(iter(found)), dict[int, list[str]]()
    for label, forks in found.items():
        fewest = min((summary.samples for _, summary in forks if summary.samples), default=None)
        if label in doubts or fewest is None:
            continue
        if fewest < metric.samples_least:
            few.setdefault(fewest, []).append(label)
        elif _uneven(metric, found[first], forks):
            counts = {name: _typical_samples(found[name]) for name in (first, label)}
            doubts[label] = caveat.uneven_samples(metric.title, counts)
    for fewest, labels in few.items():
        doubt = caveat.extreme_samples(labels, fewest, metric.title, metric.samples_least, extreme)
        doubts |= dict.fromkeys(labels, doubt)
    return doubts


def _unbounded_share(metric: Metric, summary: TaskSummary) -> float:
    """Share of a fork's requests that failed, where so many did that its value has no upper bound; else 0.

    A failed request is slower than all others, nobody knows by how much: so a mean has none if any failed.
    """
    failed = summary.unanswered
    bounded = not failed or metric.figure.name not in _MEANS
    if metric.quantile is not None:
        times = metric.figure.of(summary)
        bounded = not isinstance(times, Quantiles) or times.at(metric.quantile) is not None
    return 0.0 if bounded or not summary.samples else failed / (summary.samples + failed)


def _uneven(metric: Metric, first: ForkSummaries, other: ForkSummaries) -> bool:
    """Whether the bias of the estimator, which depends on the number of samples, can differ notably.

    The bias of a logarithm is of the order of its variance: up to three times as much in two-state samples,
    less in log-normal and exponential ones.
    """
    counts = sorted(map(_typical_samples, (first, other)))
    errors = [_own_error(metric, forks) for forks in (first, other)]
    if counts[1] <= _ALIKE_SAMPLES * counts[0] or errors[0] is None or errors[1] is None:
        return False
    return abs(errors[0] ** 2 - errors[1] ** 2) > _NOTABLE_BIAS * metric.margin


def _typical_samples(forks: ForkSummaries) -> int:
    return int(median([summary.samples for _, summary in forks if summary.samples] or [0]))


def _own_error(metric: Metric, forks: ForkSummaries) -> float | None:
    """Standard error of ln(value) within a fork, root mean square over forks; None where no fork has one."""
    errors = [error for _, summary in forks if (error := metric.log_error(summary)) is not None]
    return math.sqrt(fmean(error**2 for error in errors)) if errors else None


def _spread(values: Sequence[float | None]) -> float | None:
    """SD of the logarithms of forks' values; None under three, of which it is hardly known."""
    logs = [math.log(value) for value in values if value]
    return stdev(logs) if len(logs) >= _LEAST_FOR_SPREAD else None


def _load_doubts(metric: Metric, task: Task, found: Mapping[str, ForkSummaries]) -> Iterator[Caveat]:
    """Was the load of the task offered and served? If not, its figures say little about the engine."""
    if metric.key == REDLINE.key or metric.figure.loop == "cost":
        # A search judges the load of each of its steps; and how fast operations came is not what each cost.
        return
    target = task.rate_per_s
    overloaded = False
    for label, forks in found.items():
        check = check_load(task, [summary for _, summary in forks])
        if target is not None and check.saturated_per_s is not None:
            overloaded = True
            yield caveat.saturated(label, check.saturated_per_s, target)
        if check.limits:
            yield caveat.driver_limited(
                label, [limit.text for limit in check.limits], _withheld(check, metric), check.advice
            )
    if open_loop(task, found) and metric.figure.loop == "closed" and not overloaded:
        yield caveat.offered_rate(target, task.scheduler)
    if task.mixed and metric.figure.loop == "closed":
        yield caveat.rate_of_mix()


def _withheld(check: LoadCheck, metric: Metric) -> tuple[str, ...]:
    """Of the usual metrics a single sentence below all tables says so."""
    own = not metric.figure.usual and check.withholds(metric.figure.name)
    return (metric.title,) if own else check.withheld


def floor_doubts(found: Mapping[str, ForkSummaries], calibration: Calibration | None) -> Iterator[Caveat]:
    """Answers so fast that the driver adds a notable part to them."""
    for label, forks in found.items():
        typical_ns = near_floor([summary for _, summary in forks], calibration)
        if calibration is not None and typical_ns is not None:
            yield caveat.driver_floor(label, typical_ns, calibration.error_p50_ns, FLOOR_FACTOR)


def _variant_doubts(metric: Metric, label: str, forks: ForkSummaries) -> Iterator[Caveat]:
    summaries = [summary for _, summary in forks]
    reason = unsupported_reason(forks)
    if reason is not None:
        yield caveat.unsupported(label, reason)
        return
    failed: Counter[str] = Counter()
    for summary in summaries:
        failed.update(summary.failures)
    if failed:
        reasons = [reason for summary in summaries for reason in summary.failure_reasons]
        retries = sum(summary.retries for summary in summaries)
        yield caveat.failures(label, dict(failed), next(iter(reasons), ""), retries)
    mixed = max((summary.failed_share for summary in summaries), default=0.0)
    if mixed > 0:
        yield caveat.failures_within(label, mixed)
    measured = [summary for summary in summaries if summary.samples > 0]
    if not measured:
        if summaries and not failed:
            yield caveat.nothing_measured(label, sum(summary.warmup_samples for summary in summaries))
        return
    ignored = sum(summary.ignored_errors for summary in measured)
    if ignored:
        yield caveat.ignored_errors(label, ignored, sum(summary.samples for summary in measured))
    yield from _replay_doubts(label, measured)
    yield from _hits_doubts(label, forks)
    yield from _stall_doubts(label, forks)
    yield from _value_doubts(metric, label, measured)


def _value_doubts(metric: Metric, label: str, measured: Sequence[TaskSummary]) -> Iterator[Caveat]:
    values = [value for summary in measured if (value := metric.value(summary)) is not None]
    if not values and not metric.figure.usual and metric.figure.level != "build":
        asked = bool(metric.figure.target) and any(map(_of_target, measured))
        yield caveat.unknown_figure(label, metric.title, asked=asked)


def _replay_doubts(label: str, measured: Sequence[TaskSummary]) -> Iterator[Caveat]:
    """Yield answers that claim more time than they took, which those of an engine cannot."""
    for one in measured:
        took_ns, service_ns = (None if times is None else times.p50 for times in (one.took, one.service_time))
        if one.driver is None or one.unit != _SEARCHES or took_ns is None or service_ns is None:
            continue
        if took_ns > service_ns + _TOOK_ERROR_NS:
            yield caveat.replayed(label, took_ns, service_ns)
            return


def _hits_doubts(label: str, forks: ForkSummaries) -> Iterator[Caveat]:
    """Yield documents that were not the same for all requests, or none at all."""
    changed = [
        (block, one.hits_least, one.hits_most)
        for block, one in forks
        if one.hits_least is not None and one.hits_most is not None
    ]
    if changed:
        block, least, most = max(changed, key=lambda fork: fork[2] - fork[1])
        yield caveat.hits_changed(label, block, least, most, len(changed) - 1)
    agreed = {one.hits for _, one in forks if one.hits is not None and one.hits_exact}
    if not changed and len(agreed) > 1:
        yield caveat.hits_differ(label, [*agreed])
    if not changed and agreed == {0}:
        yield caveat.nothing_found(label)


def hits_apart(found: Mapping[str, ForkSummaries]) -> Iterator[Caveat]:
    """Yield variants that found other documents than the first one, where their results were not compared."""
    exact = {
        label: next((one.hits for _, one in forks if one.hits is not None and one.hits_exact), None)
        for label, forks in found.items()
    }
    baseline, *others = exact
    for label in others:
        hits, first = exact[label], exact[baseline]
        if hits is not None and first is not None and hits != first:
            yield caveat.answers_differ(label, baseline, f"hits {hits:,} and {first:,}")


def _cut_short(task: Task, label: str, forks: ForkSummaries) -> Iterator[Caveat]:
    """Yield counted tasks that sent less than planned; indexing ends by itself, and groups together."""
    if task.iterations is None or task.group is not None:
        return
    planned = task.iterations * task.clients
    short = [
        (sent, block)
        for block, one in forks
        if one.driver is not None and one.unit != DOCUMENTS
        for sent in (one.samples + sum(one.failures.values()) + one.cancelled,)
        if 0 < sent < _SENT_OF_PLANNED * planned
    ]
    if short:
        sent, block = min(short)
        yield caveat.cut_short(label, block, sent, planned, len(short) - 1)


def unit_doubts(metric: Metric, found: Mapping[str, ForkSummaries]) -> Iterator[Caveat]:
    """Yield variants whose requests count other things, or more of them: their rates are of unlike work."""
    units = {
        label: (one.unit, float(median(weights)))
        for label, forks in found.items()
        for one in [summary for _, summary in forks if summary.samples][:1]
        if (weights := [weight for _, summary in forks if (weight := _weight(summary)) is not None])
    }
    kinds = {unit for unit, _ in units.values()}
    counts = [count for _, count in units.values()]
    apart = len(kinds) > 1 or (bool(counts) and max(counts) > _ALIKE_UNITS * min(counts))
    if apart and metric.figure.counts:
        yield caveat.unlike_units(
            {label: f"counts {count:.4g} {unit}" for label, (unit, count) in units.items()}
        )


def _weight(summary: TaskSummary) -> float | None:
    """Units of a request; None where that is not known."""
    window_s = None if summary.driver is None else summary.driver.window_s
    if not window_s or not summary.throughput_per_s:
        return None
    return summary.throughput_per_s * window_s / summary.samples


def _stall_doubts(label: str, forks: ForkSummaries) -> Iterator[Caveat]:
    waits = [(block, found) for block, summary in forks if (found := list(stalls(summary)))]
    if waits:
        block, most = max(waits, key=lambda fork: max(stall.share for stall in fork[1]))
        yield caveat.stalled(label, block, [stall.text for stall in most], len(waits) - 1)


def _answer_doubts(
    operation: str, label: str, baseline: str, answers: AnswerCheck | None
) -> Iterator[Caveat]:
    for finding in answers.findings if answers else ():
        if finding.operation != operation or finding.variant != label:
            continue
        if finding.kind == "different":
            yield caveat.answers_differ(label, finding.baseline or baseline, finding.detail)
