"""Waiting: never early, learns the host's lateness, ends at once when halted."""

import itertools
import threading
import time
from typing import Any

import pytest

from benchctl.load.pace import Waiter, endless_turns, turns
from benchctl.track.model import Task


class SlowHalt:
    """An event whose waits take a fixed time too long, on its own clock; a look at that takes 100 ns."""

    def __init__(self, late_ns: int) -> None:
        self.now_ns = 0
        self.late_ns = late_ns
        self.slept: list[float] = []

    def clock(self) -> int:
        self.now_ns += 100
        return self.now_ns

    def wait(self, timeout_s: float) -> bool:
        self.slept.append(timeout_s)
        self.now_ns += round(timeout_s * 1e9) + self.late_ns
        return False

    def is_set(self) -> bool:
        return False


def lateness(halt: SlowHalt, rounds: int) -> list[int]:
    waiter = Waiter(halt, halt.clock)
    found = []
    for number in range(1, rounds + 1):
        moment_ns = number * 10_000_000
        assert waiter.wait_until(moment_ns)
        found.append(halt.now_ns - moment_ns)
    return found


def test_the_waiter_learns_how_late_the_host_wakes_it():
    late = lateness(SlowHalt(late_ns=90_000), 60)
    assert late[0] >= 90_000
    assert all(0 <= each < 5_000 for each in late[-10:])


def test_a_host_that_wakes_sooner_than_usual_makes_nothing_early():
    halt = SlowHalt(late_ns=90_000)
    waiter = Waiter(halt, halt.clock)
    for number in range(1, 61):
        halt.late_ns = 90_000 if number < 60 else 0
        waiter.wait_until(number * 10_000_000)
    assert 0 <= halt.now_ns - 600_000_000 < 1_000


def test_a_host_that_hangs_is_not_planned_for():
    halt = SlowHalt(late_ns=5_000_000)
    lateness(halt, 30)
    assert min(halt.slept[1:]) >= (10_000_000 - 5_000_000 - 300_000 - 1000) / 1e9


def test_waiting_is_never_early():
    waiter = Waiter(threading.Event())
    for _ in range(20):
        moment_ns = time.monotonic_ns() + 1_000_000
        assert waiter.wait_until(moment_ns)
        assert time.monotonic_ns() >= moment_ns


def test_a_moment_that_has_passed_is_not_waited_for():
    halt = SlowHalt(late_ns=0)
    assert Waiter(halt, halt.clock).wait_until(0)
    assert halt.slept == []


def test_halting_ends_a_wait():
    halt = threading.Event()
    halt.set()
    assert not Waiter(halt).wait_until(time.monotonic_ns() + 3600 * 10**9)
    assert not Waiter(halt).wait_until(0)


@pytest.mark.parametrize(
    "bounds",
    [
        {"iterations": 5},
        {"time_period": 500.0},
        {"iterations": 5, "target_throughput": 1.0},
        {"time_period": 500.0, "target_throughput": 1.0, "schedule": "poisson"},
    ],
)
def test_no_turn_comes_after_halting(bounds: dict[str, Any]):
    halt = threading.Event()
    halt.set()
    assert list(turns(Task(operation="x", **bounds), client=0, seed=1, start_ns=0, timer=Waiter(halt))) == []
    halt.clear()
    late = time.monotonic_ns() - 100 * 10**9
    pending = turns(Task(operation="x", **bounds), client=0, seed=1, start_ns=late, timer=Waiter(halt))
    next(pending)
    halt.set()
    assert list(pending) == []


def test_an_open_loop_catches_up_without_leaving_an_arrival_out():
    task = Task(operation="x", warmup_iterations=1, iterations=3, target_throughput=1000)
    start_ns = time.monotonic_ns() - 10**9
    found = list(turns(task, client=0, seed=1, start_ns=start_ns, timer=Waiter(threading.Event())))
    assert found == [(start_ns + number * 1_000_000, number < 1) for number in range(4)]


def test_a_closed_loop_has_no_intended_start():
    task = Task(operation="x", warmup_iterations=2, iterations=1)
    found = list(turns(task, client=0, seed=1, start_ns=0, timer=Waiter(threading.Event())))
    assert found == [(None, True), (None, True), (None, False)]


def test_work_that_ends_by_itself_warms_up_for_a_time():
    moments = itertools.count(10**9, 10**8)
    pending = endless_turns(
        Task(operation="x", warmup_time_period=0.25),
        client=0,
        seed=1,
        start_ns=10**9,
        timer=Waiter(threading.Event(), lambda: next(moments)),
    )
    warm = [warmup for _, warmup in itertools.islice(pending, 9)]
    assert warm == sorted(warm, reverse=True)
    assert 0 < sum(warm) < 4
