"""The record of a run: its plan, its environment, and what became of every fork. Written as run.json."""

from typing import Any, Literal

import msgspec

from benchctl.track.model import Challenge

RECORD_VERSION = 1

EngineName = Literal["elasticsearch", "opensearch"]
RestartPolicy = Literal["challenge", "task", "never"]
ErrorPolicy = Literal["continue", "abort"]
TransportName = Literal["wire", "client"]
StepVerdict = Literal["pass", "fail", "driver-limited"]
RedlineEnd = Literal["found", "max-rate", "driver-limited", "missed", "unsettled"]


class TargetSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """A cluster that runs already, as the user named it; credentials are never kept.

    Attributes:
        hosts: scheme, host and port of every address that requests go to in turn.
        ca: absolute path of the certificates that are trusted instead of the system's.
        verify: whether its certificate is checked.
        auth_file: absolute path of the file that its credentials come from; None for the environment.
        restart_command: run where a node would be booted: program and arguments; empty for none.
        fill: whether the track's index may be made and filled where there is none.
    """

    hosts: tuple[str, ...]
    ca: str | None = None
    verify: bool = True
    auth_file: str | None = None
    restart_command: tuple[str, ...] = ()
    fill: bool = False


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
        target: the running cluster that it is, with the engine and version found there; None for nodes that
            benchctl starts.
    """

    name: str
    engine: EngineName
    version: str
    distribution: str | None = None
    jdk: str | None = None
    jvm_flags: tuple[str, ...] = ()
    settings: dict[str, Any] = {}
    target: TargetSpec | None = None


class CorpusSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """Which documents: the digest follows from the other three."""

    seed: int
    documents: int
    generator_version: int
    digest: str


class RedlineSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """A search for the highest rate at which an operation still meets an objective.

    Attributes:
        operation: the operation's name.
        percentile: which percentile of latency the objective bounds, such as 90.
        limit_ns: its bound.
        clients: concurrent clients; requests that find all of them busy wait, and their latency says so.
        schedule: how arrivals are spaced.
        warm_up_s: closed loop before the search.
        settle_s: of every step, before what is measured of it.
        step_s: measured of every step.
        tolerance: ratio of neighbouring rates - 1: how exactly the answer is wanted.
        max_per_s: no higher rate is tried; None for no bound.
    """

    operation: str
    percentile: float
    limit_ns: int
    clients: int
    schedule: Literal["deterministic", "poisson"]
    warm_up_s: float
    settle_s: float
    step_s: float
    tolerance: float
    max_per_s: float | None = None


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
        on_error: whether a failed request is counted, or ends its fork.
        transport: how measured requests travel: by benchctl's wire client, or by the engine's official one.
        workers: processes that clients work in.
        redline: the search that every fork does instead of its schedule, which then only names the operation.
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
    on_error: ErrorPolicy = "continue"
    transport: TransportName = "wire"
    workers: int = 1
    redline: RedlineSpec | None = None


class Quantiles(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Quantiles of one fork's samples, in nanoseconds: Harrell-Davis, and linear interpolation beside it."""

    p50: float
    p90: float
    p99: float
    linear_p50: float
    linear_p90: float
    linear_p99: float


