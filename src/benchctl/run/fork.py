"""Fork: a fresh node on a private copy of the index, the schedules, and their evidence."""

import dataclasses
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

import msgspec
import zstandard

from benchctl.disk import disk_errors, open_regular
from benchctl.engine.declared import EVERYTHING, places, stand_ins
from benchctl.engine.node import Collector, Node, Scene
from benchctl.engine.prepared_index import prepare_page_cache, resident_share, settle
from benchctl.engine.settings import BootFolders
from benchctl.errors import BenchctlError
from benchctl.home import Home
from benchctl.load.executor import Job, Stage, TaskResult, WorkerPool
from benchctl.load.turns import ALONE, Member
from benchctl.results.figures import CurvePoint, TaskSummary
from benchctl.results.model import (
    BootRecord,
    EngineFacts,
    ForkRecord,
    IndexFacts,
    SegmentFacts,
)
from benchctl.results.plan import Plan, Step, boots
from benchctl.results.samples import SampleSpool
from benchctl.results.store import RunFolder
from benchctl.run.bench import SharedObserver
from benchctl.run.checks import checked_hosts
from benchctl.run.documents import streams_made
from benchctl.run.host import look, used_by_others
from benchctl.run.prepare import keep_folder, keep_logs, logs_kept_of_failure
from benchctl.run.session import AnySubject, NodeSubject, Serving, Start, Subject, TargetSubject
from benchctl.run.steps import EndedNode, Load, StepRunner, index_meters
from benchctl.slices import hook
from benchctl.spec import EvidenceKind
from benchctl.track.model import Track

# Shorter logs stay uncompressed, for grep.
_PACKED_FROM_BYTES = 1 << 20
_LEVEL = 3


class Collection:
    """The collectors of one node start, in the order in which they are called."""

    def __init__(self, collectors: Sequence[Collector] = ()) -> None:
        self._collectors = collectors

    @property
    def flags(self) -> tuple[str, ...]:
        """JVM flags, appended to the variant's."""
        return tuple(flag for collector in self._collectors for flag in collector.flags())

    def begin(self, node: Node) -> None:
        """Begin, as for `Collector`, before the first task."""
        for collector in self._collectors:
            collector.begin(node)

    def measured(self, node: Node) -> None:
        """End measuring, as for `Collector`, after the last task."""
        for collector in self._collectors:
            collector.measured(node)

    def end(self) -> None:
        """End all collectors, as for `Collector`, even if one fails.

        Raises:
            BenchctlError: If a collector fails; the first of them.
        """
        raised: list[BenchctlError] = []
        for collector in self._collectors:
            try:
                collector.end()
            except BenchctlError as err:
                raised.append(err)
        if raised:
            raise raised[0]


@contextmanager
def collecting(kinds: Sequence[EvidenceKind], scene: Scene, kept: Path) -> Iterator[Collection]:
    """Collect and keep evidence of the node that runs within the block, even if either fails.

    The evidence stays in the directory `kept`, which is replaced.

    Raises:
        BenchctlError: If a collector fails, or the disk is full or cannot be written; else the block's.
    """
    collection = Collection(hook("collectors").collectors(kinds, scene))
    try:
        yield collection
    except BaseException:
        # Why the node failed matters more than incomplete evidence; but threads must end.
        with suppress(BenchctlError):
            _close(collection, scene, kept)
        raise
    _close(collection, scene, kept)


def _close(collection: Collection, scene: Scene, kept: Path) -> None:
    try:
        collection.end()
    finally:
        keep_evidence(scene.folder, kept)


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


# Documents: `range` alone takes as many requests to settle on 100,000, on a million and on four.
_AS_MANY_UP_TO = 4_000_000


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


def build_of(block: int, builds: Sequence[IndexFacts]) -> int:
    """Return the build that a fork runs on: each in turn."""
    return block % max(len(builds), 1)


