"""How unmeasured requests travel to a node: through the engines' official Python clients."""

import logging
from collections.abc import Callable, Mapping
from typing import Any, Protocol
from urllib.parse import urlencode

import elasticsearch
import opensearchpy

from benchctl.errors import BenchctlError
from benchctl.results.model import EngineName

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

    def __init__(self, url: str) -> None:
        self._client = elasticsearch.Elasticsearch(url)

    def send(
        self, method: str, path: str, params: Mapping[str, str], body: object, timeout_s: float
    ) -> tuple[int, Any]:
        """Give status and decoded body of any answer; NodeRequestError when there is none."""
        headers = {"accept": "application/json"}
        if body is not None:
            headers["content-type"] = "application/json"
        try:
            answer = self._client.transport.perform_request(
                method,
                _target(path, params),
                body=body,
                headers=headers,
                request_timeout=timeout_s,
                # Said here, because what the client's constructor is told holds for its typed methods only.
                max_retries=0,
                retry_on_timeout=False,
            )
        except elasticsearch.TransportError as err:
            raise NodeRequestError(f"{method} {path}", 0, str(err.__cause__ or err)) from err
        _log_warning(f"{method} {path}", answer.meta.headers.get("warning"))
        return answer.meta.status, answer.body

    def close(self) -> None:
        """Close the connections."""
        self._client.close()


class _QuietConnection(opensearchpy.Urllib3HttpConnection):
    """A connection that logs the node's deprecation warnings instead of making Python warnings of them."""

    def _raise_warnings(self, warning_headers: Any) -> None:  # noqa: ANN401 - the overridden method's type
        for header in warning_headers or ():
            _log_warning(self.host, header)


class OpenSearchWire:
    """Requests through opensearch-py."""

    def __init__(self, url: str) -> None:
        self._client = opensearchpy.OpenSearch(
            url, max_retries=0, retry_on_timeout=False, connection_class=_QuietConnection
        )

    def send(
        self, method: str, path: str, params: Mapping[str, str], body: object, timeout_s: float
    ) -> tuple[int, Any]:
        """Give status and decoded body of any answer; NodeRequestError when there is none."""
        try:
            answer = self._client.transport.perform_request(
                method, _target(path, params), body=body, timeout=timeout_s
            )
        except opensearchpy.TransportError as err:
            if isinstance(err.status_code, int):
                return err.status_code, err.info
            raise NodeRequestError(f"{method} {path}", 0, str(err.info)) from err
        except opensearchpy.SerializationError as err:
            raise NodeRequestError(f"{method} {path}", 0, str(err)) from err
        return 200, answer

    def close(self) -> None:
        """Close the connections."""
        self._client.close()


_WIRES: Mapping[EngineName, Callable[[str], Wire]] = {
    "elasticsearch": ElasticsearchWire,
    "opensearch": OpenSearchWire,
}


def open_wire(engine: EngineName, url: str) -> Wire:
    """The wire to a node by its engine's own client; nothing is sent before the first request."""
    return _WIRES[engine](url)


def _target(path: str, params: Mapping[str, str]) -> str:
    return f"{path}?{urlencode(params)}" if params else path


def _log_warning(request: str, header: str | None) -> None:
    if header:
        _log.info("%s: the node warns: %s", request, header)
