"""Searches on disk: `minimize.json`, the schedule found, and the runs behind every decision."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from benchctl.errors import UsageError
from benchctl.results.finding import Shelf, readable
from benchctl.results.minimize.model import MINIMIZE_VERSION, MinimizeRecord
from benchctl.results.store import RunStore
from benchctl.results.versioned import read_versioned, write_versioned

RECORD_NAME = "minimize.json"


@dataclass(frozen=True)
class MinimizeFolder:
    """One search's folder."""

    path: Path

    @property
    def runs(self) -> RunStore:
        """The runs that decisions rest on: apart from others, since nobody compares with them."""
        return RunStore(self.path / "runs")

    @property
    def record_path(self) -> Path:
        """Where the record is."""
        return self.path / RECORD_NAME

    def save(self, record: MinimizeRecord) -> None:
        """Replace the record; see `write_versioned`.

        Raises:
            BenchctlError: the disk is full or cannot be written.
        """
        write_versioned(self.record_path, record)

    def load(self) -> MinimizeRecord:
        """Read the record.

        Raises:
            UsageError: there is none.
            BenchctlError: it is broken, or of another version.
        """
        record = read_versioned(self.record_path, MinimizeRecord, "record", MINIMIZE_VERSION)
        if record is None:
            raise UsageError(f"there is no search in {self.path}")
        return record


def find_search(root: Path, name: str) -> MinimizeFolder:
    """A search by id, by a beginning of it that only one has, or by path; `latest` for the newest.

    Args:
        root: folder of all searches.
        name: as given.

    Raises:
        UsageError: none or several fit.
        BenchctlError: they cannot be looked into.
    """
    return MinimizeFolder(_shelf(root).find(name))


def all_searches(root: Path, unreadable: Callable[[str], None]) -> Iterator[MinimizeRecord]:
    """The records of all readable searches, oldest first.

    Args:
        root: folder of all searches; it need not be there.
        unreadable: told why, of each that is passed over.

    Raises:
        BenchctlError: they cannot be looked into.
    """
    folders = map(MinimizeFolder, _shelf(root).folders())
    return (record for _, record in readable(folders, MinimizeFolder.load, unreadable))


def _shelf(root: Path) -> Shelf:
    return Shelf(root, RECORD_NAME, "search", "searches", "see: benchctl list searches")
