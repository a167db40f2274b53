"""Shipped experiments in their small forms, on real nodes and JVMs, and on indices of their own."""

import json
from pathlib import Path

import pytest

from benchctl.home import Home
from integration.calls import Benchctl
from integration.executions import executed, runs

pytestmark = pytest.mark.full

SHIPPED = Path(__file__).parents[2] / "experiments"


def test_phases_of_a_metrics_workload_are_measured_and_its_answers_known(
    home: Home, benchctl: Benchctl, tmp_path: Path
):
    """By the versions that other tests have, from one build each."""
    path = tmp_path / "phases.yml"
    text = (SHIPPED / "phase-report.yml").read_text(encoding="utf-8")
    text = text.replace("es@8.17.2", "es").replace("os@2.19.1", "os")
    path.write_text(text.replace("index-builds: 5", "index-builds: 1"), encoding="utf-8")
    done = benchctl("experiment", "run", str(path), "--test-mode", "--docs", "3000", "--forks", "1")
    assert done.returncode == 0, done.stdout + done.stderr
    known = runs(home)
    fields = [f"{field}_{kind}" for field in ("cpu", "mem", "net") for kind in ("pct", "sum")]
    for fork in known["queries"].forks:
        found = {one.label: one.meters for one in fork.summaries}
        assert all(found["D_td-profiled"][f"profile_aggs.{name}"] > 0 for name in fields)
        assert "profile_query" not in found["D_td-serial"]
        times = {one.label: len(one.took_parts) for one in fork.summaries if one.took_parts}
        assert times["D_hdr-serial"] == times["D_hdr-msearch"] == 30
    for name in ("queries", "ingest-helper"):
        for one in known[name].indices.values():
            assert one.ingest is not None
            assert one.ingest.documents == 3000
            assert one.ingest.costs is not None
            assert (one.ingest.costs.client_s or 0) > 0
    (fork,) = known["options"].forks
    assert [one.label for one in fork.summaries].count("send") == 5
    assert not [one.failure_reasons for one in fork.summaries if one.failures]


@pytest.mark.timeout(900)
def test_call_sites_of_microbenchmarks_are_judged_by_the_logs_of_their_own_jvms(
    home: Home, benchctl: Benchctl
):
    words = ("experiment", "run", str(SHIPPED / "visit.yml"), "--test-mode", "--forks", "3")
    done = benchctl(*words)
    assert done.returncode == 0, done.stderr
    record = executed(home)
    assert record is not None
    told = json.loads(benchctl("experiment", "report", record.id, "--format", "json").stdout)
    fates = [one for one in told["analysis"]["expectations"] if one["asked"]["fate"]]
    assert {one["asked"]["fate"]["call-site"]: one["outcome"] for one in fates} == dict.fromkeys(
        ("one-kind", "two-kinds", "three-kinds", "one-kind-32", "three-kinds-32"), "confirmed"
    )


def test_the_circuit_breaker_is_measured_over_http(home: Home, benchctl: Benchctl):
    """In process, the oldest of three versions has no preallocation."""
    words = ("experiment", "run", str(SHIPPED / "circuit-breaker.yml"), "--test-mode", "--forks", "1")
    done = benchctl(*words, "--docs", "1000")
    assert done.returncode in (0, 1), done.stderr
    run = runs(home)["http"]
    assert len(run.forks) == 2
    for fork in run.forks:
        assert not [one.failure_reasons for one in fork.summaries if one.failures]


def test_doc_values_are_asked_for_all_that_they_are_read_for(home: Home, benchctl: Benchctl):
    """7.17.29 and 8.11.0 read one index."""
    words = ("experiment", "run", str(SHIPPED / "docvalues.yml"), "--test-mode", "--forks", "1")
    done = benchctl(*words, "--docs", "5000")
    assert done.returncode == 0, done.stdout + done.stderr
    run = runs(home)["warm"]
    assert {fork.variant: len(fork.summaries) for fork in run.forks} == dict.fromkeys(
        ("es7", "es-old", "es", "os"), 24
    )
    assert not [one.failure_reasons for fork in run.forks for one in fork.summaries if one.failures]
    assert run.indices["es7"].key == run.indices["es-old"].key != run.indices["es"].key
