"""Where service times of a fork changed their level, and whether a task had settled when it was measured."""

import math
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import compress, pairwise
from typing import TYPE_CHECKING, Any, Literal

import msgspec
import numpy as np
from scipy.special import stdtrit

from benchctl.results.figures import Course, CourseKind, TaskSummary
from benchctl.stats.arrays import Floats, Integers, Mask
from benchctl.stats.disturbed import large_stalls
from benchctl.stats.metrics import THROUGHPUT
from benchctl.track.model import Task

if TYPE_CHECKING:
    from ruptures.base import BaseCost

LEAST_REQUESTS = 20
# A last level that began later than this share of the requests may not have lasted.
STEADY_BEFORE = 0.75
# Levels within 1 % are one.
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
    autocorrelation phi; then neighbouring segments within 1 % become one. The kinds are those of Barrett
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
    """Which values lie outside the fences of up to 25 before them; `short` where there are under five."""
    quartiles = np.empty((logs.size, 2))
    known = min(_WINDOW, logs.size)
    for place in range(_LEAST_WINDOW, known):
        quartiles[place] = np.quantile(logs[:place], (0.25, 0.75))
    if logs.size > known:
        windows = np.lib.stride_tricks.sliding_window_view(logs[:-1], known)
        quartiles[known:] = np.quantile(windows, (0.25, 0.75), axis=1).T
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
    one, two = (_trimmed_square(logs[lag:] - logs[:-lag]) for lag in (1, 2))
    return min(max(two / one - 1, 0.0), _MOST_PHI) if one > 0 else 0.0


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
    found = Pelt(custom_cost=cost, min_size=_SHORTEST, jump=jump).fit(logs).predict(pen=penalty)
    return _refined([0, *found], cost.error, jump, penalty)


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
    1e-6 to it whatever its unit is (the noise of service times may be 0.1 %, whose variance that is).
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
    """Return where segments begin once neighbours within 1 % are one, the closest first."""
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
_LEAST_DRIFT_OF_ONE = math.log(1.10)
_CONFIDENCE = 0.95
_AGREEING = 0.75
_NS_PER_S = 1e9


