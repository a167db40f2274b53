"""Does a backlog grow? Judged on synthetic queues, near their limit and beyond it, and by hand."""

import heapq
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchctl.redline.search import growth, undelayed_latency

NS_PER_S = 1_000_000_000
SETTLE_NS = 2 * NS_PER_S
STEP_NS = 5 * NS_PER_S

Integers = npt.NDArray[np.int64]


def poisson(rng: np.random.Generator, rate_per_s: float) -> Integers:
    """Arrivals of a step, its settling included."""
    enough = int(20 * rate_per_s)
    due = np.cumsum(rng.exponential(NS_PER_S / rate_per_s, enough)).astype(np.int64)
    return due[due < SETTLE_NS + STEP_NS]


def queue(due_ns: Integers, service_ns: Iterable[float], servers: int = 1) -> Integers:
    """Latencies of a queue that serves whoever came first."""
    free = [0] * servers
    latency = []
    for due, service in zip(due_ns.tolist(), service_ns, strict=True):
        end = max(due, heapq.heappop(free)) + int(service)
        heapq.heappush(free, end)
        latency.append(end - due)
    return np.asarray(latency, dtype=np.int64)


def share_of_growth(load: float, *, exponential: bool, service_s: float, steps: int = 60) -> float:
    """How many of some simulated steps are found to have a growing backlog."""
    rng = np.random.default_rng(1)
    found = 0
    for _ in range(steps):
        due = poisson(rng, load / service_s)
        typical_ns = service_s * NS_PER_S
        service = rng.exponential(typical_ns, due.size) if exponential else np.full(due.size, typical_ns)
        latency = queue(due, service.tolist())
        measured = due >= SETTLE_NS
        found += growth(due[measured], latency[measured]).grows
    return found / steps


@pytest.mark.parametrize("exponential", [True, False], ids=["M/M/1", "M/D/1"])
@pytest.mark.parametrize(
    ("load", "least", "most"),
    [
        (0.3, 0.0, 0.0),
        (0.7, 0.0, 0.05),
        (0.9, 0.0, 0.15),
        (1.1, 0.85, 1.0),
        (1.2, 0.95, 1.0),
        (1.5, 1.0, 1.0),
    ],
)
def test_growth_is_found_beyond_the_limit_of_a_queue_and_hardly_below_it(
    load: float, least: float, most: float, *, exponential: bool
):
    assert least <= share_of_growth(load, exponential=exponential, service_s=0.005) <= most


def test_few_requests_say_less_but_do_not_call_a_stable_queue_growing():
    assert share_of_growth(0.7, exponential=True, service_s=0.02) <= 0.1
    assert share_of_growth(1.4, exponential=True, service_s=0.02) >= 0.95


def test_a_steady_overload_has_its_own_slope():
    due = np.arange(1000) * 5_000_000
    found = growth(due, 10_000_000 + due // 20)
    assert found.slope == pytest.approx(0.05)
    assert found.grows


def test_a_slope_that_completes_99_percent_is_no_growth():
    due = np.arange(1000) * 5_000_000
    assert not growth(due, 10_000_000 + due // 125).grows


def test_latency_that_falls_is_no_growth():
    due = np.arange(1000) * 5_000_000
    assert growth(due, 400_000_000 - due // 20).slope == pytest.approx(-0.05)


def test_a_single_stall_is_no_growth():
    due = np.arange(1000) * 5_000_000
    latency = np.full(1000, 10_000_000)
    latency[900:950] = 500_000_000
    assert not growth(due, latency).grows


def test_the_order_of_rows_does_not_matter():
    rng = np.random.default_rng(2)
    due = poisson(rng, 100.0)
    latency = queue(due, rng.exponential(2e7, due.size).tolist())
    shuffled = rng.permutation(due.size)
    assert growth(due[shuffled], latency[shuffled]) == growth(due, latency)


@pytest.mark.parametrize("requests", range(6))
def test_too_few_requests_have_no_growth(requests: int):
    due = np.arange(requests) * NS_PER_S
    assert not growth(due, due).grows


def test_requests_that_were_all_due_at_once_have_no_growth():
    assert not growth(np.zeros(50, np.int64), np.arange(50)).grows


Gap = st.integers(0, 50)


@given(st.lists(st.tuples(Gap, Gap, Gap, st.integers(0, 2)), min_size=1, max_size=60))
def test_without_the_drivers_lateness_each_clients_queue_runs_as_in_a_plain_loop(
    requests: list[tuple[int, int, int, int]],
):
    due_ns, start_ns, end_ns, clients, wanted = [], [], [], [], []
    ended: dict[int, int] = {}
    ended_alone: dict[int, int] = {}
    due = 0
    for gap, late, took, client in requests:
        due += gap
        start = max(due, ended.get(client, 0)) + late
        ended[client] = start + took
        ended_alone[client] = max(due, ended_alone.get(client, 0)) + took
        for values, value in (
            (due_ns, due), (start_ns, start), (end_ns, start + took), (clients, client),
            (wanted, ended_alone[client] - due),
        ):  # fmt: skip
            values.append(value)
    found = undelayed_latency(*(np.asarray(one, np.int64) for one in (due_ns, start_ns, end_ns, clients)))
    assert found.tolist() == wanted


def test_a_driver_that_falls_behind_ever_further_does_not_make_the_node_look_slow():
    due = np.arange(100) * 1_000_000
    start = np.arange(100) * 1_500_000
    end = start + 500_000
    assert undelayed_latency(due, start, end, np.zeros(100, np.int64)).max() == 500_000
