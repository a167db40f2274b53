import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from benchctl.errors import BenchctlError
from benchctl.nightly.folder import SuiteBusy, SuiteFolder, holder_of
from full_disk import nearly_full

_HOLDS = """
import subprocess, sys
from pathlib import Path
from benchctl.nightly.folder import SuiteFolder
with SuiteFolder(Path(sys.argv[1])).lock():
    child = subprocess.Popen(["sleep", "60"], stdout=subprocess.DEVNULL, close_fds=False)
    print(child.pid, flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def suite(tmp_path: Path) -> SuiteFolder:
    return SuiteFolder(tmp_path / "big5")


@contextmanager
def held(suite: SuiteFolder) -> Iterator["subprocess.Popen[str]"]:
    """Another process has the lock, and a child of its own that inherits what it can."""
    command = [sys.executable, "-c", _HOLDS, str(suite.root)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        child = int(process.stdout.readline())
        try:
            yield process
        finally:
            process.kill()
            os.kill(child, signal.SIGKILL)


def test_a_second_start_says_who_holds_it_and_since_when(suite: SuiteFolder):
    with held(suite) as process, pytest.raises(SuiteBusy) as caught, suite.lock():
        pass
    message = (
        rf"the suite in {suite.root} is at work already \(process {process.pid} of user \S+, since 20\d\d-"
    )
    assert caught.match(message)
    assert isinstance(caught.value, BenchctlError)


def test_who_waits_is_told_once_and_gets_it_in_the_end(suite: SuiteFolder):
    told: list[str] = []
    pauses: list[float] = []
    with held(suite) as process:

        def pause(seconds: float) -> None:
            pauses.append(seconds)
            if len(pauses) == 3:
                process.kill()
                process.wait()

        with suite.lock(wait=True, on_wait=told.append, pause=pause):
            assert len(told) == 1
            assert f"process {process.pid} " in told[0]
            assert pauses == [1.0] * 3


def test_a_holder_that_was_killed_holds_nothing_even_where_its_children_live(suite: SuiteFolder):
    with held(suite) as process:
        process.kill()
        process.wait()
        with suite.lock():
            pass


def test_it_is_free_again_after_the_block_and_after_an_error(suite: SuiteFolder):
    with suite.lock():
        pass
    with pytest.raises(ZeroDivisionError), suite.lock():
        1 / 0  # noqa: B018 - what happens in the block
    with suite.lock(), pytest.raises(SuiteBusy, match=f"process {os.getpid()} "), suite.lock():
        pass


@pytest.mark.parametrize("content", [b"", b"rubbish", b"\xff" * 9, b"[]"])
def test_a_holder_that_has_not_signed_is_unknown(suite: SuiteFolder, content: bytes):
    with suite.lock():
        (suite.root / "lock").write_bytes(content)
        with pytest.raises(SuiteBusy, match="process unknown"), suite.lock():
            pass


def test_whoever_holds_it_is_named_without_touching_it(suite: SuiteFolder):
    lock = suite.root / "lock"
    assert holder_of(lock) is None
    with held(suite) as process:
        holder = holder_of(lock)
        assert holder is not None
        assert holder.pid == process.pid
        assert holder.text.startswith(f"process {process.pid} of user ")
    assert holder_of(lock) is None


def test_what_a_dead_holder_wrote_means_nothing(suite: SuiteFolder):
    with held(suite):
        pass
    assert (suite.root / "lock").read_bytes()
    with suite.lock():
        pass
    assert not (suite.root / "lock").read_bytes()


def test_a_full_disk_keeps_nobody_from_the_lock(suite: SuiteFolder):
    with nearly_full(0), suite.lock(), pytest.raises(SuiteBusy, match="process unknown"), suite.lock():
        pass


def test_suites_do_not_hinder_each_other(suite: SuiteFolder, tmp_path: Path):
    with suite.lock(), SuiteFolder(tmp_path / "other").lock():
        pass


def test_a_lock_that_cannot_be_made_is_an_error(suite: SuiteFolder):
    (suite.root / "lock").mkdir(parents=True)
    with pytest.raises(BenchctlError, match=r"cannot lock .*: Is a directory"), suite.lock():
        pass


def test_how_long_it_has_been_held_is_known(suite: SuiteFolder) -> None:
    with suite.lock():
        path = suite.root / "lock"
        with pytest.raises(SuiteBusy) as caught, suite.lock():
            pass
        assert caught.value.hours == pytest.approx(0, abs=0.1)
        two_days_ago = path.stat().st_mtime - 48 * 3600
        os.utime(path, (two_days_ago, two_days_ago))
        with pytest.raises(SuiteBusy) as caught, suite.lock():
            pass
        assert caught.value.hours == pytest.approx(48, abs=0.1)
