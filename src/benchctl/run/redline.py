"""A red-line search: its plan, and on one node a warm-up, then rate after rate."""

import random
import re
import zlib
from collections.abc import Callable
from dataclasses import dataclass

import msgspec

from benchctl.errors import BenchctlError, UsageError
from benchctl.load.executor import TaskResult
from benchctl.load.redline import MOST_STEPS, Found, Ladder, Phase, Search
from benchctl.load.task_clients import Job
from benchctl.nearest import suggestion
from benchctl.results.figures import CurvePoint, StepVerdict, TaskSummary
from benchctl.results.plan import Plan, RedlineSpec
from benchctl.results.samples import Columns, Outcome
from benchctl.run.plan import RunSpec, check_options, freeze
from benchctl.stats.redline import Offer, judge_step
from benchctl.stats.summary import summarise
from benchctl.track.load import load_track, reject_unused
from benchctl.track.model import Challenge, Task, Track
from benchctl.track.operations.catalogue import PluginOperation
from benchctl.track.operations.common import MOST_WAIT_S, Asking
from benchctl.track.schedule import MOST_CLIENTS, MOST_PER_S

_MOST_TOLERANCE = 0.5
_LEAST_TOLERANCE = 0.001
_LEAST_MAX_PER_S = 2.0
_LEAST_WARM_UP_S = 0.5
_LEAST_STEP_S = 0.5
_NS_PER_S = 10**9


def plan_redline(options: RunSpec, search: RedlineSpec) -> tuple[Plan, Track]:
    """Check a search's options, and freeze them.

    The plan has one challenge of one task, the operation, so that everything that reads plans knows what was
    measured; the search decides at which rates.

    Raises:
        UsageError: something is wrong; nothing has been started.
    """
    check_options(options)
    _check(search)
    warmed = next((spec.name for spec in options.variants if spec.warmups), None)
    if warmed is not None:
        raise UsageError(
            f"variant '{warmed}' has warm-up challenges, and a red-line search warms up by itself",
            hint="name a variant without, or raise --warm-up",
        )
    track, known = load_track(options.track, options.params)
    reject_unused(options.params, known)
    operation = track.operations.get(search.operation)
    if operation is None:
        raise UsageError(
            f"there is no operation '{search.operation}' in track {track.name}",
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
            f"'{search.operation}' is a {operation.type_name}, which has no red-line: only searches do",
            hint="name an operation that searches",
        )
    task = Task(
        operation=search.operation,
        clients=search.clients,
        time_period=search.step_s,
        warmup_time_period=search.settle_s,
        schedule=search.schedule,
    )
    challenge = Challenge(name=f"redline-{search.operation}", schedule=(task,))
    plan = msgspec.structs.replace(freeze(options, track, (challenge,)), redline=search)
    return plan, track


PERCENTILES = {"p50": 50.0, "p90": 90.0, "p95": 95.0, "p99": 99.0, "p99.9": 99.9}
_UNITS_NS = {"us": 10**3, "ms": 10**6, "s": 10**9}
_OBJECTIVE = re.compile(r"(?P<name>p[0-9.]+)=(?P<number>[0-9]{1,15}(?:\.[0-9]+)?)(?P<unit>us|ms|s)", re.ASCII)

Objective = tuple[float, int]
"""(percentile, nanoseconds)."""


def parse_objective(text: str) -> Objective:
    """Read an objective such as `p90=50ms`.

    Raises:
        ValueError: it is none.
    """
    match = _OBJECTIVE.fullmatch(text)
    if match is None or match["name"] not in PERCENTILES:
        raise ValueError(
            f"'{text}' is not an objective: write p90=50ms with {', '.join(PERCENTILES)}, us, ms or s"
        )
    limit_ns = round(float(match["number"]) * _UNITS_NS[match["unit"]])
    if limit_ns < 1:
        raise ValueError(f"'{text}': no answer takes no time")
    return PERCENTILES[match["name"]], limit_ns


