"""The tasks of one node start: warm-ups, then step by step, and what they come to: times and costs."""

import math
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from types import MappingProxyType

import msgspec
import numpy as np

from benchctl.engine.client import WRITE_CLOCKS
from benchctl.engine.process import GcPause, Reading, cpu_of
from benchctl.errors import BenchctlError
from benchctl.home import Home
from benchctl.load.client import NodeGone
from benchctl.load.executor import Job, Stage, TaskResult, WorkerPool, lanes_of, run_step
from benchctl.load.transport import open_client
from benchctl.load.turns import ALONE, Member
from benchctl.results.figures import DOCUMENTS, DriverFigures, HostFigures, TaskSummary
from benchctl.results.model import SegmentFacts
from benchctl.results.plan import Plan, Step, VariantSpec
from benchctl.results.samples import Outcome, SampleSpool
from benchctl.run.bench import SharedObserver
from benchctl.run.prepare import NODE_DEATH_S
from benchctl.run.session import Serving
from benchctl.run.work import check_prepared, tasks_before_searches, work_context
from benchctl.stats.disturbed import LARGE_SHARE
from benchctl.track.model import Challenge, Task, Track
from benchctl.track.operations import Asking
from benchctl.track.operations.search import Bulk, BulkVectors

# Schedule number of warm-up challenges' samples: kept, but never part of a figure.
WARMUP_SCHEDULE = -1
_FORCE_MERGE = "force-merge"

# Two busy CPUs may keep a thread waiting for a quarter of a second.
_LEAST_STOP_S = 0.5


_NS_PER_MS = 1e6
_BYTES_PER_MB = 1e6
# Of which half a millisecond, by which took is off, is 5%.
_LEAST_TOOK_NS = 10_000_000


@dataclass(frozen=True)
class EndedNode:
    """Facts about a node that has ended."""

    searching: Collection[int] | None  # threads, by their numbers in the kernel; None if it was not asked
    # Of the collector, on the clock of the samples; None without a log of them.
    pauses: Sequence[GcPause] | None


@dataclass(frozen=True)
class MeasuredTask:
    """A measured task that has finished."""

    job: Job
    result: TaskResult
    gap_s: float  # from the end of the step before, or the node's being ready, to the start
    # Before the first measured request and after the last, or around each turn; none if it ran beside others.
    readings: tuple[Reading | None, ...] = ()
    # Milliseconds that nodes spent on writing; empty if they were not asked.
    written: Mapping[str, float] = field(default_factory=dict)

    @property
    def indexes(self) -> bool:
        """True if the task counts documents."""
        return (self.result.unit or self.job.operation.unit) == DOCUMENTS


@dataclass
class Load:
    """The load of one node start."""

    # When the previous step ended, or the node was ready.
    free_ns: int = field(default_factory=time.monotonic_ns)
    outcomes: list[MeasuredTask] = field(default_factory=list)
    warmed: set[str] = field(default_factory=set)  # operations of its warm-up challenges
    # How much of the warm-up that operations are known to need they need here, 0 to 1.
    needed_share: float = 1.0
    searches: int = 0  # sent, warm-up included
    requests_s: float = 0.0
    read: Callable[[], Reading | None] | None = None
    member: Member = ALONE

    def summaries(
        self, origin_ns: int, node: EndedNode | None, index: Mapping[str, float] = MappingProxyType({})
    ) -> tuple[TaskSummary, ...]:
        """The figures of the measured tasks; made when the node is gone, so that none costs it time.

        Args:
            origin_ns: what the samples count from, on the monotonic clock.
            node: what is known of it.
            index: figures of what they had indexed then; empty where that is not known.
        """
        summaries = [_summary(outcome, _still(outcome.job, self.outcomes)) for outcome in self.outcomes]
        indexing = [place for place, one in enumerate(self.outcomes) if one.indexes]
        # The index is that of the last task which filled it, whatever was done with it behind that.
        left = dict(index) | _merged(self.outcomes, summaries)
        alone = len({outcome.job.operation.name for outcome in self.outcomes}) == 1
        found = []
        sent: Counter[str] = Counter()
        for place, (one, summary) in enumerate(zip(self.outcomes, summaries, strict=True)):
            operation = one.job.operation
            before = sent[operation.name] + summary.warmup_samples
            sent[operation.name] = before + summary.samples
            needed = 0 if operation.name in self.warmed else operation.settles_after(0, alone=alone)
            lacking = math.ceil(needed * self.needed_share) - before
            figures = meters(one.readings, one.result, origin_ns, node, one.written) | (
                left if place in indexing[-1:] else {}
            )
            found.append(
                msgspec.structs.replace(
                    summary,
                    meters=figures,
                    lacking_warmup=max(lacking, 0),
                )
            )
        return tuple(found)


