"""Fork: fresh nodes on a private copy of the index, the steps of the schedules, their costs and evidence."""

import dataclasses
import math
import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Final, Protocol

import msgspec
import numpy as np
import zstandard

from benchctl.disk import disk_errors, open_regular
from benchctl.engine.client import WRITE_CLOCKS, SearchClient
from benchctl.engine.declared import EVERYTHING, places, stand_ins
from benchctl.engine.in_force import state_of
from benchctl.engine.node import Collector, Node, Scene
from benchctl.engine.prepared_index import prepare_page_cache, resident_share, settle
from benchctl.engine.process import GcPause, Reading, cpu_of
from benchctl.engine.settings import BootFolders
from benchctl.errors import BenchctlError
from benchctl.home import Home
from benchctl.load.client import NodeGone
from benchctl.load.executor import Job, Stage, TaskResult, WorkerPool, gathered, lanes_of, run_step
from benchctl.load.transport import open_client
from benchctl.load.turns import ALONE, Member
from benchctl.results.answers import sample_answers
from benchctl.results.figures import DOCUMENTS, CurvePoint, DriverFigures, HostFigures, TaskSummary
from benchctl.results.model import BootRecord, EngineFacts, ForkRecord, SegmentFacts
from benchctl.results.plan import Plan, Step, VariantSpec, boots
from benchctl.results.samples import Outcome, SampleSpool
from benchctl.results.store import RunFolder
from benchctl.run.bench import SharedObserver
from benchctl.run.documents import streams_made
from benchctl.run.host import look, used_by_others
from benchctl.run.plan import checked_hosts
from benchctl.run.prepare import NODE_DEATH_S, keep_folder, keep_logs, logs_kept_of_failure
from benchctl.run.session import AnySubject, NodeSubject, Serving, Start, Subject, TargetSubject
from benchctl.run.targets import only_reads
from benchctl.run.work import (
    check_prepared,
    default_target,
    own_operations,
    tasks_before_searches,
    work_context,
)
from benchctl.slices import hook
from benchctl.spec import EvidenceKind
from benchctl.stats.disturbed import LARGE_SHARE
from benchctl.track.model import Challenge, Task, Track
from benchctl.track.operations import Asking
from benchctl.track.operations.catalogue import parts_of
from benchctl.track.operations.search import AllTogether, Bulk, BulkVectors

# Schedule number of warm-up challenges' samples: kept, but never part of a figure.
WARMUP_SCHEDULE = -1
_FORCE_MERGE = "force-merge"
# Two busy CPUs may keep a thread waiting for a quarter of a second.
_LEAST_STOP_S = 0.5
_NS_PER_MS = 1e6
_BYTES_PER_MB = 1e6
# Of which half a millisecond, by which took is off, is 5%.
_LEAST_TOOK_NS = 10_000_000
# Documents: `range` alone takes as many requests to settle on 100,000, on a million and on four.
_AS_MANY_UP_TO = 4_000_000
# Shorter logs stay uncompressed, for grep.
_PACKED_FROM_BYTES = 1 << 20
_LEVEL = 3


