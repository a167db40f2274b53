"""Tables of `benchctl sql`: their columns, most of them from the described fields of what is stored."""

import types
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Generic, Literal, TypeVar, Union, get_args, get_origin

import numpy as np

from benchctl.results.figures import Quantiles, TaskSummary, described_fields
from benchctl.results.metrics import METRIC_KINDS, MetricKind
from benchctl.results.model import ForkRecord, IndexFacts, RunRecord, moment
from benchctl.results.samples import SAMPLE_DTYPES, Sample

T = TypeVar("T")

_NS_PER_MS = 1e6
_TYPES = {str: "VARCHAR", bool: "BOOLEAN", int: "BIGINT", float: "DOUBLE"}
_DTYPES = {
    np.dtype(np.bool_): "BOOLEAN",
    np.dtype(np.int8): "TINYINT",
    np.dtype(np.int16): "SMALLINT",
    np.dtype(np.int32): "INTEGER",
    np.dtype(np.int64): "BIGINT",
}


@dataclass(frozen=True)
class Column(Generic[T]):
    """A column of a table."""

    name: str  # with its unit
    sql_type: str
    meaning: str  # with the unit if the name has none
    value: Callable[[T], Any]
    """Returns the value of a row; None for NULL."""


@dataclass(frozen=True)
class RunRow:
    """A run."""

    record: RunRecord
    folder: str  # absolute path


@dataclass(frozen=True)
class ForkRow:
    """A fork of a run."""

    record: RunRecord
    fork: ForkRecord


@dataclass(frozen=True)
class BuildRow:
    """A build of a variant's index."""

    record: RunRecord
    variant: str
    build: int
    facts: IndexFacts


@dataclass(frozen=True)
class TaskRow:
    """A task of a fork."""

    record: RunRecord
    fork: ForkRecord
    task: TaskSummary


def _created(row: RunRow) -> datetime | None:
    instant = moment(row.record.created)
    return None if instant is None else instant.replace(tzinfo=None)


def _required(kind: Any) -> Any:
    """A type without None."""
    if get_origin(kind) not in (Union, types.UnionType):
        return kind
    (required,) = (each for each in get_args(kind) if each is not type(None))
    return required


def _sql_type(kind: Any) -> str | None:
    """DuckDB's type of a field; None for what is no single column."""
    kind = _required(kind)
    if get_origin(kind) is Literal:
        return "VARCHAR"
    if get_origin(kind) is tuple and get_args(kind)[1:] == (...,):
        element = _sql_type(get_args(kind)[0])
        return None if element is None else f"{element}[]"
    return _TYPES.get(kind)


def _text(description: str) -> str:
    return description.replace("None ", "NULL ").removesuffix(".")


def _in_ms(meaning: str) -> str:
    """A meaning with its unit, before what it says of NULL."""
    text, null, rest = meaning.partition("; NULL")
    return f"{text}, ms{null}{rest}"


def _getter(path: str) -> Callable[[object], Any]:
    """Returns the value at a path of attributes; None beyond a None."""
    names = path.split(".")

    def value(row: object) -> Any:
        content: Any = row
        for name in names:
            content = None if content is None else getattr(content, name)
        return list(content) if isinstance(content, tuple) else content

    return value


def _field(row: type[T], path: str, name: str = "", *, zero_unknown: bool = False) -> Column[T]:
    """The column of a described field, as its type and description say; called as the field by default.

    `zero_unknown` takes 0 and empty texts as unknown.
    """
    owner: Any = row
    for attribute in path.split("."):
        kind, description = described_fields(owner)[attribute]
        owner = _required(kind)
    sql_type, value = _sql_type(kind), _getter(path)
    if not description or sql_type is None:
        raise TypeError(f"{row.__name__}.{path} has no description, or no type that is a column's")
    if zero_unknown:
        meaning = f"{_text(description)}; NULL when unknown"
        return Column(name or attribute, sql_type, meaning, lambda row: value(row) or None)
    return Column(name or attribute, sql_type, _text(description), value)


def _fields(row: type[T], owner: str, names: str) -> Iterator[Column[T]]:
    return (_field(row, f"{owner}.{name}") for name in names.split())


def _unless_imported(path: str) -> Column[RunRow]:
    """Of a setting of benchctl's own, which other tools do not tell."""
    column = _field(RunRow, path)
    meaning = f"{column.meaning}; NULL when unknown"
    return Column(
        column.name,
        column.sql_type,
        meaning,
        lambda row: None if row.record.imported else column.value(row),
    )


