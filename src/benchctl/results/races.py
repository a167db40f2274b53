"""Challenges of forks as races of Rally's metrics store: templates, records, bulk bodies."""

import hashlib
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal, NamedTuple

import msgspec
import numpy as np

from benchctl.results.figures import Quantiles, TaskSummary
from benchctl.results.metrics import METRIC_KINDS
from benchctl.results.model import ForkRecord, RunRecord, moment
from benchctl.results.plan import brief
from benchctl.results.reading import CHART_COLUMNS, SampleFile
from benchctl.results.samples import Columns, Outcome
from benchctl.results.store import RunFolder

# Names of indices and fields are those of Rally 2.13.

Kind = Literal["metrics", "races", "results"]
_KINDS: tuple[Kind, ...] = ("metrics", "races", "results")
_STREAM = "v1"
_STREAM_PRIORITY = 10  # above the templates of monthly indices, whose patterns cover streams, too
_METRIC_FIELDS = 2000
_KEYWORD_CHARACTERS = 8191  # what Lucene takes of a word, at four bytes a character


@dataclass(frozen=True)
class Layout:
    """The layout of records in a store."""

    streams: bool = False
    """Write data streams, as Rally after 2.13 does, instead of an index a month."""
    environment: str = "benchctl"
    """The user's name for where it was measured; dashboards filter by it."""

    def index(self, kind: Kind, month: str) -> str:
        """Return the index or stream of records of a month, such as `2026-01`."""
        return f"rally-{kind}-{_STREAM if self.streams else month}"

    def templates(self) -> Iterator[tuple[str, str, dict[str, Any]]]:
        """Yield (path, name of the template, body) of the template of every kind of records."""
        for kind in _KINDS:
            name = f"rally-{kind}"
            settings = {"mapping.total_fields.limit": _METRIC_FIELDS} if kind == "metrics" else {}
            body: dict[str, Any] = {
                "index_patterns": [f"{name}-v*" if self.streams else f"{name}-*"],
                "template": {"settings": {"index": settings}, "mappings": _mappings(kind)},
            }
            if self.streams:
                body |= {"data_stream": {}, "priority": _STREAM_PRIORITY}
                name += f"-{_STREAM}"
            yield f"/_index_template/{name}", name, body


def _mappings(kind: Kind) -> dict[str, Any]:
    """Return mappings like Rally's: text is a keyword, and a value no integer because its first one is."""
    words = {"type": "keyword", "ignore_above": _KEYWORD_CHARACTERS}
    times = {
        "type": "date",
        "format": "basic_date_time_no_millis",
        "fields": {"raw": {"type": "keyword"}},
    }
    properties: dict[str, Any] = {
        "race-timestamp": times,
        "@timestamp": {"type": "date", "format": "epoch_millis"},
    }
    if kind == "races":
        properties["results"] = {"properties": {"op_metrics": {"type": "nested"}}}
    elif kind == "metrics":
        properties |= {"value": {"type": "float"}, "relative-time": {"type": "float"}}
    return {
        "date_detection": False,
        "dynamic_templates": [
            {"words": {"match_mapping_type": "string", "mapping": words}},
            {
                "figures": {
                    "match_mapping_type": "long",
                    "path_match": "*value.*",
                    "mapping": {"type": "double"},
                }
            },
            {
                "more": {
                    "match_mapping_type": "double",
                    "path_match": "*value.*",
                    "mapping": {"type": "double"},
                }
            },
        ],
        "properties": properties,
    }


# A challenge of a fork as a race. Its records have ids that follow from it: sent twice, they are there once.


_DIGEST_BYTES = 12


