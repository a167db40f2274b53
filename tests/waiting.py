"""Waiting for what another process or thread does."""

import threading
import time
from collections.abc import Callable

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
