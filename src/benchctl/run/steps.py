"""The tasks of one node start: their context, warm-ups, then step by step."""

import math
import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from functools import partial
from types import MappingProxyType
from typing import Any

import msgspec
import numpy as np

from benchctl.engine.client import WRITE_CLOCKS, totals
from benchctl.engine.declared import EVERYTHING, OWN, Places, places, refusal, with_settings
from benchctl.engine.readings import ClusterMeter, ClusterReading
from benchctl.errors import BenchctlError, UsageError
from benchctl.home import Home
from benchctl.load.client import NodeGone
from benchctl.load.driver_overhead import driver_figures, start_late_ns
from benchctl.load.executor import WorkerPool, run_step
from benchctl.load.task_clients import HostPart, Job, Stage, TaskResult
from benchctl.load.transport import open_client
from benchctl.load.work.programs import open_workload
from benchctl.load.workload import WorkContext
from benchctl.report.numbers import counted
from benchctl.results.figures import DOCUMENTS, DriverFigures, HostFigures, TaskSummary
from benchctl.results.plan import Plan, VariantSpec
from benchctl.results.samples import Outcome, SampleSpool
from benchctl.run.bench import Observer
from benchctl.run.building import NODE_DEATH_S
from benchctl.run.checks import acting
from benchctl.run.documents import GeneratedReader, is_bulk, is_generated, sources
from benchctl.run.metering import Node, Readings, meters, sent_per_s, told
from benchctl.run.order import Step
from benchctl.run.plugin import plugin_use
from benchctl.run.session import Serving
from benchctl.stats.disturbed import LARGE_SHARE
from benchctl.track.model import Challenge, Task, Track, TrackOperation
from benchctl.track.operations.admin import CreateDataStream, CreateIndex, CreateTemplate
from benchctl.track.operations.catalogue import OPERATION_TYPES, PluginOperation
from benchctl.track.operations.common import Asking
from benchctl.track.operations.search import Bulk, RawRequest


def work_context(
    plan: Plan, track: Track, home: Home, variant: VariantSpec, session: int = 0, version: str = ""
) -> WorkContext:
    """The context of a plan's tasks.

    Operations that name no index mean the only index or data stream, as in Rally. Of several they mean all:
    by name
    if those certainly exist, else whatever the challenge has created by then. Tasks of the same `session`
    share the
    state of the plug-in's modules; `version` is the engine's, empty while no node is up.
    """
    plan = plan.of(variant)
    declared = with_settings(Places(track.indices, ()), variant.index_settings)
    bodies = {index.name: msgspec.to_builtins(index.body) for index in declared.indices}
    return WorkContext(
        index_name=default_target(plan, track),
        index_body=next(iter(bodies.values())) if len(bodies) == 1 else {},
        indices=bodies,
        mark={} if variant.target is None else OWN,
        data_streams=track.data_streams,
        templates=track.templates,
        seed=plan.seed,
        documents=GeneratedReader(home, plan.corpus) if is_generated(plan) else None,
        document_count=plan.corpus.documents,
        sources=sources(plan, track, home),
        engine=variant.engine,
        assertions=plan.assertions,
        plugin=plugin_use(plan, track, session),
        version=version,
    )


def default_target(plan: Plan, track: Track) -> str:
    """The target of operations that name no index, as a path component."""
    wanted = places(track, plan.corpus.files)
    return wanted.target if plan.origin == "prepared" or len(wanted.names) == 1 else EVERYTHING


def check_work(plan: Plan, track: Track, home: Home) -> None:
    """Prepare every task's work once, without a node, to find out what is missing.

    Raises:
        UsageError: If something that an operation needs is missing.
    """
    context = work_context(plan, track, home, plan.variants[0])
    for challenge in (*plan.all_warmups, *plan.schedules):
        operations = {**track.operations, **challenge.operations}
        for task in challenge.schedule:
            operation = operations[task.operation]
            if isinstance(operation, PluginOperation):
                # Its code may do anything when it is opened; it was checked when it was allowed.
                continue
            try:
                open_workload(operation, context, clients=task.clients, key=task.label).close()
            except BenchctlError as err:
                raise UsageError(f"challenge '{challenge.name}', {err.message}", hint=err.hint) from err


