"""OpenSearch with modules from their published jars: nodes boot, and the modules do their work."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from benchctl.engine.distribution import Installation
from benchctl.engine.equipment import equip, with_modules
from benchctl.engine.launch import starts_of
from benchctl.engine.modules import MODULES
from benchctl.home import Home
from benchctl.results.plan import EngineName, VariantSpec
from integration.conftest import QUICK_FLAGS, Boots, Start

PROPERTIES = {
    "message": {"type": "text"},
    "size": {"type": "long"},
    "price": {"type": "scaled_float", "scaling_factor": 100},
    "rank": {"type": "rank_feature"},
    "family": {"type": "join", "relations": {"parent": "child"}},
    "query": {"type": "percolator"},
    "place": {"type": "geo_shape"},
}
DOCUMENTS = [
    {"message": "GET /a", "size": 1, "price": 1.25, "rank": 1, "family": "parent", "place": "POINT (1 2)"},
    {"message": "GET /b", "size": 2, "price": 2.5, "rank": 9, "family": "parent", "place": "POINT (30 40)"},
]
AGENT = "Mozilla/5.0 (X11; Linux x86_64; rv:120.0) Gecko/20100101 Firefox/120.0"


def test_a_module_does_its_work(home: Home, installations: dict[EngineName, Installation], start: Start):
    plain = installations["opensearch"]
    installation = with_modules(home, plain, ("lang-painless",), lambda *_: None)
    assert installation.modules == ("lang-painless", "transport-netty4")
    with start("opensearch", installation=installation, starts=starts_of(home, installation)) as node:
        request = node.client.request
        (info,) = request("GET", "/_nodes/_local/plugins")["nodes"].values()
        assert {module["name"] for module in info["modules"]} == set(installation.modules)
        request("PUT", "/tiny/_doc/1", params={"refresh": "true"}, body={"size": 3})
        script = {"source": "doc['size'].value * params.factor", "params": {"factor": 2}}
        fields = {"script_fields": {"double": {"script": script}}}
        assert hits(request("POST", "/tiny/_search", body=fields))[0]["fields"] == {"double": [6]}


@pytest.mark.full
@pytest.mark.timeout(280)
@pytest.mark.parametrize("version", ["2.11.0", "2.19.1", "3.3.0"])
def test_every_published_module_does_its_work(version: str, home: Home, boots: Boots, scratch: Path):
    spec = VariantSpec("full", "opensearch", version, modules=("full",))
    found = equip(home, spec, lambda *_: None)
    installation = found.installation
    # The bundled runtime has no Thai, which one of them requires.
    assert set(installation.modules) >= set(MODULES) - {"analysis-common"}
    assert {"transport-netty4"} <= set(installation.modules)
    starts = starts_of(home, installation)
    with boots(
        "opensearch", scratch, installation=installation, jdk=found.jdk, starts=starts, jvm_flags=QUICK_FLAGS
    ) as node:
        request = node.client.request
        request("PUT", "/tiny", body={"mappings": {"properties": PROPERTIES}})
        for number, document in enumerate(DOCUMENTS):
            request("PUT", f"/tiny/_doc/{number}", body=document)
        child = {"message": "child", "family": {"name": "child", "parent": "1"}}
        request("PUT", "/tiny/_doc/2", params={"routing": "1"}, body=child)
        kept = {"query": {"match": {"message": "/a"}}}
        request("PUT", "/tiny/_doc/3", params={"refresh": "true"}, body={"query": kept["query"]})

        check_searches(request)
        ranked = {
            "requests": [
                {
                    "id": "one",
                    "request": {"query": {"match": {"message": "/a"}}},
                    "ratings": [{"_index": "tiny", "_id": "0", "rating": 1}],
                }
            ],
            "metric": {"precision": {"k": 1}},
        }
        assert request("POST", "/tiny/_rank_eval", body=ranked)["metric_score"] == 1
        pipeline = {
            "processors": [
                {"grok": {"field": "message", "patterns": ["%{WORD:verb} %{NOTSPACE:path}"]}},
                {"user_agent": {"field": "agent"}},
                {"script": {"source": "ctx.size += 1"}},
            ]
        }
        documents = [{"_source": {"message": "GET /x", "agent": AGENT, "size": 1}}]
        body = {"pipeline": pipeline, "docs": documents}
        (simulated,) = request("POST", "/_ingest/pipeline/_simulate", body=body)["docs"]
        source = simulated["doc"]["_source"]
        assert (source["verb"], source["path"], source["size"]) == ("GET", "/x", 2)
        assert source["user_agent"]["name"] == "Firefox"
        changed = {"query": {"exists": {"field": "size"}}, "script": {"source": "ctx._source.size += 10"}}
        done = request("POST", "/tiny/_update_by_query", params={"refresh": "true"}, body=changed)
        assert (done["updated"], done["failures"]) == (2, [])
        assert found_by(request, {"range": {"size": {"gt": 10}}}) == {"0", "1"}
        moved = {"source": {"index": "tiny", "query": {"term": {"size": 12}}}, "dest": {"index": "other"}}
        assert request("POST", "/_reindex", params={"refresh": "true"}, body=moved)["created"] == 1
        gone = request("POST", "/other/_delete_by_query", body={"query": {"match_all": {}}})
        assert gone["deleted"] == 1
        (info,) = request("GET", "/_nodes/_local/plugins")["nodes"].values()
        assert {module["name"] for module in info["modules"]} == set(installation.modules)


def hits(answer: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = answer["hits"]["hits"]
    return found


def found_by(request: Callable[..., Any], query: dict[str, Any]) -> set[str]:
    return {hit["_id"] for hit in hits(request("POST", "/tiny/_search", body={"query": query}))}


def check_searches(request: Callable[..., Any]) -> None:
    """Use the modules that searches need."""
    script = "doc['size'].size() > 0 && doc['size'].value > 1"
    assert found_by(request, {"script": {"script": {"source": script}}}) == {"1"}
    expression = {"lang": "expression", "source": "doc['size'] * 10"}
    scored = {"function_score": {"query": {"term": {"size": 2}}, "script_score": {"script": expression}}}
    (scored_hit,) = hits(request("POST", "/tiny/_search", body={"query": scored}))
    assert scored_hit["_score"] == pytest.approx(20)
    assert found_by(request, {"range": {"price": {"gt": 1.25}}}) == {"1"}
    assert found_by(request, {"rank_feature": {"field": "rank"}}) == {"0", "1"}
    assert found_by(request, {"has_child": {"type": "child", "query": {"match_all": {}}}}) == {"1"}
    percolated = {"field": "query", "document": {"message": "GET /a"}}
    assert found_by(request, {"percolate": percolated}) == {"3"}
    box = {"type": "envelope", "coordinates": [[0, 10], [10, 0]]}
    assert found_by(request, {"geo_shape": {"place": {"shape": box}}}) == {"0"}
    matrix = {"aggs": {"sizes": {"matrix_stats": {"fields": ["size"]}}}, "size": 0}
    assert request("POST", "/tiny/_search", body=matrix)["aggregations"]["sizes"]["doc_count"] == 2
    template = {"source": {"query": {"term": {"size": "{{wanted}}"}}}, "params": {"wanted": 2}}
    assert len(hits(request("POST", "/tiny/_search/template", body=template))) == 1
