"""The tables of `benchctl sql`, column by column: name, type, meaning, and where its value is from."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Generic, TypeVar

from benchctl.results.figures import Quantiles, TaskSummary
from benchctl.results.model import ForkRecord, RunRecord
from benchctl.results.samples import Outcome

T = TypeVar("T")

_NS_PER_MS = 1e6


@dataclass(frozen=True)
class Column(Generic[T]):
    """One column of a table.

    Attributes:
        name: of the column, with its unit.
        sql_type: DuckDB's.
        meaning: for readers; with the unit where the name has none.
        value: what a row has there; None for NULL.
    """

    name: str
    sql_type: str
    meaning: str
    value: Callable[[T], Any]


def moment(text: str) -> str | None:
    """A time of a record as DuckDB reads it, in UTC; None for a text that is no time."""
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


def _spec(row: ForkRow, name: str) -> Any:  # noqa: ANN401 - a field of any type
    return next(
        (getattr(one, name) for one in row.record.plan.variants if one.name == row.fork.variant), None
    )


def _fact(row: ForkRow, name: str) -> Any:  # noqa: ANN401 - a field of any type
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


def _driver(name: str, sql_type: str, meaning: str) -> Column[TaskRow]:
    """A figure of DriverFigures."""
    return Column(name, sql_type, meaning, lambda row: row.task.driver and getattr(row.task.driver, name))


def _challenge(row: TaskRow) -> str:
    return row.record.plan.schedules[row.task.schedule].name


TASKS: tuple[Column[TaskRow], ...] = (
    Column("run", "VARCHAR", "id of the run", lambda row: row.record.id),
    Column("variant", "VARCHAR", "name of the variant", lambda row: row.fork.variant),
    Column("block", "INTEGER", "number of the fork within its variant, from 0", lambda row: row.fork.block),
    Column("status", "VARCHAR", "of the fork: only those done are compared", lambda row: row.fork.status),
    Column("evidence", "VARCHAR[]", "collected beside its figures", lambda row: list(row.fork.evidence)),
    Column("compared", "BOOLEAN", "done, and not there for evidence alone", _is_compared),
    Column("challenge", "VARCHAR", "name of the challenge", _challenge),
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
    _summary("throughput_per_s", "DOUBLE", "units a second in the measured window"),
    _summary("unit", "VARCHAR", "what throughput counts"),
    _summary("target_per_s", "DOUBLE", "offered requests a second; NULL for a closed loop"),
    *_quantiles("", "service_time", "service time: send to last byte"),
    *_quantiles("latency_", "latency", "latency: intended start to last byte; NULL for a closed loop"),
    *_quantiles("took_", "took", "the engine's own time"),
    *_quantiles("first_byte_", "first_byte", "the time to the first byte"),
    *_quantiles("processing_", "processing_time", "the time until the driver had read the answer"),
    *_quantiles("page_", "pages", "service time of the single requests of longer operations"),
    _in_ms("mean_ms", "mean_ns", "mean service time"),
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
    _summary("redline_per_s", "DOUBLE", "highest rate that met the objective, of a red-line search"),
    _driver("offered_per_s", "DOUBLE", "requests a second that the driver sent"),
    _driver("lag_p50_ns", "BIGINT", "how late it sent them, median, ns"),
    _driver("lag_p99_ns", "BIGINT", "how late it sent them, p99, ns"),
    _driver("think_share", "DOUBLE", "share of its clients' time between answer and next request, 0 to 1"),
    _driver("cpu_share", "DOUBLE", "CPU time over time, for each of its processes"),
    _driver("gap_s", "DOUBLE", "from the task before to the first request, seconds"),
)

_OUTCOMES = ", ".join(f"{one.value} {one.name.lower()}" for one in Outcome)

SAMPLES: Mapping[str, tuple[str, str]] = {
    "schedule": ("SMALLINT", "position of the challenge in the fork, from 0"),
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
