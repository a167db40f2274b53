"""What is read of mappings and settings as in force; both engines' answers are cut to what matters."""

from typing import Any

import msgspec
import pytest

from benchctl.engine.client import NodeRequestError, SearchClient
from benchctl.engine.in_force import read_in_force, state_of
from benchctl.results.model import InForce, SegmentFacts

MAPPING = {
    "_data_stream_timestamp": {"enabled": True},
    "date_detection": False,
    "properties": {"log": {"properties": {"path": {"type": "keyword"}}}, "message": {"type": "text"}},
}
MODE, ENABLED = (f"search.concurrent_segment_search.{word}" for word in ("mode", "enabled"))
PARALLEL = "search.query_phase_parallel_collection_enabled"


class Client(SearchClient):
    """Answers what indices and nodes have; nothing else."""

    def __init__(
        self,
        *settings: dict[str, Any],
        defaults: dict[str, Any] | None = None,
        cluster: dict[str, Any] | None = None,
        mappings: dict[str, Any] | None = None,
    ) -> None:
        names = [f"i{number}" for number in range(len(settings))]
        own = {
            name: {"settings": one, "defaults": defaults or {}}
            for name, one in zip(names, settings, strict=True)
        }
        mapped = {name: {"mappings": MAPPING if mappings is None else mappings} for name in names}
        self.answers = {"/i/_settings": own, "/i/_mapping": mapped, "/_cluster/settings": cluster or {}}

    def read(self, path: str, form: Any, **_: Any) -> Any:
        if path not in self.answers:
            raise NodeRequestError(path, 403, "no")
        return msgspec.convert(self.answers[path], form)

    def segments(self, name: str) -> list[SegmentFacts]:
        return [SegmentFacts(1, 1, "9", compound) for _ in name.split(",") for compound in (False, True)]


def usual(*settings: dict[str, Any], **parts: Any) -> dict[str, str]:
    return read_in_force(Client(*settings, **parts), "i", "prepared").usual


def test_what_an_index_was_given_is_there_without_what_every_index_has():
    given = {
        "index.codec": "best_compression", "index.uuid": "u", "index.version.created": "1",
        "index.creation_date": "2", "index.provided_name": "i", "index.replication.type": "DOCUMENT",
        "index.query.default_field": ["message"],
    }  # fmt: skip
    found = read_in_force(
        Client(given, defaults={"index.refresh_interval": "1s", "index.codec": "default", "index.x": "1"}),
        "i",
        "prepared",
    )
    assert found.given == {
        "index:codec": "best_compression",
        "index:query.default_field": '["message"]',
        "mapping:_data_stream_timestamp.enabled": "true",
        "mapping:date_detection": "false",
        "mapping:log.path.type": "keyword",
        "mapping:message.type": "text",
    }
    assert found.usual == {
        "index:refresh_interval": "1s",
        "merge policy": "tiered",
        "search concurrency": "off",
        "segments": "2",
        "compound segments": "1",
        "largest segment": "50% of the index",
    }


def test_of_several_indices_all_values_are_there():
    found = read_in_force(Client({"index.codec": "default"}, {"index.codec": "zstd"}), "i", "empty")
    assert found.given["index:codec"] == "default | zstd"
    # Segments that every fork makes are a result.
    assert "segments" not in found.usual


@pytest.mark.parametrize(
    ("index", "defaults", "nodes", "policy"),
    [
        ({}, {"index.merge.policy.type": "UNSET"}, {}, "log_byte_size"),
        ({"index.merge.policy.type": "tiered"}, {"index.merge.policy.type": "UNSET"}, {}, "tiered"),
        ({}, {"index.merge.policy": "default"}, {}, "tiered"),
        ({"index.merge.policy": "log_byte_size"}, {}, {}, "log_byte_size"),
        ({}, {"index.merge.policy": "default"},
         {"indices.time_series_index.default_index_merge_policy": "log_byte_size"}, "log_byte_size"),
    ],
)  # fmt: skip
def test_a_data_stream_is_merged_as_its_engine_says(
    index: dict[str, Any], defaults: dict[str, Any], nodes: dict[str, Any], policy: str
):
    assert usual(index, defaults=defaults, cluster={"defaults": nodes})["merge policy"] == policy
    plain = usual({}, defaults=defaults, cluster={"defaults": nodes}, mappings={})
    assert plain["merge policy"] == "tiered"


@pytest.mark.parametrize(
    ("index", "cluster", "mode"),
    [
        ({}, {"defaults": {PARALLEL: "true"}}, "on"),
        ({}, {"defaults": {PARALLEL: "false"}}, "off"),
        ({}, {"defaults": {MODE: "auto", ENABLED: "false"}}, "auto"),
        ({}, {"defaults": {MODE: "none", ENABLED: "true"}}, "on"),
        ({}, {"persistent": {MODE: "all"}, "defaults": {MODE: "auto"}}, "on"),
        ({f"index.{MODE}": "none"}, {"transient": {MODE: "all"}}, "off"),
    ],
)
def test_several_threads_of_a_search_are_called_the_same_on_both_engines(
    index: dict[str, Any], cluster: dict[str, Any], mode: str
):
    assert usual(index, cluster=cluster)["search concurrency"] == mode


def test_a_cluster_may_show_nothing():
    client = Client({})
    del client.answers["/_cluster/settings"]
    assert state_of(client, "i", "prepared") == InForce()


def test_of_what_a_cluster_was_set_to_only_what_costs_time_is_there():
    own = {"search.max_buckets": 9, "cluster.remote.prod.seeds": ["10.0.0.1:9300"]}
    found = read_in_force(Client({}, cluster={"persistent": own}, mappings={}), "i", "prepared")
    assert found.given == {"setting:search.max_buckets": "9"}
