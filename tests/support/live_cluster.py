"""A cluster with one index, for the tests of what copies it; it fails on request."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

from benchctl.engine.client import NodeRequestError, SearchClient

NAME = "things"

SETTINGS: Mapping[str, Any] = {
    "index.codec": "best_compression",
    "index.creation_date": "1700000000000",
    "index.lifecycle.name": "thirty-days",
    "index.number_of_replicas": "1",
    "index.number_of_shards": "3",
    "index.provided_name": "things",
    "index.routing.allocation.include._tier_preference": "data_content",
    "index.uuid": "abc",
    "index.version.created": "8110099",
}

MAPPINGS: Mapping[str, Any] = {
    "properties": {
        "at": {"type": "date"},
        "kind": {"type": "keyword"},
        "note": {"type": "text", "fields": {"raw": {"type": "keyword", "doc_values": False}}},
        "parts": {"type": "nested", "properties": {"name": {"type": "keyword"}}},
        "size": {"properties": {"height": {"type": "long"}, "hidden": {"type": "long", "index": False}}},
    }
}


@dataclass
class LiveCluster:
    """The wire to it.

    Attributes:
        documents: sources, in the index's order.
        settings: of the index, flat.
        mappings: of the index.
        routing: of every document; None for none.
        fail_page: number of the page, from 1, whose shards fail; 0 for none.
        empty_page: number of the page that comes without hits.
        without_source: documents come without theirs.
        scrolls: how many are open.
    """

    documents: Sequence[Mapping[str, Any]]
    settings: Mapping[str, Any] = field(default_factory=lambda: dict(SETTINGS))
    mappings: Mapping[str, Any] = field(default_factory=lambda: dict(MAPPINGS))
    routing: str | None = None
    fail_page: int = 0
    empty_page: int = 0
    without_source: bool = False
    _pages: int = 0
    scrolls: int = 0
    _left: list[dict[str, Any]] = field(default_factory=list)
    _total: int = 0
    _size: int = 0

    @property
    def client(self) -> SearchClient:
        client = SearchClient("elasticsearch", "http://127.0.0.1:1")
        vars(client)["send"] = self.send  # nothing goes over the network
        return client

    def send(
        self, method: str, path: str, params: Mapping[str, str], body: Any, timeout_s: float
    ) -> tuple[int, Any]:
        del timeout_s
        match method, unquote(path):
            case "GET", found:
                return self._described(found, params)
            case "POST", "/_search/scroll":
                return 200, self._page()
            case "DELETE", "/_search/scroll":
                self.scrolls -= 1
                return 200, {}
            case "POST", found if found == f"/{NAME}/_search":
                return self._search(params, body)
        raise NodeRequestError(f"{method} {path}", 0, "the stand-in does not know this")

    def close(self) -> None:
        pass

    def _described(self, path: str, params: Mapping[str, str]) -> tuple[int, Any]:
        if path == f"/{NAME}/_count":
            return 200, {"count": len(self.documents)}
        assert params == {"flat_settings": "true"}
        index = {"settings": self.settings, "mappings": self.mappings, "aliases": {}}
        indices = {f"/{NAME}": {"things-000001": index}, "/many": {"a": {}, "b": {}}}
        if path in indices:
            return 200, indices[path]
        return 404, {"error": {"type": "index_not_found_exception", "reason": "no such index"}}

    def _search(self, params: Mapping[str, str], body: Mapping[str, Any]) -> tuple[int, Any]:
        assert params == {"scroll": "5m"}
        found = [hit for place, hit in enumerate(self._hits()) if self._scored(place, body)]
        self.scrolls += 1
        self._left, self._total, self._size = found, len(found), body["size"]
        return 200, self._page()

    def _page(self) -> dict[str, Any]:
        hits, self._left = self._left[: self._size], self._left[self._size :]
        self._pages += 1
        number = self._pages
        answer = _answer([] if number == self.empty_page else hits, self._total)
        answer["_shards"]["failed"] = int(number == self.fail_page)
        return {**answer, "_scroll_id": f"scroll-{number}"}

    def _hits(self) -> list[dict[str, Any]]:
        routing = {} if self.routing is None else {"_routing": self.routing}
        return [
            {"_id": str(place), **({} if self.without_source else {"_source": source}), **routing}
            for place, source in enumerate(self.documents)
        ]

    def _scored(self, place: int, body: Mapping[str, Any]) -> bool:
        if "min_score" not in body:
            return True
        seed = body["query"]["function_score"]["random_score"]["seed"]
        drawn = int.from_bytes(hashlib.sha256(f"{seed}/{place}".encode()).digest()[:3], "big") / 2**24
        return bool(drawn >= body["min_score"])


def _answer(hits: list[dict[str, Any]], total: int) -> dict[str, Any]:
    return {
        "timed_out": False,
        "_shards": {"total": 3, "failed": 0},
        "hits": {"total": {"value": total, "relation": "eq"}, "hits": hits},
    }
