"""How unmeasured requests travel to a node: through the engines' official Python clients."""

import logging
from collections.abc import Mapping
from typing import Any, Protocol
from urllib.parse import urlencode

import elasticsearch

from benchctl.endpoint import Endpoint
from benchctl.errors import BenchctlError
from benchctl.official import header_items, tls_options
from benchctl.results.plan import EngineName

TOO_DEEP = "its JSON is nested too deeply to be read"
"""Why an answer is none that no engine would give, and whatever stands in its place may."""

_log = logging.getLogger(__name__)


class NodeRequestError(BenchctlError):
    """A node refused a request, or gave no answer.

    Attributes:
        status: HTTP status; 0 when there was no answer.
        reason: the node's own words, the innermost cause first.
    """

    def __init__(self, request: str, status: int, reason: str) -> None:
        answer = f"was answered with status {status}" if status else "got no answer"
        super().__init__(f"{request} {answer}: {reason}")
        self.status = status
        self.reason = reason


class Wire(Protocol):
    """One request to a node, whichever client carries it; nothing is retried."""

    def send(
        self, method: str, path: str, params: Mapping[str, str], body: object, timeout_s: float
    ) -> tuple[int, Any]:
        """Give status and decoded body of any answer; NodeRequestError when there is none."""
        ...

    def close(self) -> None:
        """Close the connections."""
        ...


class ElasticsearchWire:
    """Requests through elasticsearch-py.

    Its transport is used beneath the typed methods: it takes the same paths as the other engine's client,
    asks for plain JSON whatever the server's major version, and leaves a node's warnings to the caller.
    """

    def __init__(self, endpoint: Endpoint) -> None:
        self._headers = header_items(endpoint)
        self._client = elasticsearch.Elasticsearch(endpoint.hosts[0], **tls_options(endpoint))

    def send(
        self, method: str, path: str, params: Mapping[str, str], body: object, timeout_s: float
    ) -> tuple[int, Any]:
        """Give status and decoded body of any answer; NodeRequestError when there is none."""
        headers = {"accept": "application/json", **self._headers}
        if body is not None:
            headers["content-type"] = "application/json"
        try:
            answer = self._client.transport.perform_request(
                method,
                with_query(path, params),
                body=body,
                headers=headers,
                request_timeout=timeout_s,
                # Said here, because what the client's constructor is told holds for its typed methods only.
                max_retries=0,
                retry_on_timeout=False,
            )
        except elasticsearch.TransportError as err:
            raise NodeRequestError(f"{method} {path}", 0, str(err.__cause__ or err)) from err
        except RecursionError as err:
            raise NodeRequestError(f"{method} {path}", 0, TOO_DEEP) from err
        log_warning(f"{method} {path}", answer.meta.headers.get("warning"))
        return answer.meta.status, answer.body

    def close(self) -> None:
        """Close the connections."""
        self._client.close()


def open_wire(engine: EngineName, endpoint: Endpoint | str) -> Wire:
    """The wire to a cluster's first host by its engine's own client; nothing is sent yet."""
    endpoint = Endpoint.of(endpoint)
    if engine == "elasticsearch":
        return ElasticsearchWire(endpoint)
    # It takes a while to load, which a run on a cluster of the other engine need not wait for.
    from benchctl.engine.opensearch_wire import OpenSearchWire  # noqa: PLC0415 - see above

    return OpenSearchWire(endpoint)


def with_query(path: str, params: Mapping[str, str]) -> str:
    """A path and its query parameters, percent-encoded."""
    return f"{path}?{urlencode(params)}" if params else path


def log_warning(request: str, header: str | None) -> None:
    """Keep a node's warning, if there is one; it is no concern of whoever asked."""
    if header:
        _log.info("%s: the node warns: %s", request, header)
