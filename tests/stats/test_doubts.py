import math
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import pytest

from benchctl.results.figures import Course, Quantiles, TaskSummary
from benchctl.results.model import AnswerCheck, AnswerFinding, BootRecord, ForkRecord, NodeFate, NodeRecord
from benchctl.stats.caveat import WITHHOLDING
from benchctl.stats.doubts import (
    cold_doubts,
    general_doubts,
    hits_apart,
    node_doubts,
    row_doubts,
    settling_doubts,
    unfit_values,
)
from benchctl.stats.metrics import LATENCY, SERVICE_TIME, THROUGHPUT, Metric, metric
from benchctl.stats.steady import steadiness
from benchctl.track.model import Task
from builders import make_driver, make_fork, make_plan
from made_builds import built

CLOSED = Task("range", iterations=10)
THROTTLED = Task("range", iterations=10, target_throughput=100)


def doubts(
    summaries: Sequence[TaskSummary],
    *,
    metric: Metric = THROUGHPUT,
    task: Task = CLOSED,
    answers: AnswerCheck | None = None,
):
    found = {"es": list(enumerate(summaries))}
    settled = steadiness({"es": summaries})
    return [*row_doubts(metric, task, found, answers), *settling_doubts(task, found, settled)]


def codes(*args: Any, **options: Any):
    return [doubt.code for doubt in doubts(*args, **options)]


def waiting(summary: Callable[..., TaskSummary], wait_ms: float, **changes: Any):
    plain = summary(10.0, **changes)
    late = msgspec.structs.replace(plain.service_time, p90=plain.service_time.p90 + wait_ms * 1e6)
    return msgspec.structs.replace(plain, latency=late)


def test_a_plain_row_raises_no_doubt(summary: Callable[..., TaskSummary]):
    assert codes([summary(10.0)] * 5) == []


def test_a_task_that_ended_within_its_warm_up_says_so(summary: Callable[..., TaskSummary]):
    nothing = msgspec.structs.replace(summary(10.0), samples=0, warmup_samples=7, failures={})
    (found,) = doubts([nothing] * 2)
    assert found.code == "missing-values"
    assert found.text == "nothing of this task was measured on es: all 14 requests were its warm-up's"


@pytest.mark.parametrize(
    ("hits", "exact", "expected"),
    [([0, 0], True, ["nothing-found"]), ([0, 3], True, ["hits-changed"]), ([0, 0], False, [])],
)
def test_searches_that_found_nothing_in_any_fork_say_so(
    *, summary: Callable[..., TaskSummary], hits: list[int | None], exact: bool, expected: list[str]
):
    assert codes([summary(10.0, hits=number, hits_exact=exact) for number in hits]) == expected


def test_errors_that_an_operation_ignores_are_told(summary: Callable[..., TaskSummary]):
    (found,) = doubts([summary(10.0, ignored_errors=3), summary(10.0, ignored_errors=1)])
    assert found.code == "ignored-errors"
    assert found.text.startswith("4 of 400 requests of es ")


@pytest.mark.parametrize(
    ("took_ms", "changes", "expected"),
    [
        (11, {}, []),
        (40, {}, ["counted-less"]),
        (40, {"unit": "docs"}, []),
        (40, {"driver": None}, []),
    ],
)
def test_an_answer_that_claims_more_time_than_it_took_is_none_of_the_engine(
    summary: Callable[..., TaskSummary], took_ms: float, changes: dict[str, Any], expected: list[str]
):
    claimed = {"took": Quantiles(*[took_ms * 1e6] * 3), "driver": make_driver(), **changes}
    assert codes([summary(10.0, **claimed)] * 3) == expected


def noisy(one: TaskSummary, error: float) -> TaskSummary:
    """A fork whose p90 has this standard error of its logarithm."""
    times = msgspec.structs.replace(one.service_time, error_p90=error)
    return msgspec.structs.replace(one, service_time=times)


@pytest.mark.parametrize(("error", "expected"), [(0.08, ["few-samples"]), (0.06, []), (None, [])])
def test_a_quantile_whose_own_error_is_half_of_the_variance_of_forks_says_so(
    summary: Callable[..., TaskSummary], error: float | None, expected: list[str]
):
    forks = [noisy(summary(ms), error) for ms in (9.0, 10.0, 11.0)]  # SD of logarithms: .1
    assert codes(forks) == []
    found = doubts(forks, metric=SERVICE_TIME)
    assert [doubt.code for doubt in found] == expected
    assert (
        not found
        or "200 requests a fork: their chance alone is 8.3%, and forks differ by 11%;" in found[0].text
    )


