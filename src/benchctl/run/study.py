"""A measurement from its first fork to its end: open runs, their blocks in turn, and rules that end it."""

import statistics
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Final, Literal, NamedTuple

import msgspec

from benchctl.disk import free_bytes, require_space
from benchctl.engine.prepared_index import bytes_per_document
from benchctl.errors import BenchctlError, ExitCode
from benchctl.load.turns import Member, Turnstile
from benchctl.quantities import DURATION
from benchctl.report.numbers import counted, duration
from benchctl.results.model import FORKS_FOR_VERDICT, ForkRecord, RunRecord, RunStatus
from benchctl.results.plan import Plan, StopSpec, block_order, place_in_block
from benchctl.results.store import RunFolder, reference
from benchctl.run.bench import Bench, Observer, SharedObserver, side_by_side
from benchctl.run.fork import ForkJob, ForkRunner, Runner, StepRunner, pool_of
from benchctl.run.host import allowed_cpus, pinned
from benchctl.run.prepare import check_answers
from benchctl.run.session import AnySubject
from benchctl.slices import hook
from benchctl.track.model import Track

TIME_UP: Final = "the time budget was used up"
"""Beginning of the reason if no time was left for a block."""
# Logs, translogs and cluster states of a fork; the index itself is linked.
FREE_BYTES_PER_FORK = 300 * 2**20
# One failure may be bad luck; after two in a row a variant will fail again.
MAX_FAILURES_IN_A_ROW = 2


class Hopeless(BenchctlError):  # noqa: N818 - what is so, not a mistake of anybody
    """A variant failed so often that it would again."""


class NotResumable(BenchctlError):  # noqa: N818 - what is so, not a mistake of anybody
    """Something that is measured, or where, has changed since the run began."""


LeftOf = Callable[[Collection[str]], float | None]
"""Seconds until the last fork is over, given the variants of those that are measured; None while unknown."""


