"""A suite on disk: its nights, their figures and answers, and what became of what they found.

A night's folder is made first, its record then replaced as a whole as often as it changes, so that a night
can be cut off at any time: what is not whole is told and passed over.
"""

import fcntl
import os
import re
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import msgspec

from benchctl.disk import disk_errors, read_file
from benchctl.errors import BenchctlError
from benchctl.home import Home
from benchctl.results.nightly.durable import write_whole
from benchctl.results.nightly.events import Event
from benchctl.results.nightly.figures import FIGURES_NAME, FigureRow, read_series, write_figures
from benchctl.results.nightly.lock import locked
from benchctl.results.nightly.model import NIGHT_VERSION, NightRecord
from benchctl.results.nightly.series import Series
from benchctl.results.versioned import read_versioned

NIGHT_NAME: Final = "night.json"
ANSWERS_NAME: Final = "answers.json"
_NIGHT_ID: Final = re.compile(r"(?P<number>[0-9]{5,})-[0-9]{8}-[0-9]{4}")

Answers = Mapping[str, Mapping[str, Any]]
"""Variant label -> operation -> its answer, in whatever form."""


# The log of a suite's events: a line each, only ever added to; a line that was torn is passed over.

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


# A suite on disk.


def _ignored(_message: str) -> None:
    """For those whose caller has told already, or does not care."""


