"""Every operation type that benchctl knows, by the name that Rally and OpenSearch Benchmark give it."""

from collections.abc import Iterator, Mapping
from functools import cache, reduce
from operator import or_
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import msgspec

from benchctl.track.operations import Count, Operation, Retried, Rules, Varying, admin
from benchctl.track.operations.search import (
    CompositeAgg,
    PaginatedSearch,
    RawRequest,
    ScrollSearch,
    Search,
    Sleep,
    VectorSearch,
)
from benchctl.track.values import Entry, check_values

# Operations that hand on to one another what they opened, and the composite that holds them together.

Subjects = str | tuple[str, ...]

MOST_STREAMS = 256
"""Of one composite; each has a thread while it runs."""


class OpenPointInTime(Operation, frozen=True, kw_only=True, tag="open-point-in-time"):
    """Keep an index as it is now, for searches that name this operation."""

    shown: ClassVar[bool] = True
    reads: ClassVar[bool] = True

    index: str | None = None  # None means the data stream, or else the track's own index
    data_stream: str | None = None  # the same, for those that are data streams
    keep_alive: str = "1m"


class CreatePointInTime(OpenPointInTime, frozen=True, kw_only=True, tag="create-point-in-time"):
    """Spelling of OpenSearch Benchmark."""


class ClosePointInTime(Operation, frozen=True, kw_only=True, tag="close-point-in-time"):
    """Let go of a point in time."""

    shown: ClassVar[bool] = True
    reads: ClassVar[bool] = True

    with_point_in_time_from: str  # name of the operation that opened it


class DeletePointInTime(Operation, frozen=True, kw_only=True, tag="delete-point-in-time"):
    """Spelling of OpenSearch Benchmark."""

    shown: ClassVar[bool] = True

    # Name of the operation that opened it; None means all that are open.
    with_point_in_time_from: str | None = None


class SubmitAsyncSearch(Operation, frozen=True, kw_only=True, tag="submit-async-search"):
    """Start a search whose answer is fetched later."""

    shown: ClassVar[bool] = True
    reads: ClassVar[bool] = True

    body: dict[str, Any]
    index: str | None = None  # what to search; None means the track's own index


class GetAsyncSearch(Retried, frozen=True, kw_only=True, tag="get-async-search"):
    """Fetch the answers of asynchronous searches, asking until they are there."""

    shown: ClassVar[bool] = True
    reads: ClassVar[bool] = True

    retrieve_results_for: Subjects  # names of the operations that started them
    retry_until_success: bool = True


class DeleteAsyncSearch(Operation, frozen=True, kw_only=True, tag="delete-async-search"):
    """Let the node forget asynchronous searches."""

    shown: ClassVar[bool] = True
    reads: ClassVar[bool] = True

    delete_results_for: Subjects  # names of the operations that started them


class Stream(Entry, frozen=True, kw_only=True, tag_field="operation-type", tag="stream"):
    """Operations one after the other, beside the streams that stand next to it."""

    stream: "tuple[Step, ...]"


class Phase(Entry, frozen=True, kw_only=True, tag_field="operation-type", tag="composite"):
    """A composite within a composite: what stands behind it waits for all of its requests."""

    name: str = ""
    requests: "Annotated[tuple[Step, ...], msgspec.Meta(min_length=1)]"
    max_connections: Count | None = None  # has no effect: the outermost composite sets the bound


if TYPE_CHECKING:
    Step = Stream | Phase | Operation
else:
    Step = (
        Stream
        | Phase
        | OpenPointInTime
        | CreatePointInTime
        | ClosePointInTime
        | DeletePointInTime
        | SubmitAsyncSearch
        | GetAsyncSearch
        | DeleteAsyncSearch
        | Search
        | PaginatedSearch
        | ScrollSearch
        | CompositeAgg
        | VectorSearch
        | RawRequest
        | Sleep
        | admin.TYPES["field-caps"]
        | admin.TYPES["list-all-point-in-time"]
    )
"""Steps of a composite."""


class Composite(Operation, frozen=True, kw_only=True, tag="composite"):
    """Several operations that are measured as one, and that together do what each of them does.

    They run one after the other; streams that stand next to each other run at the same time, and what stands
    behind them waits for all of them.
    """

    shown: ClassVar[bool] = True

    requests: Annotated[tuple[Step, ...], msgspec.Meta(min_length=1)]
    # How many requests are on their way at the same time; None sets no bound.
    max_connections: Count | None = None

    def _rules(self) -> Rules:
        streams = sum(isinstance(step, Stream) for step in walk(self.requests))
        yield streams <= MOST_STREAMS, f"{streams} streams: at most {MOST_STREAMS} can run"
        given: set[str] = set()
        for step in parts_of(self):
            wrong = check_values(step.values, step.templates) if isinstance(step, Varying) else ""
            yield not wrong, f"{step.name}: {wrong}"
            missing = [name for name in _needs(step) if name not in given]
            yield not missing, f"{step.name}: no operation before it is called '{', '.join(missing)}'"
            if isinstance(step, OpenPointInTime | SubmitAsyncSearch):
                given.add(step.name)


def walk(steps: tuple[Step, ...]) -> Iterator[Step]:
    """Yield all steps at any depth, in the order of the file."""
    for step in steps:
        yield step
        if isinstance(step, Stream | Phase):
            yield from walk(step.stream if isinstance(step, Stream) else step.requests)


def parts_of(operation: Operation) -> tuple[Operation, ...]:
    """Return what an operation does: itself, or all operations of a composite, in the order of the file."""
    if not isinstance(operation, Composite):
        return (operation,)
    return tuple(step for step in walk(operation.requests) if isinstance(step, Operation))


