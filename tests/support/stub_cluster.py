"""A cluster that `--target` measures in no time: no Java, and searches that can be held up."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from engine.fake_node import FakeNode, fake_node

DOCUMENTS = 1_000
SEARCHED = ("POST", "/big5/_search")
_NODE = {
    "version": "2.11.0",
    "build_hash": "4dcad6dd1fd45b6bd91f041a041829c8687278fa",
    "jvm": {"vm_vendor": "Temurin", "version": "21", "input_arguments": [], "start_time_in_millis": 1},
}
_FOUND = {
    "took": 1,
    "timed_out": False,
    "_shards": {"total": 1, "successful": 1, "failed": 0},
    "hits": {"total": {"value": 7, "relation": "eq"}, "hits": []},
}


@contextmanager
def stub_cluster(searched: Callable[[int], object] = lambda _: None) -> Iterator[FakeNode]:
    """One node of OpenSearch with the index of big5 that finds the same whatever it is asked.

    Args:
        searched: told of every search, by its number from 1, before it is answered.
    """
    count, counting = 0, threading.Lock()

    def search() -> dict[str, Any]:
        nonlocal count
        with counting:
            count += 1
            number = count
        searched(number)
        return _FOUND

    segments = {"_0": {"num_docs": DOCUMENTS, "size_in_bytes": 1, "version": "9.7.0", "compound": False}}
    shard = {"routing": {"primary": True}, "segments": segments}
    with fake_node() as node:
        node.answers = {
            ("GET", "/"): (200, {"version": {"lucene_version": "9.7.0"}}),
            ("GET", "/_nodes/jvm,plugins"): (200, {"nodes": {"n": _NODE}}),
            ("GET", "/_nodes/jvm"): (200, {"nodes": {"n": _NODE}}),
            ("GET", "/_nodes/stats/indices/search"): (
                200,
                lambda: {"nodes": {"n": {"indices": {"search": {"query_total": count}}}}},
            ),
            ("GET", "/big5/_stats/docs"): (
                200,
                {"indices": {"big5": {"primaries": {"docs": {"count": DOCUMENTS}}}}},
            ),
            ("GET", "/big5/_settings"): (
                200,
                {"big5": {"settings": {"index.number_of_shards": "1"}}},
            ),
            ("GET", "/big5/_segments"): (200, {"indices": {"big5": {"shards": {"0": [shard]}}}}),
            SEARCHED: (200, search),
        }
        yield node
