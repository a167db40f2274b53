"""A red-line search on one node: a warm-up, then rate after rate, and whether each met the objective.

A step is judged by the requests of one node, and says nothing of other forks.
"""

import itertools
import math
import random
import zlib
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

import msgspec
import numpy as np

from benchctl.errors import BenchctlError
from benchctl.load.executor import Job, TaskResult
from benchctl.results.answers import sample_answers
from benchctl.results.figures import CurvePoint, RedlineEnd, StepVerdict, TaskSummary, rate_text
from benchctl.results.plan import Plan, RedlineSpec
from benchctl.results.samples import Columns, Outcome, select
from benchctl.run.fork import SearchResult
from benchctl.stats.inference import Integers
from benchctl.stats.quantiles import quantile
from benchctl.stats.summary import summarise
from benchctl.track.model import Task, Track

_NS_PER_MS = 1e6
_NS_PER_S = 1_000_000_000

# Whether the backlog of a step grows.

_BATCHES = 10
_LEAST_BATCHES = 3
_LEAST_PER_BATCH = 2
# Latency that grows by 1% of the time belongs to a rate of which 99% are completed.
_LEAST_GROWTH = 0.01
_LEAST_SHARE = 0.99
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


# One step.

Phase = Literal["search", "retry", "confirm"]


class Offer(msgspec.Struct, frozen=True):
    """Load that a step offers."""

    step: int  # its number, from 1
    rung: int
    phase: Phase
    rate_per_s: float
    period_ns: int


def judge_step(columns: Columns, offer: Offer, spec: RedlineSpec) -> CurvePoint:
    """Judge one step of a red-line search, from all its samples, settling included; columns have shape (n,).

    It passes when no request failed, the percentile of latency is within the limit, at least 99% of the
    rate were completed and the backlog did not grow. It is `driver-limited` when it misses that only
    because of time that the driver itself lost: no pass, and no fault of the node.
    """
    columns = select(columns, columns["part"] == 0)
    measured = ~columns["warmup"] & (columns["outcome"] != Outcome.CANCELLED)
    ok = measured & (columns["outcome"] == Outcome.OK)
    due = columns["intended_ns"]
    # Over all rows: a request of the settling time may still be in the way of a measured one.
    undelayed = undelayed_latency(due, columns["start_ns"], columns["end_ns"], columns["client"])
    step = _Step(due[ok], (columns["end_ns"] - due)[ok], offer, spec)
    alone = _Step(due[ok], undelayed[ok], offer, spec)
    failures = int((measured & ~ok).sum())
    rejected = int((measured & (columns["outcome"] == Outcome.REJECTED)).sum())
    verdict: StepVerdict = "pass"
    reason = step.shortcoming()
    if failures:
        verdict = "fail"
        reason = f"{failures:,} requests failed" + (f", {rejected:,} of them rejected" if rejected else "")
    elif reason:
        verdict = "driver-limited" if ok.any() and not alone.shortcoming() else "fail"
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
    """The successful measured requests of a step: due times, and latency from then on, shape (n,)."""

    def __init__(self, due_ns: Integers, latency_ns: Integers, offer: Offer, spec: RedlineSpec) -> None:
        self.growth = growth(due_ns, latency_ns)
        self._due_ns = due_ns
        self._latency_ns = latency_ns
        self._offer = offer
        self._spec = spec
        self._ordered = np.sort(latency_ns)

    def percentile(self, percentile: float) -> float | None:
        """Of latency, nanoseconds; None without samples."""
        return quantile(self._ordered, percentile / 100)

    @property
    def achieved_per_s(self) -> float | None:
        """Completed requests a second; None without samples.

        Those due within the period count, over the period plus what their completion took beyond the limit
        after the last one was due. So the number of Poisson arrivals, which is chance, cancels.
        """
        if self._due_ns.size == 0:
            return None
        last_ns = int((self._due_ns + self._latency_ns).max() - self._due_ns.max())
        period_ns = self._offer.period_ns
        return self._offer.rate_per_s * period_ns / (period_ns + max(last_ns - self._spec.limit_ns, 0))

    def shortcoming(self) -> str:
        """Return the first rule that the step breaks, in words; empty when it meets the objective."""
        measured, achieved = self.percentile(self._spec.percentile), self.achieved_per_s
        if measured is None or achieved is None:
            return "no request got a response"
        if measured > self._spec.limit_ns:
            return f"p{self._spec.percentile:g} is {measured / _NS_PER_MS:.4g} ms"
        if achieved < _LEAST_SHARE * self._offer.rate_per_s:
            return f"completed {achieved:.4g}/s of {self._offer.rate_per_s:.4g}/s"
        if self.growth.grows:
            return f"the backlog grew by {1000 * self.growth.slope:.0f} ms a second"
        return ""


