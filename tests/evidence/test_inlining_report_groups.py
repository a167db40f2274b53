"""Forks grouped by the fate of a call site."""

import pytest

from benchctl.evidence.inlining_report import CAVEAT, GroupedFork, grouped, groups_document, groups_text


def fork(block: int, fate: str, per_s: float | None) -> GroupedFork:
    return GroupedFork(block, fate, per_s, None if per_s is None else 1e9 / per_s)


FORKS = [
    fork(3, "A inlined", 100.0),
    fork(0, "virtual", 50.0),
    fork(1, "A inlined", 200.0),
    fork(2, "virtual", 60.0),
    fork(4, "A inlined", 150.0),
]


def test_groups_are_by_size_and_forks_by_block():
    assert {fate: [one.block for one in members] for fate, members in grouped(FORKS).items()} == {
        "A inlined": [1, 3, 4],
        "virtual": [0, 2],
    }


def test_two_groups_are_compared_with_the_caveat():
    shown = groups_text("range of es, by visit", FORKS)
    assert "A inlined: 3 forks (block 1, 3, 4)" in shown
    assert "throughput, 1/s: 144.2 (geometric mean of 200.0, 100.0, 150.0)" in shown
    assert "p90 service time, ms: 18.26 (geometric mean of 20.00, 16.67)" in shown
    assert "throughput, 1/s: second group over first 0.380 (" in shown
    assert shown.endswith(f"{CAVEAT}\n")


def test_one_group_explains_nothing():
    shown = groups_text("t", [one for one in FORKS if one.fate == "virtual"])
    assert "All forks fared alike there" in shown
    assert CAVEAT not in shown


def test_of_one_fork_or_none_nothing_is_said_but_that():
    for forks, words in ((FORKS[:1], "1 fork with a log"), ([], "0 forks with a log")):
        shown = groups_text("t", forks)
        assert f"{words}: nothing to group" in shown
        assert "fared alike" not in shown


def test_a_single_fork_is_no_group_to_test():
    document = groups_document("t", FORKS[:3])
    assert document["second-over-first"] == {}
    assert [group["blocks"] for group in document["groups"]] == [[1, 3], [0]]


def test_forks_without_figures_are_in_their_group():
    document = groups_document("t", [*FORKS, fork(5, "virtual", None)])
    assert document["groups"][1]["blocks"] == [0, 2, 5]
    assert document["groups"][1]["throughput-per-s"] == [50.0, 60.0]
    assert document["second-over-first"]["throughput-per-s"]["p"] == pytest.approx(0.0276, abs=1e-4)


def test_a_fork_whose_compilation_was_given_up_is_named():
    gone = GroupedFork(7, "virtual", 55.0, None, given_up_ms=6000)
    shown = groups_text("t", [*FORKS, gone])
    assert "\n  block 7: that compilation was given up at 6.00 s\n" in shown
    assert groups_document("t", [*FORKS, gone])["groups"][1]["given-up-ms"] == [None, None, 6000]
