"""Experiments on disk."""

from pathlib import Path

import msgspec
import pytest

from benchctl.errors import BenchctlError, UsageError
from benchctl.experiment.record import (
    EXPERIMENT_VERSION,
    RECORD_NAME,
    ExperimentFolder,
    ExperimentRecord,
    ExperimentSpec,
    ExperimentStore,
    Measurement,
)
from builders import ES


@pytest.fixture
def store(tmp_path: Path) -> ExperimentStore:
    return ExperimentStore(tmp_path / "experiments")


def record(name: str, experiment_id: str) -> ExperimentRecord:
    spec = ExperimentSpec(
        name=name,
        title="T",
        forks=1,
        docs=1,
        heap="256m",
        seed=1,
        variants=(ES,),
        measurements=(Measurement(name="m", variants=("es",), challenges=("c",)),),
    )
    return ExperimentRecord(id=experiment_id, created="", status="running", spec=spec)


def made(store: ExperimentStore, name: str, second: int) -> ExperimentFolder:
    folder = store.create(name, f"20261121-0000{second:02d}")
    folder.save(record(name, folder.path.name))
    return folder


def test_a_record_is_read_as_it_was_written(store: ExperimentStore):
    folder = made(store, "a", 1)
    assert folder.load() == record("a", folder.path.name)
    assert [path.name for path in folder.path.iterdir()] == [RECORD_NAME]


def test_an_id_is_short_enough_for_a_tag(store: ExperimentStore):
    folder = made(store, "x" * 200, 1)
    assert len(f"experiment-{folder.path.name}") <= 64


def test_executions_are_found_by_id_its_beginning_name_path_and_latest(
    store: ExperimentStore, tmp_path: Path
):
    first, second, other = made(store, "a", 1), made(store, "a", 2), made(store, "b", 3)
    find = lambda name: store.find(name, pytest.fail)  # noqa: E731 - short, and used six times
    assert find(first.path.name) == first
    assert find("20261121-000002") == second
    assert find("a") == second
    assert find("latest") == other
    assert find(str(first.path)) == first
    with pytest.raises(UsageError, match="'2026' is ambiguous: it matches 3 executions"):
        find("2026")
    with pytest.raises(UsageError, match="no such execution 'c' in"):
        find("c")
    assert list(tmp_path.iterdir()) == [store.root]


def test_a_damaged_record_is_told_and_passed_over(store: ExperimentStore):
    whole, broken = made(store, "a", 1), made(store, "a", 2)
    broken.record_path.write_text(f'{{"record-version": {EXPERIMENT_VERSION}, "id": 7}}')
    told: list[str] = []
    assert [folder for folder, _ in store.records(told.append)] == [whole]
    assert len(told) == 1
    assert f"{broken.record_path} is damaged" in told[0]


def test_another_version_is_refused(store: ExperimentStore):
    folder = made(store, "a", 1)
    folder.save(msgspec.structs.replace(folder.load(), record_version=EXPERIMENT_VERSION - 1))
    with pytest.raises(BenchctlError, match=f"record version {EXPERIMENT_VERSION - 1} "):
        folder.load()
