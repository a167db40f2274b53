"""Evidence of both kinds on real nodes: collected in forks of its own, kept, shown, and in no comparison."""

import json
import subprocess

import pytest

from benchctl.results.store import RunFolder, RunStore
from integration.calls import Benchctl

pytestmark = [pytest.mark.full, pytest.mark.timeout(600)]

SMALL = ("--challenge", "range-only-short", "--docs", "20k", "--heap", "512m", "--param", "iterations=300")
# The engines of these tests start without C2, whose decisions this is about.
BOTH_COMPILERS = "jvm:-XX:TieredStopAtLevel=4"
VARIANTS = ("es-c2", "os-c2")


@pytest.fixture(scope="module")
def run(benchctl: Benchctl, store: RunStore) -> RunFolder:
    """A plain fork of either engine, and one more that carries evidence."""
    done = benchctl(
        *("run", *SMALL, "--forks", "1", "--evidence", "inlining,profile", "-v"),
        *("--variant", f"es-c2=es,{BOTH_COMPILERS}", "--variant", f"os-c2=os,{BOTH_COMPILERS}"),
    )
    assert done.returncode == 0, done.stderr
    assert "geometric means over forks (es-c2 1, os-c2 1)" in done.stdout
    return store.find("latest", finished=False)


def called(benchctl: Benchctl, *arguments: str) -> str:
    done: subprocess.CompletedProcess[str] = benchctl(*arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_only_the_forks_behind_the_plan_s_own_carry_it(run: RunFolder):
    record = run.load()
    kinds = ("inlining", "profile")
    assert {(fork.block, fork.evidence) for fork in record.forks} == {(0, ()), (1, kinds)}
    assert all([fork.block for fork in record.compared(variant)] == [0] for variant in VARIANTS)
    assert all(boot.searches_counted == boot.searches_sent for fork in record.forks for boot in fork.boots)


def test_a_node_leaves_its_inlining_log_and_lucene_is_in_it(run: RunFolder, benchctl: Benchctl):
    method = ("explain", run.path.name, "inlining", "--variant", "es-c2", "--method")
    shown = called(benchctl, *method, "BKDReader$BKDPointTree::addAll")
    assert (
        "es-c2, block 1, boot 0: org.apache.lucene.util.bkd.BKDReader$BKDPointTree::addAll (98 bytes)"
        in shown
    )
    document = json.loads(called(benchctl, *method, "BKDPointTree::addAll", "--format", "json"))
    assert document["lines"] > 10_000
    assert document["tree"]["unread"] == []
    calls = document["tree"]["calls"]
    assert any(call["callee"].endswith("DocIdsWriter::readInts") for call in calls)

    # The JVM's lines are in the log alone, but for those that the engine's tore apart; its own stay there.
    _, fork = run.load().done("es-c2")
    output = (run.path / fork.boots[0].logs / "stdout.log").read_text()
    assert "started" in output
    assert output.count(" bytes)   inline") < document["lines"] / 1000


def test_what_is_inlined_in_one_and_virtual_in_the_other_is_said(run: RunFolder, benchctl: Benchctl):
    shown = called(benchctl, "explain", run.path.name, "inlining", "--diff", *VARIANTS)
    assert "compiled by C2 on both sides" in " ".join(shown.split())


def test_the_hottest_frames_of_searches_are_those_of_lucene_and_the_engine(
    run: RunFolder, benchctl: Benchctl
):
    shown = called(
        benchctl, "explain", run.path.name, "profile", "--variant", "es-c2", "--inclusive", "--top", "500"
    )
    assert "of threads that ran Java" in " ".join(shown.split())
    assert "org.apache.lucene." in shown
    assert "org.elasticsearch.search." in shown
    assert "not understood" not in shown


def test_samples_are_those_of_the_measured_task(run: RunFolder, benchctl: Benchctl):
    asked = ("explain", run.path.name, "profile", "--variant", "es-c2", "--format", "json")
    measured, task = (
        json.loads(called(benchctl, *asked, *way))["variants"][0]["samples"]
        for way in ((), ("--task", "range"))
    )
    # There is one task only.
    assert measured == task > 0


def test_a_flame_graph_can_be_written(run: RunFolder, benchctl: Benchctl):
    page = called(benchctl, "explain", run.path.name, "profile", "--diff", *VARIANTS, "--format", "html")
    assert "org.apache.lucene." in page
