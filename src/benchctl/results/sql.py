"""Runs as tables: their columns, the views in DuckDB, one query over them, and the same as files."""

import contextlib
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Generic, Literal, TypeVar, get_args

import duckdb

from benchctl.errors import BenchctlError, UsageError
from benchctl.results.figures import FIGURES, Figure, Quantiles, TaskSummary
from benchctl.results.model import ForkRecord, IndexFacts, RunRecord
from benchctl.results.parquet import DuckError, connect, database, quoted
from benchctl.results.samples import CHUNK_ROWS, Outcome
from benchctl.results.store import RunFolder, damaged_files

# The tables of `benchctl sql`, column by column: name, type, meaning, and where its value is from.


T = TypeVar("T")

_NS_PER_MS = 1e6


@dataclass(frozen=True)
class Column(Generic[T]):
    """One column of a table.

    Attributes:
        name: with its unit.
        sql_type: DuckDB's.
        meaning: for readers; with the unit if the name has none.
        value: of a row; None for NULL.
    """

    name: str
    sql_type: str
    meaning: str
    value: Callable[[T], Any]


def moment(text: str) -> str | None:
    """A time of a record as DuckDB reads it, in UTC; None for a text that is not a time."""
    try:
        found = datetime.fromisoformat(text)
        # What has no zone was written in UTC.
        utc = found if found.tzinfo is None else found.astimezone(UTC).replace(tzinfo=None)
    except (ValueError, OverflowError):
        return None
    return utc.isoformat(" ")


@dataclass(frozen=True)
class RunRow:
    """One run.

    Attributes:
        record: of it.
        folder: absolute path.
    """

    record: RunRecord
    folder: str


@dataclass(frozen=True)
class ForkRow:
    """One fork of a run."""

    record: RunRecord
    fork: ForkRecord


@dataclass(frozen=True)
class BuildRow:
    """One build of a variant's index."""

    record: RunRecord
    variant: str
    build: int
    facts: IndexFacts

    @property
    def planned_version(self) -> str | None:
        """What the plan has for the variant; None of targets, which tell it themselves."""
        specs = self.record.plan.variants
        return next((one.version or None for one in specs if one.name == self.variant), None)


@dataclass(frozen=True)
class TaskRow:
    """One task of a fork."""

    record: RunRecord
    fork: ForkRecord
    task: TaskSummary


RUNS: tuple[Column[RunRow], ...] = (
    Column("run", "VARCHAR", "id of the run", lambda row: row.record.id),
    Column("created", "TIMESTAMP", "when it began, UTC", lambda row: moment(row.record.created)),
    Column("status", "VARCHAR", "running, complete, interrupted or failed", lambda row: row.record.status),
    Column("tags", "VARCHAR[]", "words that the user gave it", lambda row: list(row.record.tags)),
    Column("track", "VARCHAR", "name of the track", lambda row: row.record.plan.track),
    Column(
        "challenges",
        "VARCHAR[]",
        "names of the challenges, in order",
        lambda row: [one.name for one in row.record.plan.schedules],
    ),
    Column(
        "variants",
        "VARCHAR[]",
        "names of the variants; the first is the baseline",
        lambda row: [one.name for one in row.record.plan.variants],
    ),
    Column(
        "documents",
        "BIGINT",
        "documents of the corpus; NULL when unknown",
        lambda row: row.record.plan.corpus.documents or None,
    ),
    Column("forks", "INTEGER", "planned forks of every variant", lambda row: row.record.plan.forks),
    Column(
        "seed",
        "BIGINT",
        "of order, arrivals and values; NULL when unknown",
        lambda row: None if row.record.imported else row.record.plan.seed,
    ),
    Column(
        "restart",
        "VARCHAR",
        "when a fresh node came in between; NULL when unknown",
        lambda row: None if row.record.imported else row.record.plan.restart,
    ),
    Column(
        "heap_mb",
        "INTEGER",
        "heap of every node, MiB; NULL when unknown",
        lambda row: row.record.plan.heap_mb or None,
    ),
    Column("paired", "BOOLEAN", "declared to be analysed as pairs", lambda row: row.record.plan.paired),
    Column("hostname", "VARCHAR", "where it was measured", lambda row: row.record.environment.hostname),
    Column("cpu_model", "VARCHAR", "of the host", lambda row: row.record.environment.cpu_model),
    Column("cpus", "INTEGER", "of the host", lambda row: row.record.environment.cpus or None),
    Column("benchctl", "VARCHAR", "version of benchctl", lambda row: row.record.environment.benchctl),
    Column(
        "imported",
        "VARCHAR",
        "the tool that measured it; NULL for benchctl itself",
        lambda row: row.record.imported and row.record.imported.tool,
    ),
    Column("folder", "VARCHAR", "where it is", lambda row: row.folder),
)

