"""The client of a task: when its requests are due, its loop, and the samples and totals that it keeps."""

import queue
import struct
import threading
import time
import zlib
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from itertools import count, dropwhile, islice, takewhile, zip_longest
from typing import Any

import numpy as np

from benchctl.errors import BenchctlError, UsageError
from benchctl.load.transport import Answer, Exchange, MeasuredClient, Request, SeveralWires
from benchctl.load.work import CANCELLED, Driven, Program, Reply, Script, ScriptTotal, Together
from benchctl.load.work.judges import is_unsupported
from benchctl.results.answers import Exchanged, is_comparable
from benchctl.results.samples import (
    ROW_DTYPE,
    ROW_FIELDS,
    Columns,
    Outcome,
    RowFile,
    RowOwner,
    Rows,
    columns_of,
)
from benchctl.track.model import Task
from benchctl.track.operations.catalogue import MOST_STREAMS

# Arrivals: pure and seeded, the same for every variant, with no clock in it.

NS_PER_S = 1_000_000_000

# Poisson arrivals are drawn in blocks: large enough that numpy's cost per call does not show, small enough
# that drawing one between two requests does not delay the second.
_BLOCK_PER_CLIENT = 64


@dataclass(frozen=True)
class Extent:
    """The extent of one client's work: a number of requests, or a period."""

    requests: int | None  # of one client, warm-up included; None when something else ends the task
    warmup_requests: int  # how many of these are warm-up
    # Nanoseconds from the task's start, warm-up included; None when requests bound the task.
    period_ns: int | None
    warmup_ns: int  # what falls before this offset is warm-up
    least_ns: int = 0  # for how long it measures at least, however many requests that takes

    def is_warmup(self, position: int, offset_ns: int) -> bool:
        """Return whether a client's request number `position` (from 0), due at `offset_ns`, is warm-up."""
        return position < self.warmup_requests or offset_ns < self.warmup_ns


def extent(task: Task) -> Extent:
    """Return the bounds of a task; one that names none runs once, as in Rally.

    Raises:
        UsageError: If the task has a warm-up period and nothing that ends it.
    """
    if task.time_period is not None:
        warmup_ns = round((task.warmup_time_period or 0) * NS_PER_S)
        return Extent(None, 0, warmup_ns + round(task.time_period * NS_PER_S), warmup_ns)
    if task.warmup_time_period is not None:
        raise UsageError(
            f"task '{task.label}' has a warmup-time-period but no time-period",
            hint="give it a time-period, or use warmup-iterations with iterations",
        )
    warmup = task.warmup_iterations or 0
    measured = 1 if task.iterations is None else task.iterations
    return Extent(warmup + measured, warmup, None, 0, round((task.least_time or 0) * NS_PER_S))


def arrivals(
    task: Task, *, client: int, seed: int, from_ns: int = 0, bounds: Extent | None = None
) -> Iterator[int]:
    """Yield when one client's requests are due in an open loop: ns from the task's start, non-decreasing.

    All clients share one arrival process, of which client i of n takes arrivals i, i + n and so on: clients
    are staggered, the total rate is the target, and the first request is throttled like every other.

    Deterministic arrival k is due at k / rate. Poisson arrivals are sums of exponential gaps, by inversion of
    the raw output of `PCG64`, the stream that numpy promises never to change; the task's label is part of the
    seed, so that two tasks of a schedule don't share their pattern.

    Args:
        task: a task with a target.
        client: its number, from 0.
        seed: the run's seed.
        from_ns: a client that ramps up later skips earlier arrivals; nobody else takes them.
        bounds: overrides the task's own bounds.

    Raises:
        ValueError: If the task has no target: a closed loop has no arrivals.
    """
    rate_per_s = task.rate_per_s
    if rate_per_s is None:
        raise ValueError(f"task '{task.label}' is a closed loop")
    if task.schedule == "poisson":
        entropy = np.random.SeedSequence([seed, zlib.crc32(task.label.encode())])
        due = _poisson(rate_per_s, task.clients, client, entropy)
    else:
        # From each arrival's number, not from its predecessor: rounding does not accumulate.
        due = (round(number * NS_PER_S / rate_per_s) for number in count(client, task.clients))
    bounds = extent(task) if bounds is None else bounds
    if from_ns:
        due = dropwhile(lambda offset_ns: offset_ns < from_ns, due)
    period_ns = bounds.period_ns
    if period_ns is None:
        return islice(due, bounds.requests)
    return takewhile(lambda offset_ns: offset_ns < period_ns, due)


