"""Runs as views in DuckDB, one query over them, and the same as Parquet files."""

import contextlib
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

import duckdb

from benchctl.errors import BenchctlError, UsageError
from benchctl.results.model import RunRecord
from benchctl.results.samples import CHUNK_ROWS, DuckError, connect, database, quoted
from benchctl.results.store import RunFolder, damaged_files
from benchctl.results.tables import (
    BUILDS,
    DERIVED,
    FORKS,
    NAMES,
    RUNS,
    SAMPLES,
    TASKS,
    BuildRow,
    Column,
    ForkRow,
    RunRow,
    TaskRow,
    is_compared,
)

# Runs as tables in DuckDB: `samples` from the Parquet files, all others from the records.


ViewName = Literal["runs", "builds", "forks", "tasks", "samples"]
VIEWS: tuple[ViewName, ...] = get_args(ViewName)
ONE_ROW: Mapping[ViewName, str] = {
    "runs": "one row a run",
    "builds": "one row a build of a variant's prepared index",
    "forks": "one row a fork: a pass of one variant",
    "tasks": "one row a task and fork: the figures that forks are compared by",
    "samples": "one row a request, warm-up and failures included; read from the files as the query asks",
}

# What the view `samples` joins, by type.
_COLUMN_TYPES = {name: sql_type for name, (sql_type, _) in {**SAMPLES, **NAMES}.items()}
_FILES = {"path": "VARCHAR"} | {name: _COLUMN_TYPES[name] for name in ("run", "variant", "block", "compared")}
_TASK_NAMES = {
    name: _COLUMN_TYPES[name] for name in ("run", "schedule", "task", "challenge", "label", "operation")
}


@dataclass(frozen=True)
class StoredRun:
    """A run on disk with its record."""

    folder: RunFolder
    record: RunRecord

    def sample_files(self) -> Iterator[tuple[str, str, int, bool]]:
        """Return (absolute path, variant, block, compared) of all samples that were kept.

        Raises:
            BenchctlError: If files changed since they were written.
        """
        kept = [(fork, fork.samples) for fork in self.record.forks if fork.samples is not None]
        if wrong := list(filter(None, (self.folder.damage(fork, samples) for fork, samples in kept))):
            raise damaged_files(self.folder.path, wrong)
        for fork, samples in kept:
            path = str(self.folder.inside(samples).absolute())
            yield path, fork.variant, fork.block, is_compared(ForkRow(self.record, fork))

    def task_names(self) -> Iterator[tuple[int, int, str, str, str]]:
        """Return (schedule, task, challenge, label, operation) of all that samples may point to."""
        plan = self.record.plan
        if plan.redline is not None:
            # The steps of a search stand where tasks do, from the warm-up, which is 0; tasks, where schedules
            # do.
            steps = max((point.step for fork in self.record.forks for point in fork.curve), default=0)
            for place, task in enumerate(plan.schedules[0].schedule):
                for step in range(steps + 1):
                    yield place, step, plan.schedules[0].name, task.label, task.operation
            return
        for schedule, challenge in enumerate(plan.schedules):
            for place, task in enumerate(challenge.schedule):
                yield schedule, place, challenge.name, task.label, task.operation


@dataclass(frozen=True)
class FileView:
    """A view over Parquet files of a slice."""

    name: str
    one_row: str
    # Name -> (type, meaning) of the one column that is not in the files.
    owner: Mapping[str, tuple[str, str]]
    columns: Mapping[str, tuple[str, str]]  # name -> (type, meaning) of those that are
    files: Callable[[], Sequence[tuple[str, str]]]  # gives (absolute path, owner) of each


def view_columns(view: ViewName | FileView) -> tuple[tuple[str, str, str], ...]:
    """Return (name, type, meaning) of the columns of a view, in order."""
    if isinstance(view, FileView):
        return tuple((name, *description) for name, description in {**view.owner, **view.columns}.items())
    if view == "samples":
        documented = {**NAMES, **SAMPLES, **{name: description[:2] for name, description in DERIVED.items()}}
        return tuple((name, *description) for name, description in documented.items())
    tables: Mapping[str, Sequence[Column[Any]]] = {
        "runs": RUNS, "builds": BUILDS, "forks": FORKS, "tasks": TASKS,
    }  # fmt: skip
    columns = tables[view]
    return tuple((column.name, column.sql_type, column.meaning) for column in columns)


