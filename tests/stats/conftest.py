"""Builders of samples, summaries and forks, with plain values for what a test does not care about."""

from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import numpy as np
import pytest

from benchctl.results.model import CorpusSpec, ForkRecord, Plan, Quantiles, TaskSummary, VariantSpec
from benchctl.results.samples import Columns, empty_columns
from benchctl.track.model import Challenge, Task

NS_PER_MS = 1e6


def make_samples(durations_ns: Sequence[int], **columns: Any) -> Columns:
    """Back-to-back requests of one client, unless the columns say otherwise."""
    ends = np.cumsum(np.asarray(durations_ns, dtype=np.int64))
    made = empty_columns(len(durations_ns))
    made["end_ns"][:] = ends
    made["start_ns"][:] = ends - np.asarray(durations_ns)
    made["intended_ns"][:] = made["start_ns"]
    made["took_ms"][:] = -1
    made["hits"][:] = -1
    for name, values in columns.items():
        made[name][:] = values
    return made


def make_summary(
    mean_ms: float, label: str = "range", place: tuple[int, int] = (0, 0), **changes: Any
) -> TaskSummary:
    mean_ns = mean_ms * NS_PER_MS
    base = TaskSummary(
        schedule=place[0],
        task=place[1],
        label=label,
        operation=label,
        samples=200,
        throughput_per_s=1000 / mean_ms,
        service_time=Quantiles(*(mean_ns * factor for factor in (1, 1.1, 1.3, 1, 1.1, 1.3))),
        mean_ns=mean_ns,
        sd_ns=mean_ns * 0.1,
        lag1=0.0,
        effective_samples=200.0,
        drift=0.0,
    )
    return msgspec.structs.replace(base, **changes)


def make_fork(variant: str, block: int, *summaries: TaskSummary, **changes: Any) -> ForkRecord:
    base = ForkRecord(
        variant=variant,
        block=block,
        position=0,
        status="done",
        reason="",
        started="",
        wall_s=1.0,
        requests_s=1.0,
        overhead_s=0.0,
        copy_s=0.0,
        probe_s=0.0,
        boots=(),
        summaries=summaries,
        probes=(),
        samples=None,
    )
    return msgspec.structs.replace(base, **changes)


def make_plan(*tasks: Task, **changes: Any) -> Plan:
    base = Plan(
        variants=(VariantSpec("es", "elasticsearch", "8.11.0"), VariantSpec("os", "opensearch", "2.11.0")),
        schedules=(Challenge("c", tasks),),
        warmup_challenges=(),
        restart="challenge",
        forks=5,
        seed=1,
        heap_mb=512,
        track="big5",
        track_digest="t",
        corpus=CorpusSpec(seed=1, documents=1_000_000, generator_version=1, digest="c"),
        segments=1,
        params={},
    )
    return msgspec.structs.replace(base, **changes)


@pytest.fixture
def samples() -> Callable[..., Columns]:
    return make_samples


@pytest.fixture
def summary() -> Callable[..., TaskSummary]:
    return make_summary


@pytest.fixture
def fork() -> Callable[..., ForkRecord]:
    return make_fork


@pytest.fixture
def plan() -> Callable[..., Plan]:
    return make_plan
