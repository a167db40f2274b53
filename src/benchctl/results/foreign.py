"""Results that other tools measured: races of Rally and OpenSearch Benchmark as runs without samples."""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import msgspec

import benchctl
from benchctl.disk import read_file
from benchctl.errors import BenchctlError, UsageError
from benchctl.results.figures import Quantiles, TaskSummary
from benchctl.results.model import RECORD_VERSION, EngineFacts, Environment, ForkRecord, Imported, RunRecord
from benchctl.results.plan import CorpusSpec, Plan, VariantSpec, brief
from benchctl.track.model import Challenge, Task

# One race of Rally, or test run of OpenSearch Benchmark, as its JSON file tells it.


Tool = Literal["rally", "opensearch-benchmark", "jmh"]
TITLES: Mapping[Tool, str] = {
    "rally": "Rally",
    "opensearch-benchmark": "OpenSearch Benchmark",
    "jmh": "JMH",
}

UNKNOWN = "unknown"
NS = {"ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9}
"""The units of times."""
_AGGREGATED = "aggregate"  # what OpenSearch Benchmark puts before the ids of its averages over test runs

Statistics = dict[str, float | str | None]
"""A metric of one task: percentiles such as `90_0`, or `median` and so on, and a `unit`."""


class RaceTask(msgspec.Struct, frozen=True):
    """The figures that both tools keep of one task."""

    task: str
    operation: str | None = None  # the operation's name; empty if the file has none
    throughput: Statistics | None = None  # min, mean, median and max over one-second buckets
    latency: Statistics | None = None  # percentiles by name (`90_0`), and the mean
    service_time: Statistics | None = None
    processing_time: Statistics | None = None
    error_rate: float | None = None  # share of the measured requests that failed, 0 to 1


class Race(msgspec.Struct, frozen=True):
    """A race: a pass of one variant, according to its file."""

    path: Path
    tool: Tool
    tool_version: str  # empty when unknown, as all that follows
    id: str
    created: str
    environment: str  # the tool's name for where it ran
    engine_version: str
    revision: str  # of its build
    track: str
    challenge: str
    car: str  # the tool's name for the configuration of the nodes
    params: dict[str, Any]
    tasks: tuple[RaceTask, ...]  # in the order of the schedule


class _Cluster(msgspec.Struct, frozen=True, rename="kebab"):
    revision: str | None = None
    distribution_version: str | None = None


class _Results(msgspec.Struct, frozen=True):
    op_metrics: tuple[RaceTask, ...] | None = None


class _Document(msgspec.Struct, frozen=True, rename="kebab"):
    """The keys of both tools and of their older versions; a file has those of one."""

    rally_version: str | None = None
    benchmark_version: str | None = None
    race_id: str | None = None
    trial_id: str | None = None
    test_execution_id: str | None = None
    test_run_id: str | None = None
    race_timestamp: str | None = None
    trial_timestamp: str | None = None
    test_execution_timestamp: str | None = None
    test_run_timestamp: str | None = None
    environment: str | None = None
    track: str | None = None
    workload: str | None = None
    challenge: str | None = None
    test_procedure: str | None = msgspec.field(name="test_procedure", default=None)
    scenario: str | None = None
    track_params: dict[str, Any] | None = None
    workload_params: dict[str, Any] | None = None
    car: str | list[str] | None = None
    provision_config_instance: str | list[str] | None = None
    cluster_config_instance: str | list[str] | None = None
    cluster: _Cluster = _Cluster()
    results: _Results | None = None
    # Of a file that holds the results alone.
    op_metrics: tuple[RaceTask, ...] | None = msgspec.field(name="op_metrics", default=None)


def read_race(path: Path, tool: Tool | None = None) -> Race:
    """Read a race file, by default of the tool that the file tells.

    That is `race.json` of Rally, `test_run.json` or `test_execution.json` of OpenSearch Benchmark, or their
    `results` alone.

    Raises:
        BenchctlError: If the file cannot be read, is of another kind, or has no results.
    """
    try:
        document = msgspec.json.decode(read_file(path), type=_Document)
    except OSError as err:
        raise BenchctlError(f"cannot read {path}: {err.strerror}") from err
    except msgspec.ValidationError as err:
        raise BenchctlError(f"{path}: not the results of a race: {err}") from err
    except (msgspec.DecodeError, UnicodeDecodeError) as err:
        raise BenchctlError(
            f"{path}: not JSON ({err}): a race.json or test_run.json is wanted, not a summary report"
        ) from err
    wrote = _tool(document, path, tool)
    identity = _first(document.race_id, document.test_run_id, document.test_execution_id, document.trial_id)
    if identity.startswith(_AGGREGATED):
        raise BenchctlError(
            f"{path}: an average over several test runs: import these themselves, each is a fork"
        )
    results = document.results.op_metrics if document.results else document.op_metrics
    if not results:
        raise BenchctlError(f"{path}: no results in it: the race did not end, or measured nothing")
    _check_units(results, path)
    return Race(
        path=path.absolute(),
        tool=wrote,
        tool_version=_first(document.rally_version, document.benchmark_version),
        id=identity,
        created=_created(document, path),
        environment=_first(document.environment),
        engine_version=_first(document.cluster.distribution_version),
        revision=_first(document.cluster.revision),
        track=_first(document.track, document.workload),
        challenge=_first(document.challenge, document.test_procedure, document.scenario),
        car=_car(document),
        params=document.track_params or document.workload_params or {},
        tasks=results,
    )


def read_races(paths: tuple[Path, ...], tool: Tool | None = None) -> tuple[Race, ...]:
    """Read the files of one variant, in the order of the forks that they become: races of one kind.

    Without `tool`, each file tells.

    Raises:
        UsageError: If files cannot be imported; names all of them, with the reason.
    """
    races: list[Race] = []
    refused: list[str] = []
    for path in paths:
        try:
            race = read_race(path, tool)
        except BenchctlError as err:
            refused.append(err.message)
            continue
        reason = _unfit(race, races)
        if reason:
            refused.append(f"{path}: {reason}")
        else:
            races.append(race)
    if refused:
        listed = "\n  ".join(refused)
        raise UsageError(f"{len(refused)} of {len(paths)} files cannot be imported:\n  {listed}")
    return tuple(races)


def _unfit(race: Race, others: list[Race]) -> str:
    """Return why it is not a further fork of the others' run; empty when it is."""
    twin = next(
        (other for other in others if other.path == race.path or (other.id and other.id == race.id)), None
    )
    if twin is not None:
        return f"the same race as {twin.path}"
    for other in others[:1]:
        for what in ("tool", "tool_version", "engine_version", "track", "challenge", "car", "params"):
            values = (getattr(other, what), getattr(race, what))
            if values[0] != values[1]:
                name = what.replace("_", " ")
                theirs, own = (UNKNOWN if value == "" else brief(value) for value in values)
                return f"no fork of the same run: its {name} is {own}, not {theirs}"
        if [task.task for task in race.tasks] != [task.task for task in other.tasks]:
            return f"no fork of the same run: its tasks are not those of {other.path}"
    return ""


def _check_units(results: tuple[RaceTask, ...], path: Path) -> None:
    for result in results:
        for times in (result.latency, result.service_time, result.processing_time):
            unit = (times or {}).get("unit") or "ms"
            if unit not in NS:
                raise BenchctlError(f"{path}: a time of {result.task} is in '{unit}', not in {', '.join(NS)}")


def _tool(document: _Document, path: Path, wanted: Tool | None) -> Tool:
    """Version and id of the tool that measured."""
    rally = document.rally_version or document.race_id or document.trial_id
    benchmark = document.benchmark_version or document.test_execution_id or document.test_run_id
    tool: Tool | None = "rally" if rally else "opensearch-benchmark" if benchmark else None
    if tool is None:
        if document.results is None and document.op_metrics is None:
            raise BenchctlError(f"{path}: neither Rally's nor OpenSearch Benchmark's")
        if wanted is None:
            raise BenchctlError(f"{path}: does not say which tool wrote it: name it with --tool")
        return wanted
    if wanted not in (None, tool):
        raise BenchctlError(f"{path}: written by {TITLES[tool]}, not by {TITLES[wanted]}")
    return tool


def _created(document: _Document, path: Path) -> str:
    """Return the time as both tools write it, `20261121T070102Z`; without it, the file's own time."""
    text = _first(
        document.race_timestamp,
        document.test_run_timestamp,
        document.test_execution_timestamp,
        document.trial_timestamp,
    )
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        moment = datetime.fromtimestamp(path.stat().st_mtime, UTC)
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    try:
        return moment.astimezone(UTC).isoformat(timespec="seconds")
    except OverflowError as err:
        raise BenchctlError(f"{path}: '{text}' is not a time of a race") from err


def _car(document: _Document) -> str:
    for name in (document.car, document.provision_config_instance, document.cluster_config_instance):
        if name:
            return name if isinstance(name, str) else "+".join(name)
    return ""


def _first(*texts: str | None) -> str:
    return next((text for text in texts if text), "")


_PERCENTILE = re.compile(r"[0-9]+(_[0-9]+)?", re.ASCII)
_NOTICED = 1e-9  # relative; Rally copies the service time of unthrottled tasks, digit for digit

_FIRST_ONLY_OF_ELASTICSEARCH = 5
"""Elasticsearch went from 2 to 5, the oldest that is still measured; OpenSearch began again with 1."""

# Both tools leave percentiles out that a task has too few requests for: with this one, it had so many.
_LEAST_SAMPLES = {"99_99": 10_000, "99_9": 1_000, "99_0": 100, "90_0": 10, "50_0": 2}


def record_of(
    races: Sequence[Race], variant: VariantSpec, run_id: str, *, tags: Sequence[str] = ()
) -> RunRecord:
    """Make a run of races of one variant and of one kind (see `read_races`), in the order of the forks.

    The variant's version is that of the files, if they have one.
    """
    first = races[0]
    spec = msgspec.structs.replace(variant, version=first.engine_version or variant.version)
    tasks = tuple(
        Task(task.task if task.operation is None else task.operation, task.task) for task in first.tasks
    )
    forks = tuple(
        ForkRecord.of_figures(
            spec.name, block, tuple(_summary(*placed) for placed in enumerate(race.tasks)), race.created
        )
        for block, race in enumerate(races)
    )
    return RunRecord(
        record_version=RECORD_VERSION,
        id=run_id,
        created=first.created,
        status="complete",
        plan=_plan(first, spec, tasks, len(races)),
        environment=unknown_environment(f"{first.tool}:{first.environment or UNKNOWN}:{first.car}"),
        engines=(unknown_engine(spec, first.revision),),
        forks=forks,
        caveats=tuple(dict.fromkeys((*_contradictions(first, spec), *_remarks(races, spec.name)))),
        tags=tuple(tags),
        imported=Imported(first.tool, first.tool_version, tuple(str(race.path) for race in races)),
    )


def _plan(race: Race, spec: VariantSpec, tasks: tuple[Task, ...], forks: int) -> Plan:
    """Zero documents, segments and heap stand for unknown: nothing is computed from them."""
    return Plan(
        variants=(spec,),
        schedules=(Challenge(race.challenge or UNKNOWN, tasks),),
        warmup_challenges=(),
        restart="never",
        forks=forks,
        seed=0,
        heap_mb=0,
        track=race.track or UNKNOWN,
        track_digest="",
        corpus=CorpusSpec(seed=0, documents=0, generator_version=0, digest=""),
        segments=0,
        params=race.params,
        ingest_clients=0,
    )


def unknown_environment(fingerprint: str) -> Environment:
    """Return a host of which only the fingerprint is known."""
    return Environment(
        fingerprint=fingerprint,
        hostname=UNKNOWN,
        kernel=UNKNOWN,
        distribution=UNKNOWN,
        cpu_model=UNKNOWN,
        cpus=0,
        governor=None,
        memory_bytes=0,
        virtualization=None,
        python=UNKNOWN,
        benchctl=benchctl.__version__,
        benchctl_commit=None,
        libcurl=UNKNOWN,
        load_before=(0.0, 0.0, 0.0),
    )


def unknown_engine(spec: VariantSpec, build: str = "") -> EngineFacts:
    """Return what was measured, of which only version and build are known."""
    return EngineFacts(
        variant=spec.name,
        version=spec.version,
        build=build or UNKNOWN,
        lucene=UNKNOWN,
        archive_sha256="",
        jdk=UNKNOWN,
        jvm_flags=(),
        modules=(),
    )


def _summary(place: int, task: RaceTask) -> TaskSummary:
    blank = TaskSummary(0, place, task.task, task.task if task.operation is None else task.operation)
    if _all_failed(task):
        return msgspec.structs.replace(
            blank, failures={"failed": 1}, failure_reasons=("all requests failed",)
        )
    service = task.service_time or {}
    throughput = task.throughput or {}
    unit = throughput.get("unit")
    return msgspec.structs.replace(
        blank,
        samples=_least_samples(service),
        throughput_per_s=_positive(throughput.get("median")),
        unit=unit.removesuffix("/s") if isinstance(unit, str) and unit else blank.unit,
        service_time=_quantiles(service),
        latency=_quantiles(task.latency or {}) if throttled(task) else None,
        processing_time=_quantiles(task.processing_time or {}),
        mean_ns=_ns(service, "mean"),
        max_ns=_ns(service, "100_0"),
        failed_share=max(0.0, task.error_rate or 0.0),
    )


def throttled(task: RaceTask) -> bool:
    """Return whether requests had a due time: without one, latency is a copy of service time."""
    latency, service = task.latency or {}, task.service_time or {}
    return any(
        not math.isclose(value, other, rel_tol=_NOTICED)
        for name, value in latency.items()
        if isinstance(value, float) and isinstance(other := service.get(name), float)
    )


def _all_failed(task: RaceTask) -> bool:
    return task.error_rate is not None and task.error_rate >= 1


def _quantiles(found: Statistics) -> Quantiles | None:
    """By the tool's own definition; the next greater percentile stands in for a missing one."""
    names = {float(name.replace("_", ".")): name for name in found if _PERCENTILE.fullmatch(name)}
    p50, p90, p99 = (
        next((_ns(found, names[key]) for key in sorted(names) if key >= percentile), None)
        for percentile in (50, 90, 99)
    )
    if p50 is None or p90 is None or p99 is None:
        return None
    return Quantiles(p50, p90, p99)


def _ns(found: Statistics, name: str) -> float | None:
    value, unit = _positive(found.get(name)), found.get("unit")
    return None if value is None else _positive(value * NS[str(unit or "ms")])


def _positive(value: float | str | None) -> float | None:
    return value if isinstance(value, float) and 0 < value < math.inf else None


def _least_samples(found: Statistics) -> int:
    """The least number of requests for the percentiles that the tool gave."""
    by_percentile = (count for name, count in _LEAST_SAMPLES.items() if found.get(name) is not None)
    return next(by_percentile, 1 if found.get("100_0") is not None else 0)


def _contradictions(race: Race, spec: VariantSpec) -> Iterator[str]:
    """Yield what in the file contradicts the engine that the user names."""
    title = f"{spec.name} is taken to be {spec.engine}, as the user says"
    if race.tool == "opensearch-benchmark" and spec.engine == "elasticsearch":
        yield f"{title}, although {TITLES[race.tool]} measured it"
    major = race.engine_version.partition(".")[0]
    if spec.engine == "opensearch" and major.isdecimal() and int(major) >= _FIRST_ONLY_OF_ELASTICSEARCH:
        yield (
            f"{title}, although its version is {race.engine_version}, which is Elasticsearch's, or what "
            "OpenSearch says for the sake of old clients"
        )


def _remarks(races: Sequence[Race], variant: str) -> Iterator[str]:
    """Yield how the figures were converted, and their defects, task by task."""
    title = TITLES[races[0].tool]
    unthrottled = dict.fromkeys(
        task.task for race in races for task in race.tasks if task.latency and not throttled(task)
    )
    if unthrottled:
        yield (
            f"{variant}: the latency that {title} gives for {_listed(unthrottled)} is the service time "
            "again, and was not imported: a closed loop has no separate latency"
        )
    for percentile in (90, 99):
        name = f"{percentile}_0"
        lacking = dict.fromkeys(
            task.task
            for race in races
            for task in race.tasks
            if task.service_time and not _all_failed(task) and task.service_time.get(name) is None
        )
        if lacking:
            yield (
                f"{variant}: {title} gives no p{percentile} of {_listed(lacking)}, as it had too few "
                "requests: the greatest time stands in for it"
            )
    for race in races:
        for task in race.tasks:
            if task.error_rate and not _all_failed(task):
                yield (
                    f"{variant}: {100 * task.error_rate:.3g}% of the requests of {task.task} failed in "
                    f"{race.path.name} ({race.id or UNKNOWN}), and {title} counts their times with the others"
                )


def _listed(names: dict[str, None]) -> str:
    return ", ".join(names)