def _poisson(rate_per_s: float, clients: int, client: int, seed: np.random.SeedSequence) -> Iterator[int]:
    """Clients draw the whole process and keeps its share: cheaper than a lock between them."""
    bits = np.random.PCG64(seed)
    mean_ns = NS_PER_S / rate_per_s
    block = _BLOCK_PER_CLIENT * clients
    now_ns = 0
    while True:
        uniform = (bits.random_raw(block) >> np.uint64(11)) * 2.0**-53
        # Gaps are whole nanoseconds before they are added, so the sum is exact however long it grows.
        gaps_ns = np.rint(-np.log1p(-uniform) * mean_ns).astype(np.int64)
        due_ns = now_ns + np.cumsum(gaps_ns)
        now_ns = int(due_ns[-1])
        yield from due_ns[client::clients].tolist()


# A wake-up later than this was a hiccup of the host, not its usual latency, and is not planned for.
_MAX_LEAD_NS = 300_000
_LEAD_MEMORY = 8

Clock = Callable[[], int]  # nanoseconds, monotonic
Cue = tuple[int | None, bool, int]
"""Due time of a request on the monotonic clock, None for at once; whether it is warm-up; its turn."""
_CUE: Cue = (None, False, 0)
_WARMUP_CUE: Cue = (None, True, 0)


class Waiter:
    """A client's clock, which waits for a moment as precisely as the host wakes a thread.

    A sleeping thread wakes late, by 0.1 ms on a busy core and more on an idle one. The waiter learns by how
    much and sleeps that much less. It spins only for what remains when it wakes earlier than usual, some
    microseconds: a driver that spins takes the core from the node it measures. Setting `halt` ends every wait
    at once.
    """

    def __init__(self, halt: threading.Event, clock: Clock = time.monotonic_ns) -> None:
        self._halt = halt
        self._clock = clock
        self._lead_ns = 0
        self.now_ns = clock
        self.halted = halt.is_set

    def wait_until(self, moment_ns: int) -> bool:
        """Return at `moment_ns`, never before; immediately when it has passed. False when halted."""
        clock = self._clock
        wake_ns = moment_ns - self._lead_ns
        sleep_ns = wake_ns - clock()
        if sleep_ns > 0:
            if self._halt.wait(sleep_ns / 1e9):
                return False
            late_ns = min(max(clock() - wake_ns, 0), _MAX_LEAD_NS)
            self._lead_ns += (late_ns - self._lead_ns) // _LEAD_MEMORY
        while clock() < moment_ns:
            pass
        return not self._halt.is_set()

    def cue(self, due_ns: int | None, *, warmup: bool) -> Cue | None:
        """Return the cue of a request when it is time: at once, or when it is due; None when halted."""
        if due_ns is not None:
            return (due_ns, warmup, 0) if self.wait_until(due_ns) else None
        if self.halted():
            return None
        return _WARMUP_CUE if warmup else _CUE


def cues(
    task: Task,
    bounds: Extent,
    *,
    client: int,
    seed: int,
    start_ns: int,
    timer: Waiter,
    ramp_up_ns: int = 0,
) -> Iterator[Cue]:
    """Yield once per request of a client, when it is time to send it.

    The task starts at `start_ns` of the timer's clock, this client (from 0) `ramp_up_ns` later. Arrivals that
    fell due while the client was busy follow immediately; none is skipped.
    """
    if not timer.wait_until(start_ns + ramp_up_ns):
        return
    if task.rate_per_s is not None:
        due = arrivals(task, client=client, seed=seed, from_ns=ramp_up_ns, bounds=bounds)
        yield from _open_loop(due, bounds, start_ns, timer)
    elif bounds.requests is not None:
        yield from _counted(bounds, bounds.requests, timer)
    else:
        yield from _timed(bounds, start_ns, timer)


