"""Names of Rally and OpenSearch Benchmark that public tracks' Python uses, and `Served` for the rest."""

import asyncio
import itertools
import logging
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import deepcopy
from enum import Enum
from http import HTTPStatus
from pathlib import Path
from types import ModuleType
from typing import Any, Self

from benchctl.track.operations.catalogue import OPERATION_TYPES
from benchctl.track.template import Renderer, parse_rally_params


class RallyError(Exception):
    """Root of the exceptions."""

    def __init__(self, message: object = "", cause: object = None) -> None:
        super().__init__(message, cause)
        self.message = message
        self.cause = cause

    def __str__(self) -> str:
        return str(self.message) if self.cause is None else f"{self.message} ({self.cause})"


class DataError(RallyError):
    """Invalid data."""


class InvalidSyntax(RallyError):  # noqa: N818 - the name that plug-ins know
    """Invalid syntax in a track."""


class Unsupported(RallyError, AttributeError):  # noqa: N818 - what is so, not a mistake of the plug-in
    """A plug-in needs something benchctl does not support: its task is n/a."""


class Served(ModuleType):
    """A module of Rally or OpenSearch Benchmark; each has all `members`, whose names are unique in both.

    What is no member can be imported, too. A name in lower case is a module, or a function that refuses to be
    called; any other is an exception, or a class that can be derived from and refuses to be used.
    """

    def __init__(self, name: str, members: dict[str, Any]) -> None:
        super().__init__(name)
        self._members = members

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        if name not in self._members:
            full = f"{self.__name__}.{name}"
            if name[0].islower():
                vars(self)[name] = Served(full, self._members)
                return vars(self)[name]
            is_error = self.__name__.endswith(".exceptions")
            self._members[name] = type(name, (RallyError if is_error else Lacking,), {"lacks": full})
        return self._members[name]

    def __call__(self, *_: Any, **__: Any) -> Any:
        raise Unsupported(f"benchctl has no '{self.__name__}' for plug-ins")


class Lacking:
    """A class that benchctl does not have."""

    lacks = ""

    def __init__(self, *_: Any, **__: Any) -> None:
        """Accept anything: plug-ins also create what their task does not use."""

    def _refuse(self, *_: Any, **__: Any) -> Any:
        raise Unsupported(f"benchctl has no '{self.lacks}' for plug-ins")

    __getattr__ = __call__ = _refuse


class ParamSource:
    """Makes the parameters of requests from those of the operation."""

    def __init__(self, track: Any, params: dict[str, Any], **kwargs: Any) -> None:
        self.track = self.workload = track
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


class _CreateTemplates(ParamSource):
    """Templates to create: its own, or those that the track declares; plug-ins may change them."""

    _declared = ""

    def __init__(self, track: Any, params: dict[str, Any], **kwargs: Any) -> None:
        super().__init__(track, params, **kwargs)
        self.request_params = params.get("request-params", {})
        self.template_definitions = _definitions(params, getattr(track, self._declared))  # name, body

    def params(self) -> dict[str, Any]:
        return {"templates": self.template_definitions, "request-params": self.request_params}


class CreateComposableTemplateParamSource(_CreateTemplates):
    """Index templates to create."""

    _declared = "composable_templates"


class CreateComponentTemplateParamSource(_CreateTemplates):
    """Component templates to create."""

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


class BulkIndexParamSource(ParamSource):
    """Documents of the track's corpora, in bulk.

    benchctl reads them itself: an operation with such a source becomes its own `bulk` with these parameters,
    which plug-ins may change when the source is created. A class that derives each request's parameters from
    Rally's is unsupported.
    """

    @property
    def infinite(self) -> bool:
        return False

    def __init__(self, track: Any, params: dict[str, Any], **kwargs: Any) -> None:
        super().__init__(track, params, **kwargs)
        if "bulk-size" not in params:
            raise InvalidSyntax("Mandatory parameter 'bulk-size' is missing")
        self.bulk_size = int(params["bulk-size"])
        self.ingest_percentage = float(params.get("ingest-percentage", 100))
        self.pipeline = params.get("pipeline")
        self.refresh = params.get("refresh")
        self.looped = params.get("looped", False)

    @classmethod
    def is_plain(cls) -> bool:
        """Return whether a class leaves the requests to benchctl."""
        return cls.params is BulkIndexParamSource.params and cls.partition is ParamSource.partition

    @property
    def bulk_params(self) -> dict[str, Any]:
        """The parameters for benchctl's own operation."""
        names = ("bulk_size", "ingest_percentage", "pipeline", "refresh", "looped")
        return {**self._params, **{name.replace("_", "-"): getattr(self, name) for name in names}}

    def params(self) -> dict[str, Any]:
        """Refuse: requests are benchctl's own.

        Raises:
            Unsupported: If called.
        """
        raise Unsupported(
            f"{type(self).__name__} changes requests that Rally's BulkIndexParamSource makes: benchctl makes "
            "them by itself"
        )