def create_tables(connection: duckdb.DuckDBPyConnection, runs: Iterable[StoredRun]) -> None:
    """Fill `runs`, `builds`, `forks` and `tasks`, in the order of the runs."""
    stored = list(runs)
    _create(connection, "runs", RUNS, [RunRow(run.record, str(run.folder.path.absolute())) for run in stored])
    builds = [
        BuildRow(run.record, name, number, facts)
        for run in stored
        for name in run.record.indices
        for number, facts in enumerate(run.record.builds_of(name))
    ]
    _create(connection, "builds", BUILDS, builds)
    forks = [ForkRow(run.record, fork) for run in stored for fork in run.record.forks]
    _create(connection, "forks", FORKS, forks)
    tasks = [TaskRow(row.record, row.fork, summary) for row in forks for summary in row.fork.summaries]
    _create(connection, "tasks", TASKS, tasks)


def create_samples(
    connection: duckdb.DuckDBPyConnection,
    runs: Sequence[StoredRun],
    damaged: Callable[[str], None] | None = None,
) -> tuple[str, ...]:
    """Make the view `samples`; its files are opened now, and read on use.

    `damaged` is called for each run that is left out because a file is missing, damaged, or not the one that
    was written; without it, or if no run remains, such a file is an error.

    Returns:
        The absolute paths of the files.

    Raises:
        BenchctlError: If a file is missing, damaged, or not the one that was written.
    """
    files: list[tuple[str, str, str, int, bool]] = []
    stored: list[StoredRun] = []
    wrong: list[BenchctlError] = []
    for run in runs:
        try:
            files += [
                (path, run.record.id, variant, block, counts)
                for path, variant, block, counts in run.sample_files()
            ]
        except BenchctlError as err:
            wrong.append(err)
        else:
            stored.append(run)
    if wrong and (damaged is None or not stored):
        raise wrong[0]
    for reason in wrong:
        if damaged is not None:
            damaged(f"{reason.message}; no samples of that run are in the answer")
    names = [(run.record.id, *name) for run in stored for name in run.task_names()]
    _fill(connection, "sample_files", _FILES, _turned(files, len(_FILES)))
    _fill(connection, "task_names", _TASK_NAMES, _turned(names, len(_TASK_NAMES)))
    paths = tuple(path for path, *_ in files)
    with damage_named(paths):
        connection.execute(f"CREATE VIEW samples AS {_samples_query(paths)}")
    return paths


def create_file_view(connection: duckdb.DuckDBPyConnection, view: FileView) -> tuple[str, ...]:
    """Make a view over files, which are read on use.

    Returns:
        The absolute paths of the files.

    Raises:
        BenchctlError: If a file is damaged.
    """
    (owner,) = view.owner
    files = view.files()
    _fill(connection, f"{view.name}_files", {"path": "VARCHAR", owner: "VARCHAR"}, _turned(files, 2))
    paths = tuple(path for path, _ in files)
    # As for samples, names come by a join.
    own = ", ".join(f"s.{name}" for name in view.columns)
    joined = f"{_rows_of(paths, view.columns)} s JOIN {view.name}_files f ON s.filename = f.path"
    with damage_named(paths):
        connection.execute(f"CREATE VIEW {view.name} AS SELECT f.{owner}, {own} FROM {joined}")  # noqa: S608 - all names are ours
    return paths


