"""Which doubts forks raise: one table of rows, and one of each thing that a whole run is asked for."""

import math
import re
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from benchctl.results.answers import Answer, AnswerSample
from benchctl.results.figures import Quantiles, TaskSummary
from benchctl.results.model import AnswerCheck, AnswerFinding, BootRecord, ForkRecord
from benchctl.results.plan import SweepSpec, Swept
from benchctl.stats.caveat import Caveat
from benchctl.stats.doubts import (
    cold_doubts,
    general_doubts,
    hits_apart,
    node_doubts,
    row_doubts,
    settling_doubts,
    steadiness,
    unfit_values,
)
from benchctl.stats.metrics import THROUGHPUT, Metric, metric
from benchctl.track.model import Challenge, Task
from builders import make_driver, make_fork, make_plan, make_summary

SERVICE_TIME = metric("service_time")
LATENCY = metric("latency")

CLOSED = Task("range", iterations=10)
THROTTLED = Task("range", iterations=10, target_throughput=100)
BOOT = BootRecord((0,), 1.0, 0.0, 0.0, 1, 1, (), "")


def made(ms: float = 10.0, *, wait_ms: float | None = None, error: float | None = None, **changes: Any):
    """A fork; of an open loop that queued for so long, or with this standard error of ln(p90)."""
    plain = make_summary("range", ms, **changes)
    if error is not None:
        times = msgspec.structs.replace(plain.service_time, error_p90=error)
        plain = msgspec.structs.replace(plain, service_time=times)
    if wait_ms is None:
        return plain
    late = msgspec.structs.replace(plain.service_time, p90=plain.service_time.p90 + wait_ms * 1e6)
    return msgspec.structs.replace(plain, latency=late)


def doubts(
    *summaries: TaskSummary,
    of: Metric = THROUGHPUT,
    task: Task = CLOSED,
    answers: AnswerCheck | None = None,
) -> list[Caveat]:
    found = {"es": list(enumerate(summaries))}
    return [
        *row_doubts(of, task, found, answers),
        *settling_doubts(task, found, steadiness({"es": summaries})),
    ]


COLD = {"drift": math.log(0.7)}
STOOD = {"driver": make_driver(window_s=44.0), "stalled": 2, "stalled_s": 20.0, "stalled_share": 0.45}
CLAIMED = {"took": Quantiles(4e7, 4e7, 4e7), "driver": make_driver()}
FOUR_CLIENTS = Task("range", iterations=100, clients=4)
PLUG_IN = Task("range", iterations=10, scheduler="lazily")
HELD = Answer(3, 3, ids="a")
BEFORE = AnswerCheck(("range",), {"range": {"es": HELD, "os": Answer(9, 9)}}, ())
NO_INDEX = AnswerCheck(("range",), {"range": {"es": Answer(failed="no such index")}}, ())
DIFFERENT = AnswerCheck(("range",), {}, (AnswerFinding("range", "es", "os", "different", "buckets 7 and 8"),))


