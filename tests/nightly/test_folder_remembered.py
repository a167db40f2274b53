from pathlib import Path

import msgspec
import pytest

from benchctl.errors import BenchctlError, UsageError
from benchctl.home import Home
from benchctl.nightly.commands.suites import find_suite
from benchctl.nightly.folder import (
    KNOWN_NAME,
    Known,
    SuiteFolder,
    check_name,
    recall,
    remember,
    suites,
)

SUITE = "variants: [es]\nchallenges: [range-only]\n"
KNOWN = Known("/suites/search.yml", "/runs")


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


@pytest.fixture
def folder(home: Home) -> SuiteFolder:
    found = SuiteFolder(home.nightly / "search")
    found.night_path("00001-20261121-0300").mkdir(parents=True)
    return found


def test_what_is_remembered_of_a_suite_is_recalled(folder: SuiteFolder):
    remember(folder, KNOWN)
    assert recall(folder) == KNOWN


def test_a_suite_that_never_ran_and_a_damaged_file_are_told_apart(folder: SuiteFolder):
    with pytest.raises(BenchctlError, match="cannot read"):
        recall(folder)
    (folder.root / KNOWN_NAME).write_text("{")
    with pytest.raises(BenchctlError, match="is damaged"):
        recall(folder)
    # It is about to be written anew.
    check_name(folder, "/suites/search.yml")


def test_a_suite_is_found_by_its_file_before_its_first_night(home: Home, tmp_path: Path):
    file = tmp_path / "installed.yml"
    file.write_text(SUITE)
    (home.nightly / "installed").mkdir()
    assert find_suite(home, str(file)) == SuiteFolder(home.nightly / "installed")


def test_a_file_of_a_suite_that_has_no_folder_is_refused_with_the_command_that_runs_it(
    home: Home, tmp_path: Path
):
    file = tmp_path / "new.yml"
    file.write_text(SUITE)
    with pytest.raises(UsageError, match="has had no night") as refused:
        find_suite(home, str(file))
    assert f"benchctl nightly run {file}" in refused.value.hint


def test_an_unknown_suite_is_refused_with_those_that_there_are(home: Home, folder: SuiteFolder):
    assert find_suite(home, "search") == folder
    with pytest.raises(UsageError, match="no such suite 'serch'") as refused:
        find_suite(home, "serch")
    assert refused.value.hint == f"known: {folder.root.name}"


def test_a_second_file_of_the_same_name_is_refused_while_the_first_is_there(
    folder: SuiteFolder, tmp_path: Path
):
    first, second = tmp_path / "a" / "search.yml", tmp_path / "b" / "search.yml"
    for path in (first, second):
        path.parent.mkdir()
        path.write_text(SUITE)
    of = {path: msgspec.structs.replace(KNOWN, file=str(path)) for path in (first, second)}
    check_name(folder, str(first))
    remember(folder, of[first])
    check_name(folder, str(first))
    with pytest.raises(UsageError, match=r"'search' is the name of the suite in .*/a/search\.yml"):
        check_name(folder, str(second))
    first.unlink()
    check_name(folder, str(second))


def test_a_start_that_never_came_to_a_night_leaves_no_suite_behind(home: Home, folder: SuiteFolder):
    with SuiteFolder(home.nightly / "busy").lock():
        pass
    assert suites(home) == [folder]