@contextmanager
def damage_named(paths: Iterable[str]) -> Iterator[None]:
    """Name the file that makes the block fail: DuckDB's errors vary, and often do not say where.

    Raises:
        BenchctlError: If DuckDB fails, and one of the files cannot be read to its end.
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


def _samples_query(paths: Sequence[str]) -> str:
    """Names come by joins, so that a condition on them skips whole files."""
    own = ", ".join(f"s.{name}" for name in SAMPLES)
    derived = ", ".join(f"{formula} AS {name}" for name, (_, _, formula) in DERIVED.items())
    whose = "f.run, f.variant, f.block, f.compared, n.challenge, n.label, n.operation"
    joins = (
        f"{_rows_of(paths, SAMPLES)} s JOIN sample_files f ON s.filename = f.path "
        "LEFT JOIN task_names n ON n.run = f.run AND n.schedule = s.schedule AND n.task = s.task"
    )
    return f"SELECT {whose}, {own}, {derived} FROM {joins}"  # noqa: S608 - all names are ours


def _rows_of(paths: Sequence[str], columns: Mapping[str, tuple[str, str]]) -> str:
    """The rows of files with these columns, and `filename`; without files, none."""
    if paths:
        return f"(FROM read_parquet([{', '.join(map(quoted, paths))}], filename = true))"
    typed = ", ".join(f"NULL::{sql_type} AS {name}" for name, (sql_type, _) in columns.items())
    return f"(SELECT {typed}, NULL::VARCHAR AS filename WHERE false)"


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


_BATCH = 10_000
_NUMBER = re.compile(r"U?(TINY|SMALL|BIG|HUGE)?INT(EGER)?$|FLOAT|DOUBLE|DECIMAL|NUMBER")
# DuckDB makes Python values of such times with a package that is not needed for anything else.
_ZONED = "WITH TIME ZONE"


@dataclass(frozen=True)
class Answer:
    """The result of a query."""

    columns: tuple[str, ...]
    numeric: frozenset[int]  # which of them hold numbers
    # Values in the order of the columns; can be read once, while the query is open.
    rows: Iterator[tuple[object, ...]]


@contextmanager
def answered(
    query: str,
    runs: Sequence[StoredRun],
    views: Sequence[FileView] = (),
    damaged: Callable[[str], None] | None = None,
) -> Iterator[Answer]:
    """Answer a query, one SELECT statement of DuckDB (or FROM, WITH, DESCRIBE, SUMMARIZE), on runs and views.

    `damaged` is that of `create_samples`.

    Raises:
        UsageError: If the query is something else, or DuckDB cannot do it.
    """
    with connect() as connection:
        try:
            text = _checked(connection, query)
            create_tables(connection, runs)
            # Opening thousands of files takes time: only for who asks for them.
            paths = create_samples(connection, runs, damaged) if _mentions(query, "samples") else ()
            for view in views:
                if _mentions(query, view.name):
                    paths += create_file_view(connection, view)
            _lock(connection, paths)
            with damage_named(paths):
                result = _executed(connection, text)
                described = result.description or []
                numbers = (place for place, column in enumerate(described) if _NUMBER.match(str(column[1])))
                yield Answer(tuple(column[0] for column in described), frozenset(numbers), _batches(result))
        except duckdb.Error as err:
            # Without the excerpt of the query and the arrow below it.
            reason = " ".join(str(err).split("\n\n", 1)[0].split())
            raise UsageError(
                f"DuckDB: {reason}", hint="tables and columns are listed by: benchctl sql --views"
            ) from err


def _mentions(query: str, view: str) -> bool:
    return re.search(rf"\b{view}\b", query, re.IGNORECASE) is not None


def _checked(connection: duckdb.DuckDBPyConnection, query: str) -> str:
    """Allow only reading: DuckDB's own lock would still let a query overwrite the files that it may read."""
    statements = connection.extract_statements(query)
    if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
        raise UsageError(
            "one query is wanted, and nothing that writes: SELECT, FROM, WITH, DESCRIBE or SUMMARIZE",
            hint='for example: benchctl sql "select variant, avg(p90_ms) from tasks group by all"',
        )
    return statements[0].query.strip().rstrip(";")


