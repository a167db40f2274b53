"""Preparations that are killed or interrupted on real nodes: the next one goes on, and nothing is lost."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import psutil
import pytest

from benchctl.corpus.generated import Corpus, open_documents
from benchctl.engine.cluster import boot
from benchctl.engine.filling import MANIFEST_NAME, PartialIndex
from benchctl.engine.prepared_index import copy_index
from benchctl.errors import ExitCode
from benchctl.home import Home
from benchctl.results.plan import EngineName
from benchctl.run.bench import SilentObserver
from benchctl.run.building import Keeping
from benchctl.run.prepare import prepare_corpus
from benchctl.run.session import Subject
from integration import filler
from waiting import eventually

# Whoever prepares an index here finds the engines as they start quickly.
pytestmark = [pytest.mark.full, pytest.mark.timeout(600), pytest.mark.usefixtures("installations")]

DOCUMENTS = 40_000
EVERY_BYTES = 5_500_000
A_CHECKPOINT = 6_000  # documents: bodies of 2,000 with 1.87 MB each
# Behind two checkpoints, and far enough from the end.
ENOUGH = 15_000


@pytest.fixture(scope="module")
def corpus(home: Home) -> Corpus:
    return prepare_corpus(home, DOCUMENTS, 1, SilentObserver())


class Preparation:
    """A preparation in a process of its own."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self.lines: list[str] = []

    def until_sent(self, documents: int) -> None:
        """Listen until so many are acknowledged."""
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self.lines.append(line.strip())
            if line.startswith("documents") and int(line.split()[1]) >= documents:
                return
        raise AssertionError(f"it ended: {self.lines[-5:]}")

    @property
    def node(self) -> int:
        (line,) = [line for line in self.lines if line.startswith("node")]
        return int(line.split()[1])

    def end_by(self, number: int, pid: int | None = None) -> tuple[int, str]:
        """Send a signal to it, or to another process; how it ended, and what it said last."""
        os.kill(pid or self._process.pid, number)
        return self.end()

    def end(self) -> tuple[int, str]:
        """Wait for it; how it ended, and what it said last."""
        assert self._process.stdout is not None
        self.lines += [line.strip() for line in self._process.stdout]
        return self._process.wait(), self.lines[-1]


@contextmanager
def preparing(home: Home, engine: EngineName, most_bytes: int = 0) -> Iterator[Preparation]:
    numbers = (str(number) for number in (DOCUMENTS, EVERY_BYTES, most_bytes))
    command = [sys.executable, filler.__file__, str(home.root), engine, *numbers]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield Preparation(process)
        finally:
            process.kill()


def finish(home: Home, engine: EngineName) -> Subject:
    return filler.fill(home.root, engine, DOCUMENTS, Keeping(after_s=0.0, every_bytes=10**12))


def partial_index(home: Home) -> PartialIndex:
    """The only one that there is."""
    (root,) = home.partial.iterdir()
    return PartialIndex(root, msgspec.json.decode((root / MANIFEST_NAME).read_bytes())["key"])


def acknowledged(home: Home) -> int:
    """How many documents are put by; all of them from the beginning."""
    progress = partial_index(home).progress()
    assert progress is not None
    assert progress.ranges == ((0, progress.documents),)
    return progress.documents


def sums_of(corpus: Corpus) -> dict[str, float]:
    """Of two fields over all documents: wrong when one is there twice and another is lost."""
    found = [
        msgspec.json.decode(line)["metrics"]
        for block in open_documents(corpus)
        for line in block.splitlines()
    ]
    return {name: float(sum(one[name] for one in found)) for name in ("size", "tmin")}


def sums_in(subject: Subject, home: Home, scratch: Path) -> dict[str, float]:
    """The same by a node that looks at a copy of the finished index."""
    assert subject.index is not None
    copy_index(subject.index, scratch / "data")
    with boot(
        subject.installation,
        subject.jdk,
        data=scratch / "data",
        folder=scratch / "boot",
        owner=home.node_owner,
        heap_mb=filler.HEAP_MB,
        expect_index="big5",
    ) as node:
        aggs = {name: {"sum": {"field": f"metrics.{name}"}} for name in ("size", "tmin")}
        found = node.client.search("big5", {"size": 0, "aggs": aggs})["aggregations"]
    return {name: one["value"] for name, one in found.items()}


@pytest.fixture(autouse=True)
def nothing_kept(home: Home) -> Iterator[None]:
    """These indices have the keys of other tests'; none may be found, or left that went through this."""
    before = {*home.indices.iterdir(), *home.scratch.iterdir()}
    yield
    for root in {*home.indices.iterdir(), *home.scratch.iterdir()} - before:
        shutil.rmtree(root)
    assert list(home.partial.iterdir()) == []


def test_what_a_killed_benchctl_had_sent_is_not_sent_again(home: Home, corpus: Corpus, scratch: Path):
    with preparing(home, "elasticsearch") as preparation:
        preparation.until_sent(ENOUGH)
        node = preparation.node
        assert preparation.end_by(signal.SIGKILL)[0] == -signal.SIGKILL
        # What the node got beyond the last checkpoint before it ended is of no concern.
        assert eventually(lambda: not psutil.pid_exists(node))
    assert 2 * A_CHECKPOINT <= acknowledged(home) < DOCUMENTS
    subject = finish(home, "elasticsearch")
    assert subject.index is not None
    facts = subject.index.facts
    assert facts.documents == facts.ingest.documents == DOCUMENTS
    assert [segment.documents for segment in facts.segments] == [DOCUMENTS]
    assert facts.ingest.resumed == 1
    assert facts.ingest.checkpoint_s > 0
    assert sums_in(subject, home, scratch) == sums_of(corpus)


def test_an_interrupted_preparation_loses_nothing_that_was_acknowledged(home: Home, corpus: Corpus):
    with preparing(home, "opensearch") as preparation:
        preparation.until_sent(ENOUGH)
        status, said = preparation.end_by(signal.SIGINT)
    kept = acknowledged(home)
    assert ENOUGH <= kept < DOCUMENTS
    assert status == ExitCode.INTERRUPTED
    said_kept = f"{kept:,} of {DOCUMENTS:,} documents of opensearch 2.11.0's index are kept in"
    assert f"interrupted; {said_kept}" in said
    assert f"rm -r {partial_index(home).root}" in said
    subject = finish(home, "opensearch")
    assert subject.index is not None
    assert subject.index.facts.documents == corpus.documents
    assert subject.index.facts.ingest.resumed == 1


def test_a_node_that_is_killed_in_the_ingest_is_named_and_what_it_had_put_by_is_kept(
    home: Home, corpus: Corpus
):
    with preparing(home, "opensearch") as preparation:
        preparation.until_sent(ENOUGH)
        status, said = preparation.end_by(signal.SIGKILL, preparation.node)
    assert status == ExitCode.FAILED
    assert "was killed by signal 9 (SIGKILL)" in said
    assert 2 * A_CHECKPOINT <= acknowledged(home) < corpus.documents
    partial_index(home).discard()


def test_a_disk_that_is_full_in_the_ingest_is_named_and_nothing_half_written_is_kept(
    home: Home, corpus: Corpus
):
    assert corpus.documents == DOCUMENTS
    # Less than three bulk requests, of which the translog keeps every byte until the first checkpoint.
    with preparing(home, "opensearch", most_bytes=5_000_000) as preparation:
        status, said = preparation.end()
    assert status == ExitCode.FAILED
    assert "File too large" in said
    assert not psutil.pid_exists(preparation.node)
    assert list(home.partial.iterdir()) == []
