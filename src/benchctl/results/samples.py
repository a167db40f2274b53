"""A fork's samples: one row a request, packed into growing files, columns after it, and then Parquet."""

import contextlib
import errno
import itertools
import json
import os
import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Self, get_type_hints

import numpy as np
import numpy.typing as npt

from benchctl.errors import BenchctlError

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


# A fork's samples: one row a request, of primitive types; packed while it runs, columns afterwards.


SCHEMA_VERSION = 4

Columns = dict[str, npt.NDArray[Any]]

Span = tuple[int, int]
"""Begin and end in nanoseconds of the monotonic clock, or of that clock from a fork's origin on."""


class Outcome(IntEnum):
    """The end of a request; only OK counts in latency and throughput."""

    OK = 0
    HTTP_ERROR = 1
    REJECTED = 2
    TIMEOUT = 3
    REFUSED = 4
    RESET = 5
    PARTIAL = 6
    BAD_BODY = 7
    CANCELLED = 8  # the driver ended it: it says nothing about the node


class Sample:
    """The columns of samples, one row a request; their types are those of the file.

    Clocks are integer nanoseconds of the driver's monotonic clock, counted from the fork's origin. An
    operation of several requests has a row, part 0, over all of them, which are parts 1, 2, ...
    """

    schedule: Annotated[
        np.int16, "position of the challenge in the fork, from 0; of a red-line search, that of the task"
    ]
    task: Annotated[np.int16, "position of the task in the challenge, from 0; of a red-line search, the step"]
    boot: Annotated[np.int16, "node start within the fork, from 0"]
    client: Annotated[np.int16, "client within the task, from 0"]
    # What differs from request to request follows, in the order in which a driver packs it.
    intended_ns: Annotated[np.int64, "when it was due, ns from the fork's origin; start_ns in a closed loop"]
    start_ns: Annotated[np.int64, "when it was sent, ns from the fork's origin"]
    connect_ns: Annotated[np.int64, "time to connect, ns; 0 on a connection that was kept"]
    end_ns: Annotated[np.int64, "last byte of the answer, ns from the fork's origin"]
    response_bytes: Annotated[np.int64, "size of the answer"]
    hits: Annotated[np.int64, "total hits; -1 unknown"]
    took_ms: Annotated[np.int32, "the engine's own time, ms; -1 unknown"]
    status: Annotated[np.int16, "HTTP status; 0 without an answer"]
    failed_shards: Annotated[np.int16, "shards that failed"]
    outcome: Annotated[np.int8, ", ".join(f"{each.value} {each.name.lower()}" for each in Outcome)]
    hits_exact: Annotated[np.bool_, "the engine counted them all"]
    warmup: Annotated[np.bool_, "unmeasured"]
    turn: Annotated[
        np.int32,
        "the variant's turn, from 1, whose first request of a client is unmeasured; 0 without turns",
    ]
    # A scroll over a large index has more pages than an int16 counts.
    part: Annotated[
        np.int32, "0 for an operation, 1, 2, ... for the requests that it consisted of, if several"
    ]
    attempt: Annotated[np.int8, "0 the first time, then how often the node had rejected it"]
    weight: Annotated[np.int32, "units of throughput: documents, searches of a batch, else 1"]
    processing_ns: Annotated[np.int64, "from start until the driver had read the answer, ns"]


SAMPLE_DTYPES: Mapping[str, np.dtype[Any]] = {
    name: np.dtype(kind) for name, kind in get_type_hints(Sample).items()
}
_SAME_FOR_ALL = ("schedule", "task", "boot", "client")
"""Columns that are the same for all rows of one client in one task: they cost nothing while it runs."""
ROW_FIELDS = tuple(name for name in SAMPLE_DTYPES if name not in _SAME_FOR_ALL)
ROW_DTYPE = np.dtype([(name, SAMPLE_DTYPES[name]) for name in ROW_FIELDS])

# The most rows that anything which streams samples holds at a time: 12 MB of columns, a row group of a file.
CHUNK_ROWS = 122_880

_CLOCKS = ("intended_ns", "start_ns", "end_ns")

Rows = npt.NDArray[np.void]


@dataclass(frozen=True)
class RowOwner:
    """Owner of rows: fills the columns that are constant."""

    origin_ns: int  # the fork's origin on the clock of the rows; columns count from it
    schedule: int
    task: int
    boot: int
    client: int


