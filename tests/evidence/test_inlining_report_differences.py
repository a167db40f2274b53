"""Differences of two logs as readers get them."""

import json

from benchctl.evidence.call_sites import Compared, compare_sites, newest_sites
from benchctl.evidence.inlining_log import InliningLog
from benchctl.evidence.inlining_report import differences_document, differences_text
from jvm_logs import INLINED_VISIT, INTS, VIRTUAL_VISIT, head, visits

SIDES = ("es", "os")
LABELS = ("es, block 5, boot 0", "os, block 5, boot 0")


def compared(one: bytes, other: bytes) -> Compared:
    sides = [newest_sites(InliningLog(data)) for data in (one, other)]
    return compare_sites(sides[0], sides[1])


def at(lines: tuple[str, ...], bci: int) -> list[str]:
    return [line.replace("@ 35", f"@ {bci}") for line in lines]


def test_alike_sites_of_a_caller_are_one_entry():
    found = compared(
        visits(*INLINED_VISIT, *at(INLINED_VISIT, 50)), visits(*VIRTUAL_VISIT, *at(VIRTUAL_VISIT, 50))
    )
    assert (
        differences_text(SIDES, LABELS, found, "everywhere")
        == """\
Calls that are inlined on one side and virtual on the other, everywhere
  es: es, block 5, boot 0
  os: os, block 5, boot 0

visit in DocIdsWriter::readInts24, bci 35, 50: 1,000 calls
  es: PointRangeQuery$1$1::visit  inline (hot)
  es: NumericComparator$NumericLeafComparator$1::visit  inline (hot)
      saw PointRangeQuery$1$1 600, NumericComparator$NumericLeafComparator$1 400 of 1,000
      in the compilation of DocIdsWriter::readInts24 at 5.00 s
  os: PointValues$IntersectVisitor::visit  virtual call
      in the compilation of DocIdsWriter::readInts24 at 5.00 s

2 call sites in newest compilations by C2 on both sides,
0 only in es's, 0 only in os's.
Inlined in es, not in os: 2, 2 of them virtual;
inlined in os, not in es: 0, 0 of them virtual.
Counts are those of type profiles when C2 compiled; for a virtual call HotSpot prints none.
"""
    )


def test_another_bci_is_said():
    found = compared(visits(*INLINED_VISIT), visits(*at(VIRTUAL_VISIT, 41)))
    shown = differences_text(SIDES, LABELS, found, "everywhere")
    assert "bci 35: 1,000 calls\n  (bci 41 in os: another version of the class, matched by the name)" in shown


def test_a_compilation_that_was_given_up_is_said_to_be():
    gone = head(6000, 77, 4, INTS) + "   made not entrant"
    found = compared(visits(*INLINED_VISIT), visits(*VIRTUAL_VISIT, gone))
    shown = differences_text(SIDES, LABELS, found, "everywhere")
    assert "      in the compilation of DocIdsWriter::readInts24 at 5.00 s, given up at 6.00 s\n" in shown
    (only,) = differences_document(SIDES, LABELS, found, "everywhere")["differences"]
    assert [only[side]["given-up-ms"] for side in SIDES] == [None, 6000]


def test_nothing_is_said_to_be_nothing():
    shown = differences_text(
        SIDES, LABELS, compared(visits(*INLINED_VISIT), visits(*INLINED_VISIT)), "everywhere"
    )
    assert "\nnone\n" in shown


def test_programs_get_both_sides_of_each_site():
    found = compared(visits(*INLINED_VISIT), visits(*VIRTUAL_VISIT))
    document = json.loads(json.dumps(differences_document(SIDES, LABELS, found, "everywhere")))
    (only,) = document["differences"]
    assert (only["name"], only["calls"], only["moved"]) == ("visit", 1000, False)
    assert [one["outcome"] for one in only["es"]["callees"]] == ["inlined", "inlined"]
    assert [one["outcome"] for one in only["os"]["callees"]] == ["virtual"]
    assert (document["matched"], document["only"]) == (1, {"es": 0, "os": 0})
