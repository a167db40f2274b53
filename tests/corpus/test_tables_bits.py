import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from benchctl.corpus.tables import below, mix, words

ANY64 = st.integers(0, 2**64 - 1)


def test_splitmix64_reference_values():
    """The first outputs of SplitMix64 from state 0, as its reference implementation gives them."""
    assert mix(0x9E3779B97F4A7C15) == 0xE220A8397B1DCDAF
    assert mix(2 * 0x9E3779B97F4A7C15) == 0x6E789E6AA1B965F4


@given(stream=ANY64, numbers=st.lists(ANY64, min_size=1, max_size=20))
def test_array_and_integer_arithmetic_agree(stream: int, numbers: list[int]):
    expected = [mix(stream + number * 0x9E3779B97F4A7C15) for number in numbers]
    assert words(stream, np.array(numbers, np.uint64)).tolist() == expected


@given(stream=ANY64, first=st.integers(0, 2**63), bound=st.integers(1, 2**32))
def test_below_stays_below(stream: int, first: int, bound: int):
    drawn = below(stream, np.arange(first, first + 50, dtype=np.uint64), bound)
    assert drawn.min() >= 0
    assert drawn.max() < bound