def test_an_error_of_less_than_half_of_the_margin_is_no_doubt(summary: Callable[..., TaskSummary]):
    assert codes([noisy(summary(10.0), 0.026)] * 2, metric=SERVICE_TIME) == ["few-samples"]
    assert codes([noisy(summary(10.0), 0.024)] * 2, metric=SERVICE_TIME) == []


@pytest.mark.parametrize(("took_ms", "expected"), [(0, ["coarse"]), (39, ["coarse"]), (41, [])])
def test_a_difference_of_less_than_a_step_is_none(
    summary: Callable[..., TaskSummary], took_ms: float, expected: list[str]
):
    """Two values that are each up to 1 ms off can differ by 5 % of 40 ms by that alone."""
    took = Quantiles(*[took_ms * 1e6] * 3)
    summaries = [msgspec.structs.replace(summary(10.0), took=took)] * 3
    found = doubts(summaries, metric=metric("took"))
    assert [doubt.code for doubt in found] == expected
    assert not found or "p90 engine's own time is counted in steps of 1 ms" in found[0].text


def test_failures_are_added_over_forks(summary: Callable[..., TaskSummary]):
    found = doubts(
        [summary(10.0, failures={"rejected": 2}), summary(10.0, failures={"rejected": 1, "reset": 4})]
    )
    assert found[0].text.endswith("3 rejected, 4 reset")


def test_requests_that_were_sent_again_are_told_with_where_the_pause_is(
    summary: Callable[..., TaskSummary],
):
    (found,) = doubts([summary(10.0, failures={"rejected": 3}, retries=3)])
    assert "3 were sent again after a pause" in found.text


def test_the_first_reason_of_a_failure_is_told(summary: Callable[..., TaskSummary]):
    found = doubts([summary(10.0, failures={"rejected": 2}, failure_reasons=("queue full", "again"))])
    assert found[0].text.endswith("2 rejected, such as: queue full")


def test_unsettled_tasks_say_in_which_direction(summary: Callable[..., TaskSummary]):
    found = doubts([summary(10.0, drift=math.log(ratio)) for ratio in (0.69, 0.70, 0.71)])
    assert [doubt.code for doubt in found] == ["not-steady"]
    assert "30 % faster" in found[0].text


def test_a_node_that_stood_still_is_told_and_not_to_be_warmed_up_longer(
    summary: Callable[..., TaskSummary],
):
    course = Course("warm-up", 90, 200, (0, 90), (2e7, 1e7))
    usual = {"course": course, "drift": math.log(0.71)}
    stood = {
        **usual,
        "driver": make_driver(window_s=44.0),
        "stalled": 2,
        "stalled_s": 20.0,
        "stalled_share": 0.45,
    }
    found = doubts([summary(10.0, **stood)])
    assert [doubt.code for doubt in found] == ["stalled"]
    assert found[0].text == "stalled: es: in fork 0, 2 of 200 requests took 20.0 s, 45 % of the measured time"
    # Other forks still say what they say.
    cold = summary(10.0, **{**usual, "drift": math.log(0.7)})
    assert codes([summary(10.0, **stood), summary(10.0, **usual), cold, cold]) == ["stalled", "not-steady"]


def test_unsupported_silences_what_follows_from_it(summary: Callable[..., TaskSummary]):
    nothing = summary(10.0, samples=0, service_time=None, unsupported="unknown aggregation")
    assert codes([nothing], metric=SERVICE_TIME) == ["unsupported"]


def test_served_load_is_the_offered_rate(summary: Callable[..., TaskSummary]):
    served = waiting(summary, 0.0, throughput_per_s=100.1)
    assert codes([served], task=THROTTLED) == ["offered-rate"]
    assert codes([served], task=THROTTLED, metric=LATENCY) == []


def test_a_task_that_a_plug_in_spaces_names_its_scheduler(summary: Callable[..., TaskSummary]):
    spaced = Task("range", iterations=10, scheduler="lazily")
    (found,) = doubts([waiting(summary, 0.0)], task=spaced)
    assert found.code == "offered-rate"
    assert found.text.startswith("spaced by the track's own scheduler 'lazily': this is the offered rate")


