"""Records to choose from, made by hand."""

from collections.abc import Callable

import msgspec
import pytest

from benchctl.results.model import (
    RECORD_VERSION,
    CorpusSpec,
    Environment,
    ForkRecord,
    Plan,
    RunRecord,
    VariantSpec,
)
from benchctl.track.model import Challenge, Task


def make_record(run_id: str = "r", status: str = "running") -> RunRecord:
    plan = Plan(
        variants=(VariantSpec("es", "elasticsearch", "8.11.0"), VariantSpec("os", "opensearch", "2.11.0")),
        schedules=(Challenge("c", (Task("range", iterations=3),)),),
        warmup_challenges=(),
        restart="challenge",
        forks=2,
        seed=1,
        heap_mb=512,
        track="big5",
        track_digest="d",
        corpus=CorpusSpec(seed=1, documents=10, generator_version=1, digest="c"),
        segments=1,
        params={"iterations": 3},
    )
    environment = Environment(
        fingerprint="f",
        hostname="h",
        kernel="k",
        distribution="d",
        cpu_model="c",
        cpus=2,
        governor=None,
        memory_bytes=1,
        virtualization=None,
        python="3",
        benchctl="0",
        benchctl_commit=None,
        libcurl="8",
        load_before=(0.0, 0.0, 0.0),
    )
    return RunRecord(RECORD_VERSION, run_id, "2026-01-01T00:00:00Z", status, plan, environment)


def make_fork(variant: str, block: int, status: str = "done") -> ForkRecord:
    return ForkRecord(
        variant=variant,
        block=block,
        position=0,
        status=status,
        reason="",
        started="",
        wall_s=1.0,
        requests_s=1.0,
        overhead_s=0.0,
        copy_s=0.0,
        probe_s=0.0,
        boots=(),
        summaries=(),
        probes=(),
        samples=None,
    )


RecordMaker = Callable[..., RunRecord]


@pytest.fixture
def record() -> RecordMaker:
    """A maker of records: record(id, 'es', 'os') has done forks of both."""

    def make(run_id: str = "r", *variants: str, status: str = "running") -> RunRecord:
        forks = tuple(make_fork(variant, 0) for variant in variants)
        return msgspec.structs.replace(make_record(run_id, status), forks=forks)

    return make


@pytest.fixture
def fork() -> Callable[..., ForkRecord]:
    return make_fork
