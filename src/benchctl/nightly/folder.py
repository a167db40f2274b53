"""A suite on disk: nights, their figures as Parquet, the log of findings; one night at a time.

What writes raises `BenchctlError` if the disk is full or cannot be written.
"""

import fcntl
import hashlib
import os
import re
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from benchctl.disk import disk_errors, read_file, replacing
from benchctl.errors import BenchctlError, UsageError
from benchctl.home import Home
from benchctl.lock import LOCK_NAME, named_lock
from benchctl.nightly.model import NIGHT_VERSION, Event, NightRecord, Series, SeriesKey
from benchctl.results.folders import read_versioned, write_versioned
from benchctl.results.metrics import METRIC_KINDS
from benchctl.results.samples import DuckDiskError, DuckError, database, quoted

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


# The figures of a night as Parquet, one row a fork, task and metric; and many such files as series.


FIGURES_NAME: Final = "figures.parquet"
FIGURES_VERSION: Final = 2


class FigureRow(NamedTuple):
    """A figure of one fork."""

    night: int  # its number, from 1
    variant: str  # label in the suite
    challenge: str  # its title
    task: str  # label, with its number where there are several of that label
    metric: str  # machine name, such as `throughput` or `service_time_p90`
    unit: str
    higher_is_better: bool
    fork: int  # its number within its variant, from 0
    value: float  # in the unit


_SQL_TYPES: Final = {str: "VARCHAR", bool: "BOOLEAN", int: "BIGINT", float: "DOUBLE"}
_COLUMNS: Final = {name: _SQL_TYPES[kind] for name, kind in FigureRow.__annotations__.items()}
"""The columns of a file in their order: name -> DuckDB's type."""

# Names of metrics that may be 0.
_ADDITIVE: Final = frozenset(figure.name for figure in METRIC_KINDS if figure.additive)

_KEY: Final = "variant, challenge, task, metric, unit, higher_is_better"


def write_figures(rows: Iterable[FigureRow], path: Path) -> None:
    """Replace a file of figures, atomically; without rows, it has columns only."""
    columns = list(zip(*rows, strict=True)) or [()] * len(_COLUMNS)
    types = ", ".join(f"unnest(?::{sql_type}[]) AS {name}" for name, sql_type in _COLUMNS.items())
    with disk_errors(f"write {path}"), replacing(path, durable=True) as partial:
        try:
            with database(threads=1) as connection:
                values = [list(column) for column in columns]
                connection.execute(f"CREATE TABLE figures AS SELECT {types}", values)
                form = (
                    f"FORMAT parquet, COMPRESSION zstd, KV_METADATA {{figures_version: '{FIGURES_VERSION}'}}"
                )
                connection.execute(f"COPY figures TO {quoted(partial)} ({form})")
        except DuckDiskError as err:
            raise BenchctlError(f"cannot write {path}: {err}", hint="free some space") from err


def read_series(
    paths: Sequence[Path], variants: Collection[str] | None, unreadable: Callable[[str], None]
) -> list[Series]:
    """Return figures of some files, in any order, as series sorted by their key; `variants` None are all.

    `unreadable` is called for each file that is skipped, with the reason.
    """
    if not paths:
        return []
    try:
        with database() as connection:
            _collect(connection, paths, variants)
            return _grouped(connection)
    except DuckError as err:
        # One damaged file fails the query over all of them, and DuckDB does not always say which it was.
        sound = _sound(paths, unreadable)
        if len(sound) == len(paths):
            raise BenchctlError(f"cannot read the figures in {paths[0].parent.parent}: {err}") from err
    return read_series(sound, variants, unreadable)


def _sound(paths: Sequence[Path], unreadable: Callable[[str], None]) -> list[Path]:
    """Return the files that can be read to their ends."""
    import duckdb  # noqa: PLC0415 - see `results.samples`

    sound = []
    with database(threads=1) as connection:
        for path in paths:
            try:
                _collect(connection, [path], None)
            except duckdb.Error as err:
                unreadable(f"the figures in {path} are left out: {' '.join(str(err).split())}")
            else:
                sound.append(path)
    return sound


def _collect(
    connection: "DuckDBPyConnection", paths: Sequence[Path], variants: Collection[str] | None
) -> None:
    """Return rows of series, as a table."""
    listed = ", ".join(quoted(path) for path in paths)
    connection.execute(
        f"CREATE OR REPLACE TABLE figures AS SELECT {_KEY}, night, fork, value "  # noqa: S608 - ours
        f"FROM read_parquet([{listed}]) "
        "WHERE ($1 IS NULL OR list_contains($1, variant)) AND isfinite(value) "
        "AND (value > 0 OR (value = 0 AND list_contains($2, metric)))",
        [None if variants is None else list(variants), sorted(_ADDITIVE)],
    )


