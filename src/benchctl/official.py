"""The engines' official Python clients, with their own transports over requests that others carry."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import urllib3

from benchctl.endpoint import Endpoint
from benchctl.network import Answer

JSON = "application/json"
_NOWHERE = "http://carried:9200"  # whoever carries the requests knows where to

Carry = Callable[[str, str, bytes, Mapping[str, str], float | None], Answer]
"""Sends a request: method, path and query, body, headers, seconds it may take."""


def header_items(endpoint: Endpoint) -> dict[str, str]:
    """Return the endpoint's own header lines by name; secret."""
    pairs = (line.partition(": ") for line in endpoint.headers)
    return {name.lower(): value for name, _, value in pairs}


class _Response(NamedTuple):
    """Part of a urllib3 response that both clients read."""

    status: int
    headers: urllib3.HTTPHeaderDict
    data: bytes


class _CarriedPool:
    """A connection pool as both clients use it."""

    def __init__(self, carry: Carry) -> None:
        self._carry = carry

    def urlopen(
        self,
        method: str,
        url: str,
        body: bytes | str | None = None,
        headers: Mapping[str, str] | None = None,
        timeout: float | None = None,
        **_: object,
    ) -> _Response:
        raw = body.encode() if isinstance(body, str) else body or b""
        answer = self._carry(method, url, raw, headers or {}, timeout)
        received = urllib3.HTTPHeaderDict(answer.headers)
        received.discard("warning")  # opensearch-py would make a Python warning of it
        return _Response(answer.status, received, answer.body)

    def close(self) -> None:
        """Do nothing: the connections belong to whoever carries the requests."""


def elasticsearch_over(carry: Carry) -> Any:
    """Return an elasticsearch-py client whose requests `carry` sends; it retries nothing."""
    import elasticsearch  # noqa: PLC0415 - it takes a while to load

    client = elasticsearch.Elasticsearch(_NOWHERE, max_retries=0, retry_on_timeout=False)
    (node,) = client.transport.node_pool.all()
    vars(node)["pool"] = _CarriedPool(carry)
    return client


def opensearch_over(carry: Carry) -> Any:
    """Return an opensearch-py client whose requests `carry` sends; it retries nothing."""
    import opensearchpy  # noqa: PLC0415 - it takes a while to load

    client = opensearchpy.OpenSearch([_NOWHERE], max_retries=0, retry_on_timeout=False)
    (connection,) = client.transport.connection_pool.connections
    connection.headers.setdefault("accept", JSON)
    connection.pool = _CarriedPool(carry)
    return client
