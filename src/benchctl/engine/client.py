"""Everything asked of a node that is not measured, through the engines' official Python clients."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote

from benchctl.endpoint import Endpoint
from benchctl.engine.wires import NodeRequestError, Wire, open_wire
from benchctl.results.model import SegmentFacts
from benchctl.results.plan import EngineName

REQUEST_TIMEOUT_S = 30.0
FORCE_MERGE_TIMEOUT_S = 4 * 3600.0
_EXPLAIN = "/_cluster/allocation/explain"
_REASON_LENGTH = 400


@dataclass(frozen=True)
class NodeInfo:
    """What a node says about itself.

    Attributes:
        version: of the engine.
        build: hash of the commit it was built from.
        pid: process id of the server.
    """

    version: str
    build: str
    pid: int


@dataclass(frozen=True)
class IndexStats:
    """An index's own counters, over primary shards."""

    documents: int
    store_bytes: int
    indexing_ms: int
    refresh_ms: int
    merge_ms: int
    flush_ms: int


@dataclass(frozen=True)
class MergeStats:
    """What a node merges.

    Attributes:
        current: merges that run now.
        total_ms: spent in merges since the node started.
    """

    current: int
    total_ms: int


@dataclass(frozen=True)
class CollectorStats:
    """What one garbage collector did since the node started."""

    collections: int
    time_ms: int


class SearchClient:
    """What benchctl asks of a node beside the measured requests; a context manager.

    Every method raises NodeRequestError when the node refuses or does not answer in time.

    Args:
        wire: how requests travel.
    """

    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._wire.close()

    def request(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, str] | None = None,
        body: object = None,
        timeout_s: float = REQUEST_TIMEOUT_S,
    ) -> Any:  # noqa: ANN401 - JSON of any shape
        """Send any request and give the decoded body of its answer."""
        status, answer = self._wire.send(method, path, params or {}, body, timeout_s)
        if not 200 <= status < 300:  # noqa: PLR2004 - HTTP's range of success
            raise NodeRequestError(f"{method} {path}", status, node_reason(answer))
        return answer

    def info(self) -> NodeInfo:
        """Version, build and process id; from the nodes API, since core builds refuse `GET /`."""
        node = self._local("/_nodes/_local/process")
        return NodeInfo(node["version"], node["build_hash"], node["process"]["id"])

    def health(self, index: str | None, timeout_s: float) -> str:
        """Wait, on the node's side, until its primary shards are started.

        Args:
            index: whose shards to wait for; None for every index there is.
            timeout_s: how long the node waits.

        Returns:
            `yellow` or `green`.
        """
        path = f"/_cluster/health/{_part(index)}" if index else "/_cluster/health"
        params = {"wait_for_status": "yellow", "timeout": f"{max(int(timeout_s * 1000), 1)}ms"}
        # A node answers 408 together with the state it is in; versions differ in whether that is an error.
        status, answer = self._wire.send("GET", path, params, None, timeout_s + REQUEST_TIMEOUT_S)
        found = str(answer.get("status", "")) if isinstance(answer, dict) else ""
        if found not in {"yellow", "green"}:
            reason = (
                f"health is still {found} after {timeout_s:g} s" if found == "red" else node_reason(answer)
            )
            raise NodeRequestError(f"GET {path}", status, reason)
        return found

    def unassigned(self) -> list[str]:
        """What keeps a shard from being started, as lines of a log; a node may log nothing of it."""
        try:
            return [f"Caused by: {text}" for text in _exceptions(self.request("GET", _EXPLAIN))]
        except NodeRequestError:
            return []

    def create_index(self, name: str, body: Mapping[str, Any]) -> None:
        """Create an index with settings and mappings, its primary shards started."""
        self.request("PUT", f"/{_part(name)}", body=body)

    def delete_index(self, name: str) -> None:
        """Delete an index."""
        self.request("DELETE", f"/{_part(name)}")

    def put_settings(self, name: str, settings: Mapping[str, Any]) -> None:
        """Change settings of an index; None as a value takes a setting back to its default."""
        self.request("PUT", f"/{_part(name)}/_settings", body=settings)

    def put_cluster_settings(self, settings: Mapping[str, Any]) -> None:
        """Change settings of the cluster, for as long as its data lives."""
        self.request("PUT", "/_cluster/settings", body={"persistent": settings})

    def refresh(self, name: str) -> None:
        """Make everything indexed visible to searches."""
        self.request("POST", f"/{_part(name)}/_refresh", timeout_s=FORCE_MERGE_TIMEOUT_S)

    def flush(self, name: str) -> None:
        """Commit the index, so that a later start replays no translog."""
        self.request(
            "POST",
            f"/{_part(name)}/_flush",
            params={"force": "true", "wait_if_ongoing": "true"},
            timeout_s=FORCE_MERGE_TIMEOUT_S,
        )

    def force_merge(self, name: str, segments: int, timeout_s: float = FORCE_MERGE_TIMEOUT_S) -> None:
        """Merge every shard down to a number of segments; returns when that is done."""
        self.request(
            "POST",
            f"/{_part(name)}/_forcemerge",
            params={"max_num_segments": str(segments)},
            timeout_s=timeout_s,
        )

    def index_stats(self, name: str) -> IndexStats:
        """Counters of an index, or of several together."""
        metrics = "indexing,refresh,merge,flush,docs,store"
        found = self.request("GET", f"/{_part(name)}/_stats/{metrics}")["_all"]["primaries"]
        return IndexStats(
            documents=found["docs"]["count"],
            store_bytes=found["store"]["size_in_bytes"],
            indexing_ms=found["indexing"]["index_time_in_millis"],
            refresh_ms=found["refresh"]["total_time_in_millis"],
            merge_ms=found["merges"]["total_time_in_millis"],
            flush_ms=found["flush"]["total_time_in_millis"],
        )

    def count(self, name: str) -> int:
        """Documents, those within others not counted; the node counts it as a search of every shard."""
        return int(self.request("GET", f"/{_part(name)}/_count")["count"])

    def primary_shards(self, name: str | None = None) -> int:
        """Started primary shards of an index, of several, or of all that there are."""
        path = f"/_cluster/health/{_part(name)}" if name else "/_cluster/health"
        return int(self.request("GET", path)["active_primary_shards"])

    def setting(self, name: str, setting: str) -> dict[str, str | None]:
        """A setting of an index, or of several: name of the index -> value, None for the default.

        Data streams answer with the indices behind them.
        """
        found = self.request("GET", f"/{_part(name)}/_settings", params={"flat_settings": "true"})
        return {index: one["settings"].get(setting) for index, one in found.items()}

    def translog_operations(self, name: str) -> int:
        """Operations that the translogs of the primary shards still hold, committed ones included."""
        found = self.request("GET", f"/{_part(name)}/_stats/translog")["_all"]["primaries"]
        return int(found["translog"]["operations"])

    def segments(self, name: str) -> list[SegmentFacts]:
        """The segments of the primary shards, by index, then by shard, then by segment name.

        Indices come in the order of the names, those behind a data stream by their own names.
        """
        found = self.request("GET", f"/{_part(name)}/_segments")["indices"]
        named = name.split(",")
        order = sorted(found, key=lambda index: (named.index(index) if index in named else len(named), index))
        return [segment for index in order for segment in _segments_of(found[index]["shards"])]

    def search(
        self,
        index: str,
        body: Mapping[str, Any],
        params: Mapping[str, str] | None = None,
        timeout_s: float = REQUEST_TIMEOUT_S,
    ) -> dict[str, Any]:
        """Search; the answer as the node gives it."""
        found: dict[str, Any] = self.request(
            "POST", f"/{_part(index)}/_search", params=params, body=body, timeout_s=timeout_s
        )
        return found

    def node_search_count(self) -> int:
        """Query phases the node ran since it started: one for every search and shard."""
        return int(self._local("/_nodes/_local/stats/indices/search")["indices"]["search"]["query_total"])

    def merges(self, timeout_s: float = REQUEST_TIMEOUT_S) -> MergeStats:
        """Merges on the node."""
        found = self._local("/_nodes/_local/stats/indices/merge", timeout_s)["indices"]["merges"]
        return MergeStats(found["current"], found["total_time_in_millis"])

    def garbage_collection(self) -> dict[str, CollectorStats]:
        """Collections since the node started, by collector, such as `young` and `old`."""
        collectors = self._local("/_nodes/_local/stats/jvm")["jvm"]["gc"]["collectors"]
        return {
            name: CollectorStats(found["collection_count"], found["collection_time_in_millis"])
            for name, found in collectors.items()
        }

    def _local(self, path: str, timeout_s: float = REQUEST_TIMEOUT_S) -> dict[str, Any]:
        node: dict[str, Any] = next(iter(self.request("GET", path, timeout_s=timeout_s)["nodes"].values()))
        return node


