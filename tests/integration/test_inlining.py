"""The inlining log of a real node, from flags to the printed tree."""

import json

import pytest

from benchctl.results.store import RunStore
from integration.calls import Benchctl

pytestmark = [pytest.mark.nodes, pytest.mark.timeout(300)]

# The engines of these tests stop at C1's first level, to start faster; this one has all compilers.
VARIANT = ("--variant", "tiered=es,jvm:-XX:TieredStopAtLevel=4")
RUN = ("--challenge", "range-only-short", "--docs", "20k", "--heap", "512m", *VARIANT)


def test_a_node_leaves_its_inlining_log_and_lucene_is_in_it(benchctl: Benchctl, store: RunStore):
    done = benchctl(
        "run", *RUN, "--param", "iterations=300", "--forks", "1",
        "--evidence", "inlining", "--evidence-forks", "all", "--wait",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    folder = store.find("latest")
    (fork,) = folder.load().forks
    assert fork.evidence == ("inlining",)
    (log,) = folder.evidence_folder("tiered", 0, 0).iterdir()
    assert log.name in {"jvm.log", "jvm.log.zst"}

    shown = benchctl("inlining", "latest", "--method", "BKDReader$BKDPointTree::addAll", "--level", "3")
    assert shown.returncode == 0, shown.stderr
    assert (
        "tiered, block 0, boot 0: org.apache.lucene.util.bkd.BKDReader$BKDPointTree::addAll (98 bytes)"
        in shown.stdout
    )
    assert "by C1, level 3" in shown.stdout

    answer = benchctl(
        "inlining", "latest", "--method", "BKDPointTree::addAll", "--level", "3", "--format", "json"
    )
    document = json.loads(answer.stdout)
    assert document["lines"] > 10_000
    assert document["foreign-lines"] < document["lines"] / 1000
    assert document["unread"] == []
    assert any(call["callee"].endswith("DocIdsWriter::readInts") for call in document["calls"])

    # The JVM's lines are in the log alone, but for a few that its threads wrote into each other; the engine's
    # own stay where they were.
    output = (folder.path / fork.boots[0].logs / "stdout.log").read_text()
    assert "started" in output
    assert output.count(" bytes)") < 50
