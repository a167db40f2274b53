"""Ends what tests have started as soon as the process that runs them is gone, whatever ended it.

A program: its arguments are the mark of the tests and a patience in seconds, its input a pipe from them.
"""

import contextlib
import os
import signal
import subprocess
import sys

import psutil

MARK_VARIABLE = "BENCHCTL_TESTS"
PATIENCE_S = 20.0


def start(mark: str, patience_s: float = PATIENCE_S) -> "subprocess.Popen[bytes]":
    """Start a guardian of every process whose environment has the mark; it outlives this one."""
    return subprocess.Popen(
        [sys.executable, "-P", __file__, mark, str(patience_s)],
        stdin=subprocess.PIPE,
        start_new_session=True,
        env=os.environ | {MARK_VARIABLE: ""},
    )


def _tagged(mark: str) -> list[psutil.Process]:
    processes = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            if process.environ().get(MARK_VARIABLE) == mark:
                processes.append(process)
    return processes


def _end_all(mark: str, patience_s: float) -> None:
    """Interrupt them, so that benchctl ends its nodes in order, and kill what is left."""
    for number in (signal.SIGINT, signal.SIGKILL):
        processes = _tagged(mark)
        for process in processes:
            with contextlib.suppress(psutil.Error):
                process.send_signal(number)
        psutil.wait_procs(processes, timeout=patience_s)


if __name__ == "__main__":
    sys.stdin.buffer.read()
    _end_all(sys.argv[1], float(sys.argv[2]))
