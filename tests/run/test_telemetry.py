"""Readings second by second, with a node and clocks that a test turns."""

import math
import os
import threading
from collections.abc import Iterable
from typing import cast

import numpy as np
import psutil
import pytest

from benchctl.engine.client import NodeRequestError
from benchctl.engine.usage import GcPause, ProcessGauge, Usage
from benchctl.results.samples import GC_DTYPES, SERIES_DTYPES
from benchctl.run.telemetry import DriverClock, NodeWatch, Telemetry, _Watch
from waiting import eventually

NS_PER_S = 1_000_000_000
ORIGIN_NS = 5 * NS_PER_S


class FakeNode:
    """A node whose counters a test sets."""

    def __init__(self, usages: Iterable[Usage] = ()) -> None:
        self._usages = iter(usages)
        self.indexing = False
        self.asked = 0
        self.answer: dict[str, float] | NodeRequestError = {"merges_current": 2, "merge_ms": 700}

    def read(self) -> Usage:
        return next(self._usages, Usage())

    def merges(self) -> dict[str, float]:
        self.asked += 1
        if isinstance(self.answer, NodeRequestError):
            raise self.answer
        return self.answer

    @property
    def watch(self) -> NodeWatch:
        return NodeWatch(cast("ProcessGauge", self), self.merges, lambda: self.indexing)


def watch_of(node: FakeNode | None, driver_s: Iterable[float] = ()) -> _Watch:
    driver = iter(driver_s)
    return _Watch(None if node is None else node.watch, lambda: next(driver, 0.0))


def row(values: tuple[float, ...] | None) -> dict[str, float]:
    names = [name for name in SERIES_DTYPES if name not in {"boot", "t_ns"}]
    assert values is not None
    return dict(zip(names, values, strict=True))


def test_cpu_is_counted_since_the_reading_before():
    node = FakeNode([Usage(cpu_s=10.0), Usage(cpu_s=11.5), Usage(cpu_s=11.5)])
    watch = watch_of(node, [3.0, 3.25, 3.25])
    first, second, third = (row(watch.read(second * NS_PER_S)) for second in (10, 12, 13))
    assert math.isnan(first["node_cpu_percent"])
    assert math.isnan(first["driver_cpu_percent"])
    assert (second["node_cpu_percent"], second["driver_cpu_percent"]) == (75.0, 12.5)
    assert (third["node_cpu_percent"], third["driver_cpu_percent"]) == (0.0, 0.0)


def test_counters_are_passed_on_as_they_are():
    usage = Usage(1.0, 2.0, 3.0, 4.0, 5.0, 6.0)
    found = row(watch_of(FakeNode([usage])).read(0))
    assert [found[name] for name in ("rss_bytes", "read_bytes", "write_bytes")] == [2.0, 3.0, 4.0]
    assert [found[name] for name in ("context_switches", "major_faults")] == [5.0, 6.0]
    assert found["load1"] == pytest.approx(os.getloadavg()[0], abs=1)


def test_a_node_that_is_gone_leaves_the_driver_known():
    watch = watch_of(FakeNode([Usage(cpu_s=1.0)]), [1.0, 1.5])
    watch.read(0)
    found = row(watch.read(NS_PER_S))
    assert math.isnan(found["node_cpu_percent"])
    assert found["driver_cpu_percent"] == 50.0


def test_of_a_cluster_only_the_driver_is_known():
    watch = watch_of(None, [1.0, 1.5])
    watch.read(0)
    found = row(watch.read(NS_PER_S))
    assert {name for name, value in found.items() if not math.isnan(value)} == {"driver_cpu_percent", "load1"}