RUNS: tuple[Column[RunRow], ...] = (
    _field(RunRow, "record.id", "run"),
    Column("created", "TIMESTAMP", "when it began, UTC", _created),
    *_fields(RunRow, "record", "status tags"),
    _field(RunRow, "record.plan.track"),
    Column(
        "challenges",
        "VARCHAR[]",
        "names of the challenges, in order",
        lambda row: [challenge.name for challenge in row.record.plan.schedules],
    ),
    Column(
        "variants",
        "VARCHAR[]",
        "names of the variants; the first is the baseline",
        lambda row: [spec.name for spec in row.record.plan.variants],
    ),
    _field(RunRow, "record.plan.corpus.documents", zero_unknown=True),
    _field(RunRow, "record.plan.forks"),
    _unless_imported("record.plan.seed"),
    _unless_imported("record.plan.restart"),
    _field(RunRow, "record.plan.heap_mb", zero_unknown=True),
    _field(RunRow, "record.plan.paired"),
    _field(RunRow, "record.plan.test_mode"),
    *_fields(RunRow, "record.environment", "hostname cpu_model"),
    _field(RunRow, "record.environment.cpus", zero_unknown=True),
    _field(RunRow, "record.environment.benchctl"),
    _field(RunRow, "record.imported.tool", "imported"),
    Column("folder", "VARCHAR", "where it is", lambda row: row.folder),
)


_COMPARED = "done, and not there for evidence alone, or of a trial (--test-mode)"


def is_compared(row: ForkRow | TaskRow) -> bool:
    """Return whether the values of a fork count."""
    plan = row.record.plan
    return row.fork.status == "done" and not plan.is_extra(row.fork.block) and not plan.test_mode


def _of_variant(name: str, meaning: str, facts: Literal["engines", "plan.variants"]) -> Column[ForkRow]:
    """Return what a run has of a fork's variant."""
    listed = _getter(facts)
    key = "variant" if facts == "engines" else "name"

    def value(row: ForkRow) -> Any:
        content = (each for each in listed(row.record) if getattr(each, key) == row.fork.variant)
        return next((getattr(each, name) for each in content), None)

    return Column(name, "VARCHAR", meaning, value)


def _over_boots(name: str, meaning: str) -> Column[ForkRow]:
    return Column(
        name,
        "DOUBLE",
        f"{meaning}, seconds in all",
        lambda row: sum(getattr(boot, name) for boot in row.fork.boots) if row.fork.boots else None,
    )


def _probe(kind: Literal["CPU", "memory"], when: Literal["before", "after"]) -> Column[ForkRow]:
    name, place = f"{kind.lower()}_ns", 0 if when == "before" else -1
    return Column(
        f"{kind.lower()}_{when}_ms",
        "DOUBLE",
        f"{kind} probe {when} it, ms",
        lambda row: getattr(row.fork.probes[place], name) / _NS_PER_MS if row.fork.probes else None,
    )


FORKS: tuple[Column[ForkRow], ...] = (
    _field(ForkRow, "record.id", "run"),
    *_fields(ForkRow, "fork", "variant block position status reason started"),
    _of_variant("engine", "elasticsearch, opensearch or jvm", "plan.variants"),
    _of_variant("version", "of the engine, as the node said", "engines"),
    _of_variant("lucene", "its Lucene", "engines"),
    _of_variant("jdk", "its Java runtime", "engines"),
    _field(ForkRow, "fork.evidence"),
    Column("compared", "BOOLEAN", _COMPARED, is_compared),
    *_fields(ForkRow, "fork", "index_build wall_s requests_s"),
    Column("boots", "INTEGER", "node starts (or uses of a running cluster)", lambda row: len(row.fork.boots)),
    _over_boots("start_s", "node starts"),
    _over_boots("idle_s", "waiting for calm"),
    _over_boots("stop_s", "node stops"),
    *_fields(ForkRow, "fork", "copy_s probe_s overhead_s"),
    _probe("CPU", "before"),
    _probe("CPU", "after"),
    _probe("memory", "before"),
    _probe("memory", "after"),
)


def _planned_version(row: BuildRow) -> str | None:
    """Return what the plan has for the variant; None of targets, which tell it themselves."""
    specs = row.record.plan.variants
    return next((spec.version or None for spec in specs if spec.name == row.variant), None)


def _built(figure: MetricKind) -> Column[BuildRow]:
    return Column(
        figure.name, "DOUBLE", f"{figure.meaning}, {figure.unit}", lambda row: row.facts.value_of(figure)
    )


BUILDS: tuple[Column[BuildRow], ...] = (
    _field(BuildRow, "record.id", "run"),
    Column("variant", "VARCHAR", "name of the variant", lambda row: row.variant),
    Column("build", "INTEGER", "number of the build, from 0, as forks.index_build", lambda row: row.build),
    *_fields(BuildRow, "facts", "key cached documents"),
    *(_built(figure) for figure in METRIC_KINDS if figure.built and not figure.named),
    Column("field_names", "VARCHAR[]", "its fields, the largest first", lambda row: list(row.facts.fields)),
    Column(
        "field_bytes", "BIGINT[]", "size of each of them, bytes", lambda row: list(row.facts.fields.values())
    ),
    Column("version", "VARCHAR", "of the engine, as planned", _planned_version),
)


_PREFIXES = {"service_time": "", "processing_time": "processing_", "pages": "page_"}
"""Of quantiles that are not called as their field."""


