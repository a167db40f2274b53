import base64
import hashlib
import json
import re
from collections import Counter
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from benchctl.evidence.profile import Stack
from benchctl.evidence.profile_report import (
    FlameData,
    Form,
    Side,
    difference_text,
    flame_data,
    flame_page,
    profile_text,
)

COLLECT = "org.apache.lucene.search.TopFieldCollector.collect:78"
READ = "org.apache.lucene.util.bkd.DocIdsWriter.readInts24:305"
CALLER = "org.apache.lucene.util.bkd.BKDReader.addAll:540"


def fork(collect: int, read: int) -> Counter[Stack]:
    return Counter({("[search]", COLLECT): collect, ("[search]", CALLER, READ): read})


def lines(text: str) -> list[list[str]]:
    return [line.split() for line in text.splitlines()]


def test_frames_have_their_shares_and_samples():
    shown = lines(profile_text([Side("es", (fork(75, 25),))], Form(), 100))
    assert ["Method", "%", "Samples"] in shown
    assert shown.index([COLLECT, "75.00", "75"]) + 1 == shown.index([READ, "25.00", "25"])


def test_callers_stand_below_and_several_forks_have_a_range():
    side = Side("es", (fork(75, 25), fork(85, 15)))
    shown = lines(profile_text([side], Form(size=2, lines=True), 100))
    rows = [
        [COLLECT, "80.00", "75.00-85.00", "160"],
        ["at", "[search]"],
        [READ, "20.00", "15.00-25.00", "40"],
        ["at", CALLER],
    ]
    at = shown.index(rows[0])
    assert shown[at : at + 4] == rows


def test_inclusive_shares_are_those_of_callers_and_pools_too():
    shown = lines(profile_text([Side("es", (fork(75, 25),))], Form(inclusive=True), 100))
    assert ["[search]", "100.00", "100"] in shown
    assert [CALLER, "25.00", "25"] in shown


def test_what_is_not_in_the_table_is_said():
    text = profile_text([Side("es", (fork(75, 25),), unread=1)], Form(top=1), 100)
    assert "1 more frame: see --top." in text
    assert "1 line of the recordings not parsed." in text
    assert "native code" in text


def test_sides_stand_beside_each_other_with_chance():
    shown = lines(difference_text([Side("es", (fork(75, 25),)), Side("os", (fork(50, 50),))], Form(), 120))
    assert ["Method", "es", "%", "os", "%", "Points", "Chance"] in shown
    assert [COLLECT, "75.00", "50.00", "-25.00", "12.96"] in shown
    assert [READ, "25.00", "50.00", "+25.00", "12.96"] in shown


STACK = st.lists(st.sampled_from("abc"), min_size=1, max_size=4).map(tuple)
SIDE = st.dictionaries(STACK, st.integers(1, 9), min_size=1, max_size=6).map(Counter)
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
def test_a_frame_has_the_samples_of_all_stacks_that_begin_with_it(side: Counter[Stack]):
    drawn = paths(flame_data(["es"], [side]))
    prefixes = {stack[:depth] for stack in side for depth in range(len(stack) + 1)}
    assert drawn == {
        prefix: (sum(n for stack, n in side.items() if stack[: len(prefix)] == prefix),)
        for prefix in prefixes
    }


@given(SIDE, SIDE)
def test_two_sides_keep_their_own_samples(one: Counter[Stack], two: Counter[Stack]):
    drawn = paths(flame_data(["es", "os"], [one, two]))
    assert drawn[()] == (one.total(), two.total())
    alone = paths(flame_data(["os"], [two]))
    assert {path: samples[1:] for path, samples in drawn.items() if samples[1]} == alone


def test_parents_come_before_their_children_and_these_by_name():
    data = flame_data(["es"], [Counter({("b", "c", "d"): 1, ("b", "a"): 2})])
    assert [data.frames[frame] for _, frame, *_ in data.nodes] == ["all", "b", "a", "c", "d"]
    assert data.nodes[0][0] == 0
    assert all(below[0] <= above[0] + 1 for above, below in pairwise(data.nodes))


def page(*sides: Side) -> str:
    return flame_page("run", sides, Form())


def test_stacks_may_be_deeper_than_pythons_own():
    deep = Counter({tuple(f"f{depth}" for depth in range(3000)): 1})
    assert len(flame_data(["es"], [deep]).nodes) == 3001
    assert page(Side("es", (deep,)))


def test_no_name_becomes_markup():
    sides = [Side(HOSTILE, (Counter({(HOSTILE,): 1}),)), Side("os", (Counter({("a",): 1}),))]
    text = flame_page("\u202e", sides, Form())
    assert "alert(1)</script>" not in text
    assert "\u202e" not in text
    assert text.count("<script") == 2
    embedded = re.search(r'id="profile">(.*?)</script>', text)
    assert embedded is not None
    assert HOSTILE in json.loads(embedded[1])["frames"]


def test_the_page_runs_its_own_script_only_and_loads_nothing():
    text = page(Side("es", (Counter({("a",): 1}),)))
    script = re.search(r"<script>(.*?)</script>", text, flags=re.DOTALL)
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', text)
    assert script is not None
    assert policy is not None
    digest = base64.b64encode(hashlib.sha256(script[1].encode()).digest()).decode()
    assert f"script-src &#39;sha256-{digest}&#39;" in policy[1]
    assert "default-src &#39;none&#39;" in policy[1]
    assert re.findall(r'(?:src|href)="(?!data:,)', text) == []
