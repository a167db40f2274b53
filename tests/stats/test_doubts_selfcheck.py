"""When a task's load was not what was asked for, and by whose fault; on numbers as runs have them."""

from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import pytest

from benchctl.results.figures import Calibration, HostFigures, PacedLag, TaskSummary
from benchctl.results.model import ForkRecord
from benchctl.results.plan import Plan
from benchctl.stats.analyse import analyse
from benchctl.stats.doubts import row_doubts
from benchctl.stats.driver import LoadCheck, check_load, near_floor
from benchctl.stats.metrics import LATENCY, METRICS, SERVICE_TIME, THROUGHPUT
from benchctl.track.model import Task
from builders import make_driver, make_summary

US = 1_000
MS = 1_000_000
CLOSED = Task("range", iterations=10)
THROTTLED = Task("range", iterations=10, target_throughput=100)
CALIBRATION = Calibration(40 * US, 90 * US, 25 * US, 15_000.0, 8, 30_000.0, (PacedLag(100.0, 1, 2, 3),), 3.0)


def closed(mean_ms: float, *, pause_us: float = 40, requests: int = 300, **changes: Any) -> TaskSummary:
    """A closed loop of one client that pauses for so long after every answer."""
    cycle_ms = mean_ms + pause_us / US
    figures = {
        "offered_per_s": 1000 / cycle_ms,
        "lag_p50_ns": round(pause_us * US),
        "lag_p99_ns": round(3 * pause_us * US),
        "lag_max_ns": round(9 * pause_us * US),
        "think_share": pause_us / US / cycle_ms,
    }
    driver = make_driver(requests=requests, **{**figures, **changes})
    return make_summary("range", mean_ms, samples=requests, driver=driver)


def throttled(mean_ms: float, *, offered: float = 100.0, requests: int = 300, **changes: Any) -> TaskSummary:
    """An open loop at 100/s that is sent on time and served."""
    figures = {
        "offered_per_s": offered,
        "due_per_s": 100.0,
        "possible_per_s": 100.0,
        "lag_p50_ns": 30 * US,
        "lag_p99_ns": 250 * US,
        "lag_max_ns": 2 * MS,
        "think_share": None,
    }
    driver = make_driver(requests=requests, **{**figures, **changes})
    summary = make_summary("range", mean_ms, samples=requests, throughput_per_s=100.0, driver=driver)
    return msgspec.structs.replace(summary, latency=summary.service_time)


def limits(check: LoadCheck) -> list[str]:
    return [limit.text for limit in check.limits]


@pytest.mark.parametrize("service_ms", [5.0, 20.0, 100.0])
@pytest.mark.parametrize("cpu_share", [0.01, 0.6, 1.4])
def test_the_default_run_is_clean_even_with_a_hiccup_in_every_fork(service_ms: float, cpu_share: float):
    forks = [
        closed(
            service_ms,
            requests=10,
            lag_max_ns=10 * MS,
            lag_p99_ns=10 * MS,
            think_share=10 / (10 * service_ms + 10),
            # A window of a tenth of a second or less says nothing about CPU time.
            cpu_share=cpu_share if service_ms < 10 else 0.02,
        )
        for _ in range(5)
    ]
    found = check_load(CLOSED, forks)
    assert (found.states, found.limits, found.withheld) == ((), (), ())


@pytest.mark.parametrize("requests", [1, 2, 10])
def test_few_throttled_requests_with_a_hiccup_are_clean(requests: int):
    late = {"lag_p99_ns": 9 * MS, "lag_max_ns": 9 * MS, "offered": 100 * (1 - 0.0005 * requests)}
    assert check_load(THROTTLED, [throttled(5.0, requests=requests, **late)] * 5).states == ()


