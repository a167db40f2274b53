"""Safe unpacking of archives."""

import contextlib
import gzip
import itertools
import shutil
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final, Literal

from benchctl.disk import FreeBytes, disk_errors, free_bytes, require_space
from benchctl.errors import BenchctlError

_COPY_BYTES: Final = 1024 * 1024
_MOST_ENTRIES: Final = 100_000  # full distributions have less than 10,000
_MOST_BYTES: Final = 16 * 1024**3
_MOST_LINK_BYTES: Final = 4096


def unpack(archive: Path, target: Path, *, free: FreeBytes = free_bytes) -> Path:
    """Unpack a `.zip`, `.whl`, `.tar.gz` or `.tgz` into a directory of its own: files, directories and links.

    Files become readable by everybody and writable by their owner alone; executable bits are kept. Hard links
    become copies. After an error the caller removes `target`, which holds what had been unpacked until then.

    zipfile checks neither links nor modes, and tarfile's filters exist since Python 3.11.4 only: one place
    checks the entries of both.

    Args:
        archive: what to unpack.
        target: a directory that is missing or empty.
        free: bytes that can be written to a directory.

    Returns:
        The archive's single top directory; `target` when there are several entries at the top.

    Raises:
        BenchctlError: If the archive is corrupt or too large, would write outside `target` or does not fit on
            the disk, or if the disk refuses.
    """
    with disk_errors(f"unpack {archive} into {target}"):
        target.mkdir(mode=0o755, parents=True, exist_ok=True)
        available = free(target)
        purpose = f"unpack {archive.name}"
        require_space(target, archive.stat().st_size, purpose, available=available)
        unpacked = 0
        links: set[tuple[str, ...]] = set()
        with _damage(archive):
            for number, entry in enumerate(_entries(archive)):
                unpacked += entry.size
                require_space(target, unpacked, purpose, available=available)
                if number >= _MOST_ENTRIES or unpacked > _MOST_BYTES:
                    raise _UnsafeError("it is larger than any distribution")
                _place(entry, target, links)
        top = list(target.iterdir())
    return top[0] if len(top) == 1 and not top[0].is_symlink() and top[0].is_dir() else target


class _UnsafeError(Exception):
    """The harm that an entry would do."""


@contextlib.contextmanager
def _damage(archive: Path) -> Iterator[None]:
    again = "remove it and get it again"
    try:
        yield
    except _UnsafeError as err:
        raise BenchctlError(
            f"{archive} is not safe to unpack: {err}", hint="get it from a source that you trust"
        ) from err
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


@dataclass(frozen=True)
class _Entry:
    """A member of either kind of archive."""

    name: str
    kind: Literal["file", "directory", "link"]
    size: int
    executable: bool
    link: str
    """Target of a link."""
    content: Callable[[], IO[bytes] | None]


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
                # The checksum follows the padding, which tarfile does not read.
                while unzipped.read(_COPY_BYTES):
                    if unzipped.tell() > 2 * _MOST_BYTES:
                        raise _UnsafeError("it does not end")


def _zip_entry(zipped: zipfile.ZipFile, info: zipfile.ZipInfo) -> _Entry:
    mode = info.external_attr >> 16
    kind: Literal["file", "directory", "link"] = "directory" if info.filename.endswith("/") else "file"
    link = ""
    if info.flag_bits & 0x1:
        raise zipfile.BadZipFile(f"'{info.filename}' is encrypted")
    if stat.S_ISLNK(mode):
        with zipped.open(info) as content:
            kind, link = "link", content.read(_MOST_LINK_BYTES).decode()
    elif kind == "file" and stat.S_IFMT(mode) not in (0, stat.S_IFREG):
        raise zipfile.BadZipFile(f"'{info.filename}' is neither file, directory nor link")
    # Non-Unix archivers store no mode, but scripts must be executable.
    executable = bool(mode & 0o111) if mode else "bin" in info.filename.split("/")[:-1]
    return _Entry(info.filename, kind, info.file_size, executable, link, lambda: zipped.open(info))


def _tar_entry(tar: tarfile.TarFile, member: tarfile.TarInfo) -> _Entry:
    source = member
    if member.islnk():
        # A copy of the bytes in the archive is safe, whatever is on the disk.
        source = next((linked for linked in tar.getmembers() if linked.name == member.linkname), member)
        if not source.isreg():
            raise tarfile.ReadError(
                f"'{member.name}' is a hard link to '{member.linkname}', which is not a file in the archive"
            )
    elif not (member.issym() or member.isdir() or member.isreg()):
        raise tarfile.ReadError(f"'{member.name}' is neither file, directory nor link")
    return _Entry(
        member.name,
        "link" if member.issym() else "directory" if member.isdir() else "file",
        source.size,
        bool(source.mode & 0o111),
        member.linkname,
        lambda: tar.extractfile(source),
    )


def _place(entry: _Entry, target: Path, links: set[tuple[str, ...]]) -> None:
    """Put an entry below the target; nothing is written through one of the links before it."""
    name = entry.name
    parts = tuple(part for part in name.split("/") if part not in ("", "."))
    if name.startswith("/") or ".." in parts or "\\" in name or "\0" in name:
        raise _UnsafeError(f"'{name}' would be written outside of the target directory")
    if any(parts[:depth] in links for depth in range(1, len(parts) + 1)):
        raise _UnsafeError(f"'{name}' would be written through a link")
    if not parts and entry.kind != "directory":
        raise _UnsafeError(f"'{name}' would replace the target directory")
    path = target
    for part in parts if entry.kind == "directory" else parts[:-1]:
        path /= part
        if not path.is_dir():
            path.mkdir()
            path.chmod(0o755)  # whatever the umask
    if entry.kind == "directory":
        return
    path = target.joinpath(*parts)
    if entry.kind == "link":
        _check_link(entry, len(parts))
        path.symlink_to(entry.link)
        links.add(parts)
        return
    source = entry.content()
    if source is None:
        raise tarfile.ReadError(f"'{name}' has no content")
    with source, path.open("xb") as sink:
        shutil.copyfileobj(source, sink, _COPY_BYTES)
    path.chmod(0o755 if entry.executable else 0o644)


def _check_link(entry: _Entry, depth: int) -> None:
    """Refuse a link that leaves its top directory.

    `..` is allowed at the start only, where it leaves a real directory: after another name it could climb
    from wherever a second link leads.
    """
    steps = [step for step in entry.link.split("/") if step not in ("", ".")]
    climbs = len(list(itertools.takewhile(lambda step: step == "..", steps)))
    leaves = climbs > max(0, depth - 2) or ".." in steps[climbs:] or entry.link.startswith("/")
    if leaves or not steps or "\0" in entry.link:
        raise _UnsafeError(f"the link '{entry.name}' points to '{entry.link}', outside of the archive")
