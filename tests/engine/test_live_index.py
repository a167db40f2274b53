"""What an index says of itself, cut to what another can be created with."""

from typing import Any

import pytest

from benchctl.engine.live_index import fields_of, read_live_index
from benchctl.errors import BenchctlError, UsageError
from live_cluster import MAPPINGS, NAME, LiveCluster


def test_settings_that_no_index_can_be_created_with_are_left_out():
    cluster = LiveCluster([], aliases={NAME: {}, "all-things": {"is_write_index": True}})
    index = read_live_index(cluster.client, NAME)
    assert dict(index.settings) == {
        "index.codec": "best_compression",
        "index.number_of_replicas": "1",
        "index.number_of_shards": "3",
    }
    assert index.left_out == ("index.lifecycle.name",)
    assert index.aliases == {"all-things": {"is_write_index": True}}
    assert not index.is_routed
    assert index.largest_page is None


def test_a_bound_of_pages_is_known():
    cluster = LiveCluster([], settings={"index.max_result_window": "500"})
    assert read_live_index(cluster.client, NAME).largest_page == 500


@pytest.mark.parametrize(
    "mappings",
    [
        {"_routing": {"required": True}},
        {"properties": {"family": {"type": "join", "relations": {"parent": "child"}}}},
    ],
)
def test_documents_may_need_routing(mappings: dict[str, Any]):
    assert read_live_index(LiveCluster([], mappings=mappings).client, NAME).is_routed


@pytest.mark.parametrize(
    ("name", "mappings", "words"),
    [
        ("nothing", {}, "no index 'nothing'"),
        ("many", {}, "'many' matches 2 indices: a, b"),
        (NAME, {"_source": {"enabled": False}}, "`_source` is disabled"),
        (NAME, {"_source": {"excludes": ["secret"]}}, "parts of its documents only"),
    ],
)
def test_what_cannot_become_a_track_is_refused(name: str, mappings: dict[str, Any], words: str):
    with pytest.raises(UsageError, match=words):
        read_live_index(LiveCluster([], mappings=mappings).client, name)


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        ({"mappings": None}, "in an unknown form: Expected `object`, got `null`"),
        ({"settings": [1]}, "in an unknown form: Expected `object`, got `array`"),
    ],
)
def test_what_no_engine_says_of_an_index_is_told(facts: dict[str, Any], words: str):
    with pytest.raises(BenchctlError, match=words):
        read_live_index(LiveCluster([], **facts).client, NAME)


@pytest.mark.parametrize("properties", ["x", {"a": 5}, {"a": {"type": ["long"]}}])
def test_mappings_of_no_known_form_are_told(properties: object):
    with pytest.raises(BenchctlError, match="not of the form that engines give them"):
        fields_of({"properties": properties})


def test_a_bound_of_pages_that_is_no_number_is_told():
    cluster = LiveCluster([], settings={"index.max_result_window": "many"})
    with pytest.raises(BenchctlError, match="not a whole number: 'many'"):
        _ = read_live_index(cluster.client, NAME).largest_page


def test_fields_have_their_paths_and_nested_ones_are_passed_over():
    assert [(path, kind) for path, kind, _ in fields_of(MAPPINGS)] == [
        ("at", "date"),
        ("kind", "keyword"),
        ("note", "text"),
        ("note.raw", "keyword"),
        ("size.height", "long"),
        ("size.hidden", "long"),
    ]