@pytest.mark.parametrize(
    ("forks", "asked", "code", "text"),
    [
        ([made()] * 5, {}, "", ""),
        (
            [made(samples=0, warmup_samples=7)] * 2,
            {},
            "missing-values",
            "nothing of this task was measured on es: all 14 requests were warm-up",
        ),
        ([made(hits=0, hits_exact=True)] * 2, {}, "nothing-found", "0 documents"),
        ([made(hits=0, hits_exact=False)] * 2, {}, "", ""),
        ([made(hits=hits, hits_exact=True) for hits in (7, 8)], {}, "hits-changed", "matched 7 or 8"),
        ([made(hits=hits, hits_exact=False) for hits in (7, 8)], {}, "", ""),
        (
            [made(hits=5517, hits_exact=True), *[made(hits_least=596, hits_most=5517, **COLD)] * 2],
            {},
            "hits-changed",
            "from 596 to 5,517 documents in fork 1 and 1 more fork",
        ),
        ([made(answers=AnswerSample(64, 63, 0, "", HELD))] * 2, {"answers": BEFORE}, "", ""),
        (
            [made(answers=AnswerSample(64, 63, n, "ids of the hits", None)) for n in (0, 2, 9)],
            {"answers": BEFORE},
            "hits-changed",
            "9 of 63 compared results of es in fork 2 and 1 more fork differ",
        ),
        (
            [made(answers=AnswerSample(64, 63, 0, "", Answer(3, 2)))] * 2,
            {"answers": BEFORE},
            "hits-changed",
            "in fork 0 and 1 more fork differ from what the same request returned before the measurement: 3",
        ),
        # The index did not exist yet, or another variant was asked.
        ([made(answers=AnswerSample(64, 63, 0, "", Answer(3, 2)))] * 2, {"answers": NO_INDEX}, "", ""),
        (
            [made(answers=AnswerSample(64, 63, 0, "", Answer(3, 2)))] * 2,
            {"answers": DIFFERENT},
            "answers-differ",
            "",
        ),
        ([made(ignored_errors=n) for n in (3, 1)], {}, "ignored-errors", "4 of 400 requests of es "),
        (
            [made(failures={"rejected": 2}, failure_reasons=("full", "b")), made(failures={"reset": 4})],
            {},
            "failures",
            "2 rejected, 4 reset (such as: full)",
        ),
        ([made(failures={"rejected": 3}, retries=3)], {}, "failures", "3 were sent again after a pause"),
        ([made(drift=math.log(r)) for r in (0.69, 0.70, 0.71)], {}, "not-steady", "30% faster"),
        ([made(**COLD | STOOD)], {}, "stalled", "in fork 0, 2 of 200 requests took 20.0 s, 45% of the"),
        (
            [made(samples=0, service_time=None, unsupported="unknown")],
            {"of": SERVICE_TIME},
            "unsupported",
            "es cannot do this operation: unknown",
        ),
        ([made(wait_ms=0, throughput_per_s=100.1)], {"task": THROTTLED}, "offered-rate", "100 requests/s"),
        ([made(wait_ms=0, throughput_per_s=100.1)], {"task": THROTTLED, "of": LATENCY}, "", ""),
        ([made(wait_ms=0)], {"task": PLUG_IN}, "offered-rate", "scheduler 'lazily': this is the offered"),
        ([made(wait_ms=50, throughput_per_s=70.0)], {"task": THROTTLED}, "saturated", "completed 70 of"),
        ([made(wait_ms=50, throughput_per_s=70.0)], {"task": THROTTLED, "of": LATENCY}, "saturated", ""),
        # What an operation costs is another matter, and a short task ends late without queueing.
        (
            [made(wait_ms=50, throughput_per_s=70.0, meters={"cpu": 3.0})],
            {"task": THROTTLED, "of": metric("cpu")},
            "",
            "",
        ),
        ([made(wait_ms=0, throughput_per_s=90.0)], {"task": THROTTLED}, "offered-rate", ""),
        ([made()], {"answers": DIFFERENT}, "answers-differ", "es and os return different results: buckets 7"),
        # Two values that are each up to 1 ms off can differ by 5% of 40 ms by that alone.
        ([made(took=Quantiles(3.9e7, 3.9e7, 3.9e7))] * 3, {"of": metric("took")}, "coarse", "steps of 1 ms"),
        ([made(took=Quantiles(0, 0, 0))] * 3, {"of": metric("took")}, "coarse", "steps of 1 ms"),
        ([made(took=Quantiles(4.1e7, 4.1e7, 4.1e7))] * 3, {"of": metric("took")}, "", ""),
        # An answer cannot have taken more time than it took to get; a bulk request's own time is not exact.
        ([made(**CLAIMED)] * 3, {}, "counted-less", "report 40 ms"),
        ([made(**CLAIMED, unit="docs")] * 3, {}, "", ""),
        ([made(**CLAIMED | {"driver": None})] * 3, {}, "", ""),
        ([made(**CLAIMED | {"took": Quantiles(1.1e7, 1.1e7, 1.1e7)})] * 3, {}, "", ""),
        # Tasks that end early: 200 requests were sent.
        ([made(driver=make_driver())], {"task": FOUR_CLIENTS}, "cut-short", "fork 0 of es sent 200 of 400"),
        ([made(driver=make_driver())], {"task": Task("range", iterations=200)}, "", ""),
        ([made(driver=make_driver())], {"task": Task("range", iterations=400, group=1)}, "", ""),
        ([made(driver=make_driver(), unit="docs")], {"task": FOUR_CLIENTS}, "", ""),
        ([made(meters={})], {"of": metric("cpu")}, "missing-values", "is unknown"),
        ([made(meters={"cpu": 1.0})], {"of": metric("cpu")}, "", ""),
    ],
)
def test_doubts_of_one_variant(forks: Sequence[TaskSummary], asked: dict[str, Any], code: str, text: str):
    found = doubts(*forks, **asked)
    assert [doubt.code for doubt in found] == [code][: bool(code)]
    assert text in "".join(doubt.text for doubt in found)


