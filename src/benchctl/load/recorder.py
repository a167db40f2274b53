"""Records of a running task: every sample, and failures by kind with the first few reasons."""

import struct
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest

import numpy as np

from benchctl.load.request import Answer, Exchange
from benchctl.results.samples import ROW_DTYPE, ROW_FIELDS, Columns, Outcome, Place, RowFile, Rows, columns_of

_DETAILS_KEPT = 3


@dataclass(frozen=True)
class Failure:
    """Requests that ended alike, warm-up included."""

    outcome: Outcome
    count: int
    details: tuple[str, ...]  # the first few distinct reasons, in the words of the engine or of libcurl


def merge_failures(parts: Iterable[tuple[Failure, ...]]) -> tuple[Failure, ...]:
    """Add up the failures of several clients."""
    merged: dict[Outcome, Failure] = {}
    for failure in (failure for part in parts for failure in part):
        known = merged.get(failure.outcome, Failure(failure.outcome, 0, ()))
        details = dict.fromkeys(known.details + failure.details)
        merged[failure.outcome] = Failure(
            failure.outcome, known.count + failure.count, tuple(details)[:_DETAILS_KEPT]
        )
    return tuple(merged[outcome] for outcome in sorted(merged))


Tooks = tuple[Counter[int], ...]
"""Milliseconds -> how often: of the sum over the searches of a batch, then of each search by its place."""


def count_tooks(counts: list[Counter[int]], tooks_ms: Sequence[int]) -> None:
    """Count one batch that was answered; of other requests there are no times."""
    if not tooks_ms:
        return
    while len(counts) <= len(tooks_ms):
        counts.append(Counter())
    for one, took_ms in zip(counts, (sum(tooks_ms), *tooks_ms), strict=False):
        one[took_ms] += 1


def merge_tooks(parts: Iterable[Sequence[Counter[int]]]) -> Tooks:
    """Add up what several clients counted."""
    return tuple(sum(place, Counter()) for place in zip_longest(*parts, fillvalue=Counter()))


@dataclass(kw_only=True)
class Tally:
    """Totals of requests beyond their samples: of a client, of a process's clients, of a task."""

    unsupported: str | None = None  # the node's reason when it cannot do the operation; that ends the task
    failures: tuple[Failure, ...] = ()  # what failed, warm-up included
    searches_sent: int = 0  # searches that may have reached the node, those cut off by a stop included
    ended_ns: int = 0  # when the last client had completed its assignment; 0 when none did
    disk_waits: int = 0  # how often a client had to wait until its samples were on disk
    unit: str = ""  # what the operations' weights count, where only they know; else empty
    tooks: Sequence[Counter[int]] = ()  # of batches of searches, successful and measured, as `Tooks`
    # Of profiled and measured searches, by names as in `Answer`.
    profile_ns: Counter[str] = field(default_factory=Counter)
    sent_bytes: int = 0  # bodies of measured requests that succeeded

    def fail(self, outcome: Outcome, detail: str) -> None:
        """Count one failed request."""
        failed = Failure(outcome, 1, (detail,) if detail else ())
        self.failures = merge_failures((self.failures, (failed,)))

    def add(self, other: "Tally") -> None:
        """Add what others came to."""
        self.unsupported = self.unsupported or other.unsupported
        self.failures = merge_failures((self.failures, other.failures))
        self.searches_sent += other.searches_sent
        self.ended_ns = max(self.ended_ns, other.ended_ns)
        self.disk_waits += other.disk_waits
        self.unit = self.unit or other.unit
        self.tooks = merge_tooks((self.tooks, other.tooks))
        self.profile_ns = self.profile_ns + other.profile_ns
        self.sent_bytes += other.sent_bytes


_INTEGERS = {1: "b", 2: "h", 4: "i", 8: "q"}


