"""Records of runs that were planned and never started."""

from collections.abc import Callable

import pytest

from benchctl.results.model import RECORD_VERSION, CorpusSpec, RunRecord, VariantSpec
from benchctl.run.host import describe_host
from benchctl.run.plan import PlanOptions, plan_run


@pytest.fixture
def record() -> Callable[..., RunRecord]:
    """A maker of records without forks: record('id')."""
    options = PlanOptions(
        variants=(VariantSpec("es", "elasticsearch", "8.11.0"), VariantSpec("os", "opensearch", "2.11.0")),
        challenges=("range-only-short",),
        warmup_challenges=(),
        restart="challenge",
        forks=2,
        seed=1,
        heap_mb=512,
        track="big5",
        corpus=CorpusSpec(1, 1000, 1, "x"),
        segments=1,
        params={},
    )
    plan, _ = plan_run(options)

    def make(run_id: str = "r") -> RunRecord:
        return RunRecord(RECORD_VERSION, run_id, "2026-01-01T00:00:00Z", "running", plan, describe_host())

    return make
