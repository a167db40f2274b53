"""Level changes in a fork's service times, and the test that a task had stabilized before measurement."""

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import msgspec
import numpy as np

from benchctl.results.figures import Course, CourseKind, TaskSummary
from benchctl.stats.arrays import Floats, Integers, Mask
from benchctl.stats.disturbed import large_stalls
from benchctl.stats.inference import Contrast, contrast, holm
from benchctl.stats.metrics import THROUGHPUT
from benchctl.track.model import Task

if TYPE_CHECKING:
    from ruptures.base import BaseCost

LEAST_REQUESTS = 20
# A last level that began later than this share of the requests may not have lasted.
STEADY_BEFORE = 0.75
# Levels within 1% are one.
_ALIKE = math.log(1.01)
_PENALTY = 15.0
_MOST_PHI = 0.9
# Those over a change of level are among the largest.
_KEPT_STEPS = 0.9

# Pelt is a Python loop over pairs of candidates: of 128 it takes some 20 ms, of 1,000 two seconds.
_MOST_CANDIDATES = 128
# Two values have a variance; a mean over fewer values is no level.
_SHORTEST = 2

# Tukey's fences around the neighbours before and behind; 1.5 quartile ranges are 2.7 SD of normal noise.
_WINDOW = 25
_LEAST_WINDOW = 5
_FENCE = 1.5

# SD that a segment is taken to have at least, in natural logarithms and in SD of the noise: the logarithm of
# a variance has no bound below, and two equal values would be the best of all segments.
_LEAST_SD = 1e-3
_LEAST_SHARE_OF_NOISE = 0.25

Error = Callable[[int, int], float]


def find_course(values_ns: Floats, begins: Integers, of: int) -> Course | None:
    """Cut a course into segments of constant mean and variance, and classify it; None under 20 values.

    On logarithms: outliers out (Tukey 1977), PELT with a normal likelihood of mean and variance (Killick,
    Fearnhead, Eckley 2012; `ruptures`) and a penalty of 15 ln n (1 + phi) / (1 - phi) for n values of
    autocorrelation phi; then neighbouring segments within 1% become one. The kinds are those of Barrett
    et al. 2017, except that here the last level must begin before the last quarter of the requests.

    Args:
        values_ns: service times in the order of the requests, shape (n,), nanoseconds, all above 0; medians
            of groups of requests if they are many.
        begins: requests before each value, shape (n,), ascending from 0.
        of: requests.
    """
    if values_ns.size < LEAST_REQUESTS:
        return None
    logs = np.log(values_ns)
    kept = np.flatnonzero(~_outliers(logs))
    logs = logs[kept]
    bounds = _merged(logs, _change_points(logs))
    levels = [float(logs[low:high].mean()) for low, high in pairwise([*bounds, logs.size])]
    places = (0, *(int(begins[kept[bound]]) for bound in bounds[1:]))
    return Course(
        kind=_kind(levels, places[-1], of),
        steady_from=places[-1],
        of=of,
        bounds=places,
        levels_ns=tuple(math.exp(level) for level in levels),
    )


def _kind(levels: list[float], last_from: int, of: int) -> CourseKind:
    if len(levels) == 1:
        return "flat"
    if last_from >= STEADY_BEFORE * of:
        return "no steady state"
    return "warm-up" if levels[-1] <= min(levels) + _ALIKE else "slowdown"


def _outliers(logs: Floats) -> Mask:
    """Values that lie outside the fences of the 25 before them and of the 25 behind them.

    So the first values of a new level are none, however far it lies from the old one. The very first requests
    are slow by nature: up to the fifth, none counts as an outlier. Of the last four, those before decide.
    """
    before = _outside(logs, short=False)
    behind = _outside(logs[::-1], short=True)[::-1]
    return before & behind


