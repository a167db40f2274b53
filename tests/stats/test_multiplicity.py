import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import false_discovery_control

from benchctl.results.plan import StopSpec
from benchctl.stats.inference import Contrast
from benchctl.stats.multiplicity import MOST_BLOCKS, adjusted_p, every_block, holm, looks_at
from builders import make_fork, make_plan, make_record

P_VALUES = st.lists(st.floats(0, 1), min_size=1, max_size=40)


@settings(deadline=None)
@given(P_VALUES)
def test_benjamini_hochberg_is_the_one_of_scipy(values: list[float]):
    assert adjusted_p(values, "benjamini-hochberg") == pytest.approx(list(false_discovery_control(values)))


def test_holm_by_hand():
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])


@settings(deadline=None)
@given(P_VALUES)
def test_holm_lies_between_benjamini_hochberg_and_bonferroni(values: list[float]):
    for raw, mild, strict in zip(values, adjusted_p(values, "benjamini-hochberg"), holm(values), strict=True):
        assert raw - 1e-12 <= mild <= strict + 1e-12
        assert strict <= min(1.0, raw * len(values)) + 1e-12


def test_an_empty_family():
    assert adjusted_p([], "holm") == []


@pytest.mark.parametrize(
    ("blocks", "most", "looks"),
    [(MOST_BLOCKS, None, every_block(MOST_BLOCKS)), (7, 12, every_block(12))],
)
def test_a_run_until_decided_is_looked_at_after_every_block(blocks: int, most: int | None, looks: int):
    plan = make_plan(forks=blocks, stop=StopSpec(decided=True, most=most))
    record = make_record(plan=plan, forks=tuple(make_fork("es", block) for block in range(blocks)))
    assert looks_at([record]) == looks
    assert looks_at([make_record(looks=3)]) == 3


def test_of_two_runs_the_one_that_widens_intervals_more_decides():
    bounded = make_record(plan=make_plan(forks=5, stop=StopSpec(decided=True, most=5)))
    assert looks_at([bounded, make_record(looks=4)]) == 4
    assert looks_at([bounded, make_record()]) in (1, every_block(5))
    wide = make_record(plan=make_plan(forks=50, stop=StopSpec(decided=True)))
    assert looks_at([bounded, wide, make_record(looks=4)]) == every_block(MOST_BLOCKS)


def test_beyond_its_bound_a_contrast_is_foreseen_at_the_level_for_all_that_there_may_be():
    now = Contrast(0.1, 0.02, 11, every_block(12))
    assert now.foreseen(9, 3).looks == every_block(12)
    assert now.foreseen(12, 1).looks == every_block(MOST_BLOCKS)
