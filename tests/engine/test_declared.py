"""What a track declares, made on a node: in which order, what stands in for it, and how cases read."""

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest

from benchctl.engine.client import SearchClient, loopback
from benchctl.engine.declared import Places, lent, make_all, places, stand_ins, try_out, with_changes
from benchctl.errors import BenchctlError, UsageError
from benchctl.results.plan import CorpusFile
from benchctl.track.model import Corpus, Documents, Index, IndexBody, Template, Track
from engine.fake_node import FakeNode

READERS = Index("readers", IndexBody({"number_of_shards": 2}, {"properties": {"n": {"type": "long"}}}))
STREAM = {"index_patterns": ["visits-*"], "data_stream": {}}
TRACK = Track(
    name="house",
    operations={},
    digest="t",
    indices=(READERS, Index("fines", IndexBody())),
    templates=(
        Template("old", "index", {"index_patterns": ["old-*"]}),
        Template("visits", "composable", STREAM),
        Template("small", "component", {"template": {}}),
    ),
)
WANTED = Places(TRACK.indices, ("visits-x",))
NO_STREAMS = {
    "error": "Incorrect HTTP method for uri [/_data_stream/*] and method [GET], allowed: [POST]",
    "status": 405,
}


@pytest.fixture
def client(node: FakeNode) -> Iterator[SearchClient]:
    with SearchClient("elasticsearch", loopback(node.port)) as made:
        yield made


def allow(node: FakeNode, *lines: str) -> None:
    for line in lines:
        method, _, path = line.partition(" ")
        node.answers[method, path] = (200, {"acknowledged": True})


TEMPLATES = ("PUT /_component_template/small", "PUT /_index_template/visits", "PUT /_template/old")
INDICES = ("PUT /readers", "PUT /fines")


def asked(node: FakeNode) -> list[str]:
    return [f"{method} {path}" for method, path, _, _ in node.seen]


def test_components_come_before_what_is_composed_of_them_and_templates_before_indices(
    client: SearchClient, node: FakeNode
):
    lines = ("GET /_data_stream/*", *TEMPLATES, *INDICES, "PUT /_data_stream/visits-x")
    allow(node, *lines)
    make_all(client, TRACK, WANTED, {})
    assert asked(node) == list(lines)
    assert node.seen[2][3] == STREAM
    assert node.seen[4][3] == {
        "settings": {"number_of_shards": 2},
        "mappings": {"properties": {"n": {"type": "long"}}},
    }


def test_a_node_without_data_streams_gets_plain_indices_from_plain_templates(
    client: SearchClient, node: FakeNode
):
    node.answers["GET", "/_data_stream/*"] = (405, NO_STREAMS)
    allow(node, *TEMPLATES, *INDICES, "PUT /visits-x")
    make_all(client, TRACK, WANTED, {})
    assert asked(node) == ["GET /_data_stream/*", *TEMPLATES, *INDICES, "PUT /visits-x"]
    assert "data_stream" not in node.seen[2][3]
    assert not node.seen[6][3]


def test_nodes_are_only_asked_for_data_streams_where_there_are_any(client: SearchClient, node: FakeNode):
    allow(node, *INDICES)
    plain = Track(name="house", operations={}, digest="t", indices=TRACK.indices)
    make_all(client, plain, places(plain), {})
    assert asked(node) == list(INDICES)


def test_what_the_node_refuses_is_named_with_its_reason_and_what_to_do(client: SearchClient, node: FakeNode):
    allow(node, "GET /_data_stream/*", *TEMPLATES)
    cause = {"type": "mapper_parsing_exception", "reason": "No handler for type [constant_keyword]"}
    node.answers["PUT", "/readers"] = (400, {"error": cause, "status": 400})
    with pytest.raises(BenchctlError, match="the node refuses the track's index 'readers': mapper") as caught:
        make_all(client, TRACK, WANTED, {"index:codec": "default", "mapping:door.type": "wildcard"})
    assert "No handler for type [constant_keyword]" in caught.value.message
    assert "distribution:" in caught.value.hint


def test_an_index_setting_that_the_node_refuses_is_named_as_it_was_given(
    client: SearchClient, node: FakeNode
):
    allow(node, "GET /_data_stream/*", *TEMPLATES)
    cause = {"type": "illegal_argument_exception", "reason": "unknown value for [index.codec]: defualt"}
    node.answers["PUT", "/readers"] = (400, {"error": cause, "status": 400})
    with pytest.raises(BenchctlError, match="the node refuses index:codec=defualt: illegal_arg") as caught:
        make_all(client, TRACK, WANTED, {"index:codec": "defualt", "index:sort.field": "x"})
    assert "--variant, --sweep" in caught.value.hint


def test_a_mapping_that_the_node_refuses_is_named_as_it_was_given(client: SearchClient, node: FakeNode):
    allow(node, "GET /_data_stream/*", *TEMPLATES)
    cause = {
        "type": "mapper_parsing_exception",
        "reason": "No handler for type [txt] declared on field [name]",
    }
    node.answers["PUT", "/readers"] = (400, {"error": cause, "status": 400})
    given = {"mapping:reader.name.type": "txt", "mapping:door.type": "text"}
    with pytest.raises(BenchctlError, match=r"the node refuses mapping:reader\.name\.type=txt: mapper"):
        make_all(client, TRACK, WANTED, given)


BODY = {
    "date_detection": False,
    "properties": {
        "message": {"type": "text", "fields": {"raw": {"type": "keyword"}}},
        "log": {"properties": {"path": {"type": "keyword"}}},
        "a.b": {"type": "long"},
    },
}


