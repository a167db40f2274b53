"""`--warmup pilot`: unmeasured forks before a run that find out how long tasks must warm up."""

import math
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

import msgspec

from benchctl.errors import BenchctlError, UsageError
from benchctl.report.command_line import command
from benchctl.results.model import ForkRecord, Pilot, PilotFork
from benchctl.results.plan import Plan, block_order
from benchctl.results.store import RunFolder
from benchctl.run.bench import Bench, Observer
from benchctl.run.fork import ForkJob, ForkRunner, pool_of
from benchctl.run.host import pinned
from benchctl.run.plan import param_prefix, with_params
from benchctl.run.prepare import check_answers
from benchctl.run.session import AnySubject
from benchctl.track.model import Challenge, Track

# Fewer requests rarely show where a noisy task settles.
FIRST_REQUESTS = 200
MOST_ATTEMPTS = 4
# No attempt starts that is expected to end later than this, counted from the start of the first.
MOST_PILOT_S = 900.0
_GROWTH = 2
_ROUND = 10

RunFork = Callable[[Plan, str, int], ForkRecord]
"""Runs one fork of a plan, given its variant and attempt (from 0)."""


def check_lengthening(plan: Plan) -> None:
    """Refuse a plan that the pilot could not lengthen, before anything is prepared.

    Raises:
        UsageError: If no challenge counts its requests, or a sweep varies the warm-up.
    """
    if plan.sweeps("warmup_iterations"):
        raise UsageError(
            "--warmup pilot chooses the same warm-up for all points, and --sweep warmup_iterations varies it",
            hint="use only one of them",
        )
    if not any(_counted(challenge) for challenge in plan.schedules):
        raise UsageError(
            "--warmup pilot chooses warmup-iterations, and no challenge here counts its requests: they have "
            "time periods",
            hint="remove it; the tables show which warmup-time-period is too short",
        )


def run_pilot(
    bench: Bench, plan: Plan, track: Track, subjects: Sequence[AnySubject], tags: Sequence[str] = ()
) -> tuple[Plan, Pilot]:
    """Run pilot forks, and choose the run's counts; only the figures are kept, with the run's tags.

    Returns:
        The plan with the chosen counts, and how they were found.

    Raises:
        BenchctlError: If a pilot fork fails.
    """
    by_name = {subject.spec.name: subject for subject in subjects}
    left_out: frozenset[str] = frozenset()
    if plan.polluting and plan.origin != "empty":
        # What they are is kept, so that the run need not ask again.
        answered = check_answers(list(subjects), plan, track, bench.home, bench.observer)
        left_out = plan.polluting & answered.check.refused
    folder = RunFolder(bench.home.scratch / "pilot")
    with ExitStack() as stack:
        stack.enter_context(pinned(plan.pin))
        workers = pool_of(plan)
        if workers is not None:
            stack.enter_context(workers)

        def run_fork(attempted: Plan, variant: str, attempt: int) -> ForkRecord:
            runner = ForkRunner(
                _without_extra_forks(attempted),
                track,
                folder,
                bench.home,
                bench.observer,
                bench.stop,
                workers=workers,
                left_out=left_out,
            )
            fork, _ = runner.run(ForkJob(by_name[variant], block=attempt, position=0))
            return fork

        chosen, pilot = choose_counts(plan, run_fork, bench.observer, tags=tags)
    # After a failure the folder stays until the next run: the error refers to it.
    shutil.rmtree(folder.path, ignore_errors=True)
    return msgspec.structs.replace(chosen, piloted=True), pilot


def _without_extra_forks(plan: Plan) -> Plan:
    """Return the plan without evidence from extra forks: no attempt's number makes it one of these."""
    if plan.evidence is None or not plan.evidence.extra_forks:
        return plan
    return msgspec.structs.replace(plan, evidence=None)


