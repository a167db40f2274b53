"""How a command ends: one message, the right exit code, and a traceback only for bugs."""

import signal
from collections.abc import Iterator

import click
import pytest

from benchctl.cli import root
from benchctl.cli.boundary import guarded
from benchctl.errors import BenchctlError, UsageError


@pytest.fixture(autouse=True)
def own_signals() -> Iterator[None]:
    """The boundary installs handlers; other tests keep theirs."""
    kept = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)}
    yield
    for number, handler in kept.items():
        signal.signal(number, handler)


def raising(error: BaseException) -> click.Command:
    @click.command()
    def command() -> None:
        raise error

    return command


@pytest.mark.parametrize(
    ("error", "status", "said"),
    [
        (BenchctlError("no disk", hint="buy one"), 1, "benchctl: no disk\n  hint: buy one\n"),
        (UsageError("no such thing"), 2, "benchctl: no such thing\n"),
        (KeyboardInterrupt(), 130, "benchctl: interrupted\n"),
    ],
)
def test_an_expected_error_is_one_message(
    error: BaseException, status: int, said: str, capsys: pytest.CaptureFixture[str]
):
    assert guarded(raising(error), []) == status
    assert capsys.readouterr().err.lstrip("\n") == said


def test_a_bug_keeps_its_traceback():
    with pytest.raises(ZeroDivisionError):
        guarded(raising(ZeroDivisionError()), [])


def test_sigterm_ends_like_ctrl_c(capsys: pytest.CaptureFixture[str]):
    @click.command()
    def command() -> None:
        signal.raise_signal(signal.SIGTERM)

    assert guarded(command, []) == 130
    assert "interrupted" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--nonsense"], "No such option"),
        (["run", "--forks", "many"], "many"),
        (["run", "--restart", "often"], "often"),
        (["nonsense"], "nonsense"),
    ],
)
def test_a_wrong_flag_is_a_usage_error(arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]):
    assert guarded(root, arguments) == 2
    assert said in capsys.readouterr().err


def test_help_is_there_for_every_command(capsys: pytest.CaptureFixture[str]):
    def walk(command: click.Command, path: list[str]) -> None:
        assert guarded(root, [*path, "--help"]) == 0
        assert "Usage: benchctl" in capsys.readouterr().out
        if isinstance(command, click.Group):
            context = click.Context(command)
            for name in command.list_commands(context):
                inner = command.get_command(context, name)
                assert inner is not None
                assert inner.help, name
                walk(inner, [*path, name])

    walk(root, [])
