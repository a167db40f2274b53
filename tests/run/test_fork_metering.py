"""What a task cost its node, from readings and pauses that are known."""

import dataclasses
from dataclasses import replace
from types import SimpleNamespace
from typing import cast

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchctl.engine.client import NodeRequestError, SearchClient
from benchctl.engine.process import GcPause, Reading
from benchctl.load.executor import Job, TaskResult
from benchctl.results.answers import Exchanged
from benchctl.results.figures import DriverFigures
from benchctl.results.metrics import METRIC_KINDS
from benchctl.results.model import SegmentFacts
from benchctl.results.samples import Outcome, empty_columns
from benchctl.run.fork import (
    EndedNode,
    Load,
    MeasuredTask,
    in_one_copy,
    index_meters,
    meters,
)
from benchctl.stats.metrics import metric
from benchctl.track.model import Task
from benchctl.track.operations import Operation
from benchctl.track.operations.admin import ForceMerge
from benchctl.track.operations.search import AllTogether, Bulk, Search
from benchctl.track.values import Choice
from builders import make_summary

MS = 1_000_000
ORIGIN_NS = 7_000 * MS


def result(starts_ms: list[int], *, warmups: int = 0, failed: int = 0, took_ms: int = -1) -> TaskResult:
    """Requests that began so long after the fork, each answered in 15 ms."""
    columns = empty_columns(len(starts_ms))
    columns["start_ns"][:] = np.array(starts_ms) * MS
    columns["warmup"][:] = np.arange(len(starts_ms)) < warmups
    columns["part"][:] = 0
    columns["outcome"][:] = Outcome.OK
    columns["outcome"][len(starts_ms) - failed :] = Outcome.HTTP_ERROR
    columns["took_ms"][:] = took_ms
    columns["end_ns"][:] = columns["start_ns"] + 15 * MS
    return TaskResult(samples=[columns], driver_cpu_s=0.01, wall_s=1.0)


def reading(at_ms: int, cpu_ms: int, threads: dict[int, int]) -> Reading:
    times_ns = {one: ms * MS for one, ms in threads.items()}
    return Reading(ORIGIN_NS + at_ms * MS, cpu_ms * MS, times_ns)


def test_figures_are_those_of_an_operation():
    ends = (
        reading(100, 50, {1: 20, 2: 30}),
        reading(900, 130, {1: 60, 2: 40, 3: 10}),
    )
    pauses = [GcPause(50 * MS, 100 * MS, "Young"), GcPause(500 * MS, 4 * MS, "Young")]
    node = EndedNode({1}, pauses)
    found = meters(ends, result([0, 50, 150, 200, 300, 400], warmups=2, failed=1), ORIGIN_NS, node, {})
    assert found == pytest.approx({"cpu": 20, "cpu_search": 10, "gc": 54 / 4})


def test_every_figure_is_declared():
    declared = {figure.name for figure in METRIC_KINDS if not figure.field and figure.of_tasks}
    node = EndedNode({1}, [GcPause(at * MS, 0, "Young") for at in (0, 2000)])
    ends = [reading(1, 1, {1: 1}), reading(9, 9, {1: 3})]
    written = dict.fromkeys(("indexing", "refresh", "merge", "flush"), 6)
    profile_ns = dict.fromkeys(("query", "aggs"), 6 * MS)
    batch = replace(result([5, 6, 7], took_ms=10), tooks=({12: 3},), profile_ns=profile_ns)
    batch = replace(batch, recall=(1.5, 2))
    found = meters(ends, batch, ORIGIN_NS, node, written)
    index = index_meters([SegmentFacts(1, 2_000_000, "9.8.0")])
    at_the_end = {**index, "force_merge": 1.0}
    assert found.keys() | at_the_end.keys() == declared
    assert found["merge"] == 2
    assert found["profile_aggs"] == 2
    assert found["recall"] == 0.75


VARYING = Search(
    name="range", body={"query": {"match": {"a": "${word}"}}}, values={"word": Choice(items=("a", "b"))}
)