class StepRunner:
    """Runs the steps of a plan's schedules on a node.

    Setting `stop` ends a step early; `workers` are the processes of its clients, None for this one;
    `left_out` are operations that no warm-up runs.
    """

    def __init__(
        self,
        plan: Plan,
        track: Track,
        home: Home,
        observer: SharedObserver,
        stop: threading.Event,
        workers: WorkerPool | None = None,
        *,
        left_out: frozenset[str] = frozenset(),
    ) -> None:
        self._plan = plan
        self._track = track
        self._home = home
        self._observer = observer
        self._stop = stop
        self._workers = workers
        self._left_out = left_out
        self._before_searches = tasks_before_searches(plan, track)

    def stage(
        self, serving: Serving, variant: VariantSpec, boot: int, origin_ns: int, spool: SampleSpool
    ) -> Stage:
        """The stage for one node start of a fork; `origin_ns` is the fork's on the monotonic clock."""
        context = work_context(self._plan, self._track, self._home, variant, origin_ns, serving.version)
        return Stage(
            open_wire=partial(open_client, serving.endpoint),
            context=context,
            origin_ns=origin_ns,
            boot=boot,
            spool=spool,
            abort_on_failure=self._plan.on_error == "abort",
        )

    def run(self, serving: Serving, steps: Sequence[Step], stage: Stage, load: Load, *, variant: str) -> None:
        """Run the warm-up challenges, the variant's own first, then these steps.

        Raises:
            BenchctlError: If the node fails, or a request does and that ends the run.
        """
        clock = time.monotonic()
        load.free_ns = time.monotonic_ns()
        schedules = self._plan.schedules
        numbers = sorted({s[0][0] for s in steps})
        warmups = self._plan.warmups_of(variant, numbers[0])
        measured = [schedules[number] for number in numbers]
        for challenge in (*warmups, *measured):
            if challenge.cluster_settings:
                serving.client.put_cluster_settings(challenge.cluster_settings)
        for challenge in warmups:
            for together in challenge.steps:
                jobs = [self._job(WARMUP_SCHEDULE, place, challenge.schedule[place]) for place in together]
                jobs = [job for job in jobs if job.operation.name not in self._left_out]
                if jobs:
                    self.run_step(serving, jobs, _stage_of(challenge, stage), load)
        for step in steps:
            tasks = [(number, place, schedules[number].schedule[place]) for number, place in step]
            own_stage = _stage_of(schedules[step[0][0]], stage)
            self.run_step(serving, [self._job(*task) for task in tasks], own_stage, load)
        load.requests_s += time.monotonic() - clock

    def run_step(
        self, serving: Serving, jobs: Sequence[Job], stage: Stage, load: Load
    ) -> tuple[TaskResult, ...]:
        """Run tasks concurrently; measured ones go into `load`.

        Raises:
            BenchctlError: If the node fails, or a request does and that ends the run; if the node refuses
                what the challenge needs for its data; if benchctl itself stood still for much of a task.
        """
        label = ", ".join(job.task.label for job in jobs)
        # Of a search, whose steps may take minutes on a slow node, every one is the same task.
        step = f"step {jobs[0].position}: " if self._plan.redline is not None else ""
        if load.member.leads:
            self._observer.stage(f"{step}{label}" if jobs[0].measured else f"warm-up: {label}")
        expected = requests_of(jobs)
        bounds = _Bounds(load.read)
        writes = any(isinstance(job.operation, Bulk | BulkVectors) for job in jobs)
        before = _write_clocks(serving, load) if writes and len(jobs) == 1 else {}

        def on_progress(done: int) -> None:
            self._observer.check()
            if load.member.leads:
                self._observer.progress("requests", done, expected)
            serving.glance()

        tasks = [job.task for job in jobs]
        try:
            with load.member.step(
                tasks, len(lanes_of(tasks)), measured=jobs[0].measured, mark=bounds.read_node
            ) as turns:
                results = run_step(
                    jobs,
                    replace(stage, turns=turns),
                    stop=self._stop,
                    workers=self._workers,
                    on_progress=on_progress,
                    mark=bounds.read_node if turns is None else None,
                )
        except NodeGone as err:
            # The process tells more than the connection about why it is gone.
            serving.check_alive(within_s=NODE_DEATH_S)
            raise BenchctlError(f"the node stopped answering in task {label}: {err.message}") from err
        serving.glance()
        written = _spent(before, _write_clocks(serving, load)) if before else {}
        readings = tuple(bounds.readings)
        for job, result in zip(jobs, results, strict=True):
            if result.stops and job.measured and not self._plan.test_mode:
                _refuse_stops(job, _driver(job, result))
            for failure in result.failures:
                said = f": {failure.details[0]}" if failure.details else ""
                kind = failure.outcome.name.lower()
                self._observer.note(f"{job.task.label}: {failure.count:,} x {kind}{said}")
            load.searches += result.searches_sent
            if job.measured:
                gap_s = max(result.start_ns - load.free_ns, 0) / 1e9
                load.outcomes.append(MeasuredTask(job, result, gap_s, readings, written))
            else:
                load.warmed.add(job.operation.name)
        made = [body.get("settings", {}) for body in stage.context.indices.values()]
        settings = (pair for spec in self._plan.variants for pair in spec.index_settings.items())
        given = {name: value for name, value in settings if any(one.get(name) == value for one in made)}
        for job, result in zip(jobs, results, strict=True):
            place = (job.schedule, job.position)
            searched = job.schedule == WARMUP_SCHEDULE or place in self._before_searches
            check_prepared(job, result, given, searched=searched)
        load.free_ns = max(result.ended_ns for result in results)
        return results

    def _job(self, schedule: int, position: int, task: Task) -> Job:
        operation = self._track.operations[task.operation]
        return Job(task, operation, schedule, position, measured=schedule != WARMUP_SCHEDULE)


