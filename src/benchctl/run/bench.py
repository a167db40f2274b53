"""Shared surroundings of all runs on this machine, and how a run reports its progress."""

import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final, TypeVar

import psutil

from benchctl.endpoint import Endpoint
from benchctl.errors import BenchctlError, ExitCode
from benchctl.home import Home
from benchctl.results.model import ForkRecord
from benchctl.results.store import RunStore

# How long steps may take to end by themselves: nodes are stopped, and their directories removed.
_HALT_S: Final = 15.0

T = TypeVar("T")


class Observer:
    """Is told what happens, since a run itself never prints; must be quick, since forks wait for it.

    This one ignores everything: for tests, and for callers that only want the record.
    """

    def note(self, text: str) -> None:
        """Take something worth keeping on the screen."""

    def stage(self, text: str) -> None:
        """Take the current activity, until the next stage."""

    def progress(self, what: str, done: int, total: int) -> None:
        """Take the progress of the current step, in its own unit (`documents`, `bytes`, `requests`)."""

    def fork_started(self, variant: str, number: int, total: int | None, remaining_s: float | None) -> None:
        """Take the start of fork `number` of `total`, counted over all variants from 1.

        `remaining_s` is the time until the last one is over, including this one; None while unknown.
        """

    def fork_done(self, record: ForkRecord, remaining_s: float | None) -> None:
        """Take a fork that is on disk, or failed, and the time until the last one is over, as before."""


class SharedObserver(Observer):
    """An observer of steps that may run side by side; once halted, it interrupts them."""

    def __init__(self, observer: Observer) -> None:
        self.halted = threading.Event()
        self._observer = observer
        self._lock = threading.RLock()

    def note(self, text: str) -> None:
        """Pass it on."""
        with self._lock:
            self._observer.note(text)

    def stage(self, text: str) -> None:
        """Pass it on, as `check` lets it."""
        self.check()
        with self._lock:
            self._observer.stage(text)

    def progress(self, what: str, done: int, total: int) -> None:
        """Pass it on, as `check` lets it."""
        self.check()
        with self._lock:
            self._observer.progress(what, done, total)

    def check(self) -> None:
        """Go on, unless all steps are to end.

        Raises:
            KeyboardInterrupt: If they are.
        """
        if self.halted.is_set():
            raise KeyboardInterrupt


def side_by_side(steps: Sequence[Callable[[], T]], observer: SharedObserver) -> list[T]:
    """Run steps that report to an observer, all at the same time, and return their results in order.

    If one fails, or Ctrl-C comes, the others are interrupted when they report next; after a while, or with a
    second Ctrl-C, the processes that they wait for are terminated.

    Raises:
        BaseException: If a step fails: the first error. If Ctrl-C comes: what a step says that it kept, else
            KeyboardInterrupt.
    """
    if len(steps) <= 1:
        return [step() for step in steps]
    before = set(psutil.Process().children())
    with ThreadPoolExecutor(len(steps), thread_name_prefix="prepare") as pool:
        futures: list[Future[T]] = []
        failed: BaseException | None = None
        try:
            futures.extend(pool.submit(step) for step in steps)
            done, _ = wait(futures, return_when=FIRST_EXCEPTION)
            failed = next(filter(None, (future.exception() for future in done)), None)
        except KeyboardInterrupt as err:
            failed = err
        if failed is not None:
            observer.halted.set()
            pool.shutdown(wait=False, cancel_futures=True)
            try:
                ended = not wait(futures, _HALT_S).not_done
            except KeyboardInterrupt:
                ended = False  # a second Ctrl-C: nobody waits for steps to end by themselves any more
            if not ended:
                for child in set(psutil.Process().children()) - before:
                    with suppress(psutil.NoSuchProcess):
                        child.terminate()
    if isinstance(failed, KeyboardInterrupt):
        ends = [None if future.cancelled() else future.exception() for future in futures]
        errors = [
            end for end in ends if isinstance(end, BenchctlError) and end.exit_code == ExitCode.INTERRUPTED
        ]
        for other in errors[1:]:
            observer.note(other.message)
        failed = errors[0] if errors else failed
    if failed is not None:
        raise failed
    return [future.result() for future in futures]


@dataclass(frozen=True)
class Bench:
    """The surroundings that all runs on this machine share."""

    home: Home
    store: RunStore
    observer: Observer
    stop: threading.Event  # set from outside to end a task early
    # By variant, of clusters that are already running.
    endpoints: Mapping[str, Endpoint] = field(default_factory=dict)
    whole: str = ""  # the id of what its runs are parts of, which goes on instead of them
