"""Sample columns as one Parquet file, written chunk by chunk."""

import contextlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from benchctl.errors import BenchctlError
from benchctl.results.duck import DuckError, database, quoted
from benchctl.results.samples import CHUNK_ROWS, SAMPLE_DTYPES, SCHEMA_VERSION, Columns, empty_columns

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_FORMAT = f"FORMAT parquet, COMPRESSION zstd, ROW_GROUP_SIZE {CHUNK_ROWS}"
_METADATA = f"KV_METADATA {{schema_version: '{SCHEMA_VERSION}'}}"
_NAMES = ", ".join(f'"{name}"' for name in SAMPLE_DTYPES)

# What schema 1 could not have: operations of several requests, retries, and bodies of several units.
SINCE_SCHEMA_2 = {"part": 0, "attempt": 0, "weight": 1}


def write_parquet(chunks: Iterable[Columns], path: Path) -> None:
    """Write samples to one file, in order.

    Every chunk becomes a file beside it; several are joined to one, group by group. Memory is bounded by the
    largest chunk.

    Args:
        chunks: the samples.
        path: of the file; what is made beside it for a while has its name at the beginning.

    Raises:
        DuckDiskError: the disk is full or cannot be written.
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


def read_parquet(path: Path) -> Columns:
    """Read all samples of a file.

    Raises:
        BenchctlError: it is missing or no sample file of this benchctl.
    """
    try:
        with database() as connection:
            found = connection.execute("SELECT * FROM read_parquet(?)", [str(path)]).fetchnumpy()
    except DuckError as err:
        raise BenchctlError(f"cannot read the samples in {path}: {err}") from err
    missing = SAMPLE_DTYPES.keys() - found.keys()
    if missing == {*SINCE_SCHEMA_2, "processing_ns"} and "end_ns" in found:
        rows = found["end_ns"].size
        found |= {name: np.full(rows, value) for name, value in SINCE_SCHEMA_2.items()}
        found["processing_ns"] = found["end_ns"] - found["start_ns"]
    elif missing:
        raise BenchctlError(f"{path} lacks the columns {', '.join(sorted(missing))}")
    return {name: found[name].astype(dtype) for name, dtype in SAMPLE_DTYPES.items()}


def parquet_rows(path: Path) -> int:
    """Rows of a file, by its own metadata.

    Raises:
        BenchctlError: it is no Parquet.
    """
    try:
        with database(threads=1) as connection:
            query = "SELECT num_rows FROM parquet_file_metadata(?)"
            found = connection.execute(query, [str(path)]).fetchone()
    except DuckError as err:
        raise BenchctlError(f"cannot read {path}: {err}") from err
    return int(found[0]) if found else 0


def _at_least_one(chunks: Iterable[Columns]) -> Iterator[Columns]:
    """A fork without a request has a file with columns and no rows."""
    none = True
    for chunk in chunks:
        none = False
        yield chunk
    if none:
        yield empty_columns(0)


def _copy(connection: "DuckDBPyConnection", source: str, path: Path) -> None:
    # Fixed column names and our own file names; a table function takes no parameters here.
    connection.execute(f"COPY (SELECT {_NAMES} FROM {source}) TO {quoted(path)} ({_FORMAT}, {_METADATA})")  # noqa: S608 - no name is a user's
