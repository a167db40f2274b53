from hypothesis import given
from hypothesis import strategies as st

from benchctl.evidence.profile import collapse

# What `recording` makes of a frame has neither a separator nor a line end in it, and is never empty.
FRAME = st.text(
    st.characters(codec="utf-8", exclude_characters=";\n\r", categories=("L", "N", "P", "S")), min_size=1
)
STACKS = st.dictionaries(
    st.lists(FRAME, min_size=1, max_size=6).map(tuple), st.integers(1, 10**9), max_size=10
)


@given(STACKS)
def test_collapsed_stacks_come_back(stacks: dict[tuple[str, ...], int]):
    lines = (line.rpartition(" ") for line in collapse(stacks).split("\n") if line)
    assert {tuple(stack.split(";")): int(count) for stack, _, count in lines} == stacks


def test_the_form_is_what_flame_graph_tools_read():
    assert collapse({("b.B.run", "c.C.leaf:3"): 2, ("a.A.run",): 7}) == "a.A.run 7\nb.B.run;c.C.leaf:3 2\n"
