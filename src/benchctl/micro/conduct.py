"""Microbenchmarks as runs: variants are JVMs, forks come in random blocks, the record is that of any run."""

import os
import re
import shlex
import tempfile
import threading
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, cast

import msgspec
from msgspec import Meta

from benchctl.disk import disk_errors, read_file
from benchctl.engine.jdk import provide_jdk
from benchctl.engine.node import Collector, Scene
from benchctl.engine.settings import check_flag
from benchctl.engine.variant import check_name, placed_jar
from benchctl.errors import BenchctlError, UsageError
from benchctl.home import Home
from benchctl.load.turns import ALONE, Member
from benchctl.micro import jmh
from benchctl.network import Progress
from benchctl.results.figures import OPERATIONS, TaskSummary
from benchctl.results.model import BootRecord, EngineFacts, ForkRecord
from benchctl.results.plan import CorpusSpec, EvidenceSpec, MicroSpec, Plan, StopSpec, VariantSpec
from benchctl.results.store import RunFolder
from benchctl.run.fork import ForkJob
from benchctl.run.host import allowed_cpus, look, used_by_others
from benchctl.slices import hook
from benchctl.track.model import Challenge, Task

_OPTION = re.compile(r",(?=(?:jar|jvm|jdk):)")
_FOLDER = "jmh"
MICRO_METRICS = "throughput,op_time,service_time"
"""Metrics of microbenchmarks; JMH's mode decides which exist."""


class MicroEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """Microbenchmarks in a file, as `benchctl micro run` has them."""

    source: Annotated[str, Meta(min_length=1)]  # file or directory of sources, relative to this file
    include: str = ""  # regular expression for names of benchmarks
    # Values by parameter, instead of the benchmark's own.
    params: dict[str, tuple[int | float | str, ...]] = msgspec.field(default_factory=dict)
    threads: tuple[Annotated[int, Meta(ge=1)], ...] = ()  # numbers of threads
    jmh: str = ""  # further arguments of JMH
    timeout: float = 600.0  # seconds per benchmark

    def spec(self, folder: Path) -> MicroSpec:
        """Make the specification that a file in a directory states.

        Raises:
            UsageError: If there is no such source, or a value is invalid.
        """
        try:
            words = tuple(shlex.split(self.jmh))
        except ValueError as err:
            raise UsageError(f"--jmh {self.jmh}: {err}", hint="write --jmh '-wi 5 -i 5'") from err
        if any(count < 1 for count in self.threads):
            raise UsageError(f"--threads {','.join(map(str, self.threads))}: each must be at least 1")
        jmh.check_arguments(words)
        if self.timeout <= 0:
            raise UsageError("--timeout must be more than 0")
        return msgspec.structs.replace(
            jmh.read_source(folder / self.source),
            include=self.include,
            params={name: tuple(map(str, values)) for name, values in self.params.items()},
            threads=self.threads,
            arguments=words,
            timeout_s=self.timeout,
        )


def placed_variant(text: str, folder: Path) -> str:
    """A variant as a file in a folder writes it, with absolute paths of jars."""
    pieces = _OPTION.split(text.partition("=")[2])
    for piece in pieces:
        kind, _, value = piece.partition(":")
        if kind == "jar":
            text = text.replace(piece, f"jar:{placed_jar(value, folder)}")
    return text


def parse_variant(text: str) -> VariantSpec:
    """A variant of the command line: NAME, or NAME=jar:JAR,jvm:FLAG,jdk:JDK.

    Raises:
        UsageError: If the text is not of that form.
    """
    name, equals, rest = text.partition("=")
    check_name(name)
    jars: list[str] = []
    flags: list[str] = []
    jdk: str | None = None
    for piece in _OPTION.split(rest) if equals else ():
        kind, _, value = piece.partition(":")
        if not value or kind not in {"jar", "jvm", "jdk"}:
            raise UsageError(
                f"variant '{text}': '{piece}' is neither jar:, jvm: nor jdk:",
                hint="write --variant flat=jvm:-XX:-Inline, or new=jar:org.apache.lucene:lucene-core:9.9.0",
            )
        if kind == "jar":
            jars.append(placed_jar(value, Path.cwd()))
        elif kind == "jvm":
            flags.append(check_flag("jvm", value))
        else:
            jdk = value
    return VariantSpec(name, "jvm", "", jdk=jdk, jvm_flags=tuple(flags), jars=tuple(jars))


def plan_micro(
    home: Home,
    micro: MicroSpec,
    variants: Sequence[VariantSpec],
    *,
    forks: int,
    seed: int,
    stop: StopSpec | None,
    evidence: EvidenceSpec | None,
    progress: Progress,
) -> Plan:
    """A plan of all benchmarks that are to be measured; they are compiled for that, and jars are fetched.

    Raises:
        UsageError: If there are no benchmarks, or an option does not fit them.
        BenchctlError: If benchmarks do not compile, or something cannot be fetched.
    """
    names = [spec.name for spec in variants]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise UsageError(f"variant '{twice}' is a duplicate", hint="give each a unique name")
    if evidence is not None and (other := [kind for kind in evidence.kinds if kind != "inlining"]):
        raise UsageError(f"microbenchmarks cannot collect {other[0]}", hint="they only support inlining")
    bench = jmh.Workbench(home, provide_jdk(home, None), progress)
    jdks = {spec.name: provide_jdk(home, spec.jdk) for spec in variants}
    if jmh.sources_of(Path(micro.source)):
        least = max(jmh.LEAST_MAJOR, min(jdk.major for jdk in (bench.jdk, *jdks.values())))
        micro = msgspec.structs.replace(micro, release=least)
    classes = bench.classes(micro)
    subjects = [bench.subject(spec, micro, classes) for spec in variants]
    benchmarks = jmh.list_benchmarks(subjects[0].jdk, subjects[0].class_path, micro.include)
    tasks = jmh.tasks_of(benchmarks, micro.params, micro.threads or (0,))
    resolved = tuple(msgspec.structs.replace(spec, version=jdks[spec.name].version) for spec in variants)
    return Plan(
        variants=resolved,
        schedules=(Challenge(Path(micro.source).stem, tasks),),
        warmup_challenges=(),
        forks=forks,
        seed=seed,
        heap_mb=0,
        track=Path(micro.source).stem,
        track_digest=micro.digest,
        corpus=CorpusSpec(seed=0, documents=0, generator_version=0, digest=""),
        params={},
        stop=stop,
        origin="empty",
        evidence=evidence,
        metrics=MICRO_METRICS,
        micro=micro,
        apart="a benchmark uses all CPUs",
        segments=0,
        ingest_clients=0,
    )