def _check(search: RedlineSpec) -> None:
    rules = (
        (not 1 <= search.clients <= MOST_CLIENTS, f"--clients must be at least 1, at most {MOST_CLIENTS:,}"),
        (
            not _LEAST_WARM_UP_S <= search.warm_up_s <= MOST_WAIT_S,
            f"--warm-up must be from {_LEAST_WARM_UP_S:g} to {MOST_WAIT_S:,} s",
        ),
        (
            not _LEAST_STEP_S <= search.step_s <= MOST_WAIT_S,
            f"--step-time must be from {_LEAST_STEP_S:g} to {MOST_WAIT_S:,} s",
        ),
        (not 0 <= search.settle_s <= MOST_WAIT_S, f"--settle must be from 0 to {MOST_WAIT_S:,} s"),
        (search.limit_ns > MOST_WAIT_S * _NS_PER_S, f"--slo must be at most {MOST_WAIT_S:,} s"),
        (
            not _LEAST_TOLERANCE <= search.tolerance <= _MOST_TOLERANCE,
            f"--tolerance must be from {_LEAST_TOLERANCE:.1%} to {_MOST_TOLERANCE:.0%}",
        ),
        (
            search.max_per_s is not None and not _LEAST_MAX_PER_S <= search.max_per_s <= MOST_PER_S,
            f"--max-rate must be from {_LEAST_MAX_PER_S:g} to {MOST_PER_S:,} a second",
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
# At any rate.
_LEAST_REQUESTS = 20

Measure = Callable[[Job, int], TaskResult]
"""Runs one task on the running node, with this seed."""


@dataclass(frozen=True)
class RedlineResult:
    """The result of a search on one node.

    Attributes:
        curve: its steps.
        summary: computes the figures of the fork; slow, so to be called when the node is gone.
    """

    curve: tuple[CurvePoint, ...]
    summary: Callable[[], TaskSummary]


def search_redline(plan: Plan, track: Track, block: int, measure: Measure) -> RedlineResult:
    """Search for the red-line of a plan on a fresh node.

    Variants of a block get the same arrivals and the same grid of rates.

    Raises:
        BenchctlError: the plan has no search, or the node failed.
    """
    if plan.redline is None:
        raise BenchctlError("this plan searches for no red-line")
    return _NodeSearch(plan, plan.redline, track, block, measure).run()


class _NodeSearch:
    def __init__(self, plan: Plan, spec: RedlineSpec, track: Track, block: int, measure: Measure) -> None:
        self._spec = spec
        self._task = plan.schedules[0].schedule[0]
        self._operation = track.operations[spec.operation]
        self._measure = measure
        self._seed = f"{plan.seed}/{block}"
        shift = random.Random(f"{self._seed}/shift").random()  # noqa: S311 - reproducible, not secret
        self._ladder = Ladder(1 + spec.tolerance, shift)
        self._curve: list[CurvePoint] = []
        self._results: list[tuple[Job, TaskResult]] = []

    def run(self) -> RedlineResult:
        job, result = self._run(_warm_up(self._task, self._spec), position=0, measured=False)
        capacity = capacity_per_s(result.columns)
        if result.unsupported is not None or capacity is None:
            return RedlineResult((), lambda: _unsearched(job, result))
        spec = self._spec
        found = Search(
            self._attempt,
            least=LEAST_RUNG,
            most=None if spec.max_per_s is None else self._ladder.at_most(spec.max_per_s),
            leap=self._ladder.rungs(_LEAP),
        ).run(self._ladder.at_most(_FIRST_SHARE * capacity))
        curve = tuple(self._curve)
        decisive = self._decisive(found)
        return RedlineResult(curve, lambda: self._found_summary(found, decisive))

    def _attempt(self, rung: int, phase: Phase) -> StepVerdict:
        rate_per_s = self._ladder.rate_per_s(rung)
        task = _step(self._task, self._spec, rate_per_s)
        step = len(self._curve) + 1
        job, result = self._run(task, position=step, measured=True)
        period_ns = round((task.time_period or 0.0) * NS_PER_S)
        point = judge_step(result.columns, Offer(step, rung, phase, rate_per_s, period_ns), self._spec)
        self._curve.append(point)
        self._results.append((job, result))
        return point.verdict

    def _run(self, task: Task, *, position: int, measured: bool) -> tuple[Job, TaskResult]:
        job = Job(task, self._operation, 0, position, measured=measured)
        return job, self._measure(job, zlib.crc32(f"{self._seed}/{position}".encode()))

    def _decisive(self, found: Found) -> int:
        """The step that supplies the fork's figures: the last at the rate found, or the one that decided."""
        rung = found.at if found.rung is None else found.rung
        return max(place for place, point in enumerate(self._curve) if point.rung == rung)

    def _found_summary(self, found: Found, decisive: int) -> TaskSummary:
        failures: dict[str, int] = {}
        summaries = [_summary(job, result) for job, result in self._results]
        for summary in summaries:
            for name, count in summary.failures.items():
                failures[name] = failures.get(name, 0) + count
        rate = None if found.rung is None else self._ladder.rate_per_s(found.rung)
        return msgspec.structs.replace(
            summaries[decisive],
            failures=failures,
            failure_reasons=tuple(dict.fromkeys(one for each in summaries for one in each.failure_reasons)),
            # Five seconds at the limit tell nothing about settling or groups of forks.
            drift=None,
            course=None,
            sd_ns=None,
            redline_per_s=rate,
            redline_end=found.end,
            redline_text=self._words(found, decisive),
        )

    def _words(self, found: Found, decisive: int) -> str:
        at = f"{self._ladder.rate_per_s(found.at):.4g}/s"
        match found.end:
            case "max-rate":
                return f"the objective is met at {at}, the highest rate to be tried"
            case "driver-limited":
                return f"driver-limited at {at}"
            case "missed":
                return f"{self._curve[decisive].reason} even at {at}"
            case "unsettled":
                return f"not settled after {MOST_STEPS} steps"
            case "found":
                return ""


def capacity_per_s(columns: Columns) -> float | None:
    """Completions per second in the second half of a closed loop's samples, shape (n,); None for none."""
    ok = (columns["outcome"] == Outcome.OK) & (columns["part"] == 0)
    ends = columns["end_ns"][ok]
    if ends.size == 0:
        return None
    starts_ns, last_ns = int(columns["start_ns"].min()), int(ends.max())
    middle_ns = (starts_ns + last_ns) // 2
    return int((ends > middle_ns).sum()) * NS_PER_S / max(last_ns - middle_ns, 1)


def _warm_up(task: Task, spec: RedlineSpec) -> Task:
    """A closed loop of few clients."""
    clients = min(spec.clients, WARM_UP_CLIENTS)
    return msgspec.structs.replace(
        task, clients=clients, time_period=spec.warm_up_s, warmup_time_period=None, schedule="deterministic"
    )


def _step(task: Task, spec: RedlineSpec, rate_per_s: float) -> Task:
    """An open loop at one rate, long enough for some requests."""
    return msgspec.structs.replace(
        task,
        target_throughput=rate_per_s,
        warmup_time_period=spec.settle_s,
        time_period=max(spec.step_s, _LEAST_REQUESTS / rate_per_s),
    )


def _unsearched(job: Job, result: TaskResult) -> TaskSummary:
    """The figures of a warm-up after which no search was possible."""
    summary = _summary(job, result)
    if result.unsupported is not None:
        return summary
    reason = ": ".join(["no request of the warm-up was answered", *summary.failure_reasons[:1]])
    # Warm-up, which figures exclude; but here there is nothing else.
    failures = {failure.outcome.name.lower(): failure.count for failure in result.failures}
    return msgspec.structs.replace(summary, failures=failures, redline_end="missed", redline_text=reason)


def _summary(job: Job, result: TaskResult) -> TaskSummary:
    """The figures of a step, at the operation's position in the plan."""
    summary = summarise(
        result.samples,
        schedule=job.schedule,
        task_index=job.position,
        task=job.task,
        unsupported=result.unsupported,
    )
    reasons = tuple(detail for failure in result.failures for detail in failure.details)
    return msgspec.structs.replace(summary, task=0, unit=job.operation.unit, failure_reasons=reasons)
