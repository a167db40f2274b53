"""An experiment on real nodes: interrupted half-way, gone on with, and reported."""

import json
import signal
import subprocess
import sys
from pathlib import Path
from subprocess import PIPE

import pytest

from benchctl.experiment.record import ExperimentRecord, ExperimentStore
from benchctl.home import Home
from benchctl.results.model import RunRecord
from benchctl.results.store import RunStore
from integration.calls import Benchctl

pytestmark = pytest.mark.timeout(300)

EXPERIMENT = """
title: Range, fresh and once more
forks: 2
docs: 20k
heap: 512m
measurements:
  fresh: {variants: [os], challenges: [range-only-short]}
  twice: {variants: [os], challenges: [range-only-short, range-only-short], restart: never}
tables:
  - title: Range, first and once more
    metric: throughput
    rows:
      - name: alone
        baseline: fresh/os/range
        contender: twice/os/range-only-short#1/range
        published: [0.65, 0.68]
      - name: again
        label: once more on the same node
        baseline: twice/os/range-only-short#1/range
        contender: twice/os/range-only-short#2/range
expectations:
  - {statement: range is as fast in both, comparisons: [alone], is: alike, margin: 10%}
"""


def executed(home: Home) -> ExperimentRecord | None:
    """The newest execution; None before there is one."""
    folders = ExperimentStore(home.root / "experiments").folders()
    return folders[-1].load() if folders else None


def runs(home: Home) -> dict[str, RunRecord]:
    record = executed(home)
    return (
        {}
        if record is None
        else {name: RunStore(home.runs).find(one).load() for name, one in record.runs.items()}
    )


def forks(home: Home) -> int:
    return sum(len(run.forks) for run in runs(home).values())


def test_an_experiment_that_is_interrupted_goes_on_to_its_report(
    home: Home, environ: dict[str, str], benchctl: Benchctl, tmp_path: Path
):
    path = tmp_path / "range.yml"
    path.write_text(EXPERIMENT)
    command = [sys.executable, "-m", "benchctl", "experiment", "run", str(path), "--wait"]
    with subprocess.Popen(command, env=environ, stdout=PIPE, stderr=PIPE, text=True) as one:
        assert one.stderr is not None
        err = ""
        for line in one.stderr:
            err += line
            if err.count(" p90 ") == 2:
                one.send_signal(signal.SIGINT)
                break
        out, rest = one.communicate(timeout=200)
        err += rest
    assert one.returncode == 130, err
    assert out == ""
    assert " a block, " in err
    cut = executed(home)
    assert cut is not None
    kept = forks(home)
    assert cut.status == "interrupted"
    assert f"{kept} of 4 forks are kept" in err
    assert f"benchctl experiment run --resume {cut.id}" in err
    assert {run.status for run in runs(home).values()} == {"interrupted"}
    before = {
        (name, fork.block, fork.variant): fork.started
        for name, run in runs(home).items()
        for fork in run.forks
    }

    done = benchctl("experiment", "run", "--resume", cut.id, "--wait", "--html", str(tmp_path / "pages"))
    assert done.returncode == 0, done.stderr
    assert "Range, fresh and once more" in done.stdout
    assert "once more on the same node" in done.stdout
    assert "inconclusive" in done.stdout
    assert (tmp_path / "pages" / "index.html").is_file()
    record = executed(home)
    assert record is not None
    assert (record.status, record.stopped) == ("complete", "")
    assert record.runs == cut.runs
    after = {
        (name, fork.block, fork.variant): fork.started
        for name, run in runs(home).items()
        for fork in run.forks
    }
    assert len(after) == 4
    assert before.items() <= after.items()
    blocks = [block for (_, block, _), _ in sorted(after.items(), key=lambda item: item[1])]
    assert blocks == sorted(blocks)
    for name, run in runs(home).items():
        assert run.status == "complete"
        assert f"measurement-{name}" in run.tags
        assert benchctl("show", run.id).returncode == 0

    again = benchctl("experiment", "run", "--resume", "latest", "--format", "json")
    assert again.returncode == 0, again.stderr
    assert "nothing is measured" in again.stderr
    assert json.loads(again.stdout)["experiment"]["id"] == record.id


