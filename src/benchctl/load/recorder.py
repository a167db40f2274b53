"""One client's samples while it runs: packed rows in preallocated chunks, columns at the end."""

import struct

import numpy as np

from benchctl.load.operations import Answer
from benchctl.load.transport import Exchange
from benchctl.results.samples import SAMPLE_DTYPES, Columns, empty_columns

# What differs from request to request, in the order that `append` packs; the other columns are constant for a
# client and cost nothing while it runs.
_FIELDS = (
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
)
_CLOCKS = ("intended_ns", "start_ns", "end_ns")
_INTEGERS = {1: "b", 2: "h", 4: "i", 8: "q"}


def _row_struct() -> struct.Struct:
    dtypes = [SAMPLE_DTYPES[name] for name in _FIELDS]
    codes = ("?" if dtype.kind == "b" else _INTEGERS[dtype.itemsize] for dtype in dtypes)
    return struct.Struct("=" + "".join(codes))


# One pack of a row costs 0.4 us; a store into each of 13 numpy columns costs 0.8, into 13 array.array 1.2. A
# list of tuples is quicker to append to but takes six times the memory, in objects.
_ROW = _row_struct()
_ROW_DTYPE = np.dtype([(name, SAMPLE_DTYPES[name]) for name in _FIELDS])
_MAX_CHUNK_ROWS = 1 << 16


class Recorder:
    """Samples of one client, in order.

    Args:
        expected: how many are coming, where that is known: a short task gets one chunk of just that size.
            Longer and unbounded ones grow by a chunk at a time; rows are never moved while the client runs.

    Attributes:
        count: rows so far; other threads may read it at any time.
    """

    def __init__(self, expected: int | None = None) -> None:
        rows = _MAX_CHUNK_ROWS if expected is None else min(expected, _MAX_CHUNK_ROWS)
        self._chunk_bytes = max(rows, 1) * _ROW.size
        self._chunk = bytearray(self._chunk_bytes)
        self._full: list[bytearray] = []
        self._offset = 0
        self.count = 0

    def append(self, exchange: Exchange, answer: Answer, intended_ns: int, *, warmup: bool) -> None:
        """Keep one request; clocks are those of the monotonic clock."""
        if self._offset == self._chunk_bytes:
            self._full.append(self._chunk)
            self._chunk = bytearray(self._chunk_bytes)
            self._offset = 0
        _ROW.pack_into(
            self._chunk,
            self._offset,
            intended_ns,
            exchange.start_ns,
            exchange.connect_ns,
            exchange.first_byte_ns,
            exchange.end_ns,
            exchange.response_bytes,
            answer.hits,
            answer.took_ms,
            exchange.status,
            answer.failed_shards,
            answer.outcome,
            answer.hits_exact,
            warmup,
        )
        self._offset += _ROW.size
        self.count += 1

    def columns(self, *, origin_ns: int, schedule: int, task: int, boot: int, client: int) -> Columns:
        """Turn the rows into sample columns.

        Args:
            origin_ns: the fork's origin on the monotonic clock; all clocks are counted from it.
            schedule: fills the column of that name, as the others do.
            task: position in the schedule.
            boot: which node start.
            client: which client.

        Returns:
            Arrays of shape (count,).
        """
        chunks = [*self._full, self._chunk[: self._offset]]
        rows = np.concatenate([np.frombuffer(chunk, _ROW_DTYPE) for chunk in chunks])
        columns = empty_columns(self.count)
        for name in _FIELDS:
            columns[name][:] = rows[name]
        for name in _CLOCKS:
            columns[name] -= origin_ns
        columns["schedule"][:] = schedule
        columns["task"][:] = task
        columns["boot"][:] = boot
        columns["client"][:] = client
        return columns
