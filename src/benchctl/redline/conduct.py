"""A red-line search: its plan, and on one node a warm-up, then load after load."""

import math
import random
import re
import zlib
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Literal

import msgspec

from benchctl.errors import BenchctlError, UsageError, suggestion
from benchctl.load.task_clients import Job, TaskResult
from benchctl.quantities import DURATION
from benchctl.redline.judge import Offer, hardest, judge_step
from benchctl.redline.search import MOST_STEPS, ClientLadder, Found, Ladder, Phase, Search
from benchctl.results.figures import CurvePoint, StepVerdict, TaskSummary, load_text
from benchctl.results.plan import Plan, RedlineSpec, SearchedBy
from benchctl.results.samples import Columns, Outcome
from benchctl.run.checks import check_options
from benchctl.run.fork import SearchResult
from benchctl.run.plan import RunSpec, freeze, plan_run, refuse_sweep
from benchctl.run.steps import WARMUP_SCHEDULE
from benchctl.run.targets import check_targets
from benchctl.stats.summary import driver_figures, summarise
from benchctl.track.load import load_track, reject_unused
from benchctl.track.model import Challenge, Task, Track, TrackOperation
from benchctl.track.operations.catalogue import PluginOperation
from benchctl.track.operations.common import MOST_WAIT_S, Asking
from benchctl.track.operations.search import Bulk
from benchctl.track.schedule import MOST_CLIENTS, MOST_PER_S

_MOST_TOLERANCE = 0.5
_LEAST_TOLERANCE = 0.001
_LEAST_MAX_PER_S = 2.0
LEAST_FACTOR = 0.05
# On no grid of factors this is below the least.
_LEAST_MAX_FACTOR = 2 * LEAST_FACTOR
_LEAST_WARM_UP_S = 0.5
_LEAST_STEP_S = 0.5
_NS_PER_S = 10**9

_ALONE = "a search loads a node for minutes"


def plan_redline(options: RunSpec, search: RedlineSpec) -> tuple[Plan, Track]:
    """Check a search's options, and freeze them.

    The plan of an operation has one challenge of one task, the operation, so that everything that reads plans
    knows what was measured; the search decides at which loads. That of a factor has the challenge itself.

    Raises:
        UsageError: If an option or combination is invalid; nothing has been started.
    """
    check_options(options)
    refuse_sweep(options, "a red-line search")
    _check(search)
    warmed = next((spec.name for spec in options.variants if spec.warmups), None)
    if warmed is not None:
        raise UsageError(
            f"variant '{warmed}' has warm-up challenges, and a red-line search warms up by itself",
            hint="name a variant without, or raise --warm-up",
        )
    plan, track = (_plan_factor if search.by == "factor" else _plan_operation)(options, search)
    check_targets(plan, track)
    return plan, track


def _plan_operation(options: RunSpec, search: RedlineSpec) -> tuple[Plan, Track]:
    track, param_names = load_track(options.track, options.params)
    reject_unused(options.params, param_names)
    operation = track.operations.get(search.operation)
    if operation is None:
        raise UsageError(
            f"unknown operation '{search.operation}' in track {track.name}",
            hint=f"{suggestion(search.operation, sorted(track.operations))}; see: benchctl list operations",
        )
    if isinstance(operation, PluginOperation):
        raise UsageError(
            f"'{search.operation}' needs {operation.lacks} of the track's Python plug-in, and red-lines are "
            "searched without plug-ins",
            hint="name an operation of benchctl's own types",
        )
    if not isinstance(operation, Asking):
        raise UsageError(
            f"operation '{search.operation}' is a {operation.type_name}, and only searches have a red-line",
            hint="name an operation that searches; or give a --challenge, for a factor of all its rates",
        )
    task = Task(
        operation=search.operation,
        clients=search.clients,
        time_period=search.step_s,
        warmup_time_period=search.settle_s,
        schedule=search.schedule,
    )
    challenge = Challenge(name=f"redline-{search.operation}", schedule=(task,))
    challenge = msgspec.structs.replace(challenge, remarks=track.remarks_on(challenge))
    plan = freeze(options, track, (challenge,))
    return msgspec.structs.replace(plan, redline=search, apart=_ALONE), track.with_challenges(challenge)


