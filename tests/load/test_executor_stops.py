"""Stops of the process, by hand-made clocks and real signals."""

import re
from pathlib import Path

import pytest

import benchctl.load.executor
from benchctl.load.executor import Pulse, WorkerPool, suspended_ns
from benchctl.results.samples import SampleSpool
from load.storm import ask_one
from load.stub_server import Reply, Serve
from waiting import stopped_when

MS = 1_000_000


@pytest.mark.parametrize(
    ("took_ms", "used_ms", "stops"),
    [
        (50, 5, []),
        (60, 5, []),
        # A machine with ten times the work that it has CPUs for wakes a thread up so late.
        (200, 0, []),
        (6050, 5, [(50 * MS, 6050 * MS)]),
        # Other threads had the interpreter.
        (6050, 5900, []),
        # An answer that came at once, and a stop behind it.
        (400, 0, [(50 * MS, 400 * MS)]),
    ],
)
def test_a_wait_that_ends_late_is_a_stop_unless_the_process_was_busy(
    took_ms: int, used_ms: int, stops: list[tuple[int, int]]
):
    clock, cpu_clock = iter([0, took_ms * MS]), iter([0, used_ms * MS])
    pulse = Pulse(lambda: next(clock), lambda: next(cpu_clock))
    with pulse.wait(0.05):
        pass
    assert pulse.stops == stops


def test_no_load_is_made_by_the_wall_clock():
    """That clock may be set, forward or back, while tasks run."""
    wall = re.compile(r"\btime\.(time|time_ns|ctime|localtime|gmtime)\b|\.(now|utcnow|today)\(")
    folder = Path(benchctl.load.executor.__file__).parent
    assert [path.name for path in folder.rglob("*.py") if wall.search(path.read_text(encoding="utf-8"))] == []


def test_the_host_was_not_suspended_between_two_readings():
    assert abs(suspended_ns() - suspended_ns()) < 10 * MS


def test_a_worker_that_was_stopped_tells_when(serve: Serve, tmp_path: Path):
    server = serve(default=Reply(delay_s=0.005))
    with (
        WorkerPool(2) as pool,
        SampleSpool(tmp_path / "samples") as spool,
        stopped_when(lambda: len(server.searches) > 20, lambda: pool._workers[1].process.pid, 0.4),
    ):
        result = ask_one(server.url, clients=2, iterations=150, workers=pool, spool=spool)
        starts, ends = result.columns["start_ns"], result.columns["end_ns"]
    ((begin_ns, end_ns),) = result.stops
    assert 0.3e9 < end_ns - begin_ns < 10e9
    assert starts.min() < begin_ns < end_ns < ends.max()
    assert result.suspended_ns < 10 * MS