# Schedule number of warm-up challenges' samples: kept, but never part of a figure.
WARMUP_SCHEDULE = -1

# Two busy CPUs may keep a thread waiting for a quarter of a second.
_LEAST_STOP_S = 0.5


_RESTORE = "restore-snapshot"
_FORCE_MERGE = "force-merge"
# All other PUT requests configure something.
_OF_DOCUMENTS = re.compile(r"/_(doc|create|bulk)\b")


def check_prepared(job: Job, result: TaskResult, given: Mapping[str, Any], *, searched: bool) -> None:
    """Fail if a task could not make or change what later tasks work on: their figures would be of other work.

    Args:
        job: the task.
        result: its outcome.
        given: the variant's index settings.
        searched: whether later tasks search the documents that this one sends.

    Raises:
        BenchctlError: If it failed, in the node's words; except for tasks whose failures are not fatal.
    """
    if not result.failures or job.task.ignore_response_error_level == "non-fatal":
        return
    count = sum(failure.count for failure in result.failures)
    reason = next((detail for failure in result.failures for detail in failure.details), "no reason given")
    operation = job.operation
    if is_bulk(operation):
        if searched:
            raise BenchctlError(
                f"task {job.task.label}: {counted(count, 'request')} failed, so later tasks would search "
                f"other documents: {reason}",
                hint=_COUNTED_INSTEAD,
            )
        return
    # Succeeding after retries is not a failure; part 0 is the operation itself.
    if any(((chunk["outcome"] == Outcome.OK) & (chunk["part"] == 0)).any() for chunk in result.samples):
        return
    # A plug-in's operations are known by the names of their types alone.
    kind = OPERATION_TYPES.get(operation.type_name, PluginOperation)
    if issubclass(kind, CreateIndex | CreateDataStream | CreateTemplate) or operation.type_name == _RESTORE:
        raise refusal(f"what task {job.task.label} makes", reason, given)
    # What the node lacks altogether is n/a.
    if result.unsupported is None and _configures(operation, kind):
        raise BenchctlError(
            f"task {job.task.label} failed, which later tasks depend on: {reason}", hint=_COUNTED_INSTEAD
        )


_COUNTED_INSTEAD = (
    "correct the track, or leave the task out with --exclude-tasks; a task with "
    '"ignore-response-error-level": "non-fatal" has its failures counted instead'
)


def _configures(operation: TrackOperation, kind: type[TrackOperation]) -> bool:
    """Return whether an operation changes what others find, rather than being what is measured."""
    if isinstance(operation, RawRequest):
        hidden = operation.include_in_reporting is False and operation.method not in {"GET", "HEAD"}
        return hidden or (operation.method == "PUT" and not _OF_DOCUMENTS.search(operation.path))
    return kind is not PluginOperation and not (kind.shown or kind.reads)


def tasks_before_searches(plan: Plan, track: Track) -> frozenset[tuple[int, int]]:
    """Return (schedule, task) of all tasks before the last step in which more than indexing is measured."""
    found: set[tuple[int, int]] = set()
    is_followed = False
    # A search for a red-line repeats its tasks.
    schedules = plan.schedules if plan.redline is None else ()
    for number, challenge in reversed(list(enumerate(schedules))):
        for step in reversed(challenge.steps):
            if is_followed:
                found.update((number, place) for place in step)
            operations = [track.operations[challenge.schedule[place].operation] for place in step]
            is_followed = is_followed or any(
                operation.reported and not is_bulk(operation) for operation in operations
            )
    return frozenset(found)


