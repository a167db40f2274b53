"""Operations as they are opened: every type's line, body and judge."""

import json
from collections.abc import Mapping
from typing import Any

import msgspec
import pytest

from benchctl.load.transport import Answer, Request
from benchctl.load.work import WorkContext
from benchctl.load.work.openers import open_workload
from benchctl.results.samples import Outcome
from benchctl.track.operations.catalogue import OPERATION_TYPES, decode_operation
from golden import Cases
from load.playing import outcome, play_operation, request_of, workload

BODY = {"a": 1}
TEMPLATE = {"template": "t"}
SNAPSHOT = {"repository": "r", "snapshot": "s"}
POLICY = {"policy_name": "p"}


def test_every_type_asks_as_the_engines_expect(cases: Cases):
    def asked(kind: str, keys: str) -> str:
        request = request_of(operation_type=kind, **json.loads(keys))
        assert request.searches == (1 if kind == "sql" else 0)
        return f"{request.method} {request.path}\n{request.body.decode()}"

    cases("requests", asked)


# What the first values of a key's type do not do for.
PARTICULAR: dict[str, dict[str, Any]] = {
    "paginated-search": {"body": {"sort": ["a"]}},
    "composite-agg": {"body": {"aggs": {"c": {"composite": {"sources": []}}}}},
    "multi-search": {"searches": [{"body": {}}]},
    "raw-request": {"path": "/"},
    "create-data-stream": {"data-stream": "d"},
    "delete-data-stream": {"data-stream": "d"},
    "composite": {"requests": [{"operation-type": "search"}]},
    "run-until": {"path": "/", "criterion": {"operator": "exists"}},
    "create-ilm-policy": {"body": {"policy": {}}},
    "vector-search": {"body": {"size": 1}},
    "enrich-policy": {"policies": {"p": {}}},
}
FIRST: Mapping[Any, Any] = {str: "x", int: 1, float: 1.0, dict[str, Any]: {}}


def least(kind: str) -> dict[str, Any]:
    """As few keys as a type can have."""
    required = [one for one in msgspec.structs.fields(OPERATION_TYPES[kind]) if one.required]
    keys = {
        one.encode_name: FIRST.get(getattr(one.type, "__origin__", one.type), FIRST.get(one.type))
        for one in required
    }
    if kind.endswith("-template"):
        keys |= {"template": "t", **({"body": {}} if kind.startswith("create") else {})}
    return {"operation-type": kind, **keys, **PARTICULAR.get(kind, {})}


COMPOSITES_ONLY = {
    "open-point-in-time",
    "create-point-in-time",
    "close-point-in-time",
    "submit-async-search",
    "get-async-search",
    "delete-async-search",
}


OF_FILES = {"logged-search", "bulk-vector-data-set"}


@pytest.mark.parametrize("kind", sorted(set(OPERATION_TYPES) - COMPOSITES_ONLY - OF_FILES))
def test_every_type_of_the_catalogue_can_be_opened(kind: str):
    operation = decode_operation(least(kind))
    context = WorkContext("big5", documents=lambda: iter([b"{}\n"]), document_count=1)
    opened = open_workload(operation, context, clients=1, key="k")
    made = opened.program(0)()
    assert made is not None
    opened.close()


def test_what_takes_long_may_take_long_and_the_operation_may_say_how_long():
    assert request_of(operation_type="force-merge").timeout_s == 4 * 3600
    assert request_of(operation_type="force-merge", request_timeout=5).timeout_s == 5
    assert request_of(operation_type="node-stats").timeout_s == 60


def test_an_index_is_created_with_the_tracks_body():
    context = WorkContext("big5", {"settings": {"number_of_shards": 1}, "mappings": {"properties": {}}})
    request = request_of(context, operation_type="create-index")
    assert msgspec.json.decode(request.body) == dict(context.index_body)


@pytest.mark.parametrize("own", [None, {"mappings": {"_meta": {"k": 1}, "dynamic": False}}])
def test_every_index_bears_the_mark_of_a_running_cluster(own: dict[str, Any] | None):
    context = WorkContext("mine", mark={"benchctl": "made"})
    said = {} if own is None else {"body": own}
    body = msgspec.json.decode(request_of(context, operation_type="create-index", **said).body)
    meta = body["mappings"].pop("_meta")
    assert meta == {**({} if own is None else {"k": 1}), "benchctl": "made"}
    assert own is None or body["mappings"] == {"dynamic": False}


