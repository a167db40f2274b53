"""Unmeasured requests through opensearch-py."""

from collections.abc import Mapping
from typing import Any

import opensearchpy

from benchctl.endpoint import Endpoint
from benchctl.engine.wires import TOO_DEEP, NodeRequestError, log_warning, with_query
from benchctl.official import header_items, tls_options


class _QuietConnection(opensearchpy.Urllib3HttpConnection):
    """A connection that logs the node's deprecation warnings instead of making Python warnings of them."""

    def _raise_warnings(self, warning_headers: Any) -> None:  # noqa: ANN401 - the overridden method's type
        for header in warning_headers or ():
            log_warning(self.host, header)


class OpenSearchWire:
    """Requests through opensearch-py."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._client = opensearchpy.OpenSearch(
            endpoint.hosts[0],
            max_retries=0,
            retry_on_timeout=False,
            connection_class=_QuietConnection,
            headers=header_items(endpoint),
            **tls_options(endpoint),
        )

    def send(
        self, method: str, path: str, params: Mapping[str, str], body: object, timeout_s: float
    ) -> tuple[int, Any]:
        """Give status and decoded body of any answer; NodeRequestError when there is none."""
        try:
            answer = self._client.transport.perform_request(
                method, with_query(path, params), body=body, timeout=timeout_s
            )
        except opensearchpy.TransportError as err:
            if isinstance(err.status_code, int):
                return err.status_code, err.info
            raise NodeRequestError(f"{method} {path}", 0, str(err.info)) from err
        except opensearchpy.SerializationError as err:
            raise NodeRequestError(f"{method} {path}", 0, str(err)) from err
        except RecursionError as err:
            raise NodeRequestError(f"{method} {path}", 0, TOO_DEEP) from err
        return 200, answer

    def close(self) -> None:
        """Close the connections."""
        self._client.close()
