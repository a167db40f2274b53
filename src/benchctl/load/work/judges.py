"""Judges, which read responses after the clock has stopped: which one, the path that was asked says."""

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from fnmatch import fnmatchcase
from typing import Annotated, Any, NamedTuple, TypeVar
from urllib.parse import quote, unquote_plus

import msgspec

from benchctl.load.transport import Answer, Judge
from benchctl.results.samples import Outcome
from benchctl.track.operations import UNKNOWN_TYPE, names_unknown

# Judges: they decode only what a sample keeps, and never raise.

RUNNING = frozenset({"INIT", "RUNNING"})
"""States of an asynchronous search of OpenSearch's that is not done."""

_NOT_ALL = "the results are incomplete (is_partial)"
_GAVE_UP = "the engine timed out (timed_out)"
_Response = TypeVar("_Response")
_REASON_LENGTH = 300
_HTTP_OK = range(200, 300)
_BAD_REQUEST = 400
_METHOD_NOT_ALLOWED = 405
_REQUEST_TIMEOUT = 408
_TOO_MANY_REQUESTS = 429


# The bounds are those of the sample columns; no search engine answers beyond them.
_MOST_SHARDS = 2**15 - 1
_MOST_HITS = 2**63 - 1
_Int16 = Annotated[int, msgspec.Meta(ge=0, le=_MOST_SHARDS)]
_Int32 = Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]
_Int64 = Annotated[int, msgspec.Meta(ge=0, le=_MOST_HITS)]


class _Total(msgspec.Struct, gc=False):
    value: _Int64
    relation: str = "eq"


class _Hits(msgspec.Struct, gc=False):
    total: _Total | _Int64 | None = None  # a bare number where rest_total_hits_as_int is asked for


class _Shards(msgspec.Struct, gc=False):
    failed: _Int16 = 0
    total: int = -1  # unknown where the engine did not say


class _SearchResponse(msgspec.Struct, gc=False):
    took: _Int32
    hits: _Hits = msgspec.field(default_factory=_Hits)
    shards: _Shards = msgspec.field(name="_shards", default_factory=_Shards)
    timed_out: bool = False


class _Profiled(msgspec.Struct, gc=False):
    time_in_nanos: int
    description: str = ""  # of an aggregation, its name


class _ProfiledSearch(msgspec.Struct, gc=False):
    query: list[_Profiled] = []


class _ProfiledShard(msgspec.Struct, gc=False):
    searches: list[_ProfiledSearch] = []
    aggregations: list[_Profiled] = []


class _Profile(msgspec.Struct, gc=False):
    shards: list[_ProfiledShard] = []


class _ProfiledResponse(msgspec.Struct, gc=False):
    profile: _Profile = msgspec.field(default_factory=_Profile)


class _BatchResponse(msgspec.Struct, gc=False):
    took: _Int32
    responses: list[msgspec.Raw]


class _Status(msgspec.Struct, gc=False):
    status: int = 0


class _BulkResponse(msgspec.Struct, gc=False):
    errors: bool
    took: _Int32 = -1
    # Only decoded when something failed; empty where the answer was filtered.
    items: msgspec.Raw = msgspec.Raw()


class _Item(msgspec.Struct):
    status: int = 0  # filtered out of an answer that only names what was refused
    error: msgspec.Raw = msgspec.Raw(b"null")


class _Cause(msgspec.Struct):
    type: str | None = None
    reason: str | None = None
    root_cause: list["_Cause"] = []


class _ErrorResponse(msgspec.Struct):
    error: _Cause | str


class _HealthResponse(msgspec.Struct, gc=False):
    status: str
    timed_out: bool = False


class _Snapshot(msgspec.Struct, gc=False):
    shards: _Shards = msgspec.field(default_factory=_Shards)
    state: str = "SUCCESS"  # a restored one has none


class _Document(msgspec.Struct, gc=False):
    error: msgspec.Raw = msgspec.Raw()


class _Stated(msgspec.Struct, gc=False):
    """The keys by which responses other than those of searches state how it went."""

    count: _Int64 | None = None
    shards: _Shards | None = msgspec.field(name="_shards", default=None)
    task: str | None = None  # instead of them, when it goes on behind the answer
    snapshot: _Snapshot | None = None
    accepted: bool | None = None  # instead of it, when it goes on behind the answer
    took: _Int32 = -1
    timed_out: bool = False
    canceled: str = ""  # who or what ended it before it was done
    is_partial: bool = False
    failures: list[msgspec.Raw] = []
    docs: list[_Document] = []  # of several documents, by id


