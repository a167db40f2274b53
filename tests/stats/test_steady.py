import math
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchctl.results.figures import Course, CourseKind, TaskSummary
from benchctl.stats.steady import Steadiness, advice, settled_from, settling, steadiness
from benchctl.track.model import Task
from builders import make_driver, make_summary

DRIFTS = st.lists(st.floats(-2, 2), min_size=2, max_size=20)
COUNTED = Task("range", iterations=300)

FLAT = Course("flat", 0, 300, (0,), (1e6,))
WARM_UP = Course("warm-up", 90, 300, (0, 90), (1.5e6, 1e6))
LATE = Course("no steady state", 270, 300, (0, 270), (2e6, 1e6))
# Until a late compile that brought 1.5 %.
LATE_TRIFLE = Course("no steady state", 270, 300, (0, 270), (1.015e6, 1e6))


def of_drifts(drifts: Sequence[float | None], **changes: Any) -> list[TaskSummary]:
    return [make_summary("range", 1.0, drift=drift, **changes) for drift in drifts]


def of_task(drifts: Sequence[float | None], **changes: Any) -> Steadiness:
    """A run of this task alone."""
    return steadiness({"task": of_drifts(drifts, **changes)})["task"]


def forks(*courses: Course | None) -> list[TaskSummary]:
    return [make_summary("range", 1.0, course=course) for course in courses]


def test_forks_that_all_got_faster_had_not_settled():
    found = of_task([math.log(0.66), math.log(0.65), math.log(0.67)])
    assert (found.state, found.trend) == ("not steady", "not warmed up")
    assert found.text == "was still getting faster: last third 34 % faster than the first"


def test_forks_that_all_got_slower_are_drifting():
    found = of_task([math.log(1.19), math.log(1.2), math.log(1.21)])
    assert (found.state, found.trend) == ("not steady", "drifting")
    assert found.text == "was getting slower: last third 20 % slower than the first"


def test_drift_in_one_fork_of_many_is_no_trend():
    assert of_task([0.0, 0.01, -0.01, 0.5]).trend is None


def test_a_significant_drift_of_less_than_five_percent_does_not_matter():
    found = of_task([0.030, 0.031, 0.029])
    assert found.p < 0.001
    assert found.state == "steady"


@pytest.mark.parametrize("drifts", [[], [None, None], [math.log(0.5)], [None, math.log(2)], [0.1, 0.1]])
def test_without_a_spread_over_forks_nothing_is_tested(drifts: list[float | None]):
    assert of_task(drifts).state == "unknown"


def test_what_stalls_and_changing_documents_did_is_not_the_engine_s():
    drifts = [math.log(0.66), math.log(0.65), math.log(0.67)]
    assert of_task(drifts, hits_least=1, hits_most=2).state == "unknown"
    assert (
        of_task(drifts, driver=make_driver(window_s=2.0), stalled=3, stalled_s=1.0, stalled_share=0.5).state
        == "unknown"
    )


def test_the_test_is_adjusted_over_the_rows_of_a_run():
    drifts = of_drifts([-0.2, -0.1, -0.15, -0.05, -0.12])
    still = of_drifts([0.01, -0.02, 0.03, -0.01, 0.02])
    alone = steadiness({"range": drifts})["range"]
    among = steadiness({"range": drifts, **{f"task {number}": still for number in range(19)}})["range"]
    assert alone.p < 0.05 < among.p == pytest.approx(20 * alone.p)
    assert (alone.state, among.state) == ("not steady", "steady")
    # Holm's method: where others have not settled, they do not count against it.
    cold = steadiness({"range": drifts, **{f"task {number}": drifts for number in range(19)}})
    assert [one.p for one in cold.values()] == pytest.approx([20 * alone.p] * 20)


def test_a_task_too_short_to_show_it_lacks_the_warm_up_that_its_operation_needs():
    task = Task("range", iterations=100, warmup_iterations=200, clients=2)
    brief = [make_summary("range", 10.0, drift=None, lacking_warmup=lacking) for lacking in (600, 590, 0)]
    found = steadiness({"task": brief})["task"]
    assert (found.state, found.trend) == ("not steady", "little warm-up")
    assert "600 requests" in found.text
    assert advice("little warm-up", brief, task) == "raise warmup-iterations to 500"
    # What is seen says more.
    assert of_task([math.log(0.70), math.log(0.71)], lacking_warmup=600).trend == "not warmed up"
    # A pilot, which measures from the first request, looks at what is seen alone.
    assert settling(make_summary("range", 10.0, lacking_warmup=600, course=FLAT), 0.03) == (0, True)


