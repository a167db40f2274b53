"""Folders with a record each, found by path, by id, by the beginning or end of an id, or as `latest`."""

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeVar

from benchctl.disk import disk_errors
from benchctl.errors import BenchctlError, UsageError

LATEST: Final = "latest"
_MOST_NAMED: Final = 5

Folder = TypeVar("Folder")
Record = TypeVar("Record")


def readable(
    folders: Iterable[Folder], load: Callable[[Folder], Record], unreadable: Callable[[str], None]
) -> Iterator[tuple[Folder, Record]]:
    """Every folder whose record `load` can read, with that, in the order given.

    `unreadable` is called with the reason for each that is skipped.
    """
    for folder in folders:
        try:
            record = load(folder)
        except BenchctlError as err:
            unreadable(err.message)
        else:
            yield folder, record


@dataclass(frozen=True)
class Shelf:
    """Folders of one kind, whose names are their ids and sort by time.

    Attributes:
        root: the folder above; may be missing.
        record: name of the file that makes a folder one of them.
        one, several: what messages call them.
        hint: what to do when nothing fits.
    """

    root: Path
    record: str
    one: str
    several: str
    hint: str

    def folders(self) -> list[Path]:
        """All of them, oldest first, without reading any; those without permission are skipped.

        Raises:
            BenchctlError: they cannot be looked into.
        """
        with disk_errors(f"read {self.root}"):
            if not self.root.is_dir():
                return []
            # What is hidden is on its way out.
            found = (path for path in self.root.iterdir() if not path.name.startswith("."))
            return sorted(path for path in found if self._holds_record(path))

    def fitting(self, name: str) -> list[Path]:
        """Folders that a name may mean: the one that it certainly means, else all that begin or end with it.

        An end is whole parts between hyphens, such as the four digits at the end of every id.

        Raises:
            BenchctlError: they cannot be looked into.
        """
        if not name:
            return []
        direct = Path(name).absolute()
        if self._holds_record(direct):
            return [direct]
        folders = self.folders()
        if name == LATEST:
            return folders[-1:]
        exact = [path for path in folders if path.name == name]
        return exact or [
            path for path in folders if path.name.startswith(name) or path.name.endswith(f"-{name}")
        ]

    def find(self, name: str) -> Path:
        """The one that a name means.

        Raises:
            UsageError: none fits, or several do.
            BenchctlError: they cannot be looked into.
        """
        found = self.fitting(name)
        if len(found) > 1:
            some = ", ".join(path.name for path in found[:_MOST_NAMED])
            raise UsageError(
                f"'{name}' fits {len(found)} {self.several} in {self.root}: {some}",
                hint="give more of the id",
            )
        if not found:
            raise UsageError(f"there is no {self.one} '{name}' in {self.root}", hint=self.hint)
        return found[0]

    def _holds_record(self, path: Path) -> bool:
        return os.access(path / self.record, os.R_OK)
