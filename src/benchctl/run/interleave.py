"""Several runs as one: block after block, the forks of all of them in one random order."""

import random
import statistics
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Final

from benchctl.run.fork import ForkJob
from benchctl.run.observer import Observer
from benchctl.run.opened import Hopeless, OpenRun

TIME_UP: Final = "the time was up"
"""How the reason begins where a block was not begun any more."""


def interleave(
    runs: Sequence[OpenRun],
    *,
    seed: int,
    observer: Observer,
    numbers: Sequence[int] = (),
    left_s: Callable[[], float] | None = None,
    enough: Callable[[], str] | None = None,
    prepared: Sequence[dict[str, float]] = (),
    clock: Callable[[], float] = time.monotonic,
) -> str:
    """Ask all runs for their answers, then measure what they miss, so that time treats all of them alike.

    A variant that fails again and again is given up in its run; the others go on. Forks for evidence alone
    are run in any case, also where the rest ends early.

    Args:
        runs: that are open; their blocks count as the same blocks.
        seed: of the order within blocks, which does not depend on what is missing.
        observer: told what happens.
        numbers: by which the runs are known in that order, where others that are whole have theirs, too;
            empty for their positions.
        left_s: seconds that are left; a block that is not expected to fit, with the forks for evidence behind
            it, is not begun, but for the first that is asked for. None for as long as it takes.
        enough: asked before every block: why no more of them is needed, which all runs then keep as the
            reason that they ended; empty to go on. None never to ask.
        prepared: of every run, the seconds that preparing it took, for its record.
        clock: seconds from any moment, by which forks are timed.

    Returns:
        Why it ended before all forks were there; empty when nothing is missing.

    Raises:
        BenchctlError: it was interrupted, or nothing can be measured any more; every record says how it
            ended.
    """
    timings: list[dict[str, float]] = [dict(one) for one in prepared] or [{} for _ in runs]
    with ExitStack() as stack:
        for run, spent in zip(runs, timings, strict=True):
            stack.enter_context(run.going(spent))
        for run, spent in zip(runs, timings, strict=True):
            run.ask(spent)
        begun = clock()
        try:
            order = _Order(seed, numbers or range(len(runs)))
            return _Blocks(runs, order, observer, left_s, enough, clock).all()
        finally:
            for spent in timings:
                spent["forks-s"] = clock() - begun


@dataclass(frozen=True)
class _Order:
    """Of the forks of a block: random, and the same whatever is missing.

    Attributes:
        seed: of it.
        numbers: of the runs.
    """

    seed: int
    numbers: Sequence[int]

    def place(self, block: int, run: int, variant: str) -> float:
        """What a fork is sorted by."""
        return random.Random(f"{self.seed}/{block}/{self.numbers[run]}/{variant}").random()  # noqa: S311 - reproducible, not secret


class _Blocks:
    """The blocks that are missing, and how long forks take."""

    def __init__(
        self,
        runs: Sequence[OpenRun],
        order: _Order,
        observer: Observer,
        left_s: Callable[[], float] | None,
        enough: Callable[[], str] | None,
        clock: Callable[[], float],
    ) -> None:
        self._runs = runs
        self._order = order
        self._observer = observer
        self._left_s = left_s
        self._enough = enough
        self._clock = clock
        self._seconds: dict[tuple[int, str], list[float]] = {}
        self._hopeless: set[tuple[int, str]] = set()
        self._steps = [(number, job) for number, run in enumerate(runs) for job in run.jobs()]
        self._total = sum(run.record.total for run in runs)
        self._done = self._total - len(self._steps)

    def all(self) -> str:
        """Measure them."""
        ended = ""
        for place, block in enumerate(sorted({job.block for _, job in self._steps})):
            if not ended and any(not self._extra(step) for step in self._of(block)):
                ended = self._reason_to_end(block, first=place == 0)
                if ended:
                    self._steps = [step for step in self._steps if self._extra(step)]
                    self._total = self._done + len(self._steps)
            for number, job in self._of(block):
                self._one(number, job)
        if ended or not self._hopeless:
            return ended
        names = ", ".join(
            f"{name} in {self._runs[number].record.id}" for number, name in sorted(self._hopeless)
        )
        return f"given up after failures in a row: {names}"

    def _extra(self, step: tuple[int, ForkJob]) -> bool:
        """Whether a fork is there for evidence alone."""
        number, job = step
        return self._runs[number].record.plan.is_extra(job.block)

    def _reason_to_end(self, block: int, *, first: bool) -> str:
        """Why a block is not begun, nor any after it; empty to go on."""
        reason = self._enough() if self._enough is not None else ""
        if reason:
            for run in self._runs:
                run.end_early(reason)
            return reason
        if first or self._left_s is None:
            return ""
        steps = [step for step in self._steps if step[1].block == block or self._extra(step)]
        return f"{TIME_UP} after {block} blocks" if self._expected_s(steps) > self._left_s() else ""

    def _of(self, block: int) -> list[tuple[int, ForkJob]]:
        """Its forks that are missing, in an order in which those that are not have their places, too."""

        def place(step: tuple[int, ForkJob]) -> float:
            number, job = step
            return self._order.place(block, number, job.subject.spec.name)

        return sorted((step for step in self._steps if step[1].block == block), key=place)

    def _one(self, number: int, job: ForkJob) -> None:
        key = (number, job.subject.spec.name)
        if key in self._hopeless:
            return
        begun = self._clock()
        self._done += 1
        left_s = self._remaining_s()
        self._steps.remove((number, job))
        try:
            self._runs[number].fork(job, self._done, self._total, left_s)
        except Hopeless as err:
            self._hopeless.add(key)
            self._observer.note(f"{err.message}; the rest goes on without it")
        self._seconds.setdefault(key, []).append(self._clock() - begun)

    def _remaining_s(self) -> float | None:
        """What the forks that are not over are expected to take; None before the first is."""
        return self._expected_s(self._steps) if self._seconds else None

    def _expected_s(self, steps: Sequence[tuple[int, ForkJob]]) -> float:
        known = [seconds for each in self._seconds.values() for seconds in each]
        usual = statistics.median(known) if known else 0.0
        found = 0.0
        for number, job in steps:
            own = self._seconds.get((number, job.subject.spec.name))
            found += statistics.median(own) if own else usual
        return found
