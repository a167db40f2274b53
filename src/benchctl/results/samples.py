"""The columns of a fork's samples: one row a request, primitive types only."""

from collections.abc import Mapping
from enum import IntEnum
from typing import Any

import numpy as np
import numpy.typing as npt

SCHEMA_VERSION = 1

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
}


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


def select(columns: Columns, rows: npt.NDArray[np.bool_]) -> Columns:
    """Keep the rows where the mask, shape (n,), is true."""
    return {name: values[rows] for name, values in columns.items()}
