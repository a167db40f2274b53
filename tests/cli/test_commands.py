import subprocess
import sys
from typing import get_args

import click
from click.testing import CliRunner

from benchctl.cli import Commands, root
from benchctl.spec import Heading


def test_the_help_names_every_command_and_loads_none_of_them():
    code = (
        "import sys; from benchctl.cli import root\n"
        "root.main(['--help'], standalone_mode=False)\n"
        "print(*sorted(name for name in sys.modules if name.startswith('benchctl.')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    *text, loaded = done.stdout.splitlines()
    headings = [f"{heading}:" for heading in Commands.sections]
    assert [line for line in text if line in headings] == headings
    named = [line.split()[0] for line in text[text.index(headings[0]) :] if line.startswith("  ")]
    assert named == root.list_commands(click.Context(root))
    assert loaded.split() == [
        "benchctl.cli",
        "benchctl.cli.boundary",
        "benchctl.cli.streams",
        "benchctl.errors",
        "benchctl.slices",
    ]


def test_every_command_can_be_loaded_and_has_help():
    for name in Commands(name="x").table:
        done = CliRunner().invoke(root, [name, "--help"])
        assert done.exit_code == 0, done.output


def test_the_options_of_a_run_are_under_headings():
    text = CliRunner().invoke(root, ["run", "--help-all"]).stdout.splitlines()
    headings = [line.removesuffix(":") for line in text if line.endswith(":") and not line.startswith(" ")]
    assert headings == [*get_args(Heading)]  # none is left for others
    load = text[text.index("Load:") + 1 : text.index("Nodes and indices:")]
    assert [line.split()[0] for line in load if line.startswith("  --")] == [
        "--workers", "--on-error", "--assertions", "--hosts",
    ]  # fmt: skip


def test_a_commands_own_options_come_before_those_that_it_shares():
    text = CliRunner().invoke(root, ["redline", "--help"]).stdout
    assert text.index("\nOptions:\n  --operation") < text.index("\nWhat to measure:\n")
