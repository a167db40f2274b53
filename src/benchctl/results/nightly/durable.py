"""Files that are there as a whole or not at all, also after a power cut."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from benchctl.disk import disk_errors
from benchctl.errors import BenchctlError
from benchctl.results.duck import DuckDiskError


@contextlib.contextmanager
def replacing(target: Path) -> Iterator[Path]:
    """A temporary file beside the target that replaces it when the block ends well and is gone otherwise.

    Raises:
        BenchctlError: the disk is full or cannot be written.
    """
    partial = target.with_name(f".{target.name}.{os.getpid()}.partial")
    doing = f"write {target}"
    with disk_errors(doing):
        try:
            yield partial
            _sync(partial)
            os.replace(partial, target)  # noqa: PTH105 - the name says that it is atomic
            _sync(target.parent)
        except DuckDiskError as err:
            raise BenchctlError(f"cannot {doing}: {err}", hint="free some space") from err
        finally:
            partial.unlink(missing_ok=True)


def write_whole(target: Path, content: bytes) -> None:
    """Replace a file.

    Raises:
        BenchctlError: the disk is full or cannot be written.
    """
    with replacing(target) as partial:
        partial.write_bytes(content)


def _sync(path: Path) -> None:
    """Have a file's bytes, or a folder's names, on the disk before going on."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