@pytest.mark.parametrize(
    ("operation", "beside", "expected"),
    [
        (Search(name="range", body={}), None, (596, 5517)),
        (VARYING, None, (None, None)),
        # What is written beside a search is meant to change what it finds.
        (Search(name="range", body={}), Bulk(name="fill", bulk_size=10), (None, None)),
        (Search(name="range", body={}), Search(name="other", body={}), (596, 5517)),
        # What only stands for others sends nothing.
        (Search(name="range", body={}), AllTogether(name="whole"), (596, 5517)),
    ],
)
def test_documents_that_change_under_the_same_requests_are_noted(
    operation: Operation, beside: Operation | None, expected: tuple[int | None, int | None]
):
    group = None if beside is None else 1
    ends = reading(1, 1, {}), reading(9, 9, {})
    tasks = []
    for one in (operation, beside):
        if one is not None:
            answers = result([5, 6, 7])
            answers.samples[0]["hits"][:] = [5517, 5517, 596]
            answers.samples[0]["hits_exact"][:] = True
            job = Job(Task(one.name, group=group), one, 0, 0, measured=True)
            tasks.append(MeasuredTask(job, answers, 0.0, ends))
    found, *_ = Load(outcomes=tasks).summaries(ORIGIN_NS, EndedNode(None, None))
    assert (found.hits_least, found.hits_most) == expected


SAMPLE = [
    Exchanged("/big5/_search", b"{}", b'{"hits":{"hits":[%s]}}' % hits)
    for hits in (b'{"_id":"a"}', b'{"_id":"b"}', b'{"_id":"a"},{"_id":"b"}')
]


@pytest.mark.parametrize(
    ("beside", "untouched", "one_copy", "changed", "has_first"),
    [
        (None, True, True, 2, True),
        (None, True, False, 1, True),
        (None, False, True, 1, False),
        (Search(name="other", body={}), True, True, 2, True),
        (Bulk(name="fill", bulk_size=10), True, True, None, False),
    ],
)
def test_results_are_compared_as_far_as_nothing_may_change_them(
    beside: Operation | None, *, untouched: bool, one_copy: bool, changed: int | None, has_first: bool
):
    tasks = []
    for operation in filter(None, (Search(name="range", body={}), beside)):
        job = Job(Task(operation.name, group=beside and 1), operation, 0, 0)
        measured = replace(result([5, 6, 7]), sample=SAMPLE)
        tasks.append(MeasuredTask(job, measured, 0.0, (), {}, untouched, one_copy))
    found, *_ = Load(outcomes=tasks).summaries(ORIGIN_NS, EndedNode(None, None))
    assert (found.answers and found.answers.changed) == changed
    assert (found.answers is not None and found.answers.first is not None) is has_first


@pytest.mark.parametrize(
    ("replicas", "alone"), [({"a": "0", "b": "0"}, True), ({"a": "0", "b": "1"}, False), ({"a": None}, False)]
)
def test_replicas_are_known_from_the_settings(replicas: dict[str, str | None], *, alone: bool):
    client = SimpleNamespace(setting=lambda *_: replicas)
    assert in_one_copy(cast("SearchClient", client), "a,b") is alone


def test_replicas_of_a_cluster_that_shows_no_settings_are_assumed():
    def refuse(*_: object) -> None:
        raise NodeRequestError("GET /a/_settings", 403, "no permission")

    assert not in_one_copy(cast("SearchClient", SimpleNamespace(setting=refuse)), "a")


def test_warm_up_is_held_against_what_the_operation_needs():
    needy = Search(name="range", body={}, meta={"settles-after": 6})
    ends = reading(1, 1, {}), reading(9, 9, {})

    def lacking(*warmups: int, warmed: bool = False, share: float = 1.0, alone: bool = False) -> list[int]:
        load = Load(warmed={"range"} if warmed else set(), needed_share=share)
        for place, count in enumerate(warmups):
            job = Job(Task(f"range-{place}"), needy, 0, place, measured=True)
            answers = result([5, 6, 7, 8], warmups=count)
            answers.samples[0]["task"][:] = place
            load.outcomes.append(MeasuredTask(job, answers, 0.0, ends))
        if not alone:
            other = Job(Task("other"), Search(name="other", body={}), 0, len(warmups), measured=True)
            load.outcomes.append(MeasuredTask(other, result([5, 6, 7, 8]), 0.0, ends))
        summaries = load.summaries(ORIGIN_NS, EndedNode(None, None))
        return [summary.lacking_warmup for summary in summaries][: len(warmups)]

    assert lacking(3) == [3]
    # Nothing else on the node has warmed up the code that it shares.
    assert lacking(3, alone=True) == [7]
    # What an earlier task of the same operation sent on this node has warmed it up, too.
    assert lacking(2, 1, 0) == [4, 1, 0]
    assert lacking(0, warmed=True) == [0]
    # More documents teach as much by fewer requests.
    assert lacking(1, share=0.4) == [2]


