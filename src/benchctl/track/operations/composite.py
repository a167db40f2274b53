"""Operations that hand on to one another what they opened, and the composite that holds them together."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import msgspec

from benchctl.track.operations.common import Operation, Retried, Varying, demand
from benchctl.track.operations.search import (
    CompositeAgg,
    PaginatedSearch,
    RawRequest,
    ScrollSearch,
    Search,
    Sleep,
    VectorSearch,
)
from benchctl.track.operations.table import TYPES
from benchctl.track.values import check_values

Subjects = str | tuple[str, ...]

MOST_STREAMS = 256
"""Of one composite; each has a thread while it runs."""


class OpenPointInTime(Operation, frozen=True, kw_only=True, tag="open-point-in-time"):
    """Keep an index as it is now, for searches that name this operation."""

    shown: ClassVar[bool] = True

    index: str | None = None  # None means the data stream, or else the track's own index
    data_stream: str | None = None  # the same, for those that are data streams
    keep_alive: str = "1m"

    @property
    def target(self) -> str | None:
        """The name to keep; None means the track's own index."""
        return self.index or self.data_stream


class CreatePointInTime(OpenPointInTime, frozen=True, kw_only=True, tag="create-point-in-time"):
    """Spelling of OpenSearch Benchmark."""


class ClosePointInTime(Operation, frozen=True, kw_only=True, tag="close-point-in-time"):
    """Let go of a point in time."""

    shown: ClassVar[bool] = True

    with_point_in_time_from: str  # name of the operation that opened it


class DeletePointInTime(Operation, frozen=True, kw_only=True, tag="delete-point-in-time"):
    """Spelling of OpenSearch Benchmark."""

    shown: ClassVar[bool] = True

    # Name of the operation that opened it; None means all that are open.
    with_point_in_time_from: str | None = None


class SubmitAsyncSearch(Operation, frozen=True, kw_only=True, tag="submit-async-search"):
    """Start a search whose answer is fetched later."""

    shown: ClassVar[bool] = True

    body: dict[str, Any]
    index: str | None = None  # what to search; None means the track's own index


class GetAsyncSearch(Retried, frozen=True, kw_only=True, tag="get-async-search"):
    """Fetch the answers of asynchronous searches, asking until they are there."""

    shown: ClassVar[bool] = True

    retrieve_results_for: Subjects  # names of the operations that started them
    retry_until_success: bool = True


class DeleteAsyncSearch(Operation, frozen=True, kw_only=True, tag="delete-async-search"):
    """Let the node forget asynchronous searches."""

    shown: ClassVar[bool] = True

    delete_results_for: Subjects  # names of the operations that started them


class Stream(
    msgspec.Struct,
    frozen=True,
    forbid_unknown_fields=True,
    omit_defaults=True,
    kw_only=True,
    tag_field="operation-type",
    tag="stream",
):
    """Operations one after the other, beside the streams that stand next to it."""

    stream: "tuple[Step, ...]"


if TYPE_CHECKING:
    Step = Stream | Operation
else:
    Step = (
        Stream
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
        | TYPES["field-caps"]
        | TYPES["list-all-point-in-time"]
    )
"""Steps of a composite."""


class Composite(Operation, frozen=True, kw_only=True, tag="composite"):
    """Several operations that are measured as one.

    They run one after the other; streams that stand next to each other run at the same time, and what stands
    behind them waits for all of them.
    """

    shown: ClassVar[bool] = True

    requests: tuple[Step, ...]
    # How many requests are on their way at the same time; None sets no bound.
    max_connections: Annotated[int, msgspec.Meta(ge=1)] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        demand((len(self.requests) > 0, "requests is empty"))
        streams = sum(1 for _ in _streams_of(self.requests))
        demand((streams <= MOST_STREAMS, f"{streams} streams: at most {MOST_STREAMS} can run"))
        given: set[str] = set()
        for step in steps_of(self.requests):
            if isinstance(step, Varying):
                wrong = check_values(step.values, step.templates)
                demand((not wrong, f"{step.name}: {wrong}"))
            missing = [name for name in _needs(step) if name not in given]
            demand((not missing, f"{step.name}: no operation before it is called '{', '.join(missing)}'"))
            if isinstance(step, OpenPointInTime | SubmitAsyncSearch):
                given.add(step.name)


def _streams_of(steps: tuple[Step, ...]) -> Iterator[Stream]:
    for step in steps:
        if isinstance(step, Stream):
            yield step
            yield from _streams_of(step.stream)


def steps_of(steps: tuple[Step, ...]) -> Iterator[Operation]:
    """Yield all operations of a composite, in the order of the file."""
    for step in steps:
        if isinstance(step, Stream):
            yield from steps_of(step.stream)
        else:
            yield step


def _needs(step: Operation) -> tuple[str, ...]:
    """Names of the operations whose results it works on."""
    match step:
        case GetAsyncSearch(retrieve_results_for=names) | DeleteAsyncSearch(delete_results_for=names):
            return (names,) if isinstance(names, str) else names
        case _:
            name = getattr(step, "with_point_in_time_from", None)
            return () if name is None else (name,)


def stands_alone(operation: Operation) -> bool:
    """Return whether an operation makes sense outside of a composite."""
    if isinstance(operation, OpenPointInTime | SubmitAsyncSearch | Composite):
        return isinstance(operation, Composite)
    return not _needs(operation)
