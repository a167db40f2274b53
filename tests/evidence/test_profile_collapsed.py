import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchctl.errors import BenchctlError
from benchctl.evidence.profile import collapse, expand

# What `recording` makes of a frame has neither a separator nor a line end in it, and is never empty.
FRAME = st.text(
    st.characters(codec="utf-8", exclude_characters=";\n\r", categories=("L", "N", "P", "S")), min_size=1
)
STACKS = st.dictionaries(
    st.lists(FRAME, min_size=1, max_size=6).map(tuple), st.integers(1, 10**9), max_size=10
)


@given(STACKS)
def test_collapsed_stacks_come_back(stacks: dict[tuple[str, ...], int]):
    assert expand(collapse(stacks).splitlines(keepends=True)) == stacks


def test_the_form_is_what_flame_graph_tools_read():
    assert collapse({("b.B.run", "c.C.leaf:3"): 2, ("a.A.run",): 7}) == "a.A.run 7\nb.B.run;c.C.leaf:3 2\n"


def test_stacks_that_are_there_twice_are_added_up():
    assert expand(["a;b 2\n", "\n", "a;b 3\n"]) == {("a", "b"): 5}


@pytest.mark.parametrize("line", ["a;b", "a;b two", " 3", "a;b ²"])
def test_a_line_without_a_stack_or_a_count_is_an_error(line: str):
    with pytest.raises(BenchctlError, match="line 2 is not a collapsed stack"):
        expand(["a 1", line])


@given(st.text(max_size=60))
def test_garbage_raises_nothing_but_our_own_error(garbage: str):
    try:
        found = expand(garbage.split("\n"))
    except BenchctlError:
        return
    assert all(count >= 0 for count in found.values())
