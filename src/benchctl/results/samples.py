"""A fork's samples: one row a request, of primitive types; packed while it runs, columns afterwards."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np
import numpy.typing as npt

SCHEMA_VERSION = 2

Columns = dict[str, npt.NDArray[Any]]


class Outcome(IntEnum):
    """How a request ended; only OK counts in latency and throughput."""

    OK = 0
    HTTP_ERROR = 1
    REJECTED = 2
    TIMEOUT = 3
    REFUSED = 4
    RESET = 5
    PARTIAL = 6
    BAD_BODY = 7
    CANCELLED = 8  # the driver ended it: it says nothing about the node


# All clocks are integer nanoseconds of the driver's monotonic clock, counted from the fork's origin.
SAMPLE_DTYPES: Mapping[str, np.dtype[Any]] = {
    "schedule": np.dtype(np.int16),  # which of the fork's schedules, in run order
    "task": np.dtype(np.int16),  # which task of that schedule
    "boot": np.dtype(np.int16),  # which node start of the fork
    "client": np.dtype(np.int16),
    "warmup": np.dtype(np.bool_),
    "intended_ns": np.dtype(np.int64),  # when the schedule wanted it sent; equals start_ns in a closed loop
    "start_ns": np.dtype(np.int64),
    "connect_ns": np.dtype(np.int64),  # time to connect, as a duration; 0 on a kept-alive connection
    "first_byte_ns": np.dtype(np.int64),  # first byte of the response, as a duration from start
    "end_ns": np.dtype(np.int64),  # last byte of the response
    "status": np.dtype(np.int16),  # HTTP status; 0 when there was no response
    "outcome": np.dtype(np.int8),
    "took_ms": np.dtype(np.int32),  # the engine's own time; -1 unknown
    "hits": np.dtype(np.int64),  # total hits as answered; -1 unknown
    "hits_exact": np.dtype(np.bool_),  # False when the engine stopped counting
    "response_bytes": np.dtype(np.int64),
    "failed_shards": np.dtype(np.int16),
    # An operation of several requests has a row of its own, part 0, over all of them; they are 1, 2, ...
    "part": np.dtype(np.int32),  # a scroll over a large index has more pages than an int16 counts
    "attempt": np.dtype(np.int8),  # 0 the first time, then how often the node had rejected it before
    "weight": np.dtype(np.int32),  # units of throughput: documents, searches of a batch, else 1
    "processing_ns": np.dtype(np.int64),  # from start until the driver had read the answer, as a duration
}

# What differs from request to request, in the order in which a driver packs it. The other columns are the
# same for all rows of one client in one task: `Place` has them, and they cost nothing while it runs.
ROW_FIELDS = (
    "intended_ns",
    "start_ns",
    "connect_ns",
    "first_byte_ns",
    "end_ns",
    "response_bytes",
    "hits",
    "took_ms",
    "status",
    "failed_shards",
    "outcome",
    "hits_exact",
    "warmup",
    "part",
    "attempt",
    "weight",
    "processing_ns",
)
ROW_DTYPE = np.dtype([(name, SAMPLE_DTYPES[name]) for name in ROW_FIELDS])

# The most rows that anything which streams samples holds at a time: 12 MB of columns, a row group of a file.
CHUNK_ROWS = 122_880

_CLOCKS = ("intended_ns", "start_ns", "end_ns")

Rows = npt.NDArray[np.void]


@dataclass(frozen=True)
class Place:
    """Whose rows they are: fills the columns that are the same for all of them.

    Attributes:
        origin_ns: the fork's origin on the clock of the rows; columns count from it.
        schedule: which of the fork's schedules.
        task: which task of that schedule.
        boot: which node start of the fork.
        client: which client of the task.
    """

    origin_ns: int
    schedule: int
    task: int
    boot: int
    client: int


def columns_of(rows: Rows, place: Place) -> Columns:
    """Turn packed rows into sample columns.

    Args:
        rows: shape (n,), of ROW_DTYPE.
        place: whose they are.

    Returns:
        Arrays of shape (n,) of their own, in the order and types of SAMPLE_DTYPES.
    """
    constant = {
        "schedule": place.schedule,
        "task": place.task,
        "boot": place.boot,
        "client": place.client,
    }
    columns = {
        name: np.full(rows.size, constant[name], dtype) if name in constant else rows[name].copy()
        for name, dtype in SAMPLE_DTYPES.items()
    }
    for name in _CLOCKS:
        columns[name] = columns[name] - place.origin_ns
    return columns


def empty_columns(rows: int) -> Columns:
    """Preallocate every sample column.

    Args:
        rows: how many samples fit.

    Returns:
        Arrays of shape (rows,), zeroed, in the order and types of SAMPLE_DTYPES.
    """
    return {name: np.zeros(rows, dtype) for name, dtype in SAMPLE_DTYPES.items()}


def concatenate(parts: list[Columns]) -> Columns:
    """Join sample columns in the given order; an empty list gives columns of shape (0,)."""
    if not parts:
        return empty_columns(0)
    return {name: np.concatenate([part[name] for part in parts]) for name in SAMPLE_DTYPES}


def gathered(pieces: Iterable[Columns], rows: int = CHUNK_ROWS) -> Iterator[Columns]:
    """Join small pieces to chunks, in order: ten requests a task are not worth a chunk each.

    Args:
        pieces: of at most `rows` rows each.
        rows: that a chunk has at most.

    Yields:
        Chunks that hold as many whole pieces as fit; none that is empty.
    """
    waiting: list[Columns] = []
    count = 0
    for piece in pieces:
        size = piece["start_ns"].size
        if waiting and count + size > rows:
            yield _joined(waiting)
            waiting, count = [], 0
        if size:
            waiting.append(piece)
            count += size
    if waiting:
        yield _joined(waiting)


def _joined(pieces: list[Columns]) -> Columns:
    return pieces[0] if len(pieces) == 1 else concatenate(pieces)


def select(columns: Columns, rows: npt.NDArray[np.bool_]) -> Columns:
    """Keep the rows where the mask, shape (n,), is true; copies nothing where that is all of them."""
    return columns if rows.all() else {name: values[rows] for name, values in columns.items()}