def test_the_index_that_a_challenge_filled_is_its_last_bulk_task_s_with_what_merging_it_took():
    ends = reading(1, 1, {}), reading(9, 9, {})

    def done(operation: Operation, unit: str) -> MeasuredTask:
        job = Job(Task(operation.name), operation, 0, 0, measured=True)
        return MeasuredTask(job, dataclasses.replace(result([5]), unit=unit), 0.0, ends)

    fill, merge = Bulk(name="fill", bulk_size=10), ForceMerge(name="merge")
    tasks = [(fill, "docs"), (fill, "docs"), (merge, "ops"), (Search(name="range", body={}), "")]
    load = Load(outcomes=[done(*one) for one in tasks])
    index = index_meters([SegmentFacts(7, 600_000, "9.8.0"), SegmentFacts(3, 400_000, "9.8.0")])
    found = load.summaries(ORIGIN_NS, EndedNode(None, None), index)
    assert [one.meters.get("index_size") for one in found] == [None, 1.0, None, None]
    last = found[1].meters
    assert last["force_merge"] == pytest.approx(found[2].mean_ns / 1e9)


def test_what_cannot_be_known_is_left_out():
    node = EndedNode(None, None)
    assert meters([], result([5]), ORIGIN_NS, node, {}) == {}
    assert meters([None, None], result([5]), ORIGIN_NS, node, {}) == {}
    assert index_meters([]) == {}
    ends = [reading(1, 1, {}), reading(9, 9, {})]
    assert meters(ends, result([5]), ORIGIN_NS, node, {}).keys() == {"cpu"}
    assert meters(ends, result([]), ORIGIN_NS, node, {}) == {}


def test_the_time_outside_the_engine_is_what_took_leaves_of_slow_answers():
    slow = meters([], result([5, 6, 7], warmups=1, took_ms=10), ORIGIN_NS, EndedNode(None, None), {})
    assert (slow["engine_time"], slow["client_time"]) == (10, 5)
    for took_ms in (9, 16):
        quick = meters([], result([5, 6, 7], took_ms=took_ms), ORIGIN_NS, EndedNode(None, None), {})
        assert quick.keys() == {"engine_time"}


def test_searches_run_at_a_time_as_their_own_times_exceed_that_of_their_batch():
    batch = replace(
        result([5, 60, 90], warmups=1, took_ms=14), tooks=({40: 1, 50: 1}, {20: 2}, {20: 1, 30: 1})
    )
    assert meters([], batch, ORIGIN_NS, EndedNode(None, None), {})["parallelism"] == 90 / (2 * 15)


@given(st.integers(1, 50), st.integers(1, 5_000), st.floats(0.1, 100))
def test_costs_of_bulk_tasks_are_those_of_a_thousand_documents(requests: int, each: int, window_s: float):
    summary = make_summary(
        "index", 10.0, unit="docs", samples=requests, throughput_per_s=requests * each / window_s,
        meters={"cpu": 30.0}, driver=DriverFigures(requests, window_s=window_s),
    )  # fmt: skip
    cpu = metric("cpu").counting("docs")
    assert cpu.value(summary) == pytest.approx(30_000 / each)
    assert cpu.unit == "ms/1k docs"
    assert cpu.value(msgspec.structs.replace(summary, unit="queries")) == 30.0
    assert cpu.value(msgspec.structs.replace(summary, driver=None)) is None