def _outside(logs: Floats, *, short: bool) -> Mask:
    """Mark values outside the fences of up to 25 before them; `short` if there are fewer than five."""
    quartiles = np.empty((logs.size, 2))
    window = min(_WINDOW, logs.size)
    for place in range(_LEAST_WINDOW, window):
        quartiles[place] = np.quantile(logs[:place], (0.25, 0.75))
    if logs.size > window:
        windows = np.lib.stride_tricks.sliding_window_view(logs[:-1], window)
        quartiles[window:] = np.quantile(windows, (0.25, 0.75), axis=1).T
    low, high = quartiles.T
    reach = _FENCE * (high - low) + _LEAST_SD
    outside = (logs < low - reach) | (logs > high + reach)
    outside[:_LEAST_WINDOW] = short
    return outside


def autocorrelation(logs: Floats) -> float:
    """Lag-1 autocorrelation of the noise, whatever its levels; from 0 to 0.9.

    Differences over two steps against those over one, as Chakar, Lebarbier, Lévy-Leduc and Robin 2017;
    with mean squares of all but the largest tenth in place of their squared medians, which have nearly
    twice the error. The usual estimator takes a change of level for correlation, and a penalty made of it
    hides that very change.
    """
    single, double = (_trimmed_square(logs[lag:] - logs[:-lag]) for lag in (1, 2))
    return min(max(double / single - 1, 0.0), _MOST_PHI) if single > 0 else 0.0


def _trimmed_square(steps: Floats) -> float:
    squares = np.sort(steps**2)
    return float(squares[: math.ceil(_KEPT_STEPS * squares.size)].mean())


