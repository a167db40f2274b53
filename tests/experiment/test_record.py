"""Experiments on disk; references of comparisons to tasks."""

from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchctl.errors import BenchctlError, UsageError
from benchctl.experiment.record import (
    EXPERIMENT_VERSION,
    RECORD_NAME,
    ExperimentFolder,
    ExperimentRecord,
    ExperimentSpec,
    ExperimentStore,
    Measurement,
    TaskRef,
)
from benchctl.track.model import Challenge, Task
from made_experiment import made_plan


@pytest.fixture
def store(tmp_path: Path) -> ExperimentStore:
    return ExperimentStore(tmp_path / "experiments")


def record(name: str, experiment_id: str) -> ExperimentRecord:
    spec = ExperimentSpec(name=name, title="T", measurements={"m": Measurement(variants=("es",))})
    return ExperimentRecord(id=experiment_id, created="", status="running", spec=spec)


def made(store: ExperimentStore, name: str, second: int) -> ExperimentFolder:
    folder = store.new(name, f"20261121-0000{second:02d}")
    folder.save(record(name, folder.path.name))
    return folder


def test_a_record_is_read_as_it_was_written(store: ExperimentStore):
    folder = made(store, "a", 1)
    assert folder.load() == record("a", folder.path.name)
    assert [path.name for path in folder.path.iterdir()] == [RECORD_NAME]


def test_an_id_is_short_enough_for_a_tag(store: ExperimentStore):
    folder = made(store, "x" * 200, 1)
    assert len(f"experiment-{folder.path.name}") <= 64


def test_executions_are_found_by_id_its_beginning_path_and_latest(store: ExperimentStore, tmp_path: Path):
    first, second, other = made(store, "a", 1), made(store, "a", 2), made(store, "b", 3)
    assert store.find(first.path.name) == first
    assert store.find("20261121-000002") == second
    assert store.find("latest") == other
    assert store.find(str(first.path)) == first
    with pytest.raises(UsageError, match="'2026' is ambiguous: it matches 3 executions"):
        store.find("2026")
    with pytest.raises(UsageError, match="no such execution 'c' in"):
        store.find("c")
    assert list(tmp_path.iterdir()) == [store.root]


def test_a_damaged_record_is_told_and_passed_over(store: ExperimentStore):
    whole, broken = made(store, "a", 1), made(store, "a", 2)
    (broken.path / RECORD_NAME).write_text(f'{{"record-version": {EXPERIMENT_VERSION}, "id": 7}}')
    told: list[str] = []
    assert [folder for folder, _ in store.records(told.append)] == [whole]
    assert len(told) == 1
    assert f"{broken.path / RECORD_NAME} is damaged" in told[0]


def test_another_version_is_refused(store: ExperimentStore):
    folder = made(store, "a", 1)
    folder.save(msgspec.structs.replace(folder.load(), record_version=EXPERIMENT_VERSION - 1))
    with pytest.raises(BenchctlError, match=f"record version {EXPERIMENT_VERSION - 1} "):
        folder.load()


DEBUG = Challenge("debug", (Task("sort", iterations=1), Task("range", iterations=1)))
RANGE = Challenge("range-settled", (Task("range", iterations=1),))
TWICE = made_plan(RANGE, DEBUG, RANGE)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("m/es/sort", (1, 0)),
        ("m/es/debug/range", (1, 1)),
        ("m/es/debug#1/range", (1, 1)),
        ("m/es/range-settled#1/range", (0, 0)),
        ("m/es/range-settled#2/range", (2, 0)),
    ],
)
def test_a_reference_finds_its_task(text: str, place: tuple[int, int]):
    assert TaskRef.parse(text).place_in(TWICE) == place


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("m/es/range", "is 3 tasks", "range-settled#1/range, debug/range, range-settled#2/range"),
        ("m/es/range-settled/range", "is 2 tasks", "range-settled#1/range, range-settled#2/range"),
        ("m/es/rage", "unknown task 'm/es/rage'", "did you mean 'range'?"),
        ("m/es/debgu/range", "unknown task", "did you mean 'debug/range'?"),
        ("m/es/debug/sort#2", "unknown task", "'debug/sort'"),
    ],
)
def test_a_reference_to_none_or_several_says_so(text: str, message: str, hint: str):
    with pytest.raises(UsageError, match=message) as raised:
        TaskRef.parse(text).place_in(TWICE)
    assert hint in (raised.value.hint or "")


WORDS = st.text("abcxyz0-_.", min_size=1, max_size=6)


@given(st.lists(WORDS, min_size=3, max_size=6))
def test_a_reference_is_what_its_text_says(parts: list[str]):
    ref = TaskRef.parse("/".join(parts))
    assert str(ref) == "/".join(parts)
    assert (ref.measurement, ref.variant) == tuple(parts[:2])
    assert ref.challenge == ("" if len(parts) == 3 else parts[2])


@pytest.mark.parametrize("text", ["", "range", "fresh//range", "/es/range", "fresh/es/"])
def test_what_has_too_few_parts_is_no_reference(text: str):
    with pytest.raises(UsageError, match="is not a task"):
        TaskRef.parse(text)