def columns_of(rows: Rows, place: RowOwner) -> Columns:
    """Turn packed rows, shape (n,), of ROW_DTYPE, into sample columns.

    The arrays of shape (n,) are copies, in the order and types of SAMPLE_DTYPES.
    """
    columns = {
        name: np.full(rows.size, getattr(place, name), dtype) if name in _SAME_FOR_ALL else rows[name].copy()
        for name, dtype in SAMPLE_DTYPES.items()
    }
    for name in _CLOCKS:
        columns[name] = columns[name] - place.origin_ns
    return columns


def empty_columns(rows: int) -> Columns:
    """Preallocate sample columns: zeroed, shape (rows,), in the order and types of SAMPLE_DTYPES."""
    return {name: np.zeros(rows, dtype) for name, dtype in SAMPLE_DTYPES.items()}


def concatenate(parts: list[Columns]) -> Columns:
    """Join sample columns in order, shape (0,) of an empty list; copies nothing if there is only one."""
    if len(parts) <= 1:
        return parts[0] if parts else empty_columns(0)
    return {name: np.concatenate([part[name] for part in parts]) for name in SAMPLE_DTYPES}


def gathered(pieces: Iterable[Columns], rows: int = CHUNK_ROWS) -> Iterator[Columns]:
    """Join small pieces of at most `rows` rows to chunks, in order.

    Ten requests a task are not worth a chunk each. Chunks hold as many whole pieces as fit in `rows` rows;
    none is empty.
    """
    waiting: list[Columns] = []
    count = 0
    for piece in pieces:
        size = piece["start_ns"].size
        if waiting and count + size > rows:
            yield concatenate(waiting)
            waiting, count = [], 0
        if size:
            waiting.append(piece)
            count += size
    if waiting:
        yield concatenate(waiting)


def select(columns: Columns, rows: npt.NDArray[np.bool_]) -> Columns:
    """Keep the rows where the mask, shape (n,), is true; copies nothing if that is all of them."""
    return columns if rows.all() else {name: values[rows] for name, values in columns.items()}


