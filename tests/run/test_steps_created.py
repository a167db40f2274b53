"""Data that a challenge could not make ends its fork; whatever else fails is counted like any failure."""

from typing import Any

import numpy as np
import pytest

from benchctl.errors import BenchctlError
from benchctl.load.executor import TaskResult
from benchctl.load.recorder import Failure
from benchctl.load.task_clients import Job
from benchctl.results.samples import Outcome
from benchctl.run.steps import check_created
from benchctl.track.model import Task
from benchctl.track.operations.catalogue import decode_operation

REASON = "HTTP 400: mapper_parsing_exception: No handler for type [match_only_text]"
REFUSED = (Failure(Outcome.HTTP_ERROR, 1, (REASON,)),)


def job(kind: str, **task: Any) -> Job:
    keys = {
        "restore-snapshot": {"repository": "r", "snapshot": "s"},
        "bulk": {"bulk-size": 10},
        "create-index-template": {"template": "t", "body": {}},
    }
    operation = decode_operation({"name": "it", "operation-type": kind, **keys.get(kind, {})})
    return Job(Task("it", **task), operation, 0, 0)


def result(
    *rows: tuple[Outcome, int], failures: tuple[Failure, ...] = REFUSED, unsupported: str | None = None
) -> TaskResult:
    """What came of a task: (outcome, part) of every row."""
    columns = {
        "outcome": np.array([int(outcome) for outcome, _ in rows], np.int8),
        "part": np.array([part for _, part in rows], np.int32),
    }
    return TaskResult([columns], unsupported, failures, 0, 0, 0, 0.0, 0.0)


FAILED, OK = (Outcome.HTTP_ERROR, 0), (Outcome.OK, 0)


@pytest.mark.parametrize(
    "kind", ["create-index", "create-data-stream", "create-index-template", "restore-snapshot"]
)
def test_what_a_node_refuses_to_make_ends_the_fork(kind: str):
    with pytest.raises(BenchctlError, match=r"the node refuses what task it makes: HTTP 400") as caught:
        check_created(job(kind), result(FAILED), {})
    assert "match_only_text" in caught.value.message
    assert "distribution:" in caught.value.hint


def test_a_setting_that_a_variant_gave_is_named():
    said = (Failure(Outcome.HTTP_ERROR, 1, ("HTTP 400: unknown value for [index.codec]",)),)
    given = {"index.codec": "defualt", "index.sort.field": "a"}
    with pytest.raises(BenchctlError, match=r"the node refuses index:codec=defualt: HTTP 400") as caught:
        check_created(job("create-index"), result(FAILED, failures=said), given)
    assert "--variant, --sweep" in caught.value.hint


def test_one_of_several_that_was_made_does_not_make_up_for_the_others():
    with pytest.raises(BenchctlError, match="refuses"):
        check_created(job("create-index"), result(FAILED, (Outcome.OK, 1), (Outcome.HTTP_ERROR, 2)), {})


@pytest.mark.parametrize(
    ("made", "came"),
    [
        (job("bulk"), result(FAILED)),
        (job("delete-index"), result(FAILED)),
        (job("create-index", ignore_response_error_level="non-fatal"), result(FAILED)),
        (job("create-index"), result(FAILED, OK)),
        (job("create-index"), result(OK, failures=())),
    ],
)
def test_other_failures_are_only_counted(made: Job, came: TaskResult):
    check_created(made, came, {})
