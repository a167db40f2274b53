"""Readings of real processes: of this one, and of one that answers as a JVM does."""

import os
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from benchctl.engine.usage import Meter, Reading, counter_places, cpu_by_kind, thread_kinds

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
        by_kind = cpu_by_kind(begin, end, {threading.get_native_id(): "search"})
        assert by_kind["search"] >= BURNT_NS * 0.9
        assert by_kind["other"] >= BURNT_NS * 0.9
        assert sum(by_kind.values()) == pytest.approx(used, rel=0.1)
        assert end.at_ns > begin.at_ns
        assert end.major_faults >= begin.major_faults
        assert (end.read_bytes or 0) >= (begin.read_bytes or 0)


def test_a_number_of_a_thread_may_come_again():
    begin, end = Reading(0, 100, {7: 90}, 0, 0), Reading(9, 150, {7: 30}, 0, 0)
    assert cpu_by_kind(begin, end, {7: "write"})["write"] == 30


def test_a_process_that_is_gone_has_no_reading():
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        meter = Meter(child.pid)
        assert meter.read() is not None
    with meter:
        assert meter.read() is None
    assert thread_kinds(child.pid, Path(os.devnull)) == {}


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
def test_a_jvm_says_what_its_threads_are_for(tmp_path: Path, form: str):
    out = tmp_path / "stdout.log"
    script = JVM.replace("FORM", repr(form))
    with (
        out.open("wb") as file,
        subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=file) as child,
    ):
        while b"ready" not in out.read_bytes():
            time.sleep(0.01)
        kinds = thread_kinds(child.pid, out)
        assert child.stdin is not None
        child.stdin.close()
    assert kinds[child.pid] == "search"


def test_a_jvm_that_does_not_answer_has_no_kinds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("benchctl.engine.usage._DUMP_S", 0.05)
    script = "import signal; signal.signal(signal.SIGQUIT, signal.SIG_IGN); print(1, flush=True); input()"
    out = tmp_path / "stdout.log"
    with (
        out.open("wb") as file,
        subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=file) as child,
    ):
        while not out.read_bytes():
            time.sleep(0.01)
        assert thread_kinds(child.pid, out) == {}
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
        assert thread_kinds(child.pid, out) == {}
        child.communicate(b"\n")
    assert child.returncode == 0


def counters(values: Mapping[str, int | bytes]) -> bytes:
    """A HotSpot's file of counters: numbers, and texts, which are vectors of bytes."""
    entries = b""
    for name, value in values.items():
        words = name.encode() + b"\0"
        words += bytes(-(20 + len(words)) % 8)
        content = struct.pack("=q", value) if isinstance(value, int) else value
        kind = b"J" if isinstance(value, int) else b"B"
        size = 20 + len(words) + len(content)
        length = size + -size % 8
        count = 0 if isinstance(value, int) else len(value)
        head = struct.pack("=iiic3xi", length, 20, count, kind, 20 + len(words))
        entries += (head + words + content).ljust(length, b"\0")
    used = 32 + len(entries)
    prologue = struct.pack("=4sBBBBiiqii", b"\xca\xfe\xc0\xc0", 1, 2, 0, 1, used, 0, 0, 32, len(values))
    return prologue + entries


NAMES = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1, max_size=40)


@given(st.dictionaries(NAMES, st.integers(0, 2**63 - 1) | st.binary(min_size=1, max_size=30)))
def test_every_number_is_found_at_its_place(values: dict[str, int | bytes]):
    data = counters(values)
    found = {name: struct.unpack_from("=q", data, place)[0] for name, place in counter_places(data).items()}
    assert found == {name: value for name, value in values.items() if isinstance(value, int)}


@given(st.binary(), st.integers(0, 200))
@example(b"", 0)
def test_what_is_no_file_of_counters_has_none(data: bytes, length: int):
    assert counter_places(data) == {}
    whole = counters({"sun.ci.totalCompiles": 7, "java.ci.totalTime": 8})
    assert counter_places(whole[:length]).keys() <= {"sun.ci.totalCompiles", "java.ci.totalTime"}
    counter_places(whole[:40] + data)  # whatever it says


# Maps the file of its counters, as a JVM does, and counts on when it is told to.
COUNTING = """
import mmap, os, sys
path = f"{sys.argv[1]}/hsperfdata_me/{os.getpid()}"
with open(path, "wb") as file:
    file.write(bytes.fromhex(sys.argv[2]))
with open(path, "r+b") as file:
    data = mmap.mmap(file.fileno(), 0)
print("ready", flush=True)
for line in sys.stdin:
    place, value = map(int, line.split())
    data[place : place + 8] = value.to_bytes(8, sys.byteorder)
    print("done", flush=True)
"""


def test_a_jvm_counts_what_it_compiles(tmp_path: Path):
    (tmp_path / "hsperfdata_me").mkdir()
    data = counters({"java.ci.totalTime": 500, "sun.ci.lastMethod": b"a b", "sun.ci.totalCompiles": 3})
    command = [sys.executable, "-c", COUNTING, str(tmp_path), data.hex()]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
        with Meter(child.pid) as meter:
            assert read(meter).compiled == (3, 500)
            for name, value in (("sun.ci.totalCompiles", 5), ("java.ci.totalTime", 900)):
                child.stdin.write(f"{counter_places(data)[name]} {value}\n")
                child.stdin.flush()
                assert child.stdout.readline() == "done\n"
            assert read(meter).compiled == (5, 900)
        child.communicate()


def test_what_keeps_no_counters_has_compiled_nothing_that_is_known(tmp_path: Path):
    with Meter(os.getpid()) as meter:
        before = read(meter)
        assert before.compiled is None
        assert before.open_files is not None
        with (tmp_path / "one").open("wb"):
            assert read(meter).open_files == before.open_files + 1
