"""Reimplementation of Rally's and OpenSearch Benchmark's classes that plug-ins raise, catch and extend."""

import asyncio
import itertools
import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from enum import Enum
from http import HTTPStatus
from typing import Any, Protocol, Self, TypeVar

from benchctl.track.operations.catalogue import OPERATION_TYPES


class RallyError(Exception):
    """Root of the exceptions."""

    def __init__(self, message: object = "", cause: object = None) -> None:
        super().__init__(message, cause)
        self.message = message
        self.cause = cause

    def __str__(self) -> str:
        return str(self.message) if self.cause is None else f"{self.message} ({self.cause})"


class RallyAssertionError(RallyError):
    """An assumption is violated."""


class SystemSetupError(RallyError):
    """Something is not set up correctly."""


class DataError(RallyError):
    """Invalid data."""


class InvalidSyntax(RallyError):  # noqa: N818 - the name that plug-ins know
    """Invalid syntax in a track."""


class InvalidName(RallyError):  # noqa: N818 - the name that plug-ins know
    """An unknown name."""


class Unsupported(SystemSetupError):  # noqa: N818 - what is so, not a mistake of the plug-in
    """A plug-in needs something benchctl does not support: its task is n/a."""


def _others(base: type[RallyError], *names: str) -> dict[str, type[RallyError]]:
    return {name: type(name, (base,), {}) for name in names}


OTHERS: dict[str, type[RallyError]] = {
    **_others(
        RallyError, "BuildError", "ConfigError", "ConfigurationError", "DataStreamingError", "InstallError",
        "InvalidExtensionException", "LaunchError", "MappingsError", "NotFound", "SupplyError",
        "TrackConfigError", "UserInterrupted",
    ),
    **_others(InvalidSyntax, "TrackSyntaxError"),
    **_others(RallyAssertionError, "RallyTaskAssertionError"),
}  # fmt: skip
"""Exceptions that benchctl itself raises nowhere: name -> class."""

OTHERS |= {
    "NotFoundError": OTHERS["NotFound"],
    "BenchmarkError": RallyError,
    "BenchmarkAssertionError": RallyAssertionError,
    "BenchmarkTaskAssertionError": OTHERS["RallyTaskAssertionError"],
    "ExecutorError": SystemSetupError,
    "WorkloadConfigError": OTHERS["TrackConfigError"],
    "WorkloadSyntaxError": OTHERS["TrackSyntaxError"],
}


class Scheduler(ABC):
    """Spaces the requests of one client, and is notified of each."""

    parameter_source: Any = None

    def before_request(self, now: float) -> None:  # noqa: B027 - schedulers need not care
        """Note that a request is about to be sent; `now` is in seconds of a monotonic clock."""

    def after_request(self, *facts: Any) -> None:  # noqa: B027 - foreign; schedulers need not care
        """Note that a request was answered: now, weight, unit, further facts."""

    @abstractmethod
    def next(self, current: float) -> float:
        """Return when the next request is due, in seconds from the task's start; 0 for immediately.

        `current` is the previous result; 0 at first.
        """
        raise NotImplementedError("abstract method")


class SimpleScheduler(ABC):
    """Spaces requests at a rate."""

    @abstractmethod
    def next(self, current: float) -> float:
        raise NotImplementedError("abstract method")


class DeterministicScheduler(SimpleScheduler):
    """Evenly spaced, at a client's throughput per second."""

    name = "deterministic"

    def __init__(self, task: Any, target_throughput: float) -> None:
        del task
        self.wait_time = 1 / target_throughput

    def next(self, current: float) -> float:
        return current + self.wait_time


class Unthrottled(Scheduler):
    """Immediately."""

    def next(self, current: float) -> float:
        del current
        return 0


