"""Several runs as one: block after block, the forks of all of them in one random order."""

import random
import statistics
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
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
    left_s: Callable[[], float] | None = None,
    enough: Callable[[], str] | None = None,
    prepared: Sequence[dict[str, float]] = (),
) -> str:
    """Ask all runs for their answers, then measure what they miss, so that time treats all of them alike.

    A variant that fails again and again is given up in its run; the others go on.

    Args:
        runs: that are open; their blocks count as the same blocks.
        seed: of the order within blocks, which does not depend on what is missing.
        observer: told what happens.
        left_s: seconds that are left; a block that is not expected to fit is not begun, but for the first
            that is asked for. None for as long as it takes.
        enough: asked before every block: why no more of them is needed, which all runs then keep as the
            reason that they ended; empty to go on. None never to ask.
        prepared: of every run, the seconds that preparing it took, for its record.

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
        clock = time.monotonic()
        try:
            return _Blocks(runs, seed, observer, left_s, enough).all()
        finally:
            for spent in timings:
                spent["forks-s"] = time.monotonic() - clock


class _Blocks:
    """The blocks that are missing, and how long forks take."""

    def __init__(
        self,
        runs: Sequence[OpenRun],
        seed: int,
        observer: Observer,
        left_s: Callable[[], float] | None,
        enough: Callable[[], str] | None,
    ) -> None:
        self._runs = runs
        self._seed = seed
        self._observer = observer
        self._left_s = left_s
        self._enough = enough
        self._seconds: dict[tuple[int, str], list[float]] = {}
        self._hopeless: set[tuple[int, str]] = set()
        self._steps = [(number, job) for number, run in enumerate(runs) for job in run.jobs()]
        self._total = sum(run.record.total for run in runs)
        self._done = self._total - len(self._steps)

    def all(self) -> str:
        """Measure them."""
        blocks = sorted({job.block for _, job in self._steps})
        for place, block in enumerate(blocks):
            steps = self._of(block)
            reason = self._enough() if self._enough is not None else ""
            if reason:
                for run in self._runs:
                    run.end_early(reason)
                return reason
            if place and self._left_s is not None and self._expected_s(steps) > self._left_s():
                return f"{TIME_UP} after {block} blocks"
            for number, job in steps:
                self._one(number, job)
        if not self._hopeless:
            return ""
        names = ", ".join(
            f"{name} in {self._runs[number].record.id}" for number, name in sorted(self._hopeless)
        )
        return f"given up after failures in a row: {names}"

    def _of(self, block: int) -> list[tuple[int, ForkJob]]:
        """Its forks that are missing, in an order in which those that are not have their places, too."""

        def place(step: tuple[int, ForkJob]) -> float:
            number, job = step
            return random.Random(f"{self._seed}/{block}/{number}/{job.subject.spec.name}").random()  # noqa: S311 - reproducible, not secret

        return sorted((step for step in self._steps if step[1].block == block), key=place)

    def _one(self, number: int, job: ForkJob) -> None:
        key = (number, job.subject.spec.name)
        if key in self._hopeless:
            return
        clock = time.monotonic()
        self._done += 1
        self._steps.remove((number, job))
        try:
            self._runs[number].fork(job, self._done, self._total, self._remaining_s())
        except Hopeless as err:
            self._hopeless.add(key)
            self._observer.note(f"{err.message}; the rest goes on without it")
        self._seconds.setdefault(key, []).append(time.monotonic() - clock)

    def _remaining_s(self) -> float | None:
        """What the forks that are left are expected to take; None before the first is known."""
        return self._expected_s(self._steps) if self._seconds else None

    def _expected_s(self, steps: Sequence[tuple[int, ForkJob]]) -> float:
        known = [seconds for each in self._seconds.values() for seconds in each]
        usual = statistics.median(known) if known else 0.0
        found = 0.0
        for number, job in steps:
            own = self._seconds.get((number, job.subject.spec.name))
            found += statistics.median(own) if own else usual
        return found
