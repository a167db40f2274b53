"""`benchctl nightly init`: a suite file to begin with."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from benchctl.errors import BenchctlError, UsageError
from benchctl.home import Home
from benchctl.nightly.commands.suites import init_command
from benchctl.nightly.measure import night_plan, resolve
from benchctl.nightly.suite import load_suite


def test_the_template_is_printed_or_written_and_can_be_loaded(tmp_path: Path):
    printed = CliRunner().invoke(init_command, [], catch_exceptions=False)
    path = tmp_path / "search.yml"
    written = CliRunner().invoke(init_command, [str(path)], catch_exceptions=False)
    assert written.stdout == ""
    assert f"benchctl nightly run {path}" in written.stderr
    assert "0 3 * * * /" in written.stderr
    assert f" nightly run --quiet {path}\n" in written.stderr
    assert path.read_text(encoding="utf-8") == printed.stdout
    suite = load_suite(path)
    assert suite.name == "search"
    variants = resolve(suite, lambda engine: {"elasticsearch": "9.2.0", "opensearch": "3.3.0"}[engine])
    plan, _, _ = night_plan(suite, 1, variants, Home(tmp_path / "home"), lambda *_: None)
    assert ([spec.name for spec in plan.variants], plan.settled) == (
        ["es@latest", "os@latest", "canary"],
        True,
    )


def test_a_file_that_is_there_is_left_alone(tmp_path: Path):
    path = tmp_path / "search.yml"
    path.write_text("mine", encoding="utf-8")
    with pytest.raises(UsageError, match=r"search\.yml"):
        CliRunner().invoke(init_command, [str(path)], catch_exceptions=False)
    assert path.read_text(encoding="utf-8") == "mine"


def test_a_folder_that_is_not_there_is_told(tmp_path: Path):
    with pytest.raises(BenchctlError, match=r"cannot write .*No such file"):
        CliRunner().invoke(init_command, [str(tmp_path / "none" / "s.yml")], catch_exceptions=False)