def _needs(step: Operation) -> tuple[str, ...]:
    """Names of the operations whose results it works on."""
    keys = ("retrieve_results_for", "delete_results_for", "with_point_in_time_from")
    found = [getattr(step, key, None) or () for key in keys]
    return tuple(name for names in found for name in ((names,) if isinstance(names, str) else names))


def stands_alone(operation: Operation) -> bool:
    """Return whether an operation makes sense outside of a composite."""
    return not (isinstance(operation, OpenPointInTime | SubmitAsyncSearch) or _needs(operation))


# All types.


def _declared(base: type[Operation]) -> Iterator[type[Operation]]:
    """The classes that name a type; to those that types have in common msgspec gives the class's own name."""
    for kind in base.__subclasses__():
        if kind.__struct_config__.tag != kind.__name__:
            yield kind
        yield from _declared(kind)


OPERATION_TYPES: Mapping[str, type[Operation]] = {
    str(kind.__struct_config__.tag): kind for kind in _declared(Operation)
}
"""Rally's name of a type -> its class: what else knows types has them from here."""

if TYPE_CHECKING:
    AnyOperation = Operation
else:
    AnyOperation = reduce(or_, OPERATION_TYPES.values())

# Rally and OpenSearch Benchmark read these, too, for keys that their documentation writes otherwise.
_OTHER_SPELLINGS = {
    "fixed_interval": "fixed-interval",
    "index_filter": "index-filter",
    "retries_on_429": "retry-on-429",
    "include-in-results_publishing": "include-in-reporting",
}
MEANINGLESS = frozenset(
    {"batch-size", "detailed-results", "poll-interval", "poll-period", "profile-metrics",
     "profile-metrics-sample-size", "radial_engine", "radial_search_type", "run-on-serverless",
     "transform-timeout"}
)  # fmt: skip
"""Keys of Rally and its kin about what benchctl decides itself, or does not do: passed over with a remark."""
_TYPE = "operation-type"


@cache
def operation_keys(kind: str) -> tuple[str, ...]:
    """Return the keys that operations of a type may have."""
    own = (field.encode_name for field in msgspec.structs.fields(OPERATION_TYPES[kind]))
    return (*own, _TYPE, *_OTHER_SPELLINGS, *MEANINGLESS)


def decode_operation(raw: dict[str, Any]) -> AnyOperation:
    """Read an operation; one that names no type is a search, as in Rally's oldest tracks.

    Numbers may stand as texts of digits or as fractions, which is what templates often make of parameters.

    Raises:
        msgspec.ValidationError: If a key is unknown, missing or of the wrong type.
    """
    keys = as_declared({_TYPE: "search", **raw})
    # Of a class, msgspec remembers what it looks like; of a union it finds that out anew every time.
    kind: Any = OPERATION_TYPES.get(str(keys.get(_TYPE)), AnyOperation)
    operation: AnyOperation = msgspec.convert(keys, kind, strict=False)
    if not stands_alone(operation):
        raise msgspec.ValidationError(
            f"{operation.type_name}: only a composite can have it among its requests"
        )
    return operation


def as_declared(raw: Mapping[str, Any]) -> dict[str, Any]:
    """Return an operation's keys as its class has them; nulls and empty filter types are ignored."""
    prepared = {
        _OTHER_SPELLINGS.get(key, key): value
        for key, value in raw.items()
        if value is not None and key not in MEANINGLESS and (key, value) != ("filter_type", {})
    }
    if isinstance(steps := prepared.get("requests"), list):
        prepared["requests"] = [_step(step) for step in steps]
    return prepared


def _step(raw: object) -> object:
    """A part of a composite: as in Rally, a stream has no type, and an operation needs no name."""
    if not isinstance(raw, dict):
        return raw
    if "stream" in raw:
        steps = raw["stream"]
        return {_TYPE: "stream", **raw, "stream": [*map(_step, steps)] if isinstance(steps, list) else steps}
    return as_declared({"name": raw.get(_TYPE, ""), **raw})


BUILT_IN_PARAM_SOURCES = frozenset({"file-reader", "bulk", "search"})
"""Names under which a track may ask for what its operation type does anyway."""

FILE_NAMES = ("track.py", "workload.py")
"""Rally's and OpenSearch Benchmark's names of a plug-in's main file."""


def find_plugin(folder: Path) -> str | None:
    """Return the main file's name of a track's Python plug-in, which reading the track does not execute."""
    return next((name for name in FILE_NAMES if (folder / name).is_file()), None)


class PluginOperation(Operation, frozen=True, kw_only=True, tag="plugin"):
    """An operation whose type or parameter source is not benchctl's own."""

    type: str  # its operation type, as the track calls it
    param_source: str | None = None  # what makes its parameters; None means the type's own way
    params: dict[str, Any] = msgspec.field(default_factory=dict)  # all that the track says about it

    @property
    def type_name(self) -> str:
        """The track's name of its type."""
        return self.type

    @property
    def reported(self) -> bool:
        """Return whether tables show it: yes unless the track says otherwise, as in Rally."""
        return self.include_in_reporting is not False

    @property
    def ends(self) -> bool:
        """Return whether it ends by itself: only its code knows, so a task may leave that to it."""
        return True

    @property
    def unit(self) -> str:
        """The unit of its throughput, unless its runner names one: that of other types of its name."""
        return OPERATION_TYPES.get(self.type, Operation).counts

    @property
    def lacks(self) -> str:
        """The thing that it needs and benchctl does not have, in words."""
        if self.param_source is not None:
            return f"param source '{self.param_source}'"
        return f"operation type '{self.type}'"
