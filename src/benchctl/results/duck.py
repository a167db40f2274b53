"""DuckDB as benchctl uses it: in memory, silent, loaded when needed, and told of files by quoted names."""

import contextlib
import itertools
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from benchctl.errors import BenchctlError

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

# An instance takes twenty milliseconds to open, whenever a report reads a file; a database in one takes one.
_opened: dict[int | None, "DuckDBPyConnection"] = {}
_numbers = itertools.count()


class DuckError(Exception):
    """DuckDB could not do what it was asked for; the text is its own."""


class DuckDiskError(DuckError):
    """A file could not be read or written."""


@contextmanager
def database(threads: int | None = None) -> Iterator["DuckDBPyConnection"]:
    """A database in memory, within the block.

    Args:
        threads: 1 passes rows on in their order and holds the least memory; None for one a CPU.

    Raises:
        DuckError: something in the block failed.
    """
    # A tenth of a second, for which neither a list of runs nor a run's first request need wait.
    import duckdb  # noqa: PLC0415 - see above

    try:
        shared = _opened.get(threads)
        if shared is None:
            shared = _opened[threads] = connect(threads)
        with shared.cursor() as connection, _alone(connection):
            _silence(connection)
            yield connection
    except duckdb.Error as err:
        # Some errors leave a database of which nobody gets anything more.
        _opened.pop(threads, None)
        kind = DuckDiskError if isinstance(err, duckdb.IOException) else DuckError
        raise kind(str(err)) from err


@contextmanager
def _alone(connection: "DuckDBPyConnection") -> Iterator[None]:
    """Give a cursor a database that no other one looks into."""
    import duckdb  # noqa: PLC0415 - see `database`

    name = f"alone{next(_numbers)}"
    connection.execute(f"ATTACH ':memory:' AS {name}; USE {name}")
    try:
        yield
    finally:
        with contextlib.suppress(duckdb.Error):
            connection.execute(f"USE memory; DETACH {name}")


def connect(threads: int | None = None) -> "DuckDBPyConnection":
    """One of one's own, with DuckDB's own errors."""
    import duckdb  # noqa: PLC0415 - see `database`

    connection = duckdb.connect(config={} if threads is None else {"threads": threads})
    _silence(connection)
    return connection


def _silence(connection: "DuckDBPyConnection") -> None:
    """Where Python looks interactive, DuckDB would draw its progress on the standard output."""
    connection.execute("SET enable_progress_bar = false")


def typed(
    found: Mapping[str, npt.NDArray[Any]], dtypes: Mapping[str, np.dtype[Any]], path: Path
) -> dict[str, npt.NDArray[Any]]:
    """What a query gave, as the columns of `dtypes` and no others.

    Args:
        found: column -> values, shape (n,), as `fetchnumpy` gives them.
        dtypes: column -> type.
        path: of the file that was asked, for messages.

    Raises:
        BenchctlError: a column is missing.
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
    """A path as a literal, where a query takes no parameter."""
    return "'" + str(path).replace("'", "''") + "'"
