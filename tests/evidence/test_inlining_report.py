"""Trees, differences and groups as readers get them: `golden/inlining.txt` has them scene by scene."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

import golden
from benchctl.evidence.call_sites import Compared, compare_sites, find_newest, newest_sites
from benchctl.evidence.inlining_log import InliningLog
from benchctl.evidence.inlining_report import (
    GroupedFork,
    differences_document,
    differences_text,
    groups_document,
    groups_text,
    tree_document,
    tree_text,
)
from benchctl.evidence.inlining_tree import cut_tree
from jvm_logs import INLINED_VISIT, INTS, VIRTUAL_VISIT, head, in_file, plain, thread, visits

GOLDEN = Path(__file__).parent / "golden"
SIDES = ("es", "os")
LABELS = ("es, block 5, boot 0", "os, block 5, boot 0")
GONE = head(6000, 77, 4, INTS) + "   made not entrant"
LIBRARY = "                              @ 1   java.util.A::a (5 bytes)   inline (hot)"
ODD = "                              @ 2 who knows"


def compared(one: bytes, other: bytes) -> Compared:
    sides = [newest_sites(InliningLog(data)) for data in (one, other)]
    return compare_sites(sides[0], sides[1])


def differences(one: bytes, other: bytes) -> str:
    return differences_text(SIDES, LABELS, compared(one, other), "everywhere")


def at(lines: tuple[str, ...], bci: int) -> list[str]:
    return [line.replace("@ 35", f"@ {bci}") for line in lines]


def tree(data: bytes, method: str = "readInts24") -> str:
    log = InliningLog(data)
    found = find_newest(log, method, 4)
    return tree_text("es, block 0, boot 0", found, cut_tree(found.tree.calls, asked=method), log.account)


def fork(block: int, fate: str, per_s: float | None, given_up_ms: int | None = None) -> GroupedFork:
    p90_ns = None if per_s is None else 1e9 / per_s
    return GroupedFork(block, fate, per_s, p90_ns, given_up_ms=given_up_ms)


FORKS = [
    fork(3, "A inlined", 100.0),
    fork(0, "virtual", 50.0),
    fork(1, "A inlined", 200.0),
    fork(2, "virtual", 60.0),
    fork(4, "A inlined", 150.0),
]
SCENES: dict[str, Callable[[], str]] = {
    "a compilation has its title": lambda: tree(visits(*INLINED_VISIT)),
    "sites with the same in them stand together": lambda: tree(
        visits(*INLINED_VISIT, *at(INLINED_VISIT, 50))
    ),
    "what was left out, given up or not understood": lambda: tree(
        plain(head(1, 5, 4, INTS), head(5000, 77, 4, INTS), LIBRARY, ODD, GONE, "an engine's line")
    ),
    "alike sites of a caller are one entry": lambda: differences(
        visits(*INLINED_VISIT, *at(INLINED_VISIT, 50)), visits(*VIRTUAL_VISIT, *at(VIRTUAL_VISIT, 50))
    ),
    "another bci": lambda: differences(visits(*INLINED_VISIT), visits(*at(VIRTUAL_VISIT, 41))),
    "a compilation that was given up": lambda: differences(
        visits(*INLINED_VISIT), visits(*VIRTUAL_VISIT, GONE)
    ),
    "no difference": lambda: differences(visits(*INLINED_VISIT), visits(*INLINED_VISIT)),
    "two groups, by size, and their forks by block": lambda: groups_text("range of es, by visit", FORKS),
    "one group": lambda: groups_text("t", [one for one in FORKS if one.fate == "virtual"]),
    "one fork": lambda: groups_text("t", FORKS[:1]),
    "no fork": lambda: groups_text("t", []),
    "a fork whose compilation was given up": lambda: groups_text(
        "t", [*FORKS, fork(7, "virtual", 55.0, 6000)]
    ),
}


def test_every_scene_is_told_as_before(request: pytest.FixtureRequest):
    texts = [f"# {name}\n{scene()}" for name, scene in SCENES.items()]
    golden.agree(request.config, GOLDEN / "inlining.txt", "\n".join(texts))


def test_the_excerpt_of_the_blog_cut_to_what_matters():
    # The lines are those of "Elasticsearch Benchmarking, Part 4: Inlining" (blunders.io, 2024).
    excerpt = (GOLDEN / "blog-addall.txt").read_bytes()
    assert tree(excerpt, "BKDReader$BKDPointTree::addAll") == (GOLDEN / "blog-addall-report.txt").read_text()


def test_programs_get_every_call_with_its_receivers():
    log = InliningLog(in_file(thread(1), head(5000, 77, 4, INTS), *INLINED_VISIT))
    found = find_newest(log, "readInts24", 4)
    document = json.loads(json.dumps(tree_document("x", found, cut_tree(found.tree.calls), log.account)))
    assert document["compilation"]["method"] == INTS
    assert (document["cut"], document["foreign-lines"], document["given-up-ms"]) == (0, 0, None)
    last = document["calls"][-1]
    assert (last["bci"], last["fate"], last["outcome"], last["parent"]) == (35, "inline (hot)", "inlined", -1)
    assert [one["count"] for one in last["receivers"]] == [400, 600]


def test_programs_get_both_sides_of_each_site():
    found = compared(visits(*INLINED_VISIT), visits(*VIRTUAL_VISIT, GONE))
    document = json.loads(json.dumps(differences_document(SIDES, LABELS, found, "everywhere")))
    (only,) = document["differences"]
    assert (only["name"], only["calls"], only["moved"]) == ("visit", 1000, False)
    assert [one["outcome"] for one in only["es"]["callees"]] == ["inlined", "inlined"]
    assert [one["outcome"] for one in only["os"]["callees"]] == ["virtual"]
    assert [only[side]["given-up-ms"] for side in SIDES] == [None, 6000]
    assert (document["matched"], document["only"]) == (1, {"es": 0, "os": 0})


def test_a_single_fork_is_no_group_to_test_and_forks_without_figures_are_in_theirs():
    document = groups_document("t", FORKS[:3])
    assert document["second-over-first"] == {}
    assert [group["blocks"] for group in document["groups"]] == [[1, 3], [0]]
    document = groups_document("t", [*FORKS, fork(5, "virtual", None, 6000)])
    assert document["groups"][1]["blocks"] == [0, 2, 5]
    assert document["groups"][1]["throughput-per-s"] == [50.0, 60.0]
    assert document["groups"][1]["given-up-ms"] == [None, None, 6000]
    assert document["second-over-first"]["throughput-per-s"]["p"] == pytest.approx(0.0276, abs=1e-4)
