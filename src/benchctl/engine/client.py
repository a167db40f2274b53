"""Unmeasured requests to a node, through the engines' official Python clients."""

import logging
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self, TypeVar
from urllib.parse import quote, urlencode

import elasticsearch
import msgspec

from benchctl.endpoint import Endpoint
from benchctl.errors import BenchctlError
from benchctl.network import MAX_ANSWER_BYTES, Answer, Courier, Trouble, Unanswered
from benchctl.official import JSON, Carry, elasticsearch_over, header_items, opensearch_over
from benchctl.results.model import SegmentFacts
from benchctl.results.plan import EngineName

TOO_DEEP = "its JSON is nested too deeply to be read"
"""No engine answers like this, but whatever listens in its place may."""

_NO_JSON = "its response is not JSON"

T = TypeVar("T")

_log = logging.getLogger(__name__)


class NodeRequestError(BenchctlError):
    """The refusal of a request by a node, or the lack of an answer."""

    def __init__(self, request: str, status: int, reason: str, *, trouble: Trouble | None = None) -> None:
        answer = f"got status {status}" if status else "got no response"
        super().__init__(f"{request} {answer}: {reason}")
        self.request = request
        self.status = status  # HTTP status; 0 when there was no answer
        self.reason = reason  # the node's own words, from the innermost cause
        self.trouble = trouble  # why there was no answer, if the network layer knows


class _Elasticsearch:
    def __init__(self, carry: Carry) -> None:
        self.errors = (elasticsearch.TransportError, UnicodeDecodeError)
        self._client = elasticsearch_over(carry)

    def perform(self, method: str, target: str, body: object, timeout_s: float) -> tuple[int, Any]:
        answer = self._client.transport.perform_request(
            method,
            target,
            body=body,
            headers={"accept": JSON, **({} if body is None else {"content-type": JSON})},
            request_timeout=timeout_s,
            # The constructor's values apply to its typed methods only.
            max_retries=0,
            retry_on_timeout=False,
        )
        return answer.meta.status, answer.body


class _OpenSearch:
    def __init__(self, carry: Carry) -> None:
        # Slow to import, and not needed for clusters of the other engine.
        import opensearchpy  # noqa: PLC0415 - see above

        self.errors = (opensearchpy.OpenSearchException,)
        self._refusals = opensearchpy.TransportError
        self._client = opensearch_over(carry)

    def perform(self, method: str, target: str, body: object, timeout_s: float) -> tuple[int, Any]:
        try:
            return 200, self._client.transport.perform_request(method, target, body=body, timeout=timeout_s)
        except self._refusals as err:
            if isinstance(err.status_code, int):
                return err.status_code, err.info
            raise


REQUEST_TIMEOUT_S = 30.0
FORCE_MERGE_TIMEOUT_S = 4 * 3600.0
_EXPLAIN = "/_cluster/allocation/explain"
_REASON_LENGTH = 400


@dataclass(frozen=True)
class NodeInfo:
    """A node's own report: version, hash of the commit it was built from, process id."""

    version: str
    build: str
    pid: int


STATISTICS: Mapping[str, str] = {
    "searches": "search.query_total",
    "indexing_ms": "indexing.index_time_in_millis",
    "refresh_ms": "refresh.total_time_in_millis",
    "merge_ms": "merges.total_time_in_millis",
    "flush_ms": "flush.total_time_in_millis",
}
"""Statistics of indices, and where they are; times and counts are since the node was started."""

WRITE_CLOCKS = ("indexing_ms", "refresh_ms", "merge_ms", "flush_ms")
"""Keys of STATISTICS in milliseconds of writing threads."""


def _sections(names: Iterable[str]) -> str:
    """The parts of the statistics that hold some values, and not much more."""
    return ",".join(
        dict.fromkeys(STATISTICS[name].partition(".")[0].replace("merges", "merge") for name in names)
    )


class Nodes(msgspec.Struct):
    """The form of what the nodes API answers."""

    nodes: dict[str, dict[str, Any]]


