"""A measurement from its first fork to its end: open runs, and a policy that says who gets the next block.

Whatever is judged is measured by a policy over a `Study`: a run by its stop rule, the measurements of an
experiment until none of their forks is missing.
"""

import statistics
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Final, Literal, NamedTuple

from benchctl.errors import BenchctlError, ExitCode
from benchctl.results.model import RunRecord
from benchctl.results.plan import place_in_block
from benchctl.run.bench import Observer
from benchctl.run.fork import ForkJob
from benchctl.run.open_run import NotResumable, OpenRun

TIME_UP: Final = "the time was up"
"""Beginning of the reason if no time was left for a block."""


class Side(NamedTuple):
    """Receiver of a fork: a variant of a run, by the run's position in the study."""

    run: int
    variant: str


class Policy:
    """Decides before every block; this one measures what its runs are missing, and no more."""

    goes_on_without = True
    """True if the other variants continue after one has failed too often."""

    def ends(self, records: Sequence[RunRecord], block: int) -> str:
        """Return why this block and those after it are not begun; empty to go on."""
        del records, block
        return ""

    def total(self, records: Sequence[RunRecord]) -> int | None:
        """Return how many forks there are going to be; None while unknown."""
        return sum(record.total for record in records)

    def remaining_s(self, records: Sequence[RunRecord], expected_s: float | None) -> float | None:
        """Return the seconds until the end, of which so many are expected; None while unknown."""
        del records
        return expected_s


