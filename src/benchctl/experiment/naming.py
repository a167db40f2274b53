"""Progress of one measurement among several: whatever is told of it bears its name."""

import msgspec

from benchctl.results.model import ForkRecord
from benchctl.run.observer import Observer


class Named:
    """Passes everything on, with the measurement's name where there is room for it.

    Args:
        observer: that is told.
        name: of the measurement.
    """

    def __init__(self, observer: Observer, name: str) -> None:
        self._observer = observer
        self._name = name

    def note(self, text: str) -> None:
        """Pass it on, named."""
        self._observer.note(f"{self._name}: {text}")

    def stage(self, text: str) -> None:
        """Pass it on, named."""
        self._observer.stage(f"{self._name}: {text}")

    def progress(self, what: str, done: int, total: int) -> None:
        """Pass it on."""
        self._observer.progress(what, done, total)

    def fork_started(self, variant: str, number: int, total: int, remaining_s: float | None) -> None:
        """Pass it on; several measurements may have a variant of that name."""
        self._observer.fork_started(f"{self._name}/{variant}", number, total, remaining_s)

    def fork_done(self, record: ForkRecord) -> None:
        """Pass it on, as for a fork's beginning."""
        named = msgspec.structs.replace(record, variant=f"{self._name}/{record.variant}")
        self._observer.fork_done(named)