def test_forks_that_did_not_stand_still_say_what_they_say():
    usual = COLD | {"drift": math.log(0.71)}
    found = doubts(made(**COLD | STOOD), made(**usual), made(**COLD), made(**COLD))
    assert [doubt.code for doubt in found] == ["stalled", "not-steady"]


@pytest.mark.parametrize(
    ("of", "es", "os", "code"),
    [
        (THROUGHPUT, {}, {}, ""),
        (THROUGHPUT, {}, {"unit": "ops"}, "unlike-units"),
        (THROUGHPUT, {}, {"units_per_request": 2.0}, "unlike-units"),
        (SERVICE_TIME, {}, {"unit": "ops"}, ""),
    ],
)  # fmt: skip
def test_doubts_of_two_variants(of: Metric, es: dict[str, Any], os: dict[str, Any], code: str):
    usual = {"driver": make_driver(window_s=2.0)}
    sides = {"es": [(0, made(**usual | es))], "os": [(0, made(**usual | os))]}
    assert [doubt.code for doubt in row_doubts(of, CLOSED, sides, None)] == [code][: bool(code)]


@pytest.mark.parametrize(
    ("samples", "errors", "expected"),
    [
        # p90 of log-normal requests of sigma 1.
        ((20, 100), (0.38, 0.17), ["os"]),
        ((100, 200), (0.17, 0.12), ["os"]),
        ((100, 109), (0.17, 0.16), []),
        ((1000, 5000), (0.054, 0.024), []),
        # Forks of another tool do not tell.
        ((20, 100), (None, None), []),
    ],
)
def test_quantiles_whose_bias_differs_with_the_number_of_requests_have_no_verdict(
    samples: tuple[int, int], errors: tuple[float | None, float | None], expected: list[str]
):
    sides = {
        label: [(0, made(samples=count, error=error))]
        for label, count, error in zip(("es", "os"), samples, errors, strict=True)
    }
    found = unfit_values(SERVICE_TIME, sides)
    assert [*found] == expected
    assert {doubt.code for doubt in found.values()} <= {"too-few-samples"}
    assert unfit_values(THROUGHPUT, sides) == {}


def test_what_failed_requests_leave_without_a_bound_has_no_verdict():
    times = msgspec.structs.replace(made().service_time, p99=None)
    failing = made(service_time=times, failures={"timeout": 10}, samples=190)
    sides = {"es": [(0, made())], "os": [(0, made()), (1, failing)]}
    found = unfit_values(metric("service_time", 0.99), sides)
    assert [*found] == ["os"]
    assert "5%" in found["os"].text
    # A p90 is known, the mean of requests that took nobody knows how long is not; throughput counts the rest.
    assert unfit_values(SERVICE_TIME, sides) == unfit_values(THROUGHPUT, sides) == {}
    assert [*unfit_values(metric("mean"), sides)] == ["os"]


@pytest.mark.parametrize(("hits", "expected"), [((7, 7), 0), ((7, 8), 1), ((7, None), 0)])
def test_variants_that_found_other_documents_do_not_answer_alike(
    hits: tuple[int | None, int | None], expected: int
):
    sides = {
        label: [(0, made(hits=count, hits_exact=count is not None))]
        for label, count in zip(("es", "os"), hits, strict=True)
    }
    assert [doubt.code for doubt in hits_apart(sides)] == ["answers-differ"] * expected


def test_passes_over_one_running_cluster_are_no_node_starts():
    def used(*starts_s: float) -> list[ForkRecord]:
        return [make_fork("x", 0, boots=(msgspec.structs.replace(BOOT, start_s=one),)) for one in starts_s]

    forks = {"es": used(5.0), "prod": used(0.0, 0.0), "lab": used(0.0)}
    (found,) = [doubt for doubt in general_doubts(forks, forks) if doubt.code == "not-restarted"]
    assert found.text.startswith("prod and lab ran already")