COSTS = """
title: The histogram's cost, and rates
docs: 6k
index: deterministic
forks: 2
heap: 512m
measurements:
  wire: {variants: [es, os], challenges: [costs.json], index-builds: 2}
  client: {variants: [es], challenges: [costs.json], transport: client, forks: 1}
  rates:
    variants: [es, os]
    forks: 1
    redline: {operation: range, slo: p50=2s, clients: 2, warm-up: 1, settle: 0, step-time: 1, max-rate: 8}
  built: {variants: [es, os], ingest: true, index-builds: 2}
tables:
  - title: Costs
    metric: mean
    rows:
      - name: cost
        as: difference
        baseline: [wire/es/term, -wire/es/range]
        contender: [wire/os/term, -wire/os/range]
      - name: total
        as: ratio-of-sums
        baseline: [wire/es/term, wire/es/range]
        contender: [wire/os/term, wire/os/range]
      - {name: rate, metric: redline, baseline: rates/es/range, contender: rates/os/range}
      - {name: size, metric: index_size, baseline: built/es, contender: built/os}
expectations:
  - {statement: Costs are alike, comparisons: [cost], is: alike, margin: 10 s}
"""
CHALLENGE = {
    "name": "costs",
    "schedule": [
        {"operation": operation, "warmup-iterations": 2, "iterations": 5} for operation in ("range", "term")
    ],
}


def test_costs_totals_and_rates_over_builds(home: Home, benchctl: Benchctl, tmp_path: Path):
    (tmp_path / "costs.json").write_text(json.dumps(CHALLENGE))
    path = tmp_path / "costs.yml"
    path.write_text(COSTS)
    done = benchctl("experiment", "run", str(path), "--wait", "--format", "json")
    assert done.returncode == 0, done.stderr
    rows = {
        row["name"]: row for table in json.loads(done.stdout)["analysis"]["tables"] for row in table["rows"]
    }
    for name, weights in {"cost": (1, -1), "total": (1, 1)}.items():
        for variant, side in zip(("es", "os"), rows[name]["figures"], strict=True):
            expected = [
                sum(
                    weight * one.mean_ns / 1e6
                    for weight, task in zip(weights, ("term", "range"), strict=True)
                    for one in fork.summaries
                    if one.label == task and one.mean_ns is not None
                )
                for fork in runs(home)["wire"].compared(variant)
            ]
            assert side["values"] == pytest.approx(expected)
    # Two builds of the same content are one index.
    assert rows["cost"]["comparison"]["replicate"] == "fork"
    assert rows["cost"]["comparison"]["difference_low"] is not None
    assert rows["rate"]["figures"][0]["at_least"]
    found = runs(home)
    assert (found["client"].plan.transport, found["wire"].plan.transport) == ("client", "wire")
    assert found["client"].plan.index_builds == 1
    assert {fork.index_build for fork in found["wire"].forks} == {0}
    assert rows["size"]["comparison"]["builds_baseline"] == 2
    assert not found["built"].forks
    # Several segments, cut and merged: what two builds have is the same to the byte.
    for builds in found["built"].builds.values():
        first, second = (build.content for build in builds)
        assert first == second != ""
    shown = benchctl("show", found["built"].id)
    assert shown.returncode == 0, shown.stderr
    assert "index builds: os 2.11.0 vs es 8.11.0 (baseline), 2 index builds each" in shown.stdout
    words = ("compare", "es", "os", "--run", found["built"].id, "--metric", "build_rate,index_points")
    told = json.loads(benchctl(*words, "--format", "json").stdout)["rows"]
    assert [row["metric"] for row in told] == ["build_rate", "index_points"]
    assert all(side["value"] for row in told for side in row["figures"])
    text = benchctl("experiment", "report", "latest").stdout
    assert ">= " in text
    assert " ms" in text


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
      - {name: built, metric: build_client, as: difference, baseline: queries/es, contender: helper/es}
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
    assert found["D_td-profiled"]["profile_percentiles"] > 0
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


def test_the_circuit_breaker_is_measured_in_process_and_over_http(home: Home, benchctl: Benchctl):
    words = ("experiment", "run", str(SHIPPED / "circuit-breaker.yml"), "--test-mode", "--forks", "1")
    done = benchctl(*words, "--docs", "1000", "--measurement", "versions", "--measurement", "http", "--wait")
    assert done.returncode == 0, done.stderr
    assert {name: len(run.forks) for name, run in runs(home).items()} == {"versions": 3, "http": 2}
    for run in runs(home).values():
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
