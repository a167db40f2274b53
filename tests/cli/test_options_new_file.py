"""Files that are written at the end are checked at the beginning."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from benchctl.cli import root
from benchctl.cli.options import check_new_file
from benchctl.errors import UsageError


def test_a_new_file_in_a_folder_that_is_there_is_fine(tmp_path: Path) -> None:
    check_new_file("--output", tmp_path / "x", [tmp_path / "y"])
    (tmp_path / "x").touch()
    check_new_file("--output", tmp_path / "x", ours=True)


@pytest.mark.parametrize("name", ["", "there", "with-another", "nowhere/x"])
def test_what_would_be_lost_or_has_no_place_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "there").touch()
    (tmp_path / "another").touch()
    beside = [tmp_path / "another"] if name == "with-another" else []
    with pytest.raises(UsageError, match="--output: "):
        check_new_file("--output", tmp_path / name, beside)


def test_a_jar_is_not_written_over_another(tmp_path: Path) -> None:
    jar = tmp_path / "mine.jar"
    jar.write_text("mine")
    done = CliRunner().invoke(root, ["lucene", "patch", "--output", str(jar)])
    assert isinstance(done.exception, UsageError)
    assert "already exists" in done.exception.message
    assert jar.read_text() == "mine"
