"""An experiment on real nodes: interrupted half-way, gone on with, and reported."""

import json
import signal
import subprocess
import sys
from pathlib import Path
from subprocess import PIPE

import pytest

from benchctl.home import Home
from integration.calls import Benchctl
from integration.executions import executed, runs

pytestmark = pytest.mark.timeout(300)

EXPERIMENTS = Path(__file__).parent / "experiments"
EXPERIMENT = (EXPERIMENTS / "twice.yml").read_text(encoding="utf-8")


def forks(home: Home) -> int:
    return sum(len(run.forks) for run in runs(home).values())


def test_an_experiment_that_is_interrupted_goes_on_to_its_report(
    home: Home, environ: dict[str, str], benchctl: Benchctl, tmp_path: Path
):
    path = tmp_path / "range.yml"
    path.write_text(EXPERIMENT)
    command = [sys.executable, "-m", "benchctl", "experiment", "run", str(path)]
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
    assert "measure 4 forks" in err
    cut = executed(home)
    assert cut is not None
    kept = forks(home)
    assert cut.status == "interrupted"
    assert f"{kept} of 4 forks are kept" in err
    assert f"benchctl resume {cut.id}" in err
    assert {run.status for run in runs(home).values()} == {"interrupted"}
    before = {
        (name, fork.block, fork.variant): fork.started
        for name, run in runs(home).items()
        for fork in run.forks
    }

    part = next(iter(cut.runs.values()))
    done = benchctl("resume", part)
    assert done.returncode == 0, done.stderr
    assert "Range, fresh and once more" in done.stdout
    assert "once more on the same node" in done.stdout
    assert "inconclusive" in done.stdout
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

    again = benchctl("resume", cut.id, "--format", "json")
    assert again.returncode == 0, again.stderr
    assert "nothing is measured" in again.stderr
    assert json.loads(again.stdout)["experiment"]["id"] == record.id


COSTS = (EXPERIMENTS / "costs.yml").read_text(encoding="utf-8")
CHALLENGE = {
    "name": "costs",
    "schedule": [
        {"operation": operation, "warmup-iterations": 2, "iterations": 5} for operation in ("range", "term")
    ],
}


@pytest.mark.full
def test_costs_and_totals_over_builds(home: Home, benchctl: Benchctl, tmp_path: Path):
    (tmp_path / "costs.json").write_text(json.dumps(CHALLENGE))
    path = tmp_path / "costs.yml"
    path.write_text(COSTS)
    done = benchctl("experiment", "run", str(path), "--format", "json")
    assert done.returncode == 0, done.stderr
    rows = {
        row["asked"]["name"]: row
        for table in json.loads(done.stdout)["analysis"]["tables"]
        for row in table["rows"]
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
    assert rows["cost"]["comparison"]["replicate"] == "build"
    assert rows["cost"]["comparison"]["difference_low"] is not None
    found = runs(home)
    assert (found["large"].plan.heap_mb, found["wire"].plan.heap_mb) == (600, 512)
    assert found["large"].plan.index_builds == 1
    assert {fork.index_build for fork in found["wire"].forks} == {0, 1}
    assert rows["size"]["comparison"]["units_baseline"] == 2
    assert not found["built"].forks
    shown = benchctl("show", found["built"].id)
    assert shown.returncode == 0, shown.stderr
    assert "index builds: os 2.11.0 vs es 8.11.0 (baseline), 2 index builds each" in shown.stdout
    words = ("compare", "es", "os", "--run", found["built"].id, "--metric", "build_rate,index_size")
    told = json.loads(benchctl(*words, "--format", "json").stdout)["rows"]
    assert [row["metric"] for row in told] == ["build_rate", "index_size"]
    assert all(side["value"] for row in told for side in row["figures"])
    assert " ms" in benchctl("experiment", "report", "latest").stdout
