"""Folders with a record each: found by path, id, part of an id, or as `latest`; files with a version."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeVar

import msgspec

from benchctl.disk import disk_errors, read_file, replacing
from benchctl.errors import BenchctlError, UsageError

LATEST: Final = "latest"
_MOST_NAMED: Final = 5

Folder = TypeVar("Folder")
Record = TypeVar("Record")


def readable(
    folders: Iterable[Folder], load: Callable[[Folder], Record], unreadable: Callable[[str], None]
) -> Iterator[tuple[Folder, Record]]:
    """Return every folder whose record `load` can read, with that, in the order given.

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
    """Folders of one kind, whose names are their ids and sort by time."""

    root: Path  # the folder above; may be missing
    record: str  # name of the file that makes a folder one of them
    one: str  # what messages call them
    several: str
    hint: str  # what to do when nothing fits

    def folders(self) -> list[Path]:
        """Return all folders, oldest first, without reading any.

        Raises:
            BenchctlError: If the folder cannot be read.
        """
        with disk_errors(f"read {self.root}"):
            if not self.root.is_dir():
                return []
            # What is hidden is on its way out.
            paths = (path for path in self.root.iterdir() if not path.name.startswith("."))
            return sorted(path for path in paths if self._holds_record(path))

    def fitting(self, name: str) -> list[Path]:
        """Return folders that a name may mean: an exact match, else all that begin or end with it.

        An end is whole parts between hyphens, such as the four digits at the end of every id.

        Raises:
            BenchctlError: If the folder cannot be read.
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
        """Return the folder that a name means.

        Raises:
            UsageError: If no folder matches, or several do.
            BenchctlError: If the folder cannot be read.
        """
        paths = self.fitting(name)
        if len(paths) > 1:
            some = ", ".join(path.name for path in paths[:_MOST_NAMED])
            raise UsageError(
                f"'{name}' is ambiguous: it matches {len(paths)} {self.several} in {self.root} ({some})",
                hint="use a longer part of the id",
            )
        if not paths:
            raise UsageError(f"no such {self.one} '{name}' in {self.root}", hint=self.hint)
        return paths[0]

    def _holds_record(self, path: Path) -> bool:
        """Return whether the record exists, or may exist in a folder without permission."""
        try:
            (path / self.record).stat()
        except PermissionError:
            return True
        except (OSError, ValueError):
            return False
        return True


T = TypeVar("T")


def read_versioned(path: Path, kind: type[T], what: str, version: int) -> T | None:
    """Read a file of the only supported version; None when there is none.

    `what` is `record` for a version at `record-version`; also in messages.

    Raises:
        BenchctlError: If the file cannot be read, is damaged, or of another version.
    """
    try:
        raw = read_file(path)
    except FileNotFoundError:
        return None
    except OSError as err:
        raise BenchctlError(f"cannot read {path}: {err.strerror}") from err
    try:
        actual = _version(raw, what)
        if actual != version:
            raise BenchctlError(
                f"{path}: unsupported {what} version {actual} (expected {version})",
                hint="read it with the benchctl that wrote it, or delete it",
            )
        return msgspec.json.decode(raw, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError) as err:
        raise BenchctlError(f"{path} is damaged: {err}") from err


def write_versioned(path: Path, content: object) -> None:
    """Replace a file, making its folder: readers, also after a power cut, find the old or the new one.

    Raises:
        BenchctlError: If the disk is full or cannot be written.
    """
    text = msgspec.json.format(msgspec.json.encode(content), indent=1)
    with disk_errors(f"write {path}"):
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path, durable=True) as partial:
            partial.write_bytes(text + b"\n")


def _version(raw: bytes, what: str) -> int:
    """The value of the version's key; nothing else is read yet."""
    key = f"{what}-version"
    typed = msgspec.defstruct("Versioned", [("version", int)], rename={"version": key})
    return int(msgspec.structs.astuple(msgspec.json.decode(raw, type=typed))[0])
