"""Expectations keep their promises: rules from intervals, and error rates by simulation."""

import math
from typing import get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchctl.experiment.judge import judge_relation, support, together
from benchctl.experiment.record import Toward
from benchctl.stats.inference import Contrast, contrast

MARGIN = 0.05
LIMIT = math.log1p(MARGIN)
REPETITIONS = 2000
FORK_SD = 0.03
RELATIONS: tuple[Toward, ...] = get_args(Toward)
MOST = 0.065

SPEEDS = st.builds(Contrast, st.floats(-0.3, 0.3), st.floats(0.001, 0.2), st.floats(2, 40))


def sure(estimate: float, error: float = 0.001) -> Contrast:
    return Contrast(estimate, error, 20.0)


@pytest.mark.parametrize(
    ("estimate", "slower", "faster", "alike", "different"),
    [
        (-0.20, "confirmed", "refuted", "refuted", "confirmed"),
        (-0.01, "refuted", "refuted", "confirmed", "refuted"),
        (0.00, "refuted", "refuted", "confirmed", "refuted"),
        (0.01, "refuted", "refuted", "confirmed", "refuted"),
        (0.20, "refuted", "confirmed", "refuted", "confirmed"),
    ],
)
def test_a_sure_estimate_decides_every_relation(
    estimate: float, slower: str, faster: str, alike: str, different: str
):
    found = {relation: judge_relation(relation, sure(estimate), LIMIT) for relation in RELATIONS}
    assert found == {"slower": slower, "faster": faster, "alike": alike, "different": different}


@pytest.mark.parametrize("relation", RELATIONS)
def test_a_wide_interval_around_nothing_leaves_every_relation_open(relation: Toward):
    assert judge_relation(relation, sure(0.0, 0.1), LIMIT) == "inconclusive"


def test_slower_is_confirmed_without_its_size_being_known():
    """The 95 % interval lies below 0, but reaches into the margin."""
    assert judge_relation("slower", sure(-0.08, 0.03), LIMIT) == "confirmed"


def test_the_margin_is_a_ratio_alike_in_both_directions():
    just_inside = sure(-math.log(1.0499), 1e-7)
    just_outside = sure(-math.log(1.0501), 1e-7)
    assert judge_relation("alike", just_inside, LIMIT) == "confirmed"
    assert judge_relation("alike", just_outside, LIMIT) == "refuted"


@pytest.mark.parametrize("comparisons", [1, 8])
def test_a_difference_that_is_certain_and_within_the_margin_is_alike_and_nothing_else(comparisons: int):
    """With eight comparisons its interval is too wide to refute a slowdown, which is not confirmed either."""
    speed = sure(-0.025, 0.01)
    assert speed.interval(0.90)[0] > -LIMIT > speed.interval(1 - 0.10 / 8)[0]
    assert speed.interval(0.95)[1] < 0
    found = {one: judge_relation(one, speed, LIMIT, comparisons) for one in RELATIONS}
    otherwise = "refuted" if comparisons == 1 else "inconclusive"
    assert found == {"slower": otherwise, "faster": "refuted", "alike": "confirmed", "different": otherwise}
    mirrored = judge_relation("faster", sure(0.025, 0.01), LIMIT, comparisons)
    assert mirrored == otherwise


@given(SPEEDS, st.integers(1, 8))
def test_nothing_is_confirmed_to_be_two_things(speed: Contrast, comparisons: int):
    confirmed = {one for one in RELATIONS if judge_relation(one, speed, LIMIT, comparisons) == "confirmed"}
    assert confirmed in (set(), {"alike"}, {"slower", "different"}, {"faster", "different"}, {"different"})


@given(SPEEDS, st.sampled_from(RELATIONS), st.integers(1, 8))
def test_one_of_several_comparisons_is_confirmed_alike_and_refuted_less(
    speed: Contrast, relation: Toward, comparisons: int
):
    alone, one_of_several = (judge_relation(relation, speed, LIMIT, each) for each in (1, comparisons))
    assert (alone == "confirmed") == (one_of_several == "confirmed")
    assert one_of_several in {alone, "inconclusive"}


@given(SPEEDS)
def test_faster_is_slower_in_a_mirror(speed: Contrast):
    mirrored = Contrast(-speed.estimate, speed.error, speed.df)
    assert judge_relation("faster", speed, LIMIT) == judge_relation("slower", mirrored, LIMIT)
    for relation in ("alike", "different"):
        assert judge_relation(relation, speed, LIMIT) == judge_relation(relation, mirrored, LIMIT)


