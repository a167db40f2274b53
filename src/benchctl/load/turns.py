"""The turns of a block: its nodes are up at the same time, and one of them is asked at a time.

While JITs still compile, a request right after one of another node is slower, `range` of Elasticsearch by a
third; so nodes do not alternate request by request, and what a client sends first in a turn is no value. The
clock of a node that waits for its turn stands still.
"""

import random
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from benchctl.load.client import NS_PER_S, Clock, Cue, Waiter
from benchctl.results.samples import Columns, Span
from benchctl.track.model import Task

TURN_NS: Final = 100_000_000
PACED_TURN_NS: Final = 1_000_000_000
"""Least length of a turn in which requests are due at their times: what waits at its end is carried over."""
LEAST_REQUESTS: Final = 6
"""Least number of requests of a client in a turn."""
_CLOCKS = ("intended_ns", "start_ns", "end_ns")
_POLL_S = 0.05


class Turn(NamedTuple):
    """A turn that is over; times are nanoseconds of the monotonic clock."""

    begin_ns: int
    end_ns: int  # when its last request was answered
    rested_ns: int  # for how long the clock had stood still until then
    cpu_ns: int  # CPU time of this process


class Turnstile:
    """Keeps the forks of a block together, and gives their nodes turns.

    Args:
        members: how many forks.
        seed: of the order of each round of turns.
        halted: set to interrupt whoever waits.
    """

    def __init__(self, members: int, seed: str, halted: threading.Event) -> None:
        self._changed = threading.Condition()
        self._halted = halted
        self._random = random.Random(seed)  # noqa: S311 - has to be repeatable
        self._left = set(range(members))
        self._here: set[int] = set()
        self._meetings = 0
        self.alone = threading.Lock()  # of a member that nobody else works beside
        # Of the step that members met for: who is going to take turns, who does, and in which order.
        self._expected: set[int] = set()
        self._turns: dict[int, Turns] = {}
        self._current: Turns | None = None
        self._round: list[int] = []

    def meet(self, member: int) -> None:
        """Wait until all members that are left are here.

        Raises:
            KeyboardInterrupt: If they are to end.
        """
        with self._changed:
            self._here.add(member)
            meeting = self._meetings
            self._release()
            while self._meetings == meeting:
                self._changed.wait(_POLL_S)
                if self._halted.is_set():
                    raise KeyboardInterrupt

    def leave(self, member: int) -> None:
        """Go on without a member, whatever it was at."""
        with self._changed:
            self._left.discard(member)
            self._here.discard(member)
            self._close(member)
            self._release()

    def open(self, member: int, turns: "Turns") -> None:
        """Take part in the step that members have met for."""
        with self._changed:
            self._turns[member] = turns

    def close(self, member: int) -> None:
        """Take no more turns in this step."""
        with self._changed:
            self._close(member)

    def rest(self, turns: "Turns", seat: "Seat", halt: threading.Event) -> bool:
        """End a client's part of a turn, and wait for the next one; False if it is to end instead."""
        with self._changed:
            # One that was called off while it rested has not worked since.
            if not seat.resting:
                seat.resting = True
                turns.working -= 1
            self._pass_on()
            while seat.resting:
                self._changed.wait(_POLL_S)
                if halt.is_set() or self._halted.is_set():
                    return not seat.resting
        return True

    def end(self, turns: "Turns", seat: "Seat") -> None:
        """Go on without a client, which has done its work."""
        with self._changed:
            turns.seats.remove(seat)
            if not seat.resting:
                turns.working -= 1
            self._pass_on()

    def _release(self) -> None:
        if self._here and self._here == self._left:
            self._here.clear()
            self._meetings += 1
            self._expected = set(self._left)
            self._changed.notify_all()

    def _close(self, member: int) -> None:
        self._expected.discard(member)
        turns = self._turns.pop(member, None)
        if turns is not None:
            turns.working = 0
            turns.seats.clear()
        self._pass_on()

    def _pass_on(self) -> None:
        """End the turn if its last request was answered; begin the next one if everybody is there."""
        if self._current is not None:
            if self._current.working:
                return
            self._current.end_turn()
            self._current = None
        if not all(member in self._turns and not self._turns[member].working for member in self._expected):
            return
        resting = [member for member in sorted(self._expected) if self._turns[member].seats]
        self._round = [member for member in self._round if member in resting]
        if not self._round:
            self._round = self._random.sample(resting, len(resting))
        if self._round:
            self._current = self._turns[self._round.pop(0)]
            self._current.begin_turn()
            self._changed.notify_all()


