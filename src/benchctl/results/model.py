"""The record of a run, written as run.json: plan, environment and forks; the answers of variants."""

from collections.abc import Iterable
from datetime import UTC, datetime
from itertools import count, islice
from typing import Any, Literal

import msgspec

from benchctl.results.answers import Answer
from benchctl.results.figures import Calibration, CurvePoint, TaskSummary
from benchctl.results.metrics import MetricKind
from benchctl.results.plan import Plan, StopSpec
from benchctl.spec import EvidenceKind

C2_LEVEL = 4
"""Of a compilation: the optimising compiler's; 1 to 3 are those of C1, 0 that of a wrapper of native code."""

RECORD_VERSION = 10

FORKS_FOR_VERDICT = 3
"""Replicates a side, under which every verdict is `insufficient`."""


def moment(text: str) -> datetime | None:
    """Return a time of a record, in UTC; None for a text that is not a time."""
    try:
        instant = datetime.fromisoformat(text)
        # What has no zone was written in UTC.
        return (instant if instant.tzinfo else instant.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


class OtherLoad(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """CPU that processes other than nodes and benchctl used during a fork."""

    cpus: int  # of the host
    used: float  # CPUs, mean over the fork
    # Name -> the same of the largest processes, those of a name together, a lone one with its pid; what ended
    # before the fork did, or cannot be seen from inside a container, has no name.
    processes: dict[str, float]
    # CPUs that benchctl's children used, mean over the fork: the nodes, or JVMs of microbenchmarks.
    own: float = 0.0

    @property
    def share(self) -> float:
        """Ratio to the nodes' own CPU; to one CPU where there are no nodes."""
        return self.used / (self.own or 1.0)


class BootRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """A node start of a fork, or one use of a cluster that ran already."""

    schedules: tuple[int, ...]
    start_s: float  # process start to ready, seconds; 0 for a cluster that was not restarted
    idle_s: float  # waiting for the node to calm down, seconds
    stop_s: float
    searches_sent: int  # by the driver, warm-up included
    searches_counted: int | None  # by the node's own statistics; None when it could not say
    command: tuple[str, ...]
    logs: str  # folder with stdout, stderr, GC log and settings, relative to the run; empty for a cluster
    # When its process was started, on the clock of the fork's samples: what times in evidence count from.
    # Uptimes in a JVM's logs count from somewhat later, for OpenSearch by a second or two, whose start
    # script becomes the JVM. None for a cluster.
    origin_ns: int | None = None
    # Data streams of the track that were plain indices, since the node has none.
    stand_ins: tuple[str, ...] = ()
    # Share of the index that the page cache held when it was started, 0 to 1; None where that was left as
    # it was.
    resident: float | None = None
    resident_begun: float | None = None  # the same when its first task began


ForkStatus = Literal["done", "failed"]


class StoredFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """A file of a fork as it was written: what is missing, damaged, or another file, is told by it."""

    size_bytes: int
    sha256: str


class ForkRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """A pass of one variant."""

    variant: str  # name of the variant
    block: int  # number of the block, and of the fork within its variant, from 0
    summaries: tuple[TaskSummary, ...]  # one per task
    position: int = 0  # place within the block, from 0
    status: ForkStatus = "done"  # done, or failed; only forks that are done are compared
    reason: str = ""  # why it failed; empty when done
    started: str = ""  # wall clock, ISO 8601, a label only
    wall_s: float = 0.0  # the whole fork, seconds; of forks at the same time, a share
    requests_s: float = 0.0  # seconds in tasks and their warm-up challenges
    overhead_s: float = 0.0  # seconds without node start, stop, requests and index copy
    copy_s: float = 0.0  # copying the prepared index, seconds
    boots: tuple[BootRecord, ...] = ()
    samples: str | None = None  # the Parquet file, relative to the run; None when not kept
    curve: tuple[CurvePoint, ...] = ()  # the steps of a red-line search, in order; empty for everything else
    index_build: int = 0  # which build of the prepared index it ran on, from 0
    # Collected with its figures, in the run's `evidence/BLOCK-VARIANT/boot-N`.
    evidence: tuple[EvidenceKind, ...] = ()
    # CPU of other processes; None where unknown, as on other hosts and in some containers.
    others: OtherLoad | None = None
    # Its samples and evidence as they were written, by their path relative to the run.
    files: dict[str, StoredFile] = {}


class IngestCosts(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """The times of an ingest's bulk requests, of which several were under way at a time."""

    took_s: float  # the engine's own seconds, summed up
    answered_s: float
    # The client's own: to read and frame bodies, which senders need not wait for, or to encode documents
    # and decode answers; None where it was not read.
    client_s: float | None = None

    @property
    def network_s(self) -> float:
        """From sending requests to their answers beyond the engine's own seconds."""
        return max(self.answered_s - self.took_s, 0.0)


class IngestReport(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """A prepared index's filling: the client's view beside the engine's own clocks."""

    documents: int
    body_bytes: int
    clients: int
    ingest_s: float  # first bulk request to last answer, seconds
    # `refresh_s`, `force_merge_s`, `flush_s`: the client's seconds for the steps that follow.
    refresh_s: float
    force_merge_s: float
    flush_s: float
    engine_indexing_s: float
    engine_refresh_s: float
    engine_merge_s: float
    engine_flush_s: float
    costs: IngestCosts | None = None  # None where nothing was sent

    @property
    def docs_per_s(self) -> float:
        """Documents a second of sending; 0 where nothing was sent."""
        return self.documents / self.ingest_s if self.ingest_s > 0 else 0.0

    @property
    def rest_s(self) -> float | None:
        """Return the engine's own seconds beyond indexing; None where nothing was sent."""
        return None if self.costs is None else max(self.costs.took_s - self.engine_indexing_s, 0.0)


class SegmentFacts(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """A segment, as the engine's Lucene sees it."""

    documents: int
    size_bytes: int
    lucene: str
    compound: bool = False  # whether its files are packed into one; engines differ in when they do that


class IndexFacts(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """A prepared index, or one that was found on a cluster, in figures."""

    key: str  # digest of what makes builds interchangeable; empty for one that benchctl did not fill
    documents: int  # documents in the primary shards
    store_bytes: int
    segments: tuple[SegmentFacts, ...]
    ingest: IngestReport  # how it was filled; with 0 clients for one that benchctl did not fill
    cached: bool = False  # it was there before the run

    def value_of(self, figure: MetricKind) -> float | None:
        """Return a figure of index builds, in its unit; None where it was not kept."""
        if figure.built.startswith("ingest.") and not self.ingest.ingest_s:
            return None
        value: Any = self
        for name in figure.built.split("."):
            value = None if value is None else getattr(value, name)
        return None if value is None else float(value) / figure.per_unit


class InForce(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """Mappings and settings of a variant's index and nodes, by name, such as `mapping:message.type`.

    Of several indices, all values of a name, separated by `|`.
    """

    given: dict[str, str] = {}  # mappings, and settings that the track, the variant or somebody else set
    # Those of settings that decide what a search costs and have their default, or follow from others.
    usual: dict[str, str] = {}


class EngineFacts(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """A variant as it was resolved: asked of the node itself where possible."""

    variant: str
    version: str
    build: str
    lucene: str
    archive_sha256: str  # of the distribution's archive; of the file listing for a folder
    jdk: str
    jvm_flags: tuple[str, ...]  # what the node's JVM was really started with
    modules: tuple[str, ...]
    # The published checksum that the archive was compared with, such as `sha512`; `none` when its source
    # publishes none; empty for a running cluster.
    verified_by: str = ""
    jars: dict[str, str] = {}  # file name in `lib/` -> SHA-256 of what took its place
    plugins: dict[str, str] = {}  # name -> version of those that were installed beyond the distribution's own
    # Module that was added -> coordinates of its jars, `group:artifact:version`, to their SHA-256; the
    # module's own jar is of the commit `build`.
    added_modules: dict[str, dict[str, str]] = {}
    # How its nodes were started, such as `direct, classes archived`; empty where nobody knows.
    start: str = ""
    # Node settings by which benchctl switched off security and background services of the distribution.
    switched_off: dict[str, bool | int] = {}
    # After its first fork; empty where a cluster does not show it, and of microbenchmarks.
    in_force: InForce = InForce()


class Environment(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """The place of a run. `fingerprint` covers what must be alike for two runs to be comparable."""

    fingerprint: str
    hostname: str  # where it was measured
    kernel: str
    distribution: str
    cpu_model: str  # of the host
    cpus: int  # of the host
    governor: str | None
    memory_bytes: int
    virtualization: str | None
    python: str
    benchctl: str  # version of benchctl
    benchctl_commit: str | None
    libcurl: str
    load_before: tuple[float, float, float]
    other_java: tuple[str, ...] = ()


class AnswerFinding(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """An operation on which two variants return different results, or one cannot do it or refuses it."""

    operation: str
    variant: str
    baseline: str  # the variant that it was held against
    kind: Literal["different", "unsupported", "failed"]
    detail: str  # what is expected against what was found, or the node's reason


class AnswerCheck(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """The unmeasured comparison of answers."""

    operations: tuple[str, ...]
    answers: dict[str, dict[str, Answer]]  # operation -> variant -> its answer
    findings: tuple[AnswerFinding, ...]

    @property
    def without_hits(self) -> tuple[str, ...]:
        """Operations that match no document on any variant."""
        totals = {
            name: [one.total for one in answers.values() if one.total is not None]
            for name, answers in self.answers.items()
        }
        return tuple(name for name, found in totals.items() if found and not any(found))

    @property
    def refused(self) -> frozenset[str]:
        """Operations that a variant cannot do or refuses."""
        return frozenset(finding.operation for finding in self.findings if finding.kind != "different")


RunStatus = Literal["running", "complete", "interrupted", "failed"]


class LoadHostFacts(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """A host that load came from, or that nodes were on."""

    cores: int
    memory_bytes: int
    versions: dict[str, str]  # name -> version, of what makes the load there, or has the nodes
    round_trip_ns: int


Looks = int | None
"""Times that figures were seen, the present one included; None for any number, as rules see every block's."""


class RunRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """Record of a run: everything but its samples and logs."""

    record_version: int
    id: str  # id of the run
    created: str  # wall clock, ISO 8601
    status: RunStatus  # running, complete, interrupted or failed
    plan: Plan
    environment: Environment
    engines: tuple[EngineFacts, ...] = ()
    indices: dict[str, IndexFacts] = {}  # variant -> the first build of its prepared index
    answers: AnswerCheck | None = None
    forks: tuple[ForkRecord, ...] = ()
    caveats: tuple[str, ...] = ()
    timings: dict[str, float] = {}
    calibration: Calibration | None = None
    tags: tuple[str, ...] = ()  # words that the user gave it, to be found again by
    # Variant -> all builds of its prepared index, where there are several.
    builds: dict[str, tuple[IndexFacts, ...]] = {}
    # Why it ended with fewer forks than planned, as its plan's stop rule said; empty for all.
    stopped: str = ""
    looks: Looks = 1
    # Numbers of blocks that it has no part in: other runs of its experiment have them.
    skipped: tuple[int, ...] = ()
    # Of hosts that load came from and benchctl did not run on, by name.
    load_hosts: dict[str, LoadHostFacts] = {}

    def builds_of(self, variant: str) -> tuple[IndexFacts, ...]:
        """Return all builds of a variant's prepared index; none if a challenge makes it."""
        return self.builds.get(variant) or tuple(
            self.indices[name] for name in (variant,) if name in self.indices
        )

    def done(self, variant: str) -> tuple[ForkRecord, ...]:
        """Return the finished forks of one variant, in block order."""
        forks = [fork for fork in self.forks if fork.variant == variant and fork.status == "done"]
        return tuple(sorted(forks, key=lambda fork: fork.block))

    def compared(self, variant: str) -> tuple[ForkRecord, ...]:
        """Return the finished forks whose figures count, in block order, without those for evidence."""
        return tuple(fork for fork in self.done(variant) if not self.plan.is_extra(fork.block))

    def has(self, variant: str) -> bool:
        """Return whether a variant has something to compare: forks, or builds where there is nothing else."""
        return bool(self.compared(variant) or (not self.plan.schedules and self.builds_of(variant)))

    @property
    def unfinished(self) -> str:
        """Return the reason in words that it is not finished; empty when it is."""
        return "" if self.status == "complete" else self.status

    def unsound(self, variant: str) -> str:
        """Return why other results of a variant are preferred; empty when these are sound.

        Sound are results of a finished run, from as many plain forks as a verdict takes.
        """
        if self.unfinished:
            return self.unfinished
        if self.plan.test_mode:
            return "it was a --test-mode run"
        if not self.plan.schedules:
            return "it only built indices"
        if any(self.plan.evidence_in(fork.block) for fork in self.compared(variant)):
            return "its forks collected evidence"
        count = len(self.compared(variant))
        if count >= FORKS_FOR_VERDICT:
            return ""
        words = f"{count} fork{'' if count == 1 else 's'}"
        return f"it has {words} of {variant}, and a verdict takes {FORKS_FOR_VERDICT}"

    @property
    def own_blocks(self) -> tuple[int, ...]:
        """The blocks whose figures count: those planned, or begun once it stopped."""
        free = (block for block in count() if not self.plan.is_extra(block) and block not in self.skipped)
        own = tuple(islice(free, self.plan.forks))
        if not self.stopped:
            return own
        last = max((fork.block for fork in self.forks if not self.plan.is_extra(fork.block)), default=-1)
        return tuple(block for block in own if block <= last)

    @property
    def block_numbers(self) -> tuple[int, ...]:
        """The blocks that belong to it, those for evidence behind all others."""
        return (*self.own_blocks, *self.plan.extra_blocks)

    @property
    def blocks(self) -> int:
        """Return the number of these blocks."""
        return len(self.block_numbers)

    @property
    def total(self) -> int:
        """Forks of all variants that belong to it."""
        return len(self._wanted())

    @property
    def total_text(self) -> str:
        """Return how many forks belong to it, for readers; of a run that time is yet to end, the most."""
        by_time = self.plan.by_time and self.unfinished and not self.stopped
        return f"at most {self.total}" if by_time else str(self.total)

    @property
    def left_out_of_pollution(self) -> frozenset[str]:
        """Operations of the pollution that no variant runs, since a node refuses them."""
        return frozenset() if self.answers is None else self.plan.polluting & self.answers.refused

    def missing(self) -> tuple[tuple[int, str], ...]:
        """Return (block, variant) of every fork that is not done, in block order."""
        have = {(fork.block, fork.variant) for fork in self.forks if fork.status == "done"}
        return tuple(pair for pair in self._wanted() if pair not in have)

    def with_blocks(self, blocks: Iterable[int], stop: StopSpec | None) -> "RunRecord":
        """Return the run to be continued with other blocks: its recorded end is removed.

        `blocks` are added behind its own so far; `stop` is the rule from now on.
        """
        own, added = self.own_blocks, [block for block in blocks if not self.plan.is_extra(block)]
        passed = set(range(1 + max(own, default=-1), 1 + max(added, default=-1))) - set(added)
        skipped = {*self.skipped, *(block for block in passed if not self.plan.is_extra(block))}
        evidence = self.plan.evidence
        if evidence is not None and evidence.extra_forks:
            evidence = msgspec.structs.replace(evidence, first=self.plan.extra_blocks.start)
        return msgspec.structs.replace(
            self,
            plan=msgspec.structs.replace(
                self.plan, forks=len(own) + len(added), stop=stop, evidence=evidence
            ),
            status="running",
            stopped="",
            caveats=tuple(text for text in self.caveats if text != self.stopped),
            skipped=tuple(sorted(skipped)),
        )

    def _wanted(self) -> list[tuple[int, str]]:
        return [(block, spec.name) for block in self.block_numbers for spec in self.plan.variants]


def stray_boots(fork: ForkRecord) -> tuple[BootRecord, ...]:
    """Return node starts whose node counted other searches than it was sent.

    A node does not count what it refuses to run, nor reliably what was cut off, so fewer are no surprise
    after failed and cancelled requests; more always are: a search that nobody sent is one that the JIT
    learned from.
    """
    refused = any(
        summary.failures or summary.cancelled or summary.unsupported is not None for summary in fork.summaries
    )
    return tuple(
        boot
        for boot in fork.boots
        if boot.searches_counted is not None
        and (
            boot.searches_counted > boot.searches_sent
            or (boot.searches_counted < boot.searches_sent and not refused)
        )
    )


def unanswered(record: RunRecord) -> tuple[str, ...]:
    """Return tasks of which every measured request of some fork failed, as `task of variant`.

    Without operations that a node cannot do: those are expected of some distributions.
    """
    reasons = [
        f"{summary.label} of {fork.variant}"
        for fork in record.forks
        for summary in fork.summaries
        if fork.status == "done" and summary.samples == 0 and summary.failures and summary.unsupported is None
    ]
    return tuple(dict.fromkeys(reasons))
