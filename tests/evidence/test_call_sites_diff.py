"""Call sites of two JVMs, side by side."""

from benchctl.evidence.call_sites import Compared, SiteKey, compare_sites, newest_sites
from benchctl.evidence.inlining_log import InliningLog
from jvm_logs import (
    INLINED_VISIT,
    INTS,
    RANGE_VISITOR,
    SORT_VISITOR,
    VIRTUAL_VISIT,
    VISITOR,
    head,
    in_file,
    thread,
    visits,
)

VISIT = SiteKey(INTS, 35, "visit")
TREE = "org.apache.lucene.util.bkd.BKDReader$BKDPointTree::addAll"


def compared(one: bytes, other: bytes, *, under: str = "", **options: bool) -> Compared:
    sides = [newest_sites(InliningLog(data), under=under) for data in (one, other)]
    return compare_sites(sides[0], sides[1], **options)


def indented(lines: tuple[str, ...]) -> list[str]:
    return [f"  {line}" for line in lines]


def test_a_call_that_is_inlined_here_and_virtual_there_differs():
    (only,) = compared(visits(*INLINED_VISIT), visits(*VIRTUAL_VISIT)).differences
    assert (only.baseline.key, only.contender.key) == (VISIT, VISIT)
    assert (only.calls, only.moved) == (1000, False)
    assert [seen.count for seen in only.baseline.receivers] == [600, 400]
    assert only.contender.receivers == ()
    assert only.contender.words == "PointValues$IntersectVisitor::visit virtual call"
    (turned,) = compared(visits(*VIRTUAL_VISIT), visits(*INLINED_VISIT)).differences
    assert (turned.baseline, turned.contender) == (only.contender, only.baseline)


def test_what_fares_alike_does_not_differ():
    for lines in (INLINED_VISIT, VIRTUAL_VISIT):
        assert compared(visits(*lines), visits(*lines)) == Compared((), 1, 0, 0)


def test_what_is_refused_on_one_side_differs_on_request_from_what_is_inlined():
    rare = VIRTUAL_VISIT[0].replace("virtual call", "low call site frequency")
    assert compared(visits(rare), visits(*VIRTUAL_VISIT), refused=True).differences == ()
    assert compared(visits(rare), visits(*INLINED_VISIT)).differences == ()
    (only,) = compared(visits(rare), visits(*INLINED_VISIT), refused=True).differences
    assert (only.baseline.found, only.contender.found) == ("refused", "inlined")


def test_a_caller_that_was_inlined_elsewhere_is_the_same_caller():
    inside = in_file(
        thread(11),
        head(9, 3, 4, TREE),
        f"                              @ 63   {INTS} (198 bytes)   inline (hot)",
        *indented(VIRTUAL_VISIT),
    )
    (only,) = compared(visits(*INLINED_VISIT), inside).differences
    assert only.baseline.compilation.method == INTS
    assert only.contender.compilation.method == TREE


def test_the_newest_compilation_by_c2_counts():
    log = in_file(
        thread(11), head(1, 1, 4, INTS), *VIRTUAL_VISIT, head(2, 2, 4, INTS), *INLINED_VISIT,
        thread(12), head(3, 3, 3, INTS), VIRTUAL_VISIT[0].replace("virtual call", "no static binding"),
    )  # fmt: skip
    site = newest_sites(InliningLog(log))[VISIT]
    assert (site.compilation.id, site.is_inlined, site.is_virtual) == (2, True, False)


def test_a_site_knows_when_its_compilation_was_given_up():
    gone = head(9000, 77, 4, INTS, 198) + "   made not entrant"
    (only,) = compared(visits(*INLINED_VISIT), visits(*VIRTUAL_VISIT, gone)).differences
    assert (only.baseline.given_up_ms, only.contender.given_up_ms) == (None, 9000)


def test_the_newest_counts_in_whatever_order_threads_finish():
    log = in_file(
        thread(11), head(1, 1, 4, INTS), thread(12), head(2, 2, 4, INTS), *INLINED_VISIT,
        head(3, 3, 4, "a.B::m"), thread(11), *VIRTUAL_VISIT, head(4, 4, 4, "a.B::n"),
    )  # fmt: skip
    assert newest_sites(InliningLog(log))[VISIT].compilation.id == 2


def test_only_what_is_under_a_method_is_compared_where_one_is_named():
    assert (
        compared(visits(*INLINED_VISIT), visits(*VIRTUAL_VISIT), under="DocIdsWriter::readInts24").matched
        == 1
    )
    assert compared(visits(*INLINED_VISIT), visits(*VIRTUAL_VISIT), under=f"{VISITOR}::grow").matched == 0


def test_callers_of_other_packages_need_asking():
    sides = [
        visits(*lines).replace(b"org.apache.lucene.util", b"io.netty")
        for lines in (INLINED_VISIT, VIRTUAL_VISIT)
    ]
    assert compared(*sides) == Compared((), 0, 0, 0)
    assert len(compared(*sides, everywhere=True).differences) == 1


def test_sites_of_another_version_are_matched_by_name_in_order():
    moved = [line.replace("@ 35", "@ 41") for line in VIRTUAL_VISIT]
    (only,) = compared(visits(*INLINED_VISIT), visits(*moved)).differences
    assert (only.moved, only.baseline.key.bci, only.contender.key.bci) == (True, 35, 41)
    two = [*moved, VIRTUAL_VISIT[0].replace("@ 35", "@ 52")]
    ambiguous = compared(visits(*INLINED_VISIT), visits(*two))
    assert (ambiguous.differences, ambiguous.baseline_only, ambiguous.contender_only) == ((), 1, 2)


def test_the_most_called_comes_first():
    more = [line.replace("@ 35", "@ 99").replace("/1000", "/5000") for line in INLINED_VISIT]
    virtual = VIRTUAL_VISIT[0].replace("@ 35", "@ 99")
    found = compared(visits(*INLINED_VISIT, *more), visits(*VIRTUAL_VISIT, virtual)).differences
    assert [one.baseline.key.bci for one in found] == [99, 35]


def test_copies_of_a_caller_in_one_compilation_are_one_site():
    rare = VIRTUAL_VISIT[0].replace("virtual call", "low call site frequency")
    log = in_file(
        thread(11), head(9, 3, 4, TREE),
        f"                              @ 1   {INTS} (198 bytes)   inline (hot)", *indented(INLINED_VISIT),
        f"                              @ 2   {INTS} (198 bytes)   inline (hot)", *indented((rare,)),
    )  # fmt: skip
    site = newest_sites(InliningLog(log))[VISIT]
    assert (site.found, site.calls) == ("inlined", 1000)
    assert {callee for callee, _, _ in site.callees} == {f"{RANGE_VISITOR}::visit", f"{SORT_VISITOR}::visit"}


def test_hidden_classes_are_the_same_in_every_jvm():
    sides = [
        visits(*lines).replace(b"DocIdsWriter", b"DocIdsWriter$$Lambda/0x0000" + address)
        for lines, address in ((INLINED_VISIT, b"7f3a"), (VIRTUAL_VISIT, b"81bc"))
    ]
    assert len(compared(*sides).differences) == 1