def test_queued_requests_below_the_rate_are_saturation(summary: Callable[..., TaskSummary]):
    late = waiting(summary, 50.0, throughput_per_s=70.0)
    assert codes([late], task=THROTTLED) == ["saturated"]
    assert codes([late], task=THROTTLED, metric=LATENCY) == ["saturated"]
    # What an operation costs is another matter.
    known = msgspec.structs.replace(late, meters={"cpu": 3.0})
    assert codes([known], task=THROTTLED, metric=metric("cpu")) == []


def test_a_short_task_below_its_rate_without_queueing_is_not_saturated(summary: Callable[..., TaskSummary]):
    short = waiting(summary, 0.0, throughput_per_s=90.0)
    assert codes([short], task=THROTTLED) == ["offered-rate"]


@pytest.mark.parametrize(
    ("kind", "expected"),
    [("different", ["answers-differ"]), ("unsupported", [])],
)
def test_answers_that_differ(summary: Callable[..., TaskSummary], kind: str, expected: list[str]):
    answers = AnswerCheck(("range",), {}, (AnswerFinding("range", "es", "os", kind, "buckets 7 and 8"),))
    assert codes([summary(10.0)], answers=answers) == expected


def test_documents_that_change_are_told_and_no_lack_of_warm_up(summary: Callable[..., TaskSummary]):
    course = Course("warm-up", 90, 200, (0, 90), (2e7, 1e7))
    changed = summary(10.0, course=course, drift=math.log(0.7), hits_least=596, hits_most=5517)
    (found,) = doubts([summary(10.0, hits=5517, hits_exact=True), changed, changed])
    assert found.code == "hits-changed"
    assert found.text.startswith("hits changed: in fork 1, and in 1 more fork, ")
    assert "from 596 to 5,517 documents" in found.text


@pytest.mark.parametrize(
    ("hits", "exact", "expected"), [((7, 7), True, 0), ((7, 8), True, 1), ((7, 8), False, 0)]
)
def test_documents_are_the_same_in_all_forks(
    summary: Callable[..., TaskSummary], hits: tuple[int, int], expected: int, *, exact: bool
):
    found = codes([summary(10.0, hits=count, hits_exact=exact) for count in hits])
    assert found == ["hits-changed"] * expected


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
    summary: Callable[..., TaskSummary],
    samples: tuple[int, int],
    errors: tuple[float | None, float | None],
    expected: list[str],
):
    sides = {
        label: [(0, noisy(summary(10.0, samples=count), error))]
        for label, count, error in zip(("es", "os"), samples, errors, strict=True)
    }
    found = unfit_values(SERVICE_TIME, sides)
    assert [*found] == expected
    assert {doubt.code for doubt in found.values()} <= {"few-samples"}
    assert unfit_values(THROUGHPUT, sides) == {}


def test_what_failed_requests_leave_without_a_bound_has_no_verdict(summary: Callable[..., TaskSummary]):
    times = msgspec.structs.replace(summary(10.0).service_time, p99=None)
    failing = summary(10.0, service_time=times, failures={"timeout": 10}, samples=190)
    sides = {"es": [(0, summary(10.0))], "os": [(0, summary(10.0)), (1, failing)]}
    found = unfit_values(metric("service_time", 0.99), sides)
    assert [*found] == ["os"]
    assert "5%" in found["os"].text
    # A p90 is known, the mean of requests that took nobody knows how long is not; throughput counts the rest.
    assert unfit_values(SERVICE_TIME, sides) == unfit_values(THROUGHPUT, sides) == {}
    assert [*unfit_values(metric("mean"), sides)] == ["os"]


def test_what_so_many_forks_may_have_missed_is_always_said():
    for forks, share in ((2, "78%"), (6, "39%"), (12, "22%")):
        done = {"es": [make_fork("es", block) for block in range(forks)], "os": [make_fork("os", 0)] * 20}
        (said,) = [doubt.text for doubt in general_doubts(done, done, ()) if doubt.code == "missed-states"]
        assert f"with {forks} forks a side, a state of up to {share} of forks" in said


def test_rates_that_count_other_things_have_no_verdict(summary: Callable[..., TaskSummary]):
    def found(measured: Metric = THROUGHPUT, **changes: Any) -> list[str]:
        driver = make_driver(window_s=2.0)
        sides = {
            "es": [(0, summary(10.0, driver=driver))],
            "os": [(0, summary(10.0, driver=driver, **changes))],
        }
        return [
            doubt.code for doubt in row_doubts(measured, CLOSED, sides, None) if doubt.code in WITHHOLDING
        ]

    assert found() == []
    assert found(unit="ops") == ["unlike-units"]
    assert found(throughput_per_s=200.0) == ["unlike-units"]
    assert found(SERVICE_TIME, unit="ops") == []