def _plan_factor(options: RunSpec, search: RedlineSpec) -> tuple[Plan, Track]:
    plan, track = plan_run(msgspec.structs.replace(options, challenges=(search.operation,), settle=False))
    (challenge,) = plan.schedules
    lacking = track.lacking(challenge)
    if lacking:
        raise UsageError(
            f"challenge '{challenge.name}' needs the track's Python plug-in, and red-lines are searched "
            f"without plug-ins: {lacking[0]}",
            hint="exclude these tasks: --exclude-tasks",
        )
    throttled = [task for task in challenge.schedule if task.throttled]
    if not throttled:
        raise UsageError(
            f"no task of challenge '{challenge.name}' has a target-throughput: no rate to multiply",
            hint="give its tasks targets; or search for a rate of one operation (--operation), or for a "
            "number of clients (--clients 1..64)",
        )
    judged = [task for task in throttled if _counts(task, track.operations[task.operation], search)]
    names = sorted({task.label for task in throttled})
    for name in search.tasks:
        if not any(name in {task.label, task.operation} for task in throttled):
            raise UsageError(
                f"--task {name}: challenge '{challenge.name}' has no task of that name with a target",
                hint=suggestion(name, names),
            )
    if not judged:
        raise UsageError(
            f"no task of challenge '{challenge.name}' with a target is reported",
            hint=f"name those whose latency counts with --task: {', '.join(names)}",
        )
    late = _late_tasks(challenge)
    if late:
        raise UsageError(
            f"task '{late[0]}' of challenge '{challenge.name}' has no target, and comes after tasks that do: "
            "a search repeats these, and has no place for it",
            hint=f"remove it: --exclude-tasks {','.join(late)}; or let it run with them, in a parallel "
            "element",
        )
    search = msgspec.structs.replace(search, operation=challenge.name)
    challenge = msgspec.structs.replace(challenge, name=f"redline-{challenge.name}")
    # All steps of a search are made on one node.
    plan = msgspec.structs.replace(
        plan, schedules=(challenge,), redline=search, restart="challenge", apart=_ALONE
    )
    return plan, track


def _late_tasks(challenge: Challenge) -> list[str]:
    """Names of tasks that neither come before all with a target nor run beside any."""
    elements = [[challenge.schedule[place] for place in places] for places in challenge.steps]
    scaled = [any(task.throttled for task in element) for element in elements]
    behind = elements[scaled.index(True) :]
    return [
        task.label for element in behind if not any(task.throttled for task in element) for task in element
    ]


def _counts(task: Task, operation: TrackOperation, search: RedlineSpec) -> bool:
    """Return whether the latency of a task with a target is bounded: it is named, or else shown in tables."""
    if not search.tasks:
        return operation.reported
    return task.label in search.tasks or task.operation in search.tasks


PERCENTILES = {"p50": 50.0, "p90": 90.0, "p95": 95.0, "p99": 99.0, "p99.9": 99.9}

Objective = tuple[float, int]
"""(percentile, nanoseconds)."""


def parse_objective(text: str) -> Objective:
    """Read an objective such as `p90=50ms`.

    Raises:
        ValueError: If the text is no objective.
    """
    name, _, limit = text.partition("=")
    limit_s = DURATION.amount(limit)
    if limit_s is None or not limit.endswith("s") or name not in PERCENTILES:
        raise ValueError(
            f"'{text}' is not an objective: write p90=50ms with {', '.join(PERCENTILES)}, us, ms or s"
        )
    limit_ns = round(limit_s * _NS_PER_S)
    if limit_ns < 1:
        raise ValueError(f"'{text}': no answer takes no time")
    return PERCENTILES[name], limit_ns


Clients = tuple[int | None, int]
"""The fewest, None where their number is given; the most."""
_CLIENTS = re.compile(r"(?:(?P<least>[0-9]{1,6})\.\.)?(?P<most>[0-9]{1,6})", re.ASCII)


def parse_clients(text: str) -> Clients:
    """Read a number of clients such as `16`, or the range `1..64` in which it is searched for.

    Raises:
        ValueError: If the text is neither.
    """
    match = _CLIENTS.fullmatch(text)
    if match is None:
        raise ValueError(f"'{text}' is neither a number nor a range: write 16, or 1..64")
    return (int(match["least"]) if match["least"] else None), int(match["most"])


def searched_by(challenge: str | None, clients: Clients) -> SearchedBy:
    """Return the quantity that a search raises."""
    if challenge is not None:
        return "factor"
    return "rate" if clients[0] is None else "clients"


