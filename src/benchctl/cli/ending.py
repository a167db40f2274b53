"""The end of the process, which threads that a plug-in left behind cannot put off."""

import os
import sys
import threading
import time
from collections.abc import Callable

from benchctl.cli.streams import complain

GRACE_S = 2.0
"""For threads that are about to end, or that the interpreter ends on its way out."""


def end_soon(status: int, *, grace_s: float = GRACE_S, leave: Callable[[int], object] = os._exit) -> None:
    """See to it that the process ends: the interpreter would wait for every thread that is no daemon.

    To be called last of all, when all that is benchctl's own has been closed. Costs nothing when no such
    thread is left.

    Args:
        status: exit code of the process.
        grace_s: how long threads may go on, seconds.
        leave: ends the process with a status, whatever goes on in it.
    """
    if _left():
        threading.Thread(target=_watch, args=(status, grace_s, leave), name="end", daemon=True).start()


def _left() -> list[threading.Thread]:
    return [
        thread
        for thread in threading.enumerate()
        if not thread.daemon and thread is not threading.main_thread() and thread.is_alive()
    ]


def _watch(status: int, grace_s: float, leave: Callable[[int], object]) -> None:
    time.sleep(grace_s)
    left = _left()
    if not left:
        return  # the interpreter is on its way
    names = ", ".join(sorted(thread.name for thread in left))
    complain(f"benchctl: ends, though threads that a plug-in started go on: {names}")
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()
    leave(status)
