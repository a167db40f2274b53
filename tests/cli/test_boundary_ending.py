"""The end of the process beside threads that go on."""

import subprocess
import sys
import textwrap

import pytest

SCRIPT = """
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

from benchctl.cli.boundary import end_soon

print("result")
{left}
end_soon(3, grace_s={grace_s})
sys.exit(3)
"""


def ended(left: str, *, grace_s: float) -> tuple[int, str, str]:
    """Exit code, standard output and standard error of a process that leaves something behind."""
    script = SCRIPT.format(left=textwrap.dedent(left), grace_s=grace_s)
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=60
    )
    return done.returncode, done.stdout, done.stderr


def test_a_thread_that_never_ends_is_named_and_left():
    left = "threading.Thread(target=threading.Event().wait, name='poller\\x1b[31m').start()"
    assert ended(left, grace_s=0.05) == (
        3,
        "result\n",
        "benchctl: exiting while threads of a plug-in still run: poller\N{REPLACEMENT CHARACTER}[31m\n",
    )


@pytest.mark.parametrize(
    "left",
    [
        "",
        "threading.Thread(target=threading.Event().wait, daemon=True).start()",
        "ThreadPoolExecutor().submit(int)",
        "threading.Thread(target=lambda: None).start()",
    ],
)
def test_threads_that_end_by_themselves_are_waited_for_without_a_word(left: str):
    assert ended(left, grace_s=60) == (3, "result\n", "")