def _row_struct() -> struct.Struct:
    dtypes = [ROW_DTYPE[name] for name in ROW_FIELDS]
    codes = ("?" if dtype.kind == "b" else _INTEGERS[dtype.itemsize] for dtype in dtypes)
    return struct.Struct("=" + "".join(codes))


# One pack of a row costs 0.4 us; a store into each of its numpy columns twice that, into array.array thrice.
# A list of tuples is quicker to append to but takes six times the memory, in objects.
_ROW = _row_struct()
_ROW_BYTES = _ROW.size
_pack_into = _ROW.pack_into

# What all clients of a task may hold together: a million rows of one client, 150,000 of each of eight.
_TASK_BYTES = 96 * 2**20
_MOST_CHUNK_ROWS = 1 << 16
_LEAST_CHUNK_ROWS = 1 << 10


class Recorder:
    """Samples of one client, in the order of its requests.

    A task that fits into memory has one buffer, and nothing is written before it ends. A longer one, or one
    that only time ends, has two: one fills while another thread writes the other out.

    Args:
        expected: how many rows are coming, where that is known.
        file: takes the rows; without one, all of them stay in memory, whatever that comes to.
        clients: how many clients the task has: they share the memory.
    """

    def __init__(self, expected: int | None = None, file: RowFile | None = None, *, clients: int = 1) -> None:
        share = max(_TASK_BYTES // (clients * _ROW_BYTES), 2 * _LEAST_CHUNK_ROWS)
        self._chunk_rows = min(share // 2, _MOST_CHUNK_ROWS)
        self._file = file
        self._spare: bytearray | None = None
        if expected is not None and expected <= share:
            self._buffer = bytearray(max(expected, 1) * _ROW_BYTES)
        else:
            self._buffer = self._new_chunk()
            if file is not None:
                self._spare = self._new_chunk()
        self._end = len(self._buffer)
        self._offset = 0
        self._full: list[bytearray] = []
        self._full_rows = 0

    @property
    def count(self) -> int:
        """Rows so far; other threads may read it at any time."""
        return self._full_rows + self._offset // _ROW_BYTES

    def append(
        self,
        exchange: Exchange,
        answer: Answer,
        intended_ns: int,
        *,
        warmup: bool,
        part: int = 0,
        attempt: int = 0,
        weight: int = 1,
        processing_ns: int = 0,
    ) -> None:
        """Keep one request; clocks are those of the monotonic clock.

        Raises:
            BenchctlError: If earlier rows could not be written out.
        """
        offset = self._offset
        if offset == self._end:
            self._next_buffer()
            offset = 0
        _pack_into(
            self._buffer,
            offset,
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
            part,
            attempt,
            weight,
            processing_ns,
        )
        self._offset = offset + _ROW_BYTES

    def finish(self) -> None:
        """Hand what is left to the file, and wait until all of it is written.

        Raises:
            BenchctlError: If rows could not be written.
        """
        if self._file is not None:
            self._file.finish(memoryview(self._buffer)[: self._offset])

    def rows(self) -> Rows:
        """Rows of a recorder without a file: shape (count,), of ROW_DTYPE."""
        chunks = [*self._full, self._buffer[: self._offset]]
        return np.concatenate([np.frombuffer(chunk, ROW_DTYPE) for chunk in chunks])

    def columns(self, place: Place) -> Columns:
        """Return the rows of a recorder without a file as sample columns of shape (count,)."""
        return columns_of(self.rows(), place)

    def _new_chunk(self) -> bytearray:
        return bytearray(self._chunk_rows * _ROW_BYTES)

    def _next_buffer(self) -> None:
        full, spare = self._buffer, self._spare
        if self._file is None:
            self._full.append(full)
        else:
            # The buffer that comes back is the one handed over before.
            spare = self._file.hand_over(full) or spare
            self._spare = None
        # Only a task that has more rows than it was expected to have (pages, retries) makes a buffer here.
        self._buffer = spare or self._new_chunk()
        self._offset = 0
        self._full_rows += self._end // _ROW_BYTES
        self._end = len(self._buffer)
