"""How unmeasured requests travel to a node: through the engines' official Python clients."""

import logging
from collections.abc import Mapping
from typing import Any, Protocol
from urllib.parse import urlencode

import elasticsearch

from benchctl.endpoint import Endpoint
from benchctl.errors import BenchctlError
from benchctl.network import MOST_ANSWER_BYTES, Answer, Courier, Trouble, Unanswered
from benchctl.official import JSON, Carry, elasticsearch_over, opensearch_over
from benchctl.results.plan import EngineName

TOO_DEEP = "its JSON is nested too deeply to be read"
"""Why an answer is none that no engine would give, and whatever stands in its place may."""

_NO_JSON = "its answer is not JSON"

_log = logging.getLogger(__name__)


class NodeRequestError(BenchctlError):
    """A node refused a request, or gave no answer.

    Attributes:
        request: method and path.
        status: HTTP status; 0 when there was no answer.
        reason: the node's own words, the innermost cause first.
        trouble: why there was no answer, where the network knows; else None.
    """

    def __init__(self, request: str, status: int, reason: str, *, trouble: Trouble | None = None) -> None:
        answer = f"was answered with status {status}" if status else "got no answer"
        super().__init__(f"{request} {answer}: {reason}")
        self.request = request
        self.status = status
        self.reason = reason
        self.trouble = trouble


class Wire(Protocol):
    """One request to a node, whoever carries it; nothing is retried."""

    def send(
        self, method: str, path: str, params: Mapping[str, str], body: object, timeout_s: float
    ) -> tuple[int, Any]:
        """Give status and decoded body of any answer; NodeRequestError when there is none."""
        ...

    def close(self) -> None:
        """Close the connections."""
        ...


class ClientWire:
    """Requests to a cluster's first host; nothing is sent before the first, and nothing is retried.

    The clients' transports are used, beneath their typed methods: both take the same paths, and ask for plain
    JSON whatever the server's major version.

    Args:
        engine: whose client.
        endpoint: the cluster, or its address.
        most_bytes: of an answer.
    """

    def __init__(
        self, engine: EngineName, endpoint: Endpoint | str, *, most_bytes: int = MOST_ANSWER_BYTES
    ) -> None:
        endpoint = Endpoint.of(endpoint)
        self._host = endpoint.hosts[0]
        self._headers = endpoint.headers
        self._most_bytes = most_bytes
        self._courier = Courier(ca=endpoint.ca, verify=endpoint.verify)
        self._ask = (_Elasticsearch if engine == "elasticsearch" else _OpenSearch)(self._carry)

    def send(
        self, method: str, path: str, params: Mapping[str, str], body: object, timeout_s: float
    ) -> tuple[int, Any]:
        """Give status and decoded body of any answer.

        Args:
            method: of HTTP.
            path: percent-encoded.
            params: of the query.
            body: what is sent as JSON; None for nothing.
            timeout_s: for all of it, however long the node itself may take.

        Raises:
            NodeRequestError: there was no answer, or none that can be read.
        """
        try:
            return self._ask(method, f"{path}?{urlencode(params)}" if params else path, body, timeout_s)
        except (Unanswered, UnicodeDecodeError) as err:
            raise NodeRequestError(f"{method} {path}", 0, _NO_JSON, trouble=Trouble.NO_JSON) from err
        except RecursionError as err:
            raise NodeRequestError(f"{method} {path}", 0, TOO_DEEP) from err

    def close(self) -> None:
        """Close the connections."""
        self._courier.close()

    def _carry(
        self, method: str, target: str, body: bytes, headers: Mapping[str, str], timeout_s: float | None
    ) -> Answer:
        lines = [f"{name}: {value}" for name, value in headers.items()]
        try:
            answer = self._courier.ask(
                method,
                self._host + target,
                headers=[*lines, *self._headers],
                body=body,
                deadline_s=timeout_s,
                most_bytes=self._most_bytes,
            )
        except Unanswered as err:
            request = f"{method} {target.partition('?')[0]}"
            raise NodeRequestError(request, 0, err.text, trouble=err.trouble) from err
        if "warning" in answer.headers:
            _log.info("%s %s: the node warns: %s", method, target, answer.headers["warning"])
        return answer


class _Elasticsearch:
    """A request through elasticsearch-py."""

    def __init__(self, carry: Carry) -> None:
        self._client = elasticsearch_over(carry)

    def __call__(self, method: str, target: str, body: object, timeout_s: float) -> tuple[int, Any]:
        headers = {"accept": JSON, **({} if body is None else {"content-type": JSON})}
        try:
            answer = self._client.transport.perform_request(
                method,
                target,
                body=body,
                headers=headers,
                request_timeout=timeout_s,
                # Said here, because what the client's constructor is told holds for its typed methods only.
                max_retries=0,
                retry_on_timeout=False,
            )
        except elasticsearch.SerializationError as err:
            raise Unanswered(Trouble.NO_JSON, _NO_JSON) from err
        return answer.meta.status, answer.body


class _OpenSearch:
    """A request through opensearch-py."""

    def __init__(self, carry: Carry) -> None:
        # It takes a while to load, which a run on a cluster of the other engine need not wait for.
        import opensearchpy  # noqa: PLC0415 - see above

        self._errors = opensearchpy.exceptions
        self._client = opensearch_over(carry)

    def __call__(self, method: str, target: str, body: object, timeout_s: float) -> tuple[int, Any]:
        try:
            return 200, self._client.transport.perform_request(method, target, body=body, timeout=timeout_s)
        except self._errors.SerializationError as err:
            raise Unanswered(Trouble.NO_JSON, _NO_JSON) from err
        except self._errors.TransportError as err:
            return int(err.status_code), err.info


def open_wire(engine: EngineName, endpoint: Endpoint | str) -> Wire:
    """The wire to a cluster's first host by its engine's own client; nothing is sent yet."""
    return ClientWire(engine, endpoint)