def prepare_micro(home: Home, plan: Plan, progress: Progress) -> list[jmh.MicroSubject]:
    """The variants of a plan, ready to run.

    Raises:
        BenchctlError: If something cannot be fetched.
    """
    if plan.micro is None:
        raise TypeError("the plan has no microbenchmarks")
    bench = jmh.Workbench(home, provide_jdk(home, None), progress)
    classes = bench.classes(plan.micro)
    return [bench.subject(spec, plan.micro, classes) for spec in plan.variants]


def micro_caveats(plan: Plan) -> tuple[str, ...]:
    """Return caveats of a plan on this host."""
    cpus = len(allowed_cpus())
    most = max((task.clients for schedule in plan.schedules for task in schedule.schedule), default=1)
    if plan.micro is None or most <= cpus:
        return ()
    return (f"up to {most} threads on {cpus} CPUs: values include the kernel's scheduling",)


class MicroRunner:
    """Runs forks of a plan of microbenchmarks: each of its benchmarks once, in a separate JVM."""

    def __init__(self, plan: Plan, folder: RunFolder, home: Home, stop: threading.Event) -> None:
        self._plan = plan
        self._folder = folder
        self._home = home
        self._stop = stop

    def run(self, job: ForkJob, member: Member = ALONE) -> tuple[ForkRecord, EngineFacts | None]:
        """Run one fork; a benchmark that fails is counted as such, and takes no other along.

        Raises:
            BenchctlError: If results cannot be written.
        """
        del member
        subject, block = job.subject, job.block
        if not isinstance(subject, jmh.MicroSubject):
            raise TypeError("only microbenchmarks run without nodes")
        started, clock = datetime.now(UTC).isoformat(timespec="seconds"), time.monotonic()
        before, evidence = look(), self._plan.evidence_in(block)
        summaries: list[TaskSummary] = []
        boots: list[BootRecord] = []
        for place, task in enumerate(self._plan.schedules[0].schedule):
            clock_s = time.monotonic()
            try:
                summary = jmh.figures_of(place, task.label, self._trial(subject, block, place, task))
            except BenchctlError as err:
                blank = TaskSummary(0, place, task.label, task.operation, unit=OPERATIONS)
                summary = msgspec.structs.replace(blank, failures={"failed": 1}, failure_reasons=(str(err),))
            summaries.append(summary)
            # Evidence is found by the number of its boot, be that of a JVM that failed.
            took_s = time.monotonic() - clock_s
            boots += [BootRecord((0,), took_s, 0.0, 0.0, 0, None, (), "", origin_ns=0)] if evidence else []
        requests_s = time.monotonic() - clock
        reasons = dict.fromkeys(reason for summary in summaries for reason in summary.failure_reasons)
        # With others that went well, the failed ones are told in their rows.
        done = any(summary.samples for summary in summaries)
        record = ForkRecord(
            subject.spec.name,
            block,
            tuple(summaries),
            started=started,
            position=job.position,
            status="done" if done else "failed",
            reason="" if done else "; ".join(reasons),
            wall_s=time.monotonic() - clock,
            requests_s=requests_s,
            overhead_s=time.monotonic() - clock - requests_s,
            boots=tuple(boots),
            evidence=evidence,
            others=used_by_others(before, look(), os.getpid()),
        )
        return self._folder.described(record), subject.facts

    def _trial(self, subject: jmh.MicroSubject, block: int, place: int, task: Task) -> jmh.JmhEntry:
        micro, name = self._plan.micro, f"{block:03d}-{subject.spec.name}-{place}.txt"
        if micro is None:
            raise TypeError("the plan has no microbenchmarks")
        flags: tuple[str, ...] = ()
        if self._plan.evidence_in(block):
            scene = Scene(self._folder.evidence_folder(subject.spec.name, block, place), subject.jdk.home)
            (collector,) = cast("list[Collector]", hook("collectors").collectors(("inlining",), scene))
            # JMH keeps what its JVM prints, and reads of it only its own lines.
            flags = (*collector.flags(), "-XX:-DisplayVMOutput")
        with (
            disk_errors(f"run a benchmark in {self._home.scratch}"),
            tempfile.TemporaryDirectory(dir=self._home.scratch, prefix="micro-") as own,
        ):
            folder = Path(own) / "trial"
            try:
                return jmh.run_trial(subject, micro, task, flags, folder, self._stop.is_set)
            finally:
                output = folder / "stdout.log"
                if output.is_file():
                    with disk_errors(f"keep JMH's output in {self._folder.path}"):
                        kept = self._folder.path / _FOLDER
                        kept.mkdir(exist_ok=True)
                        (kept / name).write_bytes(read_file(output))