def test_a_host_that_lags_spoils_the_figures_of_all_and_is_named():
    def forks(task: Task, **late: Any) -> list[TaskSummary]:
        whole = throttled(5.0, workers=2) if task.throttled else closed(5.0, workers=2)
        hosts = [
            HostFigures(name, 2, 0, 250 * US, 10 * US, make_driver(**figures))
            for name, figures in (("one", {"think_share": None}), ("two", {"think_share": None, **late}))
        ]
        return [msgspec.structs.replace(whole, hosts=tuple(hosts))] * 5

    found = check_load(THROTTLED, forks(THROTTLED, lag_p99_ns=12 * MS))
    assert found.states == ("driver-limited",)
    assert limits(found) == ["sent 1 % of its requests at least 12 ms late (host two)"]
    found = check_load(CLOSED, forks(CLOSED, cpu_share=0.95))
    assert limits(found) == ["kept its process busy for 95 % of the time (host two)"]
    assert check_load(THROTTLED, forks(THROTTLED)).states == ()
    assert check_load(CLOSED, forks(CLOSED)).states == ()
    # Twice as many on each host, of which there are two.
    crowded = msgspec.structs.replace(THROTTLED, clients=8)
    assert "--workers 2 or" in check_load(crowded, forks(THROTTLED, lag_p99_ns=12 * MS)).advice


def test_records_without_figures_of_the_driver_are_not_judged():
    for task in (CLOSED, THROTTLED):
        assert check_load(task, [make_summary("range", 5.0)] * 5).states == ()
        assert check_load(task, []).states == ()


@pytest.mark.parametrize(("pause_us", "limited"), [(20, False), (26, False), (27, True), (60, True)])
@pytest.mark.parametrize("requests", [10, 300])
def test_pauses_of_more_than_a_twentieth_withhold_throughput(
    pause_us: float, requests: int, *, limited: bool
):
    found = check_load(CLOSED, [closed(0.5, pause_us=pause_us, requests=requests)] * 5)
    assert found.states == (("driver-limited",) if limited else ())
    assert found.withheld == (("throughput",) if limited else ())
    assert [found.withholds(metric.figure.name) for metric in METRICS] == [limited, False, False]


def test_a_single_disturbed_fork_decides_nothing():
    slow = closed(0.5, pause_us=500)
    fine = closed(0.5, pause_us=10)
    assert check_load(CLOSED, [fine, slow, fine]).states == ()
    assert check_load(CLOSED, [slow, fine, slow]).states == ("driver-limited",)


@pytest.mark.parametrize(
    ("service_ms", "lag_ms", "limited"),
    [(2.0, 0.9, False), (2.0, 1.1, True), (30.0, 2.9, False), (30.0, 3.1, True)],
)
def test_latency_needs_requests_sent_within_a_millisecond_or_a_tenth_of_an_answer(
    service_ms: float, lag_ms: float, *, limited: bool
):
    found = check_load(THROTTLED, [throttled(service_ms, lag_p99_ns=round(lag_ms * MS))] * 5)
    assert found.withheld == (("p90 latency",) if limited else ())


def test_few_requests_are_late_when_most_of_them_are():
    late = throttled(5.0, requests=10, lag_p50_ns=3 * MS, lag_p99_ns=3 * MS)
    many = throttled(5.0, lag_p99_ns=4 * MS)
    assert limits(check_load(THROTTLED, [many] * 5)) == ["sent 1 % of its requests at least 4 ms late"]
    found = check_load(THROTTLED, [late] * 5)
    assert limits(found) == ["sent half of its requests at least 3 ms late"]


@pytest.mark.parametrize(("offered", "limited"), [(99.0, False), (98.1, False), (97.9, True), (60.0, True)])
def test_a_rate_that_the_driver_did_not_offer_withholds_everything(offered: float, *, limited: bool):
    found = check_load(THROTTLED, [throttled(5.0, offered=offered)] * 5)
    assert found.states == (("driver-limited",) if limited else ())
    assert [found.withholds(metric.figure.name) for metric in METRICS] == [limited] * 3


def test_less_than_a_millisecond_lost_in_a_burst_is_no_rate_missed():
    burst = throttled(5.0, requests=2, offered=800.0, due_per_s=1000.0, possible_per_s=1000.0)
    assert check_load(Task("range", iterations=2, target_throughput=1000), [burst] * 5).states == ()


