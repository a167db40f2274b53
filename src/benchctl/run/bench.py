"""What every run on this machine shares, and what it tells whoever watches it."""

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from benchctl.endpoint import Endpoint
from benchctl.home import Home
from benchctl.results.model import ForkRecord
from benchctl.results.store import RunStore

# What a run tells whoever watches it; the run itself never prints.


class Observer(Protocol):
    """Told what is happening; must not take long, since forks wait for it."""

    def note(self, text: str) -> None:
        """Something worth keeping on the screen."""

    def stage(self, text: str) -> None:
        """What is being done now, until the next stage."""

    def progress(self, what: str, done: int, total: int) -> None:
        """How far the present step is, in its own units (`documents`, `bytes`, `requests`)."""

    def fork_started(self, variant: str, number: int, total: int, remaining_s: float | None) -> None:
        """Fork `number` of `total`, counted over all variants from 1.

        Args:
            variant: whose it is.
            number: of it.
            total: how many there are.
            remaining_s: seconds until the last of them is over, this one included; None while unknown.
        """

    def fork_done(self, record: ForkRecord) -> None:
        """A fork is on disk, or failed."""


class SilentObserver:
    """Watches nothing: for tests and for callers that only want the record."""

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


# What every run on this machine shares.


@dataclass(frozen=True)
class Bench:
    """What every run on this machine shares.

    Attributes:
        home: where everything is kept that runs have in common.
        store: of the runs.
        observer: told what happens.
        stop: set from outside to end a task early.
        endpoints: variant -> where it is and with which credentials, for clusters that run already.
    """

    home: Home
    store: RunStore
    observer: Observer
    stop: threading.Event
    endpoints: Mapping[str, Endpoint] = field(default_factory=dict)
