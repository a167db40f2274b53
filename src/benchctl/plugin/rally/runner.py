"""The base classes of runners and what goes with them, as plug-ins derive theirs from them."""

import asyncio
import itertools
import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http import HTTPStatus
from typing import Any, Protocol, Self, TypeVar

from benchctl.plugin.rally.exceptions import DataError
from benchctl.track.operations.catalogue import OPERATION_TYPES

F = TypeVar("F", bound=Callable[..., Any])


class Client(Protocol):
    """What a runner gets of its engine's client beside the client's own methods."""

    async def perform_request(self, method: str, path: str, **more: Any) -> Any:  # noqa: ANN401 - foreign
        """Send any request."""
        ...

    async def perform_operation(self, kind: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """Do one of benchctl's own operations."""
        ...


class Runner:
    """Does operations."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401 - foreign
        super().__init__(*args, **kwargs)
        self.logger = logging.getLogger(__name__)

    async def __aenter__(self) -> Self:
        return self

    async def __call__(self, es: Any, params: dict[str, Any]) -> Any:  # noqa: ANN401 - foreign
        """One operation.

        Returns:
            None, (weight, unit), or a dictionary of which `weight`, `unit` and `success` are understood.
        """
        raise NotImplementedError("abstract operation")

    async def __aexit__(self, *_: object) -> bool:
        return False

    def _default_kw_params(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """What most methods of clients take, without what is not given."""
        names = {
            "body": "body",
            "headers": "headers",
            "index": "index",
            "opaque_id": "opaque-id",
            "params": "request-params",
            "request_timeout": "request-timeout",
        }
        return {key: params[name] for key, name in names.items() if params.get(name) is not None}

    def _transport_request_params(self, params: Mapping[str, Any]) -> Any:  # noqa: ANN401 - a tuple of dictionaries
        """(other parameters, those of the URL, those of the transport, headers)."""
        rest = dict(params)
        headers = _headers(rest)
        timeout = rest.pop("request-timeout", None)
        transport = {} if timeout is None else {"request_timeout": timeout}
        return rest, dict(rest.get("request-params") or {}), transport, headers


class OpenSearchRunner(Runner):
    """The same as OpenSearch Benchmark has it."""

    def _transport_request_params(self, params: Mapping[str, Any]) -> Any:  # noqa: ANN401 - a tuple of dictionaries
        """(parameters of the URL, headers)."""
        request_params = dict(params.get("request-params") or {})
        if params.get("request-timeout") is not None:
            request_params["request_timeout"] = params["request-timeout"]
        return request_params, _headers(dict(params))


def _headers(params: dict[str, Any]) -> dict[str, str]:
    headers = dict(params.pop("headers", None) or {})
    opaque_id = params.pop("opaque-id", None)
    if opaque_id is not None:
        headers["x-opaque-id"] = opaque_id
    return headers


class Delegator:
    """Passes on to another runner.

    Args:
        delegate: that one.
    """

    def __init__(self, delegate: Any, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401 - foreign
        super().__init__(*args, **kwargs)
        self.delegate = delegate


def unwrap(runner: Any) -> Any:  # noqa: ANN401 - foreign
    """The runner within all that pass on to another."""
    while (inner := getattr(runner, "delegate", None)) is not None:
        runner = inner
    return runner


class Retry(Runner, Delegator):
    """Tries another runner again, as the operation's parameters say.

    Args:
        delegate: the other runner.
        retry_until_success: whether it is tried until it succeeds, where the parameters do not say.
    """

    def __init__(self, delegate: Any, retry_until_success: bool = False) -> None:  # noqa: ANN401, FBT001, FBT002 - Rally's signature
        super().__init__(delegate=delegate)
        self.retry_until_success = retry_until_success

    async def __aenter__(self) -> Self:
        if hasattr(self.delegate, "__aenter__"):
            await self.delegate.__aenter__()
        return self

    async def __aexit__(self, *raised: object) -> bool:
        if hasattr(self.delegate, "__aexit__"):
            return bool(await self.delegate.__aexit__(*raised))
        return False

    async def __call__(self, es: Any, params: dict[str, Any]) -> Any:  # noqa: ANN401 - foreign
        """As the other runner's, tried again after a timeout or where it says that it did not succeed."""
        until = params.get("retry-until-success", self.retry_until_success)
        most = None if until else 1 + int(params.get("retries", 0))
        on_error = params.get("retry-on-error", False) or until
        on_timeout = params.get("retry-on-timeout", True)
        for attempt in itertools.count(1):
            last = most is not None and attempt >= most
            try:
                result = await self.delegate(es, params)
            except Exception as err:
                if last or not on_timeout or not _is_timeout(err):
                    raise
            else:
                failed = isinstance(result, dict) and not result.get("success", True)
                if last or not (failed and on_error):
                    return result
            await asyncio.sleep(params.get("retry-wait-period", 0.5))
        raise AssertionError("unreachable")

    def __repr__(self) -> str:
        return f"retryable {self.delegate!r}"


def _is_timeout(err: Exception) -> bool:
    """Whether an exception of either engine's client says that something took too long."""
    status = getattr(err, "status_code", getattr(getattr(err, "meta", None), "status", None))
    return type(err).__name__ == "ConnectionTimeout" or status == HTTPStatus.REQUEST_TIMEOUT


class BulkIndex(Runner):
    """Sends a bulk body that the parameters hold."""

    async def __call__(self, es: Client, params: dict[str, Any]) -> dict[str, Any]:
        """One bulk request; what was not taken is counted, and makes it fail."""
        index = None if params.get("action-metadata-present", True) else params.get("index")
        request = dict(params.get("request-params") or {})
        request |= {name: params[name] for name in ("pipeline", "refresh", "timeout") if params.get(name)}
        response = await es.perform_request(
            "POST",
            f"/{index}/_bulk" if index else "/_bulk",
            params=request,
            headers={"content-type": "application/x-ndjson", **_headers(dict(params))},
            body=mandatory(params, "body", self),
        )
        detailed = params.get("detailed-results", False)
        size, unit = mandatory(params, "bulk-size", self), params.get("unit", "docs")
        stats = self.detailed_stats(params, response) if detailed else self.simple_stats(size, unit, response)
        return {"index": params.get("index"), "weight": size, "unit": unit, **stats}

    def simple_stats(self, bulk_size: int, unit: str, response: Mapping[str, Any]) -> dict[str, Any]:
        """What was taken, and what not."""
        del unit
        refused = [one for one in _items(response) if one.get("status", 200) > _LAST_OK]
        return {
            "took": response.get("took"),
            "success": not refused,
            "success-count": bulk_size - len(refused),
            "error-count": len(refused),
        }

    def detailed_stats(self, params: Mapping[str, Any], response: Mapping[str, Any]) -> dict[str, Any]:
        """The same; plug-ins add to it."""
        return self.simple_stats(mandatory(params, "bulk-size", self), params.get("unit", "docs"), response)

    def __repr__(self) -> str:
        return "bulk-index"


_LAST_OK = 299


def _items(response: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    for item in response.get("items", ()):
        yield from item.values()


class BuiltIn(Runner):
    """An operation type of benchctl's own as a runner, for plug-ins that call others.

    Attributes:
        kind: the operation type.
    """

    kind = ""

    async def __call__(self, es: Client, params: dict[str, Any]) -> dict[str, Any]:
        """One operation of that type."""
        return await es.perform_operation(self.kind, params)

    def __repr__(self) -> str:
        return self.kind


def built_in(kind: str) -> type[BuiltIn]:
    """The class of a type's runner."""
    return type(class_name(kind), (BuiltIn,), {"kind": kind})


def class_name(kind: str) -> str:
    """How Rally calls the class of an operation type: `PutSettings` for `put-settings`."""
    return "".join(part.capitalize() for part in kind.split("-"))


BUILT_IN = {class_name(kind): built_in(kind) for kind in OPERATION_TYPES} | {
    "Query": built_in("search"),
    "IndicesRecovery": built_in("wait-for-recovery"),
    "IndicesStats": built_in("index-stats"),
}
"""Rally's name of a class -> the class that does the same."""


def mandatory(params: Mapping[str, Any], key: str, op: object) -> Any:  # noqa: ANN401 - of any type
    """A parameter that has to be there."""
    try:
        return params[key]
    except KeyError:
        raise DataError(
            f"Parameter source for operation '{op}' did not provide the mandatory parameter '{key}'. "
            "Add it to your parameter source and try again."
        ) from None


def escape(value: object) -> str | None:
    """A value of a URL's parameter."""
    if value is None:
        return None
    return str(value).lower() if isinstance(value, bool) else str(value)


def remove_prefix(string: str, prefix: str) -> str:
    """A text without how it begins."""
    return string.removeprefix(prefix)


def time_func(function: F) -> F:
    """OpenSearch Benchmark's mark of what is to be timed; benchctl times every request at its wire."""
    return function


class RequestContextHolder:
    """How those drivers learn when a request began; benchctl learns that at its wire."""

    @contextmanager
    def new_request_context(self) -> Iterator["RequestContextHolder"]:
        """Nothing is held."""
        yield self

    def on_client_request_start(self) -> None:
        """The wire knows."""

    def on_client_request_end(self) -> None:
        """The wire knows."""

    def on_request_start(self) -> None:
        """The wire knows."""

    def on_request_end(self) -> None:
        """The wire knows."""


request_context_holder = RequestContextHolder()
