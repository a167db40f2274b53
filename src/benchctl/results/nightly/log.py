"""The log of a suite's events: a line each, only ever added to; a line that was torn is passed over."""

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from benchctl.disk import disk_errors, read_file
from benchctl.results.nightly.events import Event

_NEWLINE = b"\n"


def append_event(path: Path, event: Event) -> None:
    """Add one event, and have it on the disk before going on.

    Whoever acknowledges an alarm while a night runs appends at the same time: the file is locked for as long
    as it takes. An event that did not fit on the disk leaves nothing behind.

    Raises:
        BenchctlError: the disk is full or cannot be written.
    """
    with disk_errors(f"add to {path}"), _opened(path) as descriptor:
        end = os.fstat(descriptor).st_size
        # What a power cut tore stays as it is, on a line of its own.
        torn = end > 0 and os.pread(descriptor, 1, end - 1) != _NEWLINE
        try:
            _write(descriptor, _NEWLINE * torn + msgspec.json.encode(event) + _NEWLINE)
            os.fsync(descriptor)
        except OSError:
            os.ftruncate(descriptor, end)
            raise


def read_events(path: Path, unreadable: Callable[[str], None]) -> list[Event]:
    """All events in the order in which they were added; none when there is no file.

    Args:
        path: of the log.
        unreadable: told of each line that is passed over, and why.

    Raises:
        BenchctlError: it cannot be read at all.
    """
    with disk_errors(f"read {path}"):
        try:
            raw = read_file(path)
        except FileNotFoundError:
            return []
    decoder = msgspec.json.Decoder(Event)
    events: list[Event] = []
    lines = raw.split(_NEWLINE)
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            events.append(decoder.decode(line))
        except (msgspec.DecodeError, UnicodeDecodeError) as err:
            why = "it was cut off as it was written" if number == len(lines) else str(err)
            unreadable(f"line {number} of {path} is passed over: {why}")
    return events


@contextmanager
def _opened(path: Path) -> Iterator[int]:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield descriptor
    finally:
        os.close(descriptor)


def _write(descriptor: int, content: bytes) -> None:
    """A write to a disk that is nearly full may take a part only; the next one then says why."""
    while content:
        content = content[os.write(descriptor, content) :]