def _quantiles(field: str, meaning: str) -> Iterator[Column[TaskRow]]:
    """Three quantiles of one kind of time."""
    for name in ("p50", "p90", "p99"):
        found = _getter(f"task.{field}.{name}")

        def value(row: TaskRow, found: Callable[[object], Any] = found) -> float | None:
            ns = found(row)
            return None if ns is None else ns / _NS_PER_MS

        prefix = _PREFIXES.get(field, f"{field}_")
        yield Column(f"{prefix}{name}_ms", "DOUBLE", _in_ms(f"{name} of {meaning}"), value)


def _of_parts(field: str, name: str, meaning: str) -> Column[TaskRow]:
    """A quantile of each of several parts."""

    def value(row: TaskRow) -> list[float]:
        return [getattr(part, name) / _NS_PER_MS for part in getattr(row.task, field)]

    return Column(f"{field}_{name}_ms", "DOUBLE[]", _in_ms(f"{name} of {meaning}"), value)


def _of_summary(field: str, kind: Any, description: str) -> Iterator[Column[TaskRow]]:
    """The columns of a field of `TaskSummary`; none of maps, and of what has parts."""
    kind, meaning = _required(kind), _text(description)
    if kind is Quantiles:
        yield from _quantiles(field, meaning)
    elif kind == tuple[Quantiles, ...]:
        for name in ("p50", "p90"):
            yield _of_parts(field, name, meaning)
    elif kind is float and field.endswith("_ns"):
        getter = _getter(f"task.{field}")
        yield Column(
            f"{field.removesuffix('_ns')}_ms",
            "DOUBLE",
            _in_ms(meaning),
            lambda row: None if (ns := getter(row)) is None else ns / _NS_PER_MS,
        )
    elif _sql_type(kind) is not None:
        yield _field(TaskRow, f"task.{field}")


def _map(values: Mapping[str, object]) -> dict[str, list[Any]] | None:
    """Return a map as DuckDB takes it; NULL for nothing."""
    return {"key": list(values), "value": list(values.values())} if values else None


def _metered(figure: MetricKind) -> Iterator[Column[TaskRow]]:
    """A figure that is no field of a summary, and its parts."""
    of_bulk = "; of bulk tasks, of 1,000 documents" if figure.by_documents else ""
    meaning = f"{figure.meaning}, {figure.unit}{of_bulk}"
    yield Column(figure.name, "DOUBLE", meaning, lambda row: figure.of(row.task))
    if figure.parted:
        before = f"{figure.name}."

        def parts(row: TaskRow) -> dict[str, list[Any]] | None:
            meters = row.task.meters.items()
            return _map({key.removeprefix(before): x for key, x in meters if key.startswith(before)})

        name = f"{figure.name}_parts"
        yield Column(name, "MAP(VARCHAR, DOUBLE)", f"the same of each of them, as {name}['NAME']", parts)


TASKS: tuple[Column[TaskRow], ...] = (
    _field(TaskRow, "record.id", "run"),
    *_fields(TaskRow, "fork", "variant block status evidence"),
    Column("compared", "BOOLEAN", _COMPARED, is_compared),
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
    *(
        column
        for field, (kind, description) in described_fields(TaskSummary).items()
        for column in _of_summary(field, kind, description)
    ),
    Column(
        "failures", "BIGINT", "measured operations that failed", lambda row: sum(row.task.failures.values())
    ),
    _field(TaskRow, "task.course.kind", "course"),
    *_fields(TaskRow, "task.driver", "offered_per_s lag_p50_ns lag_p99_ns think_share cpu_share gap_s"),
    *(
        column
        for figure in METRIC_KINDS
        if figure.of_tasks and not figure.field
        for column in _metered(figure)
    ),
    Column(
        "node_meters",
        "MAP(VARCHAR, MAP(VARCHAR, DOUBLE))",
        "what it cost each of several nodes, as node_meters['node-1']['cpu'], in the units of the sums",
        lambda row: _map({node: _map(known) for node, known in row.task.node_meters.items() if known}),
    ),
)


SAMPLES: Mapping[str, tuple[str, str]] = {
    name: (_DTYPES[SAMPLE_DTYPES[name]], description)
    for name, (_, description) in described_fields(Sample).items()
}
"""The columns of a sample file: type and meaning."""

_NAMED = ("run", "variant", "block", "compared", "challenge", "label", "operation")
NAMES: Mapping[str, tuple[str, str]] = {
    column.name: (column.sql_type, column.meaning) for column in TASKS if column.name in _NAMED
}
"""The columns before these in the view: whose they are."""

DERIVED: Mapping[str, tuple[str, str, str]] = {
    "service_ms": ("DOUBLE", "service time, ms", "(end_ns - start_ns) / 1e6"),
    "latency_ms": ("DOUBLE", "from when it was due to the last byte, ms", "(end_ns - intended_ns) / 1e6"),
}
"""The columns after them: type, meaning and formula."""
