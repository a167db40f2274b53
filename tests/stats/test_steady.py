import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchctl.stats.steady import steadiness

DRIFTS = st.lists(st.floats(-2, 2), min_size=1, max_size=20)


def test_forks_that_all_got_faster_had_not_settled():
    found = steadiness([math.log(0.66), math.log(0.65), math.log(0.67)])
    assert found.state == "not steady"
    assert found.text == "still getting faster: last third 34 % faster than the first"


def test_forks_that_all_got_slower():
    found = steadiness([math.log(1.2)] * 3)
    assert found.text == "getting slower: last third 20 % slower than the first"


def test_drift_in_one_fork_of_many_is_no_trend():
    assert steadiness([0.0, 0.01, -0.01, 0.5]).state == "steady"


def test_a_precise_but_small_drift_does_not_matter():
    assert steadiness([0.030, 0.031, 0.029]).state == "steady"


def test_one_fork_needs_ten_percent():
    assert steadiness([math.log(1.09)]).state == "steady"
    assert steadiness([math.log(1.11)]).state == "not steady"


def test_no_fork_with_enough_samples():
    assert steadiness([None, None]).state == "unknown"
    assert steadiness([]).state == "unknown"
    assert steadiness([None, math.log(2)]).state == "not steady"


@settings(deadline=None)
@given(DRIFTS)
def test_reversed_time_gives_the_same_state(drifts: list[float]):
    forward, backward = steadiness(drifts), steadiness([-drift for drift in drifts])
    assert forward.state == backward.state
    assert forward.drift == pytest.approx(-backward.drift)


@settings(deadline=None)
@given(DRIFTS)
def test_never_unsteady_below_five_percent_or_with_zero_inside(drifts: list[float]):
    found = steadiness(drifts)
    if found.state == "not steady":
        assert abs(found.drift) > math.log(1.05)
        assert found.low is None or not found.low <= 0 <= found.high