# The search: pure, driven by a caller that tries rates.

Try = Callable[[int, Phase], StepVerdict]
"""Tries the rate of a rung, and tells whether it met the objective."""

CONFIRMATIONS = 2
# Twelve find a rate on a 3% grid; the rest is for steps that contradict each other.
MOST_STEPS = 40
# Where a rate that failed once passes, the answer is not far above.
_NEAR = 2
_EVEN_STRIDES = 3


@dataclass(frozen=True)
class Ladder:
    """Rates of a search: a geometric grid, whose `ratio` (> 1) is the resolution of the answer.

    Every block shifts the grid by `shift` rungs, from 0 to 1: on one grid, forks that differ by less than a
    rung would be identical, and the spread that tests are based on would be the grid's. It ends exactly at
    `most`, on the rung `top`, whatever the shift.
    """

    ratio: float
    shift: float = 0.0
    most: float = math.inf

    @property
    def top(self) -> int | None:
        """The highest rung; None where there is none."""
        if math.isinf(self.most):
            return None
        rung = self.at_most(self.most)
        return rung + (self._grid(rung) < self.most)

    def rate(self, rung: int) -> float:
        """Return the rate of a rung."""
        return min(self._grid(rung), self.most)

    def at_most(self, rate: float) -> int:
        """Return the highest rung of the endless grid whose rate does not exceed this one."""
        rung = round(math.log(rate) / math.log(self.ratio))
        while self._grid(rung) > rate:
            rung -= 1
        while self._grid(rung + 1) <= rate:
            rung += 1
        return rung

    def _grid(self, rung: int) -> float:
        return float(self.ratio ** (rung + self.shift))

    def rungs(self, factor: float) -> int:
        """Return a factor in rungs, at least one."""
        return max(1, round(math.log(factor) / math.log(self.ratio)))


@dataclass(frozen=True)
class Found:
    """The end of a search."""

    rung: int | None  # the highest that met the objective; None when none did, or none is reliable
    end: RedlineEnd
    # The rung that decided it: found, where the driver was the limit, the lowest, or the last tried. It was
    # tried, whatever the end.
    at: int


