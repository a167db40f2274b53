"""What a plug-in registers when it is loaded: the object that its `register` function gets."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn

from benchctl.plugin.rally.exceptions import Unsupported
from benchctl.plugin.rally.loader import Decompressor, Downloader

_META_DATA: Mapping[str, Any] = {
    "async_runner": True,
    "rally_version": "2.13.0",
    "benchmark_version": "2.4.0",
}


@dataclass
class Registry:
    """Rally's and OpenSearch Benchmark's registry; the names of its methods are theirs.

    Attributes:
        param_sources: name -> function or class.
        runners: operation type -> coroutine function, or object with `async __call__`.
        schedulers: name -> function or class.
        processors: what wants to work on the track before it is run.
        meta_data: what plug-ins ask of whoever loads them.
    """

    param_sources: dict[str, Any] = field(default_factory=dict)
    runners: dict[str, Any] = field(default_factory=dict)
    schedulers: dict[str, Any] = field(default_factory=dict)
    processors: list[Any] = field(default_factory=list)
    meta_data: Mapping[str, Any] = field(default_factory=lambda: dict(_META_DATA))

    def register_param_source(self, name: str, param_source: Any) -> None:  # noqa: ANN401 - foreign
        """A source of parameters: `f(track, params, **kwargs)`, or a class."""
        self.param_sources[named(name)] = param_source

    def register_runner(self, operation_type: object, runner: Any, **kwargs: Any) -> None:  # noqa: ANN401 - foreign
        """What does an operation of a type.

        One that is not asynchronous is for a Rally before its version 2: its tasks are n/a.
        """
        name = named(operation_type)
        self.runners[name] = runner if kwargs.get("async_runner", False) else _Blocking(name)

    def register_scheduler(self, name: str, scheduler: Any) -> None:  # noqa: ANN401 - foreign
        """What spaces the requests of tasks: `f(current)`, or a class."""
        self.schedulers[named(name)] = scheduler

    def register_track_processor(self, processor: Any) -> None:  # noqa: ANN401 - foreign
        """What changes the track before it is run; it gets what it has a place for, as in Rally."""
        for name, made in (("downloader", Downloader), ("decompressor", Decompressor)):
            if hasattr(processor, name):
                setattr(processor, name, made())
        self.processors.append(processor)

    def register_workload_processor(self, processor: Any) -> None:  # noqa: ANN401 - foreign
        """The same in OpenSearch Benchmark's words."""
        self.register_track_processor(processor)

    def register_standard_value_source(
        self, operation_name: str, field_name: str, source: Callable[[], object]
    ) -> None:
        """OpenSearch Benchmark's values for queries that it randomises when told to; nothing tells it."""

    def register_query_randomization_info(self, operation_name: str, *info: object) -> None:
        """Where those values go."""


class _Blocking:
    """Stands for a runner that would wait for its answers itself."""

    def __init__(self, name: str) -> None:
        self._name = name

    async def __call__(self, *_: object) -> NoReturn:
        """Nothing is sent.

        Raises:
            Unsupported: always.
        """
        raise Unsupported(
            f"the runner of operation type '{self._name}' is not asynchronous: it has to be registered with "
            "async_runner=True, as Rally since version 2 demands"
        )


def named(name: object) -> str:
    """A name as the track writes it; plug-ins may also give Rally's own enumeration."""
    hyphenated = getattr(name, "to_hyphenated_string", None)
    return str(hyphenated() if callable(hyphenated) else name)
