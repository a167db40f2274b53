"""What a process has used, read from the kernel: its own process, real children, and one that is gone."""

import dataclasses
import math
import os
import threading
from types import SimpleNamespace
from unittest.mock import Mock

import psutil
import pytest

from benchctl.engine.usage import ProcessGauge, storage_bytes

# Above what Linux gives out by default, and within what its calls take.
NOBODY = 2**31 - 1


def work(seconds: float) -> None:
    """Use the CPU."""
    end = os.times().user + seconds
    while os.times().user < end:
        pass


def test_a_process_that_works_uses_time_and_memory():
    gauge = ProcessGauge(os.getpid())
    before = gauge.read()
    work(0.1)
    after = gauge.read()
    assert 0.05 < after.cpu_s - before.cpu_s < 5
    assert after.rss_bytes > 2**20
    assert after.major_faults >= before.major_faults >= 0


def test_switches_of_all_threads_count_and_are_kept_when_a_thread_ends():
    gauge = ProcessGauge(os.getpid())
    go, there = threading.Event(), threading.Event()

    def switch() -> None:
        for _ in range(200):
            go.wait(0.0005)
        there.set()
        go.wait()

    before = gauge.read().context_switches
    thread = threading.Thread(target=switch)
    thread.start()
    assert there.wait(30)
    busy = gauge.read().context_switches
    assert gauge.read().context_switches - busy < 100
    go.set()
    thread.join()
    assert busy - before >= 150
    assert gauge.read().context_switches >= busy


def test_a_process_that_is_gone_reads_as_unknown():
    assert all(math.isnan(value) for value in dataclasses.astuple(ProcessGauge(NOBODY).read()))
    with psutil.Popen(["/bin/sleep", "60"]) as child:
        gauge = ProcessGauge(child.pid)
        assert not math.isnan(gauge.read().cpu_s)
        child.kill()
    assert all(math.isnan(value) for value in dataclasses.astuple(gauge.read()))


@pytest.mark.parametrize("error", [psutil.AccessDenied(1), NotImplementedError()])
def test_storage_is_read_in_bytes_and_unknown_where_it_may_not_be_read(error: Exception):
    counters = SimpleNamespace(read_bytes=5, write_bytes=7, read_count=1, write_count=2)
    assert storage_bytes(Mock(io_counters=lambda: counters)) == (5, 7)
    assert all(math.isnan(value) for value in storage_bytes(Mock(io_counters=Mock(side_effect=error))))