@dataclass(frozen=True)
class SuiteFolder:
    """The folder of one suite; it can be moved and copied as it is. Nothing here ever removes anything.

    Attributes:
        root: the folder; its name is the suite's.
    """

    root: Path

    @property
    def nights_folder(self) -> Path:
        """Where the nights are."""
        return self.root / "nights"

    @property
    def events_path(self) -> Path:
        """The log of events."""
        return self.root / "events.jsonl"

    @property
    def outbox(self) -> Path:
        """Messages that have yet to be delivered."""
        return self.root / "outbox"

    def night_path(self, night_id: str) -> Path:
        """The folder of a night."""
        return self.nights_folder / night_id

    def lock(
        self,
        *,
        wait: bool = False,
        on_wait: Callable[[str], None] = _ignored,
        pause: Callable[[float], None] = time.sleep,
    ) -> AbstractContextManager[None]:
        """Have the suite to oneself within the block; see `lock.locked`.

        Raises:
            SuiteBusy: another process has it, and we do not wait.
            BenchctlError: its folder cannot be made.
        """
        self._make()
        return locked(self.root / "lock", wait=wait, on_wait=on_wait, pause=pause)

    def nights(self, unreadable: Callable[[str], None]) -> list[NightRecord]:
        """Every readable night, ordered by number.

        Args:
            unreadable: told why, of each that is passed over.

        Raises:
            BenchctlError: the suite cannot be looked into.
        """
        found = []
        for _, path in self._folders(unreadable):
            try:
                found.append(self.load(path.name))
            except BenchctlError as err:
                unreadable(err.message)
        return found

    def begin(self, suite: str, now: datetime) -> NightRecord:
        """Make the folder of a new night, with a record that says it is running. To be called under the lock.

        The number decides the order, so that a clock that went back changes nothing but the label.

        Args:
            suite: name of the suite.
            now: with its time zone.

        Raises:
            BenchctlError: the disk is full or cannot be written.
        """
        self._make()
        # Damaged nights count: their numbers may stand in figures, alarms and annotations.
        number = 1 + max((number for number, _ in self._folders(_ignored)), default=0)
        record = NightRecord(
            night_version=NIGHT_VERSION,
            id=f"{number:05d}-{now:%Y%m%d-%H%M}",
            number=number,
            suite=suite,
            started=now.isoformat(timespec="seconds"),
            status="running",
        )
        path = self.night_path(record.id)
        with disk_errors(f"create {path}"):
            path.mkdir()
        self.save(record)
        return record

    def load(self, night_id: str) -> NightRecord:
        """Read the record of a night.

        Raises:
            BenchctlError: it is missing, damaged, at odds with its folder, or of another version.
        """
        path = self.night_path(night_id) / NIGHT_NAME
        record = read_versioned(path, NightRecord, "night", NIGHT_VERSION)
        if record is None:
            raise BenchctlError(f"{path} is missing: the night was cut off as it began")
        if record.id != night_id or record.number != _number(night_id):
            raise BenchctlError(
                f"{path} is damaged: it is the record of night {record.number}, {record.id}",
                hint="the folder of a night bears its id",
            )
        return record

    def save(self, record: NightRecord) -> None:
        """Replace the record of a night, atomically.

        Raises:
            BenchctlError: the disk is full or cannot be written.
        """
        text = msgspec.json.format(msgspec.json.encode(record), indent=1)
        write_whole(self.night_path(record.id) / NIGHT_NAME, text + b"\n")

    def write_figures(self, night_id: str, rows: Iterable[FigureRow]) -> None:
        """Replace the figures of a night, atomically.

        Raises:
            BenchctlError: the disk is full or cannot be written.
        """
        write_figures(rows, self.night_path(night_id) / FIGURES_NAME)

    def figure_files(self, numbers: Collection[int] | None = None) -> list[Path]:
        """The figures of the nights that have some, ordered by number.

        Args:
            numbers: of the nights that are wanted; None for all.
        """
        wanted = None if numbers is None else frozenset(numbers)
        paths = (
            path / FIGURES_NAME
            for number, path in self._folders(_ignored)
            if wanted is None or number in wanted
        )
        return [path for path in paths if path.is_file()]

    def series(
        self,
        labels: Collection[str] | None,
        numbers: Collection[int] | None,
        unreadable: Callable[[str], None] = _ignored,
    ) -> list[Series]:
        """The figures of the nights, a series a variant, task and metric, sorted by key.

        Args:
            labels: of the variants that are wanted; None for all.
            numbers: of the nights that are wanted; None for all.
            unreadable: told of each file that is passed over, and why.
        """
        return read_series(self.figure_files(numbers), labels, unreadable)

    def events(self, unreadable: Callable[[str], None]) -> list[Event]:
        """What happened, in that order.

        Args:
            unreadable: told of each that is passed over, and why.

        Raises:
            BenchctlError: the log cannot be read at all.
        """
        return read_events(self.events_path, unreadable)

    def append(self, event: Event) -> None:
        """Add to what happened; needs no lock.

        Raises:
            BenchctlError: the disk is full or cannot be written.
        """
        self._make()
        append_event(self.events_path, event)

    def answers(self, night_id: str) -> dict[str, dict[str, Any]] | None:
        """What searches were answered in a night; None when nobody asked.

        Raises:
            BenchctlError: they cannot be read.
        """
        path = self.night_path(night_id) / ANSWERS_NAME
        try:
            return msgspec.json.decode(read_file(path), type=dict[str, dict[str, Any]])
        except FileNotFoundError:
            return None
        except OSError as err:
            raise BenchctlError(f"cannot read {path}: {err.strerror}") from err
        except (msgspec.DecodeError, UnicodeDecodeError) as err:
            raise BenchctlError(f"{path} is damaged: {err}") from err

    def write_answers(self, night_id: str, answers: Answers) -> None:
        """Replace the answers of a night, atomically.

        Raises:
            BenchctlError: the disk is full or cannot be written.
        """
        write_whole(self.night_path(night_id) / ANSWERS_NAME, msgspec.json.encode(answers) + b"\n")

    def _make(self) -> None:
        with disk_errors(f"create {self.nights_folder}"):
            self.nights_folder.mkdir(parents=True, exist_ok=True)

    def _folders(self, unreadable: Callable[[str], None]) -> Iterator[tuple[int, Path]]:
        """(number, folder) of all nights, ordered by number; whatever else lies there is told."""
        if not self.nights_folder.is_dir():
            return
        with disk_errors(f"read {self.nights_folder}"):
            paths = sorted(self.nights_folder.iterdir())
        found = []
        for path in paths:
            number = _number(path.name)
            if number is None:
                unreadable(f"{path} is no night: its name is no id")
            else:
                found.append((number, path))
        yield from sorted(found)


def suites(home: Home) -> list[SuiteFolder]:
    """The suites that have had a night, ordered by name.

    Raises:
        BenchctlError: the home cannot be looked into.
    """
    # Whoever only looks makes no folder.
    root = home.root / "nightly"
    if not root.is_dir():
        return []
    with disk_errors(f"read {root}"):
        return [SuiteFolder(path) for path in sorted(root.iterdir()) if any((path / "nights").glob("*"))]


def _number(name: str) -> int | None:
    """Of a night, by the name of its folder; None for a name that is no id."""
    match = _NIGHT_ID.fullmatch(name)
    return None if match is None else int(match["number"])
