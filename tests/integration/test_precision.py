"""A run that ends in time, on real nodes: what it says, what it leaves, and what a plan makes of it."""

import json

import pytest

from benchctl.results.store import RunStore
from integration.calls import Benchctl

pytestmark = [pytest.mark.full, pytest.mark.timeout(600)]

RANGE = ("--challenge", "range-only-short", "--as-written", "--docs", "20k", "--heap", "512m")
BUDGET_S = 12.0


def test_a_run_ends_in_time_and_plans_the_next(benchctl: Benchctl, store: RunStore):
    done = benchctl("run", *RANGE, "--budget", f"{BUDGET_S:g}s", "--tag", "short", "--tag", "timed", "--wait")
    assert done.returncode == 0, done.stderr
    record = store.find("latest", finished=False).load()
    assert (record.status, record.tags, record.plan.forks) == ("complete", ("short", "timed"), 50)
    forks = len(record.done("es"))
    assert forks == len(record.done("os")) == record.blocks
    assert 1 <= forks < 8
    # No block began when the time was over, but for the first.
    assert sum(fork.wall_s for fork in record.forks if fork.block < forks - 1) < BUDGET_S
    assert f"ended after {forks} of at most 50 forks a side, because --budget 12 s" in record.stopped
    assert "ends when the next block would take the forks beyond 12 s" in done.stderr
    assert "fewer than 8 forks" in " ".join(benchctl("show", record.id, "--notes").stdout.split())

    again = benchctl("resume", record.id, "--wait")
    assert again.returncode == 0, again.stderr
    assert "is complete: it ended after" in again.stderr
    assert store.find(record.id).load() == record

    listed = benchctl("list", "runs").stdout.splitlines()[-1]
    assert "short" in listed
    assert f"{2 * forks}/{2 * forks}" in listed

    planned = benchctl("plan", "--effect", "10%", *RANGE, "--format", "json")
    assert planned.returncode == 0, planned.stderr
    found = json.loads(planned.stdout)
    if forks > 1:
        assert record.id in found["runs"]
        assert found["requirements"][0]["prospect"]["match"] == "same"
    assert found["block_s"] > 0
