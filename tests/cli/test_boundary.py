"""How a command ends: one message, the right exit code, and a traceback only for bugs."""

import errno
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import click
import pytest

from authority import certificate_file, server_context
from benchctl.cli import root
from benchctl.cli.boundary import guarded
from benchctl.engine.maven import REPOSITORY_VARIABLE
from benchctl.errors import BenchctlError, ExitCode, UsageError
from benchctl.experiment.record import tags_of
from benchctl.lock import host_lock
from benchctl.results.store import RunStore
from builders import make_record
from cli.conftest import Benchctl
from engine.fake_node import fake_node
from file_server import FileServer

# Without the fixtures of this process.
MAIN = """
import benchctl.cli, benchctl.home
benchctl.home._check_reachable = lambda *_: None
benchctl.cli.main()
"""


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
        ("corpora", ["corpus", "generate", "--docs", "1k"]),
        ("runs", ["run", "--challenge", "range-only", "--docs", "1k"]),
    ],
)
@pytest.mark.usefixtures("maven")
def test_a_home_that_cannot_be_written_is_one_message(
    folder: str, arguments: list[str], benchctl: Benchctl, home: Path
):
    # Where nobody may make files, not even root.
    (home / folder).symlink_to("/sys/kernel")
    ended = benchctl(*arguments)
    assert (ended.status, str(home / folder) in ended.err, ended.err.count("hint: ")) == (1, True, 1)


def test_a_directory_that_is_gone_and_no_place_for_temporary_files_are_one_message(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setattr(tempfile, "_candidate_tempdir_list", lambda: ["/sys/kernel"])
    assert guarded(click.Command("x", callback=tempfile.gettempdir), []) == 1
    said = capsys.readouterr().err
    assert "No usable temporary directory found in ['/sys/kernel']" in said
    assert "TMPDIR" in said
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    assert guarded(root, ["show", "latest", "--html", "pages"]) == 1
    assert "go to a directory that exists" in capsys.readouterr().err


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


@pytest.mark.parametrize("command", ["resume", "extend"])
@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--quiet", "--on-busy", "wait", "--format", "json", "--budget", "1h"], "no such run 'nothing'"),
        (["--budget", "0s"], "--budget must be more"),
        (["--docs", "1m"], "--docs"),
    ],
)
def test_who_goes_on_can_say_how_and_not_what(
    command: str, more: list[str], said: str, benchctl: Benchctl, tmp_path: Path
):
    ended = benchctl(command, "nothing", "--runs", tmp_path, *more)
    assert (ended.status, said in ended.err) == (ExitCode.USAGE, True)


def test_a_target_that_is_not_what_it_says_ends_before_anything_is_sent(
    benchctl: Benchctl, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("BENCHCTL_PROD_BEARER", "hunter2000")
    with fake_node(server_context("elsewhere.example")) as other:
        target = f"https://127.0.0.1:{other.port}"
        targets = tmp_path / "targets.yml"
        targets.write_text(f"prod: {{url: '{target}', ca: {certificate_file(tmp_path)}}}")
        ended = benchctl("run", "--challenge", "range-only", "--targets", targets)
        assert ended.status == ExitCode.FAILED
        assert f"prod at {target} has a certificate for another name" in ended.err
        assert "hunter2000" not in ended.err
        assert other.told == []


@pytest.mark.parametrize(
    ("arguments", "stream"),
    [
        (["runs", "list"], "stdout"),
        (["run", "--help"], "stdout"),
        (["--version"], "stderr"),
        (["nonsense"], "stderr"),
        ([], "stdout"),
    ],
)
def test_output_that_nobody_reads_ends_a_command_in_silence(arguments: list[str], stream: str):
    reading, writing = os.pipe()
    os.close(reading)
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, stream: writing}
    try:
        done = subprocess.run([sys.executable, "-c", MAIN, *arguments], check=False, text=True, **streams)
    finally:
        os.close(writing)
    other = done.stderr if stream == "stdout" else done.stdout
    if done.returncode == ExitCode.CLOSED:
        assert other == ""
    else:  # all that it said went the other way
        assert done.returncode in (ExitCode.OK, ExitCode.USAGE)
        assert other