class RowFile:
    """The rows of one client in one task.

    Used by that client's thread while the task runs, and by the fork's after it. The file is made with
    the first rows, and written by the thread of `disk`; None if another process has written all rows.

    Attributes:
        place: whose rows they are.
    """

    def __init__(self, path: Path, place: RowOwner, disk: ThreadPoolExecutor | None) -> None:
        self.place = place
        self._path = path
        self._disk = disk
        self._descriptor: int | None = None
        self._writing: Future[bytearray] | None = None
        self._finished = False

    def __getstate__(self) -> dict[str, Any]:
        """Another process can read it.

        Raises:
            RuntimeError: If `finish` was not called: there may be more rows.
        """
        self._check_finished()
        return vars(self) | {"_disk": None}

    def copied(self, folder: Path, read: Callable[[Path, int], bytes], most_bytes: int) -> "RowFile":
        """Copy a file that only `read` reaches into a folder, from an offset on.

        Args:
            folder: of this host.
            read: at most `most_bytes` of the file; fewer are its last.
            most_bytes: of a piece.

        Raises:
            BenchctlError: If the copy cannot be written.
        """
        copy = RowFile(folder / self._path.name, self.place, None)
        offset = 0
        while piece := read(self._path, offset):
            copy._write(piece)
            offset += len(piece)
            if len(piece) < most_bytes:
                break
        copy.finish(b"")
        return copy

    def hand_over(self, full: bytearray) -> bytearray | None:
        """Write a full buffer of whole rows in another thread; it must not change any more.

        Returns at once, unless the buffer handed over before is still being written: one of each client is on
        its way at most, so the disk bounds the driver instead of filling its memory.

        Returns:
            The buffer handed over before, free again; None the first time.

        Raises:
            BenchctlError: If the buffer before could not be written.
        """
        if self._disk is None:
            raise RuntimeError(f"{self.place} was written by another process")
        free = None if self._writing is None else self._writing.result()
        self._writing = self._disk.submit(self._write_buffer, full)
        return free

    def finish(self, rest: bytes | bytearray | memoryview) -> None:
        """Write the last whole rows, if any, in the caller's thread; rows can be read afterwards.

        Raises:
            BenchctlError: If these or earlier rows could not be written.
        """
        if self._writing is not None:
            self._writing.result()
            self._writing = None
        if rest:
            self._write(rest)
        self.close()
        self._finished = True

    def close(self) -> None:
        """Close the file; harmless when repeated."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def pieces(self) -> Iterator[Columns]:
        """Return the rows as sample columns, in order, at most CHUNK_ROWS at a time.

        Raises:
            RuntimeError: If `finish` was not called: there may be more rows.
            BenchctlError: If the file cannot be read.
        """
        self._check_finished()
        try:
            with self._path.open("rb", buffering=0) as file:
                while (rows := np.fromfile(file, ROW_DTYPE, CHUNK_ROWS)).size:
                    yield columns_of(rows, self.place)
        except FileNotFoundError:
            return  # it had no rows
        except OSError as err:
            raise BenchctlError(f"cannot read the samples back from {self._path}: {err.strerror}") from err

    def _check_finished(self) -> None:
        if not self._finished:
            raise RuntimeError(f"{self.place} is still being written")

    def _write_buffer(self, full: bytearray) -> bytearray:
        self._write(full)
        return full

    def _write(self, rows: bytes | bytearray | memoryview) -> None:
        left = memoryview(rows)
        try:
            if self._descriptor is None:
                self._descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
            while left:
                left = left[os.write(self._descriptor, left) :]
        except OSError as err:
            raise BenchctlError(
                f"cannot keep the samples in {self._path.parent}: {err.strerror}",
                hint=f"free some space there: a request takes {ROW_DTYPE.itemsize} bytes until its fork ends",
            ) from err


@dataclass(frozen=True)
class Chunks:
    """Samples of files in chunks of at most CHUNK_ROWS rows; every iteration reads them from disk anew."""

    files: tuple[RowFile, ...]

    def __iter__(self) -> Iterator[Columns]:
        return gathered(piece for file in self.files for piece in file.pieces())


class SampleSpool:
    """The place of one fork's samples until it ends; a context manager that leaves nothing behind.

    Used by the fork's thread, except for the files that it gives to clients. The folder is made for this,
    and removed with all that is in it.
    """

    def __init__(self, folder: Path) -> None:
        # Another process may put its own files beside those here, and have them adopted.
        self.folder = folder
        self._files: list[RowFile] = []
        # One thread for all clients: they share a disk, and one buffer after the other is what it does best.
        self._disk = ThreadPoolExecutor(1, thread_name_prefix="spool")

    def __enter__(self) -> Self:
        """Make the folder, and the thread that writes, before anything is measured.

        Raises:
            BenchctlError: If the folder cannot be made.
        """
        try:
            self.folder.mkdir(parents=True)
        except OSError as err:
            raise BenchctlError(f"cannot create {self.folder}: {err.strerror}") from err
        self._disk.submit(int).result()
        return self

    def __exit__(self, *_: object) -> None:
        """Wait for the thread that writes, and remove everything."""
        self._disk.shutdown()
        for file in self._files:
            file.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def file(self, place: RowOwner) -> RowFile:
        """Return a new file for the rows of one client in one task."""
        made = RowFile(self.folder / f"{len(self._files):06d}.rows", place, self._disk)
        self._files.append(made)
        return made

    def adopt(self, samples: Iterable[Columns]) -> None:
        """Add the files of another process, which have been written to their ends.

        Raises:
            TypeError: If the samples are not in files.
        """
        if not isinstance(samples, Chunks):
            raise TypeError("only samples in files can be adopted")
        self._files += samples.files

    def all_chunks(self) -> Chunks:
        """Return the rows of the whole fork, in the order in which files were asked for."""
        return Chunks(tuple(self._files))


# As Parquet, by DuckDB, which works in memory and in silence.

# An instance takes twenty milliseconds to open, a connection to one takes none.
_instances: list["DuckDBPyConnection"] = []


@contextmanager
def database(what: str, hint: str = "") -> Iterator["DuckDBPyConnection"]:
    """Connect to a database in memory, within the block; one thread keeps the order of rows.

    Raises:
        BenchctlError: If something in the block failed: it cannot do `what`.
    """
    # A tenth of a second, for which neither a list of runs nor a run's first request need wait.
    import duckdb  # noqa: PLC0415 - see above

    try:
        if not _instances:
            _instances.append(duckdb.connect(config={"threads": 1}))
        with _instances[0].cursor() as connection:
            # It would draw its progress on the standard output if Python looks interactive.
            connection.execute("SET enable_progress_bar = false")
            # Kept open, it would keep what it has read, in memory that nodes are measured with.
            with contextlib.suppress(duckdb.Error):  # of a version that keeps nothing
                connection.execute("SET enable_external_file_cache = false")
            yield connection
    except duckdb.Error as err:
        # Some errors leave a database of which nobody gets anything more.
        _instances.clear()
        raise BenchctlError(f"cannot {what}: {_reason(str(err))}", hint=hint) from err


def _reason(complaint: str) -> str:
    """Return what the system says of a file, or else DuckDB's sentence without its kind, query and JSON."""
    message = complaint.partition("\n")[0]
    with contextlib.suppress(ValueError, KeyError):
        message = json.loads(message[message.index("{") :])["exception_message"]
    reasons = (os.strerror(code) for code in errno.errorcode)
    return next(filter(message.endswith, reasons), re.sub(r"^[A-Z][\w ]* Error: ", "", message))


