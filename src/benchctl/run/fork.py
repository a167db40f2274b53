"""One fork: fresh nodes on a private copy of the index, the schedules, and nothing else."""

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from benchctl.engine.node import Node, boot
from benchctl.errors import BenchctlError
from benchctl.home import Home
from benchctl.load.executor import NodeGone, TaskResult, run_task
from benchctl.results.model import BootRecord, EngineFacts, ForkRecord, HostProbe, Plan, TaskSummary
from benchctl.results.samples import Columns, concatenate
from benchctl.results.store import RunFolder
from benchctl.run.host import probe_host
from benchctl.run.leftovers import keep_logs, logs_kept_of_failure
from benchctl.run.observer import Observer
from benchctl.run.plan import Place, boots
from benchctl.run.prepare import NODE_DEATH_S, Subject, base_url, scratch_copy
from benchctl.stats.summary import summarise
from benchctl.track.model import Task, Track

# Samples of warm-up challenges carry this schedule number: kept, and never part of a figure.
WARMUP_SCHEDULE = -1


@dataclass(frozen=True)
class ForkJob:
    """Which fork is to be run.

    Attributes:
        subject: the variant, ready to boot.
        block: which block, from 0.
        position: place within the block, from 0.
    """

    subject: Subject
    block: int
    position: int


@dataclass
class _Progress:
    """What a fork has so far; kept when it fails half-way."""

    boots: list[BootRecord] = field(default_factory=list)
    samples: list[Columns] = field(default_factory=list)
    summaries: list[TaskSummary] = field(default_factory=list)
    probes: list[HostProbe] = field(default_factory=list)
    requests_s: float = 0.0
    copy_s: float = 0.0
    probe_s: float = 0.0
    facts: EngineFacts | None = None
    searches: int = 0