@pytest.mark.parametrize("arguments", [["list", "tracks"], ["run", "--help"], ["--version"]])
def test_output_that_cannot_be_written_is_one_message(arguments: list[str]):
    with Path("/dev/full").open("w", encoding="utf-8") as full:
        done = subprocess.run(
            [sys.executable, "-c", MAIN, *arguments],
            check=False,
            text=True,
            stdout=full,
            stderr=subprocess.PIPE,
        )
    assert done.returncode == ExitCode.FAILED
    assert done.stderr.count("benchctl: ") == 1
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("variable", ["HOME", "XDG_DATA_HOME"])
def test_a_home_in_a_relative_path_is_refused(
    variable: str, benchctl: Benchctl, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.delenv("BENCHCTL_HOME")
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setenv(variable, "relative")
    ended = benchctl("runs", "list")
    assert (ended.status, variable in ended.err) == (ExitCode.USAGE, True)


def test_a_file_of_others_is_not_blamed_on_the_home(capsys: pytest.CaptureFixture[str]):
    assert guarded(raising(PermissionError(errno.EACCES, "Permission denied", "/root/x.jar")), []) == 1
    said = capsys.readouterr().err
    assert "/root/x.jar" in said
    assert "BENCHCTL_HOME" not in said


def test_a_run_of_an_experiment_goes_on_with_all_of_it(benchctl: Benchctl, home: Path, tmp_path: Path):
    runs, experiment = tmp_path / "elsewhere", home / "experiments" / "20261121-used"
    record = make_record("one", tags=tags_of("20261121-used", "fresh"), status="complete")
    RunStore(runs).create("one").save(record)
    experiment.mkdir(parents=True)
    (experiment / "experiment.json").write_text("damaged")
    ended = benchctl("resume", "one", "--runs", runs)
    assert ended.status == ExitCode.FAILED
    assert "run one is part of experiment 20261121-used, which is continued as a whole" in ended.err
    assert str(experiment) in ended.err


MEASURED = ["--challenge", "range-only"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["run", *MEASURED, "--heap", "90000g"], "a heap of 92160000 MB leaves too little"),
        (["run", *MEASURED, "--variant", "x=es,heap:90000g"], "leaves too little"),
        (["run", *MEASURED, "--variant", "x=es,setting:path.data=/d"], "path.data"),
        (["run", *MEASURED, "--variant", "x=os,setting:network.host=0.0.0.0"], "network.host"),
        (["run", *MEASURED, "--jdk", "/no/where"], "no Java at /no/where"),
        (["run", *MEASURED, "--jdk", "{folder}"], "is not a Java home"),
        (["run", *MEASURED, "--variant", "es,distribution:/no/where"], "no such distribution: /no/where"),
        (["run", *MEASURED, "--variant", "es,distribution:{folder}"], "not a distribution of elasticsearch"),
        (["run", *MEASURED, "--variant", "es,distribution:{folder}/a.txt"], "not an archive that benchctl"),
        (["run", *MEASURED, "--corpus", "/no/where"], "no such file: /no/where"),
        (["run", *MEASURED, "--pin", "node=999"], "--pin"),
        (["run", "--challenge", "{folder}/comma.json"], "comma.json is not JSON"),
        (["run", *MEASURED, "--target", "x=ftp://host"], "is not the address of a host"),
        (["redline", "--operation", "range", "--slo", "p90=1s", "--variant", "os@99.0.0"], "not found in"),
        (["experiment", "run", "jvm-inlining", "--heap", "90000g"], "leaves too little"),
        (["extend", "x", "--forks", "0"], "'--forks': 0 is not in the range"),
        (["compare", "es", "os", "--metric", ""], "--metric requires a non-empty value"),
        (["run", "--metric", "latency_p99.9"], "... --metric latency --quantile 0.999"),
        (["corpus", "generate", "--docs", "lots"], "invalid document count 'lots'"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_told_with_2_before_the_host_is_waited_for(
    arguments: list[str],
    said: str,
    tmp_path: Path,
    files: FileServer,
    monkeypatch: pytest.MonkeyPatch,
    benchctl: Benchctl,
):
    monkeypatch.setenv(REPOSITORY_VARIABLE, files.url)  # which has nothing
    (tmp_path / "comma.json").write_text('{"name": "c", "schedule": [{},]}', encoding="utf-8")
    (tmp_path / "a.txt").touch()
    with host_lock(wait=False, on_wait=print):
        ended = benchctl(*(text.replace("{folder}", str(tmp_path)) for text in arguments))
    assert said in ended.err
    assert ended.err.count("benchctl: ") == 1
    assert "Traceback" not in ended.err
    assert ended.status == ExitCode.USAGE


@pytest.mark.parametrize(
    "command", ["show latest", "compare es os", "explain latest", "extend latest", "runs list"]
)
def test_without_runs_readers_hint_at_the_first_and_make_no_home(
    command: str, home: Path, monkeypatch: pytest.MonkeyPatch, benchctl: Benchctl
):
    monkeypatch.setenv("BENCHCTL_HOME", str(home / "new"))
    ended = benchctl(*command.split())
    assert f"no runs in {home / 'new' / 'runs'} yet" in ended.err
    assert "hint: benchctl run --challenge big5rangedebug" in ended.err
    assert not ended.out
    assert not (home / "new").exists()


def test_a_home_that_is_no_utf8_is_told(monkeypatch: pytest.MonkeyPatch, benchctl: Benchctl):
    monkeypatch.setenv("BENCHCTL_HOME", os.fsdecode(b"/tmp/\xff"))
    ended = benchctl("runs", "prune", "--keep", "1")
    assert (ended.status, "is not UTF-8" in ended.err) == (ExitCode.USAGE, True)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["run", "--challenge", "rnge-only"], "did you mean 'range-only'?"),
        (["run", "--target-hosts", "127.0.0.1:9200"], "--target NAME=URL"),
        (["run", *MEASURED, "--sweep", "clients=0,1"], "must be at least 1"),
        (["run", *MEASURED, "--pin"], "--pin: 'prod' is a running cluster"),
        (["run", "--challenge", "{folder}/timed.json", "--include-tasks", "nothing"], "nothing"),
        (["redline", "--operation", "rnge", "--slo", "p90=5ms"], "did you mean 'range'?"),
    ],
)
def test_a_cluster_that_is_down_hides_no_mistake(
    arguments: list[str], said: str, tmp_path: Path, benchctl: Benchctl
):
    (tmp_path / "timed.json").write_text('{"name": "timed", "schedule": [{"operation": "range"}]}')
    words = [text.replace("{folder}", str(tmp_path)) for text in arguments]
    ended = benchctl(*words, "--target", "prod=http://127.0.0.1:1")
    assert (ended.status, said in ended.err) == (ExitCode.USAGE, True)


@pytest.mark.parametrize(
    "left",
    [
        "",
        "threading.Thread(target=threading.Event().wait).start()",
        "threading.Thread(target=threading.Event().wait, daemon=True).start()",
        "ThreadPoolExecutor().submit(int)",
    ],
)
def test_no_thread_keeps_the_process_alive(left: str):
    script = (
        "import threading\nfrom concurrent.futures import ThreadPoolExecutor\n"
        f"from benchctl.cli.boundary import end\nprint('result')\n{left}\nend(3)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=60
    )
    assert (done.returncode, done.stdout, done.stderr) == (3, "result\n", "")


def test_a_bug_ends_the_process_with_its_traceback():
    script = "import benchctl.cli as cli\ncli.guarded = lambda _: 1 / 0\ncli.main()"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (done.returncode, "ZeroDivisionError" in done.stderr) == (1, True)
