"""How a command ends: one message, the right exit code, and a traceback only for bugs."""

import errno
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

import benchctl.home as boundary_home
from benchctl.cli import root
from benchctl.cli.boundary import guarded
from benchctl.errors import BenchctlError, UsageError
from benchctl.experiment.execution import tags_of
from benchctl.home import Home
from benchctl.results.store import RunStore
from builders import make_record


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "home"
    monkeypatch.setattr(boundary_home, "_check_reachable", lambda *_: None)
    monkeypatch.setenv("BENCHCTL_HOME", str(home))


@pytest.fixture(autouse=True)
def own_signals() -> Iterator[None]:
    """The boundary installs handlers; other tests keep theirs."""
    kept = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
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


def test_a_full_disk_is_no_bug(capsys: pytest.CaptureFixture[str]):
    assert guarded(raising(OSError(errno.ENOSPC, "No space left on device")), []) == 1
    assert "no space is left" in capsys.readouterr().err
    with pytest.raises(PermissionError):
        guarded(raising(PermissionError(errno.EACCES, "Permission denied")), [])


@pytest.mark.parametrize(
    ("folder", "arguments"),
    [
        ("nodes", ["node", "start", "os"]),
        ("corpora", ["corpus", "generate", "--docs", "1k"]),
        ("runs", ["run", "--challenge", "range-only", "--docs", "1k"]),
    ],
)
def test_a_home_that_cannot_be_written_is_one_message(
    folder: str, arguments: list[str], capsys: pytest.CaptureFixture[str], tmp_path: Path
):
    (tmp_path / "home").mkdir()
    # Where nobody may make files, not even root.
    (tmp_path / "home" / folder).symlink_to("/sys/kernel")
    assert guarded(root, arguments) == 1
    said = capsys.readouterr().err
    assert str(tmp_path / "home" / folder) in said
    assert said.count("hint: ") == 1


def test_no_place_for_temporary_files_is_one_message(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    @click.command()
    def command() -> None:
        tempfile.gettempdir()

    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setattr(tempfile, "_candidate_tempdir_list", lambda: ["/sys/kernel"])
    assert guarded(command, []) == 1
    said = capsys.readouterr().err
    assert "No usable temporary directory found in ['/sys/kernel']" in said
    assert "hint: set TMPDIR" in said


def test_whoever_interrupts_again_ends_it_at_once():
    guarded(raising(KeyboardInterrupt()), [])
    assert signal.getsignal(signal.SIGINT) is signal.SIG_DFL


def test_a_bug_keeps_its_traceback():
    with pytest.raises(ZeroDivisionError):
        guarded(raising(ZeroDivisionError()), [])


def test_sigterm_ends_like_ctrl_c(capsys: pytest.CaptureFixture[str]):
    @click.command()
    def command() -> None:
        signal.raise_signal(signal.SIGTERM)

    assert guarded(command, []) == 130
    assert "interrupted" in capsys.readouterr().err


def test_nohup_is_respected():
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    assert guarded(click.Command("nothing", callback=lambda: None), []) == 0
    assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    guarded(click.Command("nothing", callback=lambda: None), [])
    assert callable(signal.getsignal(signal.SIGHUP))


@pytest.mark.parametrize(
    "option", [["--forks", "5"], ["--docs", "1m"], ["--heap", "1g"], ["--paired"], ["--variant", "es"]]
)
def test_resume_refuses_options_that_would_have_no_effect(
    option: list[str], capsys: pytest.CaptureFixture[str]
):
    assert guarded(root, ["run", "--resume", "nothing", *option]) == 2
    assert f"{option[0]} cannot change it" in capsys.readouterr().err


@pytest.mark.parametrize("option", [["--quiet"], ["--wait"], ["--format", "json"]])
def test_resume_takes_options_that_change_no_figure(
    option: list[str], capsys: pytest.CaptureFixture[str], tmp_path: Path
):
    assert guarded(root, ["run", "--resume", "nothing", "--runs", str(tmp_path), *option]) == 2
    assert "there is no run 'nothing'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("variant", "said"),
    [("x=es,setting:path.data=/d", "path.data"), ("x=os,setting:network.host=0.0.0.0", "network.host")],
)
def test_settings_are_refused_before_anything_starts(
    variant: str, said: str, capsys: pytest.CaptureFixture[str]
):
    assert guarded(root, ["run", "--challenge", "range-only", "--variant", variant]) == 2
    assert said in capsys.readouterr().err


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


def test_a_run_of_an_experiment_is_not_gone_on_with_alone(capsys: pytest.CaptureFixture[str], tmp_path: Path):
    home, runs = Home(tmp_path / "home"), tmp_path / "runs"
    folder = RunStore(runs).create("one")
    folder.save(make_record("one", tags=tags_of("20261121-used", "fresh")))
    (home.experiments / "20261121-used").mkdir(parents=True)
    assert guarded(root, ["run", "--resume", "one", "--runs", str(runs)]) == 2
    said = capsys.readouterr().err
    assert "run one is a measurement of experiment 20261121-used" in said
    assert "benchctl experiment run --resume 20261121-used" in said
