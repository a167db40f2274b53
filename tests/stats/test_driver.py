"""When a task's load was not what was asked for, and by whose fault; on numbers as runs have them."""

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from benchctl.results.figures import HostFigures, TaskSummary
from benchctl.stats.analyse import analyse
from benchctl.stats.analysis import Analysis
from benchctl.stats.doubts import row_doubts
from benchctl.stats.driver import check_load, compare_pauses
from benchctl.stats.metrics import DEFAULT_METRICS, THROUGHPUT, metric
from benchctl.track.model import Challenge, Task
from builders import make_driver, make_fork, make_plan, make_summary

SERVICE_TIME = metric("service_time")

US = 1_000
MS = 1_000_000
CLOSED = Task("range", iterations=10)
THROTTLED = Task("range", iterations=10, target_throughput=100)
SHAPE = Task("range", time_period=10, schedule="logged", mixed=True)
WHOLE = Task("range", time_period=10, schedule="logged")


def closed(mean_ms: float, *, pause_us: float = 40, requests: int = 300, **changes: Any) -> TaskSummary:
    """A closed loop of clients, one unless more are given, that pause for so long after every answer."""
    cycle_ms = mean_ms + pause_us / US
    figures = {
        "offered_per_s": 1000 / cycle_ms,
        "lag_p50_ns": round(pause_us * US),
        "lag_p99_ns": round(3 * pause_us * US),
        "lag_max_ns": round(9 * pause_us * US),
        "think_share": pause_us / US / cycle_ms,
    }
    driver = make_driver(requests=requests, **{**figures, **changes})
    rate = driver.clients * 1000 / cycle_ms
    return make_summary("range", mean_ms, samples=requests, throughput_per_s=rate, driver=driver)


def throttled(
    mean_ms: float,
    *,
    offered: float = 100.0,
    requests: int = 300,
    p90_ms: float | None = None,
    **changes: Any,
) -> TaskSummary:
    """An open loop at 100/s that is sent on time and served, or waits for the p90 of its latency."""
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
    waited = {} if p90_ms is None else {"p90": p90_ms * MS}
    latency = msgspec.structs.replace(summary.service_time, **waited)
    return msgspec.structs.replace(summary, latency=latency)


ALL = tuple(metric.title for metric in DEFAULT_METRICS if not metric.kind.quality)
HICCUP = {"lag_p99_ns": 10 * MS, "lag_max_ns": 10 * MS}
BURST = {"offered": 800.0, "due_per_s": 1000.0, "possible_per_s": 1000.0}