def search_of(  # noqa: PLR0913 - what a search is told, by name
    names: Sequence[str],
    challenge: str | None,
    objective: Objective,
    *,
    clients: Clients,
    schedule: Literal["deterministic", "poisson"],
    warm_up_s: float,
    settle_s: float,
    step_s: float,
    tolerance: float,
    max_rate: float | None,
    max_factor: float | None,
) -> RedlineSpec:
    """A search from what it was told.

    Args:
        names: of the operation; of a challenge those of its tasks that the objective is about.
        challenge: whose rates are multiplied; None for a search for one operation.
        objective: of latency.
        clients: connections, or the range of their number.
        schedule: of arrivals.
        warm_up_s: as in `RedlineSpec`.
        settle_s: as there.
        step_s: as there.
        tolerance: as there.
        max_rate: no higher rate is tried.
        max_factor: no higher factor is tried.

    Raises:
        UsageError: If the search is not about one operation.
    """
    if challenge is None and len(names) != 1:
        raise UsageError(
            f"a search is for one operation, and {f'{len(names)} are' if names else 'none is'} named",
            hint="give one --operation, such as --operation range; or a --challenge",
        )
    by = searched_by(challenge, clients)
    percentile, limit_ns = objective
    least, most = clients
    return RedlineSpec(
        operation=names[0] if challenge is None else challenge,
        percentile=percentile,
        limit_ns=limit_ns,
        clients=most,
        schedule=schedule,
        warm_up_s=warm_up_s,
        settle_s=settle_s,
        step_s=step_s,
        tolerance=tolerance,
        max_per_s=max_factor if by == "factor" else max_rate,
        by=by,
        least_clients=1 if least is None else least,
        tasks=() if challenge is None else tuple(names),
    )


def judged_tasks(plan: Plan) -> list[str]:
    """Names of the tasks with a rate that a factor multiplies and a latency that counts.

    The first of them has the red-line.
    """
    search = plan.redline
    wanted = () if search is None else search.tasks
    return [
        task.label
        for task in plan.schedules[0].schedule
        if task.throttled and (not wanted or task.label in wanted or task.operation in wanted)
    ]


def _check(search: RedlineSpec) -> None:
    rules = (
        (not 1 <= search.clients <= MOST_CLIENTS, f"--clients must be at least 1, at most {MOST_CLIENTS:,}"),
        (
            search.by == "clients" and not 1 <= search.least_clients < search.clients,
            "--clients: a range begins with at least 1, and ends with more, such as 1..64",
        ),
        (
            not _LEAST_WARM_UP_S <= search.warm_up_s <= MOST_WAIT_S,
            f"--warm-up must be from {_LEAST_WARM_UP_S:g} to {MOST_WAIT_S:,} s",
        ),
        (
            not _LEAST_STEP_S <= search.step_s <= MOST_WAIT_S,
            f"--step-time must be from {_LEAST_STEP_S:g} to {MOST_WAIT_S:,} s",
        ),
        (not 0 <= search.settle_s <= MOST_WAIT_S, f"--settle must be from 0 to {MOST_WAIT_S:,} s"),
        (
            not 0 < search.limit_ns <= MOST_WAIT_S * _NS_PER_S,
            f"--slo must be at most {MOST_WAIT_S:,} s",
        ),
        (
            not _LEAST_TOLERANCE <= search.tolerance <= _MOST_TOLERANCE,
            f"--tolerance must be from {_LEAST_TOLERANCE:.1%} to {_MOST_TOLERANCE:.0%}",
        ),
        (
            search.by == "rate"
            and search.max_per_s is not None
            and not _LEAST_MAX_PER_S <= search.max_per_s <= MOST_PER_S,
            f"--max-rate must be from {_LEAST_MAX_PER_S:g} to {MOST_PER_S:,} a second",
        ),
        (
            search.by == "factor"
            and search.max_per_s is not None
            and not _LEAST_MAX_FACTOR <= search.max_per_s <= MOST_PER_S,
            f"--max-factor must be from {_LEAST_MAX_FACTOR:g} to {MOST_PER_S:,}",
        ),
    )
    for broken, text in rules:
        if broken:
            raise UsageError(text)


NS_PER_S = 1_000_000_000
# One request a second: below that a step takes too long.
LEAST_RUNG = 0
# A closed loop of few clients approaches a node's capacity without building a queue.
WARM_UP_CLIENTS = 4
_FIRST_SHARE = 0.75
_LEAP = 1.4
_LEAST_REQUESTS = 20  # of a step, at any rate

Measure = Callable[[Sequence[Job], int], Sequence[TaskResult]]
"""Runs tasks at the same time on the running node, with this seed."""