class _BegunResponse(msgspec.Struct, gc=False):
    is_running: bool = False
    is_partial: bool = False
    state: str = ""
    response: msgspec.Raw = msgspec.Raw()
    error: msgspec.Raw = msgspec.Raw()


_decode_search = msgspec.json.Decoder(_SearchResponse).decode
_decode_profile = msgspec.json.Decoder(_ProfiledResponse).decode
_decode_status = msgspec.json.Decoder(_Status).decode
_decode_items = msgspec.json.Decoder(list[dict[str, _Item]]).decode
_decode_error = msgspec.json.Decoder(_ErrorResponse).decode
_decode_health = msgspec.json.Decoder(_HealthResponse).decode
# Nesting deeper than the interpreter's stack is as undecodable as broken JSON.
UNDECODABLE: tuple[type[Exception], ...] = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


# Both engines write took, timed_out, _shards and the total before this key, so an answer that begins like one
# that was read in full says the same: a lookup costs a quarter of reading 1.5 kB, and no more for 1 MB. It
# has to close as many brackets at its end, too: one that was cut off between two hits closes fewer.
_AFTER_TOTAL = b'"max_score"'
_LONGEST_BEGINNING = 400
_BRACKETS = b"]}"
_LONGEST_END = 16
_MOST_REMEMBERED = 4096
_judged_before: dict[bytes, Answer] = {}


def judge_search(status: int, body: bytes) -> Answer:
    """Judge a search by its HTTP status and complete body."""
    if status not in _HTTP_OK:
        return refusal(status, body)
    # Empty, and so unknown, where the key is missing.
    beginning = body[: max(body.find(_AFTER_TOTAL, 0, _LONGEST_BEGINNING), 0)]
    end = body[-_LONGEST_END:]
    frame = beginning and beginning + end[len(end.rstrip(_BRACKETS)) :]
    cached = _judged_before.get(frame)
    if cached is not None:
        return cached
    try:
        response = _decode_search(body)
    except UNDECODABLE as err:
        return Answer(Outcome.BAD_BODY, reason=shorten(f"not a search response: {err}"))
    answer = _judged(response)
    if answer.outcome is Outcome.OK and frame:
        if len(_judged_before) >= _MOST_REMEMBERED:
            _judged_before.clear()
        _judged_before[frame] = answer
    return answer


def judge_profiled(status: int, body: bytes) -> Answer:
    """Judge a search as `judge_search` does, and keep what its profile says; nothing of an unknown form."""
    answer = judge_search(status, body)
    if answer.outcome is not Outcome.OK:
        return answer
    try:
        shards = _decode_profile(body).profile.shards
    except UNDECODABLE:
        return answer
    spent_ns = Counter({"query": 0, "aggs": 0})
    for shard in shards:
        spent_ns["query"] += sum(part.time_in_nanos for search in shard.searches for part in search.query)
        for aggregation in shard.aggregations:
            spent_ns["aggs"] += aggregation.time_in_nanos
            if aggregation.description:
                spent_ns[f"aggs.{aggregation.description}"] += aggregation.time_in_nanos
    return msgspec.structs.replace(answer, profile_ns=spent_ns)


def judge_plain(status: int, body: bytes) -> Answer:
    """Judge any other request: by its status, unless the body begins with what contradicts that."""
    if status not in _HTTP_OK:
        return refusal(status, body)
    beginning = body[:_LONGEST_BEGINNING].lstrip()
    if beginning.startswith(b"<"):
        return Answer(
            Outcome.BAD_BODY,
            reason=shorten(f"not a response of an engine: {beginning.decode(errors='replace')}"),
        )
    if beginning.startswith(b'{"error"'):
        return Answer(Outcome.BAD_BODY, reason=_error_reason(status, body))
    if beginning.startswith(b'{"acknowledged":false'):
        return Answer(Outcome.TIMEOUT, reason="not acknowledged by all nodes in time (acknowledged: false)")
    return Answer(Outcome.OK)


def accepting(judge: Judge, statuses: Collection[int]) -> Judge:
    """Return a judge that accepts these statuses like 200."""
    if not statuses:
        return judge

    def judge_leniently(status: int, body: bytes) -> Answer:
        return Answer(Outcome.OK) if status in statuses else judge(status, body)

    return judge_leniently


def judge_health(status: int, body: bytes) -> Answer:
    """Judge cluster health: on a timeout, the node still answers with its current state."""
    if status not in _HTTP_OK and status != _REQUEST_TIMEOUT:
        return refusal(status, body)
    try:
        response = _decode_health(body)
    except UNDECODABLE as err:
        return Answer(Outcome.BAD_BODY, reason=shorten(f"not a health response: {err}"))
    if response.timed_out or status == _REQUEST_TIMEOUT:
        return Answer(
            Outcome.TIMEOUT, reason=f"the awaited state was not reached; health is {response.status}"
        )
    return Answer(Outcome.OK)


