"""Races of another tool -> the record of a run: every race a fork, and what nobody knows left unknown."""

import math
import re
from collections.abc import Iterator, Sequence

import msgspec

import benchctl
from benchctl.results.figures import Quantiles, TaskSummary
from benchctl.results.foreign.race import NS, TITLES, UNKNOWN, Race, Statistics, TaskResult
from benchctl.results.model import (
    RECORD_VERSION,
    EngineFacts,
    Environment,
    ForkRecord,
    Imported,
    RunRecord,
)
from benchctl.results.plan import CorpusSpec, Plan, VariantSpec
from benchctl.track.model import Challenge, Task

_PERCENTILE = re.compile(r"[0-9]+(_[0-9]+)?", re.ASCII)
_NOTICED = 1e-9  # relative; Rally copies the service time of unthrottled tasks, digit for digit

_FIRST_ONLY_OF_ELASTICSEARCH = 5
"""Elasticsearch went from 2 to 5, the oldest that is still measured; OpenSearch began again with 1."""

# Both tools leave percentiles out that a task has too few requests for: with this one, it had so many.
_LEAST_SAMPLES = {"99_99": 10_000, "99_9": 1_000, "99_0": 100, "90_0": 10, "50_0": 2}


def record_of(
    races: Sequence[Race], variant: VariantSpec, run_id: str, *, tags: Sequence[str] = ()
) -> RunRecord:
    """Make a run of races.

    Args:
        races: of one variant and of one kind (see `read_races`), in the order of the forks.
        variant: what they measured; its version is that of the files where they say it.
        run_id: of the new run.
        tags: words to find it by.
    """
    first = races[0]
    spec = msgspec.structs.replace(variant, version=first.engine_version or variant.version)
    tasks = tuple(Task(one.task if one.operation is None else one.operation, one.task) for one in first.tasks)
    forks = tuple(_fork(race, spec.name, block) for block, race in enumerate(races))
    return RunRecord(
        record_version=RECORD_VERSION,
        id=run_id,
        created=first.created,
        status="complete",
        plan=_plan(first, spec, tasks, len(races)),
        environment=_environment(first),
        engines=(_engine(first, spec),),
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


def _environment(race: Race) -> Environment:
    """All that a file says of the host is what its user called the environment."""
    return Environment(
        fingerprint=f"{race.tool}:{race.environment or UNKNOWN}:{race.car}",
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


def _engine(race: Race, spec: VariantSpec) -> EngineFacts:
    return EngineFacts(
        variant=spec.name,
        version=spec.version,
        build=race.revision or UNKNOWN,
        lucene=UNKNOWN,
        archive_sha256="",
        jdk=UNKNOWN,
        jvm_flags=(),
        modules=(),
    )


def _fork(race: Race, variant: str, block: int) -> ForkRecord:
    return ForkRecord(
        variant=variant,
        block=block,
        position=0,
        status="done",
        reason="",
        started=race.created,
        wall_s=0.0,
        requests_s=0.0,
        overhead_s=0.0,
        copy_s=0.0,
        probe_s=0.0,
        boots=(),
        summaries=tuple(_summary(place, task) for place, task in enumerate(race.tasks)),
        probes=(),
        samples=None,
    )


def _summary(place: int, task: TaskResult) -> TaskSummary:
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


def throttled(task: TaskResult) -> bool:
    """Whether requests had a due time: of an unthrottled task, latency is a copy of its service time."""
    latency, service = task.latency or {}, task.service_time or {}
    return any(
        not math.isclose(value, other, rel_tol=_NOTICED)
        for name, value in latency.items()
        if isinstance(value, float) and isinstance(other := service.get(name), float)
    )


def _all_failed(task: TaskResult) -> bool:
    return task.error_rate is not None and task.error_rate >= 1


def _quantiles(found: Statistics) -> Quantiles | None:
    """By the tool's own definition; the next greater percentile stands in for one that it left out."""
    p50, p90, p99 = (_at_least(found, percentile) for percentile in (50, 90, 99))
    if p50 is None or p90 is None or p99 is None:
        return None
    return Quantiles(p50, p90, p99, p50, p90, p99)


def _at_least(found: Statistics, percentile: float) -> float | None:
    """The value of the least percentile that is not below; nanoseconds."""
    known = {float(name.replace("_", ".")): name for name in found if _PERCENTILE.fullmatch(name)}
    return next((_ns(found, known[key]) for key in sorted(known) if key >= percentile), None)


def _ns(found: Statistics, name: str) -> float | None:
    value, unit = _positive(found.get(name)), found.get("unit")
    return None if value is None else _positive(value * NS[str(unit or "ms")])


def _positive(value: float | str | None) -> float | None:
    return value if isinstance(value, float) and 0 < value < math.inf else None


def _least_samples(found: Statistics) -> int:
    """Requests that there must have been, by the percentiles that the tool gave."""
    by_percentile = (count for name, count in _LEAST_SAMPLES.items() if found.get(name) is not None)
    return next(by_percentile, 1 if found.get("100_0") is not None else 0)


def _contradictions(race: Race, spec: VariantSpec) -> Iterator[str]:
    """What of the file speaks against the engine that the user says was measured."""
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
    """What was done to the figures, and what is the matter with them, task by task."""
    title = TITLES[races[0].tool]
    unthrottled = dict.fromkeys(
        task.task for race in races for task in race.tasks if task.latency and not throttled(task)
    )
    if unthrottled:
        yield (
            f"{variant}: the latency that {title} gives for {_listed(unthrottled)} is the service time "
            "again, and was left out: a closed loop has none of its own"
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
                    f"{variant}: {100 * task.error_rate:.3g} % of the requests of {task.task} failed in "
                    f"{race.path.name} ({race.id or UNKNOWN}), and {title} counts their times with the others"
                )


def _listed(names: dict[str, None]) -> str:
    return ", ".join(names)
