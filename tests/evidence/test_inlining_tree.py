"""Trees: of excerpts, of several JDKs, of random lines; what their words mean, and what of them matters."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from benchctl.evidence.inlining_log import Call, Outcome, Receiver, Tree, cut_tree, outcome_of
from evidence.trees import ROOT, read_tree, trees
from jvm_logs import plain, tree_lines

# Excerpts of "Elasticsearch Benchmarking, Part 4: Inlining" (blunders.io, 2024), whose lines HotSpot printed.
GOLDEN = Path(__file__).parent / "golden"


def excerpt(name: str) -> Tree:
    return read_tree([(GOLDEN / name).read_bytes()])


def test_the_excerpt_of_the_blog_is_one_tree():
    tree = excerpt("blog-addall.txt")
    assert tree.unread == ()
    assert len(tree.calls) == 157
    assert [call.depth for call in tree.calls].count(0) == 1
    assert max(call.depth for call in tree.calls) == 13
    texts = [call.text for call in tree.calls]
    assert texts.count("recursive inlining is too deep") == texts.count("hot method too big") == 2


def test_a_site_with_two_receivers_has_both_callees_and_one_profile():
    calls = [call for call in excerpt("blog-addall.txt").calls if call.callee.endswith("::visit")]
    assert [call.callee.rpartition(".")[2] for call in calls] == [
        "PointRangeQuery$1$1::visit",
        "NumericComparator$NumericLeafComparator$1::visit",
    ]
    assert {call.caller for call in calls} == {"org.apache.lucene.util.bkd.DocIdsWriter::readInts32"}
    assert {(call.bci, call.outcome, call.text) for call in calls} == {(27, "inlined", "inline (hot)")}
    assert calls[0].receivers == ()
    assert [(seen.count, seen.total) for seen in calls[1].receivers] == [
        (1182090, 2633788),
        (1451698, 2633788),
    ]
    assert calls[1].receivers[1].name == "org.apache.lucene.search.PointRangeQuery$1$1"


def test_excerpts_that_begin_in_the_middle_have_their_own_depths():
    tree = excerpt("blog-visit-es.txt")
    assert [call.depth for call in tree.calls] == [0, 0, 1, 1, 2, 1, 2]
    assert tree.calls[4].caller == "org.apache.lucene.util.DocIdSetBuilder$BufferAdder::add"
    assert {call.caller for call in tree.calls if call.depth == 0} == {ROOT}


def test_a_virtual_call_stands_alone():
    (call,) = excerpt("blog-visit-os.txt").calls
    assert (call.bci, call.outcome, call.size) == (27, "virtual", 0)
    assert call.callee == "org.apache.lucene.index.PointValues$IntersectVisitor::visit"


def test_marks_of_methods_do_not_change_the_depth():
    lines = (
        "                              @ 1   a.B::c (5 bytes)   inline (hot)",
        "               !m               @ 2   d.E::f (6 bytes)   too big",
    )
    first, second = read_tree([plain(*lines)]).calls
    assert (second.depth, second.parent, second.caller) == (1, 0, first.callee)


def test_classes_that_are_not_loaded_get_dots_and_no_size():
    (call,) = read_tree([b"  @ 37  java/lang/StringUTF16::hashCode (not loaded)   not inlineable"]).calls
    assert (call.callee, call.size) == ("java.lang.StringUTF16::hashCode", None)
    assert (call.outcome, call.text) == ("refused", "not inlineable")


def test_jdk_25_names_what_it_tried_on_one_line():
    line = (
        b"  @ 38   a.Buffered::readByte (20 bytes)   failed to inline: low call site frequency"
        b"   callee changed to  a.Mapped::readByte (100 bytes)   failed to inline: too big"
        b"   callee changed to  a.In::readVInt (114 bytes)    \\-&gt; TypeProfile (13/36 counts) = a/Mapped"
        b"   callee changed to  a.In::readVInt (114 bytes)    \\-&gt; TypeProfile (23/36 counts) = a/Buffered"
    )
    first, second = read_tree([line]).calls
    assert (first.callee, first.size, first.text) == ("a.Buffered::readByte", 20, "low call site frequency")
    assert first.receivers == ()
    assert (second.callee, second.size, second.text) == ("a.Mapped::readByte", 100, "too big")
    assert second.receivers == (Receiver("a.Mapped", 13, 36), Receiver("a.Buffered", 23, 36))


def test_a_line_that_another_thread_cut_is_put_together():
    whole = b"    @ 1   a.B::c (5 bytes)   inline\n      @ 2   d.E::f (6 bytes)   callee is too large\n"
    for at in range(5, len(whole) - 1):
        if whole[at - 1 : at] == b"\n" or whole[at : at + 1] == b"\n":
            continue
        assert read_tree([whole[:at], whole[at:]]) == read_tree([whole]), whole[:at]


def test_a_call_whose_line_another_thread_wrote_into_is_still_a_call():
    torn = b"  @ 33   a.B::c (9 bytes)7556 5597     n 0       d.E::f (native)   \n"
    outer, inner = read_tree([torn, b"    @ 1   g.H::i (5 bytes)   inline\n"]).calls
    assert (outer.callee, outer.outcome, inner.parent) == ("a.B::c", "refused", 0)


def test_what_is_no_call_is_kept_as_unread():
    tree = read_tree([b"  @ 1   a.B::c (5 bytes)   inline\n  @ 7 what is this\n"])
    assert (len(tree.calls), tree.unread) == (1, ("  @ 7 what is this",))


@given(trees())
def test_a_tree_that_was_printed_is_read_back(calls: tuple[Call, ...]):
    assert read_tree([plain(*tree_lines(calls))]) == Tree(calls)


@given(trees())
def test_where_a_tree_is_indented_makes_no_difference(calls: tuple[Call, ...]):
    lines = [line[30:] for line in tree_lines(calls)]
    assert [replace(call, caller="") for call in read_tree([plain(*lines)]).calls] == [
        replace(call, caller="") for call in calls
    ]


@given(st.lists(st.binary(max_size=80), max_size=6))
def test_garbage_never_raises(pieces: list[bytes]):
    read_tree(pieces)


@pytest.mark.parametrize(
    ("words", "outcome"),
    [
        ("inline (hot)", "inlined"),
        ("inline (hot)   inline (hot)", "inlined"),
        ("inline", "inlined"),
        ("force inline by annotation", "inlined"),
        ("accessor", "inlined"),
        ("(intrinsic, virtual)", "inlined"),
        ("intrinsic", "inlined"),
        ("virtual call", "virtual"),
        ("no static binding", "virtual"),
        ("too big", "refused"),
        ("inlining too deep", "refused"),
        ("executed < MinInliningThreshold times", "refused"),
        ("something of a later JDK", "refused"),
        ("inlined perhaps", "refused"),
        ("", "refused"),
    ],
)
def test_words_have_an_outcome(words: str, outcome: Outcome):
    assert outcome_of(words) == outcome


# What of a tree matters.

NOBODY = "Nobody::asked"


def test_the_java_librarys_own_business_goes_and_lucenes_stays():
    whole = excerpt("blog-addall.txt").calls
    callees = [call.callee for _, call in cut_tree(whole, NOBODY)]
    assert len(callees) < 50
    assert not any(callee.startswith(("java.", "jdk.")) for callee in callees)
    assert sum(callee.endswith("::visit") for callee in callees) == 2
    assert "org.apache.lucene.util.FixedBitSet::set" in callees


def test_virtual_calls_and_refusals_of_the_library_stay_with_the_way_to_them():
    calls = read_tree(
        [
            b"@ 1   java.util.A::a (5 bytes)   inline (hot)\n",
            b"  @ 2   java.util.B::b (5 bytes)   inline (hot)\n",
            b"    @ 3   java.util.C::c (0 bytes)   virtual call\n",
            b"  @ 4   java.util.D::d (5 bytes)   force inline by annotation\n",
            b"@ 5   java.util.E::e (400 bytes)   hot method too big\n",
            b"@ 6   java.util.F::f (400 bytes)   too big\n",
        ]
    ).calls
    assert [call.bci for _, call in cut_tree(calls, NOBODY)] == [1, 2, 3, 5]


def test_what_was_asked_for_stays_whatever_it_is():
    calls = read_tree(
        [b"@ 1   java.util.A::a (5 bytes)   accessor\n@ 2   java.util.B::b (5 bytes)   accessor\n"]
    ).calls
    assert [call.bci for _, call in cut_tree(calls, "A::a")] == [1]


@given(trees())
def test_who_stays_has_the_way_to_it(calls: tuple[Call, ...]):
    shown = cut_tree(calls, NOBODY)
    assert {call.parent for _, call in shown} <= {at for at, _ in shown} | {-1}
