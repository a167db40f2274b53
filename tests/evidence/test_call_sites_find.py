"""Which compilation somebody means who names a method."""

import pytest

from benchctl.errors import UsageError
from benchctl.evidence.call_sites import find_newest
from benchctl.evidence.inlining_log import InliningLog, cut_tree
from jvm_logs import INLINED_VISIT, INTS, RANGE_VISITOR, VIRTUAL_VISIT, head, in_file, thread, visits


def test_the_newest_with_it_as_root_is_meant():
    log = InliningLog(
        in_file(
            thread(1), head(1, 1, 4, INTS), *VIRTUAL_VISIT, head(2, 2, 4, INTS), *INLINED_VISIT,
            head(3, 3, 4, "a.B::m"), f"                              @ 63   {INTS} (198 bytes)   too big",
        )
    )  # fmt: skip
    found = find_newest(log, "DocIdsWriter::readInts24")
    assert (found.compilation.id, found.as_root, found.older, found.given_up_ms) == (2, True, 1, None)
    assert len(found.tree.calls) == 2


def test_else_the_newest_that_calls_it_with_nothing_but_the_way_there():
    other = "                              @ 1   a.B::c (5 bytes)   inline (hot)"
    found = find_newest(InliningLog(visits(other, *INLINED_VISIT)), "PointRangeQuery$1$1::visit")
    assert not found.as_root
    shown = cut_tree(found.tree.calls, "PointRangeQuery$1$1::visit", within=True)
    assert [call.callee for _, call in shown] == [f"{RANGE_VISITOR}::visit"]


def test_what_is_in_a_called_method_comes_with_it():
    lines = (
        "                              @ 0   a.A::b (5 bytes)   inline (hot)",
        "                              @ 1   a.B::c (5 bytes)   inline (hot)",
        "                                @ 2   a.C::d (5 bytes)   inline (hot)",
        "                                  @ 3   a.D::e (5 bytes)   too big",
        "                                @ 4   a.E::f (5 bytes)   too big",
    )
    tree = find_newest(InliningLog(visits(*lines)), "C::d").tree
    shown = cut_tree(tree.calls, "C::d", within=True)
    assert [(at, call.callee) for at, call in shown] == [(1, "a.B::c"), (2, "a.C::d"), (3, "a.D::e")]


def test_c1_is_shown_only_where_c2_has_nothing():
    by_c1 = (thread(1), head(1, 1, 3, INTS))
    assert find_newest(InliningLog(in_file(*by_c1)), "readInts24").compilation.level == 3
    log = in_file(thread(1), head(0, 2, 4, "a.B::m"), *INLINED_VISIT, *by_c1)
    assert find_newest(InliningLog(log), "visit").compilation.level == 4


def test_a_name_that_is_not_there_has_near_ones():
    log = InliningLog(visits(*INLINED_VISIT))
    for name in ("DocIdsWriter::readInts23", "DocIdWriter::readInts24", "Other::readInts24"):
        with pytest.raises(UsageError, match="was not compiled") as caught:
            find_newest(log, name)
        assert caught.value.hint == "near are: DocIdsWriter::readInts24"
    with pytest.raises(UsageError) as caught:
        find_newest(log, "Zzz::qqq")
    assert caught.value.hint == "write it as Class::method, as the JVM prints it"
