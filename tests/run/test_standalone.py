"""Background nodes are found by name, and by nothing that leads elsewhere."""

from pathlib import Path

import pytest

from benchctl.errors import UsageError
from benchctl.home import Home
from benchctl.run.standalone import node_folder, remove


@pytest.mark.parametrize("name", ["..", ".", "../runs", "/etc", "es/../..", "", "es\n"])
def test_a_path_is_no_node_and_nothing_is_removed(tmp_path: Path, name: str):
    home = Home(tmp_path / "home")
    (home.runs / "r").mkdir()
    (home.nodes / "es").mkdir()
    with pytest.raises(UsageError, match="cannot be a variant's label"):
        remove(home, name)
    assert (home.runs / "r").is_dir()
    assert (home.nodes / "es").is_dir()


def test_removing_a_node_removes_its_own_folder(tmp_path: Path):
    home = Home(tmp_path / "home")
    for name in ("es", "es@8.19.0"):
        node_folder(home, name).path.mkdir()
    remove(home, "es")
    assert [path.name for path in home.nodes.iterdir()] == ["es@8.19.0"]