class ParamSource:
    """Makes the parameters of requests from those of the operation."""

    def __init__(self, track: Any, params: dict[str, Any], **kwargs: Any) -> None:
        self.track = track
        self.workload = track
        self._params = params
        self.kwargs = kwargs

    def partition(self, partition_index: int, total_partitions: int) -> "ParamSource":
        """Return the source of one client; by default all share it."""
        del partition_index, total_partitions
        return self

    @property
    def infinite(self) -> bool:
        return self.size() is None

    def size(self) -> int | None:
        return None

    def params(self) -> dict[str, Any]:
        """Return the next parameters."""
        return self._params


class DelegatingParamSource(ParamSource):
    """A function as a source."""

    def __init__(
        self,
        track: Any,
        params: dict[str, Any],
        delegate: Callable[..., dict[str, Any]],
        **kwargs: Any,
    ) -> None:
        super().__init__(track, params, **kwargs)
        self.delegate = delegate

    def params(self) -> dict[str, Any]:
        return self.delegate(self.track, self._params, **self.kwargs)


class SearchParamSource(ParamSource):
    """Searches as in the track; plug-ins change its `query_params`."""

    def __init__(self, track: Any, params: dict[str, Any], **kwargs: Any) -> None:
        super().__init__(track, params, **kwargs)
        self.query_params = dict(params)

    def params(self) -> dict[str, Any]:
        return self.query_params


class _CreateTemplates(ParamSource):
    """Templates to create; plug-ins may change `template_definitions`: (name, body) of each."""

    _declared = ""

    def __init__(self, track: Any, params: dict[str, Any], **kwargs: Any) -> None:
        super().__init__(track, params, **kwargs)
        self.request_params = params.get("request-params", {})
        self.template_definitions = _definitions(params, getattr(track, self._declared))

    def params(self) -> dict[str, Any]:
        return {"templates": self.template_definitions, "request-params": self.request_params}


class CreateComposableTemplateParamSource(_CreateTemplates):
    """Index templates to create: its own, or those that the track declares."""

    _declared = "composable_templates"


class CreateComponentTemplateParamSource(_CreateTemplates):
    """Component templates to create; see `CreateComposableTemplateParamSource`."""

    _declared = "component_templates"


def _definitions(params: Mapping[str, Any], declared: Sequence[Any]) -> list[tuple[str, dict[str, Any]]]:
    wanted = params.get("template")
    if wanted and "body" in params:
        return [(wanted, params["body"])]
    definitions = [
        (part.name, deepcopy(part.content)) for part in declared if wanted in {None, "", part.name}
    ]
    if not definitions:
        names = ", ".join(part.name for part in declared) or "none"
        raise InvalidSyntax(f"Unknown template: {wanted or 'all'}. Available templates: {names}.")
    for _, content in definitions:
        _merge(content, {"template": {"settings": params.get("settings") or {}}})
    return definitions


def _merge(into: dict[str, Any], more: Mapping[str, Any]) -> None:
    for key, value in more.items():
        if isinstance(value, Mapping) and isinstance(into.setdefault(key, {}), dict):
            _merge(into[key], value)
        else:
            into[key] = value


class IndexIdConflict(Enum):
    """The id conflicts of a source."""

    NoConflicts = 0
    SequentialConflicts = 1
    RandomConflicts = 2


class Slice:
    """Lines of a file from an offset on.

    Args:
        source_class: opens files, such as `FileSource`.
        offset: lines to skip.
        number_of_lines: lines to yield.
    """

    def __init__(self, source_class: Any, offset: int, number_of_lines: int) -> None:
        self.source_class = source_class
        self.source: Any = None
        self.offset = offset
        self.number_of_lines = number_of_lines
        self.current_line = 0
        self.bulk_size = 1

    def open(self, file_name: str, mode: str, bulk_size: int) -> "Slice":
        """Open a file and go to the first line."""
        self.bulk_size = bulk_size
        self.source = self.source_class(file_name, mode).open()
        for _ in range(self.offset):
            self.source.readline()
        return self

    def close(self) -> None:
        self.source.close()
        self.source = None

    def __iter__(self) -> "Slice":
        return self

    def __next__(self) -> list[bytes]:
        left = self.number_of_lines - self.current_line
        lines: list[bytes] = self.source.readlines(min(self.bulk_size, left)) if left > 0 else []
        if not lines:
            raise StopIteration
        self.current_line += len(lines)
        return lines