# The tasks of one node start: warm-ups, then step by step, and what they come to.


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
    untouched: bool = True  # nothing that the fork had sent by its end may have changed documents
    one_copy: bool = True  # its shards have no replicas, which order equal hits in another way

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
    # As in `MeasuredTask`, so far.
    untouched: bool = True
    one_copy: bool = True
    read: Callable[[], Reading | None] | None = None
    readings: list[Reading | None] = field(default_factory=list)  # of the step
    member: Member = ALONE

    def mark(self) -> None:
        """Read a node of benchctl's own, where a task begins to be measured and where it ends."""
        self.readings.append(None if self.read is None else self.read())

    def summaries(
        self, origin_ns: int, node: EndedNode | None, index: Mapping[str, float] = MappingProxyType({})
    ) -> tuple[TaskSummary, ...]:
        """The figures of the measured tasks; made when the node is gone, so that none costs it time.

        Samples count from `origin_ns` on the monotonic clock; `index` are figures of what they had indexed.
        """
        summaries = [_summary(outcome, still=_still(outcome.job, self.outcomes)) for outcome in self.outcomes]
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
            figures = meters(one.readings, one.result, origin_ns, node, one.written)
            figures |= left if place in indexing[-1:] else {}
            found.append(msgspec.structs.replace(summary, meters=figures, lacking_warmup=max(lacking, 0)))
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
        self.plan: Final = plan
        self.track: Final = track
        self.home: Final = home
        self.workers: Final = workers
        self._observer = observer
        self._stop = stop
        self._left_out = left_out
        self._operations = {spec.name: own_operations(track.operations, spec) for spec in plan.variants}
        self._before_searches = tasks_before_searches(plan, track)

    def stage(
        self, serving: Serving, variant: VariantSpec, boot: int, origin_ns: int, spool: SampleSpool
    ) -> Stage:
        """The stage for one node start of a fork; `origin_ns` is the fork's on the monotonic clock."""
        context = work_context(self.plan, self.track, self.home, variant, origin_ns, serving.version)
        return Stage(
            open_wire=partial(open_client, serving.endpoint),
            context=context,
            origin_ns=origin_ns,
            boot=boot,
            spool=spool,
            abort_on_failure=self.plan.on_error == "abort",
        )

    def run(self, serving: Serving, steps: Sequence[Step], stage: Stage, load: Load, *, variant: str) -> None:
        """Run the warm-up challenges, the variant's own first, then these steps.

        Raises:
            BenchctlError: If the node fails, or a request does and that ends the run.
        """
        clock = time.monotonic()
        load.free_ns = time.monotonic_ns()
        schedules = self.plan.schedules
        numbers = sorted({s[0][0] for s in steps})
        warmups = self.plan.warmups_of(variant, numbers[0])
        measured = [schedules[number] for number in numbers]
        for challenge in (*warmups, *measured):
            if challenge.cluster_settings:
                serving.client.put_cluster_settings(challenge.cluster_settings)
        for challenge in warmups:
            for together in challenge.steps:
                jobs = [
                    self._job(variant, WARMUP_SCHEDULE, place, challenge.schedule[place])
                    for place in together
                ]
                jobs = [job for job in jobs if job.operation.name not in self._left_out]
                if jobs:
                    self.run_step(serving, jobs, _stage_of(challenge, stage), load)
        for step in steps:
            tasks = [(number, place, schedules[number].schedule[place]) for number, place in step]
            own_stage = _stage_of(schedules[step[0][0]], stage)
            self.run_step(serving, [self._job(variant, *task) for task in tasks], own_stage, load)
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
        step = f"step {jobs[0].position}: " if self.plan.redline is not None else ""
        if load.member.leads:
            self._observer.stage(f"{step}{label}" if jobs[0].measured else f"warm-up: {label}")
        expected = requests_of(jobs)
        load.readings = []
        load.untouched &= all(only_reads(job.operation) for job in jobs)
        before = _write_clocks(serving, jobs, load)

        def on_progress(done: int) -> None:
            self._observer.check()
            if load.member.leads:
                self._observer.progress("requests", done, expected)
            serving.glance()

        sent = [job for job in jobs if not isinstance(job.operation, AllTogether)]
        tasks = [job.task for job in sent]
        try:
            with load.member.step(
                tasks, len(lanes_of(tasks)), measured=jobs[0].measured, mark=load.mark
            ) as turns:
                of_sent = run_step(
                    sent,
                    replace(stage, turns=turns),
                    stop=self._stop,
                    workers=self.workers,
                    on_progress=on_progress,
                    mark=load.mark if turns is None else None,
                )
        except NodeGone as err:
            # The process tells more than the connection about why it is gone.
            serving.check_alive(within_s=NODE_DEATH_S)
            raise BenchctlError(f"the node stopped answering in task {label}: {err.message}") from err
        left = iter(of_sent)
        results = tuple(
            gathered(of_sent, job.position) if isinstance(job.operation, AllTogether) else next(left)
            for job in jobs
        )
        serving.glance()
        written = _spent(before, _write_clocks(serving, jobs, load))
        for job, result in zip(jobs, results, strict=True):
            if result.stops and job.measured and not self.plan.test_mode:
                _refuse_stops(job, _driver(job, result))
            # What a node cannot do was told when results were collected, and its row says it.
            for failure in () if result.unsupported else result.failures:
                said = f": {failure.details[0]}" if failure.details else ""
                kind = failure.outcome.name.lower()
                self._observer.note(f"{job.task.label}: {failure.count:,} x {kind}{said}")
            load.searches += result.searches_sent
            if job.measured:
                gap_s = max(result.start_ns - load.free_ns, 0) / 1e9
                readings = tuple(load.readings)
                task = MeasuredTask(job, result, gap_s, readings, written, load.untouched, load.one_copy)
                load.outcomes.append(task)
            else:
                load.warmed.add(job.operation.name)
        made = [body.get("settings", {}) for body in stage.context.indices.values()]
        given = {
            name: value
            for spec in self.plan.variants
            if all(spec.index_settings.items() <= one.items() for one in made)
            for name, value in spec.of_index.items()
        }
        for job, result in zip(jobs, results, strict=True):
            place = (job.schedule, job.position)
            searched = job.schedule == WARMUP_SCHEDULE or place in self._before_searches
            check_prepared(job, result, given, searched=searched)
        load.free_ns = max(result.ended_ns for result in results)
        return results

    def _job(self, variant: str, schedule: int, position: int, task: Task) -> Job:
        operation = self._operations[variant][task.operation]
        return Job(task, operation, schedule, position, measured=schedule != WARMUP_SCHEDULE)


