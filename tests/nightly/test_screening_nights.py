import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchctl.nightly.screening import nights_of
from nightly.made import series

NIGHTS = st.lists(st.lists(st.floats(0.01, 1e6), max_size=6), max_size=12)


@given(NIGHTS)
def test_every_night_is_the_mean_and_the_spread_of_the_logarithms_of_its_forks(nights: list[list[float]]):
    found = nights_of(series(nights))
    there = {number: np.log(values) for number, values in enumerate(nights, start=1) if values}
    assert found.numbers.tolist() == list(there)
    assert found.counts.tolist() == [logs.size for logs in there.values()]
    assert found.means == pytest.approx([logs.mean() for logs in there.values()])
    assert found.squares == pytest.approx([logs.var() * logs.size for logs in there.values()], abs=1e-7)


def test_the_fork_sd_is_pooled_within_nights_whatever_lies_between_them():
    found = nights_of(series([[1.0, 1.1, 1.2], [50.0, 55.0, 60.0], [7.0]]))
    assert found.fork_sd() == pytest.approx(np.log([1.0, 1.1, 1.2]).std(ddof=1))
