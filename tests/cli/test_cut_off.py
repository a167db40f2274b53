"""A whole benchctl that is cut off, at a real terminal and in the middle of a write: what is left of it."""

import json
import os
import pty
import select
import shutil
import subprocess
import sys
import tempfile
import termios
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import pytest

from benchctl.cli import root
from benchctl.cli.boundary import guarded
from benchctl.home import Home
from benchctl.results.model import RunRecord
from benchctl.results.store import RunStore
from engine.fake_node import FakeNode
from integration.calls import call
from stored import stored
from stub_cluster import stub_cluster
from waiting import eventually

CTRL_C = b"\x03"
HIDDEN, SHOWN = b"\x1b[?25l", b"\x1b[?25h"
# In the second fork: every operation is asked once for its answers before the first.
IN_SECOND_FORK = 15
# benchctl without what takes longest and is not cut off here: half a second of looking at other processes.
QUICK = """
from benchctl.cli import measuring
measuring.check_quiet = lambda *_, **__: None
"""
BENCHCTL = (sys.executable, "-c", f"{QUICK}\nfrom benchctl.cli import main\nmain()")


@dataclass
class Held:
    """Searches that are held up from one of them on.

    Attributes:
        number: of the first that is.
        reached: it was sent.
        released: none is held any more.
    """

    number: int = IN_SECOND_FORK
    reached: threading.Event = field(default_factory=threading.Event)
    released: threading.Event = field(default_factory=threading.Event)

    def __call__(self, number: int) -> None:
        if number >= self.number:
            self.reached.set()
            self.released.wait(60)


@pytest.fixture
def home() -> Iterator[Home]:
    """One that the nodes' user could enter: pytest's folders are private."""
    root = Path(tempfile.mkdtemp(prefix="benchctl-test-", dir="/var/tmp"))
    root.chmod(0o755)
    yield Home(root)
    shutil.rmtree(root)


@pytest.fixture
def environ(home: Home) -> dict[str, str]:
    return {**os.environ, "BENCHCTL_HOME": str(home.root), "TERM": "xterm"}


@pytest.fixture
def held() -> Iterator[Held]:
    made = Held()
    yield made
    made.released.set()


@pytest.fixture
def cluster(held: Held) -> Iterator[FakeNode]:
    with stub_cluster(held) as node:
        yield node
        held.released.set()


def run_words(cluster: FakeNode, *more: str) -> list[str]:
    target = f"prod=http://127.0.0.1:{cluster.port}"
    return ["run", "--challenge", "range-only-short", "--target", target, "--forks", "2", *more]


def only_run(home: Home) -> RunRecord:
    (folder,) = RunStore(home.runs).folders()
    return folder.load()


class Terminal:
    """A benchctl that believes that somebody watches it."""

    def __init__(self, process: int, master: int) -> None:
        self.process = psutil.Process(process)
        self.said = b""
        self._master = master
        self._modes = termios.tcgetattr(master)
        self._closing = threading.Event()
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        while not self._closing.is_set():
            if select.select([self._master], [], [], 0.02)[0]:
                try:
                    self.said += os.read(self._master, 65536)
                except OSError:  # what ran there has ended
                    return

    def press(self, key: bytes) -> None:
        os.write(self._master, key)

    def has_ended_after(self, key: bytes) -> bool:
        self.press(key)
        return self.process.status() == psutil.STATUS_ZOMBIE

    def as_before(self) -> bool:
        """Whether whoever types next finds the terminal as it was."""
        return termios.tcgetattr(self._master) == self._modes and self.said.rfind(SHOWN) > self.said.rfind(
            HIDDEN
        )

    def close(self) -> None:
        """As a window is closed."""
        self._closing.set()
        self._reader.join()
        if self._master >= 0:
            os.close(self._master)
            self._master = -1

    def end(self) -> int:
        """Wait for benchctl; its exit status, negative for a signal."""
        status = self.process.wait(60)
        assert status is not None
        if self._master >= 0:
            assert eventually(
                lambda: not select.select([self._master], [], [], 0)[0] or not self._reader.is_alive()
            )
        return status