def open_ended(task: Task) -> Extent:
    """Return the extent of a task that runs until its work is exhausted; all but its warm-up is measured."""
    warmup_ns = round((task.warmup_time_period or 0) * NS_PER_S)
    return Extent(None, task.warmup_iterations or 0, None, warmup_ns)


def _open_loop(due: Iterator[int], bounds: Extent, start_ns: int, timer: Waiter) -> Iterator[Cue]:
    for position, offset_ns in enumerate(due):
        cue = timer.cue(start_ns + offset_ns, warmup=bounds.is_warmup(position, offset_ns))
        if cue is None:
            return
        yield cue


def _counted(bounds: Extent, requests: int, timer: Waiter) -> Iterator[Cue]:
    cue_of, now_ns = timer.cue, timer.now_ns
    for _ in range(bounds.warmup_requests):
        if (cue := cue_of(None, warmup=True)) is None:
            return
        yield cue
    left, ends_ns = requests - bounds.warmup_requests, 0
    while (left > 0 or (bounds.least_ns and now_ns() < ends_ns)) and (
        (cue := cue_of(None, warmup=False)) is not None
    ):
        ends_ns = ends_ns or now_ns() + bounds.least_ns
        left -= 1
        yield cue


def _timed(bounds: Extent, start_ns: int, timer: Waiter) -> Iterator[Cue]:
    now_ns, ends_ns = timer.now_ns, bounds.period_ns
    for position in count():
        elapsed_ns = now_ns() - start_ns
        if ends_ns is not None and elapsed_ns >= ends_ns:
            return
        cue = timer.cue(None, warmup=bounds.is_warmup(position, elapsed_ns))
        if cue is None:
            return
        yield cue