@dataclass(frozen=True)
class MeasuredTask:
    """A measured task that has finished."""

    job: Job
    result: TaskResult
    gap_s: float  # from the end of the step before, or the node's being ready, to the start
    # Before the first measured request and after the last; none if it ran beside others.
    readings: tuple[Readings, ...] = ()
    # Milliseconds that nodes spent on writing; empty if they were not asked.
    written: Mapping[str, float] = field(default_factory=dict)
    told: tuple[ClusterReading | None, ...] = ()  # by a running cluster, at the times of `readings`

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
    # How much of the warm-up that operations need on a small corpus they need here, 0 to 1.
    needed_share: float = 1.0
    searches: int = 0  # sent, warm-up included
    requests_s: float = 0.0
    # Set while a step that indexes is running, for whoever watches the node.
    indexing: threading.Event = field(default_factory=threading.Event)
    read: Callable[[], Readings] | None = None
    fates: int = 0  # how many of what became of nodes were reported
    asking: ClusterMeter | None = None

    def summaries(
        self, origin_ns: int, nodes: Sequence[Node], index: Mapping[str, float] = MappingProxyType({})
    ) -> tuple[TaskSummary, ...]:
        """The figures of the measured tasks; made when the nodes are gone, so that none costs them time.

        Args:
            origin_ns: what the samples count from, on the monotonic clock.
            nodes: what is known of them; what they were asked when the last task was over is that task's.
            index: figures of what they had indexed then; empty where that is not known.
        """
        earlier = [replace(node, direct_bytes=None) for node in nodes]
        summaries = [_summary(outcome, _still(outcome.job, self.outcomes)) for outcome in self.outcomes]
        indexing = [place for place, one in enumerate(self.outcomes) if one.indexes]
        # The index is that of the last task which filled it, whatever was done with it behind that.
        left = dict(index) | _merged(self.outcomes, summaries)
        found = []
        sent: Counter[str] = Counter()
        for place, (one, summary) in enumerate(zip(self.outcomes, summaries, strict=True)):
            operation = one.job.operation
            before = sent[operation.name] + summary.warmup_samples
            sent[operation.name] = before + summary.samples
            needed = 0 if operation.name in self.warmed else operation.settles_after or 0
            lacking = math.ceil(needed * self.needed_share) - before
            known = nodes if place == len(summaries) - 1 else earlier
            metered = meters(one.readings, one.result, origin_ns, known, one.written)
            figures = (
                metered.figures
                | told(one.told, one.result, origin_ns, one.gap_s)
                | sent_per_s(summary, one.result.sent_bytes)
                | (left if place in indexing[-1:] else {})
            )
            found.append(
                msgspec.structs.replace(
                    summary,
                    meters=figures,
                    node_meters=metered.parts,
                    lacking_warmup=max(lacking, 0),
                )
            )
        return tuple(found)