def connect(engine: EngineName, endpoint: Endpoint) -> SearchClient:
    """A client of a cluster's first host; nothing is sent before the first call."""
    return SearchClient(open_wire(engine, endpoint))


def loopback(port: int) -> Endpoint:
    """A node that benchctl started itself, by its port."""
    return Endpoint((f"http://127.0.0.1:{port}",))


def _part(name: str) -> str:
    return quote(name, safe=",*")


def _segments_of(shards: Mapping[str, Any]) -> Iterator[SegmentFacts]:
    for number in sorted(shards, key=int):
        for copy in shards[number]:
            if copy["routing"]["primary"]:
                for _, segment in sorted(copy["segments"].items(), key=_generation):
                    yield SegmentFacts(
                        segment["num_docs"], segment["size_in_bytes"], segment["version"], segment["compound"]
                    )


def _generation(segment: tuple[str, Any]) -> int:
    """Lucene numbers segments in base 36 behind an underscore."""
    return int(segment[0].removeprefix("_"), 36)


def node_reason(answer: object) -> str:
    """The innermost cause that an error answer gives, in the node's words; whatever the answer is like.

    The outer reason of a failed search is just `all shards failed`.
    """
    error = answer.get("error", answer) if isinstance(answer, dict) else answer
    cause = error
    while isinstance(cause, dict):
        deeper = _deeper_cause(cause)
        if deeper is None:
            break
        cause = deeper
    if isinstance(cause, dict) and "reason" in cause:
        text = f"{cause['type']}: {cause['reason']}" if "type" in cause else str(cause["reason"])
    else:
        text = str(cause)
    return text.strip()[:_REASON_LENGTH] or "no reason given"


def _deeper_cause(cause: dict[str, Any]) -> object:
    failed = cause.get("failed_shards")
    if isinstance(failed, list) and failed and isinstance(failed[0], dict):
        return failed[0].get("reason")
    return cause.get("caused_by")


def _exceptions(found: Any) -> Iterator[str]:  # noqa: ANN401 - JSON of any shape
    """Every exception in an answer, with those that caused it behind it."""
    if isinstance(found, dict):
        if isinstance(found.get("type"), str) and isinstance(found.get("reason"), str):
            yield f"{found['type']}: {found['reason']}"
        yield from (text for value in found.values() for text in _exceptions(value))
    elif isinstance(found, list):
        yield from (text for value in found for text in _exceptions(value))