def search_redline(plan: Plan, track: Track, block: int, measure: Measure) -> SearchResult:
    """Search for the red-line of a plan on a fresh node.

    Variants of a block get the same arrivals and the same grid of loads.

    Raises:
        BenchctlError: If the plan has no search, or the node failed.
    """
    if plan.redline is None:
        raise BenchctlError("this plan searches for no red-line")
    return _NodeSearch(plan, plan.redline, track, block, measure).run()


class _NodeSearch:
    def __init__(self, plan: Plan, spec: RedlineSpec, track: Track, block: int, measure: Measure) -> None:
        self._spec = spec
        self._tasks = plan.schedules[0].schedule
        self._track = track.with_challenges(*plan.schedules)
        self._measure = measure
        self._seed = f"{plan.seed}/{block}"
        scaled = [places for places in plan.schedules[0].steps if self._is_scaled(places)]
        self._before = [places for places in plan.schedules[0].steps if places not in scaled]
        self._elements = scaled
        # Tasks with a target, or the only one.
        places = [place for element in scaled for place in element]
        self._loaded = [place for place in places if spec.by != "factor" or self._tasks[place].throttled]
        # Whose latency counts; the red-line stands at the first of them.
        self._judged = [place for place in self._loaded if spec.by != "factor" or self._counts(place)]
        self._unit = {"factor": "x", "clients": "clients"}.get(
            spec.by, f"{self._operation(self._judged[0]).unit}/s"
        )
        self._clients: ClientLadder | None = None
        shift = random.Random(f"{self._seed}/shift").random()  # noqa: S311 - reproducible, not secret
        self._ladder = Ladder(
            1 + spec.tolerance, shift, math.inf if spec.max_per_s is None else spec.max_per_s
        )
        if spec.by == "clients":
            self._clients = ClientLadder(spec.least_clients, spec.clients, 1 + spec.tolerance)
        self._curve: list[CurvePoint] = []
        self._results: list[dict[int, tuple[Job, TaskResult]]] = []

    def _is_scaled(self, places: Sequence[int]) -> bool:
        return self._spec.by != "factor" or any(self._tasks[place].throttled for place in places)

    def _counts(self, place: int) -> bool:
        return _counts(self._tasks[place], self._operation(place), self._spec)

    def _operation(self, place: int) -> TrackOperation:
        return self._track.operations[self._tasks[place].operation]

    def run(self) -> SearchResult:
        for number, places in enumerate(self._before):
            jobs = [
                Job(self._tasks[place], self._operation(place), WARMUP_SCHEDULE, place, measured=False)
                for place in places
            ]
            self._measure(jobs, self._seeded(f"before/{number}"))
        warmed: dict[int, tuple[Job, TaskResult]] = {}
        for places in self._elements:
            warmed |= self._run({place: self._warm_up(place) for place in places}, step=0)
        for place in self._loaded:
            job, result = warmed[place]
            silent = place in self._judged and capacity_per_s(result.columns) is None
            if result.unsupported is not None or silent:
                return SearchResult((), partial(self._unsearched, job, result))
        outcome = self._search(warmed)
        curve = tuple(self._curve)
        decisive = self._decisive(outcome)
        return SearchResult(curve, lambda: tuple(self._found_summaries(outcome, decisive)))

    def _search(self, warmed: dict[int, tuple[Job, TaskResult]]) -> Found:
        first = self._first_load(warmed)
        if self._clients is not None:
            grid = self._clients
            search = Search(self._attempt, least=0, most=grid.top, leap=grid.rungs(_LEAP, first))
            return search.run(grid.at_most(first))
        ladder = self._ladder
        least = LEAST_RUNG if self._spec.by == "rate" else ladder.at_most(LEAST_FACTOR) + 1
        return Search(
            self._attempt,
            least=least,
            most=ladder.top,
            leap=ladder.rungs(_LEAP),
        ).run(ladder.at_most(first))

    def _first_load(self, warmed: dict[int, tuple[Job, TaskResult]]) -> float:
        """A load somewhat below what the warm-up says that the node can do."""
        shares = []
        for place in self._judged:
            job, result = warmed[place]
            capacity = _FIRST_SHARE * (capacity_per_s(result.columns) or 0.0)
            if self._spec.by == "clients":
                # As many as there are requests under way at that rate, if each takes as long as it may.
                return max(1.0, capacity * self._spec.limit_ns / NS_PER_S)
            if self._spec.by == "rate":
                return capacity
            rate_per_s = self._tasks[place].rate_per_s
            if not job.task.throttled and rate_per_s is not None:
                shares.append(capacity / rate_per_s)
        # What was not let go as fast as it can is only known to go as it is.
        return min(shares, default=1.0)

    def _load(self, rung: int) -> float:
        return (self._clients or self._ladder).load(rung)

    def _attempt(self, rung: int, phase: Phase) -> StepVerdict:
        load = self._load(rung)
        step = len(self._curve) + 1
        results: dict[int, tuple[Job, TaskResult]] = {}
        for places in self._elements:
            results |= self._run(self._stepped(places, load), step=step)
        judged = []
        for place in self._loaded:
            job, result = results[place]
            task = job.task
            bounded = place in self._judged
            objective = self._spec if bounded else msgspec.structs.replace(self._spec, limit_ns=0)
            rate_per_s = load if task.rate_per_s is None else task.rate_per_s * task.per_request
            period_ns = round((task.time_period or 0.0) * NS_PER_S)
            offer = Offer(step, rung, phase, rate_per_s, period_ns)
            think_share = _think_share(job, result) if self._spec.by == "clients" else None
            point = judge_step(result.columns, offer, objective, think_share)
            # A rare task that had nothing to do in a step says nothing of it.
            if bounded or point.samples or point.failures:
                judged.append((task, point, objective.limit_ns))
        point = judged[0][1] if self._spec.by != "factor" else hardest(judged, load)
        self._curve.append(point)
        self._results.append(results)
        return point.verdict

    def _run(self, tasks: dict[int, Task], *, step: int) -> dict[int, tuple[Job, TaskResult]]:
        """Run tasks at the same time; those of step 0 are no part of any figure."""

        def looped(operation: TrackOperation) -> TrackOperation:
            # Documents begin again at the end of the corpus.
            return (
                msgspec.structs.replace(operation, looped=True) if isinstance(operation, Bulk) else operation
            )

        jobs = [
            Job(task, looped(self._operation(place)), place, step, measured=step > 0)
            for place, task in tasks.items()
        ]
        first = min(tasks)
        seed = self._seeded(f"{step}" if first == self._elements[0][0] else f"{step}/{first}")
        return dict(zip(tasks, zip(jobs, self._measure(jobs, seed), strict=True), strict=True))

    def _seeded(self, what: str) -> int:
        return zlib.crc32(f"{self._seed}/{what}".encode())

    def _warm_up(self, place: int) -> Task:
        """A closed loop of few clients; documents and what else a challenge says come at their own rates."""
        task, spec = self._tasks[place], self._spec
        if spec.by == "factor" and not isinstance(self._operation(place), Asking):
            timed = task.throttled or self._operation(place).reported
            return _timed(task, 0.0, spec.warm_up_s) if timed else task
        return msgspec.structs.replace(
            _timed(task, None, spec.warm_up_s),
            clients=min(task.clients, WARM_UP_CLIENTS),
            schedule="deterministic",
            target_throughput=None,
            target_interval=None,
        )

    def _stepped(self, places: Sequence[int], load: float) -> dict[int, Task]:
        """The tasks of an element at one load, long enough for some requests."""
        spec = self._spec
        if spec.by == "clients":
            return {
                place: msgspec.structs.replace(
                    _timed(self._tasks[place], spec.settle_s, spec.step_s), clients=round(load)
                )
                for place in places
            }
        scaled = {place: _at_load(self._tasks[place], load, spec) for place in places}
        rates = [scaled[place].rate_per_s or math.inf for place in places if place in self._judged]
        step_s = max(spec.step_s, _LEAST_REQUESTS / min(rates, default=math.inf))
        return {
            place: _timed(task, spec.settle_s, step_s)
            if task.throttled or self._operation(place).reported
            else task
            for place, task in scaled.items()
        }

    def _decisive(self, found: Found) -> int:
        """The step that supplies the fork's figures: the last at the load found, or the one that decided."""
        rung = found.at if found.rung is None else found.rung
        return max(place for place, point in enumerate(self._curve) if point.rung == rung)

    def _found_summaries(self, found: Found, decisive: int) -> Iterator[TaskSummary]:
        for place in self._loaded:
            summary = self._summary_over_steps(place, decisive)
            if place == self._judged[0]:
                summary = msgspec.structs.replace(
                    summary,
                    redline_per_s=None if found.rung is None else self._load(found.rung),
                    redline_unit=self._unit,
                    redline_end=found.end,
                    redline_text=self._words(found, decisive),
                )
            yield summary

    def _summary_over_steps(self, place: int, decisive: int) -> TaskSummary:
        """A task's figures in one step, with the failures of all."""
        failures: dict[str, int] = {}
        summaries = [_summary(*results[place]) for results in self._results]
        for summary in summaries:
            for name, count in summary.failures.items():
                failures[name] = failures.get(name, 0) + count
        return msgspec.structs.replace(
            summaries[decisive],
            failures=failures,
            failure_reasons=tuple(
                dict.fromkeys(reason for each in summaries for reason in each.failure_reasons)
            ),
            # Tables show one red-line.
            reported=place == self._judged[0],
            # Five seconds at the limit tell nothing about settling.
            drift=None,
        )

    def _words(self, found: Found, decisive: int) -> str:
        at = load_text(self._load(found.at), self._unit)
        match found.end:
            case "max-rate":
                what = {"rate": "highest rate", "factor": "highest factor", "clients": "most clients"}
                return f"the objective is met at {at}, the {what[self._spec.by]} to be tried"
            case "driver-limited":
                return f"driver-limited at {at}"
            case "missed":
                return f"{self._curve[decisive].reason} even at {at}"
            case "unsettled":
                return f"not settled after {MOST_STEPS} steps"
            case "found":
                return ""

    def _unsearched(self, job: Job, result: TaskResult) -> tuple[TaskSummary, ...]:
        """The figures of a warm-up after which no search was possible, where its red-line would stand."""
        summary = msgspec.structs.replace(_summary(job, result), redline_unit=self._unit)
        if job.schedule != self._judged[0]:
            task = self._tasks[self._judged[0]]
            summary = msgspec.structs.replace(
                summary,
                task=self._judged[0],
                label=task.label,
                operation=task.operation,
                unsupported=result.unsupported and f"{job.task.label}: {result.unsupported}",
            )
        if result.unsupported is not None:
            return (summary,)
        reason = ": ".join(["no request of the warm-up was answered", *summary.failure_reasons[:1]])
        # Warm-up, which figures exclude; but here there is nothing else.
        failures = {failure.outcome.name.lower(): failure.count for failure in result.failures}
        return (
            msgspec.structs.replace(summary, failures=failures, redline_end="missed", redline_text=reason),
        )