class FileSource:
    """A file read by several lines at a time, always as bytes."""

    def __init__(self, file_name: str, mode: str = "rb") -> None:
        del mode
        self.file_name = file_name

    def open(self) -> Self:
        self._file = open(self.file_name, "rb")  # noqa: PTH123, SIM115 - closed by its `close`
        self.close, self.seek, self.readline = self._file.close, self._file.seek, self._file.readline
        return self

    def readlines(self, num_lines: int) -> list[bytes]:
        return list(itertools.islice(self._file, num_lines))


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

    def open(self, file_name: str, mode: str, bulk_size: int) -> Self:
        """Open a file and go to the first line."""
        self.bulk_size = bulk_size
        self.source = self.source_class(file_name, mode).open()
        for _ in range(self.offset):
            self.source.readline()
        return self

    def close(self) -> None:
        self.source.close()
        self.source = None

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> list[bytes]:
        left = self.number_of_lines - self.current_line
        lines: list[bytes] = self.source.readlines(min(self.bulk_size, left)) if left > 0 else []
        if not lines:
            raise StopIteration
        self.current_line += len(lines)
        return lines


class Runner:
    """Does operations: `await runner(es, params)`.

    It returns None, (weight, unit), or a dictionary of which `weight`, `unit` and `success` are used.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.logger = logging.getLogger(__name__)

    async def __aenter__(self) -> Self:
        return self

    async def __call__(self, es: Any, params: dict[str, Any]) -> Any:
        raise NotImplementedError("abstract operation")

    async def __aexit__(self, *_: object) -> bool:
        return False

    def _transport_request_params(self, params: Mapping[str, Any]) -> Any:
        """(other parameters, those of the URL, those of the transport, headers), as in Rally."""
        rest = dict(params)
        headers = _headers(rest)
        timeout = rest.pop("request-timeout", None)
        transport = {} if timeout is None else {"request_timeout": timeout}
        return rest, dict(rest.get("request-params") or {}), transport, headers


def _headers(params: dict[str, Any]) -> dict[str, str]:
    headers = dict(params.pop("headers", None) or {})
    opaque_id = params.pop("opaque-id", None)
    if opaque_id is not None:
        headers["x-opaque-id"] = opaque_id
    return headers


def unwrap(runner: Any) -> Any:
    """Return the innermost wrapped runner."""
    while (inner := getattr(runner, "delegate", None)) is not None:
        runner = inner
    return runner


class Retry(Runner):
    """Retries another runner according to the operation's parameters, by default `retry_until_success`."""

    def __init__(self, delegate: Any, retry_until_success: bool = False) -> None:  # noqa: FBT001, FBT002 - Rally's signature
        super().__init__()
        self.delegate = delegate
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
    """Sends a bulk body from the parameters, as benchctl's own operation does."""

    async def __call__(self, es: Any, params: dict[str, Any]) -> dict[str, Any]:
        """Send one bulk request; refused documents make it fail."""
        mandatory(params, "body", self)
        stats = self.detailed_stats(params, {}) if params.get("detailed-results", False) else {}
        return {**stats, **await es.perform_operation("bulk", params), "unit": params.get("unit", "docs")}

    def detailed_stats(self, params: Mapping[str, Any], response: Mapping[str, Any]) -> dict[str, Any]:
        """Return nothing: benchctl reads the response by itself."""
        del params, response
        return {}

    def __repr__(self) -> str:
        return "bulk-index"


class BuiltIn(Runner):
    """A built-in operation type, `kind`, as a runner, for plug-ins that call others."""

    kind = ""

    async def __call__(self, es: Any, params: dict[str, Any]) -> dict[str, Any]:
        result: dict[str, Any] = await es.perform_operation(self.kind, params)
        return result

    def __repr__(self) -> str:
        return self.kind


def built_in(kind: str) -> type[BuiltIn]:
    """Return the runner class of a type."""
    return type(class_name(kind), (BuiltIn,), {"kind": kind})


def class_name(kind: str) -> str:
    """Rally's class name of an operation type: `PutSettings` for `put-settings`."""
    return "".join(part.capitalize() for part in kind.split("-"))


def mandatory(params: Mapping[str, Any], key: str, op: object) -> Any:
    """Return a mandatory parameter."""
    try:
        return params[key]
    except KeyError:
        raise DataError(
            f"Parameter source for operation '{op}' did not provide the mandatory parameter '{key}'. "
            "Add it to your parameter source and try again."
        ) from None


class RequestContextHolder:
    """The request times of these drivers; benchctl measures them on the wire."""

    def on_client_request_start(self) -> None:
        pass

    on_client_request_end = on_request_start = on_request_end = on_client_request_start


