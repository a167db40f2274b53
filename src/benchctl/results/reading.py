"""A run's samples as charts and further quantiles need them: when tasks ran, and a row group at a time."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from benchctl.errors import BenchctlError
from benchctl.results.model import ForkRecord
from benchctl.results.plan import Place
from benchctl.results.samples import (
    CHUNK_ROWS,
    SAMPLE_DTYPES,
    Columns,
    DuckError,
    Outcome,
    database,
)
from benchctl.results.store import RunFolder

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


_QUERY = """
SELECT schedule, task, min(start_ns) FILTER (NOT warmup), max(end_ns), any_value(boot)
FROM read_parquet(?) WHERE schedule >= 0 GROUP BY ALL ORDER BY ALL
"""


class UnknownTimesError(BenchctlError):
    """The samples that say when the tasks of a fork ran are gone."""


@dataclass(frozen=True)
class TaskWindow:
    """A task's time, in nanoseconds from the origin of the fork's samples."""

    measured_ns: int  # its first measured request was sent
    end_ns: int  # its last answer was there
    boot: int = 0  # on which node start of the fork it ran, all of it


def task_windows(folder: RunFolder, fork: ForkRecord) -> dict[Place, TaskWindow]:
    """Return the tasks of a fork that measured anything, in their order.

    Raises:
        UnknownTimesError: If its samples are gone: nothing else has the times of tasks.
        BenchctlError: If they cannot be read.
    """
    absent = "none were kept" if fork.samples is None else folder.damage(fork, fork.samples)
    if fork.samples is None or absent:
        raise UnknownTimesError(
            f"the samples of fork {fork.block} of {fork.variant} are not there ({absent}): "
            "only they say when tasks ran"
        )
    path = folder.inside(fork.samples)
    try:
        with database(threads=1) as connection:
            rows = connection.execute(_QUERY, [str(path)]).fetchall()
    except DuckError as err:
        raise BenchctlError(f"cannot read the samples in {path}: {err}") from err
    return {
        (schedule, task): TaskWindow(measured_ns, end_ns, boot)
        for schedule, task, measured_ns, end_ns, boot in rows
        if measured_ns is not None
    }


_LONGEST_FORK_NS = 10**17  # three years
_LONGEST_REQUEST_NS = 10**15  # eleven days, and what charts can count

CHART_COLUMNS = (
    "schedule",
    "task",
    "warmup",
    "intended_ns",
    "start_ns",
    "end_ns",
    "outcome",
    "took_ms",
    "part",
)
"""Data of charts, and quantiles that no summary holds."""


@dataclass(frozen=True)
class SampleFile:
    """`CHART_COLUMNS` of the samples of one fork on disk, read anew by every iteration."""

    path: Path

    def __iter__(self) -> Iterator[Columns]:
        """Yield one row group after the other, in order.

        Raises:
            BenchctlError: If the file is missing or no sample file of this benchctl.
        """
        try:
            # Row groups are waited for one by one.
            with database(threads=1) as connection:
                yield from self._row_groups(connection)
        except DuckError as err:
            raise BenchctlError(f"cannot read the samples in {self.path}: {err}") from err

    def _row_groups(self, connection: "DuckDBPyConnection") -> Iterator[Columns]:
        name = str(self.path)
        names = connection.execute("SELECT name FROM parquet_schema(?)", [name]).fetchall()
        present = {column for (column,) in names}
        if missing := [column for column in CHART_COLUMNS if column not in present]:
            raise BenchctlError(f"{self.path} lacks the columns {', '.join(missing)}")
        # DuckDB passes over the row groups that cannot hold such row numbers. The names are SAMPLE_DTYPES'.
        query = (
            f"SELECT {', '.join(CHART_COLUMNS)} FROM read_parquet(?, file_row_number = true) "  # noqa: S608 - ours
            "WHERE file_row_number >= ? AND file_row_number < ?"
        )
        first = 0
        for rows in _group_sizes(connection, name):
            chunk = connection.execute(query, [name, first, first + rows]).fetchnumpy()
            first += rows
            values = {name: chunk[name].astype(SAMPLE_DTYPES[name], copy=False) for name in CHART_COLUMNS}
            if not _possible(values):
                raise BenchctlError(f"{self.path} holds what no request can have: it is damaged")
            yield values


@dataclass(frozen=True)
class ForkSource:
    """A finished fork and its files."""

    label: str  # what tables call its variant
    block: int
    # Chunks of CHART_COLUMNS, to be read as often as needed; None when there are none.
    samples: Iterable[Columns] | None
    absent: str  # what of it is missing or unreadable; empty when nothing is


def fork_sources(
    folder: RunFolder, forks: Iterable[ForkRecord], *, label: str | None = None
) -> Iterator[ForkSource]:
    """Return a run's finished forks, each with its samples if they are intact.

    `label` is what tables call them; None for the names of their variants.

    Raises:
        BenchctlError: If the record names files outside of the run's folder.
    """
    for fork in sorted((fork for fork in forks if fork.status == "done"), key=lambda fork: fork.block):
        samples, absent = _samples(folder, fork)
        yield ForkSource(label or fork.variant, fork.block, samples, absent)


def _samples(folder: RunFolder, fork: ForkRecord) -> tuple[SampleFile | None, str]:
    if fork.samples is None:
        return None, "no samples were kept"
    # A chart of other samples than those that were measured would be worse than none.
    if damage := folder.damage(fork, fork.samples):
        return None, damage
    return SampleFile(folder.inside(fork.samples)), ""


def _group_sizes(connection: "DuckDBPyConnection", name: str) -> list[int]:
    """Rows of every row group, in order; groups of foreign files may be larger than a chunk and are cut."""
    query = (
        "SELECT any_value(row_group_num_rows) FROM parquet_metadata(?) "
        "GROUP BY row_group_id ORDER BY row_group_id"
    )
    groups = [rows for (rows,) in connection.execute(query, [name]).fetchall()]
    return [min(CHUNK_ROWS, rows - start) for rows in groups for start in range(0, rows, CHUNK_ROWS)]


def _possible(rows: Columns) -> bool:
    """Return whether times can be those of requests; a damaged file may still be readable."""
    clocks = (rows[name] for name in ("intended_ns", "start_ns", "end_ns"))
    ok = rows["outcome"] == Outcome.OK
    service_ns = (rows["end_ns"] - rows["start_ns"])[ok]
    return bool(
        all((np.abs(clock) < _LONGEST_FORK_NS).all() for clock in clocks)
        and ((service_ns >= 0) & (service_ns < _LONGEST_REQUEST_NS)).all()
    )