def _write_clocks(serving: Serving, jobs: Sequence[Job], load: Load) -> Mapping[str, float]:
    """Return what a node has spent on writing, for a task that writes alone; else nothing."""
    writes = len(jobs) == 1 and isinstance(jobs[0].operation, Bulk | BulkVectors)
    return serving.client.statistics(*WRITE_CLOCKS) if writes and load.read is not None else {}


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


def _stage_of(challenge: Challenge, stage: Stage) -> Stage:
    """The stage for tasks of a challenge, which the track's plug-in may look at."""
    plugin = stage.context.plugin
    if plugin is None:
        return stage
    return replace(stage, context=replace(stage.context, plugin=replace(plugin, challenge=challenge)))


def _still(job: Job, outcomes: Iterable[MeasuredTask]) -> bool:
    """True if no task parallel to this one is meant to change documents."""
    beside = [
        outcome.job.operation
        for outcome in outcomes
        if job.task.group is not None
        and (outcome.job.schedule, outcome.job.task.group) == (job.schedule, job.task.group)
    ]
    parts = (part for one in beside if not isinstance(one, AllTogether) for part in parts_of(one))
    return all(isinstance(part, Asking) for part in parts)


def _summary(outcome: MeasuredTask, *, still: bool) -> TaskSummary:
    # Imported when the first node is gone: nothing needs statistics before.
    from benchctl.stats.summary import summarise, took_quantiles  # noqa: PLC0415 - see above

    job, result = outcome.job, outcome.result
    summary = summarise(
        result.samples,
        schedule=job.schedule,
        task_index=job.position,
        task=job.task,
        unsupported=result.unsupported,
        constant=still and job.operation.constant,
    )
    answers = None
    if still:
        answers = sample_answers(
            result.sample,
            constant=job.operation.constant and outcome.untouched,
            by_id=outcome.untouched and outcome.one_copy,
        )
    took_sum, *took_parts = took_quantiles(result.tooks, summary.unanswered) or (None,)
    return msgspec.structs.replace(
        summary,
        hosts=tuple(host_figures(job, result, part) for part in result.hosts if _clients(part)),
        took_sum=took_sum,
        took_parts=tuple(took_parts),
        answers=answers,
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
    """Requests that tasks will send, warm-up included; 0 when something else ends one of them."""
    tasks = [job.task for job in jobs]
    if len(tasks) > 1 and any(task.completes for task in tasks):
        return 0
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
    """Return what a task cost its node: the metered values that are known, by metric.

    Args:
        readings: of the node, before the first measured request and after the last one, or at both ends of
            every turn; empty for a task that ran beside others.
        result: of the task.
        origin_ns: what samples and pauses count from, on the clock of the readings.
        node: that was read; None for a running cluster.
        written: name of a figure -> milliseconds over the whole task.
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
        paused_ns = sum(
            max(min(pause.start_ns + pause.pause_ns, end) - max(pause.start_ns, begin), 0)
            for pause in node.pauses
            for begin, end in windows
        )
        found["gc"] = paused_ns / _NS_PER_MS
    return found


# Evidence of a node start.


@contextmanager
def collecting(kinds: Sequence[EvidenceKind], scene: Scene, kept: Path) -> Iterator[Sequence[Collector]]:
    """Collect and keep evidence of the node that runs within the block, even if either fails.

    The evidence stays in the directory `kept`, which is replaced.

    Raises:
        BenchctlError: If a collector fails, or the disk is full or cannot be written; else the block's.
    """
    collectors: Sequence[Collector] = hook("collectors").collectors(kinds, scene)
    try:
        yield collectors
    except BaseException:
        # Why the node failed matters more than incomplete evidence; but threads must end.
        with suppress(BenchctlError):
            _close(collectors, scene, kept)
        raise
    _close(collectors, scene, kept)


def _close(collectors: Sequence[Collector], scene: Scene, kept: Path) -> None:
    """End all collectors in order, even if one fails, and keep what they left."""
    with ExitStack() as stack:
        stack.callback(keep_evidence, scene.folder, kept)
        for collector in reversed(collectors):
            stack.callback(collector.end)


def keep_evidence(folder: Path, target: Path) -> None:
    """Move evidence to where it stays, replacing the target; long logs are compressed to `.zst`.

    The target may be on another file system.

    Raises:
        BenchctlError: If the disk is full or cannot be written.
    """
    with disk_errors(f"keep evidence in {target}"):
        for log in sorted(folder.rglob("*.log")):
            # A node may leave anything there, such as a link to somebody else's file.
            if not log.is_symlink() and log.lstat().st_size >= _PACKED_FROM_BYTES:
                _pack(log)
    keep_folder(folder, target, "evidence")


def _pack(log: Path) -> None:
    # With these, readers detect corruption and truncation.
    packer = zstandard.ZstdCompressor(level=_LEVEL, write_checksum=True, write_content_size=True)
    packed = log.with_name(f"{log.name}.zst")
    with open_regular(log, follow=False) as source, packed.open("xb") as target:
        packer.copy_stream(source, target, size=os.fstat(source.fileno()).st_size)
    log.unlink()


# A fork: its node starts, one after the other.


def pool_of(plan: Plan) -> WorkerPool | None:
    """The processes that a plan's clients work in, here or on other hosts; None for this one.

    Raises:
        UsageError: If the hosts are not those that the plan was made for.
    """
    if plan.load_hosts:
        hosts = checked_hosts(plan)
        # Dask takes a second to load, and is there only where hosts are.
        from benchctl.hosts.pool import HostPool  # noqa: PLC0415 - see above

        return HostPool(hosts, plan.workers)
    return WorkerPool(plan.workers) if plan.workers > 1 else None


@dataclass(frozen=True)
class ForkJob:
    """A fork to be run."""

    subject: AnySubject
    block: int
    position: int  # within the block


class Runner(Protocol):
    """Runs forks of a plan."""

    def run(self, job: ForkJob, member: Member) -> tuple[ForkRecord, EngineFacts | None]:
        """Run one fork, as a member of its block.

        Raises:
            BenchctlError: If results cannot be written.
        """


@dataclass(frozen=True)
class SearchResult:
    """The result of a search for a load on one node."""

    curve: tuple[CurvePoint, ...]
    # Computes the figures of the fork, task by task; slow, so to be called when the node is gone.
    summaries: Callable[[], tuple[TaskSummary, ...]]


@dataclass
class _Progress:
    """State of a fork so far; kept when it fails half-way."""

    boots: list[BootRecord] = field(default_factory=list)
    summaries: list[TaskSummary] = field(default_factory=list)
    requests_s: float = 0.0
    untouched: bool = True  # as in `MeasuredTask`
    copy_s: float = 0.0
    facts: EngineFacts | None = None
    curve: tuple[CurvePoint, ...] = ()
    samples: str | None = None


@dataclass(frozen=True)
class _Place:
    """Place of a fork, once its index is copied."""

    subject: NodeSubject
    name: str  # of the fork's folder of logs
    workspace: Path  # with a private copy of its index
    block: int
    origin_ns: int  # what its samples count from, on the monotonic clock
    spool: SampleSpool
    member: Member


class ForkRunner:
    """Runs forks of one run, whose results go into its folder."""

    def __init__(self, steps: StepRunner, folder: RunFolder) -> None:
        self._steps = steps
        self._folder = folder
        self._plan = plan = steps.plan
        self._node_cpus = None if plan.pin is None else plan.pin.node
        wanted = places(steps.track, plan.corpus.files)
        self._target = wanted.target
        self._expected = wanted.target if plan.origin == "prepared" else None
        self._streams = tuple(dict.fromkeys((*wanted.data_streams, *streams_made(plan, steps.track))))

    def run(self, job: ForkJob, member: Member = ALONE) -> tuple[ForkRecord, EngineFacts | None]:
        """Run one fork and write its samples.

        A fork whose node fails is a failed fork with its reason, not an exception: the others may go well.

        Returns:
            The fork's record, and what its first node said of itself.

        Raises:
            BenchctlError: If the fork's results cannot be written.
        """
        started = datetime.now(UTC).isoformat(timespec="seconds")
        clock = time.monotonic()
        before = None if job.subject.spec.target else look()
        progress = _Progress()
        reason = ""
        try:
            self._pass(job, progress, member)
        except BenchctlError as err:
            reason = str(err)
        except OSError as err:
            # A full disk, too many open files: the host's trouble, and the next fork may find it mended.
            reason = f"the host refused: {err}"
        finally:
            member.leave()
        wall_s = time.monotonic() - clock
        spent = progress.requests_s + progress.copy_s
        spent += sum(record.start_s + record.stop_s for record in progress.boots)
        record = ForkRecord(
            variant=job.subject.spec.name,
            block=job.block,
            position=job.position,
            status="failed" if reason else "done",
            reason=reason,
            started=started,
            wall_s=wall_s,
            requests_s=progress.requests_s,
            overhead_s=wall_s - spent,
            copy_s=progress.copy_s,
            boots=tuple(progress.boots),
            summaries=tuple(progress.summaries),
            samples=progress.samples,
            curve=progress.curve,
            index_build=_build_of(job),
            evidence=self._plan.evidence_in(job.block),
            others=None if before is None else used_by_others(before, look(), os.getpid()),
        )
        return self._folder.described(record), progress.facts

    def _pass(self, job: ForkJob, progress: _Progress, member: Member) -> None:
        """Node starts of the fork, and their results on disk."""
        clock = time.monotonic()
        subject, variant = job.subject, job.subject.spec.name
        if not isinstance(subject, Subject | TargetSubject):
            raise TypeError("microbenchmarks have no nodes")
        with subject.workspace(self._steps.home, f"fork-{job.block:03d}", _build_of(job)) as workspace:
            progress.copy_s = time.monotonic() - clock
            origin_ns = time.monotonic_ns()
            with SampleSpool(workspace / "samples") as spool:
                name = f"{job.block:03d}-{variant}"
                place = _Place(subject, name, workspace, job.block, origin_ns, spool, member)
                for number, steps in enumerate(boots(self._plan, job.block)):
                    self._boot(place, number, steps, progress)
                progress.samples = self._folder.write_samples(spool.all_chunks(), variant, job.block)

    def _boot(self, place: _Place, number: int, steps: Sequence[Step], progress: _Progress) -> None:
        """Node start and the tasks that share it."""
        subject = place.subject
        name = f"{place.name}/boot-{number}"
        root = place.workspace
        folder = root / f"boot-{number}"
        path = self._folder.path / "boots" / name
        documents = self._plan.of(subject.spec).corpus.documents
        load = Load(needed_share=min(1.0, _AS_MANY_UP_TO / max(documents, 1)), member=place.member)
        load.untouched = progress.untouched
        resident = prepare_page_cache(root / "data", self._plan.page_cache)
        place.member.meet()
        with logs_kept_of_failure(folder, path):
            with (
                self._collecting(place, number) as evidence,
                self._started(place, folder, evidence) as serving,
            ):
                progress.facts = progress.facts or subject.engine_facts(serving, root)
                node = serving if isinstance(serving, Node) else None
                if node is not None:
                    node.reading()  # opens what later ones need
                    load.read = node.reading
                    for collector in evidence:
                        collector.begin(node)
                elif subject.spec.target is not None:
                    load.one_copy = in_one_copy(serving.client, default_target(self._plan, self._steps.track))
                idle_s = serving.wait_idle()
                begun = None if resident is None else resident_share(root / "data")
                place.member.meet()
                stage = self._steps.stage(serving, subject.spec, number, place.origin_ns, place.spool)
                search = self._offer(serving, steps, stage, load, place)
                progress.untouched = load.untouched
                place.member.meet()
                segments: Sequence[SegmentFacts] = ()
                if node is not None:
                    for collector in evidence:
                        collector.measured(node)
                    segments = _filled(node, load)
                # Not where a JVM's output is evidence: a thread dump would stand in its middle.
                collected = bool(self._plan.evidence_in(place.block))
                searching = None if node is None or collected else node.search_threads()
                counted = serving.searches_counted()
                plain = () if node is None else stand_ins(node.client, self._streams)
                progress.facts = msgspec.structs.replace(
                    progress.facts, in_force=state_of(serving.client, self._target, self._plan.origin)
                )
                # Its index is a copy that is thrown away; evidence, and what flags of users make a JVM write,
                # come when it ends in peace.
                stop_s = serving.stop(at_once=not (collected or subject.spec.jvm_flags))
            keep_logs(folder, path)
        pauses = () if node is None else node.pauses(BootFolders(path).logs, place.origin_ns)
        ended = None if node is None else EndedNode(searching, pauses)
        progress.requests_s += load.requests_s
        if search is None:
            summaries = load.summaries(place.origin_ns, ended, index_meters(segments))
            progress.summaries += with_kept_logs(summaries, folder, path)
        else:
            progress.curve += search.curve
            progress.summaries += search.summaries()
        progress.boots.append(
            BootRecord(
                schedules=tuple(dict.fromkeys(schedule for step in steps for schedule, _ in step)),
                start_s=serving.start_s,
                idle_s=idle_s,
                stop_s=stop_s,
                searches_sent=load.searches,
                searches_counted=counted,
                command=tuple(serving.command),
                logs=f"boots/{name}" if subject.spec.target is None else "",
                origin_ns=None if node is None else node.started_ns - place.origin_ns,
                stand_ins=plain,
                resident=resident,
                resident_begun=begun,
            )
        )

    def _started(
        self, place: _Place, folder: Path, evidence: Sequence[Collector]
    ) -> AbstractContextManager[Serving]:
        """A node start of the fork, up while the block runs."""
        return place.subject.start(
            Start(
                place.workspace,
                folder,
                self._steps.home,
                self._plan.heap_mb,
                self._expected,
                self._node_cpus,
                flags=tuple(flag for collector in evidence for flag in collector.flags()),
                listen="" if self._steps.workers is None else self._steps.workers.nodes_at,
            )
        )

    def _collecting(self, place: _Place, number: int) -> AbstractContextManager[Sequence[Collector]]:
        """Return what collects evidence of a node start; nothing where the plan wants none of this fork."""
        subject, kinds = place.subject, self._plan.evidence_in(place.block)
        if not kinds or not isinstance(subject, Subject):
            return nullcontext(())
        cpus = None if self._plan.pin is None else self._plan.pin.driver
        scene = Scene(place.workspace / f"boot-{number}" / "evidence", subject.jdk.home, cpus)
        path = self._folder.evidence_folder(subject.spec.name, place.block, number)
        return collecting(kinds, scene, path)

    def _offer(
        self, serving: Serving, steps: Sequence[Step], stage: Stage, load: Load, place: _Place
    ) -> SearchResult | None:
        """Return what the plan wants of a node that is up: its schedules, or a search."""
        if self._plan.redline is None:
            self._steps.run(serving, steps, stage, load, variant=place.subject.spec.name)
            return None

        def measure(jobs: Sequence[Job], seed: int) -> Sequence[TaskResult]:
            context = dataclasses.replace(stage.context, seed=seed)
            return self._steps.run_step(serving, jobs, dataclasses.replace(stage, context=context), load)

        clock = time.monotonic()
        if settings := self._plan.schedules[0].cluster_settings:
            serving.client.put_cluster_settings(settings)
        track = msgspec.structs.replace(
            self._steps.track, operations=own_operations(self._steps.track.operations, place.subject.spec)
        )
        result: SearchResult = hook("redline_search")(self._plan, track, place.block, measure)
        load.requests_s += time.monotonic() - clock
        return result


def _build_of(job: ForkJob) -> int:
    """Return the build that a fork runs on: each in turn."""
    return job.block % max(len(job.subject.builds), 1)


def in_one_copy(client: SearchClient, index: str) -> bool:
    """Return whether shards of an index certainly have no replicas."""
    with suppress(BenchctlError):
        return {*client.setting(index, "index.number_of_replicas").values()} == {"0"}
    return False


def _filled(node: Node, load: Load) -> Sequence[SegmentFacts]:
    """The segments that tasks which index left, committed; none where none did."""
    if any(outcome.indexes for outcome in load.outcomes):
        # What is not known is no reason for a fork to fail.
        with suppress(BenchctlError):
            settle(node.client, EVERYTHING)
            return node.client.segments(EVERYTHING)
    return ()


def with_kept_logs(summaries: Sequence[TaskSummary], folder: Path, kept: Path) -> list[TaskSummary]:
    """Summaries whose reasons, such as why a node did not come back, name where its logs are now."""
    return [
        msgspec.structs.replace(
            summary,
            failure_reasons=tuple(text.replace(str(folder), str(kept)) for text in summary.failure_reasons),
        )
        for summary in summaries
    ]
