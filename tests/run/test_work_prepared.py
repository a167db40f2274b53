"""Preparation that fails ends its fork; failed requests that are measured are counted."""

from typing import Any

import msgspec
import numpy as np
import pytest

from benchctl.errors import BenchctlError
from benchctl.load.client import Failure
from benchctl.load.executor import Job, TaskResult
from benchctl.results.samples import Outcome
from benchctl.run.work import check_prepared, tasks_before_searches
from benchctl.track.model import Challenge, Task, Track
from benchctl.track.operations.catalogue import decode_operation
from builders import make_plan

REASON = "HTTP 400: mapper_parsing_exception: No handler for type [match_only_text]"
REFUSED = (Failure(Outcome.HTTP_ERROR, 1, (REASON,)),)


KEYS: dict[str, dict[str, Any]] = {
    "restore-snapshot": {"repository": "r", "snapshot": "s"},
    "bulk": {"bulk-size": 10},
    "create-index-template": {"template": "t", "body": {}},
    "put-pipeline": {"id": "p", "body": {}},
    "create-ilm-policy": {"policy-name": "p", "body": {"policy": {}}},
    "search": {"body": {}},
}


def job(kind: str, keys: dict[str, Any] | None = None, **task: Any) -> Job:
    raw = {"name": "it", "operation-type": kind, **KEYS.get(kind, {}), **(keys or {})}
    operation = decode_operation(raw)
    return Job(Task("it", **task), operation, 0, 0)


def result(
    *rows: tuple[Outcome, int], failures: tuple[Failure, ...] = REFUSED, unsupported: str | None = None
) -> TaskResult:
    """What came of a task: (outcome, part) of every row."""
    columns = {
        "outcome": np.array([int(outcome) for outcome, _ in rows], np.int8),
        "part": np.array([part for _, part in rows], np.int32),
    }
    return TaskResult(samples=[columns], unsupported=unsupported, failures=failures)


FAILED, OK = (Outcome.HTTP_ERROR, 0), (Outcome.OK, 0)


@pytest.mark.parametrize(
    "kind", ["create-index", "create-data-stream", "create-index-template", "restore-snapshot"]
)
def test_what_a_node_refuses_to_make_ends_the_fork(kind: str):
    with pytest.raises(BenchctlError, match=r"the node refuses what task it makes: HTTP 400") as caught:
        check_prepared(job(kind), result(FAILED), {}, searched=False)
    assert "match_only_text" in caught.value.message
    assert "distribution:" in caught.value.hint


def test_a_setting_that_a_variant_gave_is_named():
    said = (Failure(Outcome.HTTP_ERROR, 1, ("HTTP 400: unknown value for [index.codec]",)),)
    given = {"index:codec": "defualt", "index:sort.field": "a"}
    with pytest.raises(BenchctlError, match=r"the node refuses index:codec=defualt: HTTP 400") as caught:
        check_prepared(job("create-index"), result(FAILED, failures=said), given, searched=False)
    assert "--variant, --sweep" in caught.value.hint


def test_one_of_several_that_was_made_does_not_make_up_for_the_others():
    with pytest.raises(BenchctlError, match="refuses"):
        check_prepared(
            job("create-index"), result(FAILED, (Outcome.OK, 1), (Outcome.HTTP_ERROR, 2)), {}, searched=False
        )


@pytest.mark.parametrize(
    "made",
    [
        job("put-pipeline"),
        job("delete-index"),
        job("refresh"),
        job("force-merge"),
        job("create-ilm-policy"),
        job("raw-request", keys={"method": "PUT", "path": "/shop"}),
        job(
            "composite",
            keys={"requests": [{"operation-type": "raw-request", "method": "PUT", "path": "/shop"}]},
        ),
        job("raw-request", keys={"method": "POST", "path": "/a/_close", "include-in-reporting": False}),
    ],
)
def test_what_later_tasks_depend_on_ends_the_fork(made: Job):
    with pytest.raises(BenchctlError, match="task it failed") as caught:
        check_prepared(made, result(FAILED), {}, searched=False)
    assert REASON in caught.value.message
    assert "non-fatal" in caught.value.hint


def test_documents_that_are_missing_where_tasks_search_end_the_fork():
    refused = (Failure(Outcome.PARTIAL, 2, (REASON,)),)
    came = result(OK, (Outcome.PARTIAL, 0), failures=refused)
    with pytest.raises(BenchctlError, match="task it: 2 requests failed"):
        check_prepared(job("bulk"), came, {}, searched=True)
    check_prepared(job("bulk"), came, {}, searched=False)
    check_prepared(job("bulk", ignore_response_error_level="non-fatal"), came, {}, searched=True)


@pytest.mark.parametrize(
    ("made", "came"),
    [
        (job("search"), result(FAILED)),
        (job("cluster-health"), result(FAILED)),
        (job("raw-request", keys={"method": "POST", "path": "/_search"}), result(FAILED)),
        (job("raw-request", keys={"method": "PUT", "path": "/shop/_doc/1"}), result(FAILED)),
        (job("put-pipeline"), result(FAILED, unsupported="unknown processor")),
        (job("create-index", ignore_response_error_level="non-fatal"), result(FAILED)),
        (job("create-index"), result(FAILED, OK)),
        (job("create-index"), result(OK, failures=())),
    ],
)
def test_other_failures_are_only_counted(made: Job, came: TaskResult):
    check_prepared(made, came, {}, searched=True)


@pytest.mark.parametrize(
    ("schedule", "filling"),
    [
        ("create bulk search", {0, 1}),
        ("create bulk", set()),
        ("bulk search bulk", {0}),
        # Beside searches it is measured with them.
        ("bulk+search", set()),
        ("bulk+search search", {0, 1}),
    ],
)
def test_documents_are_searched_by_tasks_of_later_steps(schedule: str, filling: set[int]):
    operations = {
        name: decode_operation({"name": name, "operation-type": kind, **KEYS.get(kind, {})})
        for name, kind in (("create", "create-index"), ("bulk", "bulk"), ("search", "search"))
    }
    tasks = [
        Task(name, group=number if "+" in element else None)
        for number, element in enumerate(schedule.split())
        for name in element.split("+")
    ]
    plan = msgspec.structs.replace(make_plan(), schedules=(Challenge("c", tuple(tasks)),))
    track = Track(name="t", operations=operations, digest="")
    assert tasks_before_searches(plan, track) == {(0, place) for place in filling}
