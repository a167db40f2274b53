"""First steps of every Python process that benchctl starts."""

import os
import signal
import threading
from multiprocessing import parent_process
from multiprocessing.connection import wait


def follow_parent() -> None:
    """Leave interrupts to the parent, which then ends its children in order, and never outlive it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)
