import base64
import hashlib
import json
import re
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from benchctl.jvm.profile import Counted
from benchctl.report.profile import FlameData, flame_data, render_flame

STACK = st.lists(st.sampled_from("abc"), min_size=1, max_size=4).map(tuple)
SIDE = st.dictionaries(STACK, st.integers(1, 9), min_size=1, max_size=6).map(
    lambda stacks: Counted(stacks, sum(stacks.values()), 0)
)
HOSTILE = "</script><script>alert(1)</script><!--&\u2028"


def paths(data: FlameData) -> dict[tuple[str, ...], tuple[int, ...]]:
    """Every drawn frame under its callers, without the root."""
    found: dict[tuple[str, ...], tuple[int, ...]] = {}
    at: list[str] = []
    for depth, frame, *samples in data.nodes:
        at[depth:] = [data.frames[frame]]
        found[tuple(at[1:])] = tuple(samples)
    return found


@given(SIDE)
def test_a_frame_has_the_samples_of_all_stacks_that_begin_with_it(side: Counted):
    drawn = paths(flame_data(["es"], [side]))
    prefixes = {stack[:depth] for stack in side.stacks for depth in range(len(stack) + 1)}
    assert drawn == {
        prefix: (sum(n for stack, n in side.stacks.items() if stack[: len(prefix)] == prefix),)
        for prefix in prefixes
    }


@given(SIDE, SIDE)
def test_two_sides_keep_their_own_samples(one: Counted, two: Counted):
    drawn = paths(flame_data(["es", "os"], [one, two]))
    assert drawn[()] == (one.samples, two.samples)
    alone = paths(flame_data(["os"], [two]))
    assert {path: samples[1:] for path, samples in drawn.items() if samples[1]} == alone


def test_parents_come_before_their_children():
    data = flame_data(["es"], [Counted({("a", "b", "c"): 1, ("a", "d"): 2}, 3, 0)])
    assert data.nodes[0][0] == 0
    assert all(below[0] <= above[0] + 1 for above, below in pairwise(data.nodes))


def test_the_smallest_are_drawn_together_and_the_page_says_so():
    stacks = {("a", f"m{number}"): 1 for number in range(3)} | {("a", "large"): 100_000}
    data = flame_data(["es"], [Counted(stacks, 100_003, 0)])
    assert paths(data)["a", "(smaller ones)"] == (3,)
    assert "1 of them for several" in render_flame("t", [], data)


def test_stacks_may_be_deeper_than_pythons_own():
    data = flame_data(["es"], [Counted({tuple(f"f{depth}" for depth in range(3000)): 1}, 1, 0)])
    assert len(data.nodes) == 3001
    assert render_flame("t", [], data)


def test_no_name_becomes_markup():
    data = flame_data([HOSTILE, "os"], [Counted({(HOSTILE,): 1}, 1, 0), Counted({("a",): 1}, 1, 0)])
    page = render_flame(HOSTILE, [HOSTILE, "\u202e"], data)
    assert "alert(1)</script>" not in page
    assert "\u202e" not in page
    assert page.count("<script") == 2
    embedded = re.search(r'id="profile">(.*?)</script>', page)
    assert embedded is not None
    assert HOSTILE in json.loads(embedded[1])["frames"]


def test_the_page_runs_its_own_script_only_and_loads_nothing():
    page = render_flame("t", [], flame_data(["es"], [Counted({("a",): 1}, 1, 0)]))
    script = re.search(r"<script>(.*?)</script>", page, flags=re.DOTALL)
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)
    assert script is not None
    assert policy is not None
    digest = base64.b64encode(hashlib.sha256(script[1].encode()).digest()).decode()
    assert f"script-src &#39;sha256-{digest}&#39;" in policy[1]
    assert "default-src &#39;none&#39;" in policy[1]
    assert re.findall(r'(?:src|href)="(?!data:,)', page) == []


def test_children_are_in_the_order_of_their_names():
    data = flame_data(["es"], [Counted({("b",): 1, ("c",): 5, ("a",): 3}, 9, 0)])
    assert [data.frames[frame] for _, frame, *_ in data.nodes] == ["all", "a", "b", "c"]