@pytest.mark.parametrize(
    ("task", "forks", "limit", "withheld"),
    [
        # CPU time of a window of .1 s says nothing.
        (CLOSED, [closed(5.0, requests=10, cpu_share=1.4)] * 5, "", ()),
        (THROTTLED, [throttled(5.0, requests=10, offered=99.5, **HICCUP)] * 5, "", ()),
        # Nothing is known of other tools' drivers.
        (CLOSED, [make_summary("range", 5.0)] * 5, "", ()),
        (THROTTLED, [make_summary("range", 5.0)] * 5, "", ()),
        (THROTTLED, [], "", ()),
        # Whatever the clients pause.
        (CLOSED, [closed(0.5, pause_us=500)] * 5, "", ()),
        # The median over forks decides.
        (CLOSED, [closed(0.5, cpu_share=share) for share in (0.1, 0.9, 0.1)], "", ()),
        # A millisecond, or a tenth of an answer; of few requests, the typical one.
        (THROTTLED, [throttled(2.0, lag_p99_ns=9 * MS // 10)] * 5, "", ()),
        (THROTTLED, [throttled(2.0, lag_p99_ns=11 * MS // 10)] * 5, "sent 1% of its", ("p90 latency",)),
        (THROTTLED, [throttled(30.0, lag_p99_ns=29 * MS // 10)] * 5, "", ()),
        (THROTTLED, [throttled(30.0, lag_p99_ns=31 * MS // 10)] * 5, "3.1 ms late", ("p90 latency",)),
        (THROTTLED, [throttled(5.0, requests=10, lag_p50_ns=3 * MS)] * 5, "sent half", ("p90 latency",)),
        # Less than was possible, unless that is a millisecond in a burst, or the engine's fault.
        (THROTTLED, [throttled(5.0, offered=98.1)] * 5, "", ()),
        (THROTTLED, [throttled(5.0, offered=97.9)] * 5, "sent 97.9/s, 2% less than was possible", ALL),
        # A shape of a log waits for clients that are at others; all of its shapes together do not.
        (SHAPE, [throttled(5.0, offered=97.9)] * 5, "", ()),
        (WHOLE, [throttled(5.0, offered=97.9)] * 5, "sent 97.9/s, 2% less than was possible", ALL),
        (Task("range", target_throughput=1000), [throttled(5.0, requests=2, **BURST)] * 5, "", ()),
        (CLOSED, [closed(5.0, cpu_share=0.79)] * 5, "", ()),
        (CLOSED, [closed(5.0, cpu_share=0.81)] * 5, "kept its process busy for 81%", ALL[:2]),
        (CLOSED, [closed(5.0, cpu_share=0.9, workers=2)] * 5, "kept each of its processes busy", ALL[:2]),
        (THROTTLED, [throttled(5.0, cpu_share=0.81)] * 5, "kept its process busy for 81%", ALL),
    ],
)  # fmt: skip
def test_what_the_driver_limits(
    task: Task, forks: Sequence[TaskSummary], limit: str, withheld: tuple[str, ...]
):
    found = check_load(task, forks)
    assert found.states == (("driver-limited",) if limit else ())
    assert [limit in one.text for one in found.limits] == [True][: bool(limit)]
    assert found.withheld == withheld


@pytest.mark.parametrize(
    ("forks", "saturated"),
    [
        (throttled(20.0, offered=50.0, possible_per_s=50.2, p90_ms=900.0), 50.2),
        # A short Poisson schedule below its target; documents or failures in the throughput.
        (throttled(5.0, offered=93.9, due_per_s=94.0, possible_per_s=93.9, p90_ms=30.0), None),
        (msgspec.structs.replace(throttled(5.0, p90_ms=900.0), throughput_per_s=40.0), None),
    ],
)
def test_a_cluster_that_does_not_keep_up_is_saturated_and_the_driver_not_guilty(
    forks: TaskSummary, saturated: float | None
):
    found = check_load(THROTTLED, [forks] * 5)
    assert found.saturated_per_s == (saturated and pytest.approx(saturated))
    assert (found.states, found.limits) == (("saturated",) if saturated else (), ())


def test_a_host_that_lags_spoils_the_figures_of_all_and_is_named():
    def forks(task: Task, **late: Any) -> list[TaskSummary]:
        whole = throttled(5.0, workers=2) if task.throttled else closed(5.0, workers=2)
        hosts = [
            HostFigures(name, 2, 0, 250 * US, 10 * US, make_driver(**figures))
            for name, figures in (("one", {"think_share": None}), ("two", {"think_share": None, **late}))
        ]
        return [msgspec.structs.replace(whole, hosts=tuple(hosts))] * 5

    # Twice as many workers on each host, of which there are two.
    crowded = msgspec.structs.replace(THROTTLED, clients=8)
    found = check_load(crowded, forks(THROTTLED, lag_p99_ns=12 * MS))
    assert [limit.text for limit in found.limits] == [
        "sent 1% of its requests at least 12 ms late (host two)"
    ]
    assert "--workers 2 or" in found.advice
    (limit,) = check_load(CLOSED, forks(CLOSED, cpu_share=0.95)).limits
    assert limit.text == "kept its process busy for 95% of the time (host two)"
    assert check_load(THROTTLED, forks(THROTTLED)).states == check_load(CLOSED, forks(CLOSED)).states == ()


EIGHT = Task("range", clients=8, iterations=1)


@pytest.mark.parametrize(
    ("task", "driver", "expected"),
    [
        (CLOSED, {}, "use an operation that takes longer"),
        (EIGHT, {}, "use fewer clients, --workers 2 or a machine with idle CPUs"),
        (EIGHT, {"workers": 2}, "use fewer clients, --workers 4 or a machine with idle CPUs"),
        (Task("range", clients=2), {"workers": 2}, "use fewer clients or a machine with idle CPUs"),
        (THROTTLED, {}, "use a lower rate or a machine with idle CPUs"),
        (
            Task("range", clients=4, target_throughput=9),
            {},
            "use a lower rate, --workers 2 or a machine with idle CPUs",
        ),
    ],
)
def test_advice_is_something_that_can_be_done(task: Task, driver: dict[str, Any], expected: str):
    task = msgspec.structs.replace(task, iterations=1)
    assert check_load(task, [closed(5.0, **{"workers": 1} | driver)]).advice == expected


def test_the_note_names_the_variant_the_reason_and_what_to_do():
    slow, fine = closed(0.5, cpu_share=0.9), closed(0.5)
    expected = (
        "driver-limited: on os, benchctl kept its process busy for 90% of the time: no verdict on throughput "
        "and p90 service time; use an operation that takes longer"
    )
    for of in (THROUGHPUT, SERVICE_TIME):
        found = row_doubts(of, CLOSED, {"es": [(0, fine)] * 3, "os": [(0, slow)] * 3}, None)
        assert [(doubt.code, doubt.text) for doubt in found] == [("driver-limited", expected)]


@pytest.mark.parametrize(
    ("es_us", "os_us", "clients", "share", "apart"),
    [
        # A fifth of 3% of the shorter cycle of 1 ms is 6 us.
        (300, 300, 8, 0.3, False),
        (300, 305, 8, 0.305, False),
        (300, 307, 8, 0.307, True),
        (307, 300, 8, 0.307, True),
        (300, 900, 1, 0.0, False),
    ],
)
def test_pauses_of_several_clients_stretch_a_difference_and_unlike_ones_make_it(
    es_us: float, os_us: float, clients: int, share: float, *, apart: bool
):
    sides = {
        name: [closed(1 - us / US, pause_us=us, clients=clients)] * 3 + [closed(0.1, clients=clients)] * 2
        for name, us in (("es", es_us), ("os", os_us))
    }
    found = compare_pauses(THROUGHPUT, sides)
    assert (found.share, found.doubt is not None) == (pytest.approx(share), apart)
    assert compare_pauses(SERVICE_TIME, sides).share == 0.0


def test_a_client_without_pauses_is_not_held_against_several_with_them():
    sides = {"es": [closed(1.0, pause_us=50)], "os": [closed(1.0, pause_us=50, clients=2)]}
    assert compare_pauses(THROUGHPUT, sides).doubt is not None
    sides["os"] = [make_summary("range", 1.0)]
    assert compare_pauses(THROUGHPUT, sides).doubt is None


def analysed(task: Task, margin: float = 0.03, **sides: TaskSummary) -> Analysis:
    def varied(summary: TaskSummary, block: int) -> TaskSummary:
        def slower(times: Any) -> Any:
            return times and msgspec.structs.replace(times, p90=times.p90 * (1 + 0.001 * block))

        return msgspec.structs.replace(
            summary,
            throughput_per_s=summary.throughput_per_s * (1 + 0.001 * block),
            service_time=slower(summary.service_time),
            latency=slower(summary.latency),
        )

    forks = {
        name: [make_fork(name, block, varied(one, (block + 2 * place) % 5)) for block in range(5)]
        for place, (name, one) in enumerate(sides.items())
    }
    plan = make_plan(schedules=(Challenge("c", (task,)),))
    return analyse(forks, plan, margins={THROUGHPUT.key: margin})


@pytest.mark.parametrize(
    ("task", "es", "os", "verdicts"),
    [
        (CLOSED, closed(0.5), closed(0.6, cpu_share=0.9), ["n/a", "n/a"]),
        (
            THROTTLED,
            throttled(5.0, lag_p99_ns=4 * MS),
            throttled(6.0, lag_p99_ns=4 * MS),
            ["n/a", "slower", "n/a"],
        ),
    ],
)
def test_a_limit_in_one_variant_withholds_verdicts_where_it_matters_and_is_marked_everywhere(
    task: Task, es: TaskSummary, os: TaskSummary, verdicts: list[str]
):
    rows = analysed(task, es=es, os=os).rows
    assert [row.comparisons[0].verdict for row in rows] == verdicts
    assert {row.figures[1].load for row in rows} == {("driver-limited",)}


@pytest.mark.parametrize(
    ("clients", "es_us", "os_us", "verdict", "stretch"),
    [
        (8, 250, 250, "inconclusive", 2.0),  # within .26%, which is .52% of the engines
        (8, 1, 1, "equivalent", 1 / (1 - 0.004)),
        (8, 250, 260, "n/a", 1 / (1 - 0.51)),
        (1, 250, 260, "equivalent", 1.0),
    ],
)
def test_a_closed_loop_gets_a_verdict_unless_pauses_differ(
    clients: int, es_us: float, os_us: float, verdict: str, stretch: float
):
    sides = {name: closed(0.25, pause_us=us, clients=clients) for name, us in (("es", es_us), ("os", os_us))}
    throughput, service_time = analysed(EIGHT, margin=0.004, **sides).rows
    assert throughput.comparisons[0].verdict == verdict
    assert throughput.comparisons[0].stretch == pytest.approx(stretch, rel=0.01)
    assert ("driver-limited" in {doubt.code for doubt in throughput.caveats}) == (verdict == "n/a")
    assert service_time.comparisons[0].verdict == "equivalent"


def test_what_the_driver_did_is_told_for_every_task_and_variant():
    os = throttled(5.0, lag_max_ns=7 * MS, gap_s=0.011, workers=2)
    es, os_row = analysed(THROTTLED, es=throttled(5.0), os=os).drivers
    assert (es.variant, es.target_per_s, es.offered_per_s, es.lag_p50_ns) == ("es", 100.0, 100.0, 30 * US)
    assert (os_row.lag_max_ns, os_row.gap_s, os_row.workers, os_row.load) == (7 * MS, 0.011, 2, ())
    unknown = analysed(THROTTLED, es=make_summary("range", 5.0), os=os)
    assert [row.variant for row in unknown.drivers] == ["os"]
