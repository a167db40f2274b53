"""DuckDB as benchctl uses it, in memory and silent, and what it writes as Parquet: samples and telemetry."""

import contextlib
import itertools
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from benchctl.errors import BenchctlError
from benchctl.results.samples import CHUNK_ROWS, SAMPLE_DTYPES, SCHEMA_VERSION, Columns, empty_columns

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

from types import MappingProxyType

# An instance takes twenty milliseconds to open, whenever a report reads a file; a database in one takes one.
_opened: dict[int | None, "DuckDBPyConnection"] = {}
_numbers = itertools.count()


class DuckError(Exception):
    """DuckDB failed; the text is its own."""


class DuckDiskError(DuckError):
    """A file could not be read or written."""


@contextmanager
def database(threads: int | None = None) -> Iterator["DuckDBPyConnection"]:
    """Open a database in memory, within the block.

    One thread keeps the order of rows and takes the least memory; None means one a CPU.

    Raises:
        DuckError: If something in the block failed.
    """
    # A tenth of a second, for which neither a list of runs nor a run's first request need wait.
    import duckdb  # noqa: PLC0415 - see above

    try:
        shared = _opened.get(threads)
        if shared is None:
            shared = _opened[threads] = connect(threads)
        with shared.cursor() as connection, _own_database(connection):
            _silence(connection)
            yield connection
    except duckdb.Error as err:
        # Some errors leave a database of which nobody gets anything more.
        _opened.pop(threads, None)
        kind = DuckDiskError if isinstance(err, duckdb.IOException) else DuckError
        raise kind(str(err)) from err


@contextmanager
def _own_database(connection: "DuckDBPyConnection") -> Iterator[None]:
    """Give a cursor a database of its own."""
    import duckdb  # noqa: PLC0415 - see `database`

    name = f"alone{next(_numbers)}"
    connection.execute(f"ATTACH ':memory:' AS {name}; USE {name}")
    try:
        yield
    finally:
        with contextlib.suppress(duckdb.Error):
            connection.execute(f"USE memory; DETACH {name}")


def connect(threads: int | None = None) -> "DuckDBPyConnection":
    """Open a connection, with DuckDB's own errors."""
    import duckdb  # noqa: PLC0415 - see `database`

    connection = duckdb.connect(config={} if threads is None else {"threads": threads})
    _silence(connection)
    # Kept open, it would keep what it has read, in memory that nodes are measured with.
    with contextlib.suppress(duckdb.Error):  # of a version that keeps nothing
        connection.execute("SET enable_external_file_cache = false")
    return connection


def _silence(connection: "DuckDBPyConnection") -> None:
    """DuckDB would draw its progress on the standard output if Python looks interactive."""
    connection.execute("SET enable_progress_bar = false")


def typed(
    found: Mapping[str, npt.NDArray[Any]], dtypes: Mapping[str, np.dtype[Any]], path: Path
) -> dict[str, npt.NDArray[Any]]:
    """Return a result of `fetchnumpy` as the columns of `dtypes` and no others, shape (n,).

    `path` is that of the queried file, for messages.

    Raises:
        BenchctlError: If a column is missing.
    """
    missing = dtypes.keys() - found.keys()
    if missing:
        raise BenchctlError(f"{path} lacks the columns {', '.join(sorted(missing))}")
    # DuckDB gives a masked array where there are NULLs, which only floating-point numbers may be.
    return {
        name: np.ma.filled(found[name].astype(dtype), np.nan if dtype.kind == "f" else None)
        for name, dtype in dtypes.items()
    }


def quoted(path: Path | str) -> str:
    """Return a path as a literal, where a query takes no parameter."""
    return "'" + str(path).replace("'", "''") + "'"


_FORMAT = f"FORMAT parquet, COMPRESSION zstd, ROW_GROUP_SIZE {CHUNK_ROWS}"
_METADATA = f"KV_METADATA {{schema_version: '{SCHEMA_VERSION}'}}"
_NAMES = ", ".join(f'"{name}"' for name in SAMPLE_DTYPES)


def write_parquet(chunks: Iterable[Columns], path: Path) -> None:
    """Write samples to one file, in order.

    Every chunk becomes a temporary file beside it, whose name begins like its own; several are joined to
    one, group by group. Memory is bounded by the largest chunk.

    Raises:
        DuckDiskError: If the disk is full or cannot be written.
    """
    parts: list[Path] = []
    with database(threads=1) as connection, contextlib.ExitStack() as rubbish:
        for number, chunk in enumerate(_at_least_one(chunks)):
            parts.append(path.with_name(f"{path.name}.{number}"))
            rubbish.callback(parts[-1].unlink, missing_ok=True)
            connection.register("samples", dict(chunk))
            _copy(connection, "samples", parts[-1])
            connection.unregister("samples")
        if len(parts) == 1:
            parts[0].replace(path)
        else:
            names = ", ".join(quoted(part) for part in parts)
            _copy(connection, f"read_parquet([{names}])", path)


def parquet_rows(path: Path) -> int:
    """Return the number of rows of a file, by its metadata.

    Raises:
        BenchctlError: If the file is not Parquet.
    """
    try:
        with database(threads=1) as connection:
            query = "SELECT num_rows FROM parquet_file_metadata(?)"
            found = connection.execute(query, [str(path)]).fetchone()
    except DuckError as err:
        raise BenchctlError(f"cannot read {path}: {err}") from err
    return int(found[0]) if found else 0


def _at_least_one(chunks: Iterable[Columns]) -> Iterator[Columns]:
    """A fork without requests has a file with columns and no rows."""
    none = True
    for chunk in chunks:
        none = False
        yield chunk
    if none:
        yield empty_columns(0)


