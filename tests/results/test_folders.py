"""Folders by path, id, the beginning or end of an id, and `latest`; what none or several fit."""

import os
from pathlib import Path

import pytest

from benchctl.errors import UsageError
from benchctl.results.store import RecordFolder, Shelf

RECORD = "thing.json"
NAMES = ("2026-a", "2026-a-b", "2026-c", "2027-d")


class Thing(RecordFolder[dict[str, int]]):
    """A folder of a kind."""

    record_name = RECORD


def things(root: Path) -> Shelf[Thing]:
    return Shelf(root, Thing, "thing", "things", "make one")


@pytest.fixture
def shelf(tmp_path: Path) -> Shelf[Thing]:
    root = tmp_path / "things"
    for name in reversed(NAMES):
        make(root / name)
    (root / "2028-without").mkdir()
    return things(root)


def make(path: Path) -> Path:
    path.mkdir(parents=True)
    (path / RECORD).write_text("{}", encoding="utf-8")
    return path


def test_folders_with_a_record_are_listed_oldest_first(shelf: Shelf[Thing]):
    assert [folder.path.name for folder in shelf.folders()] == [*NAMES]


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("latest", "2027-d"),
        ("2027", "2027-d"),
        ("2026-a", "2026-a"),
        ("2026-a-", "2026-a-b"),
        ("d", "2027-d"),
        ("a-b", "2026-a-b"),
    ],
)
def test_one_is_found_by_id_or_by_a_beginning_or_end_that_it_has_alone(
    shelf: Shelf[Thing], name: str, found: str
):
    assert shelf.find(name).path == shelf.root / found


def test_a_path_comes_first_wherever_it_is(
    shelf: Shelf[Thing], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    elsewhere = make(tmp_path / "2027")
    monkeypatch.chdir(tmp_path)
    assert shelf.find(str(elsewhere)).path == shelf.find("2027").path == elsewhere


@pytest.mark.parametrize("name", ["", "x", "x" * 300, "2028-without", "2026-a-b-c", "-d", "7-d"])
def test_what_fits_none_is_refused(shelf: Shelf[Thing], name: str):
    with pytest.raises(UsageError, match=f"no such thing '{name}' in") as caught:
        shelf.find(name)
    assert caught.value.hint == "make one"


def test_what_fits_several_is_refused_with_some_of_them(shelf: Shelf[Thing]):
    with pytest.raises(
        UsageError, match=r"'2026' is ambiguous: it matches 3 things in .*2026-a, 2026-a-b, 2026-c"
    ):
        shelf.find("2026")


def test_an_end_that_several_have_is_refused_naming_them(shelf: Shelf[Thing]):
    make(shelf.root / "2029-d")
    with pytest.raises(UsageError, match=r"'d' is ambiguous: it matches 2 things in .*2027-d, 2029-d"):
        shelf.find("d")
    # So is the end of one that another begins with.
    make(shelf.root / "2030-2027")
    with pytest.raises(UsageError, match=r"'2027' is ambiguous: it matches 2 things in .*2027-d, 2030-2027"):
        shelf.find("2027")


def test_a_shelf_that_was_never_made_is_empty_and_not_made_by_looking(tmp_path: Path):
    shelf = things(tmp_path / "none")
    assert shelf.folders() == []
    with pytest.raises(UsageError, match="no such thing 'latest'"):
        shelf.find("latest")
    assert not list(tmp_path.iterdir())


def test_a_folder_that_may_not_be_looked_into_is_listed(shelf: Shelf[Thing], monkeypatch: pytest.MonkeyPatch):
    closed = shelf.root / "2028-without"
    stat = Path.stat

    def refused(path: Path, *, follow_symlinks: bool = True) -> os.stat_result:
        if path.parent == closed:
            raise PermissionError
        return stat(path, follow_symlinks=follow_symlinks)

    monkeypatch.setattr(Path, "stat", refused)
    assert shelf.folders()[-1].path == closed
