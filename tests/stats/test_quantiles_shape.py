"""Shares and quantiles are those of the raw samples, whatever they were counted to."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from benchctl.stats.arrays import ValueCounts
from benchctl.stats.quantiles import linear_quantiles

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