def _spent(before: Mapping[str, float], after: Mapping[str, float]) -> dict[str, float]:
    """Milliseconds between two readings; nothing where a node has gone, or counts from 0 again."""
    spent = {name.removesuffix("_ms"): after[name] - before[name] for name in after.keys() & before.keys()}
    return spent if all(value >= 0 for value in spent.values()) else {}


def _merged(outcomes: Sequence[MeasuredTask], summaries: Sequence[TaskSummary]) -> dict[str, float]:
    """Return what a challenge's own force-merges took."""
    spent_ns = [
        summary.mean_ns * summary.samples
        for one, summary in zip(outcomes, summaries, strict=True)
        if one.job.operation.type_name == _FORCE_MERGE and summary.mean_ns
    ]
    return {"force_merge": sum(spent_ns) / 1e9} if spent_ns else {}


@dataclass
class _Bounds:
    """Readings where a task begins to be measured and where it ends."""

    read: Callable[[], Reading | None] | None
    readings: list[Reading | None] = field(default_factory=list)

    def read_node(self) -> None:
        """Read a node of benchctl's own."""
        self.readings.append(None if self.read is None else self.read())


def _write_clocks(serving: Serving, load: Load) -> Mapping[str, float]:
    return {} if load.read is None else serving.client.statistics(*WRITE_CLOCKS)


def _stage_of(challenge: Challenge, stage: Stage) -> Stage:
    """The stage for tasks of a challenge, which the track's plug-in may look at."""
    plugin = stage.context.plugin
    if plugin is None:
        return stage
    return replace(stage, context=replace(stage.context, plugin=replace(plugin, challenge=challenge)))


