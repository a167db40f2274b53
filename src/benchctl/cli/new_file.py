"""Files that commands write once they are done: what can never be written is told before the work."""

from collections.abc import Sequence
from pathlib import Path

from benchctl.disk import disk_errors
from benchctl.errors import UsageError


def check_new_file(option: str, path: Path, beside: Sequence[Path] = (), *, ours: bool = False) -> None:
    """Refuse a file that cannot be written, and to lose one that is there.

    Args:
        option: which names it.
        path: as given.
        beside: files that are written with it.
        ours: what is there may be what the same command wrote before.

    Raises:
        UsageError: its folder is missing, it is a folder itself, or it, or one beside it, is there already.
        BenchctlError: the file system does not let us look.
    """
    whole = path.absolute()
    with disk_errors(f"write {path}"):
        if not whole.parent.is_dir() or whole.is_dir():
            raise UsageError(f"{option}: '{path}' is no file in a folder that is there", hint="name another")
        there = next((one for one in (whole, *beside) if one.is_file()), None)
    if there is not None and not ours:
        raise UsageError(f"{option}: {there} is there already", hint="name another file, or remove it")
