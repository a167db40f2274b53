"""Ids that repeat: reproducible, as often as told, and never one that was not given before."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchctl.corpus.bulk import ConflictingIds, ConflictPlan

PLANS = st.builds(
    ConflictPlan,
    documents=st.integers(1, 3000),
    probability=st.floats(0, 1),
    shuffled=st.booleans(),
    recency=st.floats(0, 1),
)
SEEDS = st.integers(0, 2**64 - 1)


def taken(plan: ConflictPlan, seed: int, *counts: int) -> tuple[list[int], list[bool]]:
    ids = ConflictingIds(plan, seed)
    parts = [ids.take(count) for count in counts]
    return (
        np.concatenate([numbers for numbers, _ in parts]).tolist(),
        np.concatenate([repeated for _, repeated in parts]).tolist(),
    )


@given(plan=PLANS, seed=SEEDS, cuts=st.lists(st.integers(1, 400), min_size=1, max_size=5))
def test_how_many_are_taken_at_a_time_makes_no_difference(plan: ConflictPlan, seed: int, cuts: list[int]):
    assert taken(plan, seed, *cuts) == taken(plan, seed, sum(cuts))


@given(plan=PLANS, seed=SEEDS)
def test_every_id_is_new_or_was_given_before(plan: ConflictPlan, seed: int):
    numbers, repeated = taken(plan, seed, plan.documents)
    given_before: set[int] = set()
    for number, again in zip(numbers, repeated, strict=True):
        assert (number in given_before) == again
        given_before.add(number)
    assert given_before <= set(range(plan.documents))


@given(documents=st.integers(1, 5000), seed=SEEDS)
def test_shuffled_ids_without_repetitions_are_a_permutation(documents: int, seed: int):
    numbers, _ = taken(ConflictPlan(documents, 0.0, shuffled=True), seed, documents)
    assert sorted(numbers) == list(range(documents))


@given(plan=PLANS, seed=SEEDS)
def test_when_all_ids_are_given_every_one_repeats(plan: ConflictPlan, seed: int):
    numbers, repeated = taken(plan, seed, 2 * plan.documents)
    assert len(set(numbers)) == repeated.count(False) <= plan.documents
    assert set(numbers) <= set(range(plan.documents))


def test_new_ids_count_up_unless_they_are_shuffled():
    assert taken(ConflictPlan(50, 0.0), 1, 50)[0] == list(range(50))
    shuffled, _ = taken(ConflictPlan(5000, 0.0, shuffled=True), 1, 5000)
    # A random order puts hardly an id where it was, and knows no trend.
    assert sum(place == number for place, number in enumerate(shuffled)) < 10
    assert abs(np.corrcoef(shuffled, range(5000))[0, 1]) < 0.05


@pytest.mark.parametrize("probability", [0.0, 0.25, 1.0])
def test_ids_repeat_as_often_as_told(probability: float):
    _, repeated = taken(ConflictPlan(20_000, probability), 3, 20_000)
    assert not repeated[0]
    assert np.mean(repeated) == pytest.approx(probability, abs=0.01)


def ages(recency: float) -> np.ndarray:
    """How far back repeated ids lie, as a share of those given by then."""
    numbers, repeated = taken(ConflictPlan(40_000, 0.5, recency=recency), 5, 40_000)
    given = np.cumsum(~np.array(repeated))
    late = np.array(repeated) & (given > 1000)
    return 1 - np.array(numbers)[late] / given[late]


def test_without_recency_all_earlier_ids_repeat_alike():
    counts, _ = np.histogram(ages(0.0), bins=10, range=(0, 1))
    assert counts.min() > 0.9 * counts.mean()
    assert counts.max() < 1.1 * counts.mean()


@pytest.mark.parametrize("recency", [0.001, 0.1, 0.5, 1.0])
def test_with_recency_the_age_of_repeated_ids_is_exponential(recency: float):
    found = ages(recency)
    rate = 30 * recency
    assert np.median(found) == pytest.approx(-np.log((1 + np.exp(-rate)) / 2) / rate, rel=0.1)
    assert found.mean() == pytest.approx(1 / rate - 1 / np.expm1(rate), rel=0.1)
