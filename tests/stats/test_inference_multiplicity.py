import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import false_discovery_control

from benchctl.results.plan import StopSpec
from benchctl.stats.inference import adjusted_p, holm, looks_at
from builders import make_plan, make_record

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
    ("stop", "looks", "expected"),
    [
        (None, 1, 1),
        (StopSpec(budget_s=60), 1, 1),
        (StopSpec(decided=True), 1, None),
        (StopSpec(decided=True), 2, None),
        (None, 2, 2),
        # Its rule was dropped when forks were added.
        (None, None, None),
    ],
)
def test_the_run_that_was_looked_at_most_counts(
    stop: StopSpec | None, looks: int | None, expected: int | None
):
    record = make_record(plan=make_plan(forks=8, stop=stop), looks=looks)
    assert looks_at([make_record(), record]) == looks_at([record, make_record()]) == expected
