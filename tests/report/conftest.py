"""Hand-made runs: their values follow a plain rule, so that a reader can check the golden texts."""

from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import pytest

from benchctl.report.facts import fact_sections
from benchctl.report.table import plain
from benchctl.results.answers import Answer
from benchctl.results.figures import Calibration, PacedLag, TaskSummary
from benchctl.results.model import (
    AnswerCheck,
    AnswerFinding,
    BootRecord,
    EngineFacts,
    ForkRecord,
    IndexFacts,
    IngestReport,
    OtherLoad,
    RunRecord,
    SegmentFacts,
)
from benchctl.results.plan import Plan
from benchctl.stats.analysis import Analysis, Row
from benchctl.stats.compare import Comparison
from benchctl.track.model import Challenge, Task
from builders import (
    CORPUS,
    ES,
    OS,
    make_driver,
    make_fork,
    make_plan,
    make_record,
    make_summary,
    of_requests,
)

TASKS = ("desc_sort_timestamp", "composite-date_histogram-daily", "range")

# Fork after fork, as a factor on the task's typical time.
WOBBLE = (1.0, 1.02, 0.97, 1.01, 0.99)
TYPICAL_MS = {
    "es": {"desc_sort_timestamp": 9.5, "composite-date_histogram-daily": 25.0, "range": 2.381},
    "os": {"desc_sort_timestamp": 9.6, "composite-date_histogram-daily": 25.1, "range": 3.03},
}
VARIANTS = {
    "es": ES,
    "os": OS,
    "noinline": msgspec.structs.replace(ES, name="noinline", jvm_flags=("-XX:-Inline",)),
}


def complete_fork(variant: str, block: int, *summaries: TaskSummary) -> ForkRecord:
    return make_fork(
        variant,
        block,
        *summaries,
        position=0 if variant == "es" else 1,
        started="2026-01-01T00:00:00Z",
        wall_s=20.0,
        requests_s=13.0,
        overhead_s=0.5,
        copy_s=0.01,
        boots=(BootRecord((0,), 4.5, 0.5, 1.0, 900, 900, ("java",), f"logs/{block}-{variant}"),),
        others=OtherLoad(8, 0.05, {"cron": 0.05}, 1.4),
    )


def big5_plan(variants: Sequence[str] = ("es", "os"), forks: int = 5) -> Plan:
    return make_plan(
        variants=tuple(VARIANTS[name] for name in variants),
        schedules=(Challenge("big5rangedebug", tuple(Task(name, iterations=300) for name in TASKS)),),
        forks=forks,
        seed=1,
        heap_mb=1024,
        corpus=msgspec.structs.replace(CORPUS, digest="c0ffee" * 4),
        params={"iterations": 300},
    )


def make_index(documents: int, lucene: str) -> IndexFacts:
    ingest = IngestReport(documents, documents * 930, 1, 20.0, 0.5, 4.0, 0.2, 31.0, 0.4, 3.9, 0.1)
    return IndexFacts("k", documents, 150 * 2**20, (SegmentFacts(documents, 150 * 2**20, lucene),), ingest)


def complete_record(
    variants: Sequence[str] = ("es", "os"),
    forks: int = 5,
    edit: Callable[[TaskSummary, str, int], TaskSummary] | None = None,
    **changes: Any,
) -> RunRecord:
    """A complete run of `big5rangedebug`; `edit` may change each summary."""
    records = []
    for block in range(forks):
        for place, name in enumerate(variants):
            summaries = []
            for task, label in enumerate(TASKS):
                wobble = WOBBLE[(block + task + 2 * place) % 5]
                mean_ms = TYPICAL_MS.get(name, TYPICAL_MS["es"])[label] * wobble
                summary = make_summary(label, mean_ms, task=task, samples=300)
                summaries.append(edit(summary, name, block) if edit else summary)
            records.append(complete_fork(name, block, *summaries))
    base = make_record(
        "20260101-000000-big5rangedebug-abcd",
        status="complete",
        plan=big5_plan(variants, forks),
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
            answers={"range": {"es": Answer(total=276_000), "os": Answer(total=276_000)}},
            findings=(AnswerFinding("range", "os", "es", "different", "hits.total 276000 and 276001"),),
        ),
        forks=tuple(records),
        timings={"prepare-s": 61.5, "forks-s": 200.0},
    )
    return msgspec.structs.replace(base, **changes)


# What tasks of a run may be like: the argument `edit` of `complete_record`.


def difficult(summary: TaskSummary, variant: str, block: int) -> TaskSummary:
    """One noisy task, one that OpenSearch cannot do, one with few samples that had not settled."""
    if summary.label == "desc_sort_timestamp":
        factor = 1 + 0.1 * ((block * 3 + len(variant)) % 5)
        return msgspec.structs.replace(summary, throughput_per_s=(summary.throughput_per_s or 0.0) * factor)
    if summary.label == "range":
        return msgspec.structs.replace(of_requests(summary, 10), drift=-0.3 - 0.001 * block)
    if variant == "os":
        return msgspec.structs.replace(
            summary, samples=0, throughput_per_s=None, service_time=None, unsupported="unknown aggregation"
        )
    return summary


def cold(summary: TaskSummary, _variant: str, block: int) -> TaskSummary:
    return msgspec.structs.replace(of_requests(summary, 10), drift=-0.5 - 0.001 * block)


def driven(summary: TaskSummary, variant: str, block: int) -> TaskSummary:
    """A quiet driver, but for `range`: its clients paused on os, else it was as busy as it can be."""
    driver = make_driver(offered_per_s=summary.throughput_per_s, gap_s=0.008 + 0.001 * block)
    if summary.label == "range":
        changes = {"think_share": 0.08} if variant == "os" else {"cpu_share": 0.9}
        driver = msgspec.structs.replace(
            driver, clients=8, lag_p50_ns=260_000, lag_p99_ns=310_000, lag_max_ns=14_000_000, **changes
        )
    return msgspec.structs.replace(summary, driver=driver)


CALIBRATION = Calibration(
    error_p50_ns=41_000,
    error_p99_ns=95_000,
    cpu_ns_per_request=28_400,
    one_client_per_s=14_800.4,
    clients=8,
    clients_per_s=30_120.0,
    paced=(PacedLag(100.0, 30_000, 160_000, 412_000), PacedLag(1000.0, 22_000, 140_000, 1_530_000)),
    seconds=2.9,
)


def on_builds(record: RunRecord, builds: int) -> RunRecord:
    """Put the forks on the builds in turn."""
    forks = tuple(msgspec.structs.replace(fork, index_build=fork.block % builds) for fork in record.forks)
    return msgspec.structs.replace(record, forks=forks)


def changed(analysis: Analysis, change: Callable[[Row, Comparison], Comparison]) -> Analysis:
    """The same rows with other comparisons."""
    rows = tuple(
        msgspec.structs.replace(row, comparisons=tuple(change(row, one) for one in row.comparisons))
        for row in analysis.rows
    )
    return msgspec.structs.replace(analysis, rows=rows)


@pytest.fixture
def record() -> RunRecord:
    return complete_record()


@pytest.fixture
def build() -> Callable[..., RunRecord]:
    return complete_record


def fact_lines(record: RunRecord, width: int = 1000) -> list[str]:
    """The facts of a run, as a terminal of a width shows them."""
    return plain([fact_sections(record)], width).splitlines()
