"""A prepared run: its answers, then its forks, each on disk before the next; and its caveats."""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial

import msgspec

from benchctl.disk import free_bytes, require_space
from benchctl.engine.prepared_index import bytes_per_document
from benchctl.errors import BenchctlError
from benchctl.load.turns import Member, Turnstile
from benchctl.lock import SHARE_VARIABLE, shares_host
from benchctl.report.numbers import counted
from benchctl.results.figures import Calibration
from benchctl.results.model import Environment, ForkRecord, RunRecord, RunStatus
from benchctl.results.plan import Plan, block_order
from benchctl.results.store import RunFolder, reference
from benchctl.run.bench import Bench, SharedObserver, side_by_side
from benchctl.run.calibrate import EASY_PER_S, most_offered_per_s
from benchctl.run.fork import ForkJob, ForkRunner, Runner, pool_of
from benchctl.run.host import allowed_cpus, pinned
from benchctl.run.prepare import check_answers
from benchctl.run.session import AnySubject
from benchctl.slices import hook
from benchctl.track.model import Track

HIGH_LOAD_PER_CPU = 0.5


def host_caveats(environment: Environment) -> tuple[str, ...]:
    """Return reasons to doubt values measured on this host."""
    caveats = []
    if environment.other_java:
        caveats.append(f"other Java processes were up: {', '.join(environment.other_java)}")
    if environment.governor not in {None, "performance"}:
        caveats.append(f"the CPU governor is '{environment.governor}', not 'performance'")
    if environment.load_before[0] > HIGH_LOAD_PER_CPU * environment.cpus:
        caveats.append(
            f"the load before the run was {environment.load_before[0]:.1f} on {environment.cpus} CPUs"
        )
    return tuple(caveats)


def sharing_caveats(environ: Mapping[str, str]) -> tuple[str, ...]:
    """Return the caveat that others may have measured at the same time."""
    if not shares_host(environ):
        return ()
    return (f"other benchctls may have measured on this host at the same time ({SHARE_VARIABLE} is set)",)


def load_caveats(plan: Plan, calibration: Calibration | None) -> tuple[str, ...]:
    """Caveats about how the load is generated."""
    caveats = []
    if plan.test_mode:
        caveats.append("--test-mode: tasks were cut to a few requests, so the figures mean nothing")
    if plan.workers > 1:
        offered = most_offered_per_s(plan)
        why = ""
        if calibration is not None and offered > EASY_PER_S:
            most = max(calibration.clients_per_s, calibration.one_client_per_s)
            why = (
                f": {offered:,.0f} requests/s are asked for, and one process offers {most:,.0f} at most here"
            )
        caveats.append(
            f"the load came from {plan.workers} processes (--workers)"
            f"{' on each of its hosts' if plan.load_hosts else ''}{why}"
        )
    if plan.load_hosts:
        caveats.append(
            f"the load came from {counted(len(plan.load_hosts), 'host')} ({', '.join(plan.load_hosts)}): "
            "every time measured has their network in it"
        )
    return tuple(caveats)


def data_caveats(plan: Plan) -> tuple[str, ...]:
    """Caveats about the data of forks."""
    if plan.origin == "prepared" or plan.micro is not None:
        return ()
    text = (
        "every fork made its own data: answers were not compared before the run, and the segments that were "
        "searched differ from fork to fork"
    )
    return (text,)


def stand_in_caveats(fork: ForkRecord) -> tuple[str, ...]:
    """Return the caveat that plain indices replace data streams that the node lacks."""
    names = sorted({name for boot in fork.boots for name in boot.stand_ins})
    if not names:
        return ()
    verb = "stands in" if len(names) == 1 else "stand in"
    what = "a plain index" if len(names) == 1 else "plain indices"
    return (f"{fork.variant} has no data streams: {what} {verb} for {', '.join(names)}",)


# Logs, translogs and cluster states of a fork; the index itself is linked.
FREE_BYTES_PER_FORK = 300 * 2**20
# One failure may be bad luck; after two in a row a variant will fail again.
MAX_FAILURES_IN_A_ROW = 2


class Hopeless(BenchctlError):  # noqa: N818 - what is so, not a mistake of anybody
    """A variant failed so often that it would again."""


class NotResumable(BenchctlError):  # noqa: N818 - what is so, not a mistake of anybody
    """Something that is measured, or where, has changed since the run began."""