_RUN_OF_FORK = Column[ForkRow]("run", "VARCHAR", "id of the run", lambda row: row.record.id)


def _is_compared(row: ForkRow | TaskRow) -> bool:
    return row.fork.status == "done" and not row.record.plan.is_extra(row.fork.block)


FORKS: tuple[Column[ForkRow], ...] = (
    _RUN_OF_FORK,
    Column("variant", "VARCHAR", "name of the variant", lambda row: row.fork.variant),
    Column("block", "INTEGER", "number of the block, and of the fork, from 0", lambda row: row.fork.block),
    Column("position", "INTEGER", "place within the block, from 0", lambda row: row.fork.position),
    Column("status", "VARCHAR", "done or failed", lambda row: row.fork.status),
    Column("reason", "VARCHAR", "why it failed; empty when done", lambda row: row.fork.reason),
    Column("started", "VARCHAR", "wall clock, ISO 8601", lambda row: row.fork.started),
    Column("engine", "VARCHAR", "elasticsearch or opensearch", lambda row: _spec(row, "engine")),
    Column("version", "VARCHAR", "of the engine, as the node said", lambda row: _fact(row, "version")),
    Column("lucene", "VARCHAR", "its Lucene", lambda row: _fact(row, "lucene")),
    Column("jdk", "VARCHAR", "its Java runtime", lambda row: _fact(row, "jdk")),
    Column("evidence", "VARCHAR[]", "collected beside its figures", lambda row: list(row.fork.evidence)),
    Column("compared", "BOOLEAN", "done, and not there for evidence alone", _is_compared),
    Column("index_build", "INTEGER", "which build of the index, from 0", lambda row: row.fork.index_build),
    Column("wall_s", "DOUBLE", "the whole fork, seconds", lambda row: row.fork.wall_s),
    Column("requests_s", "DOUBLE", "seconds in tasks and warm-ups", lambda row: row.fork.requests_s),
    Column("boots", "INTEGER", "node starts (or uses of a running cluster)", lambda row: len(row.fork.boots)),
    Column("start_s", "DOUBLE", "node starts, seconds in all", lambda row: _over_boots(row, "start_s")),
    Column("idle_s", "DOUBLE", "waiting for calm, seconds in all", lambda row: _over_boots(row, "idle_s")),
    Column("stop_s", "DOUBLE", "node stops, seconds in all", lambda row: _over_boots(row, "stop_s")),
    Column("copy_s", "DOUBLE", "copying the index, seconds", lambda row: row.fork.copy_s),
    Column("probe_s", "DOUBLE", "the host probes, seconds", lambda row: row.fork.probe_s),
    Column("overhead_s", "DOUBLE", "what is left of wall_s, seconds", lambda row: row.fork.overhead_s),
    Column("cpu_before_ms", "DOUBLE", "CPU probe before it, ms", lambda row: _probe(row, 0, "cpu_ns")),
    Column("cpu_after_ms", "DOUBLE", "CPU probe after it, ms", lambda row: _probe(row, -1, "cpu_ns")),
    Column(
        "memory_before_ms", "DOUBLE", "memory probe before it, ms", lambda row: _probe(row, 0, "memory_ns")
    ),
    Column(
        "memory_after_ms", "DOUBLE", "memory probe after it, ms", lambda row: _probe(row, -1, "memory_ns")
    ),
)


def _spec(row: ForkRow, name: str) -> Any:
    return next(
        (getattr(one, name) for one in row.record.plan.variants if one.name == row.fork.variant), None
    )