def _grouped(connection: "DuckDBPyConnection") -> list[Series]:
    """Texts are kept once a series, not once a row: of the rows, only numbers come to Python."""
    connection.execute(
        f"CREATE TABLE keys AS SELECT row_number() OVER (ORDER BY {_KEY}) AS place, * "  # noqa: S608 - ours
        f"FROM (SELECT DISTINCT {_KEY} FROM figures)"
    )
    keys = connection.execute(f"SELECT {_KEY} FROM keys ORDER BY place").fetchall()  # noqa: S608 - ours
    result = connection.execute(
        f"SELECT place, night, fork, value FROM figures JOIN keys USING ({_KEY}) "  # noqa: S608 - ours
        "ORDER BY place, night, fork"
    ).fetchnumpy()
    return _split(keys, result)


def _split(keys: Sequence[tuple[Any, ...]], found: Mapping[str, npt.NDArray[Any]]) -> list[Series]:
    """Return one series a key from rows in order of their series."""
    ends = np.searchsorted(found["place"], np.arange(len(keys) + 1), side="right")
    nights, forks = found["night"].astype(np.int64), found["fork"].astype(np.int64)
    values = found["value"].astype(np.float64)
    series = []
    for place, (variant, challenge, task, metric, unit, higher) in enumerate(keys):
        rows = slice(int(ends[place]), int(ends[place + 1]))
        key = SeriesKey(variant, challenge, task, metric)
        additive = metric in _ADDITIVE
        series.append(Series(key, unit, higher, nights[rows], forks[rows], values[rows], additive))
    return series


class SuiteBusy(BenchctlError):  # noqa: N818 - a state that callers wait for or report, as the others are named
    """Another process is at work on the suite; the message says which, and since when."""


NIGHT_NAME: Final = "night.json"
KNOWN_NAME: Final = "suite.json"
_NIGHT_ID: Final = re.compile(r"(?P<number>[0-9]{5,})-[0-9]{8}-[0-9]{4}")

# The log of a suite's events: a line each, only ever added to; a line that was torn is passed over.

_NEWLINE = b"\n"


def append_event(path: Path, event: Event) -> None:
    """Append one event and sync it to disk.

    Alarms may be acknowledged while a night runs: the file is locked meanwhile. An event that did not fit
    on the disk leaves nothing behind.
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
    """Return all events in the order in which they were added; none when there is no file.

    `unreadable` is called for each line that is skipped, with the reason.

    Raises:
        BenchctlError: If the file cannot be read at all.
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


def _ignored(_message: str) -> None:
    """Ignore a failure: for callers that reported it already, or do not care."""