@dataclass(frozen=True)
class Race:
    """A challenge of one fork."""

    layout: Layout
    record: RunRecord
    fork: ForkRecord
    schedule: int
    """Position of the challenge in the plan."""

    @property
    def id(self) -> str:
        """Id that is the same for every export."""
        return f"{self.record.id}.{self.fork.variant}.{self.fork.block}.{self.schedule}"

    @property
    def digest(self) -> str:
        """Return the beginning of the ids of its records."""
        return hashlib.blake2b(self.id.encode(), digest_size=_DIGEST_BYTES).hexdigest()

    @property
    def sampled(self) -> str:
        """Id of the record that says that all of its samples are there."""
        return f"{self.digest}-samples"

    @property
    def started(self) -> datetime:
        """Return the start of the fork, UTC."""
        began = moment(self.fork.started) or moment(self.record.created)
        return began or datetime.fromtimestamp(0, UTC)

    @property
    def epoch_ms(self) -> int:
        """Id as stores have it."""
        return round(self.started.timestamp() * 1000)

    def index(self, kind: Kind) -> str:
        """Return the index of the race's records."""
        return self.layout.index(kind, f"{self.started:%Y-%m}")

    @property
    def summaries(self) -> tuple[TaskSummary, ...]:
        """Of its tasks; administrative ones only where something failed."""
        return tuple(
            summary
            for summary in self.fork.summaries
            if summary.schedule == self.schedule and (summary.reported or summary.failures)
        )

    @property
    def meta(self) -> dict[str, Any]:
        """Return what only benchctl knows of it; every record has it."""
        plan, variant = self.record.plan, self.fork.variant
        spec = next((candidate for candidate in plan.variants if candidate.name == variant), None)
        facts = next((engine for engine in self.record.engines if engine.variant == variant), None)
        meta: dict[str, Any] = {"run": self.record.id, "variant": variant, "fork": self.fork.block}
        if spec is not None:
            meta |= {"engine": spec.engine, "distribution_version": spec.version}
        if plan.test_mode:
            meta["test_mode"] = True  # its values mean nothing
        if self.record.unfinished:
            meta["unfinished"] = self.record.unfinished
        if facts is not None:
            meta |= {"distribution_version": facts.version, "source_revision": facts.build}
        if plan.swept is not None:
            at = plan.swept.schedules[self.schedule].at | plan.swept.variants[variant].at
            # A dot would make an object of the name.
            meta |= {
                "point": plan.point(variant, self.schedule),
                "at": {name.replace(".", "_"): value for name, value in at.items()},
            }
        return meta

    @property
    def common(self) -> dict[str, Any]:
        """The fields that metrics and results share."""
        plan = self.record.plan
        fields: dict[str, Any] = {
            "environment": self.layout.environment,
            "race-id": self.id,
            "race-timestamp": f"{self.started:%Y%m%dT%H%M%SZ}",
            "track": plan.track,
            "challenge": plan.schedules[self.schedule].name,
            "car": self.fork.variant,
        }
        if plan.params:
            # As text: the type may be another one in the next run, and an index keeps that of the first.
            fields["track-params"] = {name: brief(value) for name, value in plan.params.items()}
        return fields

    def document(self) -> dict[str, Any]:
        """Return the race itself, with all results."""
        meta = self.meta
        targeted = any(
            variant.target is not None
            for variant in self.record.plan.variants
            if variant.name == self.fork.variant
        )
        caveats = {"caveats": list(self.record.caveats)} if self.record.caveats else {}
        return self._stamped(
            {
                "rally-version": f"benchctl {self.record.environment.benchctl}",
                "rally-revision": self.record.environment.benchctl_commit,
                **self.common,
                "pipeline": "benchmark-only" if targeted else "from-distribution",
                "user-tags": self._tags,
                "car": [self.fork.variant],
                "cluster": {
                    "revision": meta.get("source_revision"),
                    "distribution-version": meta.get("distribution_version"),
                },
                "results": {"op_metrics": [self._task(summary) for summary in self.summaries]},
                "meta": meta | caveats,
            }
        )

    def results(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Return (id, record) of every metric of every task."""
        version = self.meta.get("distribution_version", "")
        major = re.match(r"\d+", version)
        common = {
            "rally-version": f"benchctl {self.record.environment.benchctl}",
            "rally-revision": self.record.environment.benchctl_commit,
            **self.common,
            "distribution-version": version,
            **({"distribution-major-version": int(major[0])} if major else {}),
            "user-tags": self._tags,
            "active": True,
        }
        for summary in self.summaries:
            task = self._task(summary)
            head = common | {name: task.pop(name) for name in ("task", "operation", "meta")}
            for name, value in task.items():
                if value is not None:
                    content = value if isinstance(value, dict) else {"single": value}
                    yield (
                        f"{self.digest}-{summary.task}-{name}",
                        self._stamped(head | {"name": name, "value": content}),
                    )

    def metrics(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Return (id, record) of the throughput of every task, which samples lack."""
        for summary in self.summaries:
            if summary.throughput_per_s is not None:
                yield (
                    f"{self.digest}-{summary.task}-throughput",
                    self.metric("throughput", summary.throughput_per_s, f"{summary.unit}/s", summary),
                )

    def metric(self, name: str, value: float, unit: str, task: TaskSummary | None = None) -> dict[str, Any]:
        """Return a record of one value."""
        return {
            "@timestamp": self.epoch_ms,
            "relative-time": 0.0,
            **self.common,
            "name": name,
            "value": value,
            "unit": unit,
            "sample-type": "normal",
            **({} if task is None else {"task": task.label, "operation": task.operation}),
            "meta": self.meta | ({} if task is None else _loop(task)),
        }

    def _stamped(self, document: dict[str, Any]) -> dict[str, Any]:
        """Data streams want a time."""
        return {"@timestamp": self.epoch_ms, **document} if self.layout.streams else document

    @property
    def _tags(self) -> dict[str, Any]:
        """Return tags like Rally's: values by key; words without one are together."""
        words = [tag for tag in self.record.tags if ":" not in tag or tag.startswith("tag:")]
        pairs = (tag.split(":", 1) for tag in self.record.tags if tag not in words)
        return {**({"tag": words} if words else {}), **dict(pairs)}

    def _task(self, one: TaskSummary) -> dict[str, Any]:
        """Values of a task, by name: percentiles, or a value with its unit."""
        service = _percentiles(one.service_time, one.samples)
        if service:
            spread = {"100_0": one.max_ns, "mean": one.mean_ns}
            service = {**service, **{name: ns / 1e6 for name, ns in spread.items() if ns is not None}}
        failed = sum(one.failures.values())
        requests = one.samples + failed
        rate = one.throughput_per_s
        task: dict[str, Any] = {
            "task": one.label,
            "operation": one.operation,
            "meta": self.meta | _loop(one),
            # One figure for the measured window: no least and greatest second.
            "throughput": {}
            if rate is None
            else {"min": None, "mean": rate, "median": rate, "max": None, "unit": f"{one.unit}/s"},
            # In a closed loop Rally repeats the service time; `meta.loop` tells.
            "latency": _percentiles(one.latency, one.samples) if one.latency is not None else service,
            "service_time": service,
            "processing_time": _percentiles(one.processing_time, one.samples),
        }
        # What a node cannot do has failed; of what was just not sent there is no rate.
        if requests or one.unsupported is not None:
            task["error_rate"] = failed / requests if failed else one.failed_share if requests else 1.0
        for figure in METRIC_KINDS:
            quantity = None if figure.name in {*task, "mean"} else figure.of(one)
            if isinstance(quantity, Quantiles):
                task[figure.name] = _percentiles(quantity, one.samples)
            elif quantity is not None:
                unit = (one.redline_unit or figure.unit) if figure.loop == "search" else figure.unit
                task[figure.name] = {"single": quantity, "unit": unit}
        return {name: value for name, value in task.items() if value != {}}


def races_of(record: RunRecord, fork: ForkRecord, layout: Layout) -> list[Race]:
    """Return a fork's races: one per challenge with figures, in order."""
    schedules = dict.fromkeys(summary.schedule for summary in fork.summaries)
    return [Race(layout, record, fork, schedule) for schedule in sorted(schedules)]


def _loop(task: TaskSummary) -> dict[str, str]:
    tags = {"loop": "closed" if task.latency is None else "open"}
    return tags if task.unsupported is None else {**tags, "unsupported": task.unsupported}


def _percentiles(found: Quantiles | None, samples: int) -> dict[str, Any]:
    """Percentiles that a task has enough requests for, by Rally's own rule, ms."""
    if found is None:
        return {}
    levels = {"50_0": (found.p50, 2), "90_0": (found.p90, 10), "99_0": (found.p99, 100)}
    enough = {name: ns / 1e6 for name, (ns, least) in levels.items() if ns is not None and samples >= least}
    return {**enough, "unit": "ms"}


# Bulk bodies. Millions of samples: their lines are put together from parts that are encoded once.


BODY_SAMPLES = 1_500
"""Samples in a body of 3 to 4 MB."""
RECORDS_A_SAMPLE = 3
"""Latency, service time, processing time."""

SAMPLE_COLUMNS = (*CHART_COLUMNS, "client", "status", "processing_ns")
_TRANSPORT = 0  # status of a request without an answer


class Body(NamedTuple):
    """A bulk request."""

    content: bytes
    records: int


def bulk_of(race: Race, kind: Kind, records: Iterable[tuple[str, dict[str, Any]]]) -> Body:
    """Return a body of a few records, such as the summaries of a race."""
    lines: list[bytes] = []
    for name, record in records:
        lines += (_action(race, kind, name), msgspec.json.encode(record))
    return Body(b"".join(line + b"\n" for line in lines), len(lines) // 2)


def _action(race: Race, kind: Kind, name: str) -> bytes:
    """Streams take only what is not there yet."""
    verb = "create" if race.layout.streams else "index"
    return msgspec.json.encode({verb: {"_index": race.index(kind), "_id": name}})


def sample_bodies(folder: RunFolder, race: Race) -> Iterator[Body]:
    """Return the samples of a race, as latency, service time and processing time of every operation.

    Single requests of longer operations, and what the driver ended, are left out. A row's number in its file
    is its id.

    Raises:
        BenchctlError: If the file cannot be read.
    """
    if race.fork.samples is None:
        return
    lines = _SampleLines(race)
    first = 0
    for chunk in SampleFile(folder.inside(race.fork.samples), SAMPLE_COLUMNS):
        chosen = chunk["schedule"] == race.schedule
        chosen &= (chunk["part"] == 0) & (chunk["outcome"] != Outcome.CANCELLED)
        for task in np.unique(chunk["task"][chosen]).tolist():
            here = np.flatnonzero(chosen & (chunk["task"] == task))
            for start in range(0, here.size, BODY_SAMPLES):
                places = here[start : start + BODY_SAMPLES]
                yield lines.body(task, places + first, {name: all_[places] for name, all_ in chunk.items()})
        first += chosen.size


class _SampleLines:
    """Writes the records of samples of one race."""

    def __init__(self, race: Race) -> None:
        self._race = race
        self._tasks: dict[int, tuple[tuple[str, ...], str]] = {}
        # `{"index":{"_index":"...","_id":"DIGEST-` and the row's number is what follows.
        self._action = _action(race, "metrics", f"{race.digest}-").decode().removesuffix('"}}')

    def body(self, task: int, rows: Any, samples: Columns) -> Body:
        (latency, service, processing), meta = self._parts(task)
        action, epoch_ms = self._action, self._race.epoch_ms
        start_ms = samples["start_ns"] / 1e6
        lines = []
        for row, at, since, waited, served, processed, warm, client, outcome, status in zip(
            rows.tolist(),
            (start_ms.astype(np.int64) + epoch_ms).tolist(),
            start_ms.tolist(),
            ((samples["end_ns"] - samples["intended_ns"]) / 1e6).tolist(),
            ((samples["end_ns"] - samples["start_ns"]) / 1e6).tolist(),
            (samples["processing_ns"] / 1e6).tolist(),
            samples["warmup"].tolist(),
            samples["client"].tolist(),
            samples["outcome"].tolist(),
            samples["status"].tolist(),
            strict=True,
        ):
            end = (
                f',"@timestamp":{at},"relative-time":{since},'
                f'"sample-type":"{"warmup" if warm else "normal"}",{meta}'
                f'"client_id":{client},{_SUCCESS if outcome == Outcome.OK else _failure(status)}}}}}\n'
            )
            lines.append(
                f'{action}{row}-l"}}}}\n{latency}{waited}{end}'
                f'{action}{row}-s"}}}}\n{service}{served}{end}'
                f'{action}{row}-p"}}}}\n{processing}{processed}{end}'
            )
        return Body("".join(lines).encode(), RECORDS_A_SAMPLE * len(lines))

    def _parts(self, task: int) -> tuple[tuple[str, ...], str]:
        """Return what all samples of a task share: three records up to their value, and their meta."""
        if task not in self._tasks:
            race = self._race
            own_summary = next(
                (
                    summary
                    for summary in race.fork.summaries
                    if (summary.schedule, summary.task) == (race.schedule, task)
                ),
                None,
            )
            begun = []
            for name in ("latency", "service_time", "processing_time"):
                record = race.metric(name, 0.0, "ms", own_summary)
                meta = msgspec.json.encode(record.pop("meta")).decode()
                for dynamic in ("@timestamp", "relative-time", "sample-type", "value"):
                    del record[dynamic]
                begun.append(f'{msgspec.json.encode(record).decode().removesuffix("}")},"value":')
            self._tasks[task] = tuple(begun), f'"meta":{meta.removesuffix("}")},'
        return self._tasks[task]


_SUCCESS = '"success":true'


def _failure(status: int) -> str:
    if status == _TRANSPORT:
        return '"success":false,"error-type":"transport"'
    return f'"success":false,"error-type":"api","http-status":{status}'