class ForkRunner:
    """Runs forks of one run; setting `stop` ends a task early; see `StepRunner`."""

    def __init__(
        self,
        plan: Plan,
        track: Track,
        folder: RunFolder,
        home: Home,
        observer: SharedObserver,
        stop: threading.Event,
        *,
        workers: WorkerPool | None = None,
        left_out: frozenset[str] = frozenset(),
    ) -> None:
        self._plan = plan
        self._track = track
        self._folder = folder
        self._home = home
        self._workers = workers
        self._node_cpus = None if plan.pin is None else plan.pin.node
        wanted = places(track, plan.corpus.files)
        self._expected = wanted.target if plan.origin == "prepared" else None
        self._streams = tuple(dict.fromkeys((*wanted.data_streams, *streams_made(plan, track))))
        self._steps = StepRunner(plan, track, home, observer, stop, workers, left_out=left_out)

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
            index_build=self._build(job),
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
        with subject.workspace(self._home, f"fork-{job.block:03d}", self._build(job)) as workspace:
            progress.copy_s = time.monotonic() - clock
            origin_ns = time.monotonic_ns()
            with SampleSpool(workspace / "samples") as spool:
                name = f"{job.block:03d}-{variant}"
                place = _Place(subject, name, workspace, job.block, origin_ns, spool, member)
                for number, steps in enumerate(boots(self._plan, job.block)):
                    self._boot(place, number, steps, progress)
                progress.samples = self._folder.write_samples(spool.all_chunks(), variant, job.block)

    def _build(self, job: ForkJob) -> int:
        return build_of(job.block, job.subject.builds)

    def _boot(self, place: _Place, number: int, steps: Sequence[Step], progress: _Progress) -> None:
        """Node start and the tasks that share it."""
        subject = place.subject
        name = f"{place.name}/boot-{number}"
        root = place.workspace
        folder = root / f"boot-{number}"
        path = self._folder.path / "boots" / name
        load = Load(needed_share=_needed_share(self._plan.of(subject.spec)), member=place.member)
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
                if node is not None:
                    evidence.begin(node)
                idle_s = serving.wait_idle()
                begun = None if resident is None else resident_share(root / "data")
                place.member.meet()
                stage = self._steps.stage(serving, subject.spec, number, place.origin_ns, place.spool)
                search = self._offer(serving, steps, stage, load, place)
                place.member.meet()
                if node is not None:
                    evidence.measured(node)
                segments = () if node is None else _filled(node, load)
                # Not where a JVM's output is evidence: a thread dump would stand in its middle.
                collected = bool(self._plan.evidence_in(place.block))
                searching = None if node is None or collected else node.search_threads()
                counted = serving.searches_counted()
                plain = () if node is None else stand_ins(node.client, self._streams)
                # Its index is a copy that is thrown away; evidence, and what flags of users make a JVM write,
                # come when it ends in peace.
                stop_s = serving.stop(at_once=not (collected or subject.spec.jvm_flags))
            keep_logs(folder, path)
        ended = None
        if node is not None:
            pauses = node.pauses(BootFolders(path).logs, place.origin_ns)
            ended = EndedNode(searching, pauses)
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

    def _started(self, place: _Place, folder: Path, evidence: Collection) -> AbstractContextManager[Serving]:
        """A node start of the fork, up while the block runs."""
        return place.subject.start(
            Start(
                place.workspace,
                folder,
                self._home,
                self._plan.heap_mb,
                self._expected,
                self._node_cpus,
                flags=evidence.flags,
                listen="" if self._workers is None else self._workers.nodes_at,
            )
        )

    def _collecting(self, place: _Place, number: int) -> AbstractContextManager[Collection]:
        """Return what collects evidence of a node start; nothing where the plan wants none of this fork."""
        subject, kinds = place.subject, self._plan.evidence_in(place.block)
        if not kinds or not isinstance(subject, Subject):
            return nullcontext(Collection())
        cpus = None if self._plan.pin is None else self._plan.pin.driver
        scene = Scene(place.workspace / f"boot-{number}" / "evidence", subject.jdk.home, cpus)
        path = self._folder.evidence_folder(subject.spec.name, place.block, number)
        return collecting(kinds, scene, path)

    def _offer(
        self, serving: Serving, steps: Sequence[Step], stage: Stage, load: Load, place: _Place
    ) -> "SearchResult | None":
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
        result: SearchResult = hook("redline_search")(self._plan, self._track, place.block, measure)
        load.requests_s += time.monotonic() - clock
        return result


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


def _needed_share(plan: Plan) -> float:
    """Return the share of the usual warm-up; where visits dominate, fewer requests do."""
    return _AS_MANY_UP_TO / max(plan.corpus.documents, _AS_MANY_UP_TO)
