"""Help in two lengths: a first page, and everything."""

from collections.abc import Callable

import click
from click.testing import CliRunner

from benchctl.cli.options import SectionedCommand, under


@click.command(cls=SectionedCommand, first=("often", "first"), examples=("x --often 1",))
@under("Load", click.option("--first"))
@under("Load", click.option("--often"))
@under("Load", click.option("--seldom"))
@click.option("--never", is_flag=True)
def _command(**_values: object) -> None:
    pass


def _help(command: click.Command, option: str) -> Callable[[str], bool]:
    done = CliRunner().invoke(command, [option], prog_name="x")
    assert done.exit_code == 0
    return done.stdout.__contains__


def test_rare_options_are_in_the_help_of_everything_only_and_are_taken_all_the_same():
    first, everything = (_help(_command, option) for option in ("--help", "--help-all"))
    names = ("--often", "\n\n  x --often 1\n", "--seldom", "--never", "All options: x --help-all")
    assert [first(name) for name in names] == [1, 1, 0, 0, 1]
    assert [everything(name) for name in names] == [1, 1, 1, 1, 0]
    assert first("  --often TEXT\n  --first TEXT\n")
    assert CliRunner().invoke(_command, ["--seldom", "1", "--never"]).exit_code == 0
