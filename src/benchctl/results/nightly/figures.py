"""The figures of a night as Parquet, one row a fork, task and metric; and many such files as series."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from benchctl.errors import BenchctlError
from benchctl.results.duck import DuckError, database, quoted
from benchctl.results.nightly.durable import replacing
from benchctl.results.nightly.model import SeriesKey
from benchctl.results.nightly.series import Series

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

FIGURES_NAME: Final = "figures.parquet"
FIGURES_VERSION: Final = 1


class FigureRow(NamedTuple):
    """One figure of one fork.

    Attributes:
        night: number of the night.
        night_id: id of the night.
        run: id of the run that it is from.
        started: wall clock of the fork's start, ISO 8601: a label.
        variant: label of the variant in the suite.
        version: of its engine, as the node said; empty when unknown.
        challenge: title of the challenge.
        task: label of the task, with its number where the challenge has several of that label.
        metric: machine name of the metric.
        unit: of the value.
        higher_is_better: which way is faster.
        fork: number of the fork within its variant, from 0.
        value: in the unit, positive and finite.
        samples: measured requests that it rests on.
        disturbed: whether a host probe around the fork was off.
    """

    night: int
    night_id: str
    run: str
    started: str
    variant: str
    version: str
    challenge: str
    task: str
    metric: str
    unit: str
    higher_is_better: bool
    fork: int
    value: float
    samples: int
    disturbed: bool


COLUMNS: Final[Mapping[str, tuple[str, str]]] = {
    "night": ("INTEGER", "number of the night, from 1"),
    "night_id": ("VARCHAR", "id of the night: its number, and when it began"),
    "run": ("VARCHAR", "id of the run"),
    "started": ("VARCHAR", "start of the fork, wall clock, ISO 8601"),
    "variant": ("VARCHAR", "label of the variant in the suite"),
    "version": ("VARCHAR", "of its engine, as the node said; empty when unknown"),
    "challenge": ("VARCHAR", "title of the challenge"),
    "task": ("VARCHAR", "label of the task, with its number where there are several of that label"),
    "metric": ("VARCHAR", "machine name, such as throughput or service_time_p90"),
    "unit": ("VARCHAR", "of the value"),
    "higher_is_better": ("BOOLEAN", "which way is faster"),
    "fork": ("INTEGER", "number of the fork within its variant, from 0"),
    "value": ("DOUBLE", "the figure, in the unit"),
    "samples": ("BIGINT", "measured requests that it rests on"),
    "disturbed": ("BOOLEAN", "a host probe around the fork was off"),
}
"""The columns of a file in their order, those of `FigureRow`: DuckDB's type, and meaning."""

_KEY: Final = "variant, challenge, task, metric, unit, higher_is_better"
_NAMES: Final = ", ".join(COLUMNS)


def write_figures(rows: Iterable[FigureRow], path: Path) -> None:
    """Replace a file of figures, atomically; without rows, it has columns only.

    Raises:
        BenchctlError: the disk is full or cannot be written.
    """
    columns = list(zip(*rows, strict=True)) or [()] * len(COLUMNS)
    types = ", ".join(f"unnest(?::{sql_type}[]) AS {name}" for name, (sql_type, _) in COLUMNS.items())
    with replacing(path) as partial, database(threads=1) as connection:
        connection.execute(f"CREATE TABLE figures AS SELECT {types}", [list(column) for column in columns])
        copy_figures(connection, "figures", partial)


def copy_figures(connection: "DuckDBPyConnection", source: str, path: Path) -> None:
    """Write a relation that has COLUMNS to a file, not atomically.

    Args:
        connection: that knows the relation.
        source: a table, or a query in brackets; never a user's text.
        path: of the file.
    """
    form = f"FORMAT parquet, COMPRESSION zstd, KV_METADATA {{figures_version: '{FIGURES_VERSION}'}}"
    connection.execute(f"COPY (SELECT {_NAMES} FROM {source}) TO {quoted(path)} ({form})")  # noqa: S608 - ours


def read_series(
    paths: Sequence[Path], variants: Collection[str] | None, unreadable: Callable[[str], None]
) -> list[Series]:
    """All figures of some files, as series sorted by their key.

    Args:
        paths: of the files, in any order.
        variants: labels of the variants that are wanted; None for all.
        unreadable: told of each file that is passed over, and why.
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
    """The files that can be read to their ends."""
    import duckdb  # noqa: PLC0415 - see `results.duck`

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
    """What series are made of, as a table."""
    listed = ", ".join(quoted(path) for path in paths)
    connection.execute(
        f"CREATE OR REPLACE TABLE figures AS SELECT {_KEY}, night, fork, value "  # noqa: S608 - ours
        f"FROM read_parquet([{listed}]) "
        "WHERE ($1 IS NULL OR list_contains($1, variant)) AND isfinite(value) AND value > 0",
        [None if variants is None else list(variants)],
    )


def _grouped(connection: "DuckDBPyConnection") -> list[Series]:
    """Texts are kept once a series, not once a row: of the rows, only numbers come to Python."""
    connection.execute(
        f"CREATE TABLE keys AS SELECT row_number() OVER (ORDER BY {_KEY}) AS place, * "  # noqa: S608 - ours
        f"FROM (SELECT DISTINCT {_KEY} FROM figures)"
    )
    keys = connection.execute(f"SELECT {_KEY} FROM keys ORDER BY place").fetchall()  # noqa: S608 - ours
    found = connection.execute(
        f"SELECT place, night, fork, value FROM figures JOIN keys USING ({_KEY}) "  # noqa: S608 - ours
        "ORDER BY place, night, fork"
    ).fetchnumpy()
    return _split(keys, found)


def _split(keys: Sequence[tuple[Any, ...]], found: Mapping[str, npt.NDArray[Any]]) -> list[Series]:
    """Rows in order of their series -> one series a key."""
    ends = np.searchsorted(found["place"], np.arange(len(keys) + 1), side="right")
    nights, forks = found["night"].astype(np.int64), found["fork"].astype(np.int64)
    values = found["value"].astype(np.float64)
    series = []
    for place, (variant, challenge, task, metric, unit, higher) in enumerate(keys):
        rows = slice(int(ends[place]), int(ends[place + 1]))
        key = SeriesKey(variant, challenge, task, metric)
        series.append(Series(key, unit, higher, nights[rows], forks[rows], values[rows]))
    return series
