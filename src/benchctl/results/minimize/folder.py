"""Searches on disk: `minimize.json`, the schedule found, and the runs behind every decision."""

from dataclasses import dataclass
from pathlib import Path

import msgspec

from benchctl.disk import disk_errors
from benchctl.errors import UsageError
from benchctl.results.minimize.model import MINIMIZE_VERSION, MinimizeRecord
from benchctl.results.nightly.durable import write_whole
from benchctl.results.store import RunStore
from benchctl.results.versioned import read_versioned

RECORD_NAME = "minimize.json"


@dataclass(frozen=True)
class MinimizeFolder:
    """One search's folder."""

    path: Path

    @property
    def runs(self) -> RunStore:
        """The runs that decisions rest on: apart from others, since nobody compares with them."""
        return RunStore(self.path / "runs")

    def save(self, record: MinimizeRecord) -> None:
        """Replace the record, atomically.

        Raises:
            BenchctlError: the disk is full or cannot be written.
        """
        with disk_errors(f"write {self.path}"):
            self.path.mkdir(parents=True, exist_ok=True)
        text = msgspec.json.format(msgspec.json.encode(record), indent=1)
        write_whole(self.path / RECORD_NAME, text)

    def load(self) -> MinimizeRecord:
        """Read the record.

        Raises:
            UsageError: there is none.
            BenchctlError: it is broken, or of another version.
        """
        path = self.path / RECORD_NAME
        record = read_versioned(path, MinimizeRecord, "record", MINIMIZE_VERSION)
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
    """
    direct = Path(name)
    if name and (direct / RECORD_NAME).is_file():
        return MinimizeFolder(direct.absolute())
    known = sorted(path.parent.name for path in root.glob(f"*/{RECORD_NAME}"))
    if name == "latest" and known:
        return MinimizeFolder(root / known[-1])
    fitting = [name] if name in known else [one for one in known if one.startswith(name)]
    if len(fitting) != 1:
        few = f"fits {len(fitting)}" if fitting else "is none"
        raise UsageError(
            f"'{name}' {few} of the searches in {root}",
            hint=f"known: {', '.join(known[-5:])}" if known else "start one with: benchctl minimize",
        )
    return MinimizeFolder(root / fitting[0])
