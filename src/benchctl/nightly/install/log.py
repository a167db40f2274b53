"""The log that nights append to, kept from growing for ever."""

from pathlib import Path

MOST_BYTES = 4_000_000
KEPT_BYTES = 1_000_000

_MARK = b"[older lines were removed]\n"


def bound_log(path: Path, *, most: int = MOST_BYTES, kept: int = KEPT_BYTES) -> bool:
    """Cut the older lines off a log that has become long, in place: this process may be appending to it.

    To be called before a night begins, under the suite's lock. A log that cannot be cut is left as it is.

    Args:
        path: of the log; it need not be there.
        most: bytes that it may have.
        kept: bytes that are kept of one with more, at most.

    Returns:
        Whether it was cut.
    """
    try:
        with path.open("r+b") as file:
            size = path.stat().st_size
            if size <= most:
                return False
            file.seek(size - kept)
            file.readline()
            rest = file.read()
            file.seek(0)
            file.write(_MARK + rest)
            file.truncate()
            return True
    except OSError:
        return False
