"""The engines' official Python clients: an endpoint in their words, and requests that others carry."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple
from urllib.parse import urlencode

from benchctl.endpoint import Endpoint, system_trust
from benchctl.network import Answer, Trouble, Unanswered

JSON = "application/json"
_NOWHERE = "http://carried:9200"  # whoever carries the requests knows where to

Carry = Callable[[str, str, bytes, Mapping[str, str], float | None], Answer]
"""Sends a request: method, path and query, body, headers, seconds it may take; raises Unanswered."""


def header_items(endpoint: Endpoint) -> dict[str, str]:
    """The endpoint's own header lines; secret."""
    pairs = (line.partition(": ") for line in endpoint.headers)
    return {name.lower(): value for name, _, value in pairs}


def tls_options(endpoint: Endpoint) -> dict[str, Any]:
    """Whose certificates to believe; nothing without TLS."""
    if not endpoint.is_encrypted:
        return {}
    if not endpoint.verify:
        return {"verify_certs": False, "ssl_show_warn": False}
    trust = system_trust()
    return {"ca_certs": str(endpoint.ca or trust.file or trust.folder)}


class _NodeAnswer(NamedTuple):
    """What elasticsearch-py's transport takes from a connection."""

    meta: Any
    body: bytes


def elasticsearch_over(carry: Carry) -> Any:
    """elasticsearch-py with requests that somebody else carries; it retries nothing."""
    import elasticsearch  # noqa: PLC0415 - it takes a while to load
    from elastic_transport import (  # noqa: PLC0415 - as above
        ApiResponseMeta,
        BaseNode,
        ConnectionError,  # noqa: A004 - its own
        ConnectionTimeout,
        HttpHeaders,
    )

    class Node(BaseNode):
        def perform_request(
            self,
            method: str,
            target: str,
            body: bytes | None = None,
            headers: HttpHeaders | None = None,
            request_timeout: Any = None,
        ) -> Any:
            timeout_s = float(request_timeout) if isinstance(request_timeout, int | float) else None
            try:
                found = carry(method, target, body or b"", headers or {}, timeout_s)
            except Unanswered as err:
                kind = ConnectionTimeout if err.trouble is Trouble.TIMEOUT else ConnectionError
                raise kind(err.text) from err
            said = HttpHeaders(found.headers)
            return _NodeAnswer(
                ApiResponseMeta(found.status, "1.1", said, found.took_s, self.config), found.body
            )

        def close(self) -> None:
            """The connection is not its own."""

    return elasticsearch.Elasticsearch(_NOWHERE, node_class=Node, max_retries=0, retry_on_timeout=False)


def opensearch_over(carry: Carry) -> Any:
    """opensearch-py with requests that somebody else carries; it retries nothing."""
    import opensearchpy  # noqa: PLC0415 - it takes a while to load

    class Connection(opensearchpy.Connection):
        def perform_request(  # noqa: PLR0917 - the library's signature
            self,
            method: str,
            url: str,
            params: Mapping[str, Any] | None = None,
            body: bytes | str | None = None,
            timeout: float | None = None,
            ignore: Any = (),
            headers: Mapping[str, str] | None = None,
        ) -> Any:
            target = f"{url}?{urlencode(params)}" if params else url
            said = {"accept": JSON, **self.headers, **(headers or {})}
            raw = body.encode() if isinstance(body, str) else body or b""
            try:
                found = carry(method, target, raw, said, timeout)
            except Unanswered as err:
                if err.trouble is Trouble.TIMEOUT:
                    raise opensearchpy.ConnectionTimeout("TIMEOUT", err.text, None) from err
                raise opensearchpy.ConnectionError("N/A", err.text, None) from err
            text = found.body.decode("utf-8", "surrogatepass")
            if not (200 <= found.status < 300) and found.status not in ignore:  # noqa: PLR2004 - HTTP's
                self._raise_error(found.status, text, found.headers.get("content-type"))
            return found.status, found.headers, text

    return opensearchpy.OpenSearch(
        [_NOWHERE], connection_class=Connection, max_retries=0, retry_on_timeout=False
    )