def test_a_slow_engine_does_not_make_the_driver_guilty():
    summary = throttled(20.0, offered=50.0, possible_per_s=50.2)
    late = msgspec.structs.replace(summary.service_time, p90=900.0 * MS)
    found = check_load(THROTTLED, [msgspec.structs.replace(summary, latency=late)] * 5)
    assert (found.states, found.saturated_per_s, found.limits) == (("saturated",), pytest.approx(50.2), ())


def test_a_short_poisson_schedule_below_its_target_is_not_saturated():
    summary = throttled(5.0, offered=93.9, due_per_s=94.0, possible_per_s=93.9)
    late = msgspec.structs.replace(summary.service_time, p90=30.0 * MS)
    assert check_load(THROTTLED, [msgspec.structs.replace(summary, latency=late)] * 5).states == ()


def test_saturation_is_judged_in_requests_where_throughput_counts_documents_or_failures():
    summary = throttled(5.0)
    late = msgspec.structs.replace(summary.service_time, p90=900.0 * MS)
    failing = msgspec.structs.replace(summary, throughput_per_s=40.0, latency=late)
    assert check_load(THROTTLED, [failing] * 5).states == ()


@pytest.mark.parametrize(("cpu_share", "limited"), [(0.79, False), (0.81, True)])
def test_a_driver_at_the_end_of_its_strength_withholds_everything(cpu_share: float, *, limited: bool):
    for task, summary in (
        (CLOSED, closed(5.0, cpu_share=cpu_share)),
        (THROTTLED, throttled(5.0, cpu_share=cpu_share)),
    ):
        found = check_load(task, [summary] * 5)
        expected = (
            ("throughput", "p90 service time") if task is CLOSED else tuple(one.title for one in METRICS)
        )
        assert found.withheld == (expected if limited else ())
    assert check_load(CLOSED, [closed(5.0, cpu_share=0.9)]).advice == "take an operation that lasts longer"
    found = check_load(CLOSED, [closed(5.0, cpu_share=0.9, workers=2)] * 3)
    assert limits(found) == ["kept each of its processes busy for 90 % of the time"]


@pytest.mark.parametrize(
    ("task", "workers", "expected"),
    [
        (CLOSED, 1, "compare its service times, or take an operation that lasts longer"),
        (
            Task("range", clients=8, iterations=1),
            1,
            "take fewer clients, --workers 2 or a machine with idle CPUs",
        ),
        (
            Task("range", clients=8, iterations=1),
            2,
            "take fewer clients, --workers 4 or a machine with idle CPUs",
        ),
        (Task("range", clients=2, iterations=1), 2, "take fewer clients or a machine with idle CPUs"),
        (THROTTLED, 1, "take a lower rate or a machine with idle CPUs"),
        (
            Task("range", clients=4, iterations=1, target_throughput=9),
            1,
            "take a lower rate, --workers 2 or a machine with idle CPUs",
        ),
    ],
)
def test_advice_is_something_that_can_be_done(task: Task, workers: int, expected: str):
    assert check_load(task, [closed(5.0, workers=workers)]).advice == expected


def test_the_note_names_the_variant_the_reason_and_what_to_do():
    slow, fine = closed(0.5, pause_us=60), closed(0.5, pause_us=10)
    expected = (
        "driver-limited: on os, benchctl let 11 % of its clients' time pass between an answer and the next "
        "request: no verdict on throughput; compare its service times, or take an operation that lasts longer"
    )
    found = row_doubts(THROUGHPUT, CLOSED, {"es": [(0, fine)] * 3, "os": [(0, slow)] * 3}, None)
    assert [(doubt.code, doubt.text) for doubt in found] == [("driver-limited", expected)]
    elsewhere = row_doubts(SERVICE_TIME, CLOSED, {"es": [(0, fine)] * 3, "os": [(0, slow)] * 3}, None)
    assert elsewhere == found


