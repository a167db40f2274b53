"""Pilot forks on real nodes: counts that are chosen, kept with the run, and printed as a command."""

import shlex

import pytest

from benchctl.results.store import RunStore
from benchctl.run.pilot import MOST_ATTEMPTS
from integration.calls import Benchctl

pytestmark = [pytest.mark.full, pytest.mark.timeout(600)]

RANGE = ("--challenge", "range-only-short", "--docs", "20k", "--heap", "512m", "--variant", "os")


def test_a_pilot_chooses_the_warm_up_of_the_run(benchctl: Benchctl, store: RunStore):
    done = benchctl("run", *RANGE, "--param", "iterations=30", "--forks", "1", "--warmup", "pilot")
    assert done.returncode == 0, done.stderr
    folder = store.find("latest", finished=False)
    record = folder.load()
    pilot = record.pilot
    assert [fork.attempt for fork in pilot.forks] == list(range(1, len(pilot.forks) + 1))
    assert len(pilot.forks) <= MOST_ATTEMPTS
    assert all(fork.summaries[0].course.of >= 200 for fork in pilot.forks)
    # Most pilots find that a fresh JVM is slow at first; in a noisy one nothing may show, which is an answer.
    task = record.plan.schedules[0].schedule[0]
    warm_up = pilot.params.get("range-only-short.warmup_iterations", 0)
    assert warm_up % 10 == 0
    assert (task.warmup_iterations or 0, task.iterations) == (warm_up, 30)
    measured = record.done("os")[0].summaries[0]
    assert (measured.warmup_samples, measured.samples) == (warm_up, 30)
    assert record.timings["pilot-s"] > 0
    assert len(list((folder.path / "forks").iterdir())) == len(record.forks)

    line = next(line for line in done.stderr.splitlines() if "without a pilot: " in line)
    words = shlex.split(line.partition("without a pilot: ")[2])
    chosen = f"range-only-short.warmup_iterations={warm_up}"
    assert (chosen in words) == (warm_up > 0)
    assert ("no task needs more warm-up" in done.stderr) == (warm_up == 0)
    assert "--warmup" not in words
    assert "pilot fork" in benchctl("show", record.id, "--host").stdout
