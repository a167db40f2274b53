"""The verdict on one step: latency, failures, completed rate, backlog, and whose fault it is."""

from typing import Any

import msgspec
import numpy as np
import pytest
from scipy.stats.mstats import hdquantiles

from benchctl.redline.search import Offer, judge_step
from benchctl.results.figures import CurvePoint
from benchctl.results.plan import RedlineSpec
from benchctl.results.samples import Columns, Outcome
from redlines import SEARCH
from stats.made import samples

NS_PER_MS = 1_000_000
PERIOD_NS = 5_000_000_000


def step(latency_ms: Any = 10.0, **columns: Any) -> Columns:
    """A hundred requests a second for five seconds by one client, 10 ms each unless a test says otherwise."""
    due = np.arange(500) * 10 * NS_PER_MS
    latency = np.broadcast_to(np.asarray(latency_ms) * NS_PER_MS, due.shape).astype(np.int64)
    # Every request has a client of its own: they overlap as they like.
    made = samples([1] * 500, intended_ns=due, start_ns=due, end_ns=due + latency, client=np.arange(500) % 50)
    for name, values in columns.items():
        made[name][:] = values
    return made


def judge(columns: Columns, search: RedlineSpec = SEARCH) -> CurvePoint:
    return judge_step(columns, Offer(3, 155, "search", 100.0, PERIOD_NS), search)


def test_a_step_within_the_limit_passes_and_becomes_a_point():
    spread = 10 + np.arange(500) % 10
    point = judge(step(spread))
    assert (point.step, point.rung, point.phase, point.rate_per_s) == (3, 155, "search", 100.0)
    assert (point.verdict, point.reason, point.samples, point.failures) == ("pass", "", 500, 0)
    expected = hdquantiles(spread * NS_PER_MS, [0.5, 0.9, 0.99])
    assert [point.p50_ns, point.p90_ns, point.p99_ns] == pytest.approx(expected.tolist())
    assert point.objective_ns == point.undelayed_ns == point.p90_ns
    assert point.achieved_per_s == 100.0


def test_a_percentile_over_the_limit_fails():
    point = judge(step(np.where(np.arange(500) % 5, 10, 60)))
    assert point.verdict == "fail"
    assert point.reason == "p90 is 60 ms"


def test_the_objective_may_bound_another_percentile():
    latency = np.where(np.arange(500) % 25, 10, 60)
    assert judge(step(latency)).verdict == "pass"
    stricter = msgspec.structs.replace(SEARCH, percentile=99.0)
    assert judge(step(latency), stricter).reason == "p99 is 60 ms"


def test_the_settling_time_is_no_part_of_the_figures():
    slow_at_first = np.where(np.arange(500) < 100, 400, 10)
    assert judge(step(slow_at_first)).verdict == "fail"
    point = judge(step(slow_at_first, warmup=np.arange(500) < 100))
    assert (point.verdict, point.samples) == ("pass", 400)


def test_a_single_failed_request_fails_the_step():
    outcome = np.zeros(500)
    outcome[250] = Outcome.TIMEOUT
    point = judge(step(outcome=outcome))
    assert (point.verdict, point.reason, point.failures, point.samples) == (
        "fail",
        "1 requests failed",
        1,
        499,
    )


def test_a_step_without_answers_fails():
    point = judge(step(outcome=Outcome.REFUSED))
    assert (point.verdict, point.samples, point.p90_ns, point.achieved_per_s) == ("fail", 0, None, None)


def test_nothing_at_all_is_no_pass():
    point = judge(samples([]))
    assert (point.verdict, point.reason) == ("fail", "no request got a response")


def test_parts_of_longer_operations_do_not_count_beside_the_whole():
    point = judge(step(np.where(np.arange(500) % 2, 10, 400), part=np.arange(500) % 2 == 0))
    assert (point.verdict, point.samples) == ("pass", 250)


def test_requests_that_the_driver_ended_are_neither_failures_nor_figures():
    outcome = np.zeros(500)
    outcome[-3:] = Outcome.CANCELLED
    point = judge(step(outcome=outcome))
    assert (point.verdict, point.failures, point.samples) == ("pass", 0, 497)


def test_a_lax_limit_does_not_hide_a_growing_backlog():
    lax = msgspec.structs.replace(SEARCH, limit_ns=1000 * NS_PER_MS)
    growing = 10 + np.arange(500) * 0.5
    point = judge(step(growing), lax)
    assert point.verdict == "fail"
    assert point.reason == "the backlog grew by 50 ms a second"
    assert point.growth == pytest.approx(0.05)


def test_a_rate_that_is_not_completed_fails_even_where_the_percentile_is_met():
    # The last 2% of requests hang: no percentile and no median knows of them.
    hanging = np.where(np.arange(500) < 490, 10, 300)
    point = judge(step(hanging))
    assert point.verdict == "fail"
    assert point.reason == "completed 95.24/s of 100/s"


def test_waiting_that_the_limit_allows_is_not_held_against_the_last_requests():
    lax = msgspec.structs.replace(SEARCH, limit_ns=400 * NS_PER_MS)
    rng = np.random.default_rng(1)
    point = judge(step(rng.uniform(200, 390, 500)), lax)
    assert (point.verdict, point.achieved_per_s) == ("pass", 100.0)


def test_a_step_that_only_the_drivers_lateness_spoilt_is_driver_limited():
    due = np.arange(500) * 10 * NS_PER_MS
    start = due + 70 * NS_PER_MS
    columns = samples(
        [1] * 500,
        intended_ns=due,
        start_ns=start,
        end_ns=start + 5 * NS_PER_MS,
        client=np.arange(500) % 50,
    )
    point = judge(columns)
    assert point.verdict == "driver-limited"
    assert point.reason == "p90 is 75 ms"
    assert point.undelayed_ns == pytest.approx(5 * NS_PER_MS)


def test_a_driver_that_is_late_for_a_slow_node_excuses_nothing():
    due = np.arange(500) * 10 * NS_PER_MS
    start = due + 20 * NS_PER_MS
    columns = samples(
        [1] * 500,
        intended_ns=due,
        start_ns=start,
        end_ns=start + 55 * NS_PER_MS,
        client=np.arange(500) % 50,
    )
    assert judge(columns).verdict == "fail"


def test_requests_that_were_rejected_are_said_to_be():
    outcome = np.zeros(500)
    outcome[:3], outcome[3] = Outcome.REJECTED, Outcome.PARTIAL
    point = judge(step(outcome=outcome))
    assert (point.verdict, point.reason) == ("fail", "4 requests failed, 3 of them rejected")


def test_a_rejection_that_a_retry_mended_is_one():
    outcome, attempt = np.zeros(500), np.zeros(500)
    outcome[7], attempt[8] = Outcome.REJECTED, 1
    assert judge(step(outcome=outcome, attempt=attempt)).verdict == "fail"