class _Count(msgspec.Struct):
    count: int


class _Health(msgspec.Struct):
    active_primary_shards: int


class _Settings(msgspec.Struct):
    settings: dict[str, Any]


class _Segment(msgspec.Struct):
    num_docs: int
    size_in_bytes: int
    version: str
    compound: bool


class _Routing(msgspec.Struct):
    primary: bool


class _ShardCopy(msgspec.Struct):
    routing: _Routing
    segments: dict[str, _Segment]


class _Shards(msgspec.Struct):
    shards: dict[int, list[_ShardCopy]]


class _Segments(msgspec.Struct):
    indices: dict[str, _Shards]


class _Process(msgspec.Struct):
    id: int


class _LocalNode(msgspec.Struct):
    version: str
    build_hash: str
    process: _Process


class _Local(msgspec.Struct):
    nodes: dict[str, _LocalNode]


class _AllIndices(msgspec.Struct):
    all: dict[str, Any] = msgspec.field(name="_all")


class SearchClient:
    """Unmeasured requests to a cluster's first host; connects lazily, retries nothing; a context manager.

    Uses the clients' transports, beneath their typed methods: both take the same paths, and ask for plain
    JSON whatever the server's major version. An answer has at most `max_bytes`. Every method raises
    NodeRequestError when the node refuses or does not answer in time.
    """

    def __init__(
        self, engine: EngineName, endpoint: Endpoint | str, *, max_bytes: int = MAX_ANSWER_BYTES
    ) -> None:
        endpoint = Endpoint.of(endpoint)
        self._host = endpoint.hosts[0]
        self._headers = header_items(endpoint)
        self._max_bytes = max_bytes
        self._answered = threading.local()
        self._courier = Courier.to(endpoint)
        self._transport = (_Elasticsearch if engine == "elasticsearch" else _OpenSearch)(self._carry)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._courier.close()

    def request(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, str] | None = None,
        body: object = None,
        timeout_s: float = REQUEST_TIMEOUT_S,
    ) -> Any:
        """Send any request and return the decoded body of its answer."""
        return self._answer(method, path, params, body, timeout_s)[1]

    def read(
        self,
        path: str,
        form: type[T],
        *,
        params: Mapping[str, str] | None = None,
        timeout_s: float = REQUEST_TIMEOUT_S,
    ) -> T:
        """Get an answer of a form, numbers in text included; one of another form is an error."""
        status, answer = self._answer("GET", path, params, None, timeout_s)
        try:
            return msgspec.convert(answer, form, strict=False)
        except msgspec.ValidationError as err:
            reason = f"the response does not have the expected form: {err}"
            raise NodeRequestError(f"GET {path}", status, reason) from err

    def _answer(
        self, method: str, path: str, params: Mapping[str, str] | None, body: object, timeout_s: float
    ) -> tuple[int, Any]:
        status, answer = self.send(method, path, params or {}, body, timeout_s)
        is_page = isinstance(answer, str) and answer.lstrip().startswith("<")
        if is_page or not 200 <= status < 300:  # noqa: PLR2004 - HTTP's range of success
            raise NodeRequestError(f"{method} {path}", status, node_reason(answer))
        return status, answer

    def send(
        self, method: str, path: str, params: Mapping[str, str], body: object, timeout_s: float
    ) -> tuple[int, Any]:
        """Return status and decoded body of any answer.

        `path` is percent-encoded, `body` is sent as JSON unless None, and `timeout_s` includes the node's own
        waiting.

        Raises:
            NodeRequestError: If there was no answer, or an unreadable one.
        """
        target = f"{path}?{urlencode(params)}" if params else path
        try:
            return self._transport.perform(method, target, body, timeout_s)
        except RecursionError as err:
            raise NodeRequestError(f"{method} {path}", 0, TOO_DEEP) from err
        except self._transport.errors as err:
            cause = err.__context__
            if isinstance(cause, Unanswered):
                raise NodeRequestError(f"{method} {path}", 0, cause.text, trouble=cause.trouble) from err
            status = int(getattr(self._answered, "status", 0))
            raise NodeRequestError(f"{method} {path}", status, _NO_JSON, trouble=Trouble.NO_JSON) from err

    def _carry(
        self, method: str, target: str, body: bytes, headers: Mapping[str, str], timeout_s: float | None
    ) -> Answer:
        answer = self._courier.ask(
            method,
            self._host + target,
            headers={**headers, **self._headers},
            body=body,
            deadline_s=timeout_s,
            max_bytes=self._max_bytes,
        )
        self._answered.status = answer.status
        if "warning" in answer.headers:
            _log.info("%s %s: the node warns: %s", method, target, answer.headers["warning"])
        if not answer.headers.get("content-type", "").startswith("text/"):
            return answer
        # The clients decode texts, such as a gateway's page, as UTF-8 whatever their charset.
        return answer._replace(body=answer.body.decode("utf-8", "replace").encode())

    def info(self) -> NodeInfo:
        """Return version, build and process id; from the nodes API, since core builds refuse `GET /`."""
        (node,) = self.read("/_nodes/_local/process", _Local).nodes.values()
        return NodeInfo(node.version, node.build_hash, node.process.id)

    def health(self, index: str | None, timeout_s: float) -> str:
        """Wait, on the node's side, until primary shards are started: those of an index, or of all for None.

        Returns:
            `yellow` or `green`; `red` if they are not yet.
        """
        path = f"/_cluster/health/{_part(index)}" if index else "/_cluster/health"
        params = {"wait_for_status": "yellow", "timeout": f"{max(int(timeout_s * 1000), 1)}ms"}
        # On 408 the body has the current state; versions differ in whether it is an error body.
        status, answer = self.send("GET", path, params, None, timeout_s + REQUEST_TIMEOUT_S)
        response = answer if isinstance(answer, dict) else {}
        state = str(response.get("status", ""))
        if state not in {"yellow", "green", "red"}:
            raise NodeRequestError(f"GET {path}", status, node_reason(answer))
        return state

    def unassigned(self) -> list[str]:
        """Return why a shard cannot be started, as log lines; a node may log nothing about it."""
        try:
            return [f"Caused by: {text}" for text in _exceptions(self.request("GET", _EXPLAIN))]
        except NodeRequestError:
            return []

    def create_index(self, name: str, body: Mapping[str, Any]) -> None:
        """Create an index, and wait until its primary shards are started."""
        self.request("PUT", f"/{_part(name)}", body=body)

    def put_settings(self, name: str, settings: Mapping[str, Any]) -> None:
        """Change settings of an index; None resets a setting to its default."""
        self.request("PUT", f"/{_part(name)}/_settings", body=settings)

    def put_cluster_settings(self, settings: Mapping[str, Any]) -> None:
        """Change settings of the cluster persistently."""
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

    def write_clocks_of(self, name: str) -> dict[str, float]:
        """Return WRITE_CLOCKS, milliseconds, of the primary shards of an index, or the sum over several."""
        path = f"/{_part(name)}/_stats/{_sections(WRITE_CLOCKS)}"
        indices = self.read(path, _AllIndices).all
        return {clock: number_at(indices, f"primaries.{STATISTICS[clock]}") or 0 for clock in WRITE_CLOCKS}

    def count(self, name: str) -> int:
        """Return the number of documents, not nested; the node counts it as a search of every shard."""
        return self.read(f"/{_part(name)}/_count", _Count).count

    def primary_shards(self, name: str | None = None) -> int:
        """Return how many primary shards are started of an index, of several, or of all."""
        path = f"/_cluster/health/{_part(name)}" if name else "/_cluster/health"
        return self.read(path, _Health).active_primary_shards

    def setting(self, name: str, setting: str) -> dict[str, Any]:
        """Return a setting of one or several indices: index name -> value, None for the default.

        Data streams answer with their backing indices.
        """
        by_index = self.read(
            f"/{_part(name)}/_settings", dict[str, _Settings], params={"flat_settings": "true"}
        )
        return {index: one.settings.get(setting) for index, one in by_index.items()}

    def translog_operations(self, name: str) -> int:
        """Return operations in the translogs of all copies of shards, committed ones included."""
        indices = self.read(f"/{_part(name)}/_stats/translog", _AllIndices).all
        return int(number_at(indices, "total.translog.operations") or 0)

    def segments(self, name: str) -> list[SegmentFacts]:
        """Return the segments of the primary shards, by index, shard and segment name.

        Indices come in the order of the names, those behind a data stream by their own names.
        """
        by_index = self.read(f"/{_part(name)}/_segments", _Segments).indices
        named = name.split(",")
        order = sorted(
            by_index, key=lambda index: (named.index(index) if index in named else len(named), index)
        )
        return [segment for index in order for segment in _segments_of(by_index[index].shards)]

    def search(
        self,
        index: str,
        body: Mapping[str, Any],
        params: Mapping[str, str] | None = None,
        timeout_s: float = REQUEST_TIMEOUT_S,
    ) -> dict[str, Any]:
        """Search, and return the answer as the node gives it."""
        answer: dict[str, Any] = self.request(
            "POST", f"/{_part(index)}/_search", params=params, body=body, timeout_s=timeout_s
        )
        return answer

    def statistics(self, *names: str) -> dict[str, float]:
        """Return values of STATISTICS, summed over the nodes; what one does not report is missing."""
        nodes = self.read(f"/_nodes/stats/indices/{_sections(names)}", Nodes).nodes.values()
        values = {name: [number_at(node, f"indices.{STATISTICS[name]}") for node in nodes] for name in names}
        return {
            name: sum(value or 0 for value in each)
            for name, each in values.items()
            if each and None not in each
        }

    def node_search_count(self) -> int:
        """Return how many query phases the nodes ran since they started: one for every search and shard."""
        return int(self.statistics("searches")["searches"])


