"""What all requests of an operation have around their bodies: address, headers, deadline, retries."""

from collections.abc import Mapping
from urllib.parse import urlencode

from benchctl.load.judge import accepting
from benchctl.load.request import Judge, Request
from benchctl.track.operations.common import Operation

DEFAULT_TIMEOUT_S = 60.0
# Merging or restoring an index takes as long as it takes, and its time is what is measured.
LONG_TIMEOUT_S = 4 * 3600.0
JSON = "application/json"
NDJSON = "application/x-ndjson"


class Envelope:
    """Makes the requests of one operation.

    Args:
        operation: whose headers, deadline and retries they get.
        content_type: of their bodies.
        timeout_s: when the operation does not say.
        headers: further ones; the operation's own come before them.
    """

    def __init__(
        self,
        operation: Operation,
        *,
        content_type: str = JSON,
        timeout_s: float = DEFAULT_TIMEOUT_S,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self._timeout_s = timeout_s if operation.deadline_s is None else operation.deadline_s
        self._accepted = operation.accepted
        self._retries = operation.retry_on_429
        chosen = {"Content-Type": content_type, "Accept": JSON, **(headers or {})}
        if operation.opaque_id is not None:
            chosen["X-Opaque-Id"] = operation.opaque_id
        # Names of headers are the same in any case.
        own = {name.lower() for name in operation.headers}
        kept = {name: value for name, value in chosen.items() if name.lower() not in own}
        self._headers = tuple(f"{name}: {value}" for name, value in {**kept, **operation.headers}.items())

    def request(
        self,
        method: str,
        path: str,
        body: bytes = b"",
        *,
        judge: Judge,
        params: Mapping[str, str] | None = None,
        searches: int = 0,
        weight: int = 1,
    ) -> Request:
        """One request.

        Args:
            method: of HTTP.
            path: percent-encoded; it may have a query already.
            body: encoded.
            judge: reads its answer.
            params: more of the query, not yet encoded.
            searches: by how much the node's own count of searches grows.
            weight: units of throughput that it is worth.
        """
        if params:
            path = f"{path}{'&' if '?' in path else '?'}{urlencode(params)}"
        return Request(
            method=method,
            path=path,
            body=body,
            headers=self._headers,
            timeout_s=self._timeout_s,
            judge=accepting(judge, self._accepted),
            searches=searches,
            weight=weight,
            retries=self._retries,
        )


def with_body(request: Request, body: bytes) -> Request:
    """The same request with another body; spelt out, since it is made for every single one that is sent."""
    return Request(
        request.method,
        request.path,
        body,
        request.headers,
        request.timeout_s,
        request.judge,
        request.searches,
        request.weight,
        request.retries,
    )
