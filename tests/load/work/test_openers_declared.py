"""What a track declares: all of it where an operation names nothing, else only what it names."""

from typing import Any

import msgspec
import pytest

from benchctl.errors import BenchctlError
from benchctl.load.transport import Request
from benchctl.load.work import WorkContext
from benchctl.results.samples import Outcome
from benchctl.track.model import Template
from load.playing import outcome, play_operation, request_of, workload

COMPOSABLE = {"index_patterns": ["logs-*"], "template": {"settings": {"index": {"codec": "default"}}}}
CONTEXT = WorkContext(
    "",
    indices={"one": {"settings": {"a": 1}}, "two": {"settings": {"b": 2}}},
    data_streams=("logs-x", "logs-y"),
    templates=(
        Template("logs", "composable", COMPOSABLE, "logs-*"),
        Template(
            "kept", "composable", {"index_patterns": ["kept-*"]}, "kept-*", delete_matching_indices=False
        ),
        Template("part", "component", {"template": {"mappings": {}}}),
        Template("old", "index", {"index_patterns": ["old-*"], "settings": {"codec": "default"}}, "old-*"),
    ),
)


def done(_: Request) -> tuple[int, Any]:
    return 200, {"acknowledged": True}


def lines(kind: str, **raw: Any) -> list[str]:
    played = play_operation(done, CONTEXT, operation_type=kind, **raw)
    assert outcome(played) is Outcome.OK
    return played.lines


def test_all_that_a_track_declares_is_made_where_nothing_is_named():
    assert lines("create-index") == ["PUT /one", "PUT /two"]
    assert lines("create-data-stream") == ["PUT /_data_stream/logs-x", "PUT /_data_stream/logs-y"]
    assert lines("create-composable-template") == ["PUT /_index_template/logs", "PUT /_index_template/kept"]
    assert lines("delete-data-stream") == ["DELETE /_data_stream/logs-x", "DELETE /_data_stream/logs-y"]
    assert lines("delete-index") == ["DELETE /one", "DELETE /two"]


STREAMING = Template("logs", "composable", {"index_patterns": ["logs-*"], "data_stream": {}}, "logs-*")
WITH_STREAMS = WorkContext("", data_streams=("logs-x",), templates=(STREAMING,))
NO_STREAMS = {"error": "Incorrect HTTP method for uri [/_data_stream/x] and method [PUT], allowed: [POST]"}


def without_streams(request: Request) -> tuple[int, Any]:
    return (405, NO_STREAMS) if request.path.startswith("/_data_stream/") else (200, {"acknowledged": True})


def test_a_template_of_data_streams_is_put_as_it_is_where_the_node_has_them():
    played = play_operation(done, WITH_STREAMS, operation_type="create-composable-template")
    assert played.lines == ["GET /_data_stream/*", "PUT /_index_template/logs"]
    assert msgspec.json.decode(played.requests[1].body) == STREAMING.body
    assert outcome(played) is Outcome.OK


def test_a_node_without_data_streams_gets_plain_indices_made_from_plain_templates():
    played = play_operation(without_streams, WITH_STREAMS, operation_type="create-composable-template")
    assert played.lines == ["GET /_data_stream/*", "PUT /_index_template/logs"]
    assert "data_stream" not in msgspec.json.decode(played.requests[1].body)
    assert outcome(played) is Outcome.OK
    for kind, method in (("create", "PUT"), ("delete", "DELETE")):
        played = play_operation(without_streams, WITH_STREAMS, operation_type=f"{kind}-data-stream")
        assert played.lines == [f"{method} /_data_stream/logs-x", f"{method} /logs-x"]
        assert outcome(played) is Outcome.OK


def test_what_stands_in_for_a_data_stream_may_be_refused_like_any_index():
    def node(request: Request) -> tuple[int, Any]:
        return (405, NO_STREAMS) if request.path.startswith("/_data_stream/") else (400, {})

    played = play_operation(node, WITH_STREAMS, operation_type="create-data-stream")
    assert outcome(played) is Outcome.HTTP_ERROR
    assert outcome(
        play_operation(lambda _: (500, {}), WITH_STREAMS, operation_type="create-data-stream")
    ) is (Outcome.HTTP_ERROR)


def test_each_index_gets_its_own_body():
    played = play_operation(done, CONTEXT, operation_type="create-index", settings={"c": 3})
    assert played.bodies == [
        {"settings": {"index.a": 1, "index.c": 3}},
        {"settings": {"index.b": 2, "index.c": 3}},
    ]
    assert lines("create-index", index=["two", "other"]) == ["PUT /two", "PUT /other"]