@pytest.mark.parametrize(
    ("name", "value", "way", "found"),
    [
        ("message.type", "keyword", "message", {"type": "keyword", "fields": {"raw": {"type": "keyword"}}}),
        ("message.fields", None, "message", {"type": "text"}),
        ("message.fields.raw.norms", True, "message.fields.raw", {"type": "keyword", "norms": True}),
        ("log.path.index", False, "log.properties.path", {"type": "keyword", "index": False}),
        ("log.new.type", "ip", "log.properties.new", {"type": "ip"}),
        ("log.dynamic", "strict", "log.dynamic", "strict"),
        ("log.path", None, "log.properties", {}),
        ("message", None, "message", None),
        ("c.d.type", "ip", "c/d", {"type": "ip"}),
        ("c.d.type", None, "c/d", None),
    ],
)  # fmt: skip
def test_a_mapping_of_a_variant_is_merged_into_the_track_s(name: str, value: Any, way: str, found: Any):
    wanted = Places((Index("i", IndexBody(mappings=BODY)),), ())
    (index,) = with_changes(wanted, {}, {name: value}).indices
    at: Any = index.body.mappings["properties"]
    for part in way.split("."):
        at = at.get(part.replace("/", "."))
    assert at == found
    assert index.body.mappings["properties"]["a.b"] == {"type": "long"}
    assert BODY["properties"]["message"]["type"] == "text"  # type: ignore[index]


def test_keys_of_the_mapping_itself_and_fields_with_dots_are_found():
    wanted = Places((Index("i", IndexBody(mappings=BODY)),), ())
    changes = {"dynamic": "strict", "date_detection": None, "_source.enabled": False, "a.b.type": "ip"}
    (index,) = with_changes(wanted, {}, changes).indices
    assert index.body.mappings["dynamic"] == "strict"
    assert "date_detection" not in index.body.mappings
    assert index.body.mappings["_source"] == {"enabled": False}
    assert index.body.mappings["properties"]["a.b"] == {"type": "ip"}
    with pytest.raises(UsageError, match="'message' is a field"):
        with_changes(wanted, {}, {"message": "keyword"})


def test_what_a_clusters_templates_make_of_places_is_tried(client: SearchClient, node: FakeNode):
    allow(node, "PUT /readers", "PUT /_data_stream/visits-x")
    for name, made in (("readers", {"settings": {"index.codec": "default"}}), ("visits-x", {"aliases": {}})):
        node.answers["GET", f"/{name}"] = (200, {name: made})
        node.answers["GET", f"/{name}/_mapping"] = (404, {})
    wanted = Places((READERS,), ("visits-x",))
    try_out(client, wanted)
    assert [line for line in asked(node) if line.startswith("PUT")] == [
        "PUT /readers",
        "PUT /_data_stream/visits-x",
    ]
    given = {"aliases": {"all": {}}, "settings": {"index.final_pipeline": "elsewhere"}}
    node.answers["GET", "/visits-x"] = (200, {".ds-visits-x-000001": given})
    with pytest.raises(BenchctlError, match=r"templates give 'visits-x' alias all, index.final_pipeline"):
        try_out(client, wanted)
    node.answers["PUT", "/readers"] = (400, {"error": {"type": "no", "reason": "not here"}, "status": 400})
    with pytest.raises(BenchctlError, match="it rejects 'readers': no: not here"):
        try_out(client, wanted)
    # What was not made is not removed: somebody else may have made it meanwhile.
    node.answers["GET", "/readers/_mapping"] = (200, {"readers": {"mappings": {}}})
    with pytest.raises(BenchctlError, match="it has 'readers' already"):
        try_out(client, wanted)
    assert not [line for line in asked(node) if line.startswith("DELETE")]


@pytest.mark.parametrize("answer", [{}, [], {"visits-x": {"mappings": {"_meta": ["benchctl"]}}}])
def test_an_answer_without_the_mark_removes_nothing(client: SearchClient, node: FakeNode, answer: object):
    node.answers["GET", "/visits-x/_mapping"] = (200, answer)
    with suppress(BenchctlError), lent(client, Places((), ("visits-x",))):
        pass
    assert not [line for line in asked(node) if line.startswith("DELETE")]


def test_what_stands_in_for_a_data_stream_has_its_very_name(client: SearchClient, node: FakeNode):
    node.answers["GET", "/_all/_alias"] = (200, {"visits-x": {}, ".ds-visits-y-000001": {}})
    assert stand_ins(client, ["visits-x", "visits-y"]) == ("visits-x",)
    assert stand_ins(client, []) == ()
    assert len(node.seen) == 1


def documents(**changes: str) -> Documents:
    return Documents(source_file="f", document_count=1, **changes)  # type: ignore[arg-type]


def test_places_are_what_is_declared_and_what_documents_go_to_beside_that():
    corpora = (Corpus("c", (documents(target_index="readers"), documents(target_index="more"))),)
    track = Track(name="house", operations={}, digest="t", indices=TRACK.indices, corpora=corpora)
    assert places(track).names == ("readers", "fines", "more")
    assert places(track).shards == 4
    file = CorpusFile(path="/f", documents=1, held=1, raw_bytes=1, sha256="", data_stream="visits-x")
    assert places(track, [file]).names == ("readers", "fines", "more", "visits-x")
    assert places(track, [file]).target == "readers,fines,more,visits-x"


def test_names_that_are_too_long_for_a_path_mean_everything():
    many = tuple(Index(f"index-{'x' * 40}-{number}", IndexBody()) for number in range(100))
    assert Places(many, ()).target == "_all"
    assert Places((), ()).target == "_all"