class Member:
    """A fork in its block; alone, it has all the time.

    Args:
        stile: that keeps the block together.
        number: of the fork in it, from 0; the first one tells what they are at.
        of: how many there are.
        cpus: that nodes may use: with fewer than clients, warm-ups take turns, too.
    """

    def __init__(self, stile: Turnstile, number: int, of: int, cpus: int) -> None:
        self._stile = stile
        self._number = number
        self._of = of
        self._cpus = cpus

    @property
    def leads(self) -> bool:
        """Return whether this fork speaks for all."""
        return self._number == 0

    def meet(self) -> None:
        """Wait for the others.

        Raises:
            KeyboardInterrupt: If they are to end.
        """
        self._stile.meet(self._number)

    def leave(self) -> None:
        """Let the others go on."""
        self._stile.leave(self._number)

    @contextmanager
    def step(
        self, tasks: Sequence[Task], clients: int, *, measured: bool, mark: Callable[[], None]
    ) -> Iterator["Turns | None"]:
        """Take part in a step, within the block: with the turns of its node, or with none, in all the time.

        Warm-up challenges run at the same time where there are CPUs for all clients; steps of few requests,
        of which turns would lose too many, run one after the other.

        Args:
            tasks: of the step.
            clients: that work at the same time.
            measured: False for what only some members may have.
            mark: called where a turn begins and where it ends.
        """
        if self._of == 1:
            yield None
            return
        if measured:
            self.meet()
        crowded = clients * self._of > self._cpus
        if not measured or not _divisible(tasks):
            with self._stile.alone if measured or crowded else nullcontext():
                yield None
            return
        rates = [task.rate_per_s / task.clients for task in tasks if task.rate_per_s]
        longest_s = LEAST_REQUESTS / min(rates) if rates else 0.0
        paced = any(task.throttled for task in tasks)
        turns = Turns(
            self._stile,
            clients,
            length_ns=max(PACED_TURN_NS, round(longest_s * NS_PER_S)) if paced else TURN_NS,
            paced=paced,
            from_start=crowded,
            mark=mark,
        )
        self._stile.open(self._number, turns)
        try:
            yield turns
        finally:
            self._stile.close(self._number)


ALONE: Final = Member(Turnstile(1, "", threading.Event()), 0, 1, 1)
"""A fork that has all the time."""


def _divisible(tasks: Sequence[Task]) -> bool:
    """Return whether tasks have requests enough for turns, of which each loses its first; a mix is as one."""
    if all(task.mixed for task in tasks):
        is_timed = any(task.time_period for task in tasks)
        return is_timed or sum(task.iterations or 1 for task in tasks) >= LEAST_REQUESTS
    return all(
        task.time_period or task.least_time or (task.iterations or 1) >= LEAST_REQUESTS for task in tasks
    )


class Turns:
    """The turns of a node in a step.

    Args:
        stile: that gives them.
        clients: how many take part.
        length_ns: of a turn; it lasts longer until every client has sent `LEAST_REQUESTS`.
        paced: whether requests are due at their times: then what is due at the end of a turn is sent in the
            next one, and the clock does not count how long answers take after the end.
        from_start: whether warm-ups take turns, too.
        mark: called where a turn begins and where it ends.
    """

    def __init__(
        self,
        stile: Turnstile,
        clients: int,
        *,
        length_ns: int = TURN_NS,
        paced: bool = False,
        from_start: bool = False,
        mark: Callable[[], None] | None = None,
        clock: Clock = time.monotonic_ns,
    ) -> None:
        self.stile = stile
        self.working = clients  # those that do not wait for a turn
        self.seats = [Seat(self) for _ in range(clients)]
        self.from_start = from_start
        self.number = 0
        self.rested_ns = 0
        self.ends_ns = 0  # of the current turn, on the clock that stands still
        self.over: list[Turn] = []
        self._length_ns = length_ns
        self._paced = paced
        self._mark = mark
        self._clock = clock
        self._begin_ns = self._cpu_ns = self._stopped_ns = 0
        self._free = list(self.seats)

    def seat(self) -> "Seat":
        """Return the place of one more client."""
        return self._free.pop()

    def now_ns(self) -> int:
        """Read the clock that stands still while others have their turns."""
        return self._clock() - self.rested_ns

    def begin_turn(self) -> None:
        """Let all clients go on."""
        if self._mark is not None:
            self._mark()
        self.number += 1
        self._begin_ns = self._clock()
        if self._stopped_ns:
            self.rested_ns += self._begin_ns - self._stopped_ns
        self.ends_ns = self._begin_ns - self.rested_ns + self._length_ns
        self._cpu_ns = time.process_time_ns()
        self.working = len(self.seats)
        for seat in self.seats:
            seat.begin(self.number)

    def end_turn(self) -> None:
        """Stop the clock."""
        now_ns = self._clock()
        cpu_ns = time.process_time_ns() - self._cpu_ns
        self.over.append(Turn(self._begin_ns, now_ns, self.rested_ns, cpu_ns))
        self._stopped_ns = min(now_ns, self.ends_ns + self.rested_ns) if self._paced else now_ns
        if self._mark is not None:
            self._mark()

    @property
    def own_s(self) -> float:
        """Seconds of all turns."""
        return sum(turn.end_ns - turn.begin_ns for turn in self.over) / NS_PER_S

    @property
    def cpu_s(self) -> float:
        """CPU seconds of this process in all turns."""
        return sum(turn.cpu_ns for turn in self.over) / NS_PER_S