class BulkIndexParamSource(ParamSource):
    """Documents of the track's corpora, in bulk.

    benchctl reads them itself: an operation with such a source becomes its own `bulk` with these parameters,
    which plug-ins may change when the source is created. A class that derives each request's parameters from
    Rally's is unsupported.
    """

    def __init__(self, track: Any, params: dict[str, Any], **kwargs: Any) -> None:
        super().__init__(track, params, **kwargs)
        named = params.get("corpora") or [corpus.name for corpus in track.corpora]
        wanted = {named} if isinstance(named, str) else set(named)
        self.corpora = [corpus for corpus in track.corpora if corpus.name in wanted]
        self.id_conflicts = {
            "sequential": IndexIdConflict.SequentialConflicts,
            "random": IndexIdConflict.RandomConflicts,
        }.get(params.get("conflicts") or "", IndexIdConflict.NoConflicts)
        if "bulk-size" not in params:
            raise InvalidSyntax("Mandatory parameter 'bulk-size' is missing")
        self.bulk_size = int(params["bulk-size"])
        self.batch_size = int(params.get("batch-size", self.bulk_size))
        self.ingest_percentage = float(params.get("ingest-percentage", 100))
        self.pipeline = params.get("pipeline")
        self.refresh = params.get("refresh")
        self.looped = params.get("looped", False)

    @property
    def infinite(self) -> bool:
        return False

    @classmethod
    def is_plain(cls) -> bool:
        """Return whether a class leaves the requests to benchctl."""
        return cls.params is BulkIndexParamSource.params and cls.partition is ParamSource.partition

    @property
    def bulk_params(self) -> dict[str, Any]:
        """The parameters for benchctl's own operation."""
        own = {
            "bulk-size": self.bulk_size,
            "ingest-percentage": self.ingest_percentage,
            "pipeline": self.pipeline,
            "refresh": self.refresh,
            "looped": self.looped,
        }
        return {**self._params, **own}

    def params(self) -> dict[str, Any]:
        """Refuse: requests are benchctl's own.

        Raises:
            Unsupported: If called.
        """
        raise Unsupported(
            f"{type(self).__name__} changes requests that Rally's BulkIndexParamSource makes: benchctl makes "
            "them by itself"
        )


F = TypeVar("F", bound=Callable[..., Any])