@contextmanager
def at_a_terminal(environ: dict[str, str], arguments: list[str]) -> Iterator[Terminal]:
    process, master = pty.fork()
    if process == 0:
        os.execve(  # noqa: S606 - a terminal is not a shell
            sys.executable, [*BENCHCTL, *arguments], environ
        )
    terminal = Terminal(process, master)
    try:
        yield terminal
    finally:
        terminal.close()
        if terminal.process.is_running():
            terminal.process.kill()
            terminal.process.wait(60)


def test_ctrl_c_ends_in_order_and_tells_the_next_step(
    environ: dict[str, str], home: Home, cluster: FakeNode, held: Held
):
    with at_a_terminal(environ, run_words(cluster)) as terminal:
        assert held.reached.wait(60), terminal.said
        family = terminal.process.children(recursive=True)
        terminal.press(CTRL_C)
        assert terminal.end() == 130
        assert terminal.as_before()
        said = terminal.said.decode()
    assert psutil.wait_procs(family, timeout=10)[1] == []
    record = only_run(home)
    assert (record.status, len(record.forks)) == ("interrupted", 1)
    assert "interrupted; 1 of 2 forks are kept in" in said
    assert "Traceback" not in said
    held.released.set()
    done = call(("resume", record.id), environ)
    assert done.returncode == 0, done.stderr
    assert f"benchctl resume {record.id}" in said
    assert only_run(home).forks[0] == record.forks[0]
    assert (only_run(home).status, len(only_run(home).forks)) == ("complete", 2)


def test_ctrl_c_again_and_again_ends_at_once_and_nothing_is_lost(
    environ: dict[str, str], home: Home, cluster: FakeNode, held: Held
):
    with at_a_terminal(environ, run_words(cluster)) as terminal:
        assert held.reached.wait(60), terminal.said
        assert eventually(lambda: terminal.has_ended_after(CTRL_C))
        # Whoever is killed by the signal itself gets this number from the shell.
        assert terminal.end() in {130, -2}
        assert terminal.as_before()
    assert b"Traceback" not in terminal.said
    assert only_run(home).forks[0].status == "done"
    assert list(home.scratch.iterdir()) == []


def test_a_terminal_that_is_closed_ends_a_run_like_ctrl_c(
    environ: dict[str, str], home: Home, cluster: FakeNode, held: Held
):
    with at_a_terminal(environ, run_words(cluster)) as terminal:
        assert held.reached.wait(60), terminal.said
        family = terminal.process.children(recursive=True)
        terminal.close()
        assert terminal.end() == 130
    assert psutil.wait_procs(family, timeout=10)[1] == []
    assert (only_run(home).status, len(only_run(home).forks)) == ("interrupted", 1)
    assert list(home.scratch.iterdir()) == []


def test_of_two_runs_at_once_one_is_refused_and_one_waits(
    environ: dict[str, str], home: Home, cluster: FakeNode, held: Held
):
    with subprocess.Popen([*BENCHCTL, *run_words(cluster)], env=environ, stderr=subprocess.DEVNULL) as first:
        try:
            assert held.reached.wait(60)
            refused = call(tuple(run_words(cluster)), environ)
            assert refused.returncode == 1
            assert (
                f"another benchctl is measuring on this host (process {first.pid} of user" in refused.stderr
            )
            waiting = [*BENCHCTL, *run_words(cluster, "--forks", "1", "--on-busy", "wait", "--tag", "second")]
            with subprocess.Popen(waiting, env=environ, stderr=subprocess.PIPE, text=True) as second:
                assert second.stderr is not None
                assert f"waiting for another benchctl: process {first.pid}" in second.stderr.readline()
                held.released.set()
                second.communicate(timeout=120)
            assert (first.wait(60), second.returncode) == (0, 0)
        finally:
            first.kill()
    records = [folder.load() for folder in RunStore(home.runs).folders()]
    assert [(one.status, len(one.forks), one.tags) for one in records] == [
        ("complete", 2, ()),
        ("complete", 1, ("second",)),
    ]


