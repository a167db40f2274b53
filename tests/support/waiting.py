"""Waiting for what another process or thread does."""

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

# Only what is broken waits for so long; a node alone may take half a minute to stop on a busy machine.
DEADLINE_S = 120.0
POLL_S = 0.005


def eventually(condition: Callable[[], bool]) -> bool:
    """Poll until the condition holds or the deadline has passed."""
    deadline, pause = time.monotonic() + DEADLINE_S, threading.Event()
    while not condition():
        if time.monotonic() > deadline:
            return False
        pause.wait(POLL_S)
    return True


@contextmanager
def stopped_when(ready: Callable[[], bool], pid: Callable[[], int | None], seconds: float) -> Iterator[None]:
    """While the block runs, stop a process for so long, as soon as that holds."""

    def stop() -> None:
        assert eventually(ready)
        process = pid()
        assert process  # 0 would be all of us
        os.kill(process, signal.SIGSTOP)
        try:
            threading.Event().wait(seconds)
        finally:
            os.kill(process, signal.SIGCONT)

    with ThreadPoolExecutor(1) as pool:
        stopping = pool.submit(stop)
        yield
        stopping.result()