def test_settings_are_laid_over_those_of_the_body_however_they_are_written():
    body = {
        "settings": {
            "index": {"number_of_shards": 1, "translog": {"durability": "async"}},
            "number_of_replicas": 0,
            "index.codec": "default",
        },
        "mappings": BODY,
    }
    settings = {"index.number_of_replicas": 2, "number_of_shards": 3, "index": {"codec": "best_compression"}}
    request = request_of(operation_type="create-index", body=body, settings=settings)
    assert msgspec.json.decode(request.body) == {
        "settings": {
            "index.number_of_shards": 3,
            "index.translog.durability": "async",
            "index.number_of_replicas": 2,
            "index.codec": "best_compression",
        },
        "mappings": BODY,
    }


@pytest.mark.parametrize(
    ("kind", "keys"),
    [
        ("delete-index", {}),
        ("delete-index-template", TEMPLATE),
        ("delete-composable-template", TEMPLATE),
        ("delete-component-template", TEMPLATE),
    ],
)
def test_deleting_what_is_not_there_is_a_failure_only_on_demand(kind: str, keys: dict[str, Any]):
    assert request_of(operation_type=kind, **keys).judge(404, b"{}").outcome is Outcome.OK
    strict = request_of(operation_type=kind, only_if_exists=False, **keys)
    assert strict.judge(404, b"{}").outcome is Outcome.HTTP_ERROR


@pytest.mark.parametrize(("ignore", "is_fine"), [(True, True), (False, False)])
def test_a_missing_model_is_a_failure_unless_the_operation_says_otherwise(*, ignore: bool, is_fine: bool):
    keys = {"model__id": "m", "ignore_if_model_does_not_exist": ignore}
    answer = request_of(operation_type="delete-knn-model", **keys).judge(404, b"{}")
    assert (answer.outcome is Outcome.OK) == is_fine


@pytest.mark.parametrize(("kind", "shown"), [("proto-bulk", True), ("deploy-ml-model", False)])
def test_tables_show_what_stands_for_work_on_documents(kind: str, *, shown: bool):
    assert decode_operation({"operation-type": kind, "name": "x"}).reported == shown


def test_creating_judges_by_status_alone():
    judge = request_of(operation_type="create-index").judge
    assert judge(200, b"not JSON").outcome is Outcome.OK
    assert judge(404, b"{}").outcome is Outcome.HTTP_ERROR


def test_opensearch_has_sql_elsewhere():
    assert request_of(OPENSEARCH, operation_type="sql", body={"query": "x"}).path == "/_plugins/_sql"


SQL: dict[str, Any] = {"operation_type": "sql", "body": {"query": "x", "fetch_size": 2}}


def rows(cursor: str = "") -> tuple[int, Any]:
    return 200, {"rows": [[1]], **({"cursor": cursor} if cursor else {})}


def test_pages_of_sql_come_by_the_cursor_until_there_is_none():
    answers = [rows("a"), rows("b"), rows()]
    played = play_operation(lambda _: answers.pop(0), pages=5, **SQL)
    assert played.bodies == [SQL["body"], {"cursor": "a"}, {"cursor": "b"}]
    assert outcome(played) is Outcome.OK


def test_a_cursor_that_is_left_over_is_closed():
    played = play_operation(lambda _: rows("a"), pages=2, **SQL)
    assert played.lines == ["POST /_sql", "POST /_sql", "POST /_sql/close"]
    assert played.bodies[-1] == {"cursor": "a"}
    error = {"error": {"type": "x", "reason": "no"}}
    answers = [rows("a"), (500, error), (200, {})]
    played = play_operation(lambda _: answers.pop(0), pages=3, **SQL)
    assert (played.lines[-1], outcome(played)) == ("POST /_sql/close", Outcome.HTTP_ERROR)


def test_a_page_of_sql_that_is_none_is_a_bad_body():
    assert outcome(play_operation(lambda _: (200, b"[]"), **SQL)) is Outcome.BAD_BODY


def test_single_requests_are_the_same_object_every_time():
    program = workload(operation_type="refresh").program(0)
    first = program()
    assert isinstance(first, Request)
    assert program() is first


def test_rows_of_es_ql_that_are_not_all_are_partial():
    for kind in ("esql", "esql-profile"):
        judge = request_of(operation_type=kind, query="row a").judge
        assert judge(200, b'{"took":4,"is_partial":false,"values":[]}') == Answer(Outcome.OK, 4)
        assert judge(200, b'{"took":4,"is_partial":true}').outcome is Outcome.PARTIAL
        assert judge(200, b"[]").outcome is Outcome.BAD_BODY
        assert judge(500, b"").outcome is Outcome.HTTP_ERROR


def test_statuses_to_ignore_count_as_success_for_every_type():
    judge = request_of(operation_type="refresh", request_params={"ignore": [404, "409"]}).judge
    outcomes = [judge(status, b"{}").outcome for status in (404, 409, 410)]
    assert outcomes == [Outcome.OK, Outcome.OK, Outcome.HTTP_ERROR]


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
