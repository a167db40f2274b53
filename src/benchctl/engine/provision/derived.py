"""Installations made of others: all files linked, but for those that are added or replaced."""

import errno
import hashlib
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Final

import msgspec

from benchctl.disk import disk_errors, read_file
from benchctl.engine.provision.install import Installation
from benchctl.engine.provision.staging import settle, staging
from benchctl.home import Home

_FORMAT: Final = 1
_MANIFEST_NAME: Final = "manifest.json"
_ROOT_NAME: Final = "distribution"
_OF_NODES: Final = ("data", "logs")
_NO_LINKS: Final = frozenset({errno.EXDEV, errno.EPERM, errno.EMLINK, errno.ENOTSUP, errno.EACCES})


class _Manifest(msgspec.Struct, frozen=True):
    """That a derived installation is complete; retention finds it by its archive like its original."""

    archive_sha256: str
    parts: str


def derived(home: Home, original: Installation, parts: object, change: Callable[[Path], None]) -> Path:
    """The root of an installation that is like another but for a change; at once when it was made before.

    Files are hard links to the original's where the file system allows: nodes only read them.

    Args:
        home: where it is kept, beside the original.
        original: what to begin with.
        parts: what is changed, in anything that JSON can hold: with the original, the key.
        change: makes the change; it may delete, add and replace files below the folder that it is given, but
            never write into one.

    Raises:
        BenchctlError: the disk refuses, or `change` does.
    """
    key: tuple[object, ...] = (_FORMAT, original.archive_sha256, str(original.root), parts)
    if not original.root.is_relative_to(home.engines):
        # A folder of somebody's own, who may build into it again.
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
    """SHA-256 over all files with their sizes and when they were changed; what nodes write is left out."""
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
    """Folders with modes of our own, since nodes must get in; what nodes would write is left out."""
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
