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
    """The only execution; None before there is one."""
    folders = ExperimentStore(home.root / "experiments").folders()
    return folders[0].load() if folders else None


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
