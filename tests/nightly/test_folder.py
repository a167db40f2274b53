import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchctl.errors import BenchctlError
from benchctl.home import Home
from benchctl.nightly.folder import SuiteFolder, suites
from benchctl.nightly.model import Finding, SeriesKey
from full_disk import nearly_full

NOW = datetime(2026, 11, 21, 3, 0, tzinfo=UTC)


@pytest.fixture
def suite(tmp_path: Path) -> SuiteFolder:
    return SuiteFolder(tmp_path / "big5")


def refused(message: str) -> None:
    raise AssertionError(message)


def test_nights_are_numbered_and_come_back_in_order(suite: SuiteFolder):
    begun = [suite.begin("big5", NOW + timedelta(days=day)) for day in range(3)]
    assert [night.id for night in begun] == [
        "00001-20261121-0300",
        "00002-20261122-0300",
        "00003-20261123-0300",
    ]
    assert suite.nights(refused) == begun
    assert begun[0].status == "running"
    assert begun[0].started == "2026-11-21T03:00:00+00:00"
    assert begun[0].suite == "big5"


@given(jumps=st.lists(st.timedeltas(timedelta(days=-4000), timedelta(days=4000)), min_size=1, max_size=8))
def test_a_clock_that_jumps_changes_nothing_of_the_order(
    tmp_path_factory: pytest.TempPathFactory, jumps: list[timedelta]
):
    suite = SuiteFolder(tmp_path_factory.mktemp("suite"))
    begun = [suite.begin("big5", NOW + jump) for jump in jumps]
    assert [night.number for night in suite.nights(refused)] == list(range(1, len(jumps) + 1))
    assert suite.nights(refused) == begun
    assert sorted(night.id for night in begun) == [night.id for night in begun]


def test_a_record_survives_with_all_that_it_says(suite: SuiteFolder):
    night = suite.begin("big5", NOW)
    finding = Finding(
        SeriesKey("es", "c", "t", "throughput"),
        "slower",
        -9.0,
        -12.0,
        -6.0,
        7,
        "a",
        "b",
        "held",
        "why",
    )
    night = msgspec.structs.replace(night, status="done", findings=(finding,), noise=("load",))
    suite.save(night)
    assert suite.load(night.id) == night


def test_nights_that_cannot_be_read_are_told_and_counted(suite: SuiteFolder):
    sound = [suite.begin("big5", NOW) for _ in range(5)]
    cut_off = suite.nights_folder / "00006-20261121-0300"
    cut_off.mkdir()
    broken = suite.night_path(sound[0].id) / "night.json"
    broken.write_bytes(broken.read_bytes()[:40])
    newer = suite.night_path(sound[1].id) / "night.json"
    newer.write_text(json.dumps(json.loads(newer.read_text()) | {"night-version": 3, "new-field": 1}))
    moved = suite.night_path(sound[2].id)
    moved.rename(suite.nights_folder / "00077-20261121-0300")
    (suite.night_path(sound[3].id) / "night.json").write_bytes(b'{"night-version":2,"id":"\xff"}')
    (suite.nights_folder / "notes.txt").touch()
    told: list[str] = []
    assert suite.nights(told.append) == [sound[4]]
    reasons = [text.removeprefix(str(suite.nights_folder)) for text in told]
    # In its library's words, which differ between versions.
    assert reasons.pop(3).startswith("/00004-20261121-0300/night.json is damaged: ")
    assert reasons == [
        "/notes.txt is not a night: its name is not an id",
        "/00001-20261121-0300/night.json is damaged: Input data was truncated",
        "/00002-20261121-0300/night.json: unsupported night version 3 (expected 2)",
        "/00006-20261121-0300/night.json is missing: the night was cut off as it began",
        "/00077-20261121-0300/night.json is damaged: it is the record of night 3, 00003-20261121-0300",
    ]
    assert suite.begin("big5", NOW).number == 78


def test_a_night_that_did_not_fit_on_the_disk_is_told_and_its_number_not_used_again(suite: SuiteFolder):
    suite.begin("big5", NOW)
    with nearly_full(10), pytest.raises(BenchctlError, match=r"cannot write .*00002"):
        suite.begin("big5", NOW)
    told: list[str] = []
    assert [night.number for night in suite.nights(told.append)] == [1]
    assert len(told) == 1
    assert suite.begin("big5", NOW).number == 3


def test_suites_are_the_folders_with_nights(tmp_path: Path):
    home = Home(tmp_path / "home")
    assert suites(home) == []
    assert not home.root.exists()
    for name in ("b", "a"):
        SuiteFolder(home.nightly / name).begin(name, NOW)
    (home.nightly / "site").mkdir()
    assert [suite.root.name for suite in suites(home)] == ["a", "b"]
