"""Files of a site: written whole or not at all, left alone when they have not changed, removed when stale."""

import re
from collections.abc import Collection, Iterable
from pathlib import Path

from benchctl.disk import replacing
from benchctl.errors import BenchctlError

MARK = '<meta name="generator" content="benchctl '
"""Near the beginning of every page that benchctl made: no other file is ever removed."""

_MARK_WITHIN_BYTES = 400
_PARTIAL = re.compile(r"\..+\.(html|xml|json)\.[0-9]+\.partial")


def write_changed(path: Path, text: str) -> bool:
    """Write a file unless it holds that text already.

    Args:
        path: of the file; folders are made.
        text: all of it.

    Returns:
        Whether it was written.

    Raises:
        BenchctlError: the disk is full or cannot be written.
    """
    raw = text.encode("utf-8", errors="replace")
    try:
        if path.is_file() and path.stat().st_size == len(raw) and path.read_bytes() == raw:
            return False
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as partial:
            partial.write_bytes(raw)
    except OSError as err:
        raise BenchctlError(
            f"cannot write {path}: {err.strerror}", hint="free some space or name another `report` folder"
        ) from err
    return True


def remove_stale(folder: Path, keep: Collection[str]) -> list[str]:
    """Remove pages that benchctl made earlier and that are no longer any.

    Args:
        folder: where they are; nothing is done when there is none.
        keep: names of files that stay.

    Returns:
        Names of those that went.
    """
    gone = []
    for path in sorted(folder.glob("*.html")):
        if path.name not in keep and _is_ours(path):
            path.unlink(missing_ok=True)
            gone.append(path.name)
    return gone


def remove_partials(folders: Iterable[Path]) -> None:
    """Remove what writers that were killed left behind; nobody else may be writing there just then.

    Args:
        folders: that are looked into, and not what is below them: a site may lie above files of others.
    """
    for folder in folders:
        for path in folder.glob(".*.partial"):
            if _PARTIAL.fullmatch(path.name):
                path.unlink(missing_ok=True)


def refuse_foreign(path: Path) -> None:
    """Leave a page alone that is called as one of ours is.

    Raises:
        BenchctlError: it is there, and benchctl has not made it.
    """
    if path.is_file() and path.stat().st_size and not _is_ours(path):
        raise BenchctlError(
            f"{path} is there and was not written by benchctl", hint="name another `report` folder"
        )


def _is_ours(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return MARK.encode() in file.read(_MARK_WITHIN_BYTES)
    except OSError:
        return False