@pytest.mark.parametrize(
    ("task", "changes", "expected"),
    [
        (Task("range", iterations=200), {}, 0),
        (Task("range", iterations=100, clients=4), {}, 1),
        (Task("range", iterations=100, clients=4), {"failures": {"timeout": 200}}, 0),
        (Task("range", time_period=60.0), {}, 0),
        (Task("range", iterations=400, group=1), {}, 0),
        (Task("range", iterations=400), {"unit": "docs"}, 0),
    ],
)
def test_tasks_that_end_early_say_so(
    summary: Callable[..., TaskSummary], task: Task, changes: dict[str, Any], expected: int
):
    found = codes([summary(10.0, driver=make_driver(), **changes)], task=task)
    assert found.count("cut-short") == expected


@pytest.mark.parametrize(("hits", "expected"), [((7, 7), 0), ((7, 8), 1), ((7, None), 0)])
def test_variants_that_found_other_documents_do_not_answer_alike(
    summary: Callable[..., TaskSummary], hits: tuple[int | None, int | None], expected: int
):
    sides = {
        label: [(0, summary(10.0, hits=count, hits_exact=count is not None))]
        for label, count in zip(("es", "os"), hits, strict=True)
    }
    assert [doubt.code for doubt in hits_apart(sides)] == ["answers-differ"] * expected


def used(start_s: float) -> ForkRecord:
    boot = BootRecord((0,), start_s, 0.0, 0.0, 10, 10, (), "")
    return make_fork("es", 0, boots=(boot,))


def test_passes_over_one_running_cluster_are_no_node_starts():
    forks = {"es": [used(5.0)], "prod": [used(0.0), used(0.0)], "lab": [used(0.0)]}
    found = [doubt for doubt in general_doubts(forks, forks, []) if doubt.code == "not-restarted"]
    assert len(found) == 1
    assert found[0].text.startswith("prod and lab ran already")
    assert "intervals are too narrow" in found[0].text


def test_fresh_nodes_raise_no_such_doubt():
    forks = {"es": [used(5.0)], "prod": [used(12.0)]}
    assert "not-restarted" not in {doubt.code for doubt in general_doubts(forks, forks, [])}


def test_where_every_fork_builds_its_own_index_builds_are_in_the_intervals():
    done = {label: [make_fork(label, block) for block in range(2)] for label in ("es", "os")}
    assert "one-index-build" in {one.code for one in general_doubts(done, done, ())}
    assert "one-index-build" not in {one.code for one in general_doubts(done, done, (), prepared=False)}


def test_builds_that_are_the_same_are_no_draw_and_those_that_should_be_and_are_not_are_told():
    done = {label: [make_fork(label, block) for block in range(2)] for label in ("es", "os")}

    def told(**contents: str) -> list[str]:
        builds = {
            label: [built(1.0, content=digest) for digest in digests.split()]
            for label, digests in contents.items()
        }
        return [one.code for one in general_doubts(done, done, (), builds=builds) if "build" in one.code]

    assert told(es="aa aa", os="bb") == ["deterministic-build"]
    assert told(es="aa", os="") == ["one-index-build"]
    assert told(es="aa ab", os="bb") == ["builds-differ", "deterministic-build"]


def test_what_became_of_single_nodes_is_said():
    boot = BootRecord((0,), 1.0, 0.0, 0.0, 1, 1, (), "", recovered_bytes=0)
    lost = msgspec.structs.replace(
        boot, fates=(NodeFate(5, "node-2", "lost"), NodeFate(9, "node-1", "killed"))
    )
    copied = msgspec.structs.replace(boot, recovered_bytes=1234)
    forks = {"es3": [make_fork("es3", block, boots=(one,)) for block, one in enumerate((boot, lost, copied))]}
    found = {one.code: one.text for one in node_doubts(forks)}
    assert "es3 went on without node-2 in fork 1 " in found["node-lost"]
    assert "in fork 2 of es3 nodes copied up to 1,234 bytes" in found["copied-shards"]


