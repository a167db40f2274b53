"""The record of a run: its plan, its environment, and what became of every fork. Written as run.json."""

from typing import Any, Literal

import msgspec

from benchctl.track.model import Challenge

RECORD_VERSION = 1

EngineName = Literal["elasticsearch", "opensearch"]
RestartPolicy = Literal["challenge", "task", "never"]


class VariantSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """What is measured, as the user asked for it.

    Attributes:
        name: how tables call it, such as `es` or `es@8.19.0`.
        engine: which engine.
        version: the version to fetch; what a given distribution really is, is checked at its first start.
        distribution: path or URL of an archive or folder instead of Maven Central; None for Central.
        jdk: path of a Java home, or a major version; None for the bundled runtime.
        jvm_flags: further flags, in order, behind the common ones.
        settings: node settings beyond the common ones.
    """

    name: str
    engine: EngineName
    version: str
    distribution: str | None = None
    jdk: str | None = None
    jvm_flags: tuple[str, ...] = ()
    settings: dict[str, Any] = {}


class CorpusSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """Which documents: the digest follows from the other three."""

    seed: int
    documents: int
    generator_version: int
    digest: str


class Plan(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """Everything a run is going to do, decided and validated before any node starts.

    Attributes:
        variants: in table order; the first is the baseline.
        schedules: the challenges of one fork, in order, fully expanded.
        warmup_challenges: run unmeasured after every boot, before the schedule's own tasks.
        restart: when a fresh node comes in between.
        forks: passes of every variant.
        seed: of the order of variants within blocks, and of Poisson arrivals.
        heap_mb: heap of every node, MiB.
        track: the track's name; operations of it are in the record by the digest only.
        track_digest: SHA-256 over the rendered track.
        corpus: which documents.
        segments: segments of the prepared index after the force-merge.
        params: values given on the command line for template parameters.
        ingest_clients: concurrent senders that fill the prepared index.
        sources: challenge name -> path, for challenges that were given as files.
        paired: blocks are analysed as pairs, as declared before the run.
    """

    variants: tuple[VariantSpec, ...]
    schedules: tuple[Challenge, ...]
    warmup_challenges: tuple[Challenge, ...]
    restart: RestartPolicy
    forks: int
    seed: int
    heap_mb: int
    track: str
    track_digest: str
    corpus: CorpusSpec
    segments: int
    params: dict[str, Any]
    ingest_clients: int = 2
    sources: dict[str, str] = {}
    paired: bool = False


class Quantiles(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Quantiles of one fork's samples, in nanoseconds: Harrell-Davis, and linear interpolation beside it."""

    p50: float
    p90: float
    p99: float
    linear_p50: float
    linear_p90: float
    linear_p99: float


class TaskSummary(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """One fork's figures for one task. Everything but the counts is about successful measured requests.

    Attributes:
        schedule: position of the challenge in the fork.
        task: position of the task in the challenge.
        label: the task's name.
        operation: the operation's name.
        samples: successful measured requests.
        warmup_samples: unmeasured requests, successful or not.
        failures: measured requests that failed, by outcome name.
        failure_reasons: the first few distinct reasons, in the words of the engine or the client.
        throughput_per_s: completions in the measured window over its seconds; None without samples.
        target_per_s: the offered rate of a throttled task; its throughput gets no verdict.
        service_time: send to last byte; None without samples.
        latency: intended start to last byte; None for a closed loop, which has none of its own.
        took: the engine's own time for the same requests.
        mean_ns, sd_ns, min_ns, max_ns: of service time.
        lag1: lag-1 autocorrelation of service time; None under 3 samples or when it is constant.
        effective_samples: samples (1 - lag1) / (1 + lag1), at most samples.
        drift: ln(median of the last third / median of the first third) of service time; None under 6 samples.
        hits: total hits where every answer said the same; None when unknown.
        hits_exact: whether the engine counted them all.
        unsupported: the node's own reason when it cannot do this operation at all; None otherwise.
    """

    schedule: int
    task: int
    label: str
    operation: str
    samples: int = 0
    warmup_samples: int = 0
    failures: dict[str, int] = {}
    failure_reasons: tuple[str, ...] = ()
    throughput_per_s: float | None = None
    target_per_s: float | None = None
    service_time: Quantiles | None = None
    latency: Quantiles | None = None
    took: Quantiles | None = None
    mean_ns: float | None = None
    sd_ns: float | None = None
    min_ns: float | None = None
    max_ns: float | None = None
    lag1: float | None = None
    effective_samples: float | None = None
    drift: float | None = None
    hits: int | None = None
    hits_exact: bool = False
    unsupported: str | None = None


class HostProbe(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """How fast two fixed kernels ran just then, and what else the host was doing.

    Attributes:
        cpu_ns: a CPU-bound kernel, nanoseconds.
        memory_ns: a memory-bound kernel, nanoseconds.
        steal_percent: time the hypervisor took, over the probe; None where the kernel does not say.
        load1: one-minute load average.
        frequency_mhz: mean of the cores; None where unknown.
    """

    cpu_ns: int
    memory_ns: int
    steal_percent: float | None
    load1: float
    frequency_mhz: float | None


class BootRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """One node start of a fork.

    Attributes:
        schedules: positions of the schedules that ran on it.
        start_s: process start to ready, seconds.
        idle_s: waiting for the node to calm down, seconds.
        stop_s: seconds until the process was gone.
        searches_sent: by the driver, warm-up included.
        searches_counted: by the node's own statistics; None when it could not say.
        command: the command line.
        logs: folder with stdout, stderr, GC log and settings, relative to the run.
    """

    schedules: tuple[int, ...]
    start_s: float
    idle_s: float
    stop_s: float
    searches_sent: int
    searches_counted: int | None
    command: tuple[str, ...]
    logs: str


ForkStatus = Literal["done", "failed"]


class ForkRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """One pass of one variant.

    Attributes:
        variant: the variant's name.
        block: which block, from 0; also the number of the fork within its variant.
        position: place within the block, from 0.
        status: done, or failed with a reason; only done forks are compared.
        reason: why it failed.
        started: wall clock, ISO 8601, a label only.
        wall_s: the whole fork, seconds.
        requests_s: seconds spent in tasks and their warm-up challenges.
        overhead_s: wall_s without node start, stop, requests, index copy and host probe.
        copy_s: copying the prepared index, seconds.
        probe_s: the two host probes, seconds.
        boots: the node starts.
        summaries: one per task.
        probes: before and after.
        samples: the Parquet file, relative to the run; None when not kept.
    """

    variant: str
    block: int
    position: int
    status: ForkStatus
    reason: str
    started: str
    wall_s: float
    requests_s: float
    overhead_s: float
    copy_s: float
    probe_s: float
    boots: tuple[BootRecord, ...]
    summaries: tuple[TaskSummary, ...]
    probes: tuple[HostProbe, ...]
    samples: str | None


class IngestReport(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """How a prepared index was filled: the client's view beside the engine's own clocks.

    Attributes:
        documents, body_bytes: what was sent.
        clients: concurrent senders.
        ingest_s: first bulk request to last answer, seconds.
        refresh_s, force_merge_s, flush_s: the client's seconds for the steps that follow.
        engine_indexing_s, engine_refresh_s, engine_merge_s, engine_flush_s: from the index statistics.
    """

    documents: int
    body_bytes: int
    clients: int
    ingest_s: float
    refresh_s: float
    force_merge_s: float
    flush_s: float
    engine_indexing_s: float
    engine_refresh_s: float
    engine_merge_s: float
    engine_flush_s: float


class SegmentFacts(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """One segment, as the engine's Lucene sees it.

    Attributes:
        documents: live documents.
        size_bytes: on disk.
        lucene: the version that wrote it.
        compound: whether its files are packed into one; engines differ in when they do that.
    """

    documents: int
    size_bytes: int
    lucene: str
    compound: bool = False


class IndexFacts(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """What a prepared index is."""

    key: str
    documents: int
    store_bytes: int
    segments: tuple[SegmentFacts, ...]
    ingest: IngestReport
    cached: bool = False


class EngineFacts(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """What a variant resolved to: asked of the node itself where possible.

    Attributes:
        variant: the variant's name.
        version: as the node says.
        build: the node's build hash.
        lucene: Lucene's version.
        archive_sha256: of the distribution's archive; of the file listing for a folder.
        jdk: vendor and full version.
        jvm_flags: what the node's JVM was really started with.
        modules: what the distribution carries.
        verified_by: the published checksum that the archive was compared with, such as `sha512`; `none` when
            its source publishes none; empty in records from before this was kept.
    """

    variant: str
    version: str
    build: str
    lucene: str
    archive_sha256: str
    jdk: str
    jvm_flags: tuple[str, ...]
    modules: tuple[str, ...]
    verified_by: str = ""


class Environment(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """Where a run was measured. `fingerprint` covers what must be alike for two runs to be comparable."""

    fingerprint: str
    hostname: str
    kernel: str
    distribution: str
    cpu_model: str
    cpus: int
    governor: str | None
    memory_bytes: int
    virtualization: str | None
    python: str
    benchctl: str
    benchctl_commit: str | None
    libcurl: str
    load_before: tuple[float, float, float]
    other_java: tuple[str, ...] = ()


class AnswerFinding(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """One operation on which two variants do not answer alike, or which one cannot do or refuses."""

    operation: str
    variant: str
    baseline: str
    kind: Literal["different", "unsupported", "failed"]
    detail: str


class AnswerCheck(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """The unmeasured comparison of answers.

    Attributes:
        operations: names of the operations that were asked.
        exact_hits: operation -> variant -> documents matched, counted exactly.
        findings: what differed.
    """

    operations: tuple[str, ...]
    exact_hits: dict[str, dict[str, int]]
    findings: tuple[AnswerFinding, ...]


RunStatus = Literal["running", "complete", "interrupted", "failed"]


class RunRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """All of a run but its samples and logs."""

    record_version: int
    id: str
    created: str
    status: RunStatus
    plan: Plan
    environment: Environment
    engines: tuple[EngineFacts, ...] = ()
    indices: dict[str, IndexFacts] = {}
    answers: AnswerCheck | None = None
    forks: tuple[ForkRecord, ...] = ()
    caveats: tuple[str, ...] = ()
    timings: dict[str, float] = {}

    def done(self, variant: str) -> tuple[ForkRecord, ...]:
        """The finished forks of one variant, in block order."""
        found = [fork for fork in self.forks if fork.variant == variant and fork.status == "done"]
        return tuple(sorted(found, key=lambda fork: fork.block))

    def missing(self) -> tuple[tuple[int, str], ...]:
        """(block, variant) of every planned fork that is not done, in block order."""
        have = {(fork.block, fork.variant) for fork in self.forks if fork.status == "done"}
        wanted = [(block, v.name) for block in range(self.plan.forks) for v in self.plan.variants]
        return tuple(pair for pair in wanted if pair not in have)
