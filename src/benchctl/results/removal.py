"""Runs that are deleted: who still refers to them, which are old, and what their space comes to."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from benchctl.disk import disk_errors, remove_folder
from benchctl.errors import BenchctlError
from benchctl.home import Home
from benchctl.results.model import RunRecord
from benchctl.results.store import RunFolder
from benchctl.slices import hooks

_ASIDE: Final = ".removed-"


class References:
    """Who refers to which runs: experiments, nights, and searches for the smallest schedule.

    Raises:
        BenchctlError: one of them cannot be read, and might refer to any run.
    """

    def __init__(self, home: Home) -> None:
        unread: list[str] = []
        self._by_run: dict[str, str] = {
            run: who for found in hooks("references") for run, who in found(home, unread.append)
        }
        if unread:
            raise BenchctlError(
                f"it is not known which runs are still referred to: {unread[0]}",
                hint="mend or delete what cannot be read; `benchctl runs rm --force` does not ask",
            )

    def to(self, folder: RunFolder) -> str:
        """Who refers to a run, in words; empty for nobody."""
        path = folder.path.resolve()
        return self._by_run.get(str(path)) or self._by_run.get(path.name, "")


@dataclass(frozen=True)
class Age:
    """Which runs are old: those that meet all given conditions.

    Attributes:
        keep: so many of the newest are not; None for no such number.
        before: only those that began before this are; None for any.
    """

    keep: int | None = None
    before: datetime | None = None

    def old(self, runs: Iterable[tuple[RunFolder, RunRecord]]) -> list[tuple[RunFolder, RunRecord]]:
        """The old ones among runs from oldest to newest, in that order."""
        ordered = list(runs)
        if self.keep is not None:
            ordered = ordered[: max(len(ordered) - self.keep, 0)]
        return [(folder, record) for folder, record in ordered if self._is_before(record)]

    def _is_before(self, record: RunRecord) -> bool:
        if self.before is None:
            return True
        try:
            return datetime.fromisoformat(record.created).astimezone() < self.before
        except ValueError:
            return False  # another tool's file did not say


def remove_run(folder: RunFolder) -> int:
    """Delete a run, or the link to one that is only linked here; return the bytes freed.

    Raises:
        BenchctlError: the disk refuses.
    """
    # Out of the way in one step, so that nobody finds half a run. Should we be killed, the next goes on.
    with disk_errors(f"remove {folder.path}"):
        if folder.path.is_symlink():
            folder.path.unlink()
            return 0
        path = folder.path.resolve()  # it may be named `..`
        path.replace(path.with_name(f"{_ASIDE}{path.name}"))
    return sum(map(remove_folder, path.parent.glob(f"{_ASIDE}*")))
