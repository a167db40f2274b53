"""`benchctl experiment`: what it prints and refuses without any node."""

import dataclasses
import json
import os
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner, Result

import benchctl.home as boundary_home
from benchctl.cli import root
from benchctl.cli.run import How
from benchctl.errors import BenchctlError, UsageError
from benchctl.experiment.commands import BegunExperiment, conclude
from benchctl.experiment.file import experiment_names
from benchctl.home import Home
from benchctl.lock import host_lock
from benchctl.results.store import RunFolder
from benchctl.run.host import describe_host
from benchctl.run.orchestrate import More
from experiment.laboratory import World
from experiment_files import EXPERIMENT, load, write


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(boundary_home, "_check_reachable", lambda *_: None)
    monkeypatch.setenv("BENCHCTL_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def call(*arguments: str) -> Result:
    return CliRunner().invoke(root, ["experiment", *arguments])


def refusal(*arguments: str) -> str:
    result = call(*arguments)
    assert isinstance(result.exception, UsageError), result.output
    return str(result.exception)


def measured(home: Path, tmp_path: Path) -> World:
    world = World(home)
    world.begin(load(tmp_path))
    return world


def test_shipped_experiments_are_listed_and_what_was_run(home: Path, tmp_path: Path):
    world = measured(home, tmp_path)
    rows = json.loads(call("list", "--format", "json").stdout)
    assert [row["experiment"] for row in rows] == [*experiment_names(), "used"]
    assert rows[-1]["id"] == world.record.id
    assert (rows[-1]["status"], rows[-1]["forks"]) == ("complete", "12/12")
    assert {row["status"] for row in rows[:-1]} <= {"shipped"}


def test_looking_leaves_no_trace(home: Path, tmp_path: Path):
    assert call("list").exit_code == 0
    assert call("run", str(write(tmp_path)), "-n").exit_code == 0
    assert not any(path.is_file() for path in home.rglob("*"))


def test_what_cannot_be_run_is_refused(tmp_path: Path):
    path = str(write(tmp_path))
    assert call("run").exit_code == 2
    assert "no such experiment 'nothing'" in refusal("run", "nothing")
    assert call("run", path, "--forks", "0").exit_code == 2
    assert "--budget" in refusal("run", path, "--budget", "0s")
    assert "no such execution 'x' in" in refusal("report", "x")


def test_a_dry_run_says_what_would_be_measured_what_that_takes_and_will_see(tmp_path: Path):
    with host_lock(wait=False, on_wait=print):
        result = call("run", str(write(tmp_path)), "--dry-run")
    assert result.exit_code == 0, result.exception
    assert f"another benchctl is measuring on this host: process {os.getpid()}" in result.stderr
    lines = result.stdout.splitlines()
    assert lines[0] == "would measure used: 2 measurements"
    assert all(f"{name}: this run: 3 forks per variant" in result.stderr for name in ("fresh", "used"))
    # Each engine and its index once, though both measurements have it.
    assert lines[-2] == (
        "steps: fetch elasticsearch 8.11.0; fetch opensearch 2.11.0; generate 20,000 documents; "
        "index on elasticsearch 8.11.0; index on opensearch 2.11.0; measure 12 forks"
    )
    assert lines[-1].startswith("total: about ")


def test_a_trial_takes_as_many_documents_as_files_have(tmp_path: Path):
    schedule = [{"operation": {"name": "range", "operation-type": "search"}}]
    documents = [{"source-file": "d.json", "document-count": 3}]
    track = {
        "indices": [{"name": "i"}],
        "corpora": [{"name": "c", "documents": documents}],
        "challenges": [
            {"name": name, "schedule": schedule} for name in ("range-only-short", "big5rangedebug")
        ],
    }
    (tmp_path / "track.json").write_text(json.dumps(track))
    (tmp_path / "d.json").write_bytes(b"{}\n" * 3)
    path = write(tmp_path, EXPERIMENT.replace("docs: 20k", "track: track.json"))
    assert call("run", str(path), "--test-mode", "--dry-run").exit_code == 0
    assert "fewer than the 10 of --docs" in refusal("run", str(path), "--docs", "10", "--dry-run")


def test_a_finished_one_is_not_measured_again(home: Path, tmp_path: Path):
    world = measured(home, tmp_path)
    result = CliRunner().invoke(root, ["resume", world.record.id, "--format", "json"])
    assert result.exit_code == 0, result.exception
    assert "is complete; nothing is measured" in result.stderr
    assert len(world.forks) == 12
    assert json.loads(result.stdout)
    again = call("report", "latest", "--format", "json")
    assert json.loads(again.stdout) == json.loads(result.stdout)
    begun = CliRunner().invoke(root, ["resume", world.record.id[:12], "--format", "markdown"])
    assert "is complete; nothing is measured" in begun.stderr
    wrong = CliRunner().invoke(root, ["resume", world.record.id, "--format", "csv"])
    assert isinstance(wrong.exception, UsageError)


def test_more_is_added_to_what_is_complete_only(
    home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    world = measured(home, tmp_path)
    whole = BegunExperiment(Home(home), world.folder)
    how = How("text", verbose=False, on_busy=None, quiet=True, trust=False, dry_run=False)
    for run in sorted((home / "runs").glob("*/run.json")):
        folder = RunFolder(run.parent)
        folder.save(msgspec.structs.replace(folder.load(), environment=describe_host()))
    whole.extend(More(3), dataclasses.replace(how, dry_run=True))
    said = capsys.readouterr().out.splitlines()
    assert len(said) == len(world.record.runs)
    assert all("would measure 3 more forks of" in line for line in said)
    with pytest.raises(UsageError, match="--until-decided"):
        whole.extend(More(until_decided=True), how)
    world.folder.save(msgspec.structs.replace(world.record, status="interrupted"))
    with pytest.raises(UsageError, match=f"experiment {world.record.id} is not finished"):
        whole.extend(More(), how)


def test_a_report_is_a_page_too(home: Path, tmp_path: Path):
    world = measured(home, tmp_path)
    result = call("report", world.record.id, "--format", "html")
    assert result.exit_code == 0, result.exception
    assert result.stdout.startswith("<!DOCTYPE html>")
    assert "alike when fresh" in result.stdout


def test_an_experiment_that_only_builds_indices_says_what_that_takes(tmp_path: Path):
    text = "title: a\ndocs: 5k\nmeasurements: {m: {variants: [es, os], ingest: true, index-builds: 2}}\n"
    shown = " ".join(call("run", str(write(tmp_path, text)), "-n").stdout.split())
    assert "index on elasticsearch 8.11.0, 2 times; index on opensearch 2.11.0, 2 times" in shown


def test_the_report_says_which_inlining_logs_are_missing(home: Path, tmp_path: Path):
    text = EXPERIMENT.replace(
        "tables:",
        """  jit: {variants: [es], challenges: [range-only-short], evidence: {kinds: [inlining], forks: 1}}
call-sites:
  - {name: visit, measurement: jit, variants: [es], method: A::b, callee: visit, task: range}
tables:""",
    )
    World(home).begin(load(tmp_path, text))
    result = call("report", "latest")
    assert result.exit_code == 0, result.exception
    assert "What the JVM did" in result.stdout
    assert "No inlining log of jit/es, block 3: it does not exist." in result.stdout
    assert json.loads(call("list", "--format", "json").stdout)[-1]["forks"] == "16/16"


def test_failed_forks_are_no_success(home: Path, tmp_path: Path):
    world = World(home, fails=lambda fork: fork == (0, "used", "es"))
    world.begin(load(tmp_path))
    world.folder.save(msgspec.structs.replace(world.record, status="failed"))
    result = call("report", "latest")
    assert result.exit_code == 0, result.exception
    run = world.store.find(world.record.runs["used"])
    assert len(run.load().missing()) == 1
    with pytest.raises(BenchctlError, match="1 fork failed"):
        conclude(world.record, world.store, "text")