class Study:
    """Open runs that are measured together, each fork on disk before the next.

    Time affects all of them alike: forks of a run's block run at the same time where its plan lets them, and
    those of several runs in one random order per block. Forks for
    evidence run in any case, even if the rest ends early. `left_s` is the time of this session, for several
    runs; a single run has its budget in its plan's stop rule, and keeps it when it is resumed.
    """

    def __init__(
        self,
        runs: Sequence[OpenRun],
        policy: Policy,
        observer: Observer,
        *,
        seed: int,
        numbers: Sequence[int] = (),
        left_s: Callable[[], float] | None = None,
    ) -> None:
        """Take up runs.

        Args:
            runs: open ones; blocks of the same number are interleaved.
            policy: decides between blocks.
            observer: notified.
            seed: of the order within blocks, which does not depend on what is missing.
            numbers: of the runs in that order, counting complete runs; empty for their positions.
            left_s: seconds that are left; a block that is not expected to fit, with the forks for evidence
                after it, is not begun, except the first. None for no limit.
        """
        self._runs = runs
        self._policy = policy
        self._observer = observer
        self._seed = seed
        self._numbers = numbers or range(len(runs))
        self._left_s = left_s
        self._hopeless: set[Side] = set()
        self._steps: list[tuple[Side, ForkJob]] = []
        self._begun = 0  # blocks of this session

    def measure(self, prepared: Sequence[dict[str, float]] = ()) -> str:
        """Check all runs' answers, then run forks until none is missing or the policy ends it.

        Args:
            prepared: for every run, the seconds that preparing it took by activity, for its record.

        Returns:
            Why it ended before all forks were there; empty when nothing is missing.

        Raises:
            Hopeless: If a variant failed too often, and the policy does not go on without it.
            BenchctlError: If nothing can be measured any more.
        """
        timings: list[dict[str, float]] = [dict(timing) for timing in prepared] or [{} for _ in self._runs]
        with ExitStack() as stack:
            for run, spent in zip(self._runs, timings, strict=True):
                stack.enter_context(run.going(spent))
            for run, spent in zip(self._runs, timings, strict=True):
                run.ask(spent)
            begun = time.monotonic()
            try:
                return self._all()
            finally:
                for spent in timings:
                    spent["forks-s"] = time.monotonic() - begun

    @property
    def records(self) -> list[RunRecord]:
        """Current states of the runs."""
        return [run.record for run in self._runs]

    def _all(self) -> str:
        self._steps = [
            (Side(number, job.subject.spec.name), job)
            for number, run in enumerate(self._runs)
            for job in run.jobs(self._numbers[number])
        ]
        ended = self._missing()
        if ended or not self._hopeless:
            return ended
        names = ", ".join(f"{side.variant} in {self.records[side.run].id}" for side in sorted(self._hopeless))
        return f"given up after failures in a row: {names}"

    def _missing(self) -> str:
        """Run what is missing; return why not all of it, if so."""
        ended = ""
        for block in sorted({job.block for _, job in self._steps}):
            if not ended and any(not self._extra(step) for step in self._of(block)):
                ended = self._reason_to_end(block)
                if ended:
                    self._steps = [step for step in self._steps if self._extra(step)]
            for group in self._groups(block):
                self._measure(group)
            self._begun += 1
        return ended

    def _extra(self, step: tuple[Side, ForkJob]) -> bool:
        """Return whether a fork is for evidence only."""
        side, job = step
        return self.records[side.run].plan.is_extra(job.block)

    def _reason_to_end(self, block: int) -> str:
        """Return why this and later blocks are not begun, which their runs record; empty to go on."""
        reason = self._policy.ends(self.records, block)
        if not reason and self._begun:
            steps = [step for step in self._steps if step[1].block == block or self._extra(step)]
            if self._too_long([side for side, _ in steps]):
                reason = f"{TIME_UP} after {block} blocks"
        if reason:
            for number in sorted({step[0].run for step in self._steps if not self._extra(step)}):
                self._runs[number].end_early(reason)
        return reason

    def _of(self, block: int) -> list[tuple[Side, ForkJob]]:
        """Return the missing forks, in an order that does not depend on which are missing."""

        def place(step: tuple[Side, ForkJob]) -> float:
            side, _ = step
            return place_in_block(self._seed, block, self._numbers[side.run], side.variant)

        return sorted((step for step in self._steps if step[1].block == block), key=place)

    def _groups(self, block: int) -> list[list[tuple[Side, ForkJob]]]:
        """Return the missing forks of a block by who is measured at the same time, in the same order."""
        groups: dict[object, list[tuple[Side, ForkJob]]] = {}
        for side, job in self._of(block):
            groups.setdefault((side.run, self._runs[side.run].company(job)), []).append((side, job))
        return list(groups.values())

    def _measure(self, group: Sequence[tuple[Side, ForkJob]]) -> None:
        expected_s = self._expected_s([step[0] for step in self._steps])
        number = sum(record.total for record in self.records) - len(self._steps) + 1
        total = self._policy.total(self.records)
        for step in group:
            self._steps.remove(step)
        jobs = [job for side, job in group if side not in self._hopeless]
        if not jobs:
            return
        run = group[0][0].run
        remaining_s = self._policy.remaining_s(self.records, expected_s)
        for variant, error in self._runs[run].fork(jobs, number, total, remaining_s).items():
            if not self._policy.goes_on_without:
                raise error
            self._hopeless.add(Side(run, variant))
            self._observer.note(f"{error.message}; the others continue")

    def _too_long(self, sides: Collection[Side]) -> bool:
        """Return whether a fork of each is not expected to fit into what is left of the time."""
        return self._left_s is not None and (self._expected_s(sides) or 0.0) > self._left_s()

    def _expected_s(self, sides: Collection[Side]) -> float | None:
        """Return the seconds that a fork of each will take; None before anything is known of their like."""
        all_seconds = [seconds for run in self._runs for seconds in run.seconds()]
        total_s = 0.0
        for side in sides:
            own = self._runs[side.run].seconds(side.variant) or all_seconds
            if not own:
                return None
            total_s += statistics.median(own)
        return total_s


Ending = Literal["failed", "interrupted"]


@contextmanager
def ending(keep: Callable[[Ending, str], None], kept: Callable[[], str], go_on: str) -> Iterator[None]:
    """Have a record tell how a measurement ended that did not end well, and its user how to go on.

    Only the outermost measurement has one: whatever is inside passes the interrupt on.

    Args:
        keep: puts it on disk, with the reason.
        kept: what an interrupt leaves, for readers.
        go_on: the command that goes on.

    Raises:
        BenchctlError: If the block was interrupted, or raised one.
    """
    try:
        yield
    except BaseException as err:
        # A bug must not leave what looks as if it were still going on, either.
        error = err if isinstance(err, BenchctlError) else None
        if isinstance(err, KeyboardInterrupt) or (error and error.exit_code == ExitCode.INTERRUPTED):
            keep("interrupted", "it was interrupted")
            hint = f"resume with: {go_on}"
            raise BenchctlError(f"interrupted; {kept()}", hint=hint, exit_code=ExitCode.INTERRUPTED) from err
        keep("failed", error.message if error else "")
        if error and go_on not in error.hint and not isinstance(error, NotResumable):
            hint = "; ".join(filter(None, (error.hint, f"then: {go_on}")))
            raise BenchctlError(error.message, hint=hint, exit_code=error.exit_code) from err
        raise