def judging(kind: type[_Response], name: str, verdict: Callable[[_Response], Answer]) -> Judge:
    """Make a judge of answers of one form; one that cannot be decoded, by the verdict neither, is bad."""
    decode = msgspec.json.Decoder(kind).decode

    def judge(status: int, body: bytes) -> Answer:
        if status not in _HTTP_OK:
            return refusal(status, body)
        try:
            return verdict(decode(body))
        except UNDECODABLE as err:
            return Answer(Outcome.BAD_BODY, reason=shorten(f"not {name}: {err}"))

    return judge


def _judge_batch(found: _BatchResponse) -> Answer:
    answers = [_judge_one(raw) for raw in found.responses]
    failed = next((answer for answer in answers if answer.outcome is not Outcome.OK), None)
    are_counted = all(answer.hits >= 0 for answer in answers)
    hits = sum(answer.hits for answer in answers)
    if hits > _MOST_HITS:
        return Answer(Outcome.BAD_BODY, reason=f"{hits} hits of all searches are beyond any index")
    return Answer(
        failed.outcome if failed else Outcome.OK,
        found.took,
        hits if are_counted else -1,
        hits_exact=are_counted and all(answer.hits_exact for answer in answers),
        # Any number says the same as so many of them.
        failed_shards=min(sum(answer.failed_shards for answer in answers), _MOST_SHARDS),
        reason=failed.reason if failed else "",
        tooks_ms=tuple(answer.took_ms for answer in answers),
    )


def _judge_documents(found: _BulkResponse) -> Answer:
    if not found.errors:
        if bytes(found.items) == b"[]":
            return Answer(Outcome.BAD_BODY, reason="no document was indexed: the response has no items")
        return Answer(Outcome.OK, found.took)
    items = (item for outcomes in _decode_items(found.items) for item in outcomes.values())
    refused = [
        item
        for item in items
        if bytes(item.error) != b"null" or (item.status and item.status not in _HTTP_OK)
    ]
    if not refused:
        reason = "errors is true, but no item has an error"
    else:
        first = bytes(refused[0].error)[:_REASON_LENGTH].decode(errors="replace")
        reason = f"{len(refused)} documents were refused, the first with {first}"
    return Answer(Outcome.PARTIAL, found.took, reason=shorten(reason))


def _judge_stated(stated: _Stated) -> Answer:
    snapshot = stated.snapshot or _Snapshot()
    shards = stated.shards or snapshot.shards
    failed = stated.failures or [document.error for document in stated.docs if bytes(document.error)]
    reason = ""
    if stated.canceled:
        reason = f"it was cancelled: {stated.canceled}"
    elif failed:
        first = bytes(failed[0])[:_REASON_LENGTH].decode(errors="replace")
        reason = f"{len(failed)} parts failed, the first with {first}"
    elif stated.is_partial:
        reason = _NOT_ALL
    elif snapshot.state != "SUCCESS":
        reason = f"the snapshot is {snapshot.state}, {shards.failed} shards failed"
    if stated.timed_out:
        return Answer(Outcome.TIMEOUT, stated.took, reason=_GAVE_UP)
    if reason:
        return Answer(Outcome.PARTIAL, stated.took, failed_shards=shards.failed, reason=shorten(reason))
    if stated.count is not None:
        return msgspec.structs.replace(_searched(shards), hits=stated.count, hits_exact=True)
    return msgspec.structs.replace(_of_shards(shards.failed), took_ms=stated.took)


def _stating(*required: str) -> Judge:
    """Return a judge of the keys of `_Stated`, of which a response must have one of those required."""

    def verdict(stated: _Stated) -> Answer:
        if required and all(getattr(stated, name) is None for name in required):
            return Answer(Outcome.BAD_BODY, reason=f"no {' or '.join(required)} in the response")
        return _judge_stated(stated)

    return judging(_Stated, "a response of the engine", verdict)


def _judge_begun(found: _BegunResponse) -> Answer:
    if found.is_running or found.state in RUNNING:
        return Answer(Outcome.OK)
    if error := bytes(found.error).decode(errors="replace"):
        return Answer(Outcome.HTTP_ERROR, reason=shorten(error))
    answer = judge_search(_HTTP_OK[0], bytes(found.response))
    if answer.outcome is Outcome.OK and found.is_partial:
        return msgspec.structs.replace(answer, outcome=Outcome.PARTIAL, reason=_NOT_ALL)
    return answer