def rally_confdir() -> str:
    """Return the folder of Rally's settings and data."""
    return os.path.join(os.environ.get("RALLY_HOME") or os.path.expanduser("~"), ".rally")  # noqa: PTH111, PTH118 - a text


def _parser(kind: type) -> Callable[..., Any]:
    """Return a function that returns a parameter of a type, or the default, which must not be None."""

    def parsed(key: str, params: Mapping[str, Any], default: Any = None) -> Any:
        value = params.get(key, default)
        if value is None:
            raise InvalidSyntax(f"Value cannot be None for param {key}")
        if not isinstance(value, kind):
            raise InvalidSyntax(f"Value must be a {kind.__name__} for param {key}")
        return value

    return parsed


class TrackProcessor:
    """Changes the track after loading, and prepares its files, in the words of both drivers."""

    downloader: Any = None
    decompressor: Any = None

    def on_after_load_track(self, track: Any) -> None:
        """Changes nothing."""

    def on_prepare_track(self, track: Any, data_root_dir: str) -> Iterable[Any]:
        """(function, its arguments) of each thing to do: none, since benchctl provides documents itself."""
        del track, data_root_dir
        return ()

    on_after_load_workload = on_after_load_track
    on_prepare_workload = on_prepare_track


def _need_file(path: str, deed: str) -> None:
    """Raise Unsupported unless the file is there that a plug-in wants to get: benchctl lets it get none."""
    if not os.path.exists(path):  # noqa: PTH110 - plug-ins give texts
        raise Unsupported(
            f"the track's plug-in tries to {deed}, which benchctl does not allow: put the file at {path}"
        )


def download(url: str, local_path: str, *_: object, **__: object) -> None:
    """Use an existing file.

    Raises:
        Unsupported: If it is missing; the message tells where to put it.
    """
    _need_file(local_path, f"download {url}")


class Downloader:
    """Downloads files of a track: uses those that exist."""

    def __init__(self, *_: Any) -> None:
        self.offline = True

    def download(self, base_url: str | None, *where: Any, target_path: str = "", **_: Any) -> None:
        """Use an existing file; `where` is its path and size, after its own URL in OpenSearch Benchmark."""
        path = target_path or [given for given in where if isinstance(given, str)][-1]
        _need_file(path, f"download {os.path.basename(path)} from {base_url}")  # noqa: PTH119 - a text


class Decompressor:
    """Decompresses files of a track: uses those that are."""

    def decompress(self, archive_path: str, documents_path: str, *_: object) -> None:
        """Use an already decompressed file."""
        _need_file(documents_path, f"unpack {archive_path}")


class DocumentSetPreparator:
    """Provides files of documents for plug-ins that process them."""

    def __init__(self, track_name: str, downloader: Downloader, decompressor: Decompressor) -> None:
        self.track_name = track_name
        self.downloader = downloader
        self.decompressor = decompressor

    def prepare_document_set(self, document_set: Any, data_root: str) -> None:
        """Use the decompressed file in a folder."""
        name = document_set.document_file or document_set.document_archive
        self.downloader.download(document_set.base_url, os.path.join(data_root, name))  # noqa: PTH118 - texts


def render_template_from_file(
    template_file_name: str, template_vars: Mapping[str, Any] | None, *_: Any, **__: Any
) -> str:
    """Render a template beside the track, with these variables."""
    path = Path(template_file_name)
    return Renderer(path.parent, template_vars or {}, lenient=True).render(path).text


MEMBERS: Mapping[str, Any] = {
    **{class_name(kind): built_in(kind) for kind in OPERATION_TYPES},
    **{
        member.__name__: member
        for member in (
            RallyError, DataError, InvalidSyntax, ParamSource, CreateComposableTemplateParamSource,
            CreateComponentTemplateParamSource, BulkIndexParamSource, Slice, Runner, Retry, BulkIndex,
            unwrap, mandatory, RequestContextHolder, rally_confdir, TrackProcessor, download, Downloader,
            Decompressor, DocumentSetPreparator, render_template_from_file,
        )
    },
    "Query": built_in("search"),
    "IndicesRecovery": built_in("wait-for-recovery"),
    "IndicesStats": built_in("index-stats"),
    "IndexIdConflict": Enum("IndexIdConflict", ("NoConflicts", "SequentialConflicts", "RandomConflicts")),
    "BenchmarkError": RallyError,
    "time_func": lambda function: function,  # a decorator; benchctl times every request on the wire
    "MmapSource": FileSource,
    "WorkloadProcessor": TrackProcessor,
    "DefaultTrackPreparator": TrackProcessor,
    "DefaultWorkloadPreparator": TrackProcessor,
    "download_http": download,
    "to_dict": parse_rally_params,
    "parse_int_parameter": _parser(int),
    "parse_string_parameter": _parser(str),
}  # fmt: skip
"""Names that public tracks use -> what they stand for, apart from the track's own classes."""
