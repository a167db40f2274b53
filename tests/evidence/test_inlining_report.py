"""Trees and differences as readers get them: `golden/inlining.txt` has them scene by scene."""

from collections.abc import Callable
from pathlib import Path

import pytest

import golden
from benchctl.evidence.call_sites import compare_sites, find_newest, newest_sites
from benchctl.evidence.inlining_log import InliningLog
from benchctl.evidence.inlining_report import differences_text, tree_text
from jvm_logs import INLINED_VISIT, INTS, VIRTUAL_VISIT, head, plain, thread, visits

GOLDEN = Path(__file__).parent / "golden"
SIDES = ("es", "os")
LABELS = ("es, block 5, boot 0", "os, block 5, boot 0")
GONE = head(6000, 77, 4, INTS) + "   made not entrant"
LIBRARY = "                              @ 1   java.util.A::a (5 bytes)   inline (hot)"
ODD = "                              @ 2 who knows"


def differences(one: bytes, other: bytes) -> str:
    sides = [newest_sites(InliningLog(data)) for data in (one, other)]
    return differences_text(SIDES, LABELS, compare_sites(sides[0], sides[1]), "everywhere", 100)


def at(lines: tuple[str, ...], bci: int) -> list[str]:
    return [line.replace("@ 35", f"@ {bci}") for line in lines]


def tree(data: bytes, method: str = "readInts24") -> str:
    log = InliningLog(data)
    return tree_text("es, block 0, boot 0", find_newest(log, method), method, log.account)


SCENES: dict[str, Callable[[], str]] = {
    "a compilation has its title": lambda: tree(visits(*INLINED_VISIT)),
    "sites with the same in them stand together": lambda: tree(
        visits(*INLINED_VISIT, *at(INLINED_VISIT, 50))
    ),
    "what was left out, given up or not understood": lambda: tree(
        plain(thread(1), head(1, 5, 4, INTS), head(5000, 77, 4, INTS), LIBRARY, ODD, GONE, "an engine's line")
    ),
    # The lines are those of "Elasticsearch Benchmarking, Part 4: Inlining" (blunders.io, 2024).
    "the excerpt of the blog, cut to what matters": lambda: tree(
        plain(thread(1), head(1, 5, 4, "org.apache.lucene.util.bkd.BKDReader$BKDPointTree::visitDocIDs"))
        + (GOLDEN / "blog-addall.txt").read_bytes(),
        "BKDReader$BKDPointTree::addAll",
    ),
    "alike sites of a caller are one entry": lambda: differences(
        visits(*INLINED_VISIT, *at(INLINED_VISIT, 50)), visits(*VIRTUAL_VISIT, *at(VIRTUAL_VISIT, 50))
    ),
    "another bci": lambda: differences(visits(*INLINED_VISIT), visits(*at(VIRTUAL_VISIT, 41))),
    "no difference": lambda: differences(visits(*INLINED_VISIT), visits(*INLINED_VISIT)),
}


def test_every_scene_is_told_as_before(request: pytest.FixtureRequest):
    texts = [f"# {name}\n{scene()}" for name, scene in SCENES.items()]
    golden.agree(request.config, GOLDEN / "inlining.txt", "\n".join(texts))
