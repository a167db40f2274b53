"""Searches that are suggested for an index find something in it."""

from collections.abc import Mapping
from typing import Any

from benchctl.engine.live_index import Operation, read_live_index, suggest_operations
from live_cluster import NAME, LiveCluster

DOCUMENTS: list[dict[str, Any]] = [
    {"at": 1_700_000_000_000 + number, "kind": "ab"[number % 3 == 0], "size": {"height": number}}
    for number in range(40)
]


def suggested(cluster: LiveCluster) -> dict[str, Operation]:
    found = suggest_operations(cluster.client, read_live_index(cluster.client, NAME))
    return {operation["name"]: operation for operation in found}


def test_what_the_mappings_have_is_searched_for():
    found = suggested(LiveCluster(DOCUMENTS))
    assert list(found) == ["default", "term-kind", "terms-kind", "range-at", "sort-desc-at"]
    assert found["term-kind"]["body"] == {"query": {"term": {"kind": {"value": "a"}}}}
    assert found["terms-kind"]["cache"] is False
    (limits,) = found["range-at"]["body"]["query"]["range"].values()
    assert limits == {"gte": 1_700_000_000_010, "lte": 1_700_000_000_030, "format": "epoch_millis"}


def test_without_a_date_a_number_does():
    found = suggested(LiveCluster([{"size": {"height": number}} for number in range(8)]))
    assert list(found) == ["default", "range-size.height", "sort-desc-size.height"]


def test_what_the_node_cannot_do_is_not_suggested():
    assert list(suggested(LiveCluster(DOCUMENTS, no_aggregations=True))) == ["default"]


class OddCluster(LiveCluster):
    def _aggregation(self, body: Mapping[str, Any]) -> dict[str, Any]:
        del body
        return {"buckets": [{"key": {}, "doc_count": "many"}], "values": [1]}


def test_what_the_node_says_in_a_form_of_its_own_is_not_suggested():
    assert list(suggested(OddCluster(DOCUMENTS))) == ["default"]
