"""Parts of a run's record made by hand: plain values, and what a test cares about by keyword."""

import math
from typing import Any

import msgspec

from benchctl.results.figures import DriverFigures, Quantiles, TaskSummary
from benchctl.results.model import RECORD_VERSION, AnswerCheck, Environment, ForkRecord, RunRecord
from benchctl.results.plan import CorpusSpec, Plan, VariantSpec
from benchctl.track.model import Challenge, Task

NS_PER_MS = 1e6

ES = VariantSpec("es", "elasticsearch", "8.11.0")
OS = VariantSpec("os", "opensearch", "2.11.0")
CORPUS = CorpusSpec(seed=1, documents=1_000_000, generator_version=1, digest="c")


def make_plan(**changes: Any) -> Plan:
    """Two forks of both engines, three requests each."""
    base = Plan(
        variants=(ES, OS),
        schedules=(Challenge("c", (Task("range", iterations=3),)),),
        warmup_challenges=(),
        restart="challenge",
        forks=2,
        seed=1,
        heap_mb=512,
        track="big5",
        track_digest="t",
        corpus=CORPUS,
        segments=1,
        params={},
    )
    return msgspec.structs.replace(base, **changes)


def make_environment(**changes: Any) -> Environment:
    """A host on which nothing is remarkable."""
    base = Environment(
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
    return msgspec.structs.replace(base, **changes)


def make_summary(label: str, mean_ms: float, **changes: Any) -> TaskSummary:
    """The fork's first task, by one client without pauses; its figures are in proportion to the mean."""
    mean_ns = mean_ms * NS_PER_MS
    base = TaskSummary(
        schedule=0,
        task=0,
        label=label,
        operation=label,
        samples=200,
        throughput_per_s=1000 / mean_ms,
        units_per_request=1.0,
        service_time=Quantiles(*(mean_ns * factor for factor in (1, 1.1, 1.3))),
        mean_ns=mean_ns,
        drift=0.0,
    )
    return msgspec.structs.replace(of_requests(base, changes.get("samples") or 200), **changes)


def of_requests(summary: TaskSummary, samples: int) -> TaskSummary:
    """Return the same figures of so many requests, and their errors as of log-normal ones of sigma 0.1."""
    errors = [factor / math.sqrt(samples) for factor in (0.12, 0.17, 0.37)]
    values = (summary.service_time.at(share) for share in (0.5, 0.9, 0.99))
    return msgspec.structs.replace(summary, samples=samples, service_time=Quantiles(*values, *errors))


def make_driver(**changes: Any) -> DriverFigures:
    """A driver that was hardly there: one client's closed loop of 10 ms."""
    base = DriverFigures(
        requests=200,
        offered_per_s=100.0,
        lag_p50_ns=40_000,
        lag_p99_ns=90_000,
        lag_max_ns=400_000,
        think_share=0.004,
        cpu_share=0.01,
        gap_s=0.008,
    )
    return msgspec.structs.replace(base, **changes)


def make_fork(variant: str, block: int, *summaries: TaskSummary, **changes: Any) -> ForkRecord:
    """A fork that is done, of which nothing is known but its summaries."""
    base = ForkRecord(variant, block, summaries)
    return msgspec.structs.replace(base, **{"wall_s": 1.0, "requests_s": 1.0} | changes)


def make_record(run_id: str = "r", **changes: Any) -> RunRecord:
    """A run that has just begun."""
    base = RunRecord(
        record_version=RECORD_VERSION,
        id=run_id,
        created="2026-01-01T00:00:00Z",
        status="running",
        plan=make_plan(),
        environment=make_environment(),
    )
    return msgspec.structs.replace(base, **changes)


def exact_hits(check: AnswerCheck) -> dict[str, dict[str, int]]:
    """The documents matched, by operation and variant, where known."""
    return {
        operation: {name: one.total for name, one in answers.items() if one.total is not None}
        for operation, answers in check.answers.items()
    }