class Seat:
    """The place of a client, which one thread uses."""

    def __init__(self, turns: Turns) -> None:
        self.turns = turns
        self.resting = False
        self.turn = 0
        self.sent = 0

    def begin(self, turn: int) -> None:
        """Go on with a turn."""
        self.turn, self.sent, self.resting = turn, 0, False

    def end(self) -> None:
        """Take part no longer."""
        if self in self.turns.seats:
            self.turns.stile.end(self.turns, self)


class TurnWaiter(Waiter):
    """A clock that stands still, and a wait that lasts until a client has its turn.

    Args:
        halt: ends every wait.
        seat: the client's.
        measures_first: whether its first request of a turn counts: where any client may take the next one,
            few are the first after a rest.
    """

    def __init__(self, halt: threading.Event, seat: Seat, *, measures_first: bool = False) -> None:
        super().__init__(halt, seat.turns.now_ns)
        self._seat = seat
        self._unmeasured = 0 if measures_first else 1

    def cue(self, due_ns: int | None, *, warmup: bool) -> Cue | None:
        """Return the next request's cue when it is time, as `Waiter` does.

        The first measured request of a client in a turn is marked as a warm-up, unless it counts.
        """
        seat, turns = self._seat, self._seat.turns
        if not (seat.turn or turns.from_start or not warmup):
            return super().cue(due_ns, warmup=warmup)
        while not seat.turn or self._is_over(due_ns):
            if not (turns.stile.rest(turns, seat, self._halt)):
                return None
        if due_ns is not None and not self.wait_until(due_ns):
            return None
        seat.sent += 1
        due_ns = None if due_ns is None else due_ns + turns.rested_ns
        return due_ns, warmup or seat.sent == self._unmeasured, 0 if warmup else seat.turn

    def _is_over(self, due_ns: int | None) -> bool:
        """Return whether the turn ends before a request, waiting for its end if it is due later."""
        ends_ns = self._seat.turns.ends_ns
        if due_ns is None:
            return self._seat.sent >= LEAST_REQUESTS and self.now_ns() >= ends_ns
        return max(due_ns, self.now_ns()) >= ends_ns and self.wait_until(ends_ns)


@dataclass(frozen=True)
class OwnClock:
    """Samples by the clock that stood still between turns; every iteration reads them anew."""

    samples: Iterable[Columns]
    turns: Sequence[Turn]  # of their task, in order and on the clock of the samples

    def __iter__(self) -> Iterator[Columns]:
        begins_ns = np.array([turn.begin_ns for turn in self.turns], dtype=np.int64)
        rested_ns = np.array([0, *(turn.rested_ns for turn in self.turns)], dtype=np.int64)
        for chunk in self.samples:
            own_ns = rested_ns[np.searchsorted(begins_ns, chunk["start_ns"], side="right")]
            yield chunk | {name: chunk[name] - own_ns for name in _CLOCKS}


def spans_on_own_clock(spans: Sequence[Span], turns: Sequence[Turn]) -> list[Span]:
    """Return what of some spans fell into turns, by the clock that stood still between them."""
    return [
        (max(begin, turn.begin_ns) - turn.rested_ns, min(end, turn.end_ns) - turn.rested_ns)
        for begin, end in spans
        for turn in turns
        if begin < turn.end_ns and end > turn.begin_ns
    ]
