"""Records to choose from, made by hand."""

from collections.abc import Callable

import pytest

from benchctl.results.model import ForkRecord, RunRecord
from builders import make_fork, make_record

RecordMaker = Callable[..., RunRecord]


@pytest.fixture
def record() -> RecordMaker:
    """A maker of records: record(id, 'es', 'os') has done forks of both."""

    def make(run_id: str = "r", *variants: str, status: str = "running") -> RunRecord:
        forks = tuple(make_fork(variant, 0) for variant in variants)
        return make_record(run_id, status=status, forks=forks)

    return make


@pytest.fixture
def fork() -> Callable[..., ForkRecord]:
    return make_fork