class ForkRunner:
    """Runs forks of one run, one at a time.

    Args:
        plan: of the run.
        track: of the plan.
        folder: of the run.
        home: where scratch copies go.
        observer: told what happens.
        stop: set from outside to end a task early.
    """

    def __init__(
        self,
        plan: Plan,
        track: Track,
        folder: RunFolder,
        home: Home,
        observer: Observer,
        stop: threading.Event,
    ) -> None:
        self._plan = plan
        self._track = track
        self._folder = folder
        self._home = home
        self._observer = observer
        self._stop = stop

    def run(self, job: ForkJob) -> tuple[ForkRecord, EngineFacts | None]:
        """Run one fork and write its samples.

        A fork whose node fails is a failed fork with its reason, not an exception: the others may go well.

        Returns:
            The fork's record, and what its first node said of itself.

        Raises:
            BenchctlError: the fork's results cannot be written.
        """
        started = datetime.now(UTC).isoformat(timespec="seconds")
        clock = time.monotonic()
        progress = _Progress()
        reason = ""
        try:
            self._pass(job, progress)
        except BenchctlError as err:
            reason = str(err)
        except OSError as err:
            # A full disk, too many open files: the host's trouble, and the next fork may find it mended.
            reason = f"the host refused: {err}"
        samples = None
        if not reason:
            samples = self._folder.write_samples(
                concatenate(progress.samples), job.subject.spec.name, job.block
            )
        wall_s = time.monotonic() - clock
        spent = progress.requests_s + progress.copy_s + progress.probe_s
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
            probe_s=progress.probe_s,
            boots=tuple(progress.boots),
            summaries=tuple(progress.summaries),
            probes=tuple(progress.probes),
            samples=samples,
        )
        return record, progress.facts

    def _pass(self, job: ForkJob, progress: _Progress) -> None:
        self._probe(progress)
        clock = time.monotonic()
        with scratch_copy(job.subject, self._home, f"fork-{job.block:03d}") as root:
            progress.copy_s = time.monotonic() - clock
            origin_ns = time.monotonic_ns()
            for number, places in enumerate(boots(self._plan)):
                self._boot(job, root, number, places, origin_ns, progress)
        self._probe(progress)

    def _probe(self, progress: _Progress) -> None:
        clock = time.monotonic()
        progress.probes.append(probe_host())
        progress.probe_s += time.monotonic() - clock

    def _boot(
        self,
        job: ForkJob,
        root: Path,
        number: int,
        places: Sequence[Place],
        origin_ns: int,
        progress: _Progress,
    ) -> None:
        """One node start and the tasks that share it."""
        subject = job.subject
        name = f"{job.block:03d}-{subject.spec.name}/boot-{number}"
        progress.searches = 0
        folder = root / f"boot-{number}"
        kept = self._folder.path / "boots" / name
        with logs_kept_of_failure(folder, kept):
            with boot(
                subject.installation,
                subject.jdk,
                data=root / "data",
                folder=folder,
                owner=self._home.node_owner,
                heap_mb=self._plan.heap_mb,
                jvm_flags=subject.spec.jvm_flags,
                settings=subject.spec.settings,
                expect_index=self._track.index_name,
            ) as node:
                progress.facts = progress.facts or engine_facts(subject, node, root)
                idle_s = node.wait_idle()
                self._schedules(node, number, places, origin_ns, progress)
                counted = node.client.node_search_count()
                stop_s = node.stop()
            keep_logs(folder, kept)
        progress.boots.append(
            BootRecord(
                schedules=tuple(dict.fromkeys(schedule for schedule, _ in places)),
                start_s=node.start_s,
                idle_s=idle_s,
                stop_s=stop_s,
                searches_sent=progress.searches,
                searches_counted=counted,
                command=tuple(node.command),
                logs=f"boots/{name}",
            )
        )

    def _schedules(
        self, node: Node, number: int, places: Sequence[Place], origin_ns: int, progress: _Progress
    ) -> None:
        clock = time.monotonic()
        for challenge in self._plan.warmup_challenges:
            for index, task in enumerate(challenge.schedule):
                self._task(node, task, (WARMUP_SCHEDULE, index), number, origin_ns, progress)
        for schedule, index in places:
            task = self._plan.schedules[schedule].schedule[index]
            result = self._task(node, task, (schedule, index), number, origin_ns, progress)
            summary = summarise(
                result.columns, schedule=schedule, task_index=index, task=task, unsupported=result.unsupported
            )
            reasons = tuple(detail for failure in result.failures for detail in failure.details)
            progress.summaries.append(msgspec.structs.replace(summary, failure_reasons=reasons))
        progress.requests_s += time.monotonic() - clock

    def _task(
        self, node: Node, task: Task, place: Place, number: int, origin_ns: int, progress: _Progress
    ) -> TaskResult:
        self._observer.stage(task.label if place[0] != WARMUP_SCHEDULE else f"warm-up: {task.label}")
        try:
            result = run_task(
                task,
                self._track.operations[task.operation],
                base_url=base_url(node),
                index_name=self._track.index_name,
                seed=self._plan.seed,
                origin_ns=origin_ns,
                schedule=place[0],
                task_index=place[1],
                boot=number,
                stop=self._stop,
                on_progress=lambda done: self._observer.progress("requests", done, requests_of(task)),
                measured=place[0] != WARMUP_SCHEDULE,
            )
        except NodeGone as err:
            # The process knows better than the connection why it is gone.
            node.check_alive(within_s=NODE_DEATH_S)
            raise BenchctlError(f"the node stopped answering in task {task.label}: {err.message}") from err
        for failure in result.failures:
            said = f": {failure.details[0]}" if failure.details else ""
            self._observer.note(f"{task.label}: {failure.count:,} x {failure.outcome.name.lower()}{said}")
        progress.samples.append(result.columns)
        progress.searches += result.searches_sent
        return result


def requests_of(task: Task) -> int:
    """Requests that a task will send, warm-up included; 0 when only time ends it."""
    if task.time_period is not None or task.warmup_time_period is not None:
        return 0
    return task.clients * ((task.iterations or 1) + (task.warmup_iterations or 0))


def _placeless(flag: str, root: Path, subject: Subject) -> str:
    """A flag without the folders that differ from fork to fork: those make no variant another."""
    return flag.replace(str(root), "{fork}").replace(str(subject.installation.root), "{distribution}")


def engine_facts(subject: Subject, node: Node, root: Path) -> EngineFacts:
    """What the variant resolved to, from the node where it can say.

    Args:
        subject: the variant.
        node: a node of it that is up.
        root: of the fork, as it stands in the node's flags.

    Raises:
        BenchctlError: the node is of another version than its archive.
    """
    if node.version != subject.installation.version:
        raise BenchctlError(
            f"{subject.spec.name}: the archive is {subject.installation.version}, "
            f"its node says {node.version}"
        )
    return EngineFacts(
        variant=subject.spec.name,
        version=node.version,
        build=node.build,
        lucene=node.lucene,
        archive_sha256=subject.installation.archive_sha256,
        jdk=f"{subject.jdk.vendor} {subject.jdk.version}",
        jvm_flags=tuple(_placeless(word, root, subject) for word in node.command[1:] if word.startswith("-")),
        modules=subject.installation.modules,
        verified_by=subject.installation.verified_by,
    )