def _fact(row: ForkRow, name: str) -> Any:
    found = (getattr(one, name) for one in row.record.engines if one.variant == row.fork.variant)
    return next(found, None)


def _over_boots(row: ForkRow, name: str) -> float | None:
    return sum(getattr(boot, name) for boot in row.fork.boots) if row.fork.boots else None


def _probe(row: ForkRow, place: int, name: str) -> float | None:
    return getattr(row.fork.probes[place], name) / _NS_PER_MS if row.fork.probes else None


def _summary(name: str, sql_type: str, meaning: str) -> Column[TaskRow]:
    """A figure of TaskSummary as it is."""
    return Column(name, sql_type, meaning, lambda row: getattr(row.task, name))


def _in_ms(name: str, field: str, meaning: str) -> Column[TaskRow]:
    """A time of TaskSummary."""

    def value(row: TaskRow) -> float | None:
        found = getattr(row.task, field)
        return None if found is None else found / _NS_PER_MS

    return Column(name, "DOUBLE", f"{meaning}, ms", value)


def _quantiles(prefix: str, field: str, meaning: str) -> tuple[Column[TaskRow], ...]:
    """Three quantiles of one kind of time."""

    def column(name: str) -> Column[TaskRow]:
        def value(row: TaskRow) -> float | None:
            found: Quantiles | None = getattr(row.task, field)
            return None if found is None else getattr(found, name) / _NS_PER_MS

        return Column(f"{prefix}{name}_ms", "DOUBLE", f"{name} of {meaning}, ms", value)

    return tuple(column(name) for name in ("p50", "p90", "p99"))


def _of_parts(name: str) -> Column[TaskRow]:
    """One quantile of every search of a batch."""

    def values(row: TaskRow) -> list[float]:
        return [getattr(one, name) / _NS_PER_MS for one in row.task.took_parts]

    meaning = f"{name} of the engine's own time of each search of a batch, ms"
    return Column(f"took_parts_{name}_ms", "DOUBLE[]", meaning, values)


def _map(values: Mapping[str, object]) -> dict[str, list[Any]] | None:
    """As DuckDB takes a map; NULL for nothing."""
    return {"key": list(values), "value": list(values.values())} if values else None


def _driver(name: str, sql_type: str, meaning: str) -> Column[TaskRow]:
    return Column(name, sql_type, meaning, lambda row: row.task.driver and getattr(row.task.driver, name))


_MEANINGS = {figure.field: figure.meaning for figure in FIGURES}
# Figures whose columns stand among others, or under other names.
_LISTED = ("throughput_per_s", "service_time", "latency", "took", "first_byte", "mean_ns", "redline_per_s")


def _compared(figure: Figure) -> tuple[Column[TaskRow], ...]:
    """Columns of a figure that is not listed by itself."""
    if figure.field in _LISTED or not figure.of_tasks:
        return ()
    if figure.quantiles:
        return _quantiles(f"{figure.name}_", figure.field, figure.meaning)
    if figure.field:
        return (_summary(figure.field, "DOUBLE", figure.meaning),)
    of_bulk = "; of bulk tasks, of 1,000 documents" if figure.by_documents else ""
    meaning = f"{figure.meaning}, {figure.unit}{of_bulk}"
    whole = Column[TaskRow](figure.name, "DOUBLE", meaning, lambda row: figure.of(row.task))
    return (whole, _parts(figure)) if figure.parted else (whole,)


def _parts(figure: Figure) -> Column[TaskRow]:
    name = f"{figure.name}_parts"
    before = f"{figure.name}."
    return Column(
        name,
        "MAP(VARCHAR, DOUBLE)",
        f"the same of each of them, as {name}['NAME']",
        lambda row: _map(
            {
                key.removeprefix(before): value
                for key, value in row.task.meters.items()
                if key.startswith(before)
            }
        ),
    )


