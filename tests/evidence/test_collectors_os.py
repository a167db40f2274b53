"""Readings of a node's process."""

import os
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

import pytest

from benchctl.engine.node import Node
from benchctl.engine.usage import Usage
from benchctl.evidence.collectors import OsCollector, Scene
from benchctl.evidence.files import OS_DTYPES, OS_FILE, read_evidence
from waiting import eventually


@dataclass
class Process:
    """What the collector reads of a node."""

    pid: int = 7
    started_ns: int = 1000


@dataclass
class Counting:
    """A gauge whose counters grow by one with every reading."""

    asked: list[int] = field(default_factory=list)
    readings: int = 0
    broken_from: int = 1 << 30

    def __call__(self, pid: int) -> "Counting":
        self.asked.append(pid)
        return self

    def read(self) -> Usage:
        self.readings += 1
        if self.readings >= self.broken_from:
            raise RuntimeError("a mistake")
        return Usage(user_s=float(self.readings), rss_bytes=5.0, threads=3.0)


def collector(folder: Path, gauge: Counting, interval_s: float = 0.001) -> OsCollector:
    clock = iter(range(2000, 10**9, 10))
    return OsCollector(
        Scene(folder, folder, 21), gauge=gauge, clock=lambda: next(clock), interval_s=interval_s
    )


def test_it_reads_from_the_first_task_to_the_last_and_needs_no_flags(tmp_path: Path):
    gauge, node = Counting(), cast("Node", Process())
    reader = collector(tmp_path, gauge)
    assert (reader.flags(), reader.kind) == ((), "os")
    reader.begin(node)
    assert gauge.readings >= 1
    assert eventually(lambda: gauge.readings >= 4)
    reader.measured(node)
    last = gauge.readings
    reader.end()
    found = read_evidence(tmp_path / OS_FILE, OS_DTYPES)
    assert (gauge.asked, gauge.readings) == ([7], last)
    assert found["user_s"].tolist() == list(range(1, last + 1))
    assert found["uptime_ns"].tolist() == [1000 + 10 * number for number in range(last)]


def test_beginning_and_end_are_read_however_short_it_is(tmp_path: Path):
    gauge, node = Counting(), cast("Node", Process())
    reader = collector(tmp_path, gauge, interval_s=1000.0)
    reader.begin(node)
    reader.measured(node)
    reader.end()
    assert read_evidence(tmp_path / OS_FILE, OS_DTYPES)["user_s"].tolist() == [1, 2]


def test_a_node_that_dies_leaves_what_was_read_of_it(tmp_path: Path):
    gauge = Counting()
    reader = collector(tmp_path, gauge, interval_s=1000.0)
    reader.begin(cast("Node", Process()))
    reader.end()
    assert read_evidence(tmp_path / OS_FILE, OS_DTYPES)["user_s"].size == 2


def test_a_node_that_never_was_ready_leaves_nothing(tmp_path: Path):
    collector(tmp_path, Counting()).end()
    assert not list(tmp_path.iterdir())


def test_a_mistake_in_reading_does_not_pass_for_a_quiet_node(tmp_path: Path):
    reader = collector(tmp_path, Counting(broken_from=2), interval_s=1000.0)
    reader.begin(cast("Node", Process()))
    with pytest.raises(RuntimeError, match="a mistake"):
        reader.measured(cast("Node", Process()))


def test_a_real_process_has_all_of_it(tmp_path: Path):
    node = cast("Node", Process(pid=os.getpid(), started_ns=time.monotonic_ns()))
    reader = OsCollector(Scene(tmp_path, tmp_path, 21), interval_s=1000.0)
    reader.begin(node)
    end = time.process_time() + 0.05
    while time.process_time() < end:
        pass
    reader.measured(node)
    reader.end()
    found = read_evidence(tmp_path / OS_FILE, OS_DTYPES)
    grown = {name: values[1] - values[0] for name, values in found.items()}
    assert 0.02 < grown["user_s"] + grown["system_s"] < 20
    assert found["threads"][1] >= 2
    assert found["rss_bytes"][1] > 1 << 20
    assert grown["minor_faults"] >= 0
    assert grown["involuntary_switches"] >= 0
    assert grown["voluntary_switches"] >= 1
