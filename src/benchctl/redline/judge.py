"""Steps of red-line searches: whether each met the objective, and the curves that they make.

A step is judged by the requests of one node, and says nothing of other forks. Each fork's load is one value,
and variants are compared by these like by any other metric.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import geometric_mean, median

import msgspec
import numpy as np

from benchctl.redline.search import Phase
from benchctl.results.figures import CurvePoint, StepVerdict
from benchctl.results.model import ForkRecord
from benchctl.results.plan import Plan, RedlineSpec
from benchctl.results.samples import Columns, Outcome, select
from benchctl.stats.analysis import Curve, CurveRow, ForkCurve, RedlineCurves, ScaledTask, Spread
from benchctl.stats.arrays import Integers, ValueCounts
from benchctl.stats.caveat import Caveat
from benchctl.stats.compare import own_interval
from benchctl.stats.metrics import REDLINE, ForkSummaries, Metric
from benchctl.stats.quantiles import quantile
from benchctl.stats.steady import Steadiness, Trend
from benchctl.track.model import Task

_NS_PER_MS = 1e6
_NS_PER_S = 1e9
# Of the time of clients in a closed loop: with more of it between answers and requests, fewer were at work.
_MOST_THINK_SHARE = 0.05
_LEAST_SHARE = 0.99
# Throughput of a step over that of the first at the same load: a node that has warmed up keeps within it.
_SETTLED = 1.1
_STEPS_APART = 2


_BATCHES = 10
_LEAST_BATCHES = 3
_LEAST_PER_BATCH = 2
# Latency that grows by 1% of the time belongs to a rate of which 99% are completed.
_LEAST_GROWTH = 0.01
# Of the two-sided interval of the slope: its lower end is too high in one case of twenty.
_CONFIDENCE = 0.9


@dataclass(frozen=True)
class Growth:
    """Growth of latency during a step."""

    slope: float  # seconds of latency gained a second: offered over served, minus 1, if that stays above 0
    low: float  # lower end of its 90% interval

    @property
    def grows(self) -> bool:
        """True if significantly less than 99% of the rate is served."""
        return self.slope > _LEAST_GROWTH and self.low > 0


def growth(due_ns: Integers, latency_ns: Integers) -> Growth:
    """Estimate how fast the backlog grows.

    A queue to which work comes faster than it goes gains latency at a constant rate, the overload. A stable
    one near its limit wanders, and neighbouring requests wait behind the same burst: a line through thousands
    of them would always be significant. So a step is cut into ten batches of equally many requests, in the
    order in which they were due, and Theil's and Sen's slope is taken through the medians of their latencies:
    single slow requests have no weight, and ten values claim no more than they know.

    Simulated on queues of one and two servers, 250 to 2,000 requests a step, Poisson arrivals: it finds no
    growth at 70% load (6% of steps where they have only 250 requests), 1 to 14% at 90%, 29 to 54% at
    exactly 100%, 68 to 100% at 110% and 95 to 100% at 120%. More than that 250 requests cannot say: by
    chance alone, so many move a queue by as much as 6% of overload does. Longer steps see smaller ones.

    Both arrays have shape (n,), in any order; latency counts from when requests were due. Under six requests
    there is no growth.
    """
    batches = min(_BATCHES, due_ns.size // _LEAST_PER_BATCH)
    if batches < _LEAST_BATCHES:
        return Growth(0.0, 0.0)
    order = np.argsort(due_ns, kind="stable")
    parts = np.array_split(order, batches)
    when = [float(due_ns[part].mean() - due_ns[order[0]]) for part in parts]
    wait = [float(np.median(latency_ns[part])) for part in parts]
    if when[0] == when[-1]:
        return Growth(0.0, 0.0)
    # It takes most of a second to load, and many runs have no rate.
    from scipy.stats import theilslopes  # noqa: PLC0415 - see above

    fit = theilslopes(wait, when, _CONFIDENCE)
    return Growth(float(fit[0]), float(fit[2]))


def undelayed_latency(due_ns: Integers, start_ns: Integers, end_ns: Integers, client: Integers) -> Integers:
    """Latencies without the time that the driver itself lost; nanoseconds, shape (n,), in the order given.

    A request is sent when it is due and the one before it of the same client has ended; any further delay
    is the driver's. Take it away, leave the time that every request took, and let each client's queue run
    again (Lindley's recursion): a driver that falls ever further behind does not make the node look slow.
    """
    latency = np.empty_like(due_ns)
    for number in np.unique(client):
        mine = np.flatnonzero(client == number)
        mine = mine[np.argsort(start_ns[mine], kind="stable")]
        due, took = due_ns[mine], end_ns[mine] - start_ns[mine]
        # end[i] = took[i] + max(due[i], end[i-1]), unrolled: sums are whole numbers, so nothing rounds.
        worked = np.cumsum(took)
        latency[mine] = worked + np.maximum.accumulate(due - (worked - took)) - due
    return latency


class Offer(msgspec.Struct, frozen=True):
    """Load that a step offers."""

    step: int  # its number, from 1
    rung: int
    phase: Phase
    rate_per_s: float  # units offered a second; clients, where their number is searched for
    period_ns: int


def percentile_name(percentile: float) -> str:
    """Spelling on the command line: `p90`, `p99.9`."""
    return f"p{percentile:g}"


def judge_step(
    columns: Columns, offer: Offer, spec: RedlineSpec, think_share: float | None = None
) -> CurvePoint:
    """Judge one step of a red-line search, from all its samples, settling included; columns have shape (n,).

    It passes when no request failed, the percentile of latency is within the limit, at least 99% of the
    rate were completed and the backlog did not grow. It is `driver-limited` when it misses that only
    because of time that the driver itself lost: no pass, and no fault of the node.

    In a closed loop neither a rate nor a backlog can be missed, and a slow driver makes the node look better:
    a pass is `driver-limited` when clients spent more than 5% of their time, the `think_share`, on no
    request.
    """
    columns = select(columns, columns["part"] == 0)
    measured = ~columns["warmup"] & (columns["outcome"] != Outcome.CANCELLED)
    ok = measured & (columns["outcome"] == Outcome.OK)
    due = columns["intended_ns"]
    latency = columns["end_ns"] - due
    # Over all rows: a request of the settling time may still be in the way of a measured one.
    undelayed = undelayed_latency(due, columns["start_ns"], columns["end_ns"], columns["client"])
    failures = int((measured & ~ok).sum())
    rejected = int((measured & (columns["outcome"] == Outcome.REJECTED)).sum())
    units = int(columns["weight"][ok].sum())
    step = _Step(due[ok], latency[ok], units, offer, spec)
    verdict: StepVerdict = "pass"
    reason = step.shortcoming()
    if failures:
        reason = f"{failures:,} requests failed" + (f", {rejected:,} of them rejected" if rejected else "")
    alone = _Step(due[ok], undelayed[ok], units, offer, spec)
    if spec.by == "clients":
        verdict = "fail" if reason else "pass"
        if not reason and think_share is not None and think_share > _MOST_THINK_SHARE:
            verdict = "driver-limited"
            reason = f"clients were without a request for {100 * think_share:.0f}% of their time"
    elif reason:
        limited = not failures and step.latency_ns.size > 0 and not alone.shortcoming()
        verdict = "driver-limited" if limited else "fail"
    return CurvePoint(
        step=offer.step,
        rung=offer.rung,
        phase=offer.phase,
        rate_per_s=offer.rate_per_s,
        achieved_per_s=step.achieved_per_s,
        samples=int(ok.sum()),
        failures=failures,
        p50_ns=step.percentile(50),
        p90_ns=step.percentile(90),
        p99_ns=step.percentile(99),
        objective_ns=step.percentile(spec.percentile),
        undelayed_ns=alone.percentile(spec.percentile),
        growth=step.growth.slope,
        verdict=verdict,
        reason=reason,
    )


class _Step:
    """The successful measured requests of a step: due times, and latency from then on, shape (n,).

    `units` is what they did together, such as documents.
    """

    def __init__(
        self, due_ns: Integers, latency_ns: Integers, units: int, offer: Offer, spec: RedlineSpec
    ) -> None:
        self.due_ns = due_ns
        self.latency_ns = latency_ns
        self.growth = Growth(0.0, 0.0) if spec.by == "clients" else growth(due_ns, latency_ns)
        self._units = units
        self._offer = offer
        self._spec = spec
        self._counts = ValueCounts()
        self._counts.add(latency_ns)

    def percentile(self, percentile: float) -> float | None:
        """Of latency, nanoseconds; None without samples."""
        return quantile(self._counts, percentile / 100)

    @property
    def achieved_per_s(self) -> float | None:
        """Completed units a second; None without samples.

        Those due within the period count, over the period plus what their completion took beyond the limit
        after the last one was due. So the number of Poisson arrivals, which is chance, cancels. Without a
        limit, what is served of the rate follows from how latency grows.
        """
        if self.due_ns.size == 0:
            return None
        if self._spec.by == "clients":
            return self._units * _NS_PER_S / int((self.due_ns + self.latency_ns).max() - self.due_ns.min())
        if not self._spec.limit_ns:
            return self._offer.rate_per_s / (1 + max(self.growth.slope, 0.0))
        last_ns = int((self.due_ns + self.latency_ns).max() - self.due_ns.max())
        beyond_ns = max(last_ns - self._spec.limit_ns, 0)
        period_ns = self._offer.period_ns
        return self._offer.rate_per_s * period_ns / (period_ns + beyond_ns)

    def shortcoming(self) -> str:
        """Return the first rule that the step breaks, in words; empty when it meets the objective."""
        measured = self.percentile(self._spec.percentile)
        achieved = self.achieved_per_s
        if measured is None or achieved is None:
            return "no request was answered"
        limit_ns = self._spec.limit_ns
        if limit_ns and measured > limit_ns:
            return f"{percentile_name(self._spec.percentile)} is {measured / _NS_PER_MS:.4g} ms"
        # Without a limit, chance is taken out of it by the test for growth.
        open_loop = self._spec.by != "clients"
        if open_loop and limit_ns and achieved < _LEAST_SHARE * self._offer.rate_per_s:
            return f"completed {achieved:.4g}/s of {self._offer.rate_per_s:.4g}/s"
        if self.growth.grows:
            return f"the backlog grew by {1000 * self.growth.slope:.0f} ms a second"
        return ""


_WORSE: Mapping[StepVerdict, int] = {"pass": 0, "driver-limited": 1, "fail": 2}


def hardest(judged: Sequence[tuple[Task, CurvePoint, int]], factor: float) -> CurvePoint:
    """Return a step's point: that of the task nearest to, or furthest beyond, its limit.

    Each comes with its limit, in nanoseconds, 0 for none; `factor` is what all their rates were multiplied
    by. What one of them fails, the step fails.
    """

    def hardship(found: tuple[Task, CurvePoint, int]) -> tuple[int, float]:
        _, point, limit_ns = found
        share = point.objective_ns / limit_ns if limit_ns and point.objective_ns is not None else 0.0
        return _WORSE[point.verdict], share

    task, worst, _ = max(judged, key=hardship)
    share = None if worst.achieved_per_s is None else worst.achieved_per_s / worst.rate_per_s
    return msgspec.structs.replace(
        worst,
        rate_per_s=factor,
        achieved_per_s=None if share is None else factor * share,
        failures=sum(point.failures for _, point, _ in judged),
        reason=f"{task.label}: {worst.reason}" if worst.reason else "",
        task=task.label,
    )


def redline_curves(
    done: Mapping[str, Sequence[ForkRecord]], search: RedlineSpec, plan: Plan | None = None
) -> RedlineCurves:
    """Put the steps of finished forks together, by label; the plan says which rates a factor is about."""
    summaries = [summary for forks in done.values() for fork in forks for summary in fork.summaries]
    unit = next((summary.redline_unit for summary in summaries if summary.redline_unit), "queries/s")
    units = {summary.task: summary.unit for summary in summaries}
    tasks = plan.schedules[0].schedule if plan is not None and search.by == "factor" else ()
    scaled = tuple(
        ScaledTask(task.label, units.get(place, "units"), task.rate_per_s * task.per_request)
        for place, task in enumerate(tasks)
        if task.rate_per_s is not None
    )
    curves = tuple(_curve(label, forks) for label, forks in done.items())
    return RedlineCurves(search, curves, unit, scaled)


def _curve(variant: str, forks: Sequence[ForkRecord]) -> Curve:
    rungs = sorted({point.rung for fork in forks for point in fork.curve})
    rows = tuple(_row(rung, list(_tried(rung, forks))) for rung in rungs)
    curves = tuple(_fork_curve(fork) for fork in forks)
    searched = [curve.redline for curve in curves if curve.end is not None]
    redlines = [load for load in searched if load is not None]
    whole = bool(redlines) and len(redlines) == len(searched)
    result = Curve(variant, rows, curves, geometric_mean(redlines) if whole else None)
    ends = (
        None if not whole or result.at_least else own_interval(redlines, [fork.index_build for fork in forks])
    )
    return result if ends is None else msgspec.structs.replace(result, low=ends[0], high=ends[1])


def _fork_curve(fork: ForkRecord) -> ForkCurve:
    ended = next((summary for summary in fork.summaries if summary.redline_end is not None), None)
    if ended is None:
        return ForkCurve(fork.block, fork.curve)
    return ForkCurve(fork.block, fork.curve, ended.redline_per_s, ended.redline_end)


def still_rising(forks: Sequence[ForkRecord]) -> float | None:
    """By how much throughput rose from the first step at a fork's last load to the last, median over forks.

    Of a closed loop, whose throughput settles with the node; in an open one it is the load itself. None where
    no fork tried its last load twice, or forks do not agree, or it rose by 10% or less.
    """
    rises = []
    for fork in forks:
        same = [point.achieved_per_s for point in fork.curve if point.rung == fork.curve[-1].rung]
        positive = [value for value in same if value]
        if len(positive) > 1:
            rises.append(positive[-1] / positive[0])
    if not rises or min(rises) <= 1 or median(rises) <= _SETTLED:
        return None
    return median(rises) - 1


@dataclass(frozen=True)
class Contradiction:
    """A fork that failed at loads well below the one that it passed at."""

    failed: tuple[float, ...]  # these loads, ascending
    found: float
    is_early: bool  # whether all of these steps came before any higher load was passed


def contradiction(fork: ForkRecord) -> Contradiction | None:
    """Return where a fork failed more often than it passed, 10% or more below the load that it found.

    Closer to it, a step is as likely to fail as to pass.
    """
    redline = _fork_curve(fork).redline
    if redline is None:
        return None
    below: dict[int, list[CurvePoint]] = {}
    for point in fork.curve:
        if point.rate_per_s * _SETTLED <= redline:
            below.setdefault(point.rung, []).append(point)
    failing = [
        points
        for _, points in sorted(below.items())
        if 2 * sum(point.verdict == "fail" for point in points) > len(points)
    ]
    if not failing:
        return None
    last = max(point.step for points in failing for point in points if point.verdict == "fail")
    least = failing[0][0].rung
    passed = min(point.step for point in fork.curve if point.verdict == "pass" and point.rung > least)
    return Contradiction(tuple(points[0].rate_per_s for points in failing), redline, last < passed)


def _tried(rung: int, forks: Sequence[ForkRecord]) -> Iterator[list[CurvePoint]]:
    """The steps of every fork that tried this rung."""
    for fork in forks:
        points = [point for point in fork.curve if point.rung == rung]
        if points:
            yield points


def _row(rung: int, forks: Sequence[Sequence[CurvePoint]]) -> CurveRow:
    points = [point for fork in forks for point in fork]
    return CurveRow(
        rung=rung,
        rate_per_s=median(fork[0].rate_per_s for fork in forks),
        forks=len(forks),
        steps=len(points),
        passed=sum(point.verdict == "pass" for point in points),
        driver_limited=sum(point.verdict == "driver-limited" for point in points),
        achieved_per_s=_spread([[point.achieved_per_s for point in fork] for fork in forks]),
        p50_ms=_spread([[_ms(point.p50_ns) for point in fork] for fork in forks]),
        p90_ms=_spread([[_ms(point.p90_ns) for point in fork] for fork in forks]),
        p99_ms=_spread([[_ms(point.p99_ns) for point in fork] for fork in forks]),
        objective_ms=_spread([[_ms(point.objective_ns) for point in fork] for fork in forks]),
    )


def _ms(value_ns: float | None) -> float | None:
    return None if value_ns is None else value_ns / 1e6


def _spread(forks: Sequence[Sequence[float | None]]) -> Spread | None:
    """Median and range over the medians of forks; steps without the figure are left out."""
    measured = [[value for value in fork if value is not None] for fork in forks]
    values = [median(fork) for fork in measured if fork]
    return Spread(median(values), min(values), max(values)) if values else None


# Doubts about the red-lines of a run.


def redline_doubts(
    search: RedlineSpec,
    metric: Metric,
    found: Mapping[str, ForkSummaries],
    done: Mapping[str, Sequence[ForkRecord]],
) -> tuple[list[Caveat], list[Caveat]]:
    """Return doubts before and after those of any row, by label; `done` has the steps of forks."""
    by_clients = search.by == "clients" and metric.key == REDLINE.key
    return [*_doubts(search, found, done)], [*(_whole_clients(search, found) if by_clients else ())]


def _doubts(
    search: RedlineSpec, found: Mapping[str, ForkSummaries], done: Mapping[str, Sequence[ForkRecord]]
) -> Iterator[Caveat]:
    for label, forks in found.items():
        summaries = [summary for _, summary in forks]
        bounded = [summary for summary in summaries if summary.redline_is_bound]
        if bounded:
            yield Caveat(
                "lower-bound",
                f"the red-line of {label} is a lower bound, so no verdict is given: "
                f"{bounded[0].redline_text} ({len(bounded)} of {len(summaries)} forks)",
            )
        missed = [
            summary
            for summary in summaries
            if summary.redline_end is not None and summary.redline_per_s is None
        ]
        if missed:
            text = f"{missed[0].redline_text} ({len(missed)} of {len(summaries)} forks)"
            yield Caveat("no-redline", f"{label} is n/a: {text}")
    for label, steadiness in unsteady_nodes(search, done).items():
        yield Caveat(
            "not-steady", f"{steadiness.trend or 'drifting'}: {label} {steadiness.text}; raise --warm-up"
        )


def _whole_clients(search: RedlineSpec, found: Mapping[str, ForkSummaries]) -> Iterator[Caveat]:
    """Numbers of clients are cut to a grid that no block shifts, so forks may agree without being equal.

    Of two values that are cut to whole steps, either may be a step off: a difference has to be larger.
    """
    values = {
        label: [summary.redline_per_s for _, summary in forks if summary.redline_per_s is not None]
        for label, forks in found.items()
    }
    means = {label: geometric_mean(known) for label, known in values.items() if known}
    step = max(1, int(search.tolerance * max(means.values(), default=0.0)))
    if len(means) > 1 and max(means.values()) - min(means.values()) < _STEPS_APART * step:
        yield Caveat(
            "coarse",
            f"clients are searched for in steps of {step}, and {' and '.join(means)} are less than two steps "
            "apart: too little for a verdict",
        )
    for label, known in values.items():
        if (
            len(known) > 1
            and len(set(known)) == 1
            and not any(summary.redline_is_bound for _, summary in found[label])
        ):
            yield Caveat(
                "whole-clients",
                f"all {len(known)} forks of {label} found {known[0]:g} clients: what they differ by is less "
                f"than a step of {step}, which the interval does not include",
            )


def unsteady_nodes(search: RedlineSpec, done: Mapping[str, Sequence[ForkRecord]]) -> dict[str, Steadiness]:
    """Return the variants whose nodes changed while a load was searched for, by label.

    They got faster with as many clients, or at least half of their forks passed at a load after, or although,
    they failed well below it.
    """
    by_label: dict[str, Steadiness] = {}
    for label, forks in done.items():
        rise = still_rising(forks) if search.by == "clients" else None
        if rise is not None:
            text = f"got {100 * rise:.0f}% more done in its last step than in its first with as many clients"
            by_label[label] = Steadiness("not steady", text=text, trend="not warmed up")
            continue
        contradictions = [clash for clash in map(contradiction, forks) if clash is not None]
        if contradictions and 2 * len(contradictions) >= len(forks):
            trend: Trend = "not warmed up" if all(clash.is_early for clash in contradictions) else "drifting"
            by_label[label] = Steadiness("not steady", text=_contradicted(forks), trend=trend)
    return by_label


def _contradicted(forks: Sequence[ForkRecord]) -> str:
    """Say where forks failed below what they found; empty if none did."""
    contradictions = [one for one in map(contradiction, forks) if one is not None]
    if not contradictions:
        return ""
    worst = max(contradictions, key=lambda one: len(one.failed))
    loads = ", ".join(f"{load:,.4g}" for load in worst.failed)
    return (
        f"failed at {loads}, below the {worst.found:,.4g} that it passed at "
        f"({len(contradictions)} of {len(forks)} forks)"
    )