# Runs benchctl once to its end, and then as often as it wrote a file, each time in a child that is killed
# just before another one of them takes its place; FATAL in its arguments is which. Says how it ended the
# first time, and how often it wrote.
KILLED = """
import importlib, json, os, signal, sys
from pathlib import Path
from benchctl.cli import root
from benchctl.cli.boundary import guarded

def run_killed_at(fatal, result):
    child = os.fork()
    if child == 0:
        writes, replace = 0, Path.replace
        def counted(self, target):
            nonlocal writes
            if writes == fatal:
                os.kill(os.getpid(), signal.SIGKILL)
            writes += 1
            return replace(self, target)
        Path.replace = counted
        status = guarded(root, [word.replace("FATAL", str(fatal)) for word in sys.argv[2:]])
        Path(result).write_text(json.dumps([status, writes, sorted(sys.modules)]))
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

run_killed_at(-1, sys.argv[1])
status, writes, modules = json.loads(Path(sys.argv[1]).read_text())
for name in modules:  # once, instead of in every child
    if name.partition(".")[0] in {"benchctl", "scipy"}:
        importlib.import_module(name)
for fatal in range(writes):
    assert run_killed_at(fatal, os.devnull) == -signal.SIGKILL
"""


def killed_at_every_write(environ: dict[str, str], folder: Path, *arguments: str) -> int:
    """How many writes benchctl was killed in."""
    result = folder / "result.json"
    command = [sys.executable, "-c", QUICK + KILLED, str(result), *arguments]
    done = subprocess.run(command, env=environ, capture_output=True, text=True, check=False, timeout=200)
    assert done.returncode == 0, done.stderr
    status, writes, _ = json.loads(result.read_text())
    assert status == 0, done.stderr
    return int(writes)


def test_a_run_that_is_killed_in_any_write_is_readable_and_resumable(
    environ: dict[str, str], home: Home, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("benchctl.cli.measuring.check_quiet", lambda *_, **__: None)
    with stub_cluster() as node:
        target = ("--target", f"prod=http://127.0.0.1:{node.port}", "--forks", "1", "--param", "iterations=1")
        # The record at its beginning, after the answers, after the fork and at its end; what they name.
        words = ("run", "--challenge", "range-only-short", *target, "--quiet")
        writes = killed_at_every_write(environ, tmp_path, *words)
        assert writes >= 6
        left = RunStore(home.runs).folders()
        # Whoever is killed before there is a record has measured nothing.
        assert len(left) == writes
        assert guarded(root, ["runs", "list"]) == 0
        assert len({folder.load().id for folder in left}) == writes
        # The first of them has a record only, the others have most of what there can be.
        for folder in (left[1], *left[-3:]):
            before = folder.load()
            assert before.status == "interrupted"
            assert guarded(root, ["resume", before.id, "--quiet"]) == 0
            after = folder.load()
            assert (after.status, len(after.forks)) == ("complete", 1)
            assert before.forks in ((), after.forks)
            assert list(folder.path.rglob("*.partial")) == []
        assert guarded(root, ["extend", after.id, "--forks", "1", "--quiet"]) == 0
        more = folder.load()
        assert (more.status, more.looks, more.plan.forks) == ("complete", 2, 2)
        assert (more.forks[0], more.total, more.missing()) == (after.forks[0], 2, ())
    assert list(home.scratch.iterdir()) == []


def test_a_report_that_is_killed_while_it_is_written_leaves_no_page(
    environ: dict[str, str], home: Home, tmp_path: Path
):
    stored(home.runs, "20261121-070100-r")
    before = {path: path.read_bytes() for path in home.runs.rglob("*") if path.is_file()}
    writes = killed_at_every_write(environ, tmp_path, "show", "latest", "--html", f"{tmp_path}/pages-FATAL")
    assert writes == 1
    pages = [path for path in tmp_path.glob("pages-*/**/*") if path.is_file() and path.suffix != ".partial"]
    assert (tmp_path / "pages--1" / "index.html") in pages
    assert len(pages) == 1
    assert {path: path.read_bytes() for path in home.runs.rglob("*") if path.is_file()} == before
