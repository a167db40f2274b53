"""What is known of a file once it was read in full: its lines, its digest, and where decoding can begin."""

import hashlib
import os
from bisect import bisect_left
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import msgspec

from benchctl.corpus.packed.decode import decode, unreadable
from benchctl.disk import disk_errors, read_file
from benchctl.home import Home

_FORMAT_VERSION = 2
_APART_BYTES = 1 << 22  # decoded; nearer entries save little, and those of a terabyte fit in memory

_EMPTY = (b"\n\n", b"\n\r\n")


class Entry(msgspec.Struct, frozen=True, array_like=True):
    """A place from which a file can be decoded.

    Attributes:
        at: in the file, in the unit of its format.
        raw_bytes: decoded bytes before it.
        line_ends: line ends before it.
    """

    at: int
    raw_bytes: int
    line_ends: int


class FileIndex(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab", kw_only=True):
    r"""What a file of lines holds.

    Attributes:
        format_version: of this form.
        path: absolute path of the file.
        file_bytes: its size as it lies on the disk.
        modified_ns: when it was changed for the last time.
        status_ns: the same by the file system's own clock, which no program can set back.
        lines: how many it holds; an unfinished last one counts.
        raw_bytes: of all lines, decompressed.
        sha256: of the same, hexadecimal.
        entries: where decoding can begin, in order; the first is the beginning.
        first_empty: number of the first line without anything in it, from 0; None when there is none.
    """

    format_version: int
    path: str
    file_bytes: int
    modified_ns: int
    status_ns: int
    lines: int
    raw_bytes: int
    sha256: str
    entries: tuple[Entry, ...]
    first_empty: int | None = None

    def entry_before(self, line: int) -> int:
        """Which entry the line's first byte is behind, as near as there is one."""
        return max(bisect_left(self.entries, line, key=lambda entry: entry.line_ends) - 1, 0)

    def entry_behind(self, line: int) -> int:
        """The first entry that all lines before `line` end before; one behind the last for none."""
        return bisect_left(self.entries, line, key=lambda entry: entry.line_ends)


def index_file(
    path: Path,
    home: Home,
    progress: Callable[[int], None] | None = None,
    *,
    apart_bytes: int = _APART_BYTES,
) -> FileIndex:
    """The index of a file: kept from the last time, or made by reading all of it.

    Args:
        path: of the file, compressed or not.
        home: where indices of files are kept.
        progress: told the number of lines newly read.
        apart_bytes: decoded bytes between two entries, at least.

    Raises:
        BenchctlError: the file is missing or damaged, or was changed while it was read.
    """
    path = path.absolute()
    kept = _kept_at(path, home)
    found = _load(kept, path)
    if found is None:
        found = _read(path, progress, apart_bytes)
        with disk_errors(f"keep what is known of {path} in {kept.parent}"):
            kept.parent.mkdir(parents=True, exist_ok=True)
            building = kept.with_name(f"{kept.name}.{os.getpid()}")
            building.write_bytes(msgspec.json.encode(found))
            building.replace(kept)
    return found


def _kept_at(path: Path, home: Home) -> Path:
    name = hashlib.sha256(os.fsencode(path)).hexdigest()[:32]
    return home.corpora / ".files" / f"{name}.json"


def _load(kept: Path, path: Path) -> FileIndex | None:
    """The index as kept; None when there is none, or not of the file as it is now."""
    with suppress(OSError, msgspec.DecodeError):
        found = msgspec.json.decode(read_file(kept), type=FileIndex)
        if (found.format_version, found.path) == (_FORMAT_VERSION, str(path)) and _facts(path) == (
            found.file_bytes,
            found.modified_ns,
            found.status_ns,
        ):
            return found
    return None


def _facts(path: Path) -> tuple[int, int, int]:
    """(bytes, time of the last change in ns, that of the file system in ns)."""
    try:
        info = path.stat()
    except OSError as err:
        raise unreadable(path, err.strerror or str(err)) from err
    return info.st_size, info.st_mtime_ns, info.st_ctime_ns


def _read(path: Path, progress: Callable[[int], None] | None, apart_bytes: int) -> FileIndex:
    before = _facts(path)
    digest = hashlib.sha256()
    entries = [Entry(0, 0, 0)]
    raw_bytes = line_ends = 0
    first_empty: int | None = None
    last = b"\n"
    for at, block in decode(path):
        if at > 0 and raw_bytes - entries[-1].raw_bytes >= apart_bytes:
            entries.append(Entry(at, raw_bytes, line_ends))
        joined = last + block
        if first_empty is None and (places := [at for empty in _EMPTY if (at := joined.find(empty)) >= 0]):
            first_empty = line_ends + block.count(b"\n", 0, max(min(places) + 1 - len(last), 0))
        count = block.count(b"\n")
        digest.update(block)
        raw_bytes += len(block)
        line_ends += count
        last = joined[-2:]
        if progress is not None:
            progress(count)
    if _facts(path)[:2] != before[:2]:
        raise unreadable(path, "it was changed while it was read")
    return FileIndex(
        format_version=_FORMAT_VERSION,
        path=str(path),
        file_bytes=before[0],
        modified_ns=before[1],
        status_ns=before[2],
        lines=line_ends + (not last.endswith(b"\n")),
        raw_bytes=raw_bytes,
        sha256=digest.hexdigest(),
        entries=tuple(entries),
        first_empty=first_empty,
    )
