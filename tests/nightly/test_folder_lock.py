import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from benchctl.errors import BenchctlError
from benchctl.lock import measuring_pid
from benchctl.nightly.folder import SuiteBusy, SuiteFolder

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


def test_whoever_holds_it_is_named(suite: SuiteFolder):
    assert measuring_pid(suite.lock_name) is None
    with held(suite) as process:
        assert measuring_pid(suite.lock_name) == process.pid
    assert measuring_pid(suite.lock_name) is None


def test_suites_do_not_hinder_each_other(suite: SuiteFolder, tmp_path: Path):
    with suite.lock(), SuiteFolder(tmp_path / "other").lock():
        pass