_FORMAT = f"FORMAT parquet, COMPRESSION zstd, ROW_GROUP_SIZE {CHUNK_ROWS}"
_METADATA = f"KV_METADATA {{schema_version: '{SCHEMA_VERSION}'}}"
_NAMES = ", ".join(f'"{name}"' for name in SAMPLE_DTYPES)


def write_parquet(chunks: Iterable[Columns], path: Path) -> None:
    """Write samples to one file, in order; a fork without requests has a file with columns and no rows.

    Every chunk becomes a temporary file beside it, whose name begins like its own; several are joined to
    one, group by group. Memory is bounded by the largest chunk.

    Raises:
        BenchctlError: If the disk is full or cannot be written.
    """
    parts: list[Path] = []
    hint = "free some space or choose another directory with --runs"
    with database(f"write {path}", hint) as connection, contextlib.ExitStack() as rubbish:
        for number, chunk in enumerate(itertools.chain(chunks, [empty_columns(0)])):
            if number and not chunk["start_ns"].size:
                continue
            parts.append(path.with_name(f"{path.name}.{number}"))
            rubbish.callback(parts[-1].unlink, missing_ok=True)
            connection.register("samples", dict(chunk))
            _copy(connection, "samples", parts[-1])
            connection.unregister("samples")
        if len(parts) == 1:
            parts[0].replace(path)
        else:
            _copy(connection, f"read_parquet([{', '.join(map(_quoted, parts))}])", path)


def _copy(connection: "DuckDBPyConnection", source: str, path: Path) -> None:
    # Fixed column names and our own file names; a table function takes no parameters here.
    connection.execute(f"COPY (SELECT {_NAMES} FROM {source}) TO {_quoted(path)} ({_FORMAT}, {_METADATA})")  # noqa: S608 - no name is a user's


def _quoted(path: Path) -> str:
    return "'" + str(path).replace("'", "''") + "'"


@dataclass(frozen=True)
class TaskWindow:
    """A task's time, in nanoseconds from the origin of the fork's samples."""

    measured_ns: int  # its first measured request was sent
    end_ns: int  # its last answer was there
    boot: int = 0  # on which node start of the fork it ran, all of it


_WINDOWS = """
SELECT schedule, task, min(start_ns) FILTER (NOT warmup), max(end_ns), any_value(boot)
FROM read_parquet(?) WHERE schedule >= 0 GROUP BY ALL ORDER BY ALL
"""


def windows_in(path: Path) -> dict[tuple[int, int], TaskWindow]:
    """Return by (schedule, task) when those of a file ran that measured anything, in their order.

    Raises:
        BenchctlError: If the file is missing or no sample file of this benchctl.
    """
    with database(f"read the samples in {path}") as connection:
        rows = connection.execute(_WINDOWS, [str(path)]).fetchall()
    return {
        (schedule, task): TaskWindow(measured_ns, end_ns, boot)
        for schedule, task, measured_ns, end_ns, boot in rows
        if measured_ns is not None
    }


CHART_COLUMNS = (
    "schedule", "task", "warmup", "intended_ns", "start_ns", "end_ns", "outcome", "took_ms", "part",
)  # fmt: skip
"""Data of charts, and quantiles that no summary holds."""


@dataclass(frozen=True)
class SampleFile:
    """`CHART_COLUMNS` of the samples of one fork on disk, read anew by every iteration."""

    path: Path

    def __iter__(self) -> Iterator[Columns]:
        """Yield at most CHUNK_ROWS rows after the other, in order.

        Raises:
            BenchctlError: If the file is missing or no sample file of this benchctl.
        """
        # DuckDB passes over the row groups that cannot hold such row numbers. The names are SAMPLE_DTYPES'.
        query = (
            f"SELECT {', '.join(CHART_COLUMNS)} FROM read_parquet(?, file_row_number = true) "  # noqa: S608 - ours
            "WHERE file_row_number >= ? AND file_row_number < ?"
        )
        name = str(self.path)
        with database(f"read the samples in {name}") as connection:
            counted = connection.execute("SELECT num_rows FROM parquet_file_metadata(?)", [name]).fetchall()
            for first in range(0, counted[0][0], CHUNK_ROWS):
                chunk = connection.execute(query, [name, first, first + CHUNK_ROWS]).fetchnumpy()
                yield {name: chunk[name].astype(SAMPLE_DTYPES[name], copy=False) for name in CHART_COLUMNS}
