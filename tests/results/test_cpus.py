"""Lists of CPUs, as the kernel writes them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchctl.results.plan import cpu_list, parse_cpus


@given(st.sets(st.integers(0, 300), min_size=1))
def test_what_is_written_is_read_back(cpus: set[int]):
    assert parse_cpus(cpu_list(cpus)) == tuple(sorted(cpus))


@pytest.mark.parametrize(
    ("cpus", "text"), [((3,), "3"), ((0, 1, 2), "0-2"), ((5, 0, 1, 5), "0-1,5"), ((0, 2, 4), "0,2,4")]
)
def test_neighbours_are_a_range(cpus: tuple[int, ...], text: str):
    assert cpu_list(cpus) == text


def test_a_file_of_the_kernel_ends_with_a_newline():
    assert parse_cpus("0-1,8\n") == (0, 1, 8)


@pytest.mark.parametrize("text", ["", "a", "1-", "-1", "2-1", "1,,2", "0x1", "0-99999999", "1;2"])
def test_anything_else_is_refused(text: str):
    with pytest.raises(ValueError, match="range of CPUs"):
        parse_cpus(text)
