"""CPUs and builds on real nodes: what was asked for is what the processes and files show."""

import json
import os
import re
import subprocess

import pytest

from benchctl.home import Home
from benchctl.results.plan import PinSpec
from benchctl.results.store import RunFolder, RunStore
from integration.calls import Benchctl

NODE, DRIVER = (*sorted(os.sched_getaffinity(0)), 0, 0)[:2]

pytestmark = [
    pytest.mark.full,
    pytest.mark.timeout(600),
    pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="nodes and driver need a CPU each"),
]

# As other modules have it: all of them find one prepared index.
SMALL = ("--warmup", "as-written", "--docs", "20k", "--heap", "512m")
SEARCH = {"operation": "range", "iterations": 200}
BULK = {"name": "append", "operation-type": "bulk", "bulk-size": 500, "ingest-percentage": 75}
# Throttled, so that it takes some seconds on a fast machine, too.
INDEX = {"operation": BULK, "clients": 1, "target-throughput": "5000 docs/s"}
MIXED = {"name": "mixed", "schedule": [SEARCH, INDEX]}


@pytest.fixture(scope="module")
def pinned_run(
    benchctl: Benchctl, store: RunStore, tmp_path_factory: pytest.TempPathFactory
) -> tuple[RunFolder, subprocess.CompletedProcess[str]]:
    """One fork that searches, then indexes."""
    file = tmp_path_factory.mktemp("challenges") / "mixed.json"
    file.write_text(json.dumps(MIXED))
    done = benchctl(
        "run",
        "--challenge",
        str(file),
        "--variant",
        "os",
        "--forks",
        "1",
        "--pin",
        f"node={NODE},driver={DRIVER}",
        *SMALL,
    )
    if "benchctl itself did not run" in done.stderr:
        # Nodes of other tests may have taken the driver's only CPU: such a fork is measured once more.
        done = benchctl("resume", "latest")
    assert done.returncode == 0, done.stderr
    return store.find("latest", finished=False), done


@pytest.fixture
def told(pinned_run: tuple[RunFolder, subprocess.CompletedProcess[str]]) -> tuple[RunFolder, str]:
    return pinned_run[0], "os"


def test_the_jvm_sizes_itself_by_its_cpus(told: tuple[RunFolder, str]):
    folder, variant = told
    (fork,) = folder.load().done(variant)
    logs = [log.read_text() for log in (folder.path / fork.boots[0].logs).rglob("gc.log*")]
    assert {found for log in logs for found in re.findall(r"(\d+) available", log)} == {"1"}


def test_a_pinned_run_says_so(pinned_run: tuple[RunFolder, subprocess.CompletedProcess[str]]):
    folder, done = pinned_run
    record = folder.load()
    assert record.plan.pin == PinSpec((NODE,), (DRIVER,))
    assert any("the JVM saw 1 CPU" in caveat for caveat in record.caveats)
    said = " ".join(done.stdout.replace("\\\n", " ").split())
    assert f"--pin node={NODE},driver={DRIVER}" in said


def test_the_index_is_known_after_the_task_that_filled_it(told: tuple[RunFolder, str]):
    folder, variant = told
    record = folder.load()
    (fork,) = record.done(variant)
    searched, filled = (one.meters for one in fork.summaries)
    assert "index_size" not in searched
    # Three quarters of the documents are there twice.
    assert filled["index_size"] > 1.4 * record.indices[variant].store_bytes / 1e6


def test_forks_take_builds_in_turn_and_find_the_first_one_kept(
    pinned_run: tuple[RunFolder, object], benchctl: Benchctl, store: RunStore, home: Home
):
    done = benchctl(
        "run", "--challenge", "range-only-short", "--forks", "2", "--variant", "os", "--index-builds", "2",
        *SMALL,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    record = store.find("latest", finished=False).load()
    assert [fork.index_build for fork in record.done("os")] == [0, 1]
    assert "index builds" in done.stdout
    first, second = record.builds["os"]
    assert record.indices["os"] == first
    assert first.key == pinned_run[0].load().indices["os"].key
    assert (first.cached, second.cached) == (True, False)
    assert first.key != second.key
    assert first.documents == second.documents == 20_000
    # Others may have built some of other sizes.
    assert len(list(home.indices.glob("opensearch-*-20000-*-build-1"))) == 1


def test_cpus_that_cannot_be_had_are_refused_before_anything_starts(benchctl: Benchctl):
    done = benchctl("run", "--challenge", "range-only-short", "--pin", "node=0,driver=4095")
    assert done.returncode == 2
    assert "CPU 4095 is not available" in done.stderr