@dataclass(frozen=True)
class SuiteFolder:
    """The folder of one suite, which can be moved and copied. Nothing here ever removes anything.

    Raises:
        BenchctlError: If a file is damaged or cannot be read, or the disk is full or cannot be written.
    """

    root: Path  # the folder; its name is the suite's

    @property
    def nights_folder(self) -> Path:
        """Path of the nights."""
        return self.root / "nights"

    @property
    def events_path(self) -> Path:
        """The log of events."""
        return self.root / "events.jsonl"

    def night_path(self, night_id: str) -> Path:
        """Return the folder of a night."""
        return self.nights_folder / night_id

    @property
    def lock_name(self) -> str:
        """Name of the lock that whoever is at work on the suite holds."""
        return f"{LOCK_NAME}-suite-{hashlib.sha256(os.fsencode(self.root.resolve())).hexdigest()[:16]}"

    def lock(
        self,
        *,
        wait: bool = False,
        on_wait: Callable[[str], None] = _ignored,
        pause: Callable[[float], None] = time.sleep,
    ) -> AbstractContextManager[None]:
        """Lock the suite within the block, one night at a time; see `named_lock`.

        Raises:
            SuiteBusy: If another process has it, and we do not wait.
            BenchctlError: If its folder cannot be made.
        """
        self._make()

        def busy(holder: str) -> SuiteBusy:
            return SuiteBusy(
                f"the suite in {self.root} is at work already ({holder})",
                hint="wait until it has ended, or use: --on-busy wait",
            )

        return named_lock(self.lock_name, busy, wait=wait, on_wait=on_wait, pause=pause)

    def nights(self, unreadable: Callable[[str], None]) -> list[NightRecord]:
        """Return the readable nights, by number; `unreadable` is called with why one is skipped."""
        records = []
        for _, path in self._folders(unreadable):
            try:
                records.append(self.load(path.name))
            except BenchctlError as err:
                unreadable(err.message)
        return records

    def begin(self, suite: str, now: datetime) -> NightRecord:
        """Make the folder of a new night, with a record that says it is running; under the lock.

        The number decides the order, so that a clock that went back changes nothing but the label. `now` has
        a time zone.
        """
        self._make()
        # Damaged nights count: their numbers may stand in figures and alarms.
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
        """Read the record of a night."""
        path = self.night_path(night_id) / NIGHT_NAME
        record = read_versioned(path, NightRecord, "night", NIGHT_VERSION)
        if record is None:
            raise BenchctlError(f"{path} is missing: the night was cut off as it began")
        if record.id != night_id or record.number != _number(night_id):
            raise BenchctlError(
                f"{path} is damaged: it is the record of night {record.number}, {record.id}",
                hint="the directory of a night is named after its id",
            )
        return record

    def save(self, record: NightRecord) -> None:
        """Replace the record of a night, atomically."""
        write_versioned(self.night_path(record.id) / NIGHT_NAME, record)

    def write_figures(self, night_id: str, rows: Iterable[FigureRow]) -> None:
        """Replace the figures of a night, atomically."""
        write_figures(rows, self.night_path(night_id) / FIGURES_NAME)

    def figure_files(self, numbers: Collection[int] | None = None) -> list[Path]:
        """Return the figures of nights that have some, by number; `numbers` None are all."""
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
        """Return the figures of nights, a series a variant, task and metric, sorted by key; None are all.

        `unreadable` is called for each file that is skipped, with the reason.
        """
        return read_series(self.figure_files(numbers), labels, unreadable)

    def events(self, unreadable: Callable[[str], None]) -> list[Event]:
        """Return all events, in order; `unreadable` is called with the reason for each that is skipped."""
        return read_events(self.events_path, unreadable)

    def append(self, event: Event) -> None:
        """Add an event; needs no lock."""
        self._make()
        append_event(self.events_path, event)

    def _make(self) -> None:
        with disk_errors(f"create {self.nights_folder}"):
            self.nights_folder.mkdir(parents=True, exist_ok=True)

    def _folders(self, unreadable: Callable[[str], None]) -> Iterator[tuple[int, Path]]:
        """Return (number, folder) of all nights, by number; whatever else lies there is reported."""
        if not self.nights_folder.is_dir():
            return
        with disk_errors(f"read {self.nights_folder}"):
            paths = sorted(self.nights_folder.iterdir())
        numbered = []
        for path in paths:
            number = _number(path.name)
            if number is None:
                unreadable(f"{path} is not a night: its name is not an id")
            else:
                numbered.append((number, path))
        yield from sorted(numbered)


def suites(home: Home) -> list[SuiteFolder]:
    """Return the suites that have had a night, ordered by name.

    Raises:
        BenchctlError: If the home cannot be looked into.
    """
    # Whoever only looks makes no folder.
    root = home.root / "nightly"
    if not root.is_dir():
        return []
    with disk_errors(f"read {root}"):
        return [SuiteFolder(path) for path in sorted(root.iterdir()) if any((path / "nights").glob("*"))]


class Known(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """A suite as it was when it last ran."""

    file: str  # absolute path of the suite file
    runs: str  # absolute path of the run store


def remember(folder: SuiteFolder, known: Known) -> None:
    """Save it."""
    write_versioned(folder.root / KNOWN_NAME, known)


def check_name(folder: SuiteFolder, file: str) -> None:
    """Refuse a second suite file of the same name: both would write one history.

    Raises:
        UsageError: If another file that still exists has the name.
    """
    try:
        other = Path(recall(folder).file)
    except BenchctlError:  # never ran; or damaged, and about to be written anew
        return
    if other != Path(file) and other.is_file() and not other.samefile(file):
        raise UsageError(
            f"'{folder.root.name}' is the name of the suite in {other}",
            hint="give this one another `name`; or remove the other file, to continue its history",
        )


def recall(folder: SuiteFolder) -> Known:
    """Return what is remembered of a suite that ran before.

    Raises:
        BenchctlError: If the suite never ran, or the file is damaged.
    """
    path = folder.root / KNOWN_NAME
    try:
        return msgspec.json.decode(read_file(path), type=Known)
    except OSError as err:
        raise BenchctlError(f"cannot read {path}: {err.strerror}") from err
    except msgspec.DecodeError as err:
        raise BenchctlError(f"{path} is damaged: {err}", hint="run the suite to rebuild it") from err


def _number(name: str) -> int | None:
    """Return the number of a night, by the name of its folder; None for a name that is not an id."""
    match = _NIGHT_ID.fullmatch(name)
    return None if match is None else int(match["number"])


# What the core asks of suites: see the register of slices.


def references(home: Home, unread: Callable[[str], None]) -> Iterator[tuple[str, str]]:
    """Return the runs that nights refer to."""
    for suite in suites(home):
        for night in suite.nights(unread):
            for run in filter(None, (night.run, *night.runs)):
                yield run, f"night {night.id} of {suite.root.name}"
