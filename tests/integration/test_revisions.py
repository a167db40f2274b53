"""Commits that build distributions, on real nodes: two for a pull request, and the first slow one found."""

import json
from pathlib import Path

import pytest

from benchctl.engine.distribution import Installation
from benchctl.home import Home
from benchctl.results.plan import EngineName
from integration.calls import Benchctl
from integration.conftest import QUICK_FLAGS
from scripted_history import ARTIFACT, BUILD, SLOW, Step, write_history

pytestmark = pytest.mark.timeout(600)

QUICK = "\n".join(QUICK_FLAGS)
OPERATION = "composite-date_histogram-daily"
SCHEDULE = [{"operation": OPERATION, "name": "histogram", "warmup-iterations": 30, "iterations": 30}]
RECIPE = ("--build", BUILD, "--artifact", ARTIFACT, "--variant", "os", "--docs", "10k", "--heap", "512m")


@pytest.fixture
def challenge(tmp_path: Path) -> Path:
    path = tmp_path / "short.json"
    path.write_text(json.dumps({"name": "short", "schedule": SCHEDULE}), encoding="utf-8")
    return path


@pytest.fixture
def archive(home: Home, installations: dict[EngineName, Installation]) -> Path:
    assert installations
    return home.artifacts / "opensearch-2.11.0.zip"


@pytest.mark.full
def test_two_commits_are_built_measured_and_told_in_a_comment(
    benchctl: Benchctl, home: Home, archive: Path, challenge: Path, tmp_path: Path
):
    shas = write_history(
        tmp_path / "source", [Step("One", QUICK), Step("Two | <b>", f"{QUICK}\n{SLOW}")], archive=archive
    )
    words = ("ab", "--source", str(tmp_path / "source"), "--base", "HEAD~1", "--head", "HEAD", *RECIPE)
    done = benchctl(*words, "--challenge", str(challenge), "--budget", "1s", "--metric", "cpu_search")
    assert done.returncode == 4, done.stderr
    assert done.stdout.startswith(
        "<!-- benchctl ab -->\n## short: head 2.11.0 vs base 2.11.0 (baseline), 1 fork each"
    )
    assert f"base is `{shas[0][:10]}` (One), built in " in done.stdout
    assert f"head is `{shas[1][:10]}` (Two \\| \\<b>), built in " in done.stdout
    assert "| histogram |" in done.stdout
    assert "engine.zip" in done.stdout
    assert str(home.root) not in done.stdout
    assert "benchctl: gate: " in done.stderr


@pytest.mark.full
def test_the_first_slow_commit_is_found_past_one_that_does_not_build(
    benchctl: Benchctl, archive: Path, challenge: Path, tmp_path: Path
):
    slow = f"{QUICK}\n{SLOW}"
    steps = [Step("Fast", QUICK), Step("Broken", "broken"), Step("Slow", slow)]
    shas = write_history(tmp_path / "source", steps, archive=archive)
    words = ("bisect", "--source", str(tmp_path / "source"), "--good", shas[0], "--bad", shas[-1], *RECIPE)
    words = (*words, "--challenge", str(challenge), "--metric", "cpu_search", "--format", "json")
    done = benchctl(*words)
    assert done.returncode == 4, done.stderr
    record = json.loads(done.stdout)["search"]
    assert [(one["phase"], one["verdict"]) for one in record["questions"]] == [
        ("ends", "present"),
        ("step", "present"),
    ]
    assert "does not build: python3 build.py exited with status 1" in record["skipped"]["1"]
    for again in (words, ("resume", record["id"], "--format", "json")):
        done_again = benchctl(*again)
        assert (done_again.stdout, done_again.returncode) == (done.stdout, 4)