TASKS: tuple[Column[TaskRow], ...] = (
    Column("run", "VARCHAR", "id of the run", lambda row: row.record.id),
    Column("variant", "VARCHAR", "name of the variant", lambda row: row.fork.variant),
    Column("block", "INTEGER", "number of the fork within its variant, from 0", lambda row: row.fork.block),
    Column("status", "VARCHAR", "of the fork: only those done are compared", lambda row: row.fork.status),
    Column("evidence", "VARCHAR[]", "collected beside its figures", lambda row: list(row.fork.evidence)),
    Column("compared", "BOOLEAN", "done, and not there for evidence alone", _is_compared),
    Column(
        "challenge",
        "VARCHAR",
        "name of the challenge",
        lambda row: row.record.plan.schedules[row.task.schedule].name,
    ),
    Column(
        "point",
        "VARCHAR",
        "where in a sweep, such as clients=2,docs=1k; empty without one",
        lambda row: row.record.plan.point(row.fork.variant, row.task.schedule),
    ),
    _summary("schedule", "INTEGER", "position of the challenge in the fork, from 0"),
    _summary("task", "INTEGER", "position of the task in the challenge, from 0"),
    _summary("label", "VARCHAR", "name of the task"),
    _summary("operation", "VARCHAR", "name of the operation"),
    _summary("samples", "BIGINT", "successful measured operations; at least so many where imported"),
    _summary("warmup_samples", "BIGINT", "unmeasured operations"),
    Column(
        "failures", "BIGINT", "measured operations that failed", lambda row: sum(row.task.failures.values())
    ),
    _summary("cancelled", "BIGINT", "operations that the driver itself ended"),
    _summary("retries", "BIGINT", "requests sent again after a rejection"),
    _summary("throughput_per_s", "DOUBLE", _MEANINGS["throughput_per_s"]),
    _summary("unit", "VARCHAR", "what throughput counts"),
    _summary("target_per_s", "DOUBLE", "offered requests a second; NULL for a closed loop"),
    *_quantiles("", "service_time", _MEANINGS["service_time"]),
    *_quantiles("latency_", "latency", _MEANINGS["latency"]),
    *_quantiles("took_", "took", _MEANINGS["took"]),
    _of_parts("p50"),
    _of_parts("p90"),
    *_quantiles("first_byte_", "first_byte", _MEANINGS["first_byte"]),
    *_quantiles("processing_", "processing_time", "the time until the driver had read the answer"),
    *_quantiles("page_", "pages", "service time of the single requests of longer operations"),
    _in_ms("mean_ms", "mean_ns", _MEANINGS["mean_ns"]),
    _in_ms("sd_ms", "sd_ns", "standard deviation of service time"),
    _in_ms("min_ms", "min_ns", "least service time"),
    _in_ms("max_ms", "max_ns", "greatest service time"),
    _summary("lag1", "DOUBLE", "lag-1 autocorrelation of service time"),
    _summary("effective_samples", "DOUBLE", "samples (1 - lag1) / (1 + lag1)"),
    _summary("drift", "DOUBLE", "ln(median of the last third / of the first) of service time"),
    Column(
        "course",
        "VARCHAR",
        "flat, warm-up, slowdown or no steady state",
        lambda row: row.task.course and row.task.course.kind,
    ),
    _summary("hits", "BIGINT", "total hits where all answers agree"),
    _summary("unsupported", "VARCHAR", "why the node cannot do it; NULL when it can"),
    _summary("redline_per_s", "DOUBLE", _MEANINGS["redline_per_s"]),
    _summary("redline_unit", "VARCHAR", "unit of that load; empty elsewhere"),
    _driver("offered_per_s", "DOUBLE", "requests a second that the driver sent"),
    _driver("lag_p50_ns", "BIGINT", "how late it sent them, median, ns"),
    _driver("lag_p99_ns", "BIGINT", "how late it sent them, p99, ns"),
    _driver("think_share", "DOUBLE", "share of its clients' time between answer and next request, 0 to 1"),
    _driver("cpu_share", "DOUBLE", "CPU time over time, for each of its processes"),
    _driver("gap_s", "DOUBLE", "from the task before to the first request, seconds"),
    *(column for figure in FIGURES for column in _compared(figure)),
    Column(
        "node_meters",
        "MAP(VARCHAR, MAP(VARCHAR, DOUBLE))",
        "what it cost each of several nodes, as node_meters['node-1']['cpu'], in the units of the sums",
        lambda row: _map({node: _map(known) for node, known in row.task.node_meters.items() if known}),
    ),
)