class Steadiness(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the courses of the forks say, and the drift within them."""

    # `not steady` when the figure is not the level that it settled at; `unknown` when no fork had the six
    # samples that a drift needs.
    state: State
    # Mean over forks of ln(median of the last third / of the first); None when unknown.
    drift: float | None = None
    # `low`, `high`: its 95 % t-interval over forks; None with one fork.
    low: float | None = None
    high: float | None = None
    text: str = ""  # in which direction and how far, for a state of `not steady`; empty otherwise
    # Of the forks' courses; `inconsistent` when they are not all of one kind, None without courses.
    kind: CourseKind | Literal["inconsistent"] | None = None
    kinds: dict[CourseKind, int] = {}
    # Median over forks of ln(mean service time / last level), outliers left out: what the part that had not
    # settled adds to the figure; None without courses.
    off: float | None = None
    remark: str = ""  # what is worth knowing although the figure stands, such as a slowdown; empty otherwise
    # `not warmed up` when the forks agree that it was still getting faster, else `drifting`; `little warm-up`
    # where that is not seen, and there was less than the operation is known to need; else None.
    trend: Trend | None = None


def steadiness(summaries: Sequence[TaskSummary], *, margin: float = THROUGHPUT.margin) -> Steadiness:
    """Judge one task of one variant.

    It is not steady, first, when in at least half of the forks the mean of all measured requests lies beyond
    the practical margin from the level at the end, on one side of it: then the figure is not the engine's
    settled speed. A level that changed late, or by 1 %, does not move the figure so far, and is no reason to
    doubt it; nor is a host whose troubles moved forks either way. Second, when
    the forks drifted: the mean drift between the outer thirds exceeds 5 % and its interval excludes 0 (of one
    fork: 10 %). That needs no courses, and over many forks it sees what is too noisy, or too gradual, to show
    as levels within one. Third, when a fork sent fewer requests before than the operation is known to need:
    what short tasks cannot show is not there to be seen.

    Args:
        summaries: one a fork; one in which a few waits took much of the time, or documents changed, says
            nothing.
        margin: relative difference of the figure that does not matter in practice; that of throughput also
            where percentiles are compared, so that a task has settled or not in all tables alike.
    """
    found = _seen([summary for summary in summaries if _is_of_engine(summary)], margin)
    lacking = max((summary.lacking_warmup for summary in summaries), default=0)
    if found.trend or not lacking:
        return found
    text = f"got {lacking:,} requests less before measurement than its operation needs (settles-after)"
    return msgspec.structs.replace(found, state="not steady", text=text, trend="little warm-up", remark="")


def _seen(summaries: Sequence[TaskSummary], margin: float) -> Steadiness:
    """Steadiness from courses and drifts."""
    courses = [summary.course for summary in summaries if summary.course is not None]
    drifted = _drifted([summary.drift for summary in summaries if summary.drift is not None])
    if not courses:
        return drifted
    kinds = Counter(course.kind for course in courses)
    off = [_off(course) for course in courses]
    limit = math.log1p(margin)
    sides = {side: [by * side > limit for by in off] for side in (1, -1)}
    side, far = max(sides.items(), key=lambda one: sum(one[1]))
    text, trend = drifted.text, drifted.trend
    # Where levels went both ways, the drift over all forks says which way it was.
    if 2 * sum(far) >= len(courses) and not (text and sum(off) * (drifted.drift or 0.0) > 0):
        text = _unsettled_text(courses, off, far)
        agreeing = sum(far) >= _AGREEING * sum(map(sum, sides.values()))
        trend = "not warmed up" if side > 0 and agreeing else "drifting"
    return msgspec.structs.replace(
        drifted,
        state="not steady" if text else "steady",
        text=text,
        trend=trend,
        kind=next(iter(kinds)) if len(kinds) == 1 else "inconsistent",
        kinds=dict(kinds.most_common()),
        off=float(np.median(off)),
        remark="" if text else _remark(courses, kinds, far=any(far), limit=limit),
    )


def _is_of_engine(summary: TaskSummary) -> bool:
    """Whether a course is about the engine: no few waits took much of the time, and no documents changed."""
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


def settling(summary: TaskSummary, margin: float) -> tuple[int, bool]:
    """Measured requests before one fork alone had settled, and whether it had.

    If not, it takes at least so many: its last level, or all of a course without levels that drifted by
    more than 10 %.
    """
    course = summary.course
    if course is None:
        return 0, False
    seen = _seen([summary] if _is_of_engine(summary) else [], margin)
    if course.kind == "flat" and seen.state == "not steady":
        return course.of, False
    begin = settled_from(course, margin)
    return (course.steady_from, False) if begin is None else (begin, True)


def advice(summaries: Sequence[TaskSummary], task: Task, *, margin: float = THROUGHPUT.margin) -> str:
    """Return what to change so that all forks are measured after settling; empty when nothing is known.

    `summaries` and `margin` are those of `steadiness`.
    """
    if task.iterations is None and task.time_period is None:
        return ""
    if steadiness(summaries, margin=margin).trend == "little warm-up":
        count = max(one.lacking_warmup for one in summaries) / task.clients + (task.warmup_iterations or 0)
        by_time = task.time_period is not None
        return "raise warmup-time-period" if by_time else f"raise warmup-iterations to {_rounded_up(count):,}"
    courses = [one.course for one in summaries if one.course is not None and _is_of_engine(one)]
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


def _drifted(drifts: Sequence[float]) -> Steadiness:
    """Steadiness from the outer thirds alone."""
    if not drifts:
        return Steadiness("unknown")
    known = np.asarray(drifts, dtype=np.float64)
    mean = float(known.mean())
    if known.size == 1:
        moved, low, high = abs(mean) > _LEAST_DRIFT_OF_ONE, None, None
    else:
        reach = float(stdtrit(known.size - 1, (1 + _CONFIDENCE) / 2))
        half = reach * float(known.std(ddof=1)) / math.sqrt(known.size)
        low, high = mean - half, mean + half
        moved = abs(mean) > _LEAST_DRIFT and not low <= 0 <= high
    if not moved:
        return Steadiness("steady", mean, low, high)
    if mean < 0:
        text = f"was still getting faster: last third {-100 * math.expm1(mean):.0f} % faster than the first"
    else:
        text = f"was getting slower: last third {100 * math.expm1(mean):.0f} % slower than the first"
    trend: Trend = "not warmed up" if mean < 0 else "drifting"
    return Steadiness("not steady", mean, low, high, text, trend=trend)


def _off(course: Course) -> float:
    """ln(mean service time / last level), from the levels."""
    requests = np.diff([*course.bounds, course.of])
    mean = float(np.average(course.levels_ns, weights=requests))
    return math.log(mean / course.levels_ns[-1])


def _unsettled_text(courses: Sequence[Course], off: Sequence[float], where_far: Sequence[bool]) -> str:
    """Return what happened in the forks whose figures are further than the limit from their last levels."""
    far = list(compress(courses, where_far))
    by = float(np.median(list(compress(off, where_far))))
    where = "" if len(courses) == 1 else f" in {len(far)} of {len(courses)} forks"
    how = "faster" if by > 0 else "slower"
    percent = abs(100 * math.expm1(by))
    figure = f"a request takes {percent:.0f} % {'longer' if by > 0 else 'less'} on average than at the end"
    late = sum(course.kind == "no steady state" for course in far)
    if 2 * late > len(far):
        return f"was still getting {how} when measurement ended{where}; {figure}"
    begin = max((course.steady_from for course in far if course.kind != "no steady state"), default=0)
    requests = max(course.of for course in far)
    return f"got {how} until request {begin:,} of {requests:,}{where}; {figure}"


def _remark(courses: Sequence[Course], kinds: Counter[CourseKind], *, far: bool, limit: float) -> str:
    slower = [math.log(course.levels_ns[-1] / min(course.levels_ns)) for course in courses]
    by = float(np.median(slower))
    if 2 * kinds["slowdown"] > len(courses) and by > limit:
        return (
            f"slowed down in {kinds['slowdown']} of {len(courses)} forks: "
            f"its last level is {100 * math.expm1(by):.0f} % slower than its fastest"
        )
    if far and (kinds["slowdown"] or kinds["no steady state"]):
        listed = ", ".join(f"{kind} in {count}" for kind, count in kinds.most_common())
        return f"is inconsistent from fork to fork: {listed} of {len(courses)}"
    return ""


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
