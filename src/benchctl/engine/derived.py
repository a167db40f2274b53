"""Installations derived from others: a change applied to a tree of links, made once and kept."""

import errno
import hashlib
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Final

import msgspec

from benchctl.disk import disk_errors, read_file
from benchctl.engine.distribution import Installation
from benchctl.engine.unpacking import settle, staging
from benchctl.home import Home

_FORMAT: Final = 1
_MANIFEST_NAME: Final = "manifest.json"
_ROOT_NAME: Final = "distribution"
_OF_NODES: Final = ("data", "logs")
_NO_LINKS: Final = frozenset({errno.EXDEV, errno.EPERM, errno.EMLINK, errno.ENOTSUP, errno.EACCES})


class _Manifest(msgspec.Struct, frozen=True):
    """Marks a derived installation as complete; retention finds it by its archive, like its original."""

    archive_sha256: str
    parts: str


def derived(home: Home, original: Installation, parts: object, change: Callable[[Path], None]) -> Path:
    """Return the root of an installation with a change, made unless it exists.

    Files are hard links to the original's where the file system allows: nodes only read them.

    Args:
        home: keeps it, beside the original.
        original: what to start from.
        parts: describes the change, in anything JSON can hold; the cache key, with the original.
        change: applies it below the given folder; may delete, add and replace files, but never write into
            one.

    Raises:
        BenchctlError: If the disk refuses, or `change` does.
    """
    key: tuple[object, ...] = (_FORMAT, original.archive_sha256, str(original.root), parts)
    if not original.root.is_relative_to(home.engines):
        # A user's folder may be built into again.
        key = (*key, _state(original.root))
    digest = hashlib.sha256(msgspec.json.encode(key)).hexdigest()
    final = home.engines / f"{original.engine}-{original.version}-with-{digest[:12]}"
    if _is_complete(final, digest):
        return final / _ROOT_NAME
    with staging(home.engines, f"make {final} of {original.root}") as partial:
        ready = partial / "ready"
        _link_tree(original.root, ready / _ROOT_NAME)
        ready.chmod(0o755)
        change(ready / _ROOT_NAME)
        (ready / _MANIFEST_NAME).write_bytes(msgspec.json.encode(_Manifest(original.archive_sha256, digest)))
        if final.exists() and not _is_complete(final, digest):
            shutil.rmtree(final)
        settle(ready, final)
    return final / _ROOT_NAME


def _state(root: Path) -> str:
    """SHA-256 over all files' sizes and modification times, without what nodes write."""
    digest = hashlib.sha256()
    with disk_errors(f"read {root}"):
        for folder, folders, files in os.walk(root):
            folders[:] = sorted(name for name in folders if Path(folder) != root or name not in _OF_NODES)
            for path in (Path(folder, name) for name in sorted(files)):
                found = path.lstat()
                line = f"{path.relative_to(root)}\0{found.st_size}\0{found.st_mtime_ns}\n"
                digest.update(line.encode(errors="surrogateescape"))
    return digest.hexdigest()


def _is_complete(final: Path, digest: str) -> bool:
    with disk_errors(f"use {final}"):
        try:
            manifest = msgspec.json.decode(read_file(final / _MANIFEST_NAME), type=_Manifest)
        except (FileNotFoundError, NotADirectoryError, msgspec.DecodeError):
            return False
    return manifest.parts == digest


def _link_tree(source: Path, target: Path) -> None:
    """Folders get modes of our own, since nodes must enter; what nodes would write is left out."""
    for folder, folders, files in os.walk(source):
        here = Path(folder)
        if here == source:
            folders[:] = [name for name in folders if name not in _OF_NODES]
        there = target / here.relative_to(source)
        there.mkdir(parents=True)
        there.chmod(0o755)
        for name in (*files, *(name for name in folders if (here / name).is_symlink())):
            _link(here / name, there / name)


def _link(source: Path, target: Path) -> None:
    if source.is_symlink():
        target.symlink_to(source.readlink())
        return
    try:
        os.link(source, target)
    except OSError as err:
        if err.errno not in _NO_LINKS:
            raise
        shutil.copyfile(source, target)
        target.chmod(0o755 if source.stat().st_mode & 0o111 else 0o644)
