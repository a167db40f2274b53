import base64
import hashlib
import json
import re
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from benchctl.evidence.profile import Counted, differences, shares
from benchctl.evidence.profile_report import (
    FlameData,
    Form,
    Heading,
    difference_lines,
    flame_data,
    frame_words,
    render_flame,
    summary_lines,
)

COLLECT = "org.apache.lucene.search.TopFieldCollector.collect:78"
READ = "org.apache.lucene.util.bkd.DocIdsWriter.readInts24:305"
CALLER = "org.apache.lucene.util.bkd.BKDReader.addAll:540"


def fork(collect: int, read: int) -> Counted:
    return Counted(
        {("[search]", COLLECT): collect, ("[search]", CALLER, READ): read}, 2 * (collect + read), 0
    )


def test_the_table_is_that_of_luceneutil():
    heading = Heading("es", 1, 100, 200)
    assert summary_lines(heading, shares([fork(75, 25)]), Form()) == [
        "Profile of es, 1 fork:",
        "PROFILE SUMMARY from 100 events (total: 200)",
        "  profile.mode=cpu",
        "  profile.count=30",
        "  profile.stacksize=1",
        "  profile.linenumbers=false",
        "  profile.inclusive=false",
        "  profile.threads=all",
        "  profile.task=all, while measured",
        "PERCENT  CPU SAMPLES  STACK",
        " 75.00%           75  org.apache.lucene.search.TopFieldCollector#collect():78",
        " 25.00%           25  org.apache.lucene.util.bkd.DocIdsWriter#readInts24():305",
        "",
        "With this many samples, a share of 5% is known to within 4.3 points at best.",
    ]


def test_callers_stand_below_and_several_forks_have_a_range():
    heading = Heading("es", 2, 200, 400)
    lines = summary_lines(heading, shares([fork(75, 25), fork(85, 15)], size=2), Form(size=2, lines=True))
    assert lines[9:14] == [
        "PERCENT         FORKS  CPU SAMPLES  STACK",
        " 80.00%  75.00-85.00%          160  org.apache.lucene.search.TopFieldCollector#collect():78",
        "                                      at [search]",
        " 20.00%  15.00-25.00%           40  org.apache.lucene.util.bkd.DocIdsWriter#readInts24():305",
        "                                      at org.apache.lucene.util.bkd.BKDReader#addAll():540",
    ]


def test_what_is_not_in_the_table_is_said():
    heading = Heading(
        "es", 1, 100, 200, cut=3, unread=1, native=12, native_frame="java.util.zip.Inflater.inflate"
    )
    text = "\n".join(summary_lines(heading, shares([fork(75, 25)]), Form(top=1)))
    assert "1 more line with 25.00% together: see --top." in text
    assert "12 samples of es in native code, most in java.util.zip.Inflater#inflate(): --mode native" in text
    assert "3 stacks deeper than what is recorded" in text
    assert "1 line of the recordings not understood." in text


def test_native_samples_are_no_times():
    lines = summary_lines(Heading("es", 1, 100, 200, native=100), shares([fork(75, 25)]), Form(mode="native"))
    assert lines[9].split()[1:3] == ["NATIVE", "SAMPLES"]
    assert any("no shares of time" in line for line in lines)
    assert not any("Not in these shares" in line for line in lines)


def test_sides_stand_beside_each_other_and_chance_is_marked():
    found = differences([fork(75, 25)], [fork(50, 50)])
    lines = difference_lines(Heading("es", 1, 100, 200), Heading("os", 1, 100, 200), found, Form())
    assert lines[9:14] == [
        "Profile of os, 1 fork:",
        "PROFILE SUMMARY from 100 events (total: 200)",
        "    es      os  POINTS  CHANCE   STACK",
        "75.00%  50.00%  -25.00   12.96   org.apache.lucene.search.TopFieldCollector#collect():78",
        "25.00%  50.00%  +25.00   12.96   org.apache.lucene.util.bkd.DocIdsWriter#readInts24():305",
    ]
    close = differences([fork(75, 25)], [fork(74, 26)])
    lines = difference_lines(Heading("es", 1, 100, 200), Heading("os", 1, 100, 200), close, Form(top=1))
    assert "12.08~ " in lines[12]
    assert lines[-1] == "1 of 2 frames shown."


def test_frames_that_are_no_methods_stay_as_they_are():
    assert frame_words("[search]") == "[search]"
    assert frame_words("(unknown)") == "(unknown)"
    assert frame_words("a.b.C.d:3") == "a.b.C#d():3"


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