class OpenRun:
    """A prepared run with its folder, of which a `Study` asks the forks of a block.

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
        self._bench = bench
        self._folder = folder
        self._record = record
        self._track = track
        self._subjects = {subject.spec.name: subject for subject in subjects}
        self._observer = SharedObserver(bench.observer)
        self._held: ExitStack | None = None
        self._runner: Runner | None = None
        self._fork_s = fork_s
        self._failures_in_a_row: dict[str, int] = {}

    @property
    def record(self) -> RunRecord:
        """Current state of the run."""
        return self._record

    @property
    def folder(self) -> RunFolder:
        """Directory of the run."""
        return self._folder

    def extend(self, record: RunRecord) -> None:
        """Replace the record by one with further blocks, which are then missing."""
        self._record = record
        self._folder.save(record)

    def seconds(self, variant: str = "") -> list[float]:
        """Return the seconds of finished forks, of a variant or all; else what one is expected to take."""
        own = [
            fork.wall_s
            for fork in self._record.forks
            if fork.status == "done" and variant in ("", fork.variant)
        ]
        return own or ([] if self._fork_s is None else [self._fork_s])

    @contextmanager
    def going(self, timings: dict[str, float]) -> Iterator[None]:
        """Hold the run open for forks; however the block ends, the record tells how.

        `timings` are seconds by activity, for the record; they may grow meanwhile.
        """
        status: RunStatus = "failed"
        try:
            with ExitStack() as self._held:
                if self._record.status != "running":
                    self._update(status="running")  # resumed: it must not be deleted, or count as ended
                yield
            status = "failed" if self._record.missing() else "complete"
        except KeyboardInterrupt:
            status = "interrupted"
            raise
        finally:
            # Even after a bug, the run must not look as if it were still going on.
            self._held = self._runner = None
            before = self._record.timings
            merged = {name: before.get(name, 0.0) + timings.get(name, 0.0) for name in {**before, **timings}}
            self._update(status=status, timings=merged)

    def ask(self, timings: dict[str, float]) -> None:
        """Compare the variants' answers, on unmeasured node starts, unless that was done."""
        # If every fork makes its own data, there is none beforehand.
        if self._record.answers is not None or self._record.plan.origin == "empty":
            return
        clock = time.monotonic()
        bench, subjects = self._bench, list(self._subjects.values())
        check = check_answers(subjects, self._record.plan, self._track, bench.home, bench.observer)
        timings["answers-s"] = time.monotonic() - clock
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
        if self._runner is None:
            if self._held is None:
                raise RuntimeError("the run is not held open")
            plan, bench = self._record.plan, self._bench
            if plan.micro is not None:
                self._runner = hook("micro").MicroRunner(plan, self._folder, bench.home, bench.stop)
                return self._runner
            self._held.enter_context(pinned(plan.pin))
            workers = pool_of(plan)
            if workers is not None:
                self._held.enter_context(workers)
                self._update(load_hosts=workers.facts)
            self._runner = ForkRunner(
                plan,
                self._track,
                self._folder,
                bench.home,
                self._observer,
                bench.stop,
                workers=workers,
                left_out=self._record.left_out_of_pollution,
            )
        return self._runner

    def company(self, job: ForkJob) -> object:
        """Return what forks of a block have in common that are measured at the same time."""
        plan, name = self._record.plan, job.subject.spec.name
        if not plan.together:
            return name
        together = plan.compared_together([spec.name for spec in plan.variants])
        return next(number for number, names in enumerate(together) if name in names)

    def fork(
        self, jobs: Sequence[ForkJob], number: int, total: int | None, left_s: float | None
    ) -> dict[str, Hopeless]:
        """Run forks of a block at the same time and put them on disk.

        Args:
            jobs: of different variants.
            number: of the first, counted over all variants from 1.
            total: how many there are going to be; None while unknown.
            left_s: expected until the last is done; None while unknown.

        Returns:
            The variants that failed too often.

        Raises:
            BenchctlError: If there is no space, or results cannot be written.
        """
        runner = self._fork_runner()
        self._require_space(jobs)
        for place, job in enumerate(jobs):
            self._bench.observer.fork_started(job.subject.spec.name, number + place, total, left_s)
        block, plan = jobs[0].block, self._record.plan
        stile = Turnstile(len(jobs), f"{plan.seed}/{block}/turns", self._observer.halted)
        cpus = len(allowed_cpus()) if plan.pin is None else len(plan.pin.node)
        members = [Member(stile, place, len(jobs), cpus) for place in range(len(jobs))]
        runs = [partial(runner.run, job, member) for job, member in zip(jobs, members, strict=True)]
        done = side_by_side(runs, self._observer, len(runs))
        hopeless = {}
        for record, facts in done:
            fork = msgspec.structs.replace(record, wall_s=record.wall_s / len(jobs))
            others = [old for old in self._record.forks if (old.block, old.variant) != (block, fork.variant)]
            engines = self._record.engines
            if facts is not None and facts.variant not in {engine.variant for engine in engines}:
                engines = (*engines, facts)
            self._update(forks=(*others, fork), engines=engines, caveats=self._caveats_after(fork))
            self._bench.observer.fork_done(fork)
            if (error := self._hopeless(fork)) is not None:
                hopeless[fork.variant] = error
        return hopeless

    def _require_space(self, jobs: Sequence[ForkJob]) -> None:
        scratch, plan = self._bench.home.scratch, self._record.plan
        needed = FREE_BYTES_PER_FORK * len(jobs)
        if plan.origin == "empty":
            corpora = [plan.of(job.subject.spec).corpus for job in jobs]
            needed += round(sum(corpus.documents * bytes_per_document(corpus) for corpus in corpora))
        require_space(
            scratch,
            needed,
            "run a fork",
            available=free_bytes(scratch),
            hint=f"free some space, then: {self.resumed_by}",
        )

    def end_early(self, reason: str) -> None:
        """Complete the run with the blocks it has; the reason goes into the record.

        It is a doubt unless the run was to last just as long.
        """
        self._update(stopped=reason)
        if not self._record.plan.by_time:
            self.doubt(reason)

    def doubt(self, caveat: str) -> None:
        """Add a caveat to the record."""
        self._update(caveats=tuple(dict.fromkeys((*self._record.caveats, caveat))))

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
            hint=f"mend the cause, then: {self.resumed_by}",
        )

    def _update(self, **changes: object) -> None:
        self._record = msgspec.structs.replace(self._record, **changes)
        self._folder.save(self._record)

    @property
    def resumed_by(self) -> str:
        """The command that resumes this run, or what it is part of."""
        return f"benchctl resume {self._bench.whole or reference(self._folder, self._bench.home.runs)}"

    def summary(self) -> str:
        """Tell how many forks are kept, and where."""
        done = self._record.total - len(self._record.missing())
        return f"{done} of {self._record.total_text} forks are kept in {self._folder.path}"
