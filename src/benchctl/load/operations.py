"""What is asked and how it was answered: requests encoded before the clock, answers judged after it."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated
from urllib.parse import quote, urlencode

import msgspec

from benchctl.results.samples import Outcome
from benchctl.track.model import Operation
from benchctl.track.refusal import UNKNOWN_TYPE, names_unknown

DEFAULT_TIMEOUT_S = 60.0
_REASON_LENGTH = 300
_HTTP_OK = range(200, 300)
_BAD_REQUEST = 400
_TOO_MANY_REQUESTS = 429


@dataclass(frozen=True)
class Request:
    """One request, ready for the wire.

    Attributes:
        method: HTTP method.
        path: path and query, percent-encoded.
        body: the encoded body; empty for none.
        headers: whole header lines.
        timeout_s: seconds until it counts as timed out.
    """

    method: str
    path: str
    body: bytes
    headers: tuple[str, ...]
    timeout_s: float


class Answer(msgspec.Struct, frozen=True, gc=False):
    """What a response says.

    Attributes:
        outcome: how the request ended.
        took_ms: the engine's own time; -1 unknown.
        hits: total hits; -1 when the engine was told not to count, or did not say.
        hits_exact: whether it counted them all.
        failed_shards: shards that failed.
        reason: the engine's words about a failure, shortened; empty when there was none.
    """

    outcome: Outcome
    took_ms: int = -1
    hits: int = -1
    hits_exact: bool = False
    failed_shards: int = 0
    reason: str = ""


# The bounds are those of the sample columns: an answer beyond them is not one of a search engine.
_Int16 = Annotated[int, msgspec.Meta(ge=0, le=2**15 - 1)]
_Int32 = Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]
_Int64 = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]


class _Total(msgspec.Struct, gc=False):
    value: _Int64
    relation: str = "eq"


class _Hits(msgspec.Struct, gc=False):
    total: _Total | _Int64 | None = None  # a bare number where rest_total_hits_as_int is asked for


class _Shards(msgspec.Struct, gc=False):
    failed: _Int16 = 0


class _SearchResponse(msgspec.Struct, gc=False):
    took: _Int32
    hits: _Hits = msgspec.field(default_factory=_Hits)
    shards: _Shards = msgspec.field(name="_shards", default_factory=_Shards)
    timed_out: bool = False


class _Cause(msgspec.Struct):
    type: str | None = None
    reason: str | None = None
    root_cause: list["_Cause"] = []
    caused_by: "_Cause | None" = None


class _ErrorResponse(msgspec.Struct):
    error: _Cause | str


_decode_search = msgspec.json.Decoder(_SearchResponse).decode
_decode_error = msgspec.json.Decoder(_ErrorResponse).decode
# Nesting deeper than the interpreter's stack is as undecodable as broken JSON.
_UNDECODABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


def prepare(operation: Operation, index_name: str) -> Request:
    """Encode an operation once, before anything is measured.

    Args:
        operation: what to ask.
        index_name: the index to ask when the operation names none.
    """
    path = f"/{quote(operation.index or index_name, safe=',*')}/_search"
    params = operation.url_params
    if params:
        path = f"{path}?{urlencode(params)}"
    timeout_s = operation.request_timeout
    return Request(
        method="POST",
        path=path,
        body=msgspec.json.encode(operation.body),
        headers=("Content-Type: application/json", "Accept: application/json"),
        timeout_s=DEFAULT_TIMEOUT_S if timeout_s is None else timeout_s,
    )


def judge(status: int, body: bytes) -> Answer:
    """Say how a search ended that was answered; decodes only what a sample keeps, and never raises.

    Args:
        status: the HTTP status.
        body: the whole body.
    """
    if status not in _HTTP_OK:
        outcome = Outcome.REJECTED if status == _TOO_MANY_REQUESTS else Outcome.HTTP_ERROR
        return Answer(outcome, reason=_error_reason(status, body))
    try:
        found = _decode_search(body)
    except _UNDECODABLE as err:
        return Answer(Outcome.BAD_BODY, reason=_shorten(f"not a search response: {err}"))
    total = found.hits.total
    failed = found.shards.failed
    outcome, reason = Outcome.OK, ""
    if found.timed_out:
        outcome, reason = Outcome.TIMEOUT, "the engine gave up before it was done (timed_out)"
    elif failed:
        outcome, reason = Outcome.PARTIAL, f"{failed} shards failed"
    if total is None:
        hits, exact = -1, False
    elif isinstance(total, int):
        hits, exact = total, True
    else:
        hits, exact = total.value, total.relation == "eq"
    return Answer(outcome, found.took, hits, exact, failed, reason)


def is_unsupported(status: int, body: bytes) -> str | None:
    """Say in the node's words why it cannot do an operation at all: an aggregation that it lacks, say.

    Returns:
        The node's error type and reason; None when the response is anything else, other errors included.
    """
    if status != _BAD_REQUEST:
        return None
    try:
        error = _decode_error(body).error
    except _UNDECODABLE:
        return None
    causes = list(_causes(_Cause(reason=error) if isinstance(error, str) else error))
    # The sentence that names the unknown thing says more than the type that stands beside it.
    named = [cause for cause in causes if names_unknown(cause.reason or "")]
    typed = [cause for cause in causes if cause.type == UNKNOWN_TYPE]
    return next((_describe(cause) for cause in named + typed), None)


def _causes(cause: _Cause) -> Iterator[_Cause]:
    yield cause
    for root in cause.root_cause:
        yield from _causes(root)
    if cause.caused_by is not None:
        yield from _causes(cause.caused_by)


def _describe(cause: _Cause) -> str:
    return _shorten(": ".join(part for part in (cause.type, cause.reason) if part))


def _error_reason(status: int, body: bytes) -> str:
    try:
        error = _decode_error(body).error
    except _UNDECODABLE:
        text = body[:_REASON_LENGTH].decode(errors="replace").strip()
        return _shorten(f"HTTP {status}: {text}" if text else f"HTTP {status}")
    if isinstance(error, str):
        return _shorten(f"HTTP {status}: {error}")
    # The outer error is often no more than "all shards failed".
    cause = error.root_cause[0] if error.root_cause else error
    return _shorten(f"HTTP {status}: {_describe(cause)}")


def _shorten(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= _REASON_LENGTH else flat[: _REASON_LENGTH - 3] + "..."