def test_settled_is_what_stays_within_the_margin_of_the_last_level():
    course = Course("warm-up", 200, 300, (0, 50, 100, 200), (2e6, 1.1e6, 1.02e6, 1e6))
    assert settled_from(course, 0.03) == 100
    assert settled_from(course, 0.01) == 200
    assert settled_from(course, 0.15) == 50
    assert settled_from(course, 2.0) == 0
    assert settled_from(FLAT, 0.03) == 0
    assert settled_from(LATE, 0.03) is None
    assert settled_from(LATE_TRIFLE, 0.03) == 0


def test_levels_that_come_back_count_from_their_return():
    course = Course("warm-up", 200, 300, (0, 150, 200), (1e6, 2e6, 1e6))
    assert settled_from(course, 0.03) == 200


def test_what_one_fork_alone_says():
    assert settling(forks(WARM_UP)[0], 0.03) == (90, True)
    assert settling(forks(LATE)[0], 0.03) == (270, False)
    assert settling(forks(FLAT)[0], 0.03) == (0, True)
    assert settling(forks(None)[0], 0.03) == (0, False)


def test_advice_adds_the_warm_up_that_there_was():
    warmed = msgspec.structs.replace(COUNTED, warmup_iterations=85)
    assert advice("not warmed up", forks(WARM_UP, WARM_UP), COUNTED) == "raise warmup-iterations to about 90"
    assert advice("not warmed up", forks(WARM_UP, WARM_UP), warmed) == "raise warmup-iterations to about 180"


def test_advice_takes_the_slowest_fork_and_counts_by_client():
    slow = Course("warm-up", 203, 300, (0, 203), (2e6, 1e6))
    assert advice("not warmed up", forks(WARM_UP, slow), COUNTED) == "raise warmup-iterations to about 210"
    shared = msgspec.structs.replace(COUNTED, clients=4)
    assert advice("not warmed up", forks(WARM_UP, slow), shared) == "raise warmup-iterations to about 60"


def test_advice_says_at_least_where_no_level_lasted():
    assert (
        advice("not warmed up", forks(LATE, LATE, WARM_UP), COUNTED)
        == "raise warmup-iterations to at least 270"
    )
    assert advice("not warmed up", forks(FLAT, FLAT), COUNTED) == "raise warmup-iterations to at least 300"


def test_advice_for_time_periods_is_in_seconds():
    course = Course("warm-up", 9000, 30_000, (0, 9000), (4e6, 2e6))
    timed = Task("range", time_period=60, warmup_time_period=5)
    assert advice("not warmed up", forks(course), timed) == "raise warmup-time-period to about 50 s"
    shared = msgspec.structs.replace(timed, clients=2)
    assert advice("not warmed up", forks(course), shared) == "raise warmup-time-period to about 30 s"
    paced = msgspec.structs.replace(timed, target_throughput=500)
    assert advice("not warmed up", forks(course), paced) == "raise warmup-time-period to about 30 s"


def test_no_advice_without_a_course_or_a_count():
    assert advice("not warmed up", forks(None), COUNTED) == ""
    assert advice("not warmed up", forks(WARM_UP), Task("bulk")) == ""


@settings(deadline=None)
@given(DRIFTS)
def test_reversed_time_gives_the_same_state(drifts: list[float]):
    forward, backward = of_task(drifts), of_task([-drift for drift in drifts])
    assert forward.state == backward.state
    assert forward.drift == pytest.approx(-backward.drift)


@settings(deadline=None)
@given(DRIFTS)
def test_never_unsteady_below_five_percent_or_with_zero_inside(drifts: list[float]):
    found = of_task(drifts)
    if found.state == "not steady":
        assert abs(found.drift) > math.log(1.05)
        assert not found.low <= 0 <= found.high


@st.composite
def any_course(draw: st.DrawFn) -> Course:
    cuts = draw(st.sets(st.integers(1, 299), max_size=4))
    bounds = (0, *sorted(cuts))
    levels = draw(st.lists(st.floats(1e5, 1e7), min_size=len(bounds), max_size=len(bounds)))
    kind: CourseKind = "flat" if len(bounds) == 1 else "warm-up"
    return Course(kind, bounds[-1], 300, bounds, tuple(levels))


@settings(deadline=None)
@given(course=any_course(), margins=st.tuples(st.floats(0.001, 1), st.floats(0.001, 1)))
def test_a_wider_margin_never_settles_later(course: Course, margins: tuple[float, float]):
    narrow, wide = (settled_from(course, margin) for margin in sorted(margins))
    if narrow is not None:
        assert wide is not None
        assert wide <= narrow <= course.steady_from