class Search:
    """Bisection over the rungs between the highest that passed and the lowest that failed.

    It differs from bisecting a function: a step is a measurement and can be wrong, and the node may still
    warm up. So a failed neighbour is retried before it is believed, and the search goes on above it if it
    passes; and a rate counts as found only when it passes twice more in a row, one rung lower after each
    failure.

    Args:
        attempt: tries a rung.
        most: the highest rung to try; None for no bound. The lowest is 0.
        leap: the stride of the first few steps, in rungs; a rate far above capacity costs minutes to recover
            from. If these lead nowhere, the guess was poor, and strides double.
    """

    def __init__(self, attempt: Try, *, most: int | None, leap: int) -> None:
        self._attempt = attempt
        self._most = most
        self._leap = leap
        self._passed: int | None = None
        self._failed: int | None = None
        self._retried: set[int] = set()
        self._steps = 0
        self._last = 0

    def run(self, first: int) -> Found:
        """Search from a rung that is likely to be near; it is moved into the bounds."""
        try:
            self._bracket(self._bounded(first), self._leap)
            return self._confirm(self._settle())
        except _Over as end:
            return end.found

    def _bounded(self, rung: int) -> int:
        rung = max(rung, 0)
        return rung if self._most is None else min(rung, self._most)

    def _bracket(self, rung: int, stride: int) -> None:
        """Stride until the answer lies between two rungs, or at the highest."""
        for number in itertools.count(1):
            passed = self._try(rung, "search")
            if passed and (self._failed is not None or rung == self._most):
                return
            if not passed and self._passed is not None:
                return
            if not passed and rung == 0:
                raise _Over(Found(None, "missed", 0))
            if number > _EVEN_STRIDES:
                stride *= 2
            rung = self._bounded(rung + stride if passed else rung - stride)

    def _settle(self) -> int:
        """Bisect, retrying what failed once; returns the highest rung that passed."""
        while True:
            low, high = self._passed, self._failed
            if low is None:
                raise _Over(Found(None, "missed", 0))
            if high is None:
                if low == self._most:
                    return low
                self._bracket(self._bounded(low + _NEAR), _NEAR)
            elif high - low > 1:
                self._try((low + high) // 2, "search")
            elif high in self._retried:
                return low
            else:
                self._retried.add(high)
                self._try(high, "retry")

    def _confirm(self, rung: int) -> Found:
        while not all(self._try(rung, "confirm") for _ in range(CONFIRMATIONS)):
            if rung == 0:
                raise _Over(Found(None, "missed", 0))
            rung -= 1
        return Found(rung, "max-rate" if rung == self._most else "found", rung)

    def _try(self, rung: int, phase: Phase) -> bool:
        """Measure a step; if the driver limited it, retry once."""
        verdict = self._measure(rung, phase)
        if verdict == "driver-limited":
            verdict = self._measure(rung, "retry")
        if verdict == "driver-limited":
            raise _Over(Found(self._passed, "driver-limited", rung))
        if verdict == "pass":
            self._passed = rung if self._passed is None else max(rung, self._passed)
            if self._failed is not None and self._failed <= rung:
                self._failed = None
        else:
            self._failed = rung if self._failed is None else min(rung, self._failed)
            if self._passed is not None and self._passed >= rung:
                self._passed = None
        return verdict == "pass"

    def _measure(self, rung: int, phase: Phase) -> StepVerdict:
        if self._steps == MOST_STEPS:
            raise _Over(Found(None, "unsettled", self._last))
        self._steps += 1
        self._last = rung
        return self._attempt(rung, phase)


class _Over(Exception):  # noqa: N818 - it ends the search, and is not an error
    def __init__(self, found: Found) -> None:
        super().__init__(found.end)
        self.found = found


# On a node.

# A closed loop of few clients approaches a node's capacity without building a queue.
WARM_UP_CLIENTS = 4
_FIRST_SHARE = 0.75
_LEAP = 1.4
_LEAST_REQUESTS = 20  # of a step, at any rate

Measure = Callable[[Sequence[Job], int], Sequence[TaskResult]]
"""Runs tasks at the same time on the running node, with this seed."""


def search_redline(plan: Plan, track: Track, block: int, measure: Measure) -> SearchResult:
    """Search for the red-line of a plan on a fresh node.

    Variants of a block get the same arrivals and the same grid of rates.

    Raises:
        BenchctlError: If the plan has no search, or the node failed.
    """
    if plan.redline is None:
        raise BenchctlError("this plan searches for no red-line")
    return _NodeSearch(plan, plan.redline, track, block, measure).run()


class _NodeSearch:
    def __init__(self, plan: Plan, spec: RedlineSpec, track: Track, block: int, measure: Measure) -> None:
        self._spec = spec
        (self._task,) = plan.schedules[0].schedule
        self._operation = track.operations[self._task.operation]
        self._measure = measure
        self._seed = f"{plan.seed}/{block}"
        shift = random.Random(f"{self._seed}/shift").random()  # noqa: S311 - reproducible, not secret
        most = math.inf if spec.max_per_s is None else spec.max_per_s
        self._ladder = Ladder(1 + spec.tolerance, shift, most)
        self._curve: list[CurvePoint] = []
        self._results: list[TaskResult] = []

    def run(self) -> SearchResult:
        task = msgspec.structs.replace(
            self._task,
            clients=min(self._task.clients, WARM_UP_CLIENTS),
            schedule="deterministic",
            warmup_time_period=None,
            time_period=self._spec.warm_up_s,
        )
        result = self._run(task)
        capacity = capacity_per_s(result.columns)
        if result.unsupported is not None or capacity is None:
            return SearchResult((), partial(self._unsearched, result))
        ladder = self._ladder
        # One request a second is the lowest rung: below that a step takes too long.
        search = Search(self._attempt, most=ladder.top, leap=ladder.rungs(_LEAP))
        found = search.run(ladder.at_most(_FIRST_SHARE * capacity))
        return SearchResult(tuple(self._curve), partial(self._summary, found))

    def _run(self, task: Task, step: int = 0) -> TaskResult:
        """Run the task; step 0 is no part of any figure."""
        job = Job(task, self._operation, 0, step, measured=step > 0)
        (result,) = self._measure([job], zlib.crc32(f"{self._seed}/{step}".encode()))
        return result

    def _attempt(self, rung: int, phase: Phase) -> StepVerdict:
        task, step = self._at(self._ladder.rate(rung)), len(self._curve) + 1
        result = self._run(task, step)
        period_ns = round((task.time_period or 0.0) * _NS_PER_S)
        offer = Offer(step, rung, phase, self._ladder.rate(rung), period_ns)
        self._curve.append(judge_step(result.columns, offer, self._spec))
        self._results.append(result)
        return self._curve[-1].verdict

    def _at(self, rate_per_s: float) -> Task:
        """The task at a rate, long enough for some requests."""
        step_s = max(self._spec.step_s, _LEAST_REQUESTS / rate_per_s)
        return msgspec.structs.replace(self._task, target_throughput=rate_per_s, time_period=step_s)

    def _summary(self, found: Found) -> tuple[TaskSummary]:
        """The figures of the last step at the rate found, or at the one that decided, with all failures."""
        rung = found.at if found.rung is None else found.rung
        decisive = max(point.step for point in self._curve if point.rung == rung)
        steps = [
            self._figures(self._at(point.rate_per_s), result, point.step)
            for point, result in zip(self._curve, self._results, strict=True)
        ]
        failures = sum((Counter(summary.failures) for summary in steps), Counter())
        reasons = dict.fromkeys(reason for summary in steps for reason in summary.failure_reasons)
        at = rate_text(self._ladder.rate(found.at))
        texts: dict[RedlineEnd, str] = {
            "max-rate": f"the objective is met at {at}, the highest rate to be tried",
            "driver-limited": f"driver-limited at {at}",
            "missed": f"{self._curve[decisive - 1].reason} even at {at}",
            "unsettled": f"not steady after {MOST_STEPS} steps",
        }
        return (
            msgspec.structs.replace(
                steps[decisive - 1],
                failures=dict(failures),
                failure_reasons=tuple(reasons),
                # Five seconds at the limit tell nothing about settling.
                drift=None,
                redline_per_s=None if found.rung is None else self._ladder.rate(found.rung),
                redline_end=found.end,
                redline_text=texts.get(found.end, ""),
            ),
        )

    def _unsearched(self, result: TaskResult) -> tuple[TaskSummary]:
        """The figures of a warm-up after which no search was possible."""
        summary = self._figures(self._task, result)
        if result.unsupported is not None:
            return (summary,)
        # Warm-up, which figures exclude; but here there is nothing else.
        failures = {failure.outcome.name.lower(): failure.count for failure in result.failures}
        text = ": ".join(["no request of the warm-up got a response", *summary.failure_reasons[:1]])
        return (msgspec.structs.replace(summary, failures=failures, redline_end="missed", redline_text=text),)

    def _figures(self, task: Task, result: TaskResult, step: int = 0) -> TaskSummary:
        """The figures of a step, at the place of the task in the plan; its samples have the step for one."""
        summary = summarise(
            result.samples,
            schedule=0,
            task_index=step,
            task=task,
            unsupported=result.unsupported,
            constant=self._operation.constant,
        )
        reasons = tuple(detail for failure in result.failures for detail in failure.details)
        answers = sample_answers(result.sample, constant=self._operation.constant, by_id=False)
        return msgspec.structs.replace(summary, task=0, failure_reasons=reasons, answers=answers)


def capacity_per_s(columns: Columns) -> float | None:
    """Completions per second in the second half of a closed loop's samples, shape (n,); None for none."""
    ok = (columns["outcome"] == Outcome.OK) & (columns["part"] == 0)
    ends = columns["end_ns"][ok]
    if ends.size == 0:
        return None
    starts_ns, last_ns = int(columns["start_ns"].min()), int(ends.max())
    middle_ns = (starts_ns + last_ns) // 2
    return int((ends > middle_ns).sum()) * _NS_PER_S / max(last_ns - middle_ns, 1)
