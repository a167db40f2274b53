import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchctl.stats import arrays
from benchctl.stats.arrays import ValueCounts

PARTS = st.lists(st.lists(st.integers(-(10**6), 10**6) | st.integers(0, 30), max_size=30), max_size=8)


@pytest.fixture(scope="module")
def often() -> pytest.MonkeyPatch:
    """Counts are merged after every few values instead of every million."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(arrays, "_MOST_PENDING", 5)
        yield patch


@pytest.mark.usefixtures("often")
@settings(deadline=None)
@given(parts=PARTS)
def test_counts_are_those_of_all_values_together(parts: list[list[int]]):
    found = ValueCounts()
    for part in parts:
        found.add(np.asarray(part, dtype=np.int64))
    everything = [value for part in parts for value in part]
    values, counts = found.pairs()
    expected, expected_counts = np.unique(np.asarray(everything, dtype=np.int64), return_counts=True)
    assert values.tolist() == expected.tolist()
    assert counts.tolist() == expected_counts.tolist()
    assert (found.size, found.grid) == (len(everything), 1)


@pytest.mark.usefixtures("often")
@settings(deadline=None)
@given(parts=PARTS, most=st.integers(1, 20))
def test_too_many_values_are_rounded_alike_whenever_they_came(parts: list[list[int]], most: int):
    found = ValueCounts(most)
    for part in parts:
        found.add(np.asarray(part, dtype=np.int64))
    values, counts = found.pairs()
    everything = np.asarray([value for part in parts for value in part], dtype=np.int64)
    assert values.size <= most
    assert counts.sum() == everything.size
    if found.grid > 1:
        assert np.all(values % found.grid == 0)
    # Rounded down in several steps, from a fine grid to a coarse one, as in one.
    assert np.repeat(values, counts).tolist() == np.sort(found.rounded(everything)).tolist()


def test_the_grid_goes_from_nanoseconds_to_microseconds_and_up_by_tens():
    found = ValueCounts(most=3)
    found.add(np.array([1_000, 1_001, 1_002]))
    assert (found.pairs()[0].tolist(), found.grid) == ([1_000, 1_001, 1_002], 1)
    found.add(np.array([1_600, 2_700]))
    assert (found.pairs()[0].tolist(), found.grid) == ([1_000, 2_000], 1_000)
    found.add(np.array([15_001, 17_000]))
    assert (found.pairs()[0].tolist(), found.grid) == ([0, 10_000], 10_000)
    assert found.rounded(np.array([10_000, 9_999])).tolist() == [10_000, 0]


def test_what_was_added_is_not_kept():
    mine = np.array([1, 2])
    found = ValueCounts()
    found.add(mine)
    mine[:] = 9
    assert found.pairs()[0].tolist() == [1, 2]
