"""Readings of real processes: of this one, and of one that answers as a JVM does."""

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from benchctl.engine.process import Meter, Reading, cpu_of, search_threads

BURNT_NS = 50_000_000


def burn() -> None:
    until = time.thread_time_ns() + BURNT_NS
    while time.thread_time_ns() < until:
        pass


def read(meter: Meter) -> Reading:
    found = meter.read()
    assert found is not None
    return found


def test_cpu_is_that_of_the_threads_and_of_those_that_ended():
    with Meter(os.getpid()) as meter:
        begin = read(meter)
        thread = threading.Thread(target=burn)
        thread.start()
        thread.join()
        burn()
        end = read(meter)
        used = end.cpu_ns - begin.cpu_ns
        assert used >= 2 * BURNT_NS
        own = cpu_of(begin, end, {threading.get_native_id()})
        assert BURNT_NS * 0.9 <= own <= used - BURNT_NS * 0.9
        assert end.at_ns > begin.at_ns


def test_a_number_of_a_thread_may_come_again():
    begin, end = Reading(0, 100, {7: 90}), Reading(9, 150, {7: 30, 8: 5})
    assert cpu_of(begin, end, {7}) == 30


def test_a_process_that_is_gone_has_no_reading():
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        meter = Meter(child.pid)
        assert meter.read() is not None
    with meter:
        assert meter.read() is None
    assert search_threads(child.pid, Path(os.devnull)) is None


# Answers SIGQUIT with a dump in the words of HotSpot, in which its own thread searches.
JVM = """
import signal, sys, threading
def dump(*_):
    own = threading.get_native_id()
    print('"elasticsearch[es-0][search][T#1]" #52 daemon tid=0x1 nid=%s runnable' % (FORM % own))
    print('"Signal \\"Dispatcher" #4 daemon prio=9 tid=0x2 nid=1 runnable')
    print("JNI global refs: 27, weak refs: 0", flush=True)
signal.signal(signal.SIGQUIT, dump)
print("ready", flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize("form", ["%d", "0x%x"])
def test_a_jvm_says_which_threads_search(tmp_path: Path, form: str):
    out = tmp_path / "stdout.log"
    script = JVM.replace("FORM", repr(form))
    with (
        out.open("wb") as file,
        subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=file) as child,
    ):
        while b"ready" not in out.read_bytes():
            time.sleep(0.01)
        found = search_threads(child.pid, out)
        assert child.stdin is not None
        child.stdin.close()
    assert found == {child.pid}


def test_a_jvm_that_does_not_answer_has_none_that_are_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("benchctl.engine.process._DUMP_S", 0.05)
    script = "import signal; signal.signal(signal.SIGQUIT, signal.SIG_IGN); print(1, flush=True); input()"
    out = tmp_path / "stdout.log"
    with (
        out.open("wb") as file,
        subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=file) as child,
    ):
        while not out.read_bytes():
            time.sleep(0.01)
        assert search_threads(child.pid, out) is None
        child.communicate()


def test_a_jvm_that_leaves_signals_alone_survives(tmp_path: Path):
    """As with -Xrs: SIGQUIT would end it, and core dumps would be written."""
    out = tmp_path / "stdout.log"
    script = "print(1, flush=True); input()"
    with (
        out.open("wb") as file,
        subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=file) as child,
    ):
        while not out.read_bytes():
            time.sleep(0.01)
        assert search_threads(child.pid, out) is None
        child.communicate(b"\n")
    assert child.returncode == 0


# Maps the file of its counters, as a JVM does, and counts on when it is told to.
