"""Administrative requests: every type's line, body and judge."""

from typing import Any

import msgspec
import pytest

from benchctl.load.programs import WorkContext, open_workload
from benchctl.load.request import Request
from benchctl.results.samples import Outcome
from benchctl.track.catalogue import OPERATION_TYPES, decode_operation
from load.playing import outcome, play_operation, request_of, workload

BODY = {"a": 1}
TEMPLATE = {"template": "t"}
STREAM = {"data_stream": "logs"}
SNAPSHOT = {"repository": "r", "snapshot": "s"}


@pytest.mark.parametrize(
    ("kind", "keys", "line", "body"),
    [
        ("force-merge", {"max_num_segments": 1}, "POST /big5/_forcemerge?max_num_segments=1", None),
        ("force-merge", {"index": "a,b"}, "POST /a,b/_forcemerge", None),
        ("refresh", {}, "POST /big5/_refresh", None),
        ("flush", {"request_params": {"force": True}}, "POST /big5/_flush?force=true", None),
        (
            "cluster-health",
            {"request_params": {"wait_for_status": "green"}},
            "GET /_cluster/health/big5?wait_for_status=green",
            None,
        ),
        ("index-stats", {}, "GET /big5/_stats", None),
        ("node-stats", {}, "GET /_nodes/stats", None),
        ("put-settings", {"body": BODY}, "PUT /_cluster/settings", BODY),
        ("create-index", {"body": BODY, "index": "i"}, "PUT /i", BODY),
        ("delete-index", {}, "DELETE /big5", None),
        ("create-data-stream", STREAM, "PUT /_data_stream/logs", None),
        ("delete-data-stream", STREAM, "DELETE /_data_stream/logs", None),
        ("create-index-template", {**TEMPLATE, "body": BODY}, "PUT /_template/t", BODY),
        ("delete-index-template", TEMPLATE, "DELETE /_template/t", None),
        ("create-composable-template", {**TEMPLATE, "body": BODY}, "PUT /_index_template/t", BODY),
        ("delete-composable-template", TEMPLATE, "DELETE /_index_template/t", None),
        ("create-component-template", {**TEMPLATE, "body": BODY}, "PUT /_component_template/t", BODY),
        ("delete-component-template", TEMPLATE, "DELETE /_component_template/t", None),
        ("put-pipeline", {"id": "my/p", "body": BODY}, "PUT /_ingest/pipeline/my%2Fp", BODY),
        ("create-snapshot-repository", {"repository": "r", "body": BODY}, "PUT /_snapshot/r", BODY),
        ("delete-snapshot-repository", {"repository": "r"}, "DELETE /_snapshot/r", None),
        (
            "create-snapshot",
            {**SNAPSHOT, "body": BODY},
            "PUT /_snapshot/r/s?wait_for_completion=false",
            BODY,
        ),
        (
            "restore-snapshot",
            {**SNAPSHOT, "wait_for_completion": True},
            "POST /_snapshot/r/s/_restore?wait_for_completion=true",
            None,
        ),
        ("field-caps", {"fields": "a,b"}, "POST /big5/_field_caps?fields=a%2Cb", None),
        ("field-caps", {"index_filter": BODY}, "POST /big5/_field_caps?fields=%2A", {"index_filter": BODY}),
        ("sql", {"body": {"query": "x"}}, "POST /_sql", {"query": "x"}),
        (
            "esql",
            {"query": "from x", "filter": BODY, "body": {"columnar": True}},
            "POST /_query",
            {"columnar": True, "query": "from x", "filter": BODY},
        ),
    ],
)
def test_every_type_asks_as_the_engines_expect(kind: str, keys: dict[str, Any], line: str, body: Any):
    request = request_of(operation_type=kind, **keys)
    assert f"{request.method} {request.path}" == line
    assert (msgspec.json.decode(request.body) if request.body else None) == body
    assert request.searches == (1 if kind == "sql" else 0)


LEAST: dict[str, dict[str, Any]] = {
    "paginated-search": {"body": {"sort": ["a"]}},
    "composite-agg": {"body": {"aggs": {"c": {"composite": {"sources": []}}}}},
    "multi-search": {"searches": [{"body": {}}]},
    "raw-request": {"path": "/"},
    "bulk": {"bulk-size": 1},
    "sleep": {"duration": 1},
    "put-settings": {"body": {}},
    "create-data-stream": {"data-stream": "d"},
    "delete-data-stream": {"data-stream": "d"},
    "put-pipeline": {"id": "p", "body": {}},
    "create-snapshot-repository": {"repository": "r", "body": {}},
    "delete-snapshot-repository": {"repository": "r"},
    "create-snapshot": SNAPSHOT,
    "restore-snapshot": SNAPSHOT,
    "wait-for-snapshot-create": SNAPSHOT,
    "sql": {"body": {"query": "x"}},
    "esql": {"query": "x"},
}


@pytest.mark.parametrize("kind", sorted(OPERATION_TYPES))
def test_every_type_of_the_catalogue_can_be_opened(kind: str):
    keys = LEAST.get(kind, {})
    if kind.endswith("-template"):
        keys = {"template": "t", **({"body": {}} if kind.startswith("create") else {})}
    operation = decode_operation({"name": "x", "operation-type": kind, **keys})
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
        ("delete-data-stream", STREAM),
        ("delete-index-template", TEMPLATE),
        ("delete-composable-template", TEMPLATE),
        ("delete-component-template", TEMPLATE),
    ],
)
def test_deleting_what_is_not_there_is_a_failure_only_on_demand(kind: str, keys: dict[str, Any]):
    assert request_of(operation_type=kind, **keys).judge(404, b"{}").outcome is Outcome.OK
    strict = request_of(operation_type=kind, only_if_exists=False, **keys)
    assert strict.judge(404, b"{}").outcome is Outcome.HTTP_ERROR


def test_creating_judges_by_status_alone():
    judge = request_of(operation_type="create-index").judge
    assert judge(200, b"not JSON").outcome is Outcome.OK
    assert judge(404, b"{}").outcome is Outcome.HTTP_ERROR


def test_opensearch_has_sql_elsewhere():
    context = WorkContext("big5", engine="opensearch")
    assert request_of(context, operation_type="sql", body={"query": "x"}).path == "/_plugins/_sql"


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
