"""What every run on this machine shares."""

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field

from benchctl.endpoint import Endpoint
from benchctl.home import Home
from benchctl.results.store import RunStore
from benchctl.run.observer import Observer


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
