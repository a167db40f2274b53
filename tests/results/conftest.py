"""Records to choose from, made by hand."""

from collections.abc import Callable

import pytest

from benchctl.results.model import FORKS_FOR_VERDICT, ForkRecord, RunRecord
from builders import make_fork, make_record

RecordMaker = Callable[..., RunRecord]


@pytest.fixture
def record() -> RecordMaker:
    """A maker of records: record(id, 'es', 'os') is finished and has done forks of both."""

    def make(
        run_id: str = "r", *variants: str, status: str = "complete", count: int = FORKS_FOR_VERDICT
    ) -> RunRecord:
        forks = tuple(make_fork(variant, block) for variant in variants for block in range(count))
        return make_record(run_id, status=status, forks=forks)

    return make


@pytest.fixture
def fork() -> Callable[..., ForkRecord]:
    return make_fork
