"""Shipped experiments in their small forms, on real nodes and JVMs, and on indices of their own."""

import json
from pathlib import Path

from benchctl.home import Home
from benchctl.results.store import RunStore
from integration.calls import Benchctl
from integration.executions import executed, runs

SHIPPED = Path(__file__).parents[2] / "experiments"


PHASES = """
title: Phases, small
forks: 1
docs: 3k
heap: 512m
track: cluster-metrics
params: {warmup_iterations: 1, iterations: 2}
measurements:
  queries: {variants: [es], challenges: [phases]}
  helper: {variants: [es], ingest: true, ingest-clients: 1, ingest-transport: client}
  epochs: {variants: [es], challenges: [epochs], params: {bulk_size: 100}}
tables:
  - title: Phases
    rows:
      - {name: batch, metric: mean, baseline: queries/es/D_td-serial, contender: queries/es/D_td-msearch}
      - {name: epochs, metric: mean, baseline: epochs/es/epoch-1, contender: epochs/es/epoch-5}
      - {name: built, metric: build_own, as: difference, baseline: queries/es, contender: helper/es}
"""


def test_phases_of_a_metrics_workload_are_measured_and_its_answers_known(
    home: Home, benchctl: Benchctl, tmp_path: Path
):
    path = tmp_path / "phases.yml"
    path.write_text(PHASES)
    done = benchctl("experiment", "run", str(path))
    assert done.returncode == 0, done.stdout + done.stderr
    known = runs(home)
    (fork,) = known["queries"].forks
    found = {one.label: one.meters for one in fork.summaries}
    assert found["D_td-profiled"]["profile_aggs.cpu_pct"] > 0
    assert "profile_query" not in found["D_td-serial"]
    parts = {one.label: len(one.took_parts) for one in fork.summaries if one.took_parts}
    assert parts["D_hdr-serial"] == parts["D_hdr-msearch"] == 30
    epochs = [one.samples for one in known["epochs"].forks[0].summaries if one.label.startswith("epoch-")]
    assert epochs == 5 * [6]
    (wire,), (helper,) = (
        [one.ingest for one in known[name].indices.values()] for name in ("queries", "helper")
    )
    assert wire.documents == helper.documents == 3000
    assert (helper.client_s or 0) > 0
    assert (wire.client_s or 0) > 0


def test_call_sites_of_microbenchmarks_are_judged_by_the_logs_of_their_own_jvms(
    home: Home, benchctl: Benchctl
):
    words = ("experiment", "run", str(SHIPPED / "visit.yml"), "--test-mode", "--forks", "3", "--wait")
    done = benchctl(*words, "--measurement", "visit")
    assert done.returncode == 0, done.stderr
    record = executed(home)
    assert record is not None
    told = json.loads(benchctl("experiment", "report", record.id, "--format", "json").stdout)
    assert {one["call_site"]: one["outcome"] for one in told["analysis"]["fates"]} == {
        "one-kind": "confirmed",
        "two-kinds": "confirmed",
        "three-kinds": "confirmed",
    }


def test_the_circuit_breaker_is_measured_over_http(home: Home, benchctl: Benchctl):
    """In process, it is in `test_micro.py`, by three versions."""
    words = ("experiment", "run", str(SHIPPED / "circuit-breaker.yml"), "--test-mode", "--forks", "1")
    done = benchctl(*words, "--docs", "1000", "--measurement", "http", "--wait")
    assert done.returncode == 0, done.stderr
    (run,) = runs(home).values()
    assert len(run.forks) == 2
    for fork in run.forks:
        assert not [one.failure_reasons for one in fork.summaries if one.failures]


def test_doc_values_are_asked_for_all_that_they_are_read_for(home: Home, benchctl: Benchctl):
    words = ("experiment", "run", str(SHIPPED / "docvalues.yml"), "--test-mode", "--forks", "1")
    done = benchctl(*words, "--docs", "5000", "--measurement", "cold", "--wait")
    assert done.returncode == 0, done.stderr
    asked = ("run", "--challenge", str(SHIPPED / "challenges" / "docvalues.json"), "--test-mode")
    done = benchctl(*asked, "--docs", "5000", "--wait")
    assert done.returncode == 0, done.stderr
    (exports,) = runs(home).values()
    searches = RunStore(home.runs).find("latest").load()
    for run, tasks in ((exports, 4), (searches, 20)):
        assert [len(fork.summaries) for fork in run.forks] == [tasks, tasks]
        assert not [one.failure_reasons for fork in run.forks for one in fork.summaries if one.failures]