@pytest.mark.parametrize(
    ("boots", "code", "text"),
    [
        ([{"searches_sent": 1000, "searches_counted": 989}], "counted-less", "counted 989 of 1,000"),
        ([{"searches_sent": 1000, "searches_counted": 990}], "", ""),
        ([{"searches_sent": 1000, "searches_counted": None}], "", ""),
        ([{"searches_sent": 1000, "searches_counted": 1001}], "counted-more", "counted 1,001 searches"),
        # What a start read of an index that was to be cold.
        ([{"resident": 0.0, "resident_begun": 0.97}], "not-cold", "nodes of es read up to 97% of the index"),
        ([{"resident": 0.0, "resident_begun": 0.02}], "", ""),
        ([{"resident": 1.0, "resident_begun": 1.0}], "", ""),
    ],
)
def test_what_became_of_nodes_is_said(boots: Sequence[dict[str, Any]], code: str, text: str):
    forks = [
        make_fork("es", block, boots=(msgspec.structs.replace(BOOT, **changes),))
        for block, changes in enumerate(boots)
    ]
    found = list(node_doubts({"es": forks}))
    assert [doubt.code for doubt in found] == [code][: bool(code)]
    assert text in "".join(doubt.text for doubt in found)


@pytest.mark.parametrize(
    ("cache", "task", "doubtful"),
    [
        ("cold", Task("range", warmup_iterations=0), False),
        ("cold", Task("range", warmup_iterations=5), True),
        ("cold", Task("range", warmup_time_period=1.0), True),
        ("warm", Task("range", warmup_iterations=5), False),
    ],
)
def test_a_warm_up_reads_what_was_to_be_cold(cache: str, task: Task, *, doubtful: bool):
    plan = make_plan(page_cache=cache, schedules=(Challenge("c", (task,)),))
    assert bool(list(cold_doubts(SERVICE_TIME, plan, (0, 0), ["es"]))) == doubtful


@pytest.mark.parametrize(
    ("task", "key"),
    [
        (Task("range", warmup_iterations=5), "warmup-iterations"),
        (Task("range", warmup_time_period=5.0, time_period=9.0), "warmup-time-period"),
    ],
)
def test_what_keeps_a_cache_cold_is_the_key_of_the_warm_up(task: Task, key: str):
    plan = make_plan(page_cache="cold", schedules=(Challenge("c", (task,)),))
    (doubt,) = cold_doubts(SERVICE_TIME, plan, (0, 0), ["es"])
    assert re.findall(r"warmup.\w+(?:-\w+)?", doubt.text) == [key, key.replace("-", "_")]
    elsewhere = msgspec.structs.replace(
        plan, schedules=(Challenge("c", (Task("range"),)),), warmup_challenges=plan.schedules
    )
    (doubt,) = cold_doubts(SERVICE_TIME, elsewhere, (0, 0), ["es"])
    assert "warmup" not in doubt.text


def test_the_first_request_is_cold_unless_another_challenge_ran_before():
    task = Task("range", warmup_iterations=5)
    other = Challenge("warm-up", (task,))
    cold = make_plan(page_cache="cold", schedules=(Challenge("c", (task,)),))
    assert not list(cold_doubts(metric("first"), cold, (0, 0), ["es"]))
    for changes in (
        {"warmup_challenges": (other,)},
        {"variant_warmups": {"es": (other,)}},
        {
            "pollution": other,
            "swept": SweepSpec((), cold.variants, {}, (Swept("c", {"history": "polluted"}),)),
        },
    ):
        warmed = msgspec.structs.replace(cold, **changes)
        assert [doubt.code for doubt in cold_doubts(metric("first"), warmed, (0, 0), ["es"])] == ["not-cold"]
    elsewhere = msgspec.structs.replace(cold, pollution=other)
    assert not list(cold_doubts(metric("first"), elsewhere, (0, 0), ["es"]))


def test_builds_are_drawn_once_unless_every_fork_builds_its_own():
    done = {label: [make_fork(label, block) for block in range(2)] for label in ("es", "os")}
    assert [one.code for one in general_doubts(done, done)] == ["builds"]
    assert [one.code for one in general_doubts(done, done, prepared=False)] == []
