"""A search on real nodes: what warms a task up is found, and what does not matter goes."""

import json
import shlex
from pathlib import Path

import pytest

from benchctl.home import Home
from benchctl.search.record import find_search
from integration.calls import Benchctl

pytestmark = [pytest.mark.full, pytest.mark.timeout(600)]

SCHEDULE = [
    {"operation": {"name": "one", "operation-type": "search", "body": {"size": 1}}, "iterations": 1},
    {"name": "warm-up", "operation": "range", "iterations": 100},
    # The first few on a fresh node take many times as long.
    {"operation": "range", "iterations": 3},
    {"operation": "term", "iterations": 3},
]


def test_the_task_that_warms_a_range_up_is_found(benchctl: Benchctl, home: Home, tmp_path: Path):
    path, output = tmp_path / "warmed.json", tmp_path / "found.json"
    path.write_text(json.dumps({"name": "warmed", "schedule": SCHEDULE}), encoding="utf-8")
    done = benchctl(
        "minimize", "--challenge", str(path), "--effect", "range faster than fresh", "--variant", "os",
        "--docs", "20k", "--heap", "512m", "--forks", "16", "--prefix-iterations", "0",
        "--output", str(output), "--budget", "15s",
    )  # fmt: skip
    # Time for the first pair, perhaps a second; then all that is left to ask.
    assert done.returncode == 4, done.stderr
    folder = find_search(home, "latest")
    assert folder.load().status == "interrupted"
    done = benchctl("resume", folder.path.name, "--budget", "10m")
    assert done.returncode == 0, done.stderr
    record = folder.load()
    assert record.status == "complete"
    assert [one.verdict for one in record.questions] == ["present", "present"], done.stdout
    assert record.questions[1].against == ("one",)
    assert record.questions[1].subject == ("warm-up",)
    assert "persists with 1 of 2 steps before it: warm-up" in " ".join(done.stdout.split())
    for question in record.questions:
        for name in question.runs:
            run = folder.runs.find(name).load()
            assert run.status == "complete"
            assert len(run.done("os")) == len(question.contender)

    # Nothing stayed open that further pairs could answer.
    assert benchctl("extend", record.id, "--forks", "2").returncode == 0
    assert folder.load().questions == record.questions

    # What came out can be run.
    document = json.loads(benchctl("resume", record.id, "--format", "json").stdout)
    command, *words = shlex.split(document["commands"]["To see it again"])[1:]
    assert command == "run"
    at = words.index("--forks")
    again = ("--variant", "again=os")
    planned = benchctl("plan", "--effect", "50%", *words[:at], *words[at + 2 :], *again)
    assert planned.returncode == 0, planned.stderr
    assert "Fork pairs to detect 50%" in planned.stdout