def _built(figure: Figure) -> Column[BuildRow]:
    return Column(
        figure.name, "DOUBLE", f"{figure.meaning}, {figure.unit}", lambda row: row.facts.value_of(figure)
    )


BUILDS: tuple[Column[BuildRow], ...] = (
    Column("run", "VARCHAR", "id of the run", lambda row: row.record.id),
    Column("variant", "VARCHAR", "name of the variant", lambda row: row.variant),
    Column("build", "INTEGER", "number of the build, from 0, as forks.index_build", lambda row: row.build),
    Column("key", "VARCHAR", "digest of what makes builds interchangeable", lambda row: row.facts.key),
    Column("cached", "BOOLEAN", "it was there before the run", lambda row: row.facts.cached),
    Column("documents", "BIGINT", "documents in its primary shards", lambda row: row.facts.documents),
    *(_built(figure) for figure in FIGURES if figure.built and not figure.named),
    Column("field_names", "VARCHAR[]", "its fields, the largest first", lambda row: list(row.facts.fields)),
    Column(
        "field_bytes", "BIGINT[]", "size of each of them, bytes", lambda row: list(row.facts.fields.values())
    ),
    Column("version", "VARCHAR", "of the engine, as planned", lambda row: row.planned_version),
)

_OUTCOMES = ", ".join(f"{one.value} {one.name.lower()}" for one in Outcome)

SAMPLES: Mapping[str, tuple[str, str]] = {
    "schedule": (
        "SMALLINT",
        "position of the challenge in the fork, from 0; of a red-line search, that of the task",
    ),
    "task": ("SMALLINT", "position of the task in the challenge, from 0; of a red-line search, the step"),
    "boot": ("SMALLINT", "node start within the fork, from 0"),
    "client": ("SMALLINT", "client within the task, from 0"),
    "warmup": ("BOOLEAN", "unmeasured"),
    "intended_ns": ("BIGINT", "when it was due, ns from the fork's origin; start_ns in a closed loop"),
    "start_ns": ("BIGINT", "when it was sent, ns from the fork's origin"),
    "connect_ns": ("BIGINT", "time to connect, ns; 0 on a connection that was kept"),
    "first_byte_ns": ("BIGINT", "from start to the first byte of the answer, ns"),
    "end_ns": ("BIGINT", "last byte of the answer, ns from the fork's origin"),
    "status": ("SMALLINT", "HTTP status; 0 without an answer"),
    "outcome": ("TINYINT", _OUTCOMES),
    "took_ms": ("INTEGER", "the engine's own time, ms; -1 unknown"),
    "hits": ("BIGINT", "total hits; -1 unknown"),
    "hits_exact": ("BOOLEAN", "the engine counted them all"),
    "response_bytes": ("BIGINT", "size of the answer"),
    "failed_shards": ("SMALLINT", "shards that failed"),
    "part": ("INTEGER", "0 for an operation, 1, 2, ... for the requests that it consisted of, if several"),
    "attempt": ("TINYINT", "0 the first time, then how often the node had rejected it"),
    "weight": ("INTEGER", "units of throughput: documents, searches of a batch, else 1"),
    "processing_ns": ("BIGINT", "from start until the driver had read the answer, ns"),
}
"""The columns of a sample file: type and meaning."""

NAMES: Mapping[str, tuple[str, str]] = {
    "run": ("VARCHAR", "id of the run"),
    "variant": ("VARCHAR", "name of the variant"),
    "block": ("INTEGER", "number of the fork within its variant, from 0"),
    "challenge": ("VARCHAR", "name of the challenge"),
    "label": ("VARCHAR", "name of the task"),
    "operation": ("VARCHAR", "name of the operation"),
}
"""What stands before these in the view: whose they are."""

