"""Preparations that are killed on real nodes: nothing of them is left, and the next one starts over."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import psutil
import pytest

from benchctl.corpus.generated import Corpus
from benchctl.errors import ExitCode
from benchctl.home import Home
from benchctl.results.plan import EngineName
from benchctl.run.bench import Observer
from benchctl.run.orchestrate import clean_scratch
from benchctl.run.prepare import prepare_corpus
from integration import filler
from waiting import eventually

# Whoever prepares an index here finds the engines as they start quickly.
pytestmark = [pytest.mark.full, pytest.mark.timeout(600), pytest.mark.usefixtures("installations")]

DOCUMENTS = 40_000
ENOUGH = 15_000  # far enough from the end


@pytest.fixture(scope="module")
def corpus(home: Home) -> Corpus:
    return prepare_corpus(home, DOCUMENTS, 1, Observer())


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
    numbers = (str(number) for number in (DOCUMENTS, most_bytes))
    command = [sys.executable, filler.__file__, str(home.root), engine, *numbers]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield Preparation(process)
        finally:
            process.kill()


@pytest.fixture(autouse=True)
def nothing_kept(home: Home) -> Iterator[None]:
    """These indices have the keys of other tests'; none may be found, or left that went through this."""
    before = {*home.indices.iterdir(), *home.scratch.iterdir()}
    yield
    for root in {*home.indices.iterdir(), *home.scratch.iterdir()} - before:
        shutil.rmtree(root)


def test_what_a_killed_benchctl_had_built_is_removed_and_built_again(home: Home, corpus: Corpus):
    with preparing(home, "elasticsearch") as preparation:
        preparation.until_sent(ENOUGH)
        node = preparation.node
        assert preparation.end_by(signal.SIGKILL)[0] == -signal.SIGKILL
        assert eventually(lambda: not psutil.pid_exists(node))
    assert list(home.scratch.glob("index-*"))
    clean_scratch(home)
    subject = filler.fill(home.root, "elasticsearch", DOCUMENTS)
    assert list(home.scratch.glob("index-*")) == []
    assert subject.index is not None
    facts = subject.index.facts
    assert facts.documents == facts.ingest.documents == corpus.documents
    assert [segment.documents for segment in facts.segments] == [DOCUMENTS]


def test_an_interrupted_preparation_leaves_nothing(home: Home, corpus: Corpus):
    assert corpus.documents == DOCUMENTS
    with preparing(home, "opensearch") as preparation:
        preparation.until_sent(ENOUGH)
        status, _ = preparation.end_by(signal.SIGINT)
    assert status == -signal.SIGINT
    assert not psutil.pid_exists(preparation.node)
    assert list(home.scratch.glob("index-*")) == []


def test_a_node_that_is_killed_in_the_ingest_is_named(home: Home, corpus: Corpus):
    assert corpus.documents == DOCUMENTS
    with preparing(home, "opensearch") as preparation:
        preparation.until_sent(ENOUGH)
        status, said = preparation.end_by(signal.SIGKILL, preparation.node)
    assert status == ExitCode.FAILED
    assert "was killed by signal 9 (SIGKILL)" in said


def test_a_disk_that_is_full_in_the_ingest_is_named_and_nothing_half_written_is_kept(
    home: Home, corpus: Corpus
):
    assert corpus.documents == DOCUMENTS
    # Less than three bulk requests, of which the translog keeps every byte.
    with preparing(home, "opensearch", most_bytes=5_000_000) as preparation:
        status, said = preparation.end()
    assert status == ExitCode.FAILED
    assert "File too large" in said
    assert not psutil.pid_exists(preparation.node)
    assert list(home.scratch.glob("index-*")) == []
