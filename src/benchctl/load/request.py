"""What goes over the wire and what came of it, as the driver's parts hand it to each other."""

from collections.abc import Callable

import msgspec

from benchctl.results.samples import Outcome


class Answer(msgspec.Struct, frozen=True, gc=False):
    """What a response says.

    Attributes:
        outcome: how the request ended.
        took_ms: the engine's own time; -1 unknown.
        hits: total hits; -1 when the engine was told not to count, or did not say.
        hits_exact: whether it counted them all.
        failed_shards: shards that failed.
        reason: the engine's words about a failure, shortened; empty when there was none.
        lacking: why the operation cannot be asked at all, where the driver knows that without the node; else
            empty.
        weight: units of throughput that an operation of several requests was worth, which only its end tells.
        unit: what they are, where the operation says so; else empty.
    """

    outcome: Outcome
    took_ms: int = -1
    hits: int = -1
    hits_exact: bool = False
    failed_shards: int = 0
    reason: str = ""
    lacking: str = ""
    weight: int = 1
    unit: str = ""


Judge = Callable[[int, bytes], Answer]
"""Reads an answer: HTTP status and whole body."""


class Request(msgspec.Struct, frozen=True, gc=False, eq=False):
    """One request, ready for the wire.

    Attributes:
        method: HTTP method.
        path: path and query, percent-encoded.
        body: the encoded body; empty for none.
        headers: whole header lines.
        timeout_s: seconds until it counts as timed out.
        judge: reads its answer.
        searches: by how much the node's own count of searches grows.
        weight: units of throughput that it is worth.
        retries: how often it is sent again when the node rejects it as too many.
    """

    method: str
    path: str
    body: bytes
    headers: tuple[str, ...]
    timeout_s: float
    judge: Judge
    searches: int = 0
    weight: int = 1
    retries: int = 0


class Exchange(msgspec.Struct, frozen=True, gc=False):
    """One request on the wire, whatever came of it.

    Attributes:
        start_ns: just before it was handed to libcurl, on the monotonic clock.
        connect_ns: time to connect; 0 on the kept-alive connection.
        first_byte_ns: from start to the first byte of the response; 0 when there was none.
        end_ns: the last byte of the body, or the failure.
        status: HTTP status; 0 when there was no response.
        body: the body, as far as it came.
        response_bytes: its length.
        failure: what went wrong on the wire; None when a whole response came, errors by HTTP included.
        detail: libcurl's words about the failure.
    """

    start_ns: int
    connect_ns: int
    first_byte_ns: int
    end_ns: int
    status: int
    body: bytes
    response_bytes: int
    failure: Outcome | None = None
    detail: str = ""
