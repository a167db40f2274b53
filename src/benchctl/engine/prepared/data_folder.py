"""What a copy of a node's data folder has to have, and which of it may be linked instead of copied."""

import errno
import os
import shutil
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from benchctl.disk import folder_past_nodes, open_regular

_LOCKS = frozenset({"write.lock", "node.lock"})
# Lucene ends every file so: a number that says that it is a footer, one of the algorithm, and a CRC-32 of all
# that stands before it, big-endian. The engines write their own state in the same form.
_FOOTER = struct.Struct(">IIQ")
_FOOTER_MAGIC = 0xC02893E8
_CHECKSUM_BYTES = 8
_PIECE_BYTES = 2**20


class Entry(NamedTuple):
    """A folder or file of a data folder, and where its copy goes.

    Attributes:
        source: where it is.
        target: where it goes; folders come before what is in them.
        is_folder: whether it is one.
        write_once: whether it is one of Lucene's files, which are written once and may be linked.
    """

    source: Path
    target: Path
    is_folder: bool
    write_once: bool = False


def entries(source: Path, target: Path) -> Iterator[Entry]:
    """All that a copy of a data folder has to have: everything but the locks of a running node.

    Raises:
        OSError: it cannot be read, or holds a symbolic link.
    """
    yield Entry(source, target, is_folder=True)
    is_lucene = source.name == "index" and source.parent.name.isdigit()
    for entry in source.iterdir():
        if entry.is_symlink():
            # No engine makes one. Another process of the nodes' user may have, and root must not follow it.
            raise OSError(errno.ELOOP, f"{entry} is a symbolic link")
        if entry.is_dir():
            yield from entries(entry, target / entry.name)
        elif entry.name not in _LOCKS:
            yield Entry(entry, target / entry.name, is_folder=False, write_once=is_lucene)


def link(source: Path, target: Path) -> None:
    """Link a file, and no other that a link of the nodes' user leads to.

    Raises:
        OSError: the file system refuses, or there is such a link.
    """
    with folder_past_nodes(source.parent) as folder:
        os.link(source.name, target, src_dir_fd=folder, follow_symlinks=False)


def copy(source: Path, target: Path) -> None:
    """Copy a file, and no other that a link of the nodes' user leads to.

    Raises:
        OSError: the file system refuses, or there is such a link.
    """
    with open_regular(source, follow=False) as file:
        shutil.copyfile(f"/proc/self/fd/{file.fileno()}", target)


def stamps(data: Path) -> dict[str, tuple[int, int, int]]:
    """(inode, size, time of its last change in ns) of every file with a checksum, by its path in the folder.

    Links to a file, which forks make, change none of these.

    Raises:
        OSError: one cannot be looked at.
    """
    found = {}
    for entry in _checksummed(data):
        stat = entry.source.stat()
        found[str(entry.source.relative_to(data))] = (stat.st_ino, stat.st_size, stat.st_mtime_ns)
    return found


def _checksummed(data: Path) -> Iterator[Entry]:
    """Its files that end with a checksum."""
    for entry in entries(data, data):
        if not entry.is_folder and (entry.write_once or entry.source.parent.name == "_state"):
            yield entry


def damage_of(data: Path, store_bytes: int) -> str:
    """What is wrong with the data folder of a node that was stopped in order, in words; empty for nothing.

    All of its files are read: a node looks at most of them only when a search comes to them, if at all.

    Args:
        data: the folder.
        store_bytes: of all segments, as the node said: less means that one is gone.

    Raises:
        OSError: a file cannot be read.
    """
    found_bytes = 0
    for entry in _checksummed(data):
        if not _is_whole(entry.source):
            return f"the content of {entry.source.relative_to(data)} does not match its checksum"
        if entry.write_once and not entry.source.name.startswith("segments"):
            found_bytes += entry.source.stat().st_size
    if found_bytes < store_bytes:
        return f"its segments have {found_bytes:,} bytes, and had {store_bytes:,} when it was built"
    return ""


def _is_whole(file: Path) -> bool:
    size = file.stat().st_size
    if size < _FOOTER.size:
        return False
    checksum = 0
    with open_regular(file, follow=False) as opened:
        left = size - _CHECKSUM_BYTES
        while left and (piece := opened.read(min(left, _PIECE_BYTES))):
            checksum = zlib.crc32(piece, checksum)
            left -= len(piece)
        opened.seek(size - _FOOTER.size)
        return _FOOTER.unpack(opened.read(_FOOTER.size)) == (_FOOTER_MAGIC, 0, checksum)