def _change_points(logs: Floats) -> list[int]:
    # It takes a tenth of a second to load, and is needed when the first fork's node is gone.
    from ruptures import Pelt  # noqa: PLC0415 - see above

    phi = autocorrelation(logs)
    penalty = _PENALTY * math.log(logs.size) * (1 + phi) / (1 - phi)
    # Pelt cuts at multiples of its jump only, which is 5 unless told otherwise.
    jump = -(-logs.size // _MOST_CANDIDATES)
    cost = _normal_cost(logs)
    ends = Pelt(custom_cost=cost, min_size=_SHORTEST, jump=jump).fit(logs).predict(pen=penalty)
    return _refined([0, *ends], cost.error, jump, penalty)


def _refined(cuts: list[int], error: Error, jump: int, penalty: float) -> list[int]:
    """Move each cut to the best place around it, and drop those that do not earn their penalty there.

    A change between two multiples of the jump leaves a segment of both levels, which is spurious. Cuts
    run from 0 to the number of values, less than `jump` away from their places; a cut has to lower the
    errors by `penalty`.
    """
    while len(cuts) > _SHORTEST:
        gains = []
        for place in range(1, len(cuts) - 1):
            low, cut, high = cuts[place - 1 : place + 2]
            near = range(max(low + _SHORTEST, cut - jump + 1), min(high - _SHORTEST, cut + jump - 1) + 1)
            split = {at: error(low, at) + error(at, high) for at in near}
            cuts[place] = min(split, key=split.__getitem__)
            gains.append(error(low, high) - split[cuts[place]])
        weakest = int(np.argmin(gains))
        if gains[weakest] >= penalty:
            break
        del cuts[weakest + 1]
    return cuts[:-1]


def _normal_cost(logs: Floats) -> "BaseCost":
    """Twice the negative log-likelihood of normal segments, up to a constant; each takes constant time.

    In place of ruptures' own `CostNormal`, which computes the variance of every candidate anew, and adds
    1e-6 to it whatever its unit is (the noise of service times may be 0.1%, whose variance that is).
    """
    from ruptures.base import BaseCost  # noqa: PLC0415 - see `_change_points`

    centred = logs - logs.mean()
    sums = np.concatenate([[0.0], np.cumsum(centred)]).tolist()
    squares = np.concatenate([[0.0], np.cumsum(centred**2)]).tolist()
    noise = float(np.median(np.abs(np.diff(logs)))) / 0.954  # the median of a difference of two normal values
    floor = max(_LEAST_SD, _LEAST_SHARE_OF_NOISE * noise) ** 2
    log = math.log

    class NormalCost(BaseCost):  # type: ignore[misc]  # ruptures has no types
        model = "normal in constant time"
        min_size = _SHORTEST

        def fit(self, signal: Any) -> "NormalCost":
            self.signal = signal
            return self

        def error(self, start: int, end: int) -> float:
            size = end - start
            mean = (sums[end] - sums[start]) / size
            variance = (squares[end] - squares[start]) / size - mean * mean
            return size * log(max(variance, 0.0) + floor)

    return NormalCost()


def _merged(logs: Floats, begins: list[int]) -> list[int]:
    """Return where segments begin once neighbours within 1% are one, the closest first."""
    begins = list(begins)
    while len(begins) > 1:
        ends = [*begins, logs.size]
        levels = [logs[low:high].mean() for low, high in pairwise(ends)]
        steps = np.abs(np.diff(levels))
        closest = int(np.argmin(steps))
        if steps[closest] > _ALIKE:
            break
        del begins[closest + 1]
    return begins


State = Literal["steady", "not steady", "unknown"]
Trend = Literal["not warmed up", "drifting", "little warm-up"]

_LEAST_DRIFT = math.log(1.05)
_LEVEL = 0.05
_CONFIDENCE = 0.95
_NS_PER_S = 1e9

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
    """True if a course reflects the engine: no few waits dominate the time, and no documents changed."""
    return summary.hits_least is None and not large_stalls(summary)


def settled_from(course: Course, margin: float) -> int | None:
    """Requests after which every level lies within the margin of the last one; 0 when all do.

    None when that leaves less than a quarter of the requests: the last level may not have lasted.
    """
    last = course.levels_ns[-1]
    settled = course.steady_from
    for begin, level in zip(reversed(course.bounds), reversed(course.levels_ns), strict=True):
        if abs(math.log(level / last)) > math.log1p(margin):
            break
        settled = begin
    return settled if settled < STEADY_BEFORE * course.of else None


def advice(
    trend: Trend, summaries: Sequence[TaskSummary], task: Task, *, margin: float = THROUGHPUT.margin
) -> str:
    """Return what to change so that all forks are measured after settling; empty when nothing is known.

    Args:
        trend: what is wrong, by `steadiness`.
        summaries: one a fork.
        task: that they are of.
        margin: relative difference of levels that does not matter in practice.
    """
    if task.iterations is None and task.time_period is None:
        return ""
    if trend == "little warm-up":
        count = max(summary.lacking_warmup for summary in summaries) / task.clients + (
            task.warmup_iterations or 0
        )
        by_time = task.time_period is not None
        return "raise warmup-time-period" if by_time else f"raise warmup-iterations to {_rounded_up(count):,}"
    courses = [
        summary.course for summary in summaries if summary.course is not None and _is_of_engine(summary)
    ]
    if not courses:
        return ""
    need, amount = _needed(courses, margin)
    if task.time_period is not None:
        seconds = max(_seconds(course, min(need, course.of), task) for course in courses)
        seconds += task.warmup_time_period or 0
        return f"raise warmup-time-period to {amount} {_rounded_up(seconds):,} s"
    count = need / task.clients + (task.warmup_iterations or 0)
    return f"raise warmup-iterations to {amount} {_rounded_up(count):,}"


def _needed(courses: Sequence[Course], margin: float) -> tuple[int, Literal["about", "at least"]]:
    """Requests before forks had settled, and how well that is known."""
    begins = [settled_from(course, margin) for course in courses]
    settled = [begin for begin in begins if begin is not None]
    if 2 * len(settled) > len(courses) and any(settled):
        return max(settled), "about"
    latest = max(course.steady_from for course in courses)
    # Without levels, it drifted all the way.
    return (latest or max(course.of for course in courses)), "at least"


def _seconds(course: Course, begin: int, task: Task) -> float:
    """From the first measured request to this one."""
    if task.rate_per_s is not None:
        return begin / task.rate_per_s
    busy_ns = sum(
        (min(high, begin) - low) * level
        for (low, high), level in zip(pairwise([*course.bounds, course.of]), course.levels_ns, strict=True)
        if low < begin
    )
    return busy_ns / task.clients / _NS_PER_S


def _rounded_up(value: float) -> int:
    """To tens from ten on, to two digits from 100 on: more would claim to know them."""
    digits = len(str(math.ceil(value)))
    step = int(10 ** max(digits - 2, min(digits, 2) - 1))
    return math.ceil(value / step) * step
