"""One measuring benchctl a host."""

import os
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

import benchctl.home as boundary_home
from benchctl.errors import BenchctlError
from benchctl.lock import (
    LOCK_NAME,
    SHARE_VARIABLE,
    HostBusy,
    host_lock,
    lock_name,
    measuring_pid,
    process_hours,
    process_words,
)

NAME = f"\0benchctl-test-{os.getpid()}"


def try_to_hold() -> None:
    with host_lock(wait=False, on_wait=print, name=NAME):
        pass


def test_a_second_one_is_refused_and_told_who_holds_the_host():
    with host_lock(wait=False, on_wait=print, name=NAME), pytest.raises(BenchctlError) as caught:
        try_to_hold()
    assert f"process {os.getpid()}" in caught.value.message
    assert "--on-busy wait" in caught.value.hint
    try_to_hold()


def test_benchctls_that_share_a_host_need_homes_of_their_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(boundary_home, "_check_reachable", lambda *_: None)
    alone = {"BENCHCTL_HOME": str(tmp_path / "a")}
    first = alone | {SHARE_VARIABLE: "1"}
    second = first | {"BENCHCTL_HOME": str(tmp_path / "b")}
    assert lock_name(alone) == LOCK_NAME
    assert len({LOCK_NAME, lock_name(first), lock_name(second)}) == 3
    with (
        host_lock(wait=False, on_wait=print, name=lock_name(first)),
        host_lock(wait=False, on_wait=print, name=lock_name(second)),
        pytest.raises(HostBusy),
        host_lock(wait=False, on_wait=print, name=lock_name(first)),
    ):
        pass


def test_the_holder_is_named_however_often_it_is_asked_for():
    with host_lock(wait=False, on_wait=print, name=NAME):
        for _ in range(10):
            with pytest.raises(BenchctlError, match=f"process {os.getpid()}"):
                try_to_hold()


def test_who_measures_can_be_asked():
    assert measuring_pid(NAME) is None
    with host_lock(wait=False, on_wait=print, name=NAME):
        assert measuring_pid(NAME) == os.getpid()
    assert measuring_pid(NAME) is None


def test_a_lock_that_cannot_be_taken_at_all_is_not_waited_for():
    with (
        pytest.raises(BenchctlError, match="cannot take the lock /nowhere"),
        host_lock(wait=True, on_wait=print, name="/nowhere/at/all"),
    ):
        pass


HOLDER = """
import sys
from benchctl.lock import host_lock
with host_lock(wait=False, on_wait=print, name=sys.argv[1].replace("@", chr(0))):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_waiting_ends_when_the_holder_is_killed():
    told: list[str] = []
    command = [sys.executable, "-c", HOLDER, NAME.replace("\0", "@")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"

        def end_the_holder(_seconds: float) -> None:
            holder.kill()
            holder.wait()

        with host_lock(wait=True, on_wait=told.append, name=NAME, pause=end_the_holder):
            pass
    assert len(told) == 1
    assert f"process {holder.pid}" in told[0]


HOME_HOLDER = """
import fcntl, sys
with open(sys.argv[1], "ab") as file:
    fcntl.lockf(file, fcntl.LOCK_EX)
    print("held", flush=True)
    sys.stdin.read()
"""


def test_a_home_that_another_container_measures_with_is_refused_or_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """There, the host's lock is another one."""
    monkeypatch.setattr(boundary_home, "_check_reachable", lambda *_: None)
    monkeypatch.setenv("BENCHCTL_HOME", str(tmp_path))
    monkeypatch.setattr("benchctl.lock.lock_name", lambda _: NAME)
    told: list[str] = []
    command = [sys.executable, "-c", HOME_HOLDER, str(tmp_path / "lock")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(HostBusy, match=str(tmp_path)), host_lock(wait=False, on_wait=told.append):
            pass
        # A host that only sends load keeps nothing in a home.
        with host_lock(wait=False, on_wait=told.append, home=False):
            pass

        def end_the_holder(_seconds: float) -> None:
            holder.kill()
            holder.wait()

        with host_lock(wait=True, on_wait=told.append, pause=end_the_holder):
            pass
    assert len(told) == 1
    assert str(tmp_path) in told[0]


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (
            ["/bin/benchctl", "nightly", "run", "a.yml", "--quiet", "b"],
            " (benchctl nightly run a.yml), since ",
        ),
        (["other"], ", since "),
    ],
)
def test_a_holder_is_named_with_its_command(words: list[str], named: str):
    up = [sys.executable, "-c", "import sys; print('up', flush=True); sys.stdin.read()", *words]
    with subprocess.Popen(up, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"up\n"
        assert process_words(holder.pid).partition(psutil.Process().username())[2].startswith(named)


def test_how_long_a_holder_has_run_is_known(monkeypatch: pytest.MonkeyPatch):
    assert process_hours(os.getpid()) == pytest.approx(0, abs=1)
    assert process_hours(None) == 0
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + 48 * 3600)
    assert process_hours(os.getpid()) == pytest.approx(48, abs=1)