def test_two_readings_at_once_are_one():
    watch = watch_of(FakeNode())
    assert watch.read(0)
    assert watch.read(NS_PER_S // 20) is None
    assert watch.read(NS_PER_S)


def test_merges_are_asked_for_every_other_second_and_only_while_a_step_indexes():
    node = FakeNode()
    watch = watch_of(node)
    asked = []
    for second in range(10):
        node.indexing = 3 <= second < 8
        found = row(watch.read(second * NS_PER_S))
        asked += [] if math.isnan(found["merge_ms"]) else [second]
        if second in asked:
            assert (found["merges_current"], found["merge_ms"]) == (2.0, 700.0)
    assert asked == [3, 5, 7]
    assert node.asked == 3


def test_a_node_too_busy_to_tell_its_merges_is_left_alone_for_a_while():
    node = FakeNode()
    node.indexing, node.answer = True, NodeRequestError("GET /", 429, "busy")
    watch = watch_of(node)
    assert math.isnan(row(watch.read(0))["merge_ms"])
    assert math.isnan(row(watch.read(NS_PER_S))["merge_ms"])
    assert node.asked == 1


def test_a_fork_is_read_from_beginning_to_end_of_every_node():
    telemetry = Telemetry(ORIGIN_NS, driver=lambda: 0.0)
    for boot in (0, 1):
        # The clock's own readings decide on rows: wait for some.
        with telemetry.watching(boot, FakeNode().watch, interval_s=0.11):
            assert eventually(lambda boot=boot: (telemetry.series()["boot"] == boot).sum() >= 3)
    series = telemetry.series()
    assert list(series) == list(SERIES_DTYPES)
    assert all(series[name].dtype == dtype for name, dtype in SERIES_DTYPES.items())
    assert (np.diff(series["boot"]) >= 0).all()
    assert (np.diff(series["t_ns"]) > 0).all()
    assert not any(thread.name.startswith("telemetry") for thread in threading.enumerate())


def test_times_count_from_the_forks_origin():
    ticks = iter(range(7 * NS_PER_S, 100 * NS_PER_S, NS_PER_S))
    telemetry = Telemetry(ORIGIN_NS, driver=lambda: 0.0, clock=lambda: next(ticks))
    with telemetry.watching(0, None, interval_s=60):
        pass
    assert telemetry.series()["t_ns"][0] == 3 * NS_PER_S


def test_a_fork_without_a_node_has_columns_and_no_rows():
    telemetry = Telemetry(0, driver=lambda: 0.0)
    assert {name: column.size for name, column in telemetry.series().items()} == dict.fromkeys(
        SERIES_DTYPES, 0
    )
    assert {name: column.size for name, column in telemetry.pauses().items()} == dict.fromkeys(GC_DTYPES, 0)


def test_an_error_of_the_watch_is_no_quiet_node():
    def broken() -> float:
        raise ZeroDivisionError

    telemetry = Telemetry(0, driver=broken)
    with pytest.raises(ZeroDivisionError), telemetry.watching(0, None):
        pass


def test_an_error_of_the_fork_is_the_one_that_is_told():
    telemetry = Telemetry(0, driver=lambda: 0.0)
    with pytest.raises(KeyError, match="node"), telemetry.watching(0, FakeNode().watch, interval_s=60):
        raise KeyError("node")


def test_pauses_are_kept_with_their_node_start():
    telemetry = Telemetry(0, driver=lambda: 0.0)
    telemetry.add_pauses(0, [GcPause(5, 2, "Young")])
    telemetry.add_pauses(1, [GcPause(9, 3, "Remark")])
    columns = telemetry.pauses()
    assert {name: column.tolist() for name, column in columns.items()} == {
        "boot": [0, 1],
        "t_ns": [5, 9],
        "pause_ns": [2, 3],
        "what": ["Young", "Remark"],
    }
    assert all(columns[name].dtype == dtype for name, dtype in GC_DTYPES.items())


def test_a_worker_that_ended_has_used_what_it_used():
    pids: list[int] = []
    clock = DriverClock(lambda: pids)
    alone = clock()
    with psutil.Popen(["/bin/sh", "-c", "while :; do :; done"]) as child:
        pids.append(child.pid)
        assert eventually(lambda: sum(child.cpu_times()[:2]) > 0.2)
        together = clock()
        child.kill()
    assert together - alone >= 0.2
    assert clock() >= together
    pids.clear()
    assert clock() >= together
