"""Safe unpacking of archives, and half-finished work that appears in its place complete or vanishes."""

import contextlib
import errno
import fcntl
import gzip
import itertools
import os
import shutil
import stat
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Literal

from benchctl.disk import FreeBytes, disk_errors, free_bytes, require_space
from benchctl.errors import BenchctlError
from benchctl.home import Home

_PREFIX = ".partial-"


@contextlib.contextmanager
def staging(parent: Path, doing: str) -> Iterator[Path]:
    """A folder below `parent` for half-finished work; what is complete is moved out, the rest removed.

    `parent` must be on the file system of the final place; `doing` completes "cannot ..." in messages.
    """
    with (
        disk_errors(doing),
        _lock(parent, fcntl.LOCK_SH),
        tempfile.TemporaryDirectory(dir=parent, prefix=_PREFIX) as folder,
    ):
        yield Path(folder)


def settle(ready: Path, final: Path) -> None:
    """Move a complete folder to its place, unless another process has just put the same there.

    Raises:
        OSError: it cannot be moved.
    """
    try:
        ready.replace(final)
    except OSError as err:
        if err.errno not in (errno.ENOTEMPTY, errno.EEXIST):
            raise


def sweep(home: Home) -> None:
    """Remove the half-finished work of killed processes.

    Folders in use are skipped. So is what cannot be removed: if that matters, the work itself will fail.
    """
    with contextlib.suppress(OSError):
        for folder in {leftover.parent for leftover in home.root.glob(f"*/{_PREFIX}*")}:
            _sweep(folder)


def _sweep(folder: Path) -> None:
    with _lock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB) as locked:
        if locked:
            for leftover in folder.glob(f"{_PREFIX}*"):
                shutil.rmtree(leftover, ignore_errors=True)


@contextlib.contextmanager
def _lock(folder: Path, operation: int) -> Iterator[bool]:
    """Lock a folder until the block or the process ends, however it does.

    Yields whether it is locked; not if others hold it, or where the file system has no locks.
    """
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        try:
            fcntl.flock(handle, operation)
            held = True
        except OSError:
            held = False
        yield held
    finally:
        os.close(handle)


# Unpacking: nothing outside the target, nothing but files, folders and links.

_COPY_BYTES = 1024 * 1024


def unpack(archive: Path, target: Path, *, free: FreeBytes = free_bytes) -> Path:
    """Unpack a `.zip`, `.whl`, `.tar.gz` or `.tgz` into a folder of its own.

    Files become readable by everybody and writable by their owner alone; executable bits are kept. After an
    error
    the caller removes `target`, which holds what had been unpacked until then.

    Args:
        archive: what to unpack.
        target: a folder that is missing or empty.
        free: bytes that can be written to a folder.

    Returns:
        The archive's single top folder; `target` when there are several entries at the top.

    Raises:
        BenchctlError: the archive is corrupt, would write outside `target`, does not fit on the disk, or
            the disk refuses.
    """
    with disk_errors(f"unpack {archive} into {target}"):
        target.mkdir(mode=0o755, parents=True, exist_ok=True)
        available = free(target)
        placer = _Placer(archive, target)
        purpose = f"unpack {archive.name}"
        require_space(target, archive.stat().st_size, purpose, available=available)
        with _corruption(archive):
            unpacked = 0
            for entry in _entries(archive):
                unpacked += entry.size
                require_space(target, unpacked, purpose, available=available)
                placer.place(entry)
        top = list(target.iterdir())
    return top[0] if len(top) == 1 and not top[0].is_symlink() and top[0].is_dir() else target


@dataclass(frozen=True)
class _Entry:
    """One member of either kind of archive; `link` is where a link points, `size` is unpacked bytes."""

    name: str
    kind: Literal["file", "folder", "link"]
    size: int
    executable: bool
    link: str
    content: Callable[[], IO[bytes]]


@contextlib.contextmanager
def _corruption(archive: Path) -> Iterator[None]:
    again = "remove it and get it again"
    try:
        yield
    except FileExistsError as err:
        raise BenchctlError(
            f"{archive} is damaged: two entries claim {err.filename2 or err.filename}", hint=again
        ) from err
    except (
        EOFError,
        NotImplementedError,  # a compression method that zipfile lacks
        UnicodeError,
        gzip.BadGzipFile,
        tarfile.TarError,
        zipfile.BadZipFile,
        zlib.error,
    ) as err:
        raise BenchctlError(f"{archive} is damaged, or no archive: {err}", hint=again) from err


def _entries(archive: Path) -> Iterator[_Entry]:
    """Every member in stored order; the format is detected from the content, not the name."""
    with archive.open("rb") as raw:
        is_zip = raw.read(2) == b"PK"
        raw.seek(0)
        if is_zip:
            with zipfile.ZipFile(raw) as zipped:
                for info in zipped.infolist():
                    yield _zip_entry(zipped, info)
        else:
            with gzip.open(raw) as unzipped, tarfile.open(fileobj=unzipped, mode="r:") as tar:
                for member in tar:
                    yield _tar_entry(tar, member)
                while unzipped.read(_COPY_BYTES):
                    pass  # the checksum follows the padding, which tarfile does not read


