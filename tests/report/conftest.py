"""Hand-made runs: their values follow a plain rule, so that a reader can check the golden texts."""

from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import pytest

from benchctl.results.model import (
    RECORD_VERSION,
    AnswerCheck,
    AnswerFinding,
    BootRecord,
    CorpusSpec,
    EngineFacts,
    Environment,
    ForkRecord,
    HostProbe,
    IndexFacts,
    IngestReport,
    Plan,
    Quantiles,
    RunRecord,
    SegmentFacts,
    TaskSummary,
    VariantSpec,
)
from benchctl.track.model import Challenge, Task

NS_PER_MS = 1e6
TASKS = ("desc_sort_timestamp", "composite-date_histogram-daily", "range")

# Fork after fork, as a factor on the task's typical time.
WOBBLE = (1.0, 1.02, 0.97, 1.01, 0.99)
TYPICAL_MS = {
    "es": {"desc_sort_timestamp": 9.5, "composite-date_histogram-daily": 25.0, "range": 2.381},
    "os": {"desc_sort_timestamp": 9.6, "composite-date_histogram-daily": 25.1, "range": 3.03},
}


def make_summary(place: tuple[int, int], label: str, mean_ms: float, **changes: Any) -> TaskSummary:
    mean_ns = mean_ms * NS_PER_MS
    quantiles = Quantiles(mean_ns, mean_ns * 1.1, mean_ns * 1.3, mean_ns, mean_ns * 1.1, mean_ns * 1.3)
    base = TaskSummary(
        schedule=place[0],
        task=place[1],
        label=label,
        operation=label,
        samples=300,
        throughput_per_s=1000 / mean_ms,
        service_time=quantiles,
        mean_ns=mean_ns,
        sd_ns=mean_ns * 0.1,
        min_ns=mean_ns * 0.8,
        max_ns=mean_ns * 1.5,
        lag1=0.0,
        effective_samples=300.0,
        drift=0.0,
    )
    return msgspec.structs.replace(base, **changes)


def make_fork(variant: str, block: int, summaries: Sequence[TaskSummary], **changes: Any) -> ForkRecord:
    probe = HostProbe(100_000_000, 100_000_000, 0.0, 0.1, None)
    boot = BootRecord((0,), 4.5, 0.5, 1.0, 900, 900, ("java",), f"logs/{block}-{variant}")
    base = ForkRecord(
        variant=variant,
        block=block,
        position=0 if variant == "es" else 1,
        status="done",
        reason="",
        started="2026-01-01T00:00:00Z",
        wall_s=20.0,
        requests_s=13.0,
        overhead_s=0.5,
        copy_s=0.01,
        probe_s=0.4,
        boots=(boot,),
        summaries=tuple(summaries),
        probes=(probe, probe),
        samples=None,
    )
    return msgspec.structs.replace(base, **changes)


def make_plan(variants: Sequence[str] = ("es", "os"), forks: int = 5, **changes: Any) -> Plan:
    specs = {
        "es": VariantSpec("es", "elasticsearch", "8.11.0"),
        "os": VariantSpec("os", "opensearch", "2.11.0"),
        "noinline": VariantSpec("noinline", "elasticsearch", "8.11.0", jvm_flags=("-XX:-Inline",)),
    }
    base = Plan(
        variants=tuple(specs[name] for name in variants),
        schedules=(Challenge("big5rangedebug", tuple(Task(name, iterations=300) for name in TASKS)),),
        warmup_challenges=(),
        restart="challenge",
        forks=forks,
        seed=7,
        heap_mb=1024,
        track="big5",
        track_digest="t",
        corpus=CorpusSpec(seed=1, documents=1_000_000, generator_version=1, digest="c0ffee" * 4),
        segments=1,
        params={"iterations": 300},
    )
    return msgspec.structs.replace(base, **changes)


def make_environment() -> Environment:
    return Environment(
        fingerprint="f",
        hostname="lab1",
        kernel="6.1.0",
        distribution="Debian 12",
        cpu_model="Example CPU 3000",
        cpus=2,
        governor=None,
        memory_bytes=24 * 2**30,
        virtualization="kvm",
        python="3.11.7",
        benchctl="0.1.0",
        benchctl_commit=None,
        libcurl="libcurl/8.5.0",
        load_before=(0.1, 0.2, 0.3),
    )


def make_index(documents: int, lucene: str) -> IndexFacts:
    ingest = IngestReport(documents, documents * 930, 1, 20.0, 0.5, 4.0, 0.2, 31.0, 0.4, 3.9, 0.1)
    return IndexFacts("k", documents, 150 * 2**20, (SegmentFacts(documents, 150 * 2**20, lucene),), ingest)


def make_record(
    variants: Sequence[str] = ("es", "os"),
    forks: int = 5,
    edit: Callable[[TaskSummary, str, int], TaskSummary] | None = None,
    **changes: Any,
) -> RunRecord:
    """A complete run of `big5rangedebug`; `edit` may change each summary."""
    plan = make_plan(variants, forks)
    records = []
    for block in range(forks):
        for name in variants:
            summaries = []
            for task, label in enumerate(TASKS):
                mean_ms = TYPICAL_MS.get(name, TYPICAL_MS["es"])[label] * WOBBLE[(block + task) % 5]
                summary = make_summary((0, task), label, mean_ms)
                summaries.append(edit(summary, name, block) if edit else summary)
            records.append(make_fork(name, block, summaries))
    base = RunRecord(
        record_version=RECORD_VERSION,
        id="20260101-000000-big5rangedebug-abcd",
        created="2026-01-01T00:00:00Z",
        status="complete",
        plan=plan,
        environment=make_environment(),
        engines=(
            EngineFacts(
                "es", "8.11.0", "d9ec3fa628c7", "9.8.0", "a", "Temurin 21.0.8", ("-Xmx1g", "-Des"), ()
            ),
            EngineFacts(
                "os", "2.11.0", "4dcad6dd1fd4", "9.7.0", "b", "Temurin 21.0.8", ("-Xmx1g", "-Dos"), ()
            ),
        ),
        indices={"es": make_index(1_000_000, "9.8.0"), "os": make_index(1_000_000, "9.7.0")},
        answers=AnswerCheck(
            operations=TASKS,
            exact_hits={"range": {"es": 276_000, "os": 276_000}},
            findings=(AnswerFinding("range", "os", "es", "different", "hits.total 276000 and 276001"),),
        ),
        forks=tuple(records),
        timings={"prepare-s": 61.5, "forks-s": 200.0},
    )
    return msgspec.structs.replace(base, **changes)


@pytest.fixture
def record() -> RunRecord:
    return make_record()


@pytest.fixture
def build() -> Callable[..., RunRecord]:
    return make_record


@pytest.fixture
def replan() -> Callable[..., Plan]:
    return make_plan
