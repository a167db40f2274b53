"""Everything asked of a node that is not measured, through the engines' official Python clients."""

import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote, urlencode

import elasticsearch

from benchctl.endpoint import Endpoint
from benchctl.errors import BenchctlError
from benchctl.network import MOST_ANSWER_BYTES, Answer, Courier, Trouble, Unanswered
from benchctl.official import JSON, Carry, elasticsearch_over, opensearch_over
from benchctl.results.model import SegmentFacts
from benchctl.results.plan import EngineName

TOO_DEEP = "its JSON is nested too deeply to be read"
"""Why an answer is none that no engine would give, and whatever stands in its place may."""

_NO_JSON = "its answer is not JSON"

_log = logging.getLogger(__name__)


class NodeRequestError(BenchctlError):
    """A node refused a request, or gave no answer.

    Attributes:
        request: method and path.
        status: HTTP status; 0 when there was no answer.
        reason: the node's own words, the innermost cause first.
        trouble: why there was no answer, where the network knows; else None.
    """

    def __init__(self, request: str, status: int, reason: str, *, trouble: Trouble | None = None) -> None:
        answer = f"was answered with status {status}" if status else "got no answer"
        super().__init__(f"{request} {answer}: {reason}")
        self.request = request
        self.status = status
        self.reason = reason
        self.trouble = trouble


class ClientWire:
    """Requests to a cluster's first host; nothing is sent before the first, and nothing is retried.

    The clients' transports are used, beneath their typed methods: both take the same paths, and ask for plain
    JSON whatever the server's major version.

    Args:
        engine: whose client.
        endpoint: the cluster, or its address.
        most_bytes: of an answer.
    """

    def __init__(
        self, engine: EngineName, endpoint: Endpoint | str, *, most_bytes: int = MOST_ANSWER_BYTES
    ) -> None:
        endpoint = Endpoint.of(endpoint)
        self._host = endpoint.hosts[0]
        self._headers = endpoint.headers
        self._most_bytes = most_bytes
        self._courier = Courier(ca=endpoint.ca, verify=endpoint.verify)
        self._ask = (_Elasticsearch if engine == "elasticsearch" else _OpenSearch)(self._carry)

    def send(
        self, method: str, path: str, params: Mapping[str, str], body: object, timeout_s: float
    ) -> tuple[int, Any]:
        """Give status and decoded body of any answer.

        Args:
            method: of HTTP.
            path: percent-encoded.
            params: of the query.
            body: what is sent as JSON; None for nothing.
            timeout_s: for all of it, however long the node itself may take.

        Raises:
            NodeRequestError: there was no answer, or none that can be read.
        """
        try:
            return self._ask(method, f"{path}?{urlencode(params)}" if params else path, body, timeout_s)
        except (Unanswered, UnicodeDecodeError) as err:
            raise NodeRequestError(f"{method} {path}", 0, _NO_JSON, trouble=Trouble.NO_JSON) from err
        except RecursionError as err:
            raise NodeRequestError(f"{method} {path}", 0, TOO_DEEP) from err

    def close(self) -> None:
        """Close the connections."""
        self._courier.close()

    def _carry(
        self, method: str, target: str, body: bytes, headers: Mapping[str, str], timeout_s: float | None
    ) -> Answer:
        lines = [f"{name}: {value}" for name, value in headers.items()]
        try:
            answer = self._courier.ask(
                method,
                self._host + target,
                headers=[*lines, *self._headers],
                body=body,
                deadline_s=timeout_s,
                most_bytes=self._most_bytes,
            )
        except Unanswered as err:
            request = f"{method} {target.partition('?')[0]}"
            raise NodeRequestError(request, 0, err.text, trouble=err.trouble) from err
        if "warning" in answer.headers:
            _log.info("%s %s: the node warns: %s", method, target, answer.headers["warning"])
        return answer


class _Elasticsearch:
    """A request through elasticsearch-py."""

    def __init__(self, carry: Carry) -> None:
        self._client = elasticsearch_over(carry)

    def __call__(self, method: str, target: str, body: object, timeout_s: float) -> tuple[int, Any]:
        headers = {"accept": JSON, **({} if body is None else {"content-type": JSON})}
        try:
            answer = self._client.transport.perform_request(
                method,
                target,
                body=body,
                headers=headers,
                request_timeout=timeout_s,
                # Said here, because what the client's constructor is told holds for its typed methods only.
                max_retries=0,
                retry_on_timeout=False,
            )
        except elasticsearch.SerializationError as err:
            raise Unanswered(Trouble.NO_JSON, _NO_JSON) from err
        return answer.meta.status, answer.body


class _OpenSearch:
    """A request through opensearch-py."""

    def __init__(self, carry: Carry) -> None:
        # It takes a while to load, which a run on a cluster of the other engine need not wait for.
        import opensearchpy  # noqa: PLC0415 - see above

        self._errors = opensearchpy.exceptions
        self._client = opensearch_over(carry)

    def __call__(self, method: str, target: str, body: object, timeout_s: float) -> tuple[int, Any]:
        try:
            return 200, self._client.transport.perform_request(method, target, body=body, timeout=timeout_s)
        except self._errors.SerializationError as err:
            raise Unanswered(Trouble.NO_JSON, _NO_JSON) from err
        except self._errors.TransportError as err:
            return int(err.status_code), err.info


# What is asked.

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

    def __init__(self, wire: ClientWire) -> None:
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
    return SearchClient(ClientWire(engine, endpoint))


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
    if isinstance(found, dict):
        if isinstance(found.get("type"), str) and isinstance(found.get("reason"), str):
            yield f"{found['type']}: {found['reason']}"
        yield from (text for value in found.values() for text in _exceptions(value))
    elif isinstance(found, list):
        yield from (text for value in found for text in _exceptions(value))