class OpenRun:
    """A prepared run with its folder, of which a `Study` asks the forks of a block; each is on disk at once.

    `fork_s` are the expected seconds of a fork, until the first is known.
    """

    def __init__(
        self,
        bench: Bench,
        folder: RunFolder,
        record: RunRecord,
        track: Track,
        subjects: Sequence[AnySubject],
        *,
        fork_s: float | None = None,
    ) -> None:
        self.folder: Final = folder
        self._bench = bench
        self._record = record
        self._track = track
        self._subjects = {subject.spec.name: subject for subject in subjects}
        self._observer = SharedObserver(bench.observer)
        self._held = ExitStack()
        self._lock = ExitStack()
        self._runner: Runner | None = None
        self._fork_s = fork_s
        self._failures_in_a_row: dict[str, int] = {}
        self.timings: Final[dict[str, float]] = {}  # seconds of this session by activity, for the record

    @property
    def record(self) -> RunRecord:
        """Current state of the run."""
        return self._record

    def hold(self, lock: ExitStack) -> None:
        """Take over the lock of its folder, until `release`: nothing is written after that."""
        self._lock = lock

    def release(self) -> None:
        """Let others write its folder; harmless when repeated."""
        self._lock.close()

    def extend(self, record: RunRecord) -> None:
        """Replace the record by one with further blocks, which are then missing."""
        self._record = record
        self.folder.save(record)

    def seconds(self, variant: str = "") -> list[float]:
        """Return the seconds of finished forks, of a variant, else of all; else what one is expected to take.

        Before the first is done, a failed one that took longer than expected counts.
        """
        forks = self._record.forks
        done = [fork for fork in forks if fork.status == "done"]
        own = [fork.wall_s for fork in done if fork.variant == variant] or [fork.wall_s for fork in done]
        if own or self._fork_s is None:
            return own
        return [max([self._fork_s, *(fork.wall_s for fork in forks)])]

    @contextmanager
    def going(self) -> Iterator[None]:
        """Hold the run open for forks; however the block ends, the record tells how."""
        status: RunStatus = "failed"
        try:
            with self._held:
                if self._record.status != "running":
                    self._update(status="running")  # resumed: it must not be deleted, or count as ended
                yield
            status = "failed" if self._record.missing() else "complete"
        except KeyboardInterrupt:
            status = "interrupted"
            raise
        finally:
            # Even after a bug, the run must not look as if it were still going on.
            self._runner = None
            before, own = self._record.timings, self.timings
            merged = {name: before.get(name, 0.0) + own.get(name, 0.0) for name in {**before, **own}}
            self._update(status=status, timings=merged)

    def ask(self) -> None:
        """Compare the variants' answers, on unmeasured node starts, unless that was done."""
        # If every fork makes its own data, there is none beforehand.
        if self._record.answers is not None or self._record.plan.origin == "empty":
            return
        clock = time.monotonic()
        bench, subjects = self._bench, list(self._subjects.values())
        check = check_answers(subjects, self._record.plan, self._track, bench.home, bench.observer)
        self.timings["answers-s"] = time.monotonic() - clock
        self._update(answers=check)

    def jobs(self, number: int = 0) -> list[ForkJob]:
        """The missing forks, in the order in which they run; `number` is the run's in its study."""
        missing = set(self._record.missing())
        return [
            ForkJob(self._subjects[spec.name], block, position)
            for block in self._record.block_numbers
            for position, spec in enumerate(block_order(self._record.plan, block, number))
            if (block, spec.name) in missing
        ]

    def _fork_runner(self) -> Runner:
        """Runs forks; CPUs are pinned and workers started only once answers are known."""
        plan, bench = self._record.plan, self._bench
        if self._runner is None and plan.micro is not None:
            self._runner = hook("micro").MicroRunner(plan, self.folder, bench.home, bench.stop)
        if self._runner is None:
            self._held.enter_context(pinned(plan.pin))
            workers = pool_of(plan)
            if workers is not None:
                self._held.enter_context(workers)
                self._update(load_hosts=workers.facts)
            left_out = self._record.left_out_of_pollution
            steps = StepRunner(
                plan, self._track, bench.home, self._observer, bench.stop, workers, left_out=left_out
            )
            self._runner = ForkRunner(steps, self.folder)
        return self._runner

    def company(self, job: ForkJob) -> object:
        """Return what forks of a block have in common that are measured at the same time."""
        plan, name = self._record.plan, job.subject.spec.name
        if not plan.together:
            return name
        together = plan.compared_together([spec.name for spec in plan.variants])
        return next(number for number, names in enumerate(together) if name in names)

    def fork(
        self, jobs: Sequence[ForkJob], number: int, total: int | None, left_s: LeftOf
    ) -> dict[str, Hopeless]:
        """Run forks of a block at the same time and put them on disk; return variants that failed too often.

        `number` is the first's, counted over all variants from 1, of `total`.

        Raises:
            BenchctlError: If there is no space, or results cannot be written.
        """
        runner = self._fork_runner()
        self._require_space(jobs)
        names = [job.subject.spec.name for job in jobs]
        expected_s = left_s(names)
        for place, name in enumerate(names):
            self._bench.observer.fork_started(name, number + place, total, expected_s)
        block, plan = jobs[0].block, self._record.plan
        stile = Turnstile(len(jobs), f"{plan.seed}/{block}/turns", self._observer.halted)
        cpus = len(allowed_cpus()) if plan.pin is None else len(plan.pin.node)
        runs = [
            partial(runner.run, job, Member(stile, place, len(jobs), cpus)) for place, job in enumerate(jobs)
        ]
        hopeless = {}
        for record, facts in side_by_side(runs, self._observer):
            fork = msgspec.structs.replace(record, wall_s=record.wall_s / len(jobs))
            others = [old for old in self._record.forks if (old.block, old.variant) != (block, fork.variant)]
            engines = self._record.engines
            known = next((engine for engine in engines if facts and engine.variant == facts.variant), None)
            # A fork that fails early does not see all of them.
            if facts is not None and (
                known is None or bool(known.in_force.given) < bool(facts.in_force.given)
            ):
                engines = (*(engine for engine in engines if engine is not known), facts)
            self._update(forks=(*others, fork), engines=engines, caveats=self._caveats_after(fork))
            names.remove(fork.variant)
            self._bench.observer.fork_done(fork, left_s(names))
            if (error := self._hopeless(fork)) is not None:
                hopeless[fork.variant] = error
        return hopeless

    def _require_space(self, jobs: Sequence[ForkJob]) -> None:
        scratch, plan = self._bench.home.scratch, self._record.plan
        needed = FREE_BYTES_PER_FORK * len(jobs)
        if plan.origin == "empty":
            corpora = [plan.of(job.subject.spec).corpus for job in jobs]
            needed += round(sum(corpus.documents * bytes_per_document(corpus) for corpus in corpora))
        hint = f"free some space, then: {self.resumed_by}"
        require_space(scratch, needed, "run a fork", available=free_bytes(scratch), hint=hint)

    def end_early(self, reason: str) -> None:
        """Complete the run with the blocks it has; the reason goes into the record.

        It is a doubt unless the run was to last just as long.
        """
        self._update(stopped=reason)
        if not self._record.plan.by_time:
            self.doubt(reason)

    def doubt(self, *caveats: str) -> None:
        """Add caveats to the record."""
        self._update(caveats=tuple(dict.fromkeys((*self._record.caveats, *caveats))))

    def _caveats_after(self, fork: ForkRecord) -> tuple[str, ...]:
        return tuple(dict.fromkeys((*self._record.caveats, *stand_in_caveats(fork))))

    def _hopeless(self, fork: ForkRecord) -> Hopeless | None:
        failures = self._failures_in_a_row.get(fork.variant, 0) + 1 if fork.status == "failed" else 0
        self._failures_in_a_row[fork.variant] = failures
        if failures < MAX_FAILURES_IN_A_ROW:
            return None
        return Hopeless(
            f"{failures} forks of {fork.variant} failed one after the other; {self.summary()}\n"
            f"  the last: {fork.reason}",
            hint=f"fix the cause, then: {self.resumed_by}",
        )

    def _update(self, **changes: object) -> None:
        self.extend(msgspec.structs.replace(self._record, **changes))

    @property
    def resumed_by(self) -> str:
        """The command that resumes this run, or what it is part of."""
        return f"benchctl resume {self._bench.whole or reference(self.folder, self._bench.home.runs)}"

    def summary(self) -> str:
        """Tell how many forks are kept, and where."""
        done = self._record.total - len(self._record.missing())
        return f"{done} of {self._record.total_text} forks are kept in {self.folder.path}"