def _zip_entry(zipped: zipfile.ZipFile, info: zipfile.ZipInfo) -> _Entry:
    mode = info.external_attr >> 16
    kind: Literal["file", "folder", "link"] = "file"
    link = ""
    if info.flag_bits & 0x1:
        raise zipfile.BadZipFile(f"'{info.filename}' is encrypted")
    if stat.S_ISLNK(mode):
        kind, link = "link", zipped.read(info).decode()
    elif info.filename.endswith("/"):
        kind = "folder"
    elif stat.S_IFMT(mode) not in (0, stat.S_IFREG):
        raise zipfile.BadZipFile(f"'{info.filename}' is neither file, folder nor link")
    # Non-Unix archivers store no mode, but scripts must be executable.
    executable = bool(mode & 0o111) if mode else "bin" in info.filename.split("/")[:-1]
    return _Entry(info.filename, kind, info.file_size, executable, link, lambda: zipped.open(info))


def _tar_entry(tar: tarfile.TarFile, member: tarfile.TarInfo) -> _Entry:
    kind: Literal["file", "folder", "link"] = "file"
    link, source = "", member
    if member.issym():
        kind, link = "link", member.linkname
    elif member.isdir():
        kind = "folder"
    elif member.islnk():
        source = _hard_linked(tar, member)
    elif not member.isreg():
        raise tarfile.ReadError(f"'{member.name}' is neither file, folder nor link")
    executable = bool(source.mode & 0o111)
    return _Entry(member.name, kind, source.size, executable, link, lambda: _content(tar, source))


def _hard_linked(tar: tarfile.TarFile, member: tarfile.TarInfo) -> tarfile.TarInfo:
    """The member that a hard link repeats: a copy of its bytes is safe, whatever is on the disk."""
    try:
        source = tar.getmember(member.linkname)
    except KeyError as err:
        raise tarfile.ReadError(
            f"'{member.name}' is a hard link to '{member.linkname}', which is not in the archive"
        ) from err
    if not source.isreg():
        raise tarfile.ReadError(f"'{member.name}' is a hard link to '{member.linkname}', which is not a file")
    return source


def _content(tar: tarfile.TarFile, member: tarfile.TarInfo) -> IO[bytes]:
    content = tar.extractfile(member)
    if content is None:
        raise tarfile.ReadError(f"'{member.name}' has no content")
    return content


class _Placer:
    """Puts entries below one folder; remembers links, since nothing may be written through one."""

    def __init__(self, archive: Path, target: Path) -> None:
        self._archive = archive
        self._target = target
        self._links: set[tuple[str, ...]] = set()

    def place(self, entry: _Entry) -> None:
        parts = self._parts(entry.name)
        if not parts and entry.kind != "folder":
            raise self._unsafe(f"'{entry.name}' would replace the target folder")
        if entry.kind == "folder":
            self._make_folders(parts)
            return
        self._make_folders(parts[:-1])
        path = self._target.joinpath(*parts)
        if entry.kind == "link":
            self._check_link(entry, parts)
            path.symlink_to(entry.link)
            self._links.add(parts)
            return
        with entry.content() as source, path.open("xb") as sink:
            shutil.copyfileobj(source, sink, _COPY_BYTES)
        path.chmod(0o755 if entry.executable else 0o644)

    def _parts(self, name: str) -> tuple[str, ...]:
        """The components of an entry's name, below the target; empty for the target itself."""
        parts = tuple(part for part in name.split("/") if part not in ("", "."))
        if name.startswith("/") or ".." in parts or "\\" in name or "\0" in name:
            raise self._unsafe(f"'{name}' would be written outside of the target folder")
        if any(parts[:depth] in self._links for depth in range(1, len(parts) + 1)):
            raise self._unsafe(f"'{name}' would be written through a link")
        return parts

    def _make_folders(self, parts: tuple[str, ...]) -> None:
        """Create them one by one, with a mode that no umask narrows."""
        path = self._target
        for part in parts:
            path /= part
            if not path.is_dir():
                path.mkdir()
                path.chmod(0o755)

    def _check_link(self, entry: _Entry, parts: tuple[str, ...]) -> None:
        """Refuse a link that leaves its top folder.

        `..` is allowed at the start only, where it leaves a real folder: after another name it could climb
        from
        wherever a second link leads.
        """
        steps = [step for step in entry.link.split("/") if step not in ("", ".")]
        climbs = len(list(itertools.takewhile(lambda step: step == "..", steps)))
        folders_to_climb = max(0, len(parts) - 2)
        leaves = climbs > folders_to_climb or ".." in steps[climbs:] or entry.link.startswith("/")
        if leaves or not steps or "\0" in entry.link:
            raise self._unsafe(f"the link '{entry.name}' points to '{entry.link}', outside of the archive")

    def _unsafe(self, what: str) -> BenchctlError:
        return BenchctlError(
            f"{self._archive} is not safe to unpack: {what}", hint="get it from a source that you trust"
        )
