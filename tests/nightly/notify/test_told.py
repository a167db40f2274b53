from pathlib import Path

import pytest

from benchctl.nightly.folder import SuiteFolder
from benchctl.nightly.outbox import remember_told, untold
from full_disk import nearly_full
from night_records import night


@pytest.fixture
def folder(tmp_path: Path) -> SuiteFolder:
    found = SuiteFolder(tmp_path / "suite")
    found.nights_folder.mkdir(parents=True)
    return found


def left(folder: SuiteFolder, tonight: int) -> list[int]:
    nights = [night(number) for number in range(tonight, 0, -1)]
    return [one.number for one in untold(folder, nights, night(tonight))]


def test_nights_between_the_last_that_was_told_of_and_tonight_are_left(folder: SuiteFolder) -> None:
    remember_told(folder, night(3))
    assert left(folder, 4) == []
    assert left(folder, 6) == [4, 5]


def test_where_it_was_never_kept_nobody_is_told_of_old_nights(folder: SuiteFolder) -> None:
    assert left(folder, 6) == []
    (folder.root / "told").write_bytes(b"\xff damaged")
    assert left(folder, 6) == []


def test_a_full_disk_forgets_nobody(folder: SuiteFolder) -> None:
    remember_told(folder, night(3))
    with nearly_full(4):
        remember_told(folder, night(5))
    assert left(folder, 6) == [4, 5]


def test_a_night_that_could_not_even_begin_changes_nothing(folder: SuiteFolder) -> None:
    remember_told(folder, night(3))
    remember_told(folder, night(0, id=""))
    assert left(folder, 5) == [4]
