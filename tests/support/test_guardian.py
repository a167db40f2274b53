import os
import subprocess
import sys

import guardian

WAITS = "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN); print(flush=True); signal.pause()"
ENDS = "print(flush=True); import signal; signal.pause()"


def started(program: str, mark: str) -> "subprocess.Popen[bytes]":
    environ = os.environ | {guardian.MARK_VARIABLE: mark}
    process = subprocess.Popen(
        [sys.executable, "-c", program], env=environ, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    assert process.stdout is not None
    process.stdout.readline()
    return process


def test_what_belongs_to_ended_tests_is_interrupted_then_killed_and_nothing_else():
    with (
        started(WAITS, "theirs") as other,
        guardian.start("mine", patience_s=0.5) as guard,
        started(WAITS, "mine") as deaf,
        started(ENDS, "mine") as obedient,
    ):
        assert [process.poll() for process in (guard, deaf, obedient)] == [None, None, None]
        assert guard.stdin is not None
        guard.stdin.close()
        assert (deaf.wait(30), obedient.wait(30), guard.wait(30)) == (-9, -2, 0)
        assert other.poll() is None
        other.kill()