class DriverFigures(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """What the driver itself did in one task of one fork: whether the figures are the cluster's or its own.

    Attributes:
        requests: measured operations that were sent, whatever became of them.
        offered_per_s: at which rate; None without any.
        due_per_s: the rate of the arrivals themselves, which in a short Poisson schedule is not quite the
            target; None in a closed loop.
        possible_per_s: the rate that these and the cluster's answers allowed: what it lacks of due_per_s is
            the cluster's, and what offered_per_s lacks of it the driver's; None in a closed loop.
        lag_p50_ns, lag_p99_ns, lag_max_ns: how late the driver sent a request that was due while its client
            was free, in nanoseconds; quantiles are rounded to a microsecond. In a closed loop, where a
            request is due when the one before has ended, the time between the two. None without any.
        think_share: closed loop: the share of its clients' time that passed between an answer and the next
            request, 0 to 1; None in an open loop, or without any.
        cpu_share: CPU time of the driver over the time of the task, for each of its processes; one process of
            Python threads cannot do more than about 1. In parallel tasks that of all of them. None where no
            time passed.
        gap_s: end of the task before, or node ready, to the first request, seconds; None where unknown.
        workers: processes that its clients worked in.
    """

    requests: int
    offered_per_s: float | None = None
    due_per_s: float | None = None
    possible_per_s: float | None = None
    lag_p50_ns: int | None = None
    lag_p99_ns: int | None = None
    lag_max_ns: int | None = None
    think_share: float | None = None
    cpu_share: float | None = None
    gap_s: float | None = None
    workers: int = 1


class TaskSummary(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """One fork's figures for one task. Everything but the counts is about successful measured requests.

    Attributes:
        schedule: position of the challenge in the fork.
        task: position of the task in the challenge.
        label: the task's name.
        operation: the operation's name.
        samples: successful measured operations.
        warmup_samples: unmeasured operations, successful or not.
        cancelled: operations that the driver itself ended, measured or not; in no other count.
        failures: measured operations that failed, by outcome name.
        retries: measured requests that were sent again because the node had rejected them.
        failure_reasons: the first few distinct reasons, in the words of the engine or the client.
        throughput_per_s: units completed in the measured window over its seconds; None without samples.
        unit: of throughput: `docs` for bulk bodies, `queries` for searches, and so on.
        reported: whether tables show it; administrative operations are there to prepare the others.
        target_per_s: the offered rate of a throttled task; its throughput gets no verdict.
        service_time: send to last byte; None without samples.
        latency: intended start to last byte; None for a closed loop, which has none of its own.
        took: the engine's own time for the same requests.
        processing_time: send until the driver had read the answer; None in records from before it was kept.
        first_byte: send to first byte; None where that is not known.
        pages: service time of the single requests of operations that have several; None for all others.
        mean_ns, sd_ns, min_ns, max_ns: of service time.
        lag1: lag-1 autocorrelation of service time; None under 3 samples or when it is constant.
        effective_samples: samples (1 - lag1) / (1 + lag1), at most samples.
        drift: ln(median of the last third / median of the first third) of service time; None under 6 samples.
        hits: total hits where every answer said the same; None when unknown.
        hits_exact: whether the engine counted them all.
        unsupported: the node's own reason when it cannot do this operation at all; None otherwise.
        driver: the driver's own part; None in records from before it was kept.
        redline_per_s: the highest rate that met the objective, where that was searched for: then the other
            figures are those of the last step at that rate; None when there was none.
        redline_end: why the search ended; `found` is the only end whose rate is more than a lower bound.
        redline_text: how it ended, in words; empty when found.
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
    processing_time: Quantiles | None = None
    first_byte: Quantiles | None = None
    pages: Quantiles | None = None
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
    cancelled: int = 0
    retries: int = 0
    unit: str = "queries"
    reported: bool = True
    redline_per_s: float | None = None
    redline_end: RedlineEnd | None = None
    redline_text: str = ""
    driver: DriverFigures | None = None


class CurvePoint(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """One step of a red-line search: what a rate came to.

    Attributes:
        step: its number, from 1; its samples carry it as their task.
        rung: which rate of the grid; the same in all forks but for each block's own shift of the grid.
        phase: what the step was for.
        rate_per_s: offered.
        achieved_per_s: completed of it; None without samples.
        samples: successful measured requests.
        failures: measured requests that failed.
        p50_ns, p90_ns, p99_ns: of latency, from when requests were due; None without samples.
        objective_ns: the percentile that the objective bounds.
        undelayed_ns: the same percentile without the time that the driver itself lost.
        growth: seconds by which latency grew a second; 0.05 is a rate 5 % above what is served.
        verdict: whether it met the objective; `driver-limited` when only the driver's lateness kept it off.
        reason: why it did not; empty for a pass.
    """

    step: int
    rung: int
    phase: Literal["search", "retry", "confirm"]
    rate_per_s: float
    achieved_per_s: float | None
    samples: int
    failures: int
    p50_ns: float | None
    p90_ns: float | None
    p99_ns: float | None
    objective_ns: float | None
    undelayed_ns: float | None
    growth: float
    verdict: StepVerdict
    reason: str = ""


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
    """One node start of a fork, or one use of a cluster that ran already.

    Attributes:
        schedules: positions of the schedules that ran on it.
        start_s: process start to ready, seconds; 0 for a cluster that was not restarted.
        idle_s: waiting for the node to calm down, seconds.
        stop_s: seconds until the process was gone.
        searches_sent: by the driver, warm-up included.
        searches_counted: by the node's own statistics; None when it could not say.
        command: the command line.
        logs: folder with stdout, stderr, GC log and settings, relative to the run; empty for a cluster.
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
        curve: the steps of a red-line search, in order; empty for everything else.
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
    curve: tuple[CurvePoint, ...] = ()


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
    """What a prepared index is, or one that was found on a cluster.

    Attributes:
        key: digest of what makes it interchangeable; empty for one that benchctl did not fill.
        documents: in the primary shards.
        store_bytes: of all segments.
        segments: by shard.
        ingest: how it was filled; with 0 clients for one that benchctl did not fill.
        cached: whether it was there before the run.
    """

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


class PacedLag(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """How late the driver sends on an idle machine, in an open loop.

    Attributes:
        rate_per_s: requests a second.
        lag_p50_ns, lag_p99_ns, lag_max_ns: see `DriverFigures`.
    """

    rate_per_s: float
    lag_p50_ns: int
    lag_p99_ns: int
    lag_max_ns: int


class Calibration(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """What the driver costs on this machine, against a server that does nothing: no figure can be better.

    Attributes:
        error_p50_ns, error_p99_ns: service time as measured beyond the server's own, by one client without
            pauses, nanoseconds; the kernel's part of a loopback connection included.
        cpu_ns_per_request: CPU time of the driver, nanoseconds.
        one_client_per_s: the most requests a second by one client.
        clients: how many the figure that follows is for.
        clients_per_s: the most requests a second by so many; the server shares the machine with them.
        paced: open loops at several rates.
        seconds: that all of it took.
    """

    error_p50_ns: int
    error_p99_ns: int
    cpu_ns_per_request: int
    one_client_per_s: float
    clients: int
    clients_per_s: float
    paced: tuple[PacedLag, ...]
    seconds: float


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
    calibration: Calibration | None = None

    def done(self, variant: str) -> tuple[ForkRecord, ...]:
        """The finished forks of one variant, in block order."""
        found = [fork for fork in self.forks if fork.variant == variant and fork.status == "done"]
        return tuple(sorted(found, key=lambda fork: fork.block))

    def missing(self) -> tuple[tuple[int, str], ...]:
        """(block, variant) of every planned fork that is not done, in block order."""
        have = {(fork.block, fork.variant) for fork in self.forks if fork.status == "done"}
        wanted = [(block, v.name) for block in range(self.plan.forks) for v in self.plan.variants]
        return tuple(pair for pair in wanted if pair not in have)