def stand_in_caveats(fork: ForkRecord) -> tuple[str, ...]:
    """Return the caveat that plain indices replace data streams that the node lacks."""
    names = sorted({name for boot in fork.boots for name in boot.stand_ins})
    if not names:
        return ()
    return (f"{fork.variant} has no data streams: plain indices replace {', '.join(names)}",)


class Side(NamedTuple):
    """Receiver of a fork: a variant of a run, by the run's position in the study."""

    run: int
    variant: str


class Study:
    """Open runs that are measured together, each fork on disk before the next.

    Time affects all of them alike: forks of a run's block run at the same time where its plan lets them, and
    those of several runs in one random order per block. Forks for evidence run in any case, even if the rest
    ends early.
    """

    def __init__(
        self,
        runs: Sequence[OpenRun],
        observer: Observer,
        *,
        seed: int,
        ends: Callable[[Sequence[RunRecord], int], str] = lambda _records, _block: "",
        goes_on_without: bool = True,
        numbers: Sequence[int] = (),
        left_s: Callable[[], float] | None = None,
    ) -> None:
        """Take up runs.

        Args:
            runs: open ones; blocks of the same number are interleaved.
            observer: notified.
            seed: of the order within blocks, which does not depend on what is missing.
            ends: why a block and those after it are not begun, for the runs so far; empty to go on.
            goes_on_without: whether the other variants continue after one has failed too often.
            numbers: of the runs in that order, counting complete runs; empty for their positions.
            left_s: seconds that are left of this session; a block that is not expected to fit, with the forks
                for evidence after it, is not begun, except the first. None for no limit.
        """
        self._runs = runs
        self._observer = observer
        self._seed = seed
        self._ends = ends
        self._goes_on_without = goes_on_without
        self._numbers = numbers or range(len(runs))
        self._left_s = left_s
        self._hopeless: set[Side] = set()
        self._steps: list[tuple[Side, ForkJob]] = []
        self._begun = 0  # blocks of this session

    def measure(self) -> str:
        """Check all runs' answers, then run forks until none is missing or the rest is not begun.

        Returns:
            Why it ended before all forks were there; empty when nothing is missing.

        Raises:
            Hopeless: If a variant failed too often, and the others do not go on without it.
            BenchctlError: If nothing can be measured any more.
        """
        with ExitStack() as stack:
            for run in self._runs:
                stack.enter_context(run.going())
            for run in self._runs:
                run.ask()
            begun = time.monotonic()
            try:
                return self._all()
            finally:
                for run in self._runs:
                    run.timings["forks-s"] = time.monotonic() - begun

    @property
    def records(self) -> list[RunRecord]:
        """Current states of the runs."""
        return [run.record for run in self._runs]

    def _all(self) -> str:
        """Run what is missing; return why not all of it, if so."""
        self._steps = [
            (Side(number, job.subject.spec.name), job)
            for number, run in enumerate(self._runs)
            for job in run.jobs(self._numbers[number])
        ]
        ended = ""
        for block in sorted({job.block for _, job in self._steps}):
            if not ended and any(not self._extra(step) for step in self._steps if step[1].block == block):
                ended = self._reason_to_end(block)
                if ended:
                    self._steps = [step for step in self._steps if self._extra(step)]
            for group in self._groups(block):
                self._measure(group)
            self._begun += 1
        names = ", ".join(f"{side.variant} in {self.records[side.run].id}" for side in sorted(self._hopeless))
        given_up = f"given up after failures in a row: {names}" if names else ""
        return "; ".join(filter(None, (ended, given_up)))

    def _extra(self, step: tuple[Side, ForkJob]) -> bool:
        """Return whether a fork is for evidence only."""
        side, job = step
        return self.records[side.run].plan.is_extra(job.block)

    def _reason_to_end(self, block: int) -> str:
        """Return why this and later blocks are not begun, which their runs record; empty to go on."""
        reason = self._ends(self.records, block)
        if not reason and self._begun and self._left_s is not None:
            sides = [side for side, job in self._steps if job.block == block or self._extra((side, job))]
            if (self._expected_s(sides) or 0.0) > self._left_s():
                reason = f"{TIME_UP} after {counted(block, 'block')}"
        if reason:
            for number in sorted({step[0].run for step in self._steps if not self._extra(step)}):
                self._runs[number].end_early(reason)
        return reason

    def _groups(self, block: int) -> list[list[tuple[Side, ForkJob]]]:
        """Return the missing forks of a block by who is measured at the same time.

        Their order does not depend on which are missing.
        """

        def place(step: tuple[Side, ForkJob]) -> float:
            side, _ = step
            return place_in_block(self._seed, block, self._numbers[side.run], side.variant)

        groups: dict[object, list[tuple[Side, ForkJob]]] = {}
        for side, job in sorted((step for step in self._steps if step[1].block == block), key=place):
            groups.setdefault((side.run, self._runs[side.run].company(job)), []).append((side, job))
        return list(groups.values())

    def _measure(self, group: Sequence[tuple[Side, ForkJob]]) -> None:
        number = sum(record.total for record in self.records) - len(self._steps) + 1
        totals = [total_of(record) for record in self.records]
        total = None if None in totals else sum(filter(None, totals))
        for step in group:
            self._steps.remove(step)
        jobs = [job for side, job in group if side not in self._hopeless]
        if not jobs:
            return
        run = group[0][0].run

        def left_s(variants: Collection[str]) -> float | None:
            sides = [*(Side(run, variant) for variant in variants), *(side for side, _ in self._steps)]
            return remaining_s(self.records[run], self._expected_s(sides))

        for variant, error in self._runs[run].fork(jobs, number, total, left_s).items():
            if not self._goes_on_without:
                raise error
            self._hopeless.add(Side(run, variant))
            self._observer.note(f"{error.message.splitlines()[0]}; its other forks are given up")

    def _expected_s(self, sides: Collection[Side]) -> float | None:
        """Return the seconds that forks will take, of which those given up take none; None if unknown."""
        all_seconds = [seconds for run in self._runs for seconds in run.seconds()]
        total_s = 0.0
        for side in (side for side in sides if side not in self._hopeless):
            own = self._runs[side.run].seconds(side.variant) or all_seconds
            if not own:
                return None
            total_s += statistics.median(own)
        return total_s


