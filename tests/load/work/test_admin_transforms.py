"""Transforms by either engine's words, and indices that shrink."""

import json
from typing import Any

from benchctl.load.work import WorkContext
from benchctl.results.samples import Outcome
from golden import Cases
from load.playing import request_of

OPENSEARCH = WorkContext("big5", seed=7, engine="opensearch")
TRANSFORM: dict[str, Any] = {"transform_id": "t"}


def test_each_engine_is_asked_in_its_own_words(cases: Cases):
    def asked(kind: str, raw: str) -> str:
        name = {"policy_name": "p"} if "policy" in kind else TRANSFORM
        contexts = (WorkContext("big5"), OPENSEARCH)
        requests = [request_of(one, operation_type=kind, **name, **json.loads(raw)) for one in contexts]
        return "\n".join(f"{request.method} {request.path}" for request in requests)

    cases("transforms", asked)


def test_waiting_for_a_transform_is_one_request_that_only_elasticsearch_has():
    path = "/_transform/t/_stop?timeout=4h&force=false&wait_for_completion=true&wait_for_checkpoint=true"
    for context in (WorkContext("big5"), OPENSEARCH):
        keys = {"transform_timeout": 9, "poll_interval": 1, **TRANSFORM}
        request = request_of(context, operation_type="wait-for-transform", **keys)
        assert (request.path, request.timeout_s) == (path, 4 * 3600)


def test_a_condition_is_about_the_first_transform():
    judge = request_of(
        operation_type="transform-stats",
        condition={"path": "stats.pages_processed", "expected-value": 3},
        **TRANSFORM,
    ).judge
    assert judge(200, b'{"transforms":[{"stats":{"pages_processed":3}}]}').outcome is Outcome.OK
    assert judge(200, b'{"transforms":[]}').outcome is Outcome.BAD_BODY
