"""`--test-mode` changes what other options are when they are not given, and nothing when they are."""

import click
import pytest
from click.testing import CliRunner

from benchctl.cli import run_options


@click.command()
@click.option("--docs", default="1m")
@click.option("--forks", type=int, default=5)
@run_options.test_mode_option
def command(docs: str, forks: int, *, test_mode: bool) -> None:
    click.echo(f"{docs} {forks} {test_mode}")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "1m 5 False"),
        (["--test-mode"], "100000 1 True"),
        (["--forks", "2", "--test-mode"], "100000 2 True"),
        (["--test-mode", "--docs", "200k"], "200k 1 True"),
    ],
)
def test_what_is_given_wins(arguments: list[str], said: str):
    done = CliRunner().invoke(command, arguments)
    assert done.output.strip() == said