def verdicts(
    plan: Callable[..., Plan],
    fork: Callable[..., ForkRecord],
    sides: dict[str, TaskSummary],
    task: Task,
    calibration: Calibration | None = None,
):
    def varied(summary: TaskSummary, block: int) -> TaskSummary:
        factor = 1 + 0.001 * block
        return msgspec.structs.replace(
            summary,
            throughput_per_s=summary.throughput_per_s * factor,
            service_time=msgspec.structs.replace(summary.service_time, p90=summary.service_time.p90 * factor),
            latency=summary.latency
            and msgspec.structs.replace(summary.latency, p90=summary.latency.p90 * factor),
        )

    forks = {
        name: [fork(name, block, varied(one, block)) for block in range(5)] for name, one in sides.items()
    }
    return analyse(forks, plan(task), calibration=calibration)


def by_metric(found: Any) -> dict[str, tuple[str, list[Sequence[str]]]]:
    return {row.metric: (row.comparisons[0].verdict, [one.load for one in row.figures]) for row in found.rows}


def test_a_task_limited_in_one_variant_has_no_verdict_where_it_matters_and_is_marked_everywhere(
    plan: Callable[..., Plan], fork: Callable[..., ForkRecord]
):
    sides = {"es": closed(0.5, pause_us=10), "os": closed(0.5, pause_us=60)}
    marked = [(), ("driver-limited",)]
    assert by_metric(verdicts(plan, fork, sides, CLOSED)) == {
        "throughput": ("n/a", marked),
        "service_time_p90": ("equivalent", marked),
    }


def test_late_requests_take_the_verdict_from_latency_alone(
    plan: Callable[..., Plan], fork: Callable[..., ForkRecord]
):
    sides = {"es": throttled(5.0, lag_p99_ns=4 * MS), "os": throttled(6.0, lag_p99_ns=4 * MS)}
    found = by_metric(verdicts(plan, fork, sides, THROTTLED))
    assert {metric: verdict for metric, (verdict, _) in found.items()} == {
        "throughput": "n/a",
        "service_time_p90": "slower",
        "latency_p90": "n/a",
    }
    assert LATENCY.key in found


def test_what_the_driver_did_is_told_for_every_task_and_variant(
    plan: Callable[..., Plan], fork: Callable[..., ForkRecord]
):
    os = throttled(5.0, lag_max_ns=7 * MS, gap_s=0.011, workers=2)
    found = verdicts(plan, fork, {"es": throttled(5.0), "os": os}, THROTTLED)
    es, os_row = found.drivers
    assert (es.variant, es.target_per_s, es.offered_per_s, es.lag_p50_ns) == ("es", 100.0, 100.0, 30 * US)
    assert (os_row.lag_max_ns, os_row.gap_s, os_row.workers, os_row.load) == (7 * MS, 0.011, 2, ())
    unknown = verdicts(plan, fork, {"es": make_summary("range", 5.0), "os": os}, THROTTLED)
    assert [row.variant for row in unknown.drivers] == ["os"]


@pytest.mark.parametrize(("service_ms", "near"), [(0.39, True), (0.41, False), (5.0, False)])
def test_answers_under_ten_times_the_driver_s_error_are_noted(
    plan: Callable[..., Plan], fork: Callable[..., ForkRecord], service_ms: float, *, near: bool
):
    summaries = [make_summary("range", service_ms)] * 5
    assert near_floor(summaries, CALIBRATION) == (service_ms * MS if near else None)
    assert near_floor(summaries, None) is None
    assert near_floor([make_summary("range", 1.0, service_time=None)], CALIBRATION) is None
    sides = {"es": make_summary("range", 5.0), "os": make_summary("range", service_ms)}
    found = verdicts(plan, fork, sides, CLOSED, CALIBRATION)
    for row in found.rows:
        notes = [doubt.text for doubt in row.caveats if doubt.code == "driver-floor"]
        assert len(notes) == near
        assert all(
            text.startswith("the median service time of os, 0.39 ms, is under 10 times") for text in notes
        )
