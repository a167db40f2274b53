import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path

import psutil
import pytest

from benchctl.nightly.notify import CommandSpec, Redactor, SendError
from benchctl.nightly.outbox import run_command
from nightly.notify.letters import letter, message
from waiting import eventually


def tell(
    code: str, folder: Path, *arguments: str, timeout_s: int = 20, environ: Mapping[str, str] = os.environ
) -> None:
    spec = CommandSpec(run=(sys.executable, "-c", code, *arguments), timeout_s=timeout_s)
    run_command(spec, letter(), environ=environ, folder=folder, redactor=Redactor([spec], environ))


def test_a_program_gets_the_message_as_json_on_its_standard_input(tmp_path: Path):
    tell("import sys; open('got', 'wb').write(sys.stdin.buffer.read())", tmp_path)
    got = json.loads((tmp_path / "got").read_bytes())
    assert got["id"] == message().id
    assert got["status"] == "alarm"
    assert got["subject"] == message().subject


def test_no_shell_reads_its_arguments(tmp_path: Path):
    tell("import sys; open('got', 'w').write(sys.argv[1])", tmp_path, "$(date) *; true")
    assert (tmp_path / "got").read_text() == "$(date) *; true"


def test_a_program_beside_the_suite_file_is_found(tmp_path: Path):
    script = tmp_path / "tell.sh"
    script.write_text("#!/bin/sh\ncat > got\n")
    script.chmod(0o755)
    spec = CommandSpec(run=("./tell.sh",))
    run_command(spec, letter(), environ=os.environ, folder=tmp_path, redactor=Redactor([], {}))
    assert json.loads((tmp_path / "got").read_bytes())["suite"] == "big5"


def test_a_program_that_does_not_read_is_told_all_the_same(tmp_path: Path):
    tell("pass", tmp_path)


def test_the_exit_status_and_the_last_words_are_in_the_reason(tmp_path: Path):
    code = "import sys; print('about'); print('no such room', file=sys.stderr, flush=True); sys.exit(7)"
    with pytest.raises(SendError) as failed:
        tell(code, tmp_path)
    assert failed.value.reason in {
        "it exited with 7: about / no such room",
        "it exited with 7: no such room / about",
    }


def test_only_the_end_of_much_output_is_kept(tmp_path: Path):
    with pytest.raises(SendError) as failed:
        tell("print('x' * 1000000); print('the end'); raise SystemExit(1)", tmp_path)
    assert failed.value.reason.endswith("the end")
    assert len(failed.value.reason) < 2100


def test_a_signal_is_told(tmp_path: Path):
    with pytest.raises(SendError) as failed:
        tell("import os; os.kill(os.getpid(), 9)", tmp_path)
    assert failed.value.reason == "signal 9 ended it"


def test_a_program_that_is_not_there_is_told(tmp_path: Path):
    spec = CommandSpec(run=(str(tmp_path / "no-such-program"),))
    with pytest.raises(SendError) as failed:
        run_command(spec, letter(), environ=os.environ, folder=tmp_path, redactor=Redactor([], {}))
    assert failed.value.reason == "it cannot be started: No such file or directory"


def test_a_program_that_takes_too_long_is_ended_with_all_that_it_started(tmp_path: Path):
    code = (
        "import os, signal, sys, time\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "child = os.fork()\n"
        "open(f'pid{os.getpid()}', 'w').close()\n"
        "print('still here', flush=True)\n"
        "time.sleep(600)\n"
    )
    with pytest.raises(SendError) as failed:
        tell(code, tmp_path, timeout_s=1)
    assert failed.value.reason.startswith("it took longer than 1 s: still here")
    pids = [int(path.name.removeprefix("pid")) for path in tmp_path.glob("pid*")]
    assert len(pids) == 2
    assert eventually(lambda: not any(map(_runs, pids)))


def test_a_grandchild_that_keeps_the_output_open_does_not_hold_us_up(tmp_path: Path):
    code = (
        "import os, time\n"
        "if os.fork() == 0:\n"
        "    os.setsid(); open('pid', 'w').write(str(os.getpid())); time.sleep(600)\n"
    )
    tell(code, tmp_path, timeout_s=20)
    path = tmp_path / "pid"
    assert eventually(lambda: path.is_file() and path.read_text() != "")
    pid = int(path.read_text())
    assert _runs(pid)
    os.kill(pid, 9)


def test_secrets_that_it_prints_are_hidden(tmp_path: Path):
    environ = {**os.environ, "CHAT_TOKEN": "hunter2000"}
    with pytest.raises(SendError) as failed:
        tell("import os; print('401', os.environ['CHAT_TOKEN']); exit(1)", tmp_path, environ=environ)
    assert failed.value.reason == "it exited with 1: 401 [secret]"


def test_a_secret_that_the_cut_goes_through_is_hidden(tmp_path: Path):
    environ = {**os.environ, "CHAT_TOKEN": "hunter2000" * 10}
    for size in range(1900, 2010, 10):
        with pytest.raises(SendError) as failed:
            tell(
                f"import os; print(os.environ['CHAT_TOKEN'] + 'x' * {size}); exit(1)",
                tmp_path,
                environ=environ,
            )
        assert "unter" not in failed.value.reason


def _runs(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
