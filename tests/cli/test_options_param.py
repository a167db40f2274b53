"""Parameters and filters as the command line gives them, in benchctl's words and in Rally's."""

from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from benchctl.cli.options import ParamOptions, once, param_options
from benchctl.cli.run_options import form_options
from benchctl.errors import UsageError
from benchctl.spec import RunForm
from foreign_tracks import write_files


def given(*arguments: str) -> tuple[dict[str, Any], dict[str, str]]:
    """What a command gets of these arguments."""
    seen: list[tuple[ParamOptions, dict[str, str]]] = []

    @click.command()
    @param_options
    @form_options("include_tasks", "exclude_tasks")
    def command(param_options: ParamOptions, form: RunForm) -> None:
        seen.append(
            (param_options, {"include_tasks": form.include_tasks, "exclude_tasks": form.exclude_tasks})
        )

    result = CliRunner().invoke(command, arguments)
    assert result.exit_code == 0, result.output
    return seen[0][0].read(), seen[0][1]


def test_nothing_given_is_nothing():
    assert given() == ({}, {"include_tasks": "", "exclude_tasks": ""})


def test_what_is_said_on_the_command_line_goes_before_files(tmp_path: Path):
    folder = write_files(tmp_path, {"a.json": '{"a": 1, "b": 1, "c": 1}', "b.yml": "b: 2\nc: 2\nd: 2"})
    files = ["--param", f"@{folder / 'a.json'}", "--param", f"@{folder / 'b.yml'}"]
    found, _ = given(*files, "--track-params", "c:3,d:3", "--param", "d=4")
    assert found == {"a": 1, "b": 2, "c": 3, "d": 4}


@pytest.mark.parametrize("name", ["--track-params", "--workload-params"])
def test_rallys_parameters_have_the_names_of_both(name: str):
    assert given(name, "a:1")[0] == {"a": 1}


def test_filters_are_kept_as_they_are_written():
    _, filters = given("--include-tasks", "type:search,a", "--exclude-tasks", "tag:x")
    assert filters == {"include_tasks": "type:search,a", "exclude_tasks": "tag:x"}


def test_two_names_of_one_option_are_not_both_given():
    @click.command()
    @click.option("--track", "--track-path", "track", multiple=True, callback=once, default=("big5",))
    def command(track: str) -> None:
        click.echo(track)

    assert CliRunner().invoke(command).output == "big5\n"
    assert CliRunner().invoke(command, ["--track-path", "a"]).output == "a\n"
    found = CliRunner().invoke(command, ["--track-path", "a", "--track", "b"]).exception
    assert isinstance(found, UsageError)
    assert "given 2 times: a, b" in found.message
