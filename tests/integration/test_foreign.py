"""Tracks of Rally's and OpenSearch Benchmark's kind on real nodes: unchanged, from nothing or prepared."""

import subprocess
from pathlib import Path

import pytest

from benchctl.home import Home
from benchctl.results.model import ForkRecord, RunRecord, stray_boots
from benchctl.results.store import RunStore
from integration.calls import Benchctl
from integration.library import (
    LOANS,
    OVERDUE,
    READERS,
    VISITS,
    write_doors,
    write_house,
    write_library,
)

ORDINARY = ("--forks", "1", "--heap", "512m")


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_library(tmp_path_factory.mktemp("library"))


@pytest.fixture
def run(benchctl: Benchctl, store: RunStore, installations: object) -> "Run":
    assert installations
    return Run(benchctl, store)


class Run:
    """Runs a track to its end; `record` is what became of it."""

    def __init__(self, benchctl: Benchctl, store: RunStore) -> None:
        self._benchctl = benchctl
        self._store = store

    def __call__(self, track: Path, *arguments: str) -> tuple[str, RunRecord]:
        done = self._benchctl("run", "--track-path", str(track), "-v", *ORDINARY, *arguments)
        assert done.returncode == 0, done.stderr
        record = self._store.find("latest", finished=False).load()
        assert record.status == "complete"
        return done.stdout, record

    def refused(self, track: Path, *arguments: str) -> str:
        """The one line that it is refused with, before any node is started."""
        done: subprocess.CompletedProcess[str] = self._benchctl(
            "run", "--track-path", str(track), *ORDINARY, *arguments
        )
        assert done.returncode == 2, done.stderr
        assert "starting a node" not in done.stderr
        return done.stderr


def hits(fork: ForkRecord) -> dict[str, int | None]:
    """What the searches of a fork found; every task ended well."""
    assert all(one.unsupported is None for one in fork.summaries), fork
    assert not any(one.failures for one in fork.summaries), fork
    return {one.label: one.hits for one in fork.summaries if one.hits is not None}


def samples(fork: ForkRecord) -> dict[str, int]:
    return {one.label: one.samples for one in fork.summaries}


@pytest.mark.full
def test_a_challenge_that_makes_its_own_data_begins_on_empty_nodes(run: Run, library: Path, home: Home):
    before = sorted(home.indices.iterdir())
    text, record = run(library)
    assert (record.plan.origin, record.answers, record.indices) == ("empty", None, {})
    assert record.plan.corpus.documents == LOANS
    assert [file.corpus for file in record.plan.corpus.files] == ["loans"]
    assert sorted(home.indices.iterdir()) == before
    assert list(home.scratch.iterdir()) == []
    assert len(record.forks) == 2
    for fork in record.forks:
        assert hits(fork) == {
            "default": LOANS,
            "overdue": OVERDUE,
            "overdue-beside": OVERDUE,
            "by-shelf": LOANS,
        }
        assert samples(fork)["index-append"] == LOANS / 500
        assert samples(fork)["by-shelf"] == 10
        assert [boot.searches_counted is None for boot in fork.boots] == [False]
        assert stray_boots(fork) == ()
    assert "every fork made its own data" in text
    assert "index build" not in text


@pytest.mark.full
def test_a_challenge_that_only_asks_gets_what_the_track_declares(run: Run, library: Path):
    _, record = run(library, "--challenge", "search-only", "--docs", "1200", "--variant", "os")
    assert record.plan.origin == "prepared"
    assert (record.plan.corpus.documents, record.plan.corpus.files[0].held) == (1_200, LOANS)
    assert (record.indices["os"].documents, len(record.indices["os"].segments)) == (1_200, 1)
    assert record.answers is not None
    assert (len(record.answers.operations), record.answers.findings) == (3, ())
    (fork,) = record.forks
    found = hits(fork)
    assert (found["default"], found["by-shelf"]) == (1_200, 1_200)
    # An even share of the file has an even share of those at its beginning.
    assert found["overdue"] == pytest.approx(1_200 * OVERDUE // LOANS, rel=0.1)
    assert stray_boots(fork) == ()


def test_a_workload_of_two_indices_and_a_data_stream(run: Run, tmp_path: Path):
    text, record = run(write_house(tmp_path))
    for fork in record.forks:
        assert hits(fork) == {
            "readers": 2 * READERS,
            "visits": VISITS // 3,
            "everything": 2 * READERS + VISITS,
        }
        # Of several shards, a node's count of searches tells nothing.
        assert [boot.searches_counted for boot in fork.boots] == [None]
        lacking = ("visits-2024",) if fork.variant == "es" else ()
        assert [boot.stand_ins for boot in fork.boots] == [lacking]
    assert "es has no data streams: plain indices replace visits-2024" in text


@pytest.mark.full
def test_a_file_whose_action_lines_name_the_indices_fills_them_all(run: Run, tmp_path: Path):
    own = tmp_path / "own.json"
    lines = [
        f'{{"index": {{"_index": "{index}"}}}}\n{{"name": "{index}-{number}"}}\n'
        for index, documents in (("readers", 30), ("fines", 12))
        for number in range(documents)
    ]
    own.write_text("".join(lines), encoding="utf-8")
    asked = (
        "--include-tasks",
        "readers,everything",
        "--no-assertions",
        "--corpus",
        str(own),
        "--variant",
        "os",
    )
    _, record = run(write_house(tmp_path), *asked)
    assert (record.plan.origin, record.indices["os"].documents) == ("prepared", 42)
    (fork,) = record.forks
    assert (hits(fork)["readers"], hits(fork)["everything"]) == (42, 42)


@pytest.mark.full
def test_data_streams_are_prepared_from_templates(run: Run, tmp_path: Path):
    text, record = run(write_doors(tmp_path), "--variant", "es")
    (fork,) = record.forks
    assert hits(fork) == {"all": VISITS, "north": VISITS // 3}
    assert record.indices["es"].documents == VISITS
    assert "plain indices replace visits-2024" in text


def test_what_cannot_be_run_is_one_line_before_any_node(run: Run, library: Path, tmp_path: Path):
    assert "has 3,000 documents, but the track declares 3,001" in run.refused(
        library, "--param", "count=3001"
    )
    said = run.refused(library, "--challenge", "search-only", "--challenge", "append-and-search")
    assert "'search-only' comes before 'append-and-search', which makes the data" in said
    moved = tmp_path / "moved"
    write_library(moved)
    (moved / "documents.json.bz2").rename(tmp_path / "documents.json.bz2")
    assert "no documents.json.bz2 in" in run.refused(moved)
    own = str(tmp_path / "documents.json.bz2")
    assert "has no action lines" in run.refused(write_house(tmp_path), "--corpus", own)


@pytest.mark.full
def test_a_mapping_that_a_node_refuses_is_said_with_its_reason(benchctl: Benchctl, library: Path):
    words = ("--track-path", str(library), "--challenge", "search-only", *ORDINARY)
    done = benchctl("run", *words, "--variant", "es", "--param", "shelf_type=constant_keyword")
    assert done.returncode == 1
    said = done.stderr.splitlines()[-2:]
    assert "the node refuses the track's index 'loans'" in said[0]
    assert "No handler for type [constant_keyword] declared on field [shelf]" in said[0]
    assert "distribution:" in said[1]
