import math

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchctl.results.figures import Course, CourseKind, TaskSummary
from benchctl.stats.steady import Steadiness, advice, settled_from, settling, steadiness
from benchctl.track.model import Task
from builders import make_summary

DRIFTS = st.lists(st.floats(-2, 2), min_size=1, max_size=20)
COUNTED = Task("range", iterations=300)

FLAT = Course("flat", 0, 300, (0,), (1e6,))
WARM_UP = Course("warm-up", 90, 300, (0, 90), (1.5e6, 1e6))
QUICK = Course("warm-up", 3, 300, (0, 3), (1.5e6, 1e6))
SLOWER = Course("slowdown", 100, 300, (0, 100), (1e6, 1.2e6))
LATE = Course("no steady state", 270, 300, (0, 270), (2e6, 1e6))
# Until a late compile that brought 1.5 %.
LATE_TRIFLE = Course("no steady state", 270, 300, (0, 270), (1.015e6, 1e6))


def with_drifts(drifts: list[float | None]) -> Steadiness:
    return steadiness([make_summary("range", 1.0, drift=drift) for drift in drifts])


def forks(*courses: Course | None, drift: float = 0.0) -> list[TaskSummary]:
    return [make_summary("range", 1.0, course=course, drift=drift) for course in courses]


def test_forks_that_all_got_faster_had_not_settled():
    found = with_drifts([math.log(0.66), math.log(0.65), math.log(0.67)])
    assert found.state == "not steady"
    assert found.text == "was still getting faster: last third 34 % faster than the first"
    assert found.kind is None


def test_forks_that_all_got_slower():
    found = with_drifts([math.log(1.2)] * 3)
    assert found.text == "was getting slower: last third 20 % slower than the first"


def test_drift_in_one_fork_of_many_is_no_trend():
    assert with_drifts([0.0, 0.01, -0.01, 0.5]).state == "steady"


def test_a_precise_but_small_drift_does_not_matter():
    assert with_drifts([0.030, 0.031, 0.029]).state == "steady"


def test_one_fork_needs_ten_percent():
    assert with_drifts([math.log(1.09)]).state == "steady"
    assert with_drifts([math.log(1.11)]).state == "not steady"


def test_no_fork_with_enough_samples():
    assert with_drifts([None, None]).state == "unknown"
    assert steadiness([]).state == "unknown"
    assert with_drifts([None, math.log(2)]).state == "not steady"


def test_a_figure_that_half_of_the_forks_are_far_from_is_not_the_steady_one():
    found = steadiness(forks(WARM_UP, WARM_UP, FLAT, FLAT))
    assert (found.state, found.kind, found.kinds) == ("not steady", "inconsistent", {"warm-up": 2, "flat": 2})
    assert found.text == (
        "got faster until request 90 of 300 in 2 of 4 forks; "
        "a request takes 15 % longer on average than at the end"
    )
    assert steadiness(forks(WARM_UP, FLAT, FLAT)).state == "steady"


def test_forks_that_a_host_moved_either_way_have_settled():
    assert steadiness(forks(WARM_UP, SLOWER, FLAT)).state == "steady"
    found = steadiness(forks(WARM_UP, SLOWER, WARM_UP))
    assert found.text == (
        "got faster until request 90 of 300 in 2 of 3 forks; a request takes 15 % longer on average than at "
        "the end"
    )


def test_a_warm_up_that_hardly_moves_the_figure_is_no_reason_to_doubt_it():
    found = steadiness(forks(QUICK, QUICK, QUICK))
    assert (found.state, found.kind, found.text, found.remark) == ("steady", "warm-up", "", "")
    assert found.off == pytest.approx(math.log(1.005))


def test_a_late_compile_that_brought_little_flags_nothing():
    found = steadiness(forks(LATE_TRIFLE, LATE_TRIFLE))
    assert (found.state, found.kind) == ("steady", "no steady state")


def test_levels_that_still_changed_at_the_end():
    found = steadiness(forks(LATE, LATE, FLAT))
    assert found.text == (
        "was still getting faster when measurement ended in 2 of 3 forks; "
        "a request takes 90 % longer on average than at the end"
    )


def test_one_fork_needs_no_count_of_forks():
    text = steadiness(forks(SLOWER)).text
    assert text.startswith("got slower until request 100 of 300; a request takes 6 % less")


def test_a_drift_over_forks_counts_where_single_courses_are_too_noisy():
    found = steadiness(forks(FLAT, FLAT, FLAT, drift=math.log(0.8)))
    assert (found.state, found.kind) == ("not steady", "flat")
    assert found.text == "was still getting faster: last third 20 % faster than the first"


def test_where_levels_went_both_ways_the_drift_gives_the_direction():
    found = steadiness(forks(SLOWER, SLOWER, FLAT, drift=math.log(0.8)))
    assert found.text.startswith("was still getting faster: last third")


