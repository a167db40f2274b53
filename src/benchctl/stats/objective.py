"""Did one step at one rate meet the objective? One verdict of latency, failures, rate and backlog."""

from typing import Literal

import msgspec

from benchctl.results.figures import CurvePoint, StepVerdict
from benchctl.results.plan import RedlineSpec
from benchctl.results.samples import Columns, Outcome, select
from benchctl.stats.arrays import Integers
from benchctl.stats.backlog import Growth, growth, undelayed_latency
from benchctl.stats.counts import ValueCounts
from benchctl.stats.quantiles import quantile

_NS_PER_MS = 1e6
_LEAST_SHARE = 0.99
# A percentile rests on at least so many samples beyond it.
_BEYOND = 10
Phase = Literal["search", "retry", "confirm"]


class Offer(msgspec.Struct, frozen=True):
    """What a step offers.

    Attributes:
        step: its number, from 1.
        rung: which rate of the grid.
        phase: what the step is for.
        rate_per_s: requests offered a second.
        period_ns: how long that is measured.
    """

    step: int
    rung: int
    phase: Phase
    rate_per_s: float
    period_ns: int


def percentile_name(percentile: float) -> str:
    """As the command line takes it: `p90`, `p99.9`."""
    return f"p{percentile:g}"


def needed_samples(percentile: float) -> int:
    """How many samples a percentile needs to be precise: 100 for p90, 10,000 for p99.9."""
    return round(_BEYOND / (1 - percentile / 100))


def judge_step(columns: Columns, offer: Offer, spec: RedlineSpec) -> CurvePoint:
    """Judge one step of a red-line search.

    It passes when no request failed, the percentile of latency is within the limit, at least 99 % of the rate
    were completed and the backlog did not grow. It is `driver-limited` when it misses that only because of
    time that the driver itself lost: no pass, and no fault of the node.

    Args:
        columns: all samples of the step, its settling included; each column of shape (n,).
        offer: what was offered.
        spec: of the search.
    """
    columns = select(columns, columns["part"] == 0)
    measured = ~columns["warmup"] & (columns["outcome"] != Outcome.CANCELLED)
    ok = measured & (columns["outcome"] == Outcome.OK)
    due = columns["intended_ns"]
    latency = columns["end_ns"] - due
    # Over all rows: a request of the settling time may still be in the way of a measured one.
    undelayed = undelayed_latency(due, columns["start_ns"], columns["end_ns"], columns["client"])
    failures = int((measured & ~ok).sum())
    found = _Step(due[ok], latency[ok], offer, spec)
    verdict: StepVerdict = "pass"
    reason = f"{failures:,} requests failed" if failures else found.shortcoming()
    alone = _Step(due[ok], undelayed[ok], offer, spec)
    if reason:
        limited = not failures and found.latency_ns.size > 0 and not alone.shortcoming()
        verdict = "driver-limited" if limited else "fail"
    return CurvePoint(
        step=offer.step,
        rung=offer.rung,
        phase=offer.phase,
        rate_per_s=offer.rate_per_s,
        achieved_per_s=found.achieved_per_s,
        samples=int(ok.sum()),
        failures=failures,
        p50_ns=found.percentile(50),
        p90_ns=found.percentile(90),
        p99_ns=found.percentile(99),
        objective_ns=found.percentile(spec.percentile),
        undelayed_ns=alone.percentile(spec.percentile),
        growth=found.growth.slope,
        verdict=verdict,
        reason=reason,
    )


class _Step:
    """The successful measured requests of a step.

    Args:
        due_ns: when they were due, shape (n,).
        latency_ns: from then on, shape (n,).
        offer: what was offered.
        spec: of the search.
    """

    def __init__(self, due_ns: Integers, latency_ns: Integers, offer: Offer, spec: RedlineSpec) -> None:
        self.due_ns = due_ns
        self.latency_ns = latency_ns
        self.growth: Growth = growth(due_ns, latency_ns)
        self._offer = offer
        self._spec = spec
        self._counts = ValueCounts()
        self._counts.add(latency_ns)

    def percentile(self, percentile: float) -> float | None:
        """Of latency, nanoseconds; None without samples."""
        return quantile(self._counts, percentile / 100)

    @property
    def achieved_per_s(self) -> float | None:
        """What was completed of the rate; None without samples.

        The requests that were due within the period, over that period and what their completion took beyond
        it: more than the limit after the last one was due. How many Poisson arrivals there are is chance, and
        cancels.
        """
        if self.due_ns.size == 0:
            return None
        last_ns = int((self.due_ns + self.latency_ns).max() - self.due_ns.max())
        beyond_ns = max(last_ns - self._spec.limit_ns, 0)
        period_ns = self._offer.period_ns
        return self._offer.rate_per_s * period_ns / (period_ns + beyond_ns)

    def shortcoming(self) -> str:
        """The first rule that the step breaks, in words; empty when it meets the objective."""
        measured = self.percentile(self._spec.percentile)
        achieved = self.achieved_per_s
        if measured is None or achieved is None:
            return "no request was answered"
        if measured > self._spec.limit_ns:
            return f"{percentile_name(self._spec.percentile)} is {measured / _NS_PER_MS:.4g} ms"
        if achieved < _LEAST_SHARE * self._offer.rate_per_s:
            return f"completed {achieved:.4g}/s of {self._offer.rate_per_s:.4g}/s"
        if self.growth.grows:
            return f"the backlog grew by {1000 * self.growth.slope:.0f} ms a second"
        return ""
