"""What a copy of a node's data folder has to have, and which of it may be linked instead of copied."""

import errno
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

_LOCKS = frozenset({"write.lock", "node.lock"})


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
