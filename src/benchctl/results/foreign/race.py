"""One race of Rally, or test run of OpenSearch Benchmark, as its JSON file tells it."""

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import msgspec

from benchctl.disk import read_file
from benchctl.errors import BenchctlError, UsageError

Tool = Literal["rally", "opensearch-benchmark"]
TITLES: Mapping[Tool, str] = {"rally": "Rally", "opensearch-benchmark": "OpenSearch Benchmark"}

UNKNOWN = "unknown"
NS = {"ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9}
"""The units of times."""
_AGGREGATED = "aggregate"  # what OpenSearch Benchmark puts before the ids of its averages over test runs

Statistics = dict[str, float | str | None]
"""A metric of one task: percentiles such as `90_0`, or `median` and so on, and a `unit`."""


class TaskResult(msgspec.Struct, frozen=True):
    """What both tools keep of one task.

    Attributes:
        task: its name.
        operation: the operation's name; empty where the file has none.
        throughput: min, mean, median and max over one-second buckets.
        latency, service_time, processing_time: percentiles by name (`90_0`), and the mean.
        error_rate: share of the measured requests that failed, 0 to 1.
    """

    task: str
    operation: str | None = None
    throughput: Statistics | None = None
    latency: Statistics | None = None
    service_time: Statistics | None = None
    processing_time: Statistics | None = None
    error_rate: float | None = None


class Race(msgspec.Struct, frozen=True):
    """One race: a pass of one variant, as far as its file says.

    Attributes:
        path: of the file.
        tool: that measured it.
        tool_version: of that tool; empty when unknown, as all that follows.
        id: the tool's own.
        created: when it began, ISO 8601 in UTC.
        environment: the tool's name for where it ran.
        engine_version: of what was measured.
        revision: of its build.
        track: or workload.
        challenge: or test procedure.
        car: the tool's name for the configuration of the nodes.
        params: of the track.
        tasks: in the order of the schedule.
    """

    path: Path
    tool: Tool
    tool_version: str
    id: str
    created: str
    environment: str
    engine_version: str
    revision: str
    track: str
    challenge: str
    car: str
    params: dict[str, Any]
    tasks: tuple[TaskResult, ...]


class _Cluster(msgspec.Struct, frozen=True, rename="kebab"):
    revision: str | None = None
    distribution_version: str | None = None


class _Results(msgspec.Struct, frozen=True):
    op_metrics: tuple[TaskResult, ...] | None = None


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
    op_metrics: tuple[TaskResult, ...] | None = msgspec.field(name="op_metrics", default=None)


def read_race(path: Path, tool: Tool | None = None) -> Race:
    """Read one file.

    Args:
        path: `race.json` of Rally, `test_run.json` or `test_execution.json` of OpenSearch Benchmark, or their
            `results` alone.
        tool: which tool wrote it; None to tell from the file.

    Raises:
        BenchctlError: it cannot be read, is of another kind, or has no results.
    """
    try:
        document = msgspec.json.decode(read_file(path), type=_Document)
    except OSError as err:
        raise BenchctlError(f"{path}: {err.strerror}") from err
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
    """Read the files of one variant; every one becomes a fork, so they must be races of one kind.

    Args:
        paths: of the files, in the order of the forks.
        tool: which tool wrote them; None to tell from each.

    Raises:
        UsageError: some cannot be taken; all of them are named, with the reason.
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
    """Why it is no further fork of the others' run; empty when it is."""
    twin = next((one for one in others if one.path == race.path or (one.id and one.id == race.id)), None)
    if twin is not None:
        return f"the same race as {twin.path}"
    for other in others[:1]:
        for what in ("tool", "tool_version", "engine_version", "track", "challenge", "car", "params"):
            values = (getattr(other, what), getattr(race, what))
            if values[0] != values[1]:
                name = what.replace("_", " ")
                return f"no fork of the same run: its {name} is {_plain(values[1])}, not {_plain(values[0])}"
        if [one.task for one in race.tasks] != [one.task for one in other.tasks]:
            return f"no fork of the same run: its tasks are not those of {other.path}"
    return ""


def _plain(value: object) -> str:
    return (value or UNKNOWN) if isinstance(value, str) else msgspec.json.encode(value).decode()


def _check_units(results: tuple[TaskResult, ...], path: Path) -> None:
    for one in results:
        for times in (one.latency, one.service_time, one.processing_time):
            unit = (times or {}).get("unit") or "ms"
            if unit not in NS:
                raise BenchctlError(f"{path}: a time of {one.task} is in '{unit}', not in {', '.join(NS)}")


def _tool(document: _Document, path: Path, wanted: Tool | None) -> Tool:
    """Each tool has a version, and ids of its own."""
    rally = document.rally_version or document.race_id or document.trial_id
    benchmark = document.benchmark_version or document.test_execution_id or document.test_run_id
    found: Tool | None = "rally" if rally else "opensearch-benchmark" if benchmark else None
    if found is None:
        if document.results is None and document.op_metrics is None:
            raise BenchctlError(f"{path}: neither Rally's nor OpenSearch Benchmark's")
        if wanted is None:
            raise BenchctlError(f"{path}: does not say which tool wrote it: name it with --tool")
        return wanted
    if wanted not in (None, found):
        raise BenchctlError(f"{path}: written by {TITLES[found]}, not by {TITLES[wanted]}")
    return found


def _created(document: _Document, path: Path) -> str:
    """Both tools write `20261121T070102Z`; the file's own time stands in where there is none."""
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
        raise BenchctlError(f"{path}: '{text}' is no time of a race") from err


def _car(document: _Document) -> str:
    for name in (document.car, document.provision_config_instance, document.cluster_config_instance):
        if name:
            return name if isinstance(name, str) else "+".join(name)
    return ""


def _first(*texts: str | None) -> str:
    return next((text for text in texts if text), "")
