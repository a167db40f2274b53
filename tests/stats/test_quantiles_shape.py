"""Shares and quantiles are those of the raw samples, whatever they were counted to."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchctl.stats.arrays import ValueCounts
from benchctl.stats.quantiles import GroupedCounts, linear_quantiles

times = st.lists(st.integers(0, 10**9), min_size=1, max_size=400)
probabilities = st.lists(st.floats(0, 1), min_size=1, max_size=5)


def counted(values: list[int]):
    found = ValueCounts()
    found.add(np.array(values))
    return found.pairs()


@settings(deadline=None)
@given(raw=times | st.lists(st.integers(0, 5), min_size=1, max_size=400), at=probabilities)
def test_linear_quantiles_are_numpys(raw: list[int], at: list[float]):
    np.testing.assert_allclose(
        linear_quantiles(*counted(raw), at), np.quantile(raw, at), rtol=1e-9, atol=1e-6
    )


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 8_999), st.integers(0, 10**15 - 1)), max_size=200))
def test_groups_keep_their_values_apart(pairs: list[tuple[int, int]]):
    found = GroupedCounts()
    for start in range(0, len(pairs), 7):
        part = np.array(pairs[start : start + 7])
        found.add(part[:, 0], part[:, 1])
    kept = [
        (group, value)
        for group, values, counts in found.groups()
        for value, count in zip(values.tolist(), counts.tolist(), strict=True)
        for _ in range(count)
    ]
    assert kept == sorted(pairs)


def test_too_many_values_lose_digits_but_never_their_group():
    found = GroupedCounts()
    values = np.arange(2_000_000) + 999_000_000
    for group in (0, 8_999):
        found.add(np.full(values.size, group), values)
    groups = list(found.groups())
    assert [group for group, _, _ in groups] == [0, 8_999]
    for _, coarse, counts in groups:
        assert counts.sum() == values.size
        assert coarse.min() >= 998_000_000
        assert np.quantile(np.repeat(coarse, counts), 0.5) == pytest.approx(np.median(values), abs=1_000)


@pytest.mark.parametrize(("group", "value"), [(-1, 5), (9_000, 5), (0, -1), (0, 10**15)])
def test_what_no_group_can_hold_is_refused(group: int, value: int):
    with pytest.raises(ValueError, match="out of range"):
        GroupedCounts().add(np.array([0, group]), np.array([0, value]))
