"""Runs as tables in DuckDB: `runs`, `forks`, `tasks` from the records, `samples` from the Parquet files.

And `nights`, from the Parquet files of nightly suites.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

import duckdb

from benchctl.errors import BenchctlError
from benchctl.results.columns import (
    DERIVED,
    FORKS,
    NAMES,
    RUNS,
    SAMPLES,
    TASKS,
    Column,
    ForkRow,
    RunRow,
    TaskRow,
)
from benchctl.results.duck import quoted
from benchctl.results.model import RunRecord
from benchctl.results.nightly.figures import COLUMNS
from benchctl.results.nightly.folder import SuiteFolder
from benchctl.results.parquet import SINCE_SCHEMA_2
from benchctl.results.store import RunFolder, damaged_files

ViewName = Literal["runs", "forks", "tasks", "samples"]
VIEWS: tuple[ViewName, ...] = ("runs", "forks", "tasks", "samples")
QueryView = Literal[ViewName, "nights"]
QUERY_VIEWS: tuple[QueryView, ...] = (*VIEWS, "nights")
"""All that can be asked: those of runs, and the history of nightly suites."""
ONE_ROW: Mapping[QueryView, str] = {
    "runs": "one row a run",
    "forks": "one row a fork: a pass of one variant",
    "tasks": "one row a task and fork: the figures that forks are compared by",
    "samples": "one row a request, warm-up and failures included; read from the files as the query asks",
    "nights": "one row a fork, task and metric of every night of every suite; read as the query asks",
}

# What the view `samples` joins, by type.
_FILES = {"path": "VARCHAR", "run": "VARCHAR", "variant": "VARCHAR", "block": "INTEGER"}
_TASK_NAMES = {
    "run": "VARCHAR", "schedule": "SMALLINT", "task": "SMALLINT",
    "challenge": "VARCHAR", "label": "VARCHAR", "operation": "VARCHAR",
}  # fmt: skip

# What the view `nights` joins.
_FIGURE_FILES = {"path": "VARCHAR", "suite": "VARCHAR"}
_NIGHT_NAMES = {"suite": ("VARCHAR", "name of the suite")}

# What schema 1 of the sample files did not have, as an expression.
_FILLED = {name: str(value) for name, value in SINCE_SCHEMA_2.items()} | {
    "processing_ns": "end_ns - start_ns"
}


@dataclass(frozen=True)
class StoredRun:
    """A run on disk with its record."""

    folder: RunFolder
    record: RunRecord

    def sample_files(self) -> Iterator[tuple[str, str, int]]:
        """(absolute path, variant, block) of all samples that were kept.

        Raises:
            BenchctlError: some are not what was written, so that an answer would be a wrong one.
        """
        kept = [(fork, fork.samples) for fork in self.record.forks if fork.samples is not None]
        if wrong := list(filter(None, (self.folder.damage(fork, samples) for fork, samples in kept))):
            raise damaged_files(self.folder.path, wrong)
        for fork, samples in kept:
            yield str(self.folder.inside(samples).absolute()), fork.variant, fork.block

    def task_names(self) -> Iterator[tuple[int, int, str, str, str]]:
        """(schedule, task, challenge, label, operation) of all that samples may point to."""
        plan = self.record.plan
        if plan.redline is not None:
            # The steps of a search stand where tasks do, from the warm-up, which is 0.
            steps = max((point.step for fork in self.record.forks for point in fork.curve), default=0)
            task = plan.schedules[0].schedule[0]
            for step in range(steps + 1):
                yield 0, step, plan.schedules[0].name, task.label, task.operation
            return
        for schedule, challenge in enumerate(plan.schedules):
            for place, task in enumerate(challenge.schedule):
                yield schedule, place, challenge.name, task.label, task.operation


def view_columns(view: QueryView) -> tuple[tuple[str, str, str], ...]:
    """(name, type, meaning) of the columns of a view, in order."""
    if view == "samples":
        documented = {**NAMES, **SAMPLES, **{name: found[:2] for name, found in DERIVED.items()}}
        return tuple((name, *found) for name, found in documented.items())
    if view == "nights":
        return tuple((name, *found) for name, found in {**_NIGHT_NAMES, **COLUMNS}.items())
    tables: Mapping[str, Sequence[Column[Any]]] = {"runs": RUNS, "forks": FORKS, "tasks": TASKS}
    columns = tables[view]
    return tuple((column.name, column.sql_type, column.meaning) for column in columns)


def create_tables(connection: duckdb.DuckDBPyConnection, runs: Iterable[StoredRun]) -> None:
    """Fill `runs`, `forks` and `tasks`.

    Args:
        connection: a database in memory.
        runs: in the order of the rows.
    """
    stored = list(runs)
    _create(connection, "runs", RUNS, [RunRow(one.record, str(one.folder.path.absolute())) for one in stored])
    forks = [ForkRow(one.record, fork) for one in stored for fork in one.record.forks]
    _create(connection, "forks", FORKS, forks)
    tasks = [TaskRow(row.record, row.fork, summary) for row in forks for summary in row.fork.summaries]
    _create(connection, "tasks", TASKS, tasks)


def create_samples(connection: duckdb.DuckDBPyConnection, runs: Iterable[StoredRun]) -> tuple[str, ...]:
    """Make the view `samples`; its files are opened now, and read when they are asked for.

    Args:
        connection: a database in memory.
        runs: whose samples.

    Returns:
        The absolute paths of the files.

    Raises:
        BenchctlError: a file is missing, damaged, or not the one that was written.
    """
    stored = list(runs)
    files = [
        (path, one.record.id, variant, block) for one in stored for path, variant, block in one.sample_files()
    ]
    names = [(one.record.id, *name) for one in stored for name in one.task_names()]
    _fill(connection, "sample_files", _FILES, _turned(files, len(_FILES)))
    _fill(connection, "task_names", _TASK_NAMES, _turned(names, len(_TASK_NAMES)))
    paths = tuple(path for path, *_ in files)
    with damage_named(paths):
        connection.execute(f"CREATE VIEW samples AS {_samples_query(paths)}")
    return paths


def create_nights(connection: duckdb.DuckDBPyConnection, suites: Iterable[SuiteFolder]) -> tuple[str, ...]:
    """Make the view `nights`; its files are read when they are asked for.

    Args:
        connection: a database in memory.
        suites: whose nights.

    Returns:
        The absolute paths of the files.

    Raises:
        BenchctlError: a file is damaged.
    """
    files = [(str(path.absolute()), suite.root.name) for suite in suites for path in suite.figure_files()]
    _fill(connection, "figure_files", _FIGURE_FILES, _turned(files, len(_FIGURE_FILES)))
    paths = tuple(path for path, _ in files)
    with damage_named(paths):
        connection.execute(f"CREATE VIEW nights AS {_nights_query(paths)}")
    return paths


@contextmanager
def damage_named(paths: Iterable[str]) -> Iterator[None]:
    """Name the file that makes the block fail: DuckDB says in many ways what is wrong, and often not where.

    Raises:
        BenchctlError: DuckDB fails, and one of the files cannot be read to its end.
    """
    try:
        yield
    except duckdb.Error as err:
        for path in paths:
            with duckdb.connect() as other:
                try:
                    other.execute("SELECT max(hash(one)) FROM read_parquet(?) AS one", [path]).fetchall()
                except duckdb.Error as own:
                    raise BenchctlError(f"{path} is damaged: {' '.join(str(own).split())}") from err
        raise


def _nights_query(paths: Sequence[str]) -> str:
    """As for samples, names come by a join."""
    source = "SELECT NULL::VARCHAR AS filename, " + ", ".join(
        f"NULL::{sql_type} AS {name}" for name, (sql_type, _) in COLUMNS.items()
    )
    if paths:
        source = f"FROM read_parquet([{', '.join(map(quoted, paths))}], filename = true)"
    own = ", ".join(f"s.{name}" for name in COLUMNS)
    return f"SELECT f.suite, {own} FROM ({source}) s JOIN figure_files f ON s.filename = f.path"  # noqa: S608 - all names are ours


def _samples_query(paths: Sequence[str]) -> str:
    """Names come by joins, so that a condition on them passes over whole files."""
    typed = ", ".join(f"NULL::{sql_type} AS {name}" for name, (sql_type, _) in SAMPLES.items())
    # Files of schema 1 lack columns: an empty relation that has all of them comes first.
    source = f"SELECT {typed}, NULL::VARCHAR AS filename WHERE false"
    if paths:
        listed = ", ".join(quoted(path) for path in paths)
        read = f"read_parquet([{listed}], union_by_name = true, filename = true)"
        source = f"{source} UNION ALL BY NAME SELECT * FROM {read}"  # noqa: S608 - paths are quoted
    own = ", ".join(
        f"coalesce(s.{name}, {_FILLED[name]})::{sql_type} AS {name}" if name in _FILLED else f"s.{name}"
        for name, (sql_type, _) in SAMPLES.items()
    )
    derived = ", ".join(f"{formula} AS {name}" for name, (_, _, formula) in DERIVED.items())
    whose = "f.run, f.variant, f.block, n.challenge, n.label, n.operation"
    joins = (
        f"({source}) s JOIN sample_files f ON s.filename = f.path "
        "LEFT JOIN task_names n ON n.run = f.run AND n.schedule = s.schedule AND n.task = s.task"
    )
    return f"SELECT {whose}, {own}, {derived} FROM {joins}"  # noqa: S608 - all names are ours


def _create(
    connection: duckdb.DuckDBPyConnection, name: str, columns: Sequence[Column[Any]], rows: Sequence[object]
) -> None:
    types = {column.name: column.sql_type for column in columns}
    _fill(connection, name, types, [[column.value(row) for row in rows] for column in columns])


def _fill(
    connection: duckdb.DuckDBPyConnection, name: str, types: Mapping[str, str], values: Sequence[list[object]]
) -> None:
    """Column by column: DuckDB takes lists of plain values at once."""
    chosen = ", ".join(f"unnest(?::{sql_type}[]) AS {column}" for column, sql_type in types.items())
    connection.execute(f"CREATE TABLE {name} AS SELECT {chosen}", values)


def _turned(rows: Sequence[tuple[object, ...]], width: int) -> list[list[object]]:
    """Rows -> columns."""
    return [[row[place] for row in rows] for place in range(width)]