@pytest.mark.parametrize(
    ("summaries", "trend"),
    [
        (forks(WARM_UP, WARM_UP, WARM_UP), "not warmed up"),
        (forks(WARM_UP, LATE, FLAT), "not warmed up"),
        (forks(WARM_UP, WARM_UP, WARM_UP, SLOWER), "not warmed up"),
        (forks(WARM_UP, SLOWER, WARM_UP, SLOWER), "drifting"),
        (forks(SLOWER, SLOWER, SLOWER), "drifting"),
        (forks(None, None, drift=math.log(0.7)), "not warmed up"),
        (forks(None, None, drift=math.log(1.4)), "drifting"),
        (forks(FLAT, FLAT), None),
    ],
)
def test_forks_that_agree_on_getting_faster_had_not_warmed_up(
    summaries: list[TaskSummary], trend: str | None
):
    assert steadiness(summaries).trend == trend


def test_a_lasting_slowdown_is_told_though_the_figure_stands():
    early = Course("slowdown", 10, 300, (0, 10), (1e6, 1.2e6))
    found = steadiness(forks(early, early, FLAT))
    assert found.state == "steady"
    assert found.remark == "slowed down in 2 of 3 forks: its last level is 20 % slower than its fastest"


def test_forks_that_disagree_are_told_where_it_matters():
    found = steadiness(forks(FLAT, FLAT, SLOWER))
    assert (found.state, found.kind) == ("steady", "inconsistent")
    assert found.remark == "is inconsistent from fork to fork: flat in 2, slowdown in 1 of 3"
    assert steadiness(forks(FLAT, FLAT, QUICK)).remark == ""
    assert steadiness(forks(FLAT, FLAT, LATE_TRIFLE)).remark == ""


def test_records_from_before_courses_were_kept_are_judged_by_drift_alone():
    assert steadiness(forks(None, None, drift=math.log(0.7))).state == "not steady"
    assert steadiness(forks(None, WARM_UP)).kinds == {"warm-up": 1}


def test_a_task_too_short_to_show_it_lacks_the_warm_up_that_its_operation_needs():
    task = Task("range", iterations=100, warmup_iterations=200, clients=2)
    brief = [make_summary("range", 10.0, lacking_warmup=lacking) for lacking in (600, 590, 0)]
    found = steadiness(brief)
    assert (found.state, found.trend) == ("not steady", "little warm-up")
    assert "600 requests" in found.text
    assert advice(brief, task) == "raise warmup-iterations to 500"
    # What is seen says more.
    assert (
        steadiness([make_summary("range", 10.0, lacking_warmup=600, drift=math.log(0.7))]).trend
        == "not warmed up"
    )
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


def test_a_course_without_levels_that_drifted_had_not_settled():
    assert settling(forks(FLAT, drift=math.log(0.8))[0], 0.03) == (300, False)
    assert settling(forks(FLAT, drift=math.log(0.95))[0], 0.03) == (0, True)


def test_advice_adds_the_warm_up_that_there_was():
    warmed = msgspec.structs.replace(COUNTED, warmup_iterations=85)
    assert advice(forks(WARM_UP, WARM_UP), COUNTED) == "raise warmup-iterations to about 90"
    assert advice(forks(WARM_UP, WARM_UP), warmed) == "raise warmup-iterations to about 180"


def test_advice_takes_the_slowest_fork_and_counts_by_client():
    slow = Course("warm-up", 203, 300, (0, 203), (2e6, 1e6))
    assert advice(forks(WARM_UP, slow), COUNTED) == "raise warmup-iterations to about 210"
    shared = msgspec.structs.replace(COUNTED, clients=4)
    assert advice(forks(WARM_UP, slow), shared) == "raise warmup-iterations to about 60"


def test_advice_says_at_least_where_no_level_lasted():
    assert advice(forks(LATE, LATE, WARM_UP), COUNTED) == "raise warmup-iterations to at least 270"
    assert advice(forks(FLAT, FLAT), COUNTED) == "raise warmup-iterations to at least 300"


def test_advice_for_time_periods_is_in_seconds():
    course = Course("warm-up", 9000, 30_000, (0, 9000), (4e6, 2e6))
    timed = Task("range", time_period=60, warmup_time_period=5)
    assert advice(forks(course), timed) == "raise warmup-time-period to about 50 s"
    shared = msgspec.structs.replace(timed, clients=2)
    assert advice(forks(course), shared) == "raise warmup-time-period to about 30 s"
    paced = msgspec.structs.replace(timed, target_throughput=500)
    assert advice(forks(course), paced) == "raise warmup-time-period to about 30 s"


def test_no_advice_without_a_course_or_a_count():
    assert advice(forks(None), COUNTED) == ""
    assert advice(forks(WARM_UP), Task("bulk")) == ""


@settings(deadline=None)
@given(DRIFTS)
def test_reversed_time_gives_the_same_state(drifts: list[float]):
    forward, backward = with_drifts(drifts), with_drifts([-drift for drift in drifts])
    assert forward.state == backward.state
    assert forward.drift == pytest.approx(-backward.drift)


@settings(deadline=None)
@given(DRIFTS)
def test_never_unsteady_below_five_percent_or_with_zero_inside(drifts: list[float]):
    found = with_drifts(drifts)
    if found.state == "not steady":
        assert abs(found.drift) > math.log(1.05)
        assert found.low is None or not found.low <= 0 <= found.high


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