def loopback(port: int) -> Endpoint:
    """Return the endpoint of a node that benchctl started itself."""
    return Endpoint((f"http://127.0.0.1:{port}",))


def _part(name: str) -> str:
    return quote(name, safe=",*")


def _segments_of(shards: Mapping[int, Sequence[_ShardCopy]]) -> Iterator[SegmentFacts]:
    for _, copies in sorted(shards.items()):
        for copy in copies:
            if copy.routing.primary:
                for _, segment in sorted(copy.segments.items(), key=lambda one: _segment_number(one[0])):
                    yield SegmentFacts(
                        segment.num_docs, segment.size_in_bytes, segment.version, segment.compound
                    )


def _segment_number(name: str) -> tuple[int, str]:
    """Order names by their number, which Lucene writes in base 36 after an underscore; others come first."""
    digits = name.removeprefix("_")
    return (int(digits, 36) if digits.isascii() and digits.isalnum() else -1), name


def number_at(value: object, path: str) -> int | float | None:
    """Return the number at a dotted path of an answer; None where there is none."""
    for part in path.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def node_reason(answer: object) -> str:
    """Return the innermost cause in an error answer, in the node's words; accepts any answer.

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
    elif isinstance(cause, dict):
        # Gateways of AWS write it either way.
        text = str(cause.get("message") or cause.get("Message") or cause)
    else:
        text = str(cause)
    return text.strip()[:_REASON_LENGTH] or "no reason given"


def _deeper_cause(cause: dict[str, Any]) -> object:
    failed = cause.get("failed_shards")
    if isinstance(failed, list) and failed and isinstance(failed[0], dict):
        return failed[0].get("reason")
    return cause.get("caused_by")


def _exceptions(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        if isinstance(value.get("type"), str) and isinstance(value.get("reason"), str):
            yield f"{value['type']}: {value['reason']}"
        yield from (text for inner in value.values() for text in _exceptions(inner))
    elif isinstance(value, list):
        yield from (text for inner in value for text in _exceptions(inner))