def _of_shards(failed: int) -> Answer:
    if not failed:
        return Answer(Outcome.OK)
    return Answer(Outcome.PARTIAL, failed_shards=failed, reason=f"{failed} shards failed")


judge_multi_search = judging(_BatchResponse, "a response to several searches", _judge_batch)
"""Judges a batch: the hits of all its searches, and the first outcome that is not OK."""

judge_bulk = judging(_BulkResponse, "a bulk response", _judge_documents)
"""Judges a bulk request: a single refused document makes it partial."""


def refusal(status: int, body: bytes) -> Answer:
    """Return the answer for a status outside of 2xx."""
    outcome = Outcome.REJECTED if status == _TOO_MANY_REQUESTS else Outcome.HTTP_ERROR
    return Answer(outcome, reason=_error_reason(status, body))


def _searched(shards: _Shards) -> Answer:
    if shards.total == 0:
        return Answer(Outcome.PARTIAL, reason="nothing was searched: no index matches (no shards)")
    return _of_shards(shards.failed)


def _judged(found: _SearchResponse) -> Answer:
    total = found.hits.total
    failed = found.shards.failed
    searched = _searched(found.shards)
    outcome, reason = searched.outcome, searched.reason
    if found.timed_out:
        outcome, reason = Outcome.TIMEOUT, _GAVE_UP
    if total is None:
        hits, exact = -1, False
    elif isinstance(total, int):
        hits, exact = total, True
    else:
        hits, exact = total.value, total.relation == "eq"
    return Answer(outcome, found.took, hits, exact, failed, reason)


def _judge_one(raw: msgspec.Raw) -> Answer:
    """Outcome of a search in a batch: a response, or an error with its own status."""
    body = bytes(raw)
    try:
        status = _decode_status(body).status
    except UNDECODABLE:
        status = 0
    return judge_search(status or 200, body)


def is_unsupported(status: int, body: bytes) -> str | None:
    """Return the node's reason why it cannot do an operation at all, such as an unknown aggregation.

    None for any other response, other errors included. A status of 200 may hold such errors of its parts.
    """
    if status not in (_BAD_REQUEST, _METHOD_NOT_ALLOWED, _HTTP_OK[0]):
        return None
    try:
        causes = list(_causes(msgspec.json.decode(body)))
    except UNDECODABLE:
        return None
    # The sentence that names the unknown thing says more than the type that stands beside it.
    named = [cause for cause in causes if names_unknown(cause[1])]
    typed = [cause for cause in causes if cause[0] == UNKNOWN_TYPE]
    return next((_describe(*cause) for cause in named + typed), None)


# Keys that lead to an error: of the response, of its parts, of shards, and of the error itself; what a query
# does not say of itself, its shards may: why a script could not be loaded.
_TO_ERRORS = (
    "responses", "items", "index", "create", "update", "delete", "_shards", "failures", "error", "root_cause",
    "caused_by", "failed_shards", "reason",
)  # fmt: skip


def _causes(response: Any) -> Iterator[tuple[str, str]]:
    """Yield type and reason of every error in a response."""
    # Without recursion: an answer may be nested as deeply as it likes.
    waiting = [response]
    while waiting:
        current = waiting.pop()
        if isinstance(current, list):
            waiting.extend(reversed(current))
        elif isinstance(current, dict):
            error, kind, reason = (current.get(key) for key in ("error", "type", "reason"))
            if isinstance(error, str):
                yield "", error
            if isinstance(kind, str) or isinstance(reason, str):
                yield kind if isinstance(kind, str) else "", reason if isinstance(reason, str) else ""
            waiting.extend(current[key] for key in reversed(_TO_ERRORS) if key in current)


def _describe(kind: str | None, reason: str | None) -> str:
    return shorten(": ".join(part for part in (kind, reason) if part))


def _error_reason(status: int, body: bytes) -> str:
    """The node's words about an error, after the status."""
    try:
        error = _decode_error(body).error
    except UNDECODABLE:
        text = body[:_REASON_LENGTH].decode(errors="replace").strip()
        return shorten(f"HTTP {status}: {text}" if text else f"HTTP {status}")
    if isinstance(error, str):
        return shorten(f"HTTP {status}: {error}")
    # The outer error is often no more than "all shards failed".
    cause = error.root_cause[0] if error.root_cause else error
    return shorten(f"HTTP {status}: {_describe(cause.type, cause.reason)}")


def shorten(text: str) -> str:
    """Return a reason on one line, truncated."""
    flat = " ".join(text.split())
    return flat if len(flat) <= _REASON_LENGTH else flat[: _REASON_LENGTH - 3] + "..."


