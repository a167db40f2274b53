"""When clients send: arrivals over any task, and waits that end when they should."""

import itertools
import threading
import time
from itertools import islice
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchctl.errors import UsageError
from benchctl.load.client import NS_PER_S, Waiter, arrivals, cues, extent, open_ended
from benchctl.track.model import ScheduleName, Task

SCHEDULES = st.sampled_from(["deterministic", "poisson"])
RATES = st.floats(0.01, 50_000)


def all_clients(task: Task, seed: int = 1) -> list[list[int]]:
    return [list(arrivals(task, client=client, seed=seed)) for client in range(task.clients)]


def merged(task: Task, seed: int = 1) -> list[int]:
    return sorted(offset for offsets in all_clients(task, seed) for offset in offsets)


@settings(deadline=None)
@given(rate=RATES, clients=st.integers(1, 9), number=st.integers(0, 500))
def test_deterministic_arrivals_are_evenly_spaced_over_all_clients(rate: float, clients: int, number: int):
    task = Task(operation="x", clients=clients, iterations=number + 1, target_throughput=rate)
    due = next(islice(arrivals(task, client=number % clients, seed=1), number // clients, None))
    assert due == round(number * NS_PER_S / rate)


def test_a_target_interval_is_a_rate_over_all_clients():
    task = Task(operation="x", clients=2, iterations=2, target_interval=0.5)
    assert merged(task) == [0, NS_PER_S // 2, NS_PER_S, 3 * NS_PER_S // 2]


@settings(deadline=None)
@given(clients=st.integers(1, 7), seed=st.integers(0, 1000), schedule=SCHEDULES)
def test_the_same_task_and_seed_give_the_same_arrivals(clients: int, seed: int, schedule: ScheduleName):
    task = Task(operation="x", clients=clients, iterations=150, target_throughput=90, schedule=schedule)
    assert all_clients(task, seed) == all_clients(task, seed)


def test_another_seed_or_another_label_gives_other_poisson_arrivals():
    task = Task(operation="x", iterations=50, target_throughput=90, schedule="poisson")
    renamed = Task(operation="y", iterations=50, target_throughput=90, schedule="poisson")
    assert merged(task, 1) != merged(task, 2)
    assert merged(task, 1) != merged(renamed, 1)


@pytest.mark.parametrize("clients", [1, 3, 8])
def test_poisson_gaps_are_exponential_with_the_mean_of_the_rate(clients: int):
    count = 24_000
    task = Task(
        operation="x",
        clients=clients,
        iterations=count // clients,
        target_throughput=500,
        schedule="poisson",
    )
    gaps_s = np.diff([0, *merged(task)]) / NS_PER_S
    assert gaps_s.size == count
    assert gaps_s.mean() == pytest.approx(1 / 500, rel=0.03)
    assert gaps_s.std() == pytest.approx(1 / 500, rel=0.03)
    assert np.median(gaps_s) == pytest.approx(np.log(2) / 500, rel=0.03)
    assert abs(np.corrcoef(gaps_s[1:], gaps_s[:-1])[0, 1]) < 0.03
    assert gaps_s[0] > 0


def test_poisson_clients_share_one_process():
    shared = {"operation": "x", "target_throughput": 50, "schedule": "poisson", "time_period": 5.0}
    alone = merged(Task(clients=64, **shared))
    many = all_clients(Task(clients=64, **shared))
    assert [offsets[0] for offsets in many] == alone[:64]


@settings(deadline=None)
@given(
    rate=st.floats(1, 2000),
    clients=st.integers(1, 5),
    warmup=st.floats(0, 1),
    period=st.floats(0.01, 2),
    schedule=SCHEDULES,
)
def test_a_time_period_bounds_the_arrivals(
    rate: float, clients: int, warmup: float, period: float, schedule: ScheduleName
):
    task = Task(
        operation="x",
        clients=clients,
        warmup_time_period=warmup,
        time_period=period,
        target_throughput=rate,
        schedule=schedule,
    )
    end_ns = round(warmup * NS_PER_S) + round(period * NS_PER_S)
    due = merged(task)
    assert all(offset < end_ns for offset in due)
    if schedule == "deterministic":
        assert len(due) == pytest.approx(end_ns * rate / NS_PER_S, abs=1)


def test_arrivals_are_lazy():
    task = Task(operation="x", iterations=10**9, target_throughput=1e6, schedule="poisson")
    assert len(list(islice(arrivals(task, client=0, seed=3), 10))) == 10


def test_the_billionth_deterministic_arrival_has_no_drift():
    task = Task(operation="x", clients=10**9, iterations=2, target_throughput=3)
    assert next(iter(arrivals(task, client=3 * 10**8, seed=0))) == 10**8 * NS_PER_S


def test_warmup_is_by_position_or_by_time():
    counted = extent(Task(operation="x", warmup_iterations=2, iterations=3))
    assert [counted.is_warmup(position, 10**12) for position in range(4)] == [True, True, False, False]
    timed = extent(Task(operation="x", warmup_time_period=1.0, time_period=2.0))
    assert timed.period_ns == 3 * NS_PER_S
    assert timed.is_warmup(10**6, NS_PER_S - 1)
    assert not timed.is_warmup(0, NS_PER_S)


def test_a_task_without_bounds_runs_once():
    assert extent(Task(operation="x")).requests == 1
    assert extent(Task(operation="x", warmup_iterations=4)).requests == 5


def test_a_warmup_period_that_nothing_ends_is_refused():
    with pytest.raises(UsageError, match="no time-period"):
        extent(Task(operation="x", warmup_time_period=1.0))


def test_a_closed_loop_has_no_arrivals():
    with pytest.raises(ValueError, match="closed loop"):
        arrivals(Task(operation="x"), client=0, seed=0)


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
    task = Task(operation="x", **bounds)
    halt = threading.Event()
    halt.set()
    assert list(cues(task, extent(task), client=0, seed=1, start_ns=0, timer=Waiter(halt))) == []
    halt.clear()
    late = time.monotonic_ns() - 100 * 10**9
    pending = cues(task, extent(task), client=0, seed=1, start_ns=late, timer=Waiter(halt))
    next(pending)
    halt.set()
    assert list(pending) == []


def test_work_that_ends_by_itself_warms_up_for_a_time():
    moments = itertools.count(10**9, 10**8)
    task = Task(operation="x", warmup_time_period=0.25)
    pending = cues(
        task,
        open_ended(task),
        client=0,
        seed=1,
        start_ns=10**9,
        timer=Waiter(threading.Event(), lambda: next(moments)),
    )
    warm = [warmup for _, warmup, _ in itertools.islice(pending, 9)]
    assert warm == sorted(warm, reverse=True)
    assert 0 < sum(warm) < 4
