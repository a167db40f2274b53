"""Files of a suite: there as a whole or not at all, also after a power cut."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

from benchctl import disk
from benchctl.errors import BenchctlError
from benchctl.results.duck import DuckDiskError


@contextlib.contextmanager
def replacing(target: Path) -> Iterator[Path]:
    """A temporary file beside the target that replaces it when the block ends well and is gone otherwise.

    Raises:
        BenchctlError: the disk is full or cannot be written.
    """
    doing = f"write {target}"
    with disk.disk_errors(doing):
        try:
            with disk.replacing(target, durable=True) as partial:
                yield partial
        except DuckDiskError as err:
            raise BenchctlError(f"cannot {doing}: {err}", hint="free some space") from err


def write_whole(target: Path, content: bytes) -> None:
    """Replace a file.

    Raises:
        BenchctlError: the disk is full or cannot be written.
    """
    with replacing(target) as partial:
        partial.write_bytes(content)