class StepRunner:
    """Runs the steps of a plan's schedules on a node.

    Setting `stop` ends a step early; `workers` are the processes of its clients, None for this one.
    """

    def __init__(
        self,
        plan: Plan,
        track: Track,
        home: Home,
        observer: Observer,
        stop: threading.Event,
        workers: WorkerPool | None = None,
    ) -> None:
        self._plan = plan
        self._track = track
        self._home = home
        self._observer = observer
        self._stop = stop
        self._workers = workers
        self._before_searches = tasks_before_searches(plan, track)

    def stage(
        self, serving: Serving, variant: VariantSpec, boot: int, origin_ns: int, spool: SampleSpool
    ) -> Stage:
        """The stage for one node start of a fork; `origin_ns` is the fork's on the monotonic clock."""
        context = work_context(self._plan, self._track, self._home, variant, origin_ns, serving.version)
        if acting(self._track, (*self._plan.all_warmups, *self._plan.schedules)):
            # Only where it is needed: it could not be sent to workers.
            context = replace(context, act=serving.act)
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
        warmups = self._plan.warmups_of(variant)
        measured = [schedules[number] for number in sorted({s[0][0] for s in steps})]
        for challenge in (*warmups, *measured):
            if challenge.cluster_settings:
                serving.client.put_cluster_settings(challenge.cluster_settings)
        for challenge in warmups:
            for together in challenge.steps:
                tasks = [(WARMUP_SCHEDULE, place, challenge.schedule[place]) for place in together]
                self.run_step(serving, [self._job(*task) for task in tasks], _within(challenge, stage), load)
        for step in steps:
            tasks = [(number, place, schedules[number].schedule[place]) for number, place in step]
            within = _within(schedules[step[0][0]], stage)
            self.run_step(serving, [self._job(*task) for task in tasks], within, load)
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
        self._observer.stage(f"{step}{label}" if jobs[0].measured else f"warm-up: {label}")
        expected = requests_of(jobs)
        bounds = _Bounds(load.read, load.asking)
        writes = any(isinstance(job.operation, Bulk) for job in jobs)
        before = _write_clocks(serving, load) if writes and len(jobs) == 1 else {}
        if writes:
            load.indexing.set()

        def on_progress(done: int) -> None:
            self._observer.progress("requests", done, expected)
            self._glance(serving, load)

        try:
            results = run_step(
                jobs,
                stage,
                stop=self._stop,
                workers=self._workers,
                on_progress=on_progress,
                mark=bounds.mark,
            )
        except NodeGone as err:
            # The process tells more than the connection about why it is gone.
            serving.check_alive(within_s=NODE_DEATH_S)
            raise BenchctlError(f"the node stopped answering in task {label}: {err.message}") from err
        finally:
            load.indexing.clear()
        self._glance(serving, load)
        written = _spent(before, _write_clocks(serving, load)) if before else {}
        readings, answers = tuple(bounds.readings), bounds.answers()
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
                load.outcomes.append(MeasuredTask(job, result, gap_s, readings, written, answers))
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

    def _glance(self, serving: Serving, load: Load) -> None:
        """Notice, and tell, what has become of nodes."""
        serving.glance()
        for _, node, fate in serving.fates[load.fates :]:
            self._observer.note(f"{node} was {fate}")
            load.fates += 1

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

    read: Callable[[], Readings] | None
    asking: ClusterMeter | None
    readings: list[Readings] = field(default_factory=list)
    _asked: list[Future[ClusterReading | None]] = field(default_factory=list)

    def mark(self) -> None:
        """Read nodes; ask a target, whose answer the request that is due now does not wait for."""
        self.readings.append({} if self.read is None else self.read())
        if self.asking is not None:
            self._asked.append(self.asking.read())

    def answers(self) -> tuple[ClusterReading | None, ...]:
        """Return the target's readings."""
        return tuple(one.result() for one in self._asked)


def _write_clocks(serving: Serving, load: Load) -> Mapping[str, float]:
    if load.asking is not None:
        return load.asking.write_clocks()
    return {} if load.read is None else totals(serving.client.statistics(*WRITE_CLOCKS))


def _within(challenge: Challenge, stage: Stage) -> Stage:
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


def host_figures(job: Job, result: TaskResult, part: HostPart) -> HostFigures:
    """Return the figures of one of several hosts of a task."""
    clients = len(_clients(part))
    figures = driver_figures(
        part.samples,
        job.task,
        cpu_s=part.cpu_s,
        wall_s=result.wall_s,
        workers=part.processes,
        share=clients / job.task.clients,
    )
    return HostFigures(
        name=part.clock.name,
        clients=clients,
        clock_offset_ns=part.clock.offset_ns,
        clock_error_ns=part.clock.error_ns,
        start_late_ns=start_late_ns(part.samples, job.task, part.start_ns),
        driver=figures,
    )


def _clients(part: HostPart) -> set[int]:
    return {int(client) for chunk in part.samples for client in np.unique(chunk["client"])}


def _driver(job: Job, result: TaskResult) -> DriverFigures:
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
