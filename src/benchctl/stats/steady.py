"""Test that a task had settled before it was measured, and advice on how long to warm up."""

import math
from collections.abc import Mapping, Sequence
from typing import Literal, TypeVar

import msgspec
import numpy as np

from benchctl.results.figures import TaskSummary
from benchctl.stats.disturbed import large_stalls
from benchctl.stats.inference import Contrast, Floats, contrast, holm
from benchctl.track.model import Task

State = Literal["steady", "not steady", "unknown"]
Trend = Literal["not warmed up", "drifting", "little warm-up"]

_LEAST_DRIFT = math.log(1.05)
_LEVEL = 0.05
_CONFIDENCE = 0.95

Key = TypeVar("Key")


class Steadiness(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Test for change during measurement in the forks of a task of one variant."""

    # `unknown` where it cannot be tested: under two forks with the six samples that a drift needs.
    state: State
    # Mean over forks of ln(geometric mean of the last third / of the first); None when no fork has one.
    drift: float | None = None
    # `low`, `high`: its 95% t-interval over forks; None under two forks.
    low: float | None = None
    high: float | None = None
    p: float | None = None  # of the t-test that there is no drift, adjusted over the rows of the run
    text: str = ""  # in which direction and how far, for a state of `not steady`; empty otherwise
    # `not warmed up` when it was still getting faster, else `drifting`; `little warm-up` where that is not
    # seen, and there was less than the operation is known to need; else None.
    trend: Trend | None = None


def steadiness(tasks: Mapping[Key, Sequence[TaskSummary]]) -> dict[Key, Steadiness]:
    """Test which tasks of a run had not settled while they were measured.

    The contrast is ln(geometric mean of the last third / of the first), one value a fork, of the measured
    requests, or of the last third of all where a longer warm-up was before them; a t-test over forks,
    adjusted by Holm's method over all tasks and variants, so that at most one of twenty runs of settled tasks
    has a mark. A task has not settled where that is significant and the mean drift is more than 5%. Nor has
    one that does not show it, if a fork sent fewer requests before than the operation is known to need: what
    short tasks cannot show is not there to be seen.

    Args:
        tasks: of every task and variant one summary a fork; one in which a few waits took much of the time,
            or documents changed, says nothing.
    """
    drifts = {
        key: np.asarray(
            [summary.drift for summary in summaries if summary.drift is not None and _is_of_engine(summary)]
        )
        for key, summaries in tasks.items()
    }
    tests = {key: test for key, values in drifts.items() if (test := contrast([values], [1.0])) is not None}
    p = dict(zip(tests, holm([test.p for test in tests.values()]), strict=True))
    return {
        key: _tested(
            drifts[key],
            tests.get(key),
            p.get(key),
            max((summary.lacking_warmup for summary in own), default=0),
        )
        for key, own in tasks.items()
    }


def _tested(drifts: Floats, test: Contrast | None, p: float | None, lacking: int) -> Steadiness:
    """Judge one task by the test of its drift, and by the warm-up requests that it lacks."""
    mean = float(drifts.mean()) if drifts.size else None
    result = Steadiness("unknown", mean)
    if test is not None and p is not None:
        result = Steadiness("steady", mean, *test.interval(_CONFIDENCE), p)
        if p <= _LEVEL and test.estimate < -_LEAST_DRIFT:
            by = -100 * math.expm1(test.estimate)
            text = f"was still getting faster: last third {by:.0f}% faster than the first"
            return msgspec.structs.replace(result, state="not steady", text=text, trend="not warmed up")
        if p <= _LEVEL and test.estimate > _LEAST_DRIFT:
            by = 100 * math.expm1(test.estimate)
            text = f"was getting slower: last third {by:.0f}% slower than the first"
            return msgspec.structs.replace(result, state="not steady", text=text, trend="drifting")
    if not lacking:
        return result
    text = f"got {lacking:,} requests less before measurement than its operation needs (settles-after)"
    return msgspec.structs.replace(result, state="not steady", text=text, trend="little warm-up")


def _is_of_engine(summary: TaskSummary) -> bool:
    """True if a drift reflects the engine: no few waits dominate the time, and no documents changed."""
    return summary.hits_least is None and not large_stalls(summary)


def advice(trend: Trend, summaries: Sequence[TaskSummary], task: Task) -> str:
    """Return what to change so that forks are measured after settling; empty when nothing is known.

    That is the warm-up that the operation lacks, or one as long as all that was not enough.

    Args:
        trend: what is wrong, by `steadiness`.
        summaries: one a fork.
        task: that they are of.
    """
    warmed_up = task.warmup_iterations or 0
    if task.time_period is not None:
        seconds = (task.warmup_time_period or 0) + task.time_period
        about = "" if trend == "little warm-up" else f" to about {_rounded_up(seconds):,} s"
        return f"raise warmup-time-period{about}"
    if task.iterations is None:
        return ""
    if trend == "little warm-up":
        count = warmed_up + max(summary.lacking_warmup for summary in summaries) / task.clients
        return f"raise warmup-iterations to {_rounded_up(count):,}"
    count = max(summary.warmup_samples + summary.samples for summary in summaries) / task.clients
    return f"raise warmup-iterations to about {_rounded_up(count):,}"


def _rounded_up(value: float) -> int:
    """To tens from ten on, to two digits from 100 on: more would claim to know them."""
    digits = len(str(math.ceil(value)))
    step = int(10 ** max(digits - 2, min(digits, 2) - 1))
    return math.ceil(value / step) * step