def _executed(connection: duckdb.DuckDBPyConnection, query: str) -> duckdb.DuckDBPyConnection:
    """The answer, with times that have a zone as text."""
    result = connection.execute(query)
    described = result.description or []
    if not any(_ZONED in str(column[1]) for column in described):
        return result
    # Its columns get names of ours within, where two of its own may be alike.
    columns = [
        (f"c{place}{'::VARCHAR' if _ZONED in str(kind) else ''}", name.replace('"', '""'))
        for place, (name, kind, *_) in enumerate(described)
    ]
    chosen = ", ".join(f'{expression} AS "{name}"' for expression, name in columns)
    inner = ", ".join(f"c{place}" for place in range(len(described)))
    # The line break ends a comment that the query may end with.
    return connection.execute(f"SELECT {chosen} FROM ({query}\n) t({inner})")  # noqa: S608 - it was checked


def _lock(connection: duckdb.DuckDBPyConnection, paths: Sequence[str]) -> None:
    """Afterwards no other file can be read, nothing loaded, and nothing of this undone."""
    listed = ", ".join(quoted(path) for path in paths)
    connection.execute(f"SET allowed_paths = [{listed}]")
    connection.execute("SET temp_directory = ''")
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")


def _batches(result: duckdb.DuckDBPyConnection) -> Iterator[tuple[object, ...]]:
    while rows := result.fetchmany(_BATCH):
        yield from rows


_MARK = "benchctl_export"
_FORMAT = f"FORMAT parquet, COMPRESSION zstd, ROW_GROUP_SIZE {CHUNK_ROWS}, KV_METADATA {{{_MARK}: '1'}}"

# A Parquet file ends with its metadata, their length in four bytes, and these.
_MAGIC = b"PAR1"
_TAIL_BYTES = 8


def export_parquet(runs: Sequence[StoredRun], folder: Path) -> dict[Path, int]:
    """Write a Parquet file of every view, such as runs.parquet, all or none of them.

    Samples are copied row group by row group, so that memory does not grow with their number. Files of an
    earlier export are replaced once all are complete. The folder is made if missing.

    Returns:
        path -> rows.

    Raises:
        UsageError: If files of these names exist that no export wrote.
        BenchctlError: If samples cannot be read, or the files not be written.
    """
    partial = {view: folder / f".{view}.parquet.{os.getpid()}.partial" for view in VIEWS}
    with contextlib.ExitStack() as rubbish:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            for path in (folder / f"{view}.parquet" for view in VIEWS):
                # Somebody else's `tasks.parquet` is never replaced.
                if path.exists() and not (path.is_file() and _is_export(path)):
                    raise UsageError(f"{path} was not written by benchctl", hint="name another directory")
            for path in partial.values():
                rubbish.callback(path.unlink, missing_ok=True)
            rows = _write(runs, partial)
            for view, path in partial.items():
                path.replace(folder / f"{view}.parquet")
        except (OSError, DuckError) as err:
            reason = err.strerror if isinstance(err, OSError) else str(err)
            raise BenchctlError(
                f"cannot export to {folder}: {reason}", hint="free some space or choose another directory"
            ) from err
    return {folder / f"{view}.parquet": rows[view] for view in VIEWS}


def _write(runs: Sequence[StoredRun], paths: dict[ViewName, Path]) -> dict[ViewName, int]:
    with database(threads=1) as connection:
        create_tables(connection, runs)
        create_samples(connection, runs)
        rows: dict[ViewName, int] = {}
        for view, path in paths.items():
            written = connection.execute(f"COPY {view} TO {quoted(path)} ({_FORMAT})").fetchone()
            rows[view] = int(written[0]) if written else 0
    return rows


def _is_export(path: Path) -> bool:
    """Return whether its metadata have our mark; they are read as bytes, to work for damaged files."""
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - _TAIL_BYTES))
        tail = file.read()
        length = int.from_bytes(tail[: -len(_MAGIC)], "little")
        if not tail.endswith(_MAGIC) or length + _TAIL_BYTES > size:
            return False
        file.seek(size - _TAIL_BYTES - length)
        return _MARK.encode() in file.read(length)