@given(SPEEDS, st.sampled_from(RELATIONS))
def test_what_is_confirmed_has_a_p_of_at_most_five_percent(speed: Contrast, relation: Toward):
    p = support(relation, speed, LIMIT)
    assert 0 <= p <= 1
    if judge_relation(relation, speed, LIMIT) == "confirmed":
        assert p <= 0.05 + 1e-9


@given(SPEEDS)
def test_what_goes_the_wrong_way_supports_nothing(speed: Contrast):
    wrong: Toward = "slower" if speed.estimate > 0 else "faster"
    assert support(wrong, speed, LIMIT) == (1.0 if speed.estimate else speed.p)


@pytest.mark.parametrize(
    ("outcomes", "expected"),
    [
        (["confirmed", "confirmed"], "confirmed"),
        (["confirmed", "inconclusive"], "inconclusive"),
        (["inconclusive", "refuted", "confirmed"], "refuted"),
        ([], "inconclusive"),
    ],
)
def test_all_must_be_confirmed_and_one_refutes(outcomes: list[str], expected: str):
    assert together(outcomes) == expected


def share(relation: Toward, outcome: str, effect: float, forks: int, sides: int = 2) -> float:
    """How often an outcome comes of a true effect; of four groups, of a difference of differences."""
    generator = np.random.default_rng([forks, sides, round(1e6 * (1 + effect)), RELATIONS.index(relation)])
    drawn = generator.normal(0, FORK_SD, (REPETITIONS, sides, forks))
    drawn[:, 1] += effect
    weights = [-1.0, 1.0, 1.0, -1.0][:sides]
    found = [contrast(list(groups), weights) for groups in drawn]
    return float(np.mean([judge_relation(relation, one, LIMIT) == outcome for one in found if one]))


@pytest.mark.parametrize("sides", [2, 4])
@pytest.mark.parametrize("forks", [3, 8])
class TestErrorRates:
    @pytest.mark.parametrize("relation", ["slower", "faster", "different"])
    def test_no_effect_is_rarely_confirmed_to_be_one(self, relation: Toward, forks: int, sides: int):
        assert share(relation, "confirmed", 0.0, forks, sides) <= MOST

    @pytest.mark.parametrize(("relation", "effect"), [("slower", -LIMIT), ("faster", LIMIT)])
    def test_an_effect_beyond_the_margin_is_rarely_refuted(
        self, relation: Toward, effect: float, forks: int, sides: int
    ):
        assert share(relation, "refuted", effect, forks, sides) <= MOST

    def test_a_difference_of_the_margin_is_rarely_confirmed_to_be_alike(self, forks: int, sides: int):
        assert share("alike", "confirmed", LIMIT, forks, sides) <= MOST

    def test_a_difference_within_the_margin_is_rarely_refuted_to_be_alike(self, forks: int, sides: int):
        assert share("alike", "refuted", LIMIT, forks, sides) <= MOST

    def test_a_difference_of_the_margin_is_rarely_refuted_to_be_one(self, forks: int, sides: int):
        assert share("different", "refuted", LIMIT, forks, sides) <= MOST


@pytest.mark.parametrize(("relation", "effect"), [("slower", -LIMIT), ("faster", LIMIT), ("alike", LIMIT)])
@pytest.mark.parametrize("comparisons", [2, 8])
def test_however_many_comparisons_a_true_statement_has_it_is_rarely_refuted(
    relation: Toward, effect: float, comparisons: int
):
    """At the margin, where each comparison alone is refuted 5 times in 100, all of 8 would be 32 times."""
    repetitions = 1000
    generator = np.random.default_rng([comparisons, RELATIONS.index(relation)])
    drawn = generator.normal(0, FORK_SD, (repetitions, comparisons, 2, 8))
    drawn[:, :, 1] += effect
    refuted = 0
    for experiment in drawn:
        speeds = (contrast(list(groups), [-1.0, 1.0]) for groups in experiment)
        found = [judge_relation(relation, one, LIMIT, comparisons) for one in speeds if one]
        refuted += together(found) == "refuted"
    assert 0 < refuted / repetitions <= MOST


@pytest.mark.parametrize(
    ("relation", "effect"), [("slower", -0.2), ("faster", 0.2), ("different", 0.2), ("alike", 0.0)]
)
def test_eight_forks_find_what_is_there(relation: Toward, effect: float):
    assert share(relation, "confirmed", effect, 8) >= 0.8