class Client(Protocol):
    """Methods that a runner gets besides those of its engine's client."""

    async def perform_request(self, method: str, path: str, **more: Any) -> Any:
        """Send any request."""
        ...

    async def perform_operation(self, kind: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """Do a built-in operation."""
        ...


class Runner:
    """Does operations."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.logger = logging.getLogger(__name__)

    async def __aenter__(self) -> Self:
        return self

    async def __call__(self, es: Any, params: dict[str, Any]) -> Any:
        """Run one operation.

        Returns:
            None, (weight, unit), or a dictionary of which `weight`, `unit` and `success` are used.
        """
        raise NotImplementedError("abstract operation")

    async def __aexit__(self, *_: object) -> bool:
        return False

    def _default_kw_params(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """Return the given ones among the arguments that most client methods accept."""
        names = {
            "body": "body",
            "headers": "headers",
            "index": "index",
            "opaque_id": "opaque-id",
            "params": "request-params",
            "request_timeout": "request-timeout",
        }
        return {key: params[name] for key, name in names.items() if params.get(name) is not None}

    def _transport_request_params(self, params: Mapping[str, Any]) -> Any:
        """(other parameters, those of the URL, those of the transport, headers)."""
        rest = dict(params)
        headers = _headers(rest)
        timeout = rest.pop("request-timeout", None)
        transport = {} if timeout is None else {"request_timeout": timeout}
        return rest, dict(rest.get("request-params") or {}), transport, headers


class OpenSearchRunner(Runner):
    """OpenSearch Benchmark's variant."""

    def _transport_request_params(self, params: Mapping[str, Any]) -> Any:
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
    """Wraps another runner."""

    def __init__(self, delegate: Any, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.delegate = delegate


def unwrap(runner: Any) -> Any:
    """Return the innermost wrapped runner."""
    while (inner := getattr(runner, "delegate", None)) is not None:
        runner = inner
    return runner


class Retry(Runner, Delegator):
    """Retries another runner according to the operation's parameters, by default `retry_until_success`."""

    def __init__(self, delegate: Any, retry_until_success: bool = False) -> None:  # noqa: FBT001, FBT002 - Rally's signature
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

    async def __call__(self, es: Any, params: dict[str, Any]) -> Any:
        """Call the other runner, again after a timeout or when it reports failure."""
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
    status = getattr(err, "status_code", getattr(getattr(err, "meta", None), "status", None))
    return type(err).__name__ == "ConnectionTimeout" or status == HTTPStatus.REQUEST_TIMEOUT


class BulkIndex(Runner):
    """Sends a bulk body from the parameters."""

    async def __call__(self, es: Client, params: dict[str, Any]) -> dict[str, Any]:
        """Send one bulk request; refused documents are counted, and make it fail."""
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
        """Counts of accepted and refused documents."""
        del unit
        refused = [item for item in _items(response) if item.get("status", 200) > _LAST_OK]
        return {
            "took": response.get("took"),
            "success": not refused,
            "success-count": bulk_size - len(refused),
            "error-count": len(refused),
        }

    def detailed_stats(self, params: Mapping[str, Any], response: Mapping[str, Any]) -> dict[str, Any]:
        """Return the same; plug-ins extend it."""
        return self.simple_stats(mandatory(params, "bulk-size", self), params.get("unit", "docs"), response)

    def __repr__(self) -> str:
        return "bulk-index"


_LAST_OK = 299


def _items(response: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    for item in response.get("items", ()):
        yield from item.values()


class BuiltIn(Runner):
    """A built-in operation type, `kind`, as a runner, for plug-ins that call others."""

    kind = ""

    async def __call__(self, es: Client, params: dict[str, Any]) -> dict[str, Any]:
        return await es.perform_operation(self.kind, params)

    def __repr__(self) -> str:
        return self.kind


def built_in(kind: str) -> type[BuiltIn]:
    """Return the runner class of a type."""
    return type(class_name(kind), (BuiltIn,), {"kind": kind})


def class_name(kind: str) -> str:
    """Rally's class name of an operation type: `PutSettings` for `put-settings`."""
    return "".join(part.capitalize() for part in kind.split("-"))


BUILT_IN = {class_name(kind): built_in(kind) for kind in OPERATION_TYPES} | {
    "Query": built_in("search"),
    "IndicesRecovery": built_in("wait-for-recovery"),
    "IndicesStats": built_in("index-stats"),
}
"""Rally's class name -> the class that does the same."""


def mandatory(params: Mapping[str, Any], key: str, op: object) -> Any:
    """Return a mandatory parameter."""
    try:
        return params[key]
    except KeyError:
        raise DataError(
            f"Parameter source for operation '{op}' did not provide the mandatory parameter '{key}'. "
            "Add it to your parameter source and try again."
        ) from None


def escape(value: object) -> str | None:
    """Return a value of a URL parameter."""
    if value is None:
        return None
    return str(value).lower() if isinstance(value, bool) else str(value)


remove_prefix = str.removeprefix


def time_func(function: F) -> F:
    """OpenSearch Benchmark's decorator for timing; benchctl times every request on the wire."""
    return function


class RequestContextHolder:
    """The request times of these drivers; benchctl measures them on the wire."""

    @contextmanager
    def new_request_context(self) -> Iterator["RequestContextHolder"]:
        yield self

    def _ignore(self) -> None:
        pass

    on_client_request_start = on_client_request_end = on_request_start = on_request_end = _ignore


request_context_holder = RequestContextHolder()