@pytest.mark.parametrize(
    ("kind", "line", "body"),
    [
        (
            "composable",
            "PUT /_index_template/logs",
            {
                "index_patterns": ["logs-*"],
                "template": {"settings": {"index.codec": "best_compression"}},
            },
        ),
        (
            "component",
            "PUT /_component_template/part",
            {"template": {"mappings": {}, "settings": {"index.codec": "best_compression"}}},
        ),
        (
            "index",
            "PUT /_template/old",
            {"index_patterns": ["old-*"], "settings": {"index.codec": "best_compression"}},
        ),
    ],
)
def test_settings_of_a_template_are_laid_where_its_kind_has_them(kind: str, line: str, body: Any):
    name = line.rpartition("/")[2]
    request = request_of(
        CONTEXT,
        operation_type=f"create-{kind}-template",
        template=name,
        settings={"index": {"codec": "best_compression"}},
    )
    assert f"{request.method} {request.path}" == line
    assert msgspec.json.decode(request.body) == body


def test_the_indices_of_a_template_go_with_it_one_by_one():
    def node(request: Request) -> tuple[int, Any]:
        return 200, {"logs-1": {"aliases": {}}, "logs-2": {}} if "_alias" in request.path else {}

    played = play_operation(node, CONTEXT, operation_type="delete-composable-template")
    assert played.lines == [
        "DELETE /_index_template/logs",
        "DELETE /_index_template/kept",
        "GET /logs-*/_alias?ignore_unavailable=true",
        "DELETE /logs-1",
        "DELETE /logs-2",
    ]
    assert outcome(played) is Outcome.OK
    named = play_operation(
        node,
        operation_type="delete-index-template",
        template="t",
        delete_matching_indices=True,
        index_pattern="logs-*",
    )
    assert named.lines[1:] == played.lines[2:]


def test_the_indices_of_a_template_stay_where_the_operation_says_so():
    assert lines("delete-composable-template", delete_matching_indices=False) == [
        "DELETE /_index_template/logs",
        "DELETE /_index_template/kept",
    ]


def test_a_pattern_is_looked_up_since_nodes_refuse_to_delete_by_it():
    def node(request: Request) -> tuple[int, Any]:
        if request.method == "GET":
            return 200, {"a-1": {}, "a-2": {}}
        return (404, {}) if request.path == "/a-1" else (200, {})

    played = play_operation(node, operation_type="delete-index", index="a-*")
    assert played.lines == ["GET /a-*/_alias?ignore_unavailable=true", "DELETE /a-1", "DELETE /a-2"]
    assert outcome(played) is Outcome.OK


@pytest.mark.parametrize(
    ("listing", "expected"),
    [((404, {}), Outcome.OK), ((500, {}), Outcome.HTTP_ERROR), ((200, b"[]"), Outcome.BAD_BODY)],
)
def test_nothing_is_deleted_when_no_index_is_listed(listing: tuple[int, Any], expected: Outcome):
    played = play_operation(lambda _: listing, operation_type="delete-index", index="a-*")
    assert (len(played.requests), outcome(played)) == (1, expected)


def test_the_first_thing_that_cannot_be_made_ends_the_operation():
    played = play_operation(lambda _: (400, {}), CONTEXT, operation_type="create-index")
    assert (played.lines, outcome(played)) == (["PUT /one"], Outcome.HTTP_ERROR)


@pytest.mark.parametrize("missing", [True, False])
def test_a_missing_one_is_a_failure_only_where_the_operation_says_so(missing: bool):  # noqa: FBT001 - both cases
    for kind in ("delete-index", "delete-data-stream", "delete-composable-template"):
        played = play_operation(
            lambda _: (404, {}),
            CONTEXT,
            operation_type=kind,
            only_if_exists=missing,
            **({"delete_matching_indices": False} if kind.endswith("template") else {}),
        )
        assert outcome(played) is (Outcome.OK if missing else Outcome.HTTP_ERROR)


@pytest.mark.parametrize(
    ("kind", "raw", "said"),
    [
        ("create-data-stream", {}, "declares no data streams"),
        ("create-composable-template", {}, "declares no composable templates"),
        ("delete-component-template", {}, "declares no component templates"),
        ("create-index-template", {"template": "t"}, "declares no template 't'"),
    ],
)
def test_what_is_declared_nowhere_cannot_be_made(kind: str, raw: Any, said: str):
    with pytest.raises(BenchctlError, match=said):
        workload(operation_type=kind, **raw)


def test_an_enrich_policy_is_made_anew_and_executed():
    policies = {"p": {"match": {"indices": "a"}}, "q/1": {"match": {"indices": "b"}}}
    created = ["PUT /_enrich/policy/p", "PUT /_enrich/policy/p/_execute"]
    assert lines("enrich-policy", policies={"p": policies["p"]}, delete=False) == created
    deleted = ["DELETE /_enrich/policy/p", "DELETE /_enrich/policy/q%2F1"]
    played = play_operation(
        lambda request: (404 if request.method == "DELETE" else 200, {}),
        CONTEXT,
        operation_type="enrich-policy",
        policies=policies,
    )
    assert outcome(played) is Outcome.OK
    assert [line for line in played.lines if line.startswith("DELETE")] == deleted
    assert [body for body in played.bodies if body] == [*policies.values()]