def capacity_per_s(columns: Columns) -> float | None:
    """Completions per second in the second half of a closed loop's samples, shape (n,); None for none."""
    ok = (columns["outcome"] == Outcome.OK) & (columns["part"] == 0)
    ends = columns["end_ns"][ok]
    if ends.size == 0:
        return None
    starts_ns, last_ns = int(columns["start_ns"].min()), int(ends.max())
    middle_ns = (starts_ns + last_ns) // 2
    return int((ends > middle_ns).sum()) * NS_PER_S / max(last_ns - middle_ns, 1)


def _timed(task: Task, settle_s: float | None, step_s: float) -> Task:
    """A task for so many seconds, whatever the challenge says of how long it lasts."""
    return msgspec.structs.replace(
        task,
        warmup_iterations=None,
        iterations=None,
        ramp_up_time_period=None,
        completes=False,
        warmup_time_period=settle_s,
        time_period=step_s,
    )


def _at_load(task: Task, load: float, spec: RedlineSpec) -> Task:
    """A task at a rate, or at its own times a factor; without a rate of its own it stays as it is."""
    if spec.by == "rate":
        return msgspec.structs.replace(task, target_throughput=load)
    if task.target_interval is not None:
        return msgspec.structs.replace(task, target_interval=task.target_interval / load)
    if task.target_throughput is not None:
        return msgspec.structs.replace(task, target_throughput=task.target_throughput * load)
    return task


def _think_share(job: Job, result: TaskResult) -> float | None:
    return driver_figures(
        result.samples, job.task, cpu_s=result.driver_cpu_s, wall_s=result.wall_s
    ).think_share


def _summary(job: Job, result: TaskResult) -> TaskSummary:
    """The figures of a task in a step, at its position in the plan; its samples have that for a schedule."""
    summary = summarise(
        result.samples,
        schedule=job.schedule,
        task_index=job.position,
        task=job.task,
        unsupported=result.unsupported,
        constant=job.operation.constant and job.task.group is None,
    )
    reasons = tuple(detail for failure in result.failures for detail in failure.details)
    return msgspec.structs.replace(
        summary, schedule=0, task=job.schedule, unit=job.operation.unit, failure_reasons=reasons
    )