def _still(job: Job, outcomes: Iterable[MeasuredTask]) -> bool:
    """True if a task's requests are identical, and no parallel task is meant to change documents."""
    beside = [
        outcome.job.operation
        for outcome in outcomes
        if job.task.group is not None
        and (outcome.job.schedule, outcome.job.task.group) == (job.schedule, job.task.group)
    ]
    return job.operation.constant and all(isinstance(operation, Asking) for operation in beside)


def _summary(outcome: MeasuredTask, still: bool) -> TaskSummary:  # noqa: FBT001 - of one call
    # Imported when the first node is gone: nothing needs statistics before.
    from benchctl.stats.summary import summarise, took_quantiles  # noqa: PLC0415 - see above

    job, result = outcome.job, outcome.result
    summary = summarise(
        result.samples,
        schedule=job.schedule,
        task_index=job.position,
        task=job.task,
        unsupported=result.unsupported,
        constant=still,
    )
    took_sum, *took_parts = took_quantiles(result.tooks, summary.unanswered) or (None,)
    return msgspec.structs.replace(
        summary,
        hosts=tuple(host_figures(job, result, part) for part in result.hosts if _clients(part)),
        took_sum=took_sum,
        took_parts=tuple(took_parts),
        unit=result.unit or job.operation.unit,
        reported=job.operation.reported,
        failure_reasons=tuple(detail for failure in result.failures for detail in failure.details),
        driver=msgspec.structs.replace(_driver(job, result), gap_s=outcome.gap_s),
    )


def host_figures(job: Job, result: TaskResult, part: TaskResult) -> HostFigures:
    """Return the figures of one of several hosts of a task."""
    from benchctl.stats.summary import driver_figures, start_late_ns  # noqa: PLC0415 - as in `_summary`

    clients = len(_clients(part))
    figures = driver_figures(
        part.samples,
        job.task,
        cpu_s=part.driver_cpu_s,
        wall_s=result.wall_s,
        workers=part.processes,
        share=clients / job.task.clients,
    )
    return HostFigures(
        name=part.host.name,
        clients=clients,
        clock_offset_ns=part.host.offset_ns,
        clock_error_ns=part.host.error_ns,
        start_late_ns=start_late_ns(part.samples, job.task, part.start_ns),
        driver=figures,
    )


def _clients(part: TaskResult) -> set[int]:
    return {int(client) for chunk in part.samples for client in np.unique(chunk["client"])}


def _driver(job: Job, result: TaskResult) -> DriverFigures:
    from benchctl.stats.summary import driver_figures  # noqa: PLC0415 - as in `_summary`

    figures = driver_figures(
        result.samples,
        job.task,
        cpu_s=result.driver_cpu_s,
        wall_s=result.wall_s,
        workers=result.processes,
        stops=result.stops,
    )
    return msgspec.structs.replace(figures, suspended_s=round(result.suspended_ns / 1e9, 3))


def _refuse_stops(job: Job, driver: DriverFigures) -> None:
    share = driver.stopped_s / driver.window_s if driver.window_s else 0.0
    if share >= LARGE_SHARE and driver.stopped_s >= _LEAST_STOP_S:
        raise BenchctlError(
            f"benchctl itself did not run for {driver.stopped_s:.1f} s, {100 * share:.0f}% of the measured "
            f"time of {job.task.label}, so its figures would not be the engine's: the process was stopped, "
            "or the machine had no CPU for it"
        )


def requests_of(jobs: Sequence[Job]) -> int:
    """Requests that tasks will send, warm-up included; 0 when time or the corpus ends one of them."""
    tasks = [job.task for job in jobs]
    if any(task.time_period is not None or task.warmup_time_period is not None for task in tasks):
        return 0
    if any(job.operation.ends and job.task.iterations is None for job in jobs):
        return 0
    return sum(task.clients * ((task.iterations or 1) + (task.warmup_iterations or 0)) for task in tasks)


# The cost of a task on its nodes, from readings at its bounds and the GC log.