@pytest.mark.parametrize(
    ("counted", "code"),
    [
        (0, "counted-less"),
        (989, "counted-less"),
        (990, None),
        (1000, None),
        (None, None),
        (1001, "counted-more"),
    ],
)
def test_searches_that_others_answered_or_sent_are_a_doubt(counted: int | None, code: str | None):
    boot = BootRecord((0,), 1.0, 0.0, 0.0, 1000, counted, (), "")
    assert [one.code for one in node_doubts({"es": [make_fork("es", 0, boots=(boot,))]})] == [code][
        : code is not None
    ]


def test_what_a_start_read_of_an_index_that_was_to_be_cold_is_said():
    boot = BootRecord((0,), 1.0, 0.0, 0.0, 1, 1, (), "", resident=0.0)
    starts = {
        "cold": msgspec.structs.replace(boot, resident_begun=0.97),
        "colder": msgspec.structs.replace(boot, resident_begun=0.02),
        "before": boot,
        "warm": msgspec.structs.replace(boot, resident=1.0, resident_begun=1.0),
    }
    found = list(node_doubts({label: [make_fork(label, 0, boots=(one,))] for label, one in starts.items()}))
    assert [one.code for one in found] == ["not-cold"]
    assert "starting nodes of cold read up to 97 % of the index" in found[0].text


@pytest.mark.parametrize(
    ("cache", "task", "doubtful"),
    [
        ("cold", Task("range"), False),
        ("cold", Task("range", warmup_iterations=0), False),
        ("cold", Task("range", warmup_iterations=5), True),
        ("cold", Task("range", warmup_time_period=1.0), True),
        ("warm", Task("range", warmup_iterations=5), False),
    ],
)
def test_a_warm_up_reads_what_was_to_be_cold(cache: str, task: Task, *, doubtful: bool):
    assert bool(list(cold_doubts(make_plan(page_cache=cache), task))) == doubtful


@pytest.mark.parametrize(
    ("hosts", "said"),
    [
        (("", "", ""), "the 3 nodes of es3 share one host's CPUs"),
        (("x", "x", "x"), "the 3 nodes of es3 share one host's CPUs"),
        (("", "x", ""), "not every node of es3 has a host of its own: a and c share the host of benchctl"),
        (("", "x", "x"), "not every node of es3 has a host of its own: b and c share host x"),
        (("", "x", "y"), ""),
    ],
)
def test_nodes_that_share_a_host_say_nothing_of_scaling(hosts: tuple[str, ...], said: str):
    boot = BootRecord((0,), 1.0, 0.0, 0.0, 1, 1, (), "")
    nodes = tuple(NodeRecord(name, 1.0, (), "", 0, host) for name, host in zip("abc", hosts, strict=True))
    fork = make_fork("es3", 0, boots=(msgspec.structs.replace(boot, node_starts=nodes),))
    doubts = [one.text for one in node_doubts({"es": [make_fork("es", 0, boots=(boot,))], "es3": [fork]})]
    assert len(doubts) == bool(said)
    assert "".join(doubts).startswith(said)


def test_a_figure_that_a_target_does_not_tell_says_what_it_takes(summary: Callable[..., TaskSummary]):
    def said(**meters: float) -> list[str]:
        sides = {"es": [(0, summary(10.0, meters=meters))]}
        found = row_doubts(metric("cpu"), Task("range", iterations=10), sides, None)
        return [one.text for one in found if one.code == "missing-values"]

    (text,) = said(heap_used=3.0)
    assert text.endswith(
        "is not known: a running cluster looks at itself once a second, which takes a task of several"
    )
    assert [text.endswith("is not known") for text in said()] == [True]
    assert said(heap_used=3.0, cpu=1.0) == []


def test_a_figure_by_the_clocks_of_a_target_is_not_quite_that_of_other_nodes(
    summary: Callable[..., TaskSummary],
):
    other = [(0, summary(10.0, meters={"gc": 1.0, "answer": 2.0}))]
    target = [(0, summary(10.0, meters={"gc": 1.0, "answer": 2.0, "heap_used": 3.0}))]
    task = Task("range", iterations=10)

    def found(name: str, **sides: list[tuple[int, TaskSummary]]) -> list[str]:
        return [one.text for one in row_doubts(metric(name), task, sides, None) if one.code == "other-clocks"]

    (text,) = found("gc", es=other, prod=target)
    assert text.startswith(
        "collector pauses of prod is by the JVMs' own clocks, over all nodes; of others from"
    )
    assert found("gc", one=target, two=target) == found("answer", es=other, prod=target) == []
