"""Had a task settled while it was measured? Judged from the levels of each fork, and from their drift."""

import math
from collections import Counter
from collections.abc import Sequence
from itertools import compress, pairwise
from typing import Literal

import msgspec
import numpy as np
from scipy.special import stdtrit

from benchctl.results.figures import Course, CourseKind, TaskSummary
from benchctl.stats.disturbed import stalled
from benchctl.stats.metrics import THROUGHPUT
from benchctl.stats.segments import STEADY_BEFORE
from benchctl.track.model import Task

State = Literal["steady", "not steady", "unknown"]
Trend = Literal["not warmed up", "drifting"]

_LEAST_DRIFT = math.log(1.05)
_LEAST_DRIFT_OF_ONE = math.log(1.10)
_CONFIDENCE = 0.95
_AGREEING = 0.75
_NS_PER_S = 1e9


class Steadiness(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the courses of the forks say, and the drift within them.

    Attributes:
        state: `not steady` when the figure is not the level that it settled at; `unknown` when no fork had
            the six samples that a drift needs.
        drift: mean over forks of ln(median of the last third / of the first); None when unknown.
        low, high: its 95 % t-interval over forks; None with one fork.
        text: in which direction and how far, for a state of `not steady`; empty otherwise.
        kind: of the forks' courses; `inconsistent` when they are not all of one kind, None without courses.
        kinds: forks of each kind.
        off: median over forks of ln(mean service time / last level), outliers left out: what the part that
            had not settled adds to the figure; None without courses.
        remark: what is worth knowing although the figure stands, such as a slowdown; empty otherwise.
        trend: `not warmed up` when the forks agree that it was still getting faster, else `drifting`; None
            unless the state is `not steady`.
    """

    state: State
    drift: float | None = None
    low: float | None = None
    high: float | None = None
    text: str = ""
    kind: CourseKind | Literal["inconsistent"] | None = None
    kinds: dict[CourseKind, int] = {}
    off: float | None = None
    remark: str = ""
    trend: Trend | None = None


def steadiness(summaries: Sequence[TaskSummary], *, margin: float = THROUGHPUT.margin) -> Steadiness:
    """Judge one task of one variant.

    It is not steady, first, when in at least half of the forks the mean of all measured requests lies beyond
    the practical margin from the level at the end, on one side of it: then the figure is not the engine's
    settled speed. A level that changed late, or by 1 %, does not move the figure so far, and is no reason to
    doubt it; nor is a host whose troubles moved forks either way. Second, when
    the forks drifted: the mean drift between the outer thirds exceeds 5 % and its interval excludes 0 (of one
    fork: 10 %). That needs no courses, and over many forks it sees what is too noisy, or too gradual, to show
    as levels within one.

    Args:
        summaries: one a fork; one in which a single wait took much of the time says nothing.
        margin: relative difference of the figure that does not matter in practice; that of throughput also
            where percentiles are compared, so that a task has settled or not in all tables alike.
    """
    summaries = [summary for summary in summaries if not stalled(summary)]
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


def settled_from(course: Course, margin: float) -> int | None:
    """Requests after which every level lies within the margin of the last one; 0 when all do.

    Returns:
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
    """What one fork alone says of how many requests it takes to settle.

    Returns:
        Measured requests before it had settled, and whether it had; if not, it takes at least so many: its
        last level, or all of a course without levels that drifted by more than 10 %.
    """
    course = summary.course
    if course is None:
        return 0, False
    if course.kind == "flat" and steadiness([summary], margin=margin).state == "not steady":
        return course.of, False
    begin = settled_from(course, margin)
    return (course.steady_from, False) if begin is None else (begin, True)


def advice(summaries: Sequence[TaskSummary], task: Task, *, margin: float = THROUGHPUT.margin) -> str:
    """What to change so that all forks are measured after they have settled; empty when nothing is known.

    Args:
        summaries: one a fork, as in `steadiness`.
        task: as it was measured.
        margin: that of `steadiness`.
    """
    courses = [one.course for one in summaries if one.course is not None and not stalled(one)]
    if not courses or (task.iterations is None and task.time_period is None):
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
    """What the outer thirds alone say."""
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
    """What happened in the forks whose figures are further than the limit from their last levels."""
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
    """A slowdown that lasts, or forks that are unlike one another in a way that matters."""
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
