"""The base classes of parameter sources, as plug-ins derive theirs from them."""

from collections.abc import Callable
from enum import Enum
from typing import Any


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
