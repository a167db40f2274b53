"""The base classes of parameter sources, as plug-ins derive theirs from them."""

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from enum import Enum
from typing import Any

from benchctl.plugin.rally.exceptions import InvalidSyntax, Unsupported


class ParamSource:
    """Makes the parameters of requests.

    Args:
        track: that it belongs to.
        params: all that the track says about the operation.
        kwargs: more, as Rally evolves.
    """

    def __init__(self, track: Any, params: dict[str, Any], **kwargs: Any) -> None:  # noqa: ANN401 - foreign
        self.track = track
        self.workload = track
        self._params = params
        self.kwargs = kwargs

    def partition(self, partition_index: int, total_partitions: int) -> "ParamSource":
        """The source of one client; the same for all unless a class says otherwise."""
        del partition_index, total_partitions
        return self

    @property
    def infinite(self) -> bool:
        """Whether it has no end of its own."""
        return self.size() is None

    def size(self) -> int | None:
        """How often parameters can be had; None for ever."""
        return None

    def params(self) -> dict[str, Any]:
        """The next parameters."""
        return self._params


class DelegatingParamSource(ParamSource):
    """A function as a source."""

    def __init__(
        self,
        track: Any,  # noqa: ANN401 - foreign
        params: dict[str, Any],
        delegate: Callable[..., dict[str, Any]],
        **kwargs: Any,  # noqa: ANN401 - foreign
    ) -> None:
        super().__init__(track, params, **kwargs)
        self.delegate = delegate

    def params(self) -> dict[str, Any]:
        """What the function gives."""
        return self.delegate(self.track, self._params, **self.kwargs)


class SearchParamSource(ParamSource):
    """Searches as the track says them; plug-ins change its `query_params`."""

    def __init__(self, track: Any, params: dict[str, Any], **kwargs: Any) -> None:  # noqa: ANN401 - foreign
        super().__init__(track, params, **kwargs)
        self.query_params = dict(params)

    def params(self) -> dict[str, Any]:
        """What is asked."""
        return self.query_params


class _CreateTemplates(ParamSource):
    """Templates to create.

    Attributes:
        template_definitions: (name, body) of each, for plug-ins to change.
    """

    _declared = ""

    def __init__(self, track: Any, params: dict[str, Any], **kwargs: Any) -> None:  # noqa: ANN401 - foreign
        super().__init__(track, params, **kwargs)
        self.request_params = params.get("request-params", {})
        self.template_definitions = _definitions(params, getattr(track, self._declared))

    def params(self) -> dict[str, Any]:
        """All of them."""
        return {"templates": self.template_definitions, "request-params": self.request_params}


class CreateComposableTemplateParamSource(_CreateTemplates):
    """Index templates to create: one of its own, or those that the track declares."""

    _declared = "composable_templates"


class CreateComponentTemplateParamSource(_CreateTemplates):
    """Component templates to create; see `CreateComposableTemplateParamSource`."""

    _declared = "component_templates"


def _definitions(params: Mapping[str, Any], declared: Sequence[Any]) -> list[tuple[str, dict[str, Any]]]:
    wanted = params.get("template")
    if wanted and "body" in params:
        return [(wanted, params["body"])]
    found = [(one.name, deepcopy(one.content)) for one in declared if wanted in {None, "", one.name}]
    if not found:
        names = ", ".join(one.name for one in declared) or "none"
        raise InvalidSyntax(f"Unknown template: {wanted or 'all'}. Available templates: {names}.")
    for _, content in found:
        _merge(content, {"template": {"settings": params.get("settings") or {}}})
    return found


def _merge(into: dict[str, Any], more: Mapping[str, Any]) -> None:
    for key, value in more.items():
        if isinstance(value, Mapping) and isinstance(into.setdefault(key, {}), dict):
            _merge(into[key], value)
        else:
            into[key] = value


class IndexIdConflict(Enum):
    """Which conflicts of ids a source makes."""

    NoConflicts = 0
    SequentialConflicts = 1
    RandomConflicts = 2


class Slice:
    """Consecutive lines of a file.

    Args:
        source_class: opens files, such as those of `io`.
        offset: lines to pass over.
        number_of_lines: lines to give.
    """

    def __init__(self, source_class: Any, offset: int, number_of_lines: int) -> None:  # noqa: ANN401 - foreign
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
        """Close the file."""
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

    benchctl reads them by itself: an operation with such a source is its own `bulk` with these parameters,
    which plug-ins may change when the source is made. One that makes each request's parameters out of Rally's
    has no such thing here.
    """

    def __init__(self, track: Any, params: dict[str, Any], **kwargs: Any) -> None:  # noqa: ANN401 - foreign
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
        """It ends with the corpora."""
        return False

    @classmethod
    def is_plain(cls) -> bool:
        """Whether a class leaves the requests to benchctl."""
        return cls.params is BulkIndexParamSource.params and cls.partition is ParamSource.partition

    @property
    def bulk_params(self) -> dict[str, Any]:
        """What is left to benchctl."""
        own = {
            "bulk-size": self.bulk_size,
            "ingest-percentage": self.ingest_percentage,
            "pipeline": self.pipeline,
            "refresh": self.refresh,
            "looped": self.looped,
        }
        return {**self._params, **own}

    def params(self) -> dict[str, Any]:
        """There is no single request's.

        Raises:
            Unsupported: always.
        """
        raise Unsupported(
            f"{type(self).__name__} changes requests that Rally's BulkIndexParamSource makes: benchctl makes "
            "them by itself"
        )
