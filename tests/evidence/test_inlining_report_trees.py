"""Trees as readers get them."""

import json
from pathlib import Path

from benchctl.evidence.call_sites import find_newest
from benchctl.evidence.inlining_log import InliningLog
from benchctl.evidence.inlining_report import tree_document, tree_text
from benchctl.evidence.inlining_tree import cut_tree
from jvm_logs import INLINED_VISIT, INTS, head, in_file, plain, thread, visits

GOLDEN = Path(__file__).parent / "golden"


def text(data: bytes, method: str, *, everything: bool = False, depth: int | None = None) -> str:
    log = InliningLog(data)
    found = find_newest(log, method, 4)
    cut = cut_tree(found.tree.calls, asked=method, everything=everything, depth=depth)
    return tree_text("es, block 0, boot 0", found, cut, log.account)


def test_the_excerpt_of_the_blog_cut_to_what_matters():
    # The lines are those of "Elasticsearch Benchmarking, Part 4: Inlining" (blunders.io, 2024).
    excerpt = (GOLDEN / "blog-addall.txt").read_bytes()
    assert text(excerpt, "BKDReader$BKDPointTree::addAll") == (GOLDEN / "blog-addall-report.txt").read_text()


def test_a_compilation_has_its_title():
    shown = text(visits(*INLINED_VISIT), "readInts24").splitlines()
    assert shown[0] == (
        f"es, block 0, boot 0: {INTS} (198 bytes), by C2, level 4, id 77, 5.00 s after the JVM began"
    )
    assert shown[-1] == "log: 14 lines, 1 compilation"


def test_sites_with_the_same_in_them_stand_together():
    data = visits(*INLINED_VISIT, *(line.replace("@ 35", "@ 50") for line in INLINED_VISIT))
    assert text(data, "readInts24").splitlines()[1:4] == [
        "  @ 35, 50  PointRangeQuery$1$1::visit (9 bytes)  inline (hot)",
        "  @ 35, 50  NumericComparator$NumericLeafComparator$1::visit (21 bytes)  inline (hot)",
        "     saw PointRangeQuery$1$1 600, NumericComparator$NumericLeafComparator$1 400 of 1,000",
    ]


def test_what_was_left_out_given_up_or_not_understood_is_said():
    library = "                              @ 1   java.util.A::a (5 bytes)   inline (hot)"
    odd = "                              @ 2 who knows"
    gone = head(6000, 77, 4, INTS) + "   made not entrant"
    shown = text(
        plain(head(1, 5, 4, INTS), head(5000, 77, 4, INTS), library, odd, gone, "an engine's line"),
        "readInts24",
    )
    assert "(given up 6.00 s after the JVM began, and not compiled again)" in shown
    assert "(the newest of 2 of its compilations at that level)" in shown
    assert "1 call not shown" in shown
    assert "not understood: @ 2 who knows" in shown
    assert "1 line not of the JVM's log, such as: an engine's line; it does not say which thread" in shown


def test_programs_get_every_call_with_its_receivers():
    log = InliningLog(in_file(thread(1), head(5000, 77, 4, INTS), *INLINED_VISIT))
    found = find_newest(log, "readInts24", 4)
    document = json.loads(json.dumps(tree_document("x", found, cut_tree(found.tree.calls), log.account)))
    assert document["compilation"]["method"] == INTS
    assert (document["cut"], document["foreign-lines"], document["given-up-ms"]) == (0, 0, None)
    last = document["calls"][-1]
    assert (last["bci"], last["fate"], last["outcome"], last["parent"]) == (35, "inline (hot)", "inlined", -1)
    assert [one["count"] for one in last["receivers"]] == [400, 600]
