"""A second set of links to a data folder's Lucene files: what a node commits stays, whatever comes after."""

import errno
import os
import shutil
from pathlib import Path

from benchctl.engine.prepared.data_folder import entries

# A commit that the node makes on its own while files are linked is rare; two in a row are not chance.
ATTEMPTS = 3


def freeze(source: Path, target: Path) -> None:
    """Link or copy a data folder as of its last commits; a node may be running on it, if nobody indexes.

    Lucene writes every file of its `index` folders once, so those are linked, always: copying them would take
    as long as building the index. Files that are in no commit may be linked, too: whoever opens the index
    removes them. Everything else is small and copied.

    Args:
        source: a node's data folder.
        target: a folder that does not exist yet, on the same file system; gone again after a failure.

    Raises:
        OSError: the file system cannot link, is full, or the node keeps committing.
    """
    for _ in range(ATTEMPTS):
        before = _state(source)
        try:
            _link_tree(source, target)
        except OSError:
            shutil.rmtree(target, ignore_errors=True)
            raise
        # Files of an older commit may vanish while they are linked, but only when there is a newer one.
        if before == _state(source):
            return
        shutil.rmtree(target, ignore_errors=True)
    raise OSError(errno.EAGAIN, "the node commits all the time")


def _state(data: Path) -> dict[Path, bytes]:
    """Lucene's commits, those of the cluster state included, and the checkpoints of the translogs."""
    found = {}
    for path in [*data.rglob("segments_*"), *data.rglob("*.ckp")]:
        try:
            found[path] = path.read_bytes()
        except FileNotFoundError:
            # It has just been replaced, and will differ from what is there later.
            found[path] = b""
    return found


def _link_tree(source: Path, target: Path) -> None:
    for entry in entries(source, target):
        if entry.is_folder:
            entry.target.mkdir(parents=True)
            continue
        try:
            (os.link if entry.write_once else shutil.copyfile)(entry.source, entry.target)
        except FileNotFoundError:
            # It vanished: part of no commit, or of one that is not the last any more.
            continue