DERIVED: Mapping[str, tuple[str, str, str]] = {
    "service_ms": ("DOUBLE", "service time, ms", "(end_ns - start_ns) / 1e6"),
    "latency_ms": ("DOUBLE", "from when it was due to the last byte, ms", "(end_ns - intended_ns) / 1e6"),
}
"""What follows them: type, meaning and formula."""


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
_FILES = {"path": "VARCHAR", "run": "VARCHAR", "variant": "VARCHAR", "block": "INTEGER"}
_TASK_NAMES = {
    "run": "VARCHAR", "schedule": "SMALLINT", "task": "SMALLINT",
    "challenge": "VARCHAR", "label": "VARCHAR", "operation": "VARCHAR",
}  # fmt: skip


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
    """A view over Parquet files of a slice.

    Attributes:
        name: of the view.
        one_row: what a row is.
        owner: name -> (type, meaning) of the one column that is not in the files.
        columns: name -> (type, meaning) of those that are.
        files: gives (absolute path, owner) of each.
    """

    name: str
    one_row: str
    owner: Mapping[str, tuple[str, str]]
    columns: Mapping[str, tuple[str, str]]
    files: Callable[[], Sequence[tuple[str, str]]]


def view_columns(view: ViewName | FileView) -> tuple[tuple[str, str, str], ...]:
    """(name, type, meaning) of the columns of a view, in order."""
    if isinstance(view, FileView):
        return tuple((name, *found) for name, found in {**view.owner, **view.columns}.items())
    if view == "samples":
        documented = {**NAMES, **SAMPLES, **{name: found[:2] for name, found in DERIVED.items()}}
        return tuple((name, *found) for name, found in documented.items())
    tables: Mapping[str, Sequence[Column[Any]]] = {
        "runs": RUNS, "builds": BUILDS, "forks": FORKS, "tasks": TASKS,
    }  # fmt: skip
    columns = tables[view]
    return tuple((column.name, column.sql_type, column.meaning) for column in columns)


def create_tables(connection: duckdb.DuckDBPyConnection, runs: Iterable[StoredRun]) -> None:
    """Fill `runs`, `builds`, `forks` and `tasks`, in the order of the runs."""
    stored = list(runs)
    _create(connection, "runs", RUNS, [RunRow(one.record, str(one.folder.path.absolute())) for one in stored])
    builds = [
        BuildRow(one.record, name, number, facts)
        for one in stored
        for name in one.record.indices
        for number, facts in enumerate(one.record.builds_of(name))
    ]
    _create(connection, "builds", BUILDS, builds)
    forks = [ForkRow(one.record, fork) for one in stored for fork in one.record.forks]
    _create(connection, "forks", FORKS, forks)
    tasks = [TaskRow(row.record, row.fork, summary) for row in forks for summary in row.fork.summaries]
    _create(connection, "tasks", TASKS, tasks)


def create_samples(connection: duckdb.DuckDBPyConnection, runs: Iterable[StoredRun]) -> tuple[str, ...]:
    """Make the view `samples`; its files are opened now, and read on use.

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


def create_file_view(connection: duckdb.DuckDBPyConnection, view: FileView) -> tuple[str, ...]:
    """Make a view over files, which are read on use.

    Returns:
        The absolute paths of the files.

    Raises:
        BenchctlError: a file is damaged.
    """
    (owner,) = view.owner
    files = view.files()
    _fill(connection, f"{view.name}_files", {"path": "VARCHAR", owner: "VARCHAR"}, _turned(files, 2))
    paths = tuple(path for path, _ in files)
    source = "SELECT NULL::VARCHAR AS filename, " + ", ".join(
        f"NULL::{sql_type} AS {name}" for name, (sql_type, _) in view.columns.items()
    )
    if paths:
        source = f"FROM read_parquet([{', '.join(map(quoted, paths))}], filename = true)"
    # As for samples, names come by a join.
    own = ", ".join(f"s.{name}" for name in view.columns)
    joined = f"({source}) s JOIN {view.name}_files f ON s.filename = f.path"
    with damage_named(paths):
        connection.execute(f"CREATE VIEW {view.name} AS SELECT f.{owner}, {own} FROM {joined}")  # noqa: S608 - all names are ours
    return paths


@contextmanager
def damage_named(paths: Iterable[str]) -> Iterator[None]:
    """Name the file that makes the block fail: DuckDB's errors vary, and often do not say where.

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


