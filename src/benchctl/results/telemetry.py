"""What a fork's nodes and the driver used, once a second, and the nodes' garbage collections, as Parquet.

It has rows of three kinds, told apart by the column `kind`: `series` rows are readings, which
`read_telemetry` gives, `gc` rows are pauses, which `gc_events` gives, and `node` rows are the readings of
each of several nodes, whose sums are in `series`. The column `node` says whose a reading or a pause is.
"""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from benchctl.errors import BenchctlError
from benchctl.results.parquet import DuckError, database, quoted, typed
from benchctl.results.samples import Columns

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
    """Columns without rows."""
    return {name: np.empty(0, dtype) for name, dtype in dtypes.items()}


def write_telemetry(
    series: Columns, pauses: Columns, path: Path, parts: Mapping[str, Columns] = MappingProxyType({})
) -> None:
    """Write all kinds of rows to one file, each in order of time.

    Readings, and `parts` of them by node, have the columns of SERIES_DTYPES, each of shape (n,), pauses those
    of GC_DTYPES, each of shape (m,), and may have `node`.

    Raises:
        DuckDiskError: the disk is full or cannot be written.
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
    """The readings of a fork: the columns of SERIES_DTYPES, each of shape (n,), in order of time.

    Raises:
        BenchctlError: it is missing or no telemetry of this benchctl.
    """
    return _read(path, "series", SERIES_DTYPES)


def gc_events(path: Path) -> Columns:
    """The garbage collections of a fork: the columns of GC_DTYPES, each of shape (m,), in order of time.

    Raises:
        BenchctlError: it is missing or no telemetry of this benchctl.
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
