"""The page cache of an index before its node starts: emptied or filled, and looked at."""

import ctypes
import mmap
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from benchctl.disk import disk_errors, open_regular
from benchctl.errors import BenchctlError
from benchctl.spec import PageCache

_MOST_RESIDENT = 0.01
_CHUNK = 1024 * 1024
_libc = ctypes.CDLL(None, use_errno=True)


def prepare_page_cache(data: Path, wanted: PageCache) -> float | None:
    """Evict an index from the page cache, or read it in.

    Hard links share their pages, so a copy is evicted with what it was linked from. Pages that a process has
    mapped stay: do this before a node starts.

    Args:
        data: of a node that is down.
        wanted: `as-is` does nothing.

    Returns:
        The share of its bytes that is in the page cache now, 0 to 1; None where nothing was done.

    Raises:
        BenchctlError: If the file system keeps its pages, as one in memory does, or a file cannot be read.
    """
    if wanted == "as-is":
        return None
    with disk_errors(f"prepare the page cache of {data}"):
        for descriptor, size in _files(data):
            if wanted == "cold":
                os.fdatasync(descriptor)  # what is not written yet cannot be dropped
                os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
            else:
                for at in range(0, size, _CHUNK):
                    os.pread(descriptor, _CHUNK, at)
    share = resident_share(data)
    if wanted == "cold" and share > _MOST_RESIDENT:
        raise BenchctlError(
            f"{100 * share:.0f} % of {data} stays in the page cache, whatever is said to the kernel",
            hint="leave --page-cache out, or set BENCHCTL_HOME to a folder on a disk",
        )
    return share


def resident_share(data: Path) -> float:
    """Return the share of an index in the page cache, 0 to 1; a node may be using it.

    Raises:
        BenchctlError: If a file cannot be read.
    """
    resident = total = 0
    with disk_errors(f"look at the page cache of {data}"):
        for descriptor, size in _files(data):
            resident += _resident_bytes(descriptor, size)
            total += size
    return min(resident / total, 1.0) if total else 0.0


def _files(data: Path) -> Iterator[tuple[int, int]]:
    for path in data.rglob("*"):
        # What a node removes meanwhile is not part of its index any more.
        with suppress(FileNotFoundError):
            if path.is_file() and not path.is_symlink():
                with open_regular(path, follow=False) as file:
                    if size := os.fstat(file.fileno()).st_size:
                        yield file.fileno(), size


def _resident_bytes(descriptor: int, size: int) -> int:
    """By mincore, which tells the truth to a file's owner and to root only."""
    # Private and writable only so that ctypes finds its address; nothing is touched.
    with mmap.mmap(descriptor, size, access=mmap.ACCESS_COPY) as mapped:
        pages = (ctypes.c_ubyte * -(-size // mmap.PAGESIZE))()
        view = (ctypes.c_char * size).from_buffer(mapped)
        try:
            if _libc.mincore(ctypes.c_void_p(ctypes.addressof(view)), ctypes.c_size_t(size), pages):
                raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
        finally:
            del view
        return sum(page & 1 for page in pages) * mmap.PAGESIZE