Ending = Literal["failed", "interrupted"]


@contextmanager
def ending(keep: Callable[[Ending, str], None], kept: Callable[[], str], go_on: str) -> Iterator[None]:
    """Have a record tell how a measurement ended that did not end well, and its user how to go on.

    Only the outermost measurement has one: whatever is inside passes the interrupt on. `keep` puts its end
    and the reason on disk, `kept` tells what an interrupt leaves, and `go_on` is the command that goes on.

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


# The plan's stop rule, evaluated before every block, from the record alone.


def reason_to_stop(record: RunRecord, block: int) -> str:
    """Return why a run ends before this block, by its plan's stop rule; for readers, empty to continue.

    Blocks are never cut: one that was started is finished, even after an interruption. With several index
    builds, every build gets a block. The rule does not cover forks for evidence: they always run, and a
    budget leaves time for them.
    """
    plan, stop = record.plan, record.plan.stop
    begun = any(fork.block == block for fork in record.forks)
    if stop is None or begun or block % plan.index_builds or plan.is_extra(block):
        return ""
    fewest = min(len(record.compared(spec.name)) for spec in plan.variants)
    after = f"ended after {counted(fewest, 'fork')} per variant"
    after += "" if plan.by_time else f", of at most {plan.forks}"
    # The rule checks the least number, too, but an analysis between blocks takes time.
    if stop.decided and fewest >= stop.least_forks:
        lacking, text = _judged(record, stop)
        if not lacking:
            return f"{after}, because --until-decided is reached: {text}"
    if stop.budget_s is None or block < stop.least_blocks:
        return ""
    spent_s, block_s = seconds_spent(record), _block_s(record)
    extra = sum(plan.is_extra(other) for other in {other for other, _ in record.missing()})
    if spent_s + block_s * (plan.index_builds + extra) <= stop.budget_s:
        return ""
    if plan.by_time and fewest <= stop.least_blocks:
        return f"{after}, the minimum, in {duration(spent_s)}"
    return (
        f"{after}: another block ({duration(block_s * plan.index_builds)}) does not fit into the "
        f"{DURATION.text(stop.budget_s)} for forks (--budget), of which {duration(spent_s)} are used"
    )


def total_of(record: RunRecord) -> int | None:
    """Return how many forks a run is going to have; None if time decides that, before the first block."""
    plan, stop = record.plan, record.plan.stop
    if stop is None or stop.budget_s is None or not stop.is_length:
        return record.total
    whole = _whole_blocks(record)
    if not whole or not (block_s := _block_s(record)):
        return None
    left_s = stop.budget_s - sum(whole.values()) - block_s * len(plan.extra_blocks)
    fit = sum(not plan.is_extra(block) for block in whole) + max(0, int(left_s // block_s))
    blocks = min(stop.whole_blocks(fit, plan.index_builds), plan.forks)
    return (blocks + len(plan.extra_blocks)) * len(plan.variants)


def remaining_s(record: RunRecord, expected_s: float | None) -> float | None:
    """Return an upper bound of the remaining seconds: what is expected, or what the budget leaves."""
    plan, stop = record.plan, record.plan.stop
    if stop is None or stop.budget_s is None:
        return expected_s
    block_s = _block_s(record)
    if not block_s and expected_s is not None:
        block_s = expected_s / max(len(record.missing()), 1) * len(plan.variants)
    least = stop.whole_blocks(0, plan.index_builds) + len(plan.extra_blocks)
    left = max(0.0, max(stop.budget_s, least * block_s) - seconds_spent(record))
    return left if expected_s is None else min(left, expected_s)


def rest_text(record: RunRecord) -> str:
    """Return how many forks a run still gets and about how long they take, for readers; empty for none."""
    left = Counter(variant for _, variant in record.missing())
    if not left:
        return ""
    plan, blocks = record.plan, max(left.values())
    seconds = remaining_s(record, blocks * _block_s(record) or None)
    most = "up to " if plan.stop is not None and (plan.stop.decided or plan.stop.budget_s) else ""
    took = "" if seconds is None else f", {most or 'about '}{duration(seconds)}"
    return f"{most}{counted(blocks, 'more fork')} of {' and '.join(left)}{took}"


def within(stop: StopSpec | None, seconds: float) -> StopSpec:
    """A stop rule that also ends forks after so many seconds; the first block always runs."""
    rule, seconds = stop or StopSpec(least_forks=FORKS_FOR_VERDICT), max(seconds, 1.0)
    least_s = seconds if rule.budget_s is None else min(seconds, rule.budget_s)
    return msgspec.structs.replace(rule, budget_s=least_s, least_blocks=1)


def seconds_spent(record: RunRecord) -> float:
    """Budget used by all forks on disk, including those before an interruption."""
    return sum(fork.wall_s for fork in record.forks)


def shortfall(record: RunRecord) -> str:
    """Report a run that ended short of the wanted verdicts, for readers; empty if it did not."""
    stop = record.plan.stop
    lacking, text = _judged(record, stop) if stop is not None and stop.decided else (False, "")
    return f"not decided: {text}" if lacking else ""


def stop_text(plan: Plan) -> str:
    """Describe the rule that ends a run, for readers; empty if only forks or time do."""
    stop = plan.stop
    if stop is None or not stop.decided:
        return ""
    time_up = "" if stop.budget_s is None else f" or {DURATION.text(stop.budget_s)} of forks"
    return (
        f"ends when every row has a verdict, after at least {stop.least_forks} and at most "
        f"{plan.forks} forks per variant{time_up}"
    )


def _judged(record: RunRecord, stop: StopSpec) -> tuple[bool, str]:
    """Return whether a wanted verdict is lacking, and which are or what there is."""
    # Imports scipy for half a second, which runs without the option need not wait for.
    from benchctl.stats.analyse import analyse_run  # noqa: PLC0415 - see above
    from benchctl.stats.decisions import decide  # noqa: PLC0415 - see above

    fewest = min(len(record.compared(spec.name)) for spec in record.plan.variants)
    decision = decide(analyse_run(record).rows, stop, fewest, record.plan.forks)
    return not decision.enough, decision.text


def _whole_blocks(record: RunRecord) -> dict[int, float]:
    """Seconds of the blocks in which every variant has its fork."""
    of_block: dict[int, list[float]] = {}
    for fork in record.forks:
        of_block.setdefault(fork.block, []).append(fork.wall_s)
    return {block: sum(own) for block, own in of_block.items() if len(own) == len(record.plan.variants)}


def _block_s(record: RunRecord) -> float:
    """Median seconds of the whole blocks so far; before the first, as many forks as it has variants."""
    if whole := _whole_blocks(record):
        return statistics.median(whole.values())
    forks_s = [fork.wall_s for fork in record.forks]
    return len(record.plan.variants) * statistics.median(forks_s) if forks_s else 0.0