def _samples_query(paths: Sequence[str]) -> str:
    """Names come by joins, so that a condition on them skips whole files."""
    typed = ", ".join(f"NULL::{sql_type} AS {name}" for name, (sql_type, _) in SAMPLES.items())
    source = f"SELECT {typed}, NULL::VARCHAR AS filename WHERE false"
    if paths:
        source = f"FROM read_parquet([{', '.join(map(quoted, paths))}], filename = true)"
    own = ", ".join(f"s.{name}" for name in SAMPLES)
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


# One SQL query over stored runs, in a database that can read their samples and touch nothing else.


_BATCH = 10_000
_NUMBER = re.compile(r"U?(TINY|SMALL|BIG|HUGE)?INT(EGER)?$|FLOAT|DOUBLE|DECIMAL|NUMBER")
# DuckDB makes Python values of such times with a package that is not needed for anything else.
_ZONED = "WITH TIME ZONE"


@dataclass(frozen=True)
class Answer:
    """The result of a query.

    Attributes:
        columns: their names.
        numeric: which of them hold numbers.
        rows: values in the order of the columns; can be read once, while the query is open.
    """

    columns: tuple[str, ...]
    numeric: frozenset[int]
    rows: Iterator[tuple[object, ...]]


@contextmanager
def answered(query: str, runs: Sequence[StoredRun], views: Sequence[FileView] = ()) -> Iterator[Answer]:
    """Answer a query, one SELECT statement of DuckDB (or FROM, WITH, DESCRIBE, SUMMARIZE), on runs and views.

    Raises:
        UsageError: it is something else, or DuckDB cannot do it.
    """
    with connect() as connection:
        try:
            text = _checked(connection, query)
            create_tables(connection, runs)
            # Opening thousands of files takes time: only for who asks for them.
            paths = create_samples(connection, runs) if _mentions(query, "samples") else ()
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
            raise UsageError(
                f"DuckDB: {_one_line(err)}", hint="tables and columns are listed by: benchctl sql --views"
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
    chosen = ", ".join(
        f"c{place}{'::VARCHAR' if _ZONED in str(kind) else ''} AS {_identifier(name)}"
        for place, (name, kind, *_) in enumerate(described)
    )
    inner = ", ".join(f"c{place}" for place in range(len(described)))
    # The line break ends a comment that the query may end with.
    return connection.execute(f"SELECT {chosen} FROM ({query}\n) t({inner})")  # noqa: S608 - it was checked


def _identifier(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


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


def _one_line(err: duckdb.Error) -> str:
    """Without the excerpt of the query and the arrow below it."""
    return " ".join(str(err).split("\n\n", 1)[0].split())


# Runs as Parquet files, one a view, for other tools.


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
        UsageError: there are files of these names that no export wrote.
        BenchctlError: samples cannot be read, or the files not be written.
    """
    partial = {view: folder / f".{view}.parquet.{os.getpid()}.partial" for view in VIEWS}
    with contextlib.ExitStack() as rubbish:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            for view in VIEWS:
                _refuse_foreign(folder / f"{view}.parquet")
            for path in partial.values():
                rubbish.callback(path.unlink, missing_ok=True)
            rows = _write(runs, partial)
            for view, path in partial.items():
                path.replace(folder / f"{view}.parquet")
        except (OSError, DuckError) as err:
            reason = err.strerror if isinstance(err, OSError) else str(err)
            raise BenchctlError(
                f"cannot export to {folder}: {reason}", hint="free some space or name another folder"
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


def _refuse_foreign(path: Path) -> None:
    """Never overwrite somebody else's `tasks.parquet`."""
    if path.exists() and not (path.is_file() and _is_export(path)):
        raise UsageError(f"{path} is there and was not written by benchctl", hint="name another folder")


def _is_export(path: Path) -> bool:
    """Whether its metadata have our mark; they are read as bytes, to work for damaged files."""
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - _TAIL_BYTES))
        tail = file.read()
        length = int.from_bytes(tail[: -len(_MAGIC)], "little")
        if not tail.endswith(_MAGIC) or length + _TAIL_BYTES > size:
            return False
        file.seek(size - _TAIL_BYTES - length)
        return _MARK.encode() in file.read(length)
