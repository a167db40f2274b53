"""Shared surroundings of all runs on this machine, and how a run reports its progress."""

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from benchctl.endpoint import Endpoint
from benchctl.home import Home
from benchctl.results.model import ForkRecord
from benchctl.results.store import RunStore


class Observer(Protocol):
    """Is told what happens, since a run itself never prints; must be quick, since forks wait for it."""

    def note(self, text: str) -> None:
        """Something worth keeping on the screen."""

    def stage(self, text: str) -> None:
        """Take the current activity, until the next stage."""

    def progress(self, what: str, done: int, total: int) -> None:
        """Progress of the current step, in its own unit (`documents`, `bytes`, `requests`)."""

    def fork_started(self, variant: str, number: int, total: int, remaining_s: float | None) -> None:
        """Fork `number` of `total`, counted over all variants from 1.

        `remaining_s` is the time until the last one is over, including this one; None while unknown.
        """

    def fork_done(self, record: ForkRecord) -> None:
        """A fork is on disk, or failed."""


class SilentObserver:
    """Ignores everything: for tests, and for callers that only want the record."""

    def note(self, text: str) -> None:
        """Ignore it."""

    def stage(self, text: str) -> None:
        """Ignore it."""

    def progress(self, what: str, done: int, total: int) -> None:
        """Ignore it."""

    def fork_started(self, variant: str, number: int, total: int, remaining_s: float | None) -> None:
        """Ignore it."""

    def fork_done(self, record: ForkRecord) -> None:
        """Ignore it."""


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
