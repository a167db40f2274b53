"""DuckDB as benchctl uses it: in memory, silent, loaded when needed, and told of files by quoted names."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from benchctl.errors import BenchctlError

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


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
        with connect(threads) as connection:
            yield connection
    except duckdb.IOException as err:
        raise DuckDiskError(str(err)) from err
    except duckdb.Error as err:
        raise DuckError(str(err)) from err


def connect(threads: int | None = None) -> "DuckDBPyConnection":
    """As `database`, with DuckDB's own errors."""
    import duckdb  # noqa: PLC0415 - see `database`

    connection = duckdb.connect(config={} if threads is None else {"threads": threads})
    # Where Python looks interactive, DuckDB would draw its progress on the standard output.
    connection.execute("SET enable_progress_bar = false")
    return connection


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