def meters(
    readings: Sequence[Reading | None],
    result: TaskResult,
    origin_ns: int,
    node: EndedNode | None,
    written: Mapping[str, float],
) -> dict[str, float]:
    """Return what a task cost its node.

    Args:
        readings: of the node, before the first measured request and after the last one, or at both ends of
            every turn; empty for a task that ran beside others.
        result: of the task.
        origin_ns: what samples and pauses count from, on the clock of the readings.
        node: that was read; None for a running cluster.
        written: name of a figure -> milliseconds over the whole task.

    Returns:
        The metered values that are known, by metric.
    """
    spans = [
        (begin, end)
        for begin, end in zip(readings[::2], readings[1::2], strict=False)
        if begin is not None and end is not None
    ]
    since_ns = spans[0][0].at_ns - origin_ns if spans else 0
    sent = measured = answered = timed = took_ns = service_ns = 0
    for chunk in result.samples:
        whole = chunk["part"] == 0
        done = whole & ~chunk["warmup"] & (chunk["outcome"] == Outcome.OK)
        sent += int(whole.sum())
        # In turns, what came before them is warm-up alone.
        within = chunk["turn"] > 0 if result.turns else chunk["start_ns"] >= since_ns
        measured += int((whole & within).sum())
        answered += int(done.sum())
        known = done & (chunk["took_ms"] >= 0)
        timed += int(known.sum())
        took_ns += int(chunk["took_ms"][known].sum()) * round(_NS_PER_MS)
        service_ns += int((chunk["end_ns"] - chunk["start_ns"])[known].sum())
    found: dict[str, float] = {}
    if timed:
        found["engine_time"] = took_ns / _NS_PER_MS / timed
    # Whole milliseconds say nothing about what is left of quicker answers.
    if timed and took_ns >= timed * _LEAST_TOOK_NS and service_ns >= took_ns:
        found["client_time"] = (service_ns - took_ns) / _NS_PER_MS / timed
    if result.tooks and service_ns >= timed * _LEAST_TOOK_NS:
        summed_ms = sum(took_ms * times for took_ms, times in result.tooks[0].items())
        found["parallelism"] = summed_ms * _NS_PER_MS / service_ns
    if answered:
        found |= {f"profile_{kind}": ns / _NS_PER_MS / answered for kind, ns in result.profile_ns.items()}
    recall, judged = result.recall
    if judged:
        found["recall"] = recall / judged
    if readings and sent:
        found |= {name: spent / sent for name, spent in written.items()}
    # What several clients sent as a warm-up while another one was measured already cost the node as much.
    if measured and node is not None and spans and 2 * len(spans) == len(readings):
        found |= {name: total / measured for name, total in _totals(spans, origin_ns, node).items()}
    return found


def index_meters(segments: Sequence[SegmentFacts]) -> dict[str, float]:
    """Return the metrics of an index that a challenge has filled, of all its shards; none where unknown."""
    size = sum(segment.size_bytes for segment in segments)
    return {"index_size": size / _BYTES_PER_MB} if segments else {}


def _totals(spans: Sequence[tuple[Reading, Reading]], origin_ns: int, node: EndedNode) -> dict[str, float]:
    found = {"cpu": sum(end.cpu_ns - begin.cpu_ns for begin, end in spans) / _NS_PER_MS}
    if node.searching is not None:
        searching = node.searching
        found["cpu_search"] = sum(cpu_of(begin, end, searching) for begin, end in spans) / _NS_PER_MS
    if node.pauses is not None:
        windows = [(begin.at_ns - origin_ns, end.at_ns - origin_ns) for begin, end in spans]
        paused_ns = sum(_within(_span(pause), window) for pause in node.pauses for window in windows)
        found["gc"] = paused_ns / _NS_PER_MS
    return found


def _span(pause: GcPause) -> tuple[int, int]:
    return pause.start_ns, pause.start_ns + pause.pause_ns


def _within(span: tuple[int, int], window: tuple[int, int]) -> int:
    return max(min(span[1], window[1]) - max(span[0], window[0]), 0)