# Forms of requests: which judge reads the response to a path, and which fields that judge needs.

_FILTER = "filter_path="


class _Kind(NamedTuple):
    methods: str
    path: str  # pattern of the whole path, without slashes at its ends
    judge: Judge
    needs: str  # fields of a response, as `filter_path` writes them


_SHARDS = "_shards.total _shards.failed"
_SEARCH = f"took timed_out {_SHARDS}"
_OF_SEARCHES = " ".join(f"responses.{name}" for name in f"status error {_SEARCH}".split())
_OF_BEGUN = " ".join(f"response.{name}" for name in _SEARCH.split())

_KINDS = (
    _Kind(
        "GET POST",
        r"(.+/)?(_search(/scroll(/[^/]+)?|/template)?|_knn_search|_rollup_search|_fleet_search)",
        judge_search,
        _SEARCH,
    ),
    _Kind(
        "GET POST", r"(.+/)?(_msearch(/template)?|_fleet_msearch)", judge_multi_search, f"took {_OF_SEARCHES}"
    ),
    _Kind("POST PUT", r"(.+/)?_bulk", judge_bulk, "took errors items.*.error"),
    _Kind("GET POST", r"(.+/)?_count", _stating("count"), f"count {_SHARDS}"),
    _Kind(
        "GET POST",
        r"(.+/)?(_refresh|_flush|_forcemerge|_cache/clear)",
        _stating("shards", "task"),
        f"task {_SHARDS}",
    ),
    _Kind("POST", r"(.+/)?(_pit|_search/point_in_time)", _stating(), f"id pit_id {_SHARDS}"),
    _Kind("POST PUT DELETE", r"[^/]+/(_doc|_create|_update)(/[^/]+)?", _stating(), _SHARDS),
    _Kind(
        "GET POST",
        r"(.+/)?(_async_search|_plugins/_asynchronous_search)(/[^/]+)?",
        judging(_BegunResponse, "an asynchronous search", _judge_begun),
        f"id is_running is_partial state error {_OF_BEGUN}",
    ),
    _Kind(
        "POST",
        r"(.+/)?(_update_by_query|_delete_by_query|_reindex)",
        _stating(),
        "took timed_out canceled failures task",
    ),
    _Kind("GET POST", r"(.+/)?(_field_caps|_mget)", _stating(), "failures docs.error"),
    _Kind("POST", r"_query|(.+/)?_eql/search", _stating(), "took is_partial timed_out"),
    _Kind("GET", r"_cluster/health(/.+)?", judge_health, "status timed_out"),
    _Kind(
        "PUT POST",
        r"_snapshot/[^/]+/[^_/][^/]*(/_restore)?",
        _stating("snapshot", "accepted"),
        "accepted snapshot.state snapshot.shards.failed",
    ),
)


def _kind_of(method: str, path: str) -> _Kind | None:
    plain = path.partition("?")[0].strip("/")
    kinds = (kind for kind in _KINDS if method in kind.methods.split() and re.fullmatch(kind.path, plain))
    return next(kinds, None)


def judge_of(method: str, path: str) -> Judge:
    """Return the judge of a request's response; `path` may have a query."""
    kind = _kind_of(method, path)
    return judge_plain if kind is None else kind.judge


def answerable(method: str, path: str, reads: Collection[str] = ()) -> str:
    """Return the path whose `filter_path` lets through what the response is judged by.

    Args:
        method: of the request.
        path: with its query, percent-encoded.
        reads: further fields that the operation needs, as `filter_path` writes them.
    """
    plain, mark, query = path.partition("?")
    if _FILTER not in query:
        return path
    kind = _kind_of(method, path)
    needs = (*(() if kind is None else kind.needs.split()), *reads)
    parts = [_widened(part, needs) if part.startswith(_FILTER) else part for part in query.split("&")]
    return plain + mark + "&".join(part for part in parts if part != _FILTER)


def _widened(parameter: str, needs: Iterable[str]) -> str:
    """`filter_path` without exclusions of what is needed, and with it where only some fields are included."""
    patterns = [text for text in unquote_plus(parameter[len(_FILTER) :]).split(",") if text]
    excluded = [text for text in patterns if text.startswith("-") and not _hides(text[1:], needs)]
    included = [text for text in patterns if not text.startswith("-")]
    if included:
        included += [name for name in needs if name not in included]
    return _FILTER + quote(",".join(included + excluded), safe=",*")


def _hides(pattern: str, needs: Iterable[str]) -> bool:
    """Return whether an exclusion takes one of these fields, or what they are in, away."""
    return any(fnmatchcase(name, hidden) for name in needs for hidden in (pattern, f"{pattern}.*"))