# What a client keeps: samples, and totals beyond them.

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
        earlier = merged.get(failure.outcome, Failure(failure.outcome, 0, ()))
        details = dict.fromkeys(earlier.details + failure.details)
        merged[failure.outcome] = Failure(
            failure.outcome, earlier.count + failure.count, tuple(details)[:_DETAILS_KEPT]
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
    for counter, took_ms in zip(counts, (sum(tooks_ms), *tooks_ms), strict=False):
        counter[took_ms] += 1


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
    unit: str = ""  # what the operations' weights count, where only they know; else empty
    tooks: Sequence[Counter[int]] = ()  # of batches of searches, successful and measured, as `Tooks`
    # Of profiled and measured searches, by names as in `Answer`.
    profile_ns: Counter[str] = field(default_factory=Counter)
    # Recall of measured searches, summed, and how many have it.
    recall: tuple[float, int] = (0.0, 0)
    # Of measured searches that succeeded, evenly spread over each client's.
    sample: list[Exchanged] = field(default_factory=list)

    def fail(self, outcome: Outcome, detail: str) -> None:
        """Count one failed request."""
        failed = Failure(outcome, 1, (detail,) if detail else ())
        self.failures = merge_failures((self.failures, (failed,)))

    def count_recall(self, recall: float, searches: int = 1) -> None:
        """Add the sum of so many searches."""
        self.recall = self.recall[0] + recall, self.recall[1] + searches

    def add(self, other: "Tally") -> None:
        """Add what others came to."""
        self.unsupported = self.unsupported or other.unsupported
        self.failures = merge_failures((self.failures, other.failures))
        self.searches_sent += other.searches_sent
        self.ended_ns = max(self.ended_ns, other.ended_ns)
        self.unit = self.unit or other.unit
        self.tooks = merge_tooks((self.tooks, other.tooks))
        self.profile_ns = self.profile_ns + other.profile_ns
        self.count_recall(*other.recall)
        self.sample += other.sample


_MOST_SAMPLED = 64  # answers of a client
_SAMPLE_BYTES = 4 << 20  # of a task
_THINNED = 3  # odd, since values often come in cycles of an even length


class Sampler:
    """Keeps answers of a client, which are read when its node is gone: evenly spread, and limited in size.

    Args:
        sample: takes them.
        clients: how many the task has: they share the memory.
    """

    def __init__(self, sample: list[Exchanged], clients: int = 1) -> None:
        self._sample = sample
        self._most_bytes = _SAMPLE_BYTES // clients
        self._bytes = 0
        self._offered = 0
        self._every = 1

    def offer(self, request: Request, body: bytes) -> None:
        """Keep an answer if it is its turn; one that is beyond the limit alone is never kept."""
        place = self._offered
        self._offered += 1
        if place % self._every or len(body) > self._most_bytes or not is_comparable(request.path):
            return
        sample = self._sample
        sample.append(Exchanged(request.path, request.body, body))
        self._bytes += len(body)
        while len(sample) > _MOST_SAMPLED or self._bytes > self._most_bytes:
            sample[:] = sample[::_THINNED]
            self._every *= _THINNED
            self._bytes = sum(len(one.returned) for one in sample)


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
        turn: int = 0,
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
            exchange.end_ns,
            exchange.response_bytes,
            answer.hits,
            answer.took_ms,
            exchange.status,
            answer.failed_shards,
            answer.outcome,
            answer.hits_exact,
            warmup,
            turn,
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

    def columns(self, place: RowOwner) -> Columns:
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


_CONNECTION_LOST = frozenset({Outcome.REFUSED, Outcome.RESET})
_LOST_IN_A_ROW = 3
_FIRST_BACKOFF_NS = 50_000_000
_LONGEST_BACKOFF_NS = 5_000_000_000
_HTTP_OK = 200
# Only quick answers come often enough for contention; reading a batch of them takes a tenth of a millisecond.
_QUICK_NS = 1_000_000
_MOST_WAITING = 128
_MOST_WAITING_BYTES = 16 * 1024
_LEFT_OPEN = Answer(Outcome.OK)


_Append = Callable[..., None]  # `Recorder.append`


def _locked(append: _Append) -> _Append:
    """Return what keeps samples of several threads, one at a time."""
    lock = threading.Lock()

    def append_locked(*sample: Any, **more: Any) -> None:
        with lock:
            append(*sample, **more)

    return append_locked


class SharedWires(SeveralWires):
    """Several open connections as one: a request takes a free one, or waits until one is."""

    def __init__(self, wires: "Sequence[Wire]") -> None:
        super().__init__(wires)
        self._free: queue.SimpleQueue[Wire] = queue.SimpleQueue()
        for wire in wires:
            self._free.put(wire)

    def connect(self) -> Exchange:
        """Greet the node over a free connection; all are open already."""
        wire = self._free.get()
        try:
            return wire.connect()
        finally:
            self._free.put(wire)

    def send(self, request: Request) -> Exchange:
        """Send a request over a free connection."""
        wire = self._free.get()
        try:
            return wire.send(request)
        finally:
            self._free.put(wire)


Wire = MeasuredClient | SharedWires
"""A client's way to the cluster."""


def first_failure(answers: Sequence[Answer]) -> Answer:
    """Return the first answer that is not OK; OK when there is none."""
    return next((answer for answer in answers if answer.outcome is not Outcome.OK), Answer(Outcome.OK))


class NodeGone(BenchctlError):  # noqa: N818 - what happened, not a kind of mistake
    """The node no longer answers; whoever runs its process knows more."""


def greet(wire: Wire, where: str = "") -> None:
    """Open a connection, or check that the node still answers.

    A proxy may break one connection, and a node may stop giving one kind of answer: neither is gone.
    `where` names the task in the message.

    Raises:
        NodeGone: If the node answers none of several greetings.
    """
    for _ in range(_LOST_IN_A_ROW):
        greeting = wire.connect()
        if greeting.failure is None or wire.interrupted:
            return
    raise NodeGone(
        f"the node is gone{where}: cannot connect: {greeting.detail}",
        hint="look at the end of the node's log",
    )


class TaskAborted(BenchctlError):  # noqa: N818 - what happened, not a kind of mistake
    """A request failed, and the run was told to stop on failures."""


class Client:
    """Sends one client's requests over one open connection, one at a time.

    Args:
        program: what it sends.
        wire: its connection.
        timer: its clock.
        recorder: keeps its samples.
        label: the task's name, for messages.
        number: its own within the task, from 0.
        measured: False makes every request a warm-up.
        abort_on_failure: whether the first failed request ends the task with an error.
        spares: further open connections, for scripts that run at the same time.
        clients: how many the task has.
    """

    def __init__(
        self,
        program: Program,
        wire: Wire,
        timer: Waiter,
        recorder: Recorder,
        *,
        label: str = "",
        number: int = 0,
        measured: bool = True,
        abort_on_failure: bool = False,
        spares: Sequence[Wire] = (),
        clients: int = 1,
    ) -> None:
        self.recorder = recorder
        # Whether a first request that the node does not know is something that it cannot do.
        self.may_lack = True
        self._append: _Append = recorder.append
        self.number = number
        self.tally = Tally()  # so far
        self._program = program
        self._label = label
        self._measured = measured
        self._abort_on_failure = abort_on_failure
        self._tooks: list[Counter[int]] = []
        self.tally.tooks = self._tooks
        self._sampler = Sampler(self.tally.sample, clients)
        self._wire = wire
        self._shared = SharedWires((wire, *spares))
        self._pool: ThreadPoolExecutor | None = None
        self._timer = timer
        self._lost_in_a_row = 0
        self._operations = 0
        self._waiting: list[tuple[Request, Exchange, bool, int]] = []
        self._turn = 0

    def run(self, cues: Iterable[Cue]) -> None:
        """Complete the assignment, as `steps`."""
        for _ in self.steps(cues):
            pass

    def steps(self, cues: Iterable[Cue]) -> Generator[None, None, None]:
        """Complete the assignment, one operation per cue; pauses behind each of them.

        Raises:
            NodeGone: If the connection is lost several times in a row and greetings fail as well.
            TaskAborted: If a request fails and the assignment aborts on failure.
        """
        try:
            yield from self._run(self._program, iter(cues))
        finally:
            if self._pool is not None:
                self._pool.shutdown()
            self._settle()

    def _run(self, program: Program, cues: Iterator[Cue]) -> Iterator[None]:
        """The loop. Requests are built before they are due, so that no latency includes building them.

        All clients of a process share the interpreter lock, and contend for it whenever one does more between
        requests than send the next. So a closed loop sets quick, complete answers aside and reads them in
        batches, except where a request may have to be retried.
        """
        send, waiting = self._wire.send, self._waiting
        unmeasured = not self._measured
        may_wait = not self._abort_on_failure
        while (work := program()) is not None:
            cue = next(cues, None)
            if cue is None:
                return
            due_ns, warmup, self._turn = cue
            if due_ns is None and may_wait and type(work) is Request and not work.retries:
                exchange = send(work)
                if (
                    exchange.failure is None
                    and exchange.status == _HTTP_OK
                    and exchange.response_bytes <= _MOST_WAITING_BYTES
                    and exchange.end_ns - exchange.start_ns < _QUICK_NS
                ):
                    waiting.append((work, exchange, warmup or unmeasured, self._turn))
                    if len(waiting) >= _MOST_WAITING:
                        self._settle()
                    yield
                    continue
            else:
                exchange = None
            self._settle()
            if not self._do(work, due_ns, exchange, warmup=warmup or unmeasured):
                return
            yield

    def _do(self, work: Request | Script, due_ns: int | None, sent: Exchange | None, *, warmup: bool) -> bool:
        """Complete one operation, given the exchange if it was already sent; False if none may follow."""
        if isinstance(work, Request):
            reply = self._ask(work, due_ns, 0, warmup=warmup, sent=sent)
        else:
            reply = self._follow(work, due_ns, warmup=warmup)
        self._operations += 1
        if reply.answer.outcome is not Outcome.OK:
            self._handle_failure(reply)
        return not self._wire.interrupted and self.tally.unsupported is None

    def _settle(self) -> None:
        """Judge the answers set aside, and record their samples."""
        waiting = self._waiting
        if not waiting:
            return
        append, now_ns, tally = self._append, self._timer.now_ns, self.tally
        began_ns = now_ns()
        for request, exchange, warmup, turn in waiting:
            answer = request.judge(_HTTP_OK, exchange.body)
            read_ns = now_ns()
            start_ns = exchange.start_ns
            append(
                exchange,
                answer,
                start_ns,
                warmup=warmup,
                turn=turn,
                weight=request.weight,
                processing_ns=exchange.end_ns - start_ns + read_ns - began_ns,
            )
            began_ns = read_ns
            tally.searches_sent += request.searches
            if answer.outcome is not Outcome.OK:
                tally.fail(answer.outcome, answer.reason)
            elif not warmup:
                count_tooks(self._tooks, answer.tooks_ms)
                self._count_contents(request, exchange, answer)
        self._operations += len(waiting)
        self._lost_in_a_row = 0
        waiting.clear()

    def _count_contents(self, request: Request, exchange: Exchange, answer: Answer) -> None:
        if request.searches:
            self._sampler.offer(request, exchange.body)
        if answer.profile_ns:
            self.tally.profile_ns.update(answer.profile_ns)
        if answer.recall is not None:
            self.tally.count_recall(answer.recall)

    def _ask(
        self,
        request: Request,
        due_ns: int | None,
        part: int,
        *,
        warmup: bool,
        sent: Exchange | None = None,
    ) -> Reply:
        """Send one request, and resend it when the node rejects it (429) and its policy allows.

        `due_ns` None means due when sent; `part` numbers the requests of an operation, 0 for the only one;
        `sent` is the exchange of a request that was already sent.
        """
        attempt = 0
        while True:
            exchange = sent or self._wire.send(request)
            sent = None
            if exchange.failure is None:
                self.tally.searches_sent += request.searches
                answer = request.judge(exchange.status, exchange.body)
            else:
                answer = self._lost(request, exchange)
            start_ns = exchange.start_ns
            if due_ns is None:
                due_ns = start_ns
            self._append(
                exchange,
                answer,
                due_ns,
                warmup=warmup,
                turn=self._turn,
                part=part,
                attempt=attempt,
                weight=request.weight,
                processing_ns=self._timer.now_ns() - start_ns,
            )
            if answer.outcome is Outcome.OK:
                self._lost_in_a_row = 0
                if not warmup:
                    self._count_contents(request, exchange, answer)
                    if part == 0:
                        count_tooks(self._tooks, answer.tooks_ms)
                return Reply(exchange, answer)
            if answer.outcome in _CONNECTION_LOST:
                self._lose()
            else:
                self._lost_in_a_row = 0
            if answer.outcome is not Outcome.REJECTED or attempt >= request.retries:
                return Reply(exchange, answer)
            if not self._pause(min(_FIRST_BACKOFF_NS << attempt, _LONGEST_BACKOFF_NS)):
                return Reply(exchange, answer)
            # The last rejection is that of the operation, and counted there.
            self.tally.fail(answer.outcome, answer.reason)
            attempt += 1

    def _lost(self, request: Request, exchange: Exchange) -> Answer:
        """The answer for a request that got no complete response."""
        if exchange.failure is not Outcome.REFUSED:
            self.tally.searches_sent += request.searches
        if exchange.failure is None or self._wire.interrupted:
            return CANCELLED
        return Answer(exchange.failure, reason=exchange.detail)

    def _follow(self, script: Script, due_ns: int | None, *, warmup: bool) -> Reply:
        """Run an operation of several requests: one sample for each, and one for the total."""
        total = ScriptTotal(self._timer.now_ns())
        self._play(script, total, count(1), warmup=warmup)
        exchange = total.exchange(self._timer.now_ns())
        self._append(
            exchange,
            total.answer,
            exchange.start_ns if due_ns is None else due_ns,
            warmup=warmup,
            turn=self._turn,
            weight=total.answer.weight,
            processing_ns=self._timer.now_ns() - exchange.start_ns,
        )
        self.tally.unit = total.answer.unit or self.tally.unit
        if total.answer.outcome is Outcome.OK and not warmup:
            count_tooks(self._tooks, total.answer.tooks_ms)
        return Reply(exchange, total.answer)

    def _play(self, script: Script, total: ScriptTotal, parts: Iterator[int], *, warmup: bool) -> None:
        """Do what a script yields, and add its replies to the total; `parts` numbers its requests."""
        reply: Reply | None = None
        try:
            while not (self._wire.interrupted or (reply and reply.answer.outcome is Outcome.CANCELLED)):
                item = script.send(reply)
                if isinstance(item, Request):
                    reply = self._ask(item, None, next(parts), warmup=warmup)
                    total.add(reply)
                elif isinstance(item, Together):
                    reply = self._branch(item.scripts, total, parts, warmup=warmup)
                elif isinstance(item, Driven):
                    reply = None
                    total.begin(self._timer.now_ns())
                    item.run(partial(self._send_driven, total, parts, warmup=warmup), self._timer.halted)
                else:
                    reply = None
                    if not self._pause(round(item * 1e9)):
                        total.cancel()
                        break
            else:
                # What it had asked went well, but it had not come to its end.
                total.cancel()
        except StopIteration as end:
            total.conclude(end.value)
        finally:
            script.close()

    def _send_driven(
        self, total: ScriptTotal, parts: Iterator[int], request: Request, *, warmup: bool
    ) -> Reply:
        """Send a request of plug-in code, which judges it."""
        reply = self._ask(request, None, next(parts), warmup=warmup)
        cancelled = reply.answer.outcome is Outcome.CANCELLED
        total.add(reply if cancelled else Reply(reply.exchange, _LEFT_OPEN))
        return reply

    def _branch(
        self, scripts: Sequence[Script], total: ScriptTotal, parts: Iterator[int], *, warmup: bool
    ) -> Reply:
        """Run scripts concurrently; returns one combined reply.

        Raises:
            NodeGone: If a script loses the node.
        """
        # A stream that waits for the streams inside it keeps its thread.
        pool = self._pool or ThreadPoolExecutor(MOST_STREAMS, thread_name_prefix="stream")
        self._pool = pool
        append = _locked(self._append)
        totals = [ScriptTotal(self._timer.now_ns()) for _ in scripts]
        branches = [
            Client(self._program, self._shared, self._timer, self.recorder, label=self._label)
            for _ in scripts
        ]
        for branch in branches:
            # Those that a branch has itself take their connections and threads from the same ones.
            branch._shared, branch._pool = self._shared, pool  # noqa: SLF001 - of the same class
            branch._append, branch._turn = append, self._turn  # noqa: SLF001 - of the same class
            branch._sampler = self._sampler  # noqa: SLF001 - of the same class
        began_ns = self._timer.now_ns()
        running = [
            pool.submit(branch._play, script, own, parts, warmup=warmup)  # noqa: SLF001 - of the same class
            for branch, script, own in zip(branches, scripts, totals, strict=True)
        ]
        for future in running:
            future.result()
        for branch in branches:
            self.tally.searches_sent += branch.tally.searches_sent
            self.tally.failures = merge_failures((self.tally.failures, branch.tally.failures))
        total.join(totals)
        exchange = Exchange(began_ns, 0, self._timer.now_ns(), 0, b"", 0)
        return Reply(exchange, first_failure([own.answer for own in totals]))

    def _pause(self, pause_ns: int) -> bool:
        return self._timer.wait_until(self._timer.now_ns() + pause_ns)

    def _lose(self) -> None:
        self._lost_in_a_row += 1
        if self._lost_in_a_row >= _LOST_IN_A_ROW:
            greet(self._wire, f" in task '{self._label}'")
            self._lost_in_a_row = 0

    def _handle_failure(self, reply: Reply) -> None:
        answer, tally = reply.answer, self.tally
        if answer.outcome is Outcome.CANCELLED:
            return
        tally.fail(answer.outcome, answer.reason)
        if answer.lacking:
            tally.unsupported = answer.lacking
        elif self.may_lack and self._operations == 1 and answer.outcome not in _CONNECTION_LOST:
            tally.unsupported = is_unsupported(reply.exchange.status, reply.exchange.body)
        if tally.unsupported is None and self._abort_on_failure:
            raise TaskAborted(
                f"a request of task '{self._label}' failed ({answer.outcome.name.lower()}): {answer.reason}",
                hint="--on-error continue counts failures and continues",
            )
