"""What a node start leaves behind: its logs, moved to where they stay, and errors that name the new place."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from benchctl.disk import disk_errors
from benchctl.errors import BenchctlError


def keep_logs(folder: Path, target: Path) -> None:
    """Move the folder of a node start (log, GC log, settings); one that stands there already is replaced.

    Args:
        folder: of the start; nothing happens when it was never made.
        target: where it goes; may be on another file system.

    Raises:
        BenchctlError: the disk is full or cannot be written.
    """
    if not folder.is_dir():
        return
    with disk_errors(f"keep the node's logs in {target}"):
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(target, ignore_errors=True)
        try:
            shutil.move(folder, target)
        except shutil.Error as err:
            raise OSError(None, f"not all of {folder} can be copied: {str(err)[:300]}") from err


@contextmanager
def logs_kept_of_failure(folder: Path, target: Path) -> Iterator[None]:
    """Keep the logs of a node start that fails inside the block, where they outlive its scratch folder.

    Raises:
        BenchctlError: the one of the block, with the path where the logs are now.
    """
    try:
        yield
    except BenchctlError as err:
        # That the logs cannot be kept is less news than why the node failed.
        with suppress(BenchctlError):
            keep_logs(folder, target)
        if folder.is_dir():
            raise
        raise relocated(err, folder, target) from err


def relocated(err: BenchctlError, folder: Path, target: Path) -> BenchctlError:
    """The same error, its text pointing to where a folder was moved."""
    return BenchctlError(
        err.message.replace(str(folder), str(target)),
        hint=err.hint.replace(str(folder), str(target)),
        exit_code=err.exit_code,
    )