def choose_counts(
    plan: Plan,
    run_fork: RunFork,
    observer: Observer,
    clock: Callable[[], float] = time.monotonic,
    *,
    tags: Sequence[str] = (),
) -> tuple[Plan, Pilot]:
    """Measure every task from its first request, longer and longer, until all have settled.

    `stats.steady.settling` decides, for the practical margin of throughput. Every attempt is one fork of each
    variant, in an order of its own; if a task has not settled, all tasks of its challenge get twice as many
    requests in the next attempt, for all variants. In the end every challenge warms up for as long as its
    slowest task took on the slowest variant, rounded up to tens, and at least as long as the user specified.
    Measured iterations stay as the user specified them.

    Returns:
        The plan with these counts, and how they were found.

    Raises:
        BenchctlError: If a pilot fork fails.
    """
    for challenge in plan.schedules:
        if not _counted(challenge):
            observer.note(f"pilot: {challenge.name} has time periods, which --warmup pilot does not lengthen")
    requests = {
        _prefix(plan, challenge): max(
            FIRST_REQUESTS,
            *((task.iterations or 1) + (task.warmup_iterations or 0) for task in challenge.schedule),
        )
        for challenge in plan.schedules
        if _counted(challenge)
    }
    forks: list[PilotFork] = []
    begun = clock()
    for attempt in range(MOST_ATTEMPTS):
        started = clock()
        # Warm-up is measured, too: that is what the pilot examines.
        params: dict[str, int] = {}
        for prefix, count in requests.items():
            params |= {f"{prefix}warmup_iterations": 0, f"{prefix}iterations": count}
        attempted = with_params(plan, params)
        latest = [
            _pilot_fork(run_fork(attempted, spec.name, attempt), attempt, requests, observer)
            for spec in block_order(plan, attempt)
        ]
        forks += latest
        needs = list(_needs(attempted, latest))
        short = {need.prefix for need in needs if not need.settled} & requests.keys()
        if not short:
            break
        expected_s = _GROWTH * (clock() - started)
        if attempt + 1 < MOST_ATTEMPTS and clock() - begun + expected_s > MOST_PILOT_S:
            observer.note(f"pilot: another attempt would take {expected_s:,.0f} s more, so this was the last")
            break
        requests = {prefix: count * (_GROWTH if prefix in short else 1) for prefix, count in requests.items()}
    pilot = Pilot(
        forks=tuple(forks),
        params=_warm_ups(plan, needs),
        unsettled=tuple(need.where for need in needs if not need.settled),
    )
    chosen = with_params(plan, pilot.params)
    _report(chosen, pilot, observer, tags)
    return chosen, pilot


@dataclass(frozen=True)
class _Need:
    """Requirement of one task of one variant."""

    prefix: str  # of its challenge's parameters
    where: str  # the task, for readers
    warm_up: int  # requests of each client until it settled; a lower bound if it did not
    settled: bool


def _pilot_fork(fork: ForkRecord, attempt: int, requests: Mapping[str, int], observer: Observer) -> PilotFork:
    if fork.status == "failed":
        raise BenchctlError(f"the pilot fork of {fork.variant} failed: {fork.reason}")
    counts = ", ".join(f"{prefix.removesuffix('.')} {count:,}" for prefix, count in requests.items())
    observer.note(
        f"pilot {attempt + 1} of at most {MOST_ATTEMPTS}, {fork.variant}: requests a task and client: "
        f"{counts} ({fork.wall_s:.1f} s)"
    )
    return PilotFork(fork.variant, attempt + 1, fork.wall_s, fork.summaries)


def _needs(plan: Plan, forks: Sequence[PilotFork]) -> Iterator[_Need]:
    """Of every reported task and every variant that supports it."""
    # Slow to import (half a second), but done by now for the forks' summaries.
    from benchctl.stats.metrics import THROUGHPUT  # noqa: PLC0415 - see above
    from benchctl.stats.steady import settling  # noqa: PLC0415 - see above

    for fork in forks:
        for summary in fork.summaries:
            if not summary.reported or summary.unsupported is not None:
                continue
            challenge = plan.schedules[summary.schedule]
            task = challenge.schedule[summary.task]
            least, settled = settling(summary, THROUGHPUT.margin)
            yield _Need(
                _prefix(plan, challenge),
                f"{challenge.name}: {summary.label} of {fork.variant}"
                + (f" (only {summary.samples} answers)" if summary.course is None else ""),
                math.ceil(least / task.clients),
                settled,
            )


def _warm_ups(plan: Plan, needs: Sequence[_Need]) -> dict[str, int]:
    """Warm-up requests of every challenge that needs more than it declares."""
    chosen = {}
    for challenge in plan.schedules:
        if _counted(challenge):
            prefix = _prefix(plan, challenge)
            declared = [task.warmup_iterations or 0 for task in challenge.schedule]
            needed = max((need.warm_up for need in needs if need.prefix == prefix), default=0)
            if needed > min(declared):
                chosen[f"{prefix}warmup_iterations"] = max(math.ceil(needed / _ROUND) * _ROUND, *declared)
    return chosen


def _report(plan: Plan, pilot: Pilot, observer: Observer, tags: Sequence[str]) -> None:
    listed = ", ".join(f"{name}={count}" for name, count in pilot.params.items())
    observer.note(f"pilot: {listed or 'no task needs more warm-up than it has'}")
    for where in pilot.unsettled:
        observer.note(f"pilot: not settled within its bound: {where}; the tables will say whether it matters")
    observer.note(f"pilot: the same run without a pilot: {command(plan, tags=tags)}")


def _counted(challenge: Challenge) -> bool:
    """Return whether iterations bound its tasks: they do not mix with time periods."""
    return not any(task.time_period or task.warmup_time_period for task in challenge.schedule)


def _prefix(plan: Plan, challenge: Challenge) -> str:
    """The points of a sweep have their parameters in common: they are one challenge."""
    name = challenge.name
    if plan.swept is not None:
        made = zip(plan.schedules, plan.swept.schedules, strict=True)
        name = next(swept.of for schedule, swept in made if schedule.name == name)
    return param_prefix(plan.sources.get(name, name))
