"""Where the home is, and by which path nodes know it."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchctl.errors import BenchctlError
from benchctl.home import Home, resolve_home


@pytest.fixture(params=["with space", "with:colon"])
def odd(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Path, Home]]:
    """A folder that JVM options cannot hold, and the home that is found there."""
    folder = tmp_path / request.param
    home = resolve_home({"BENCHCTL_HOME": str(folder)}, euid=1)
    yield folder, home
    home.root.unlink()


def test_a_home_that_breaks_jvm_options_has_a_link_that_does_not(odd: tuple[Path, Home]):
    folder, home = odd
    assert not {" ", ":"} & set(str(home.root))
    assert home.root.resolve() == folder
    (home.runs / "r").mkdir()
    assert (folder / "runs" / "r").is_dir()
    assert resolve_home({"BENCHCTL_HOME": str(folder)}, euid=1) == home


@pytest.mark.parametrize("is_link", [True, False])
def test_what_is_not_its_own_link_is_not_followed(odd: tuple[Path, Home], *, is_link: bool):
    folder, home = odd
    home.root.unlink()
    if is_link:
        home.root.symlink_to(folder.parent)
    else:
        home.root.touch()
    with pytest.raises(BenchctlError, match=str(home.root)):
        resolve_home({"BENCHCTL_HOME": str(folder)}, euid=1)


def test_another_users_link_is_not_followed(odd: tuple[Path, Home], monkeypatch: pytest.MonkeyPatch):
    folder, _ = odd
    own = os.lstat
    monkeypatch.setattr(
        Path, "lstat", lambda self: os.stat_result((*own(self)[:4], os.geteuid() + 1, *own(self)[5:10]))
    )
    with pytest.raises(BenchctlError, match="is not benchctl's link"):
        resolve_home({"BENCHCTL_HOME": str(folder)}, euid=1)


def test_any_other_home_is_known_by_its_own_path(tmp_path: Path):
    assert resolve_home({"BENCHCTL_HOME": str(tmp_path)}, euid=1).root == tmp_path
