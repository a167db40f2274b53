"""Suites on disk: nights in order, alarms, one file a suite, and what cannot be read."""

import json
import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchctl.errors import BenchctlError, UsageError
from benchctl.home import Home
from benchctl.lock import measuring_pid
from benchctl.nightly.records import SuiteBusy, SuiteFolder, number_of, references, suites
from full_disk import nearly_full
from nightly.made import alarm, finding

NOW = datetime(2026, 11, 21, 3, 0, tzinfo=UTC)


@pytest.fixture
def suite(tmp_path: Path) -> SuiteFolder:
    return SuiteFolder(tmp_path / "big5")


def night_file(suite: SuiteFolder, night_id: str) -> Path:
    return suite.root / "nights" / f"{night_id}.json"


def test_nights_are_numbered_and_come_back_in_order(suite: SuiteFolder):
    begun = [suite.begin(NOW + timedelta(days=day)) for day in range(2)]
    assert [night.id for night in begun] == ["00001-20261121-0300", "00002-20261122-0300"]
    assert suite.nights(pytest.fail) == begun
    assert (begun[0].status, begun[0].suite) == ("running", "big5")
    assert begun[0].started == "2026-11-21T03:00:00+00:00"
    assert (number_of(begun[1].id), number_of("")) == (2, 0)


@given(jumps=st.lists(st.timedeltas(timedelta(days=-4000), timedelta(days=4000)), min_size=1, max_size=8))
def test_a_clock_that_jumps_changes_nothing_of_the_order(
    tmp_path_factory: pytest.TempPathFactory, jumps: list[timedelta]
):
    suite = SuiteFolder(tmp_path_factory.mktemp("suite"))
    begun = [suite.begin(NOW + jump) for jump in jumps]
    assert suite.nights(pytest.fail) == begun
    assert [night.number for night in begun] == list(range(1, len(jumps) + 1))


def test_a_record_survives_with_all_that_it_says(suite: SuiteFolder):
    found = finding(1, "held", run="confirming")
    night = msgspec.structs.replace(suite.begin(NOW), status="done", run="r", findings=(found,))
    suite.save(night)
    assert suite.nights(pytest.fail) == [night]
    assert night.runs == ("r", "confirming")


def test_nights_that_cannot_be_read_are_reported_in_a_line_and_counted(suite: SuiteFolder):
    nights = [suite.begin(NOW) for _ in range(4)]
    paths = [night_file(suite, night.id) for night in nights]
    paths[0].write_bytes(paths[0].read_bytes()[:40])
    paths[1].write_text(json.dumps(json.loads(paths[1].read_text()) | {"night-version": 9, "new": 1}))
    paths[2].rename(night_file(suite, "00077-20261121-0300"))
    told: list[str] = []
    assert suite.nights(told.append) == nights[3:]
    assert all("\n" not in text for text in told)
    damaged, newer, moved = sorted(told)
    assert damaged.startswith(f"{paths[0]} is damaged: ")
    assert newer == f"{paths[1]}: unsupported night version 9 (expected 3)"
    assert moved.startswith(f"{night_file(suite, '00077-20261121-0300')} is damaged")
    assert suite.begin(NOW).number == 78


def test_a_night_that_does_not_fit_on_the_disk_is_told(suite: SuiteFolder):
    suite.begin(NOW)
    with nearly_full(10), pytest.raises(BenchctlError, match=r"cannot write .*00002"):
        suite.begin(NOW)
    assert len(suite.nights(pytest.fail)) == 1


def test_alarms_are_kept_and_a_damaged_file_is_refused(suite: SuiteFolder):
    assert suite.state().alarms == ()
    suite.update(lambda state: msgspec.structs.replace(state, alarms=(alarm(1, 3),)))
    assert suite.state().alarms == (alarm(1, 3),)
    (suite.root / "suite.json").write_text("{")
    with pytest.raises(BenchctlError, match=r"suite\.json is damaged"):
        suite.update(lambda state: state)


_UPDATES = """
import sys
from pathlib import Path
import msgspec
from benchctl.nightly.records import SuiteFolder
for number in range(30):
    SuiteFolder(Path(sys.argv[1])).update(lambda state: msgspec.structs.replace(state, file=state.file + "x"))
"""


def test_two_processes_at_once_lose_nothing(suite: SuiteFolder):
    processes = [subprocess.Popen([sys.executable, "-c", _UPDATES, str(suite.root)]) for _ in range(2)]
    assert [process.wait(60) for process in processes] == [0, 0]
    assert suite.state().file == "x" * 60


def test_a_second_file_of_the_same_name_is_refused_while_the_first_is_there(
    suite: SuiteFolder, tmp_path: Path
):
    first, second = tmp_path / "a.yml", tmp_path / "b.yml"
    first.touch()
    second.touch()
    suite.claim(str(first))
    suite.claim(str(first))
    with pytest.raises(UsageError, match=r"'big5' is the name of the suite in .*a\.yml"):
        suite.claim(str(second))
    first.unlink()
    suite.claim(str(second))


def test_one_process_has_a_suite_at_a_time(suite: SuiteFolder):
    assert measuring_pid(suite.lock_name) is None
    with suite.lock():
        assert measuring_pid(suite.lock_name) == os.getpid()
        with pytest.raises(SuiteBusy, match=rf"process {os.getpid()} of user"), suite.lock():
            pass
    held = suite.lock()
    held.__enter__()
    told: list[str] = []
    with suite.lock(wait=True, on_wait=told.append, pause=lambda _: held.__exit__(None, None, None)):
        assert len(told) == 1


def test_suites_are_the_folders_with_nights_and_refer_to_runs(tmp_path: Path):
    home = Home(tmp_path / "home")
    assert suites(home) == []
    assert not home.root.exists()
    for name in ("b", "a"):
        folder = SuiteFolder(home.nightly / name)
        night = folder.begin(NOW)
        folder.save(msgspec.structs.replace(night, run=f"run-{name}"))
    with SuiteFolder(home.nightly / "busy").lock():
        pass
    assert [suite.root.name for suite in suites(home)] == ["a", "b"]
    assert dict(references(home, pytest.fail)) == {
        "run-a": f"night {night.id} of a",
        "run-b": f"night {night.id} of b",
    }