def _copy(connection: "DuckDBPyConnection", source: str, path: Path) -> None:
    # Fixed column names and our own file names; a table function takes no parameters here.
    connection.execute(f"COPY (SELECT {_NAMES} FROM {source}) TO {quoted(path)} ({_FORMAT}, {_METADATA})")  # noqa: S608 - no name is a user's


# What a fork's nodes and the driver used, once a second, and the nodes' garbage collections.
#
# Rows are of three kinds, told apart by the column `kind`: `series` rows are readings, which
# `read_telemetry` returns, `gc` rows are pauses, which `gc_events` returns, and `node` rows are the readings
# of each of several nodes, whose sums are in `series`. The column `node` names the node of a reading or a
# pause.


TELEMETRY_VERSION = 1

# Times are nanoseconds on the clock of the fork's samples, from its origin. What was not asked or could not
# be read is NaN here and NULL in the file.
SERIES_DTYPES: Mapping[str, np.dtype[Any]] = {
    "boot": np.dtype(np.int16),  # which node start of the fork
    "t_ns": np.dtype(np.int64),  # when it was read
    "node_cpu_percent": np.dtype(np.float64),  # since the reading before; 100 is one CPU
    "driver_cpu_percent": np.dtype(np.float64),  # benchctl with its workers, likewise
    "load1": np.dtype(np.float64),  # the host's one-minute load average
    "rss_bytes": np.dtype(np.float64),  # of the server process, as is what follows
    "read_bytes": np.dtype(np.float64),  # from storage, since the server process started
    "write_bytes": np.dtype(np.float64),  # to storage, likewise
    "context_switches": np.dtype(np.float64),  # of its living threads, since each of them started
    "major_faults": np.dtype(np.float64),  # since it started
    "merges_current": np.dtype(np.float64),  # merges that run now; asked only while a step indexes
    "merge_ms": np.dtype(np.float64),  # in merges since it started; asked only while a step indexes
}

GC_DTYPES: Mapping[str, np.dtype[Any]] = {
    "boot": np.dtype(np.int16),
    "t_ns": np.dtype(np.int64),  # when the pause began
    "pause_ns": np.dtype(np.int64),  # how long it was
    "what": np.dtype(np.object_),  # in the JVM's words, such as `Young (Normal) (G1 Evacuation Pause)`
}
_NODE = "node"

# Of a NaN, DuckDB makes a NULL when it reads an array.
_WRITE = """
COPY (
    SELECT 'series' AS kind, * FROM series
    UNION ALL BY NAME
    SELECT 'gc' AS kind, * REPLACE (what::VARCHAR AS what, NULLIF(node::VARCHAR, '') AS node) FROM pauses
    UNION ALL BY NAME
    SELECT 'node' AS kind, * REPLACE (node::VARCHAR AS node) FROM parts
    ORDER BY kind DESC, t_ns
) TO %s (FORMAT parquet, COMPRESSION zstd, KV_METADATA {telemetry_version: %d})
"""


def empty_telemetry(dtypes: Mapping[str, np.dtype[Any]]) -> Columns:
    """Return columns without rows."""
    return {name: np.empty(0, dtype) for name, dtype in dtypes.items()}


def write_telemetry(
    series: Columns, pauses: Columns, path: Path, parts: Mapping[str, Columns] = MappingProxyType({})
) -> None:
    """Write all kinds of rows to one file, each in order of time.

    Readings, and `parts` of them by node, have the columns of SERIES_DTYPES, each of shape (n,), pauses those
    of GC_DTYPES, each of shape (m,), and may have `node`.

    Raises:
        DuckDiskError: If the disk is full or cannot be written.
    """
    with database(threads=1) as connection:
        connection.register("series", {name: series[name].astype(d) for name, d in SERIES_DTYPES.items()})
        whose = pauses.get(_NODE, np.full(pauses["t_ns"].size, "", np.object_))
        connection.register(
            "pauses", {name: pauses[name].astype(d) for name, d in GC_DTYPES.items()} | {_NODE: whose}
        )
        by_node = [*parts.values(), empty_telemetry(SERIES_DTYPES)]
        names = [np.full(part["t_ns"].size, name, np.object_) for name, part in parts.items()]
        columns = {
            name: np.concatenate([part[name].astype(d) for part in by_node])
            for name, d in SERIES_DTYPES.items()
        }
        connection.register("parts", columns | {_NODE: np.concatenate([*names, np.empty(0, np.object_)])})
        connection.execute(_WRITE % (quoted(path), TELEMETRY_VERSION))


def read_telemetry(path: Path) -> Columns:
    """Return the readings of a fork: columns of SERIES_DTYPES, each of shape (n,), in order of time.

    Raises:
        BenchctlError: If the file is missing or no telemetry of this benchctl.
    """
    return _read(path, "series", SERIES_DTYPES)


def gc_events(path: Path) -> Columns:
    """Return the garbage collections of a fork: columns of GC_DTYPES, each of shape (m,), in order of time.

    Raises:
        BenchctlError: If the file is missing or no telemetry of this benchctl.
    """
    return _read(path, "gc", GC_DTYPES)


def _read(path: Path, kind: str, dtypes: Mapping[str, np.dtype[Any]]) -> Columns:
    try:
        with database(threads=1) as connection:
            found = connection.execute(
                "SELECT * FROM read_parquet(?) WHERE kind = ?", [str(path), kind]
            ).fetchnumpy()
    except DuckError as err:
        raise BenchctlError(f"cannot read the telemetry in {path}: {err}") from err
    return typed(found, dtypes, path)
