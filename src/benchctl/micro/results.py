"""Content of a JMH result (`-rf json`): figures of its forks, its own table, and a run made of one."""

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

import msgspec
import numpy as np

from benchctl.disk import disk_errors, read_file
from benchctl.engine.variant import check_name
from benchctl.errors import BenchctlError
from benchctl.results.figures import OPERATIONS, Quantiles, TaskSummary
from benchctl.results.foreign import NS, UNKNOWN, unknown_engine, unknown_environment
from benchctl.results.model import RECORD_VERSION, ForkRecord, Imported, RunRecord
from benchctl.results.plan import CorpusSpec, MicroSpec, Plan, VariantSpec
from benchctl.track.model import Challenge, Task

T = TypeVar("T")

MICRO_METRICS = "throughput,op_time,service_time"
"""Metrics of microbenchmarks; JMH's mode decides which exist."""
MOST_RESULT_BYTES = 64 << 20
"""Largest result, in bytes."""
_NS = {**NS, "min": 6e10, "hr": 3.6e12, "day": 8.64e13}
_CONFIDENCE = 0.999
# Of JMH's profilers: the figure that it is, and how many of its units that has.
_METERS = {"gc.alloc.rate.norm": ("allocated", 1000.0)}


# JMH writes what is not finite as text: "NaN", "+INF", "-INF".
_Score = float | str


class _Primary(msgspec.Struct, frozen=True, rename="camel"):
    score_unit: str
    raw_data: tuple[tuple[_Score, ...], ...] = ()
    raw_data_histogram: tuple[tuple[tuple[tuple[_Score, int], ...], ...], ...] = ()


class _Secondary(msgspec.Struct, frozen=True):
    score: _Score = "NaN"


class JmhEntry(msgspec.Struct, frozen=True, rename="camel"):
    """A benchmark with one set of parameters, in all forks of a call of JMH's."""

    benchmark: str
    mode: str
    threads: int
    primary_metric: _Primary
    secondary_metrics: dict[str, _Secondary] = {}
    params: dict[str, str] = {}
    jmh_version: str = ""
    jdk_version: str = ""
    vm_version: str = ""
    jvm_args: tuple[str, ...] = ()
    warmup_iterations: int = 0
    warmup_time: str = ""
    measurement_iterations: int = 0
    measurement_time: str = ""
    measurement_batch_size: int = 1
    asked_forks: int = msgspec.field(default=1, name="forks")  # as `-f`; 0 is JMH's own JVM

    @property
    def forks(self) -> int:
        """Return the number of JVMs that measured it."""
        return len(self.primary_metric.raw_data or self.primary_metric.raw_data_histogram)

    def scores(self, fork: int) -> list[tuple[float, int]]:
        """Return a fork's iteration scores or sampled operations, and how often each occurred."""
        metric = self.primary_metric
        if metric.raw_data:
            return [(float(score), 1) for score in metric.raw_data[fork]]
        pairs = (pair for iteration in metric.raw_data_histogram[fork] for pair in iteration)
        return [(float(score), times) for score, times in pairs]

    def values(self, fork: int) -> list[tuple[float, int]]:
        """Return the scores of a fork that are numbers, ascending."""
        return sorted(pair for pair in self.scores(fork) if math.isfinite(pair[0]))

    def only(self, fork: int) -> "JmhEntry":
        """Return the entry as if that fork had been the only one."""
        metric = self.primary_metric
        rows, histograms = metric.raw_data, metric.raw_data_histogram
        own = msgspec.structs.replace(
            metric, raw_data=rows[fork : fork + 1], raw_data_histogram=histograms[fork : fork + 1]
        )
        return msgspec.structs.replace(self, primary_metric=own)

    @property
    def setting(self) -> dict[str, object]:
        """Return the settings that all files of one variant share, by name."""
        return {
            "mode": self.mode,
            "unit": self.primary_metric.score_unit,
            "threads": self.threads,
            "JMH version": self.jmh_version,
            "Java version": self.jdk_version,
            "JVM version": self.vm_version,
            "JVM arguments": " ".join(self.jvm_args),
            "warm-up": f"{self.warmup_iterations} x {self.warmup_time}",
            "measurement": f"{self.measurement_iterations} x {self.measurement_time}",
            "batch size": self.measurement_batch_size,
        }


def is_jmh(path: Path) -> bool:
    """Return whether a file is of JMH: a list, which no race of another tool is."""
    try:
        return read_file(path).lstrip()[:1] == b"["
    except OSError as err:
        raise BenchctlError(f"{path}: {err.strerror}") from err


def read_entries(path: Path) -> list[JmhEntry]:
    """Return all entries of a result file.

    Raises:
        BenchctlError: If the file cannot be read, or is of another kind.
    """
    try:
        return decode_jmh(read_file(path, MOST_RESULT_BYTES), list[JmhEntry])
    except OSError as err:
        raise BenchctlError(f"{path}: {err.strerror}") from err
    except ValueError as err:
        raise BenchctlError(f"{path}: not a result of JMH's: {err}", hint="made by: -rf json") from err


def decode_jmh(text: bytes, kind: type[T]) -> T:
    """Decode JSON in which numbers may be NaN, as some versions write it.

    Raises:
        ValueError: If it is not JSON, or of another kind.
    """
    return msgspec.convert(json.loads(text), kind)


def entries_file(folder: Path, variant: str, block: int) -> Path:
    """Return where a run keeps JMH's entries of one fork, by label."""
    return folder / "jmh" / f"{block:03d}-{variant}.json"


def write_entries(path: Path, entries: Mapping[str, object]) -> None:
    """Write JMH's entries of one fork, by label.

    Raises:
        BenchctlError: If the disk is full or cannot be written.
    """
    with disk_errors(f"write {path}"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(msgspec.to_builtins(dict(entries))), encoding="utf-8")


def short_names(names: Iterable[str]) -> dict[str, str]:
    """Return short by full name: `Class.method`, or `method` where all are of one class."""
    names = list(names)
    parts = 1 if len({name.rpartition(".")[0] for name in names}) == 1 else 2
    short = {name: ".".join(name.split(".")[-parts:]) for name in names}
    return short if len({*short.values()}) == len({*names}) else {name: name for name in names}


def label_of(name: str, params: Mapping[str, str], threads: int | None) -> str:
    """Return a benchmark's name in tables, with its threads where they distinguish it."""
    marks = [f"{key}={value}" for key, value in params.items()]
    marks += [] if threads is None else [f"threads={threads}"]
    return name + (f":{','.join(marks)}" if marks else "")


def figures_of(place: int, label: str, entry: JmhEntry, fork: int = 0) -> TaskSummary:
    """Return the figures of one fork: a mean time, percentiles of sampled times, or a throughput.

    JMH's times are of one thread's operations; throughput is that of all threads together. Iterations whose
    score is no number are failures.

    Raises:
        BenchctlError: If the fork has no values, or in a unit that does not fit the mode.
    """
    values = entry.values(fork)
    count = sum(times for _, times in values)
    scored = sum(times for _, times in entry.scores(fork))
    if not scored:
        raise BenchctlError(f"{label} has no figures of fork {fork}")
    left, _, right = entry.primary_metric.score_unit.partition("/")
    rate = entry.mode == "thrpt"
    unit_ns = _NS.get(right if rate else left)
    if unit_ns is None or (left if rate else right) != ("ops" if rate else "op"):
        raise BenchctlError(
            f"{label}: unit '{entry.primary_metric.score_unit}' does not fit mode '{entry.mode}' "
            f"(expected {'ops/TIME' if rate else 'TIME/op'})"
        )
    blank = TaskSummary(
        0,
        place,
        label,
        label,
        unit=OPERATIONS,
        failures={"failed": scored - count} if scored > count else {},
        failure_reasons=("JMH has no number as its score",) if scored > count else (),
    )
    if not count:
        return blank
    mean = sum(value * times for value, times in values) / count
    quantiles = None
    if not entry.primary_metric.raw_data:
        scores, times = zip(*values, strict=True)
        ranked = np.quantile(scores, (0.5, 0.9, 0.99), weights=times, method="inverted_cdf")
        quantiles = Quantiles(*(ranked * unit_ns).tolist())
    return msgspec.structs.replace(
        blank,
        samples=count,
        throughput_per_s=mean * 1e9 / unit_ns if rate else None,
        mean_ns=None if rate else mean * unit_ns,
        service_time=quantiles,
        meters={
            name: score / per_unit
            for key, metric in entry.secondary_metrics.items()
            for name, per_unit in [_METERS.get(key.lstrip("·"), ("", 1.0))]
            if name and math.isfinite(score := float(metric.score))
        },
    )


@dataclass(frozen=True)
class OwnRow:
    """A line of it: all iterations of all forks in one pot."""

    label: str
    mode: str  # JMH's word
    count: int  # iterations, or sampled operations
    score: float
    error: float | None  # half the width of a 99.9% interval by Student's t; None of fewer than 3
    unit: str  # of both


def own_row(label: str, entries: Sequence[JmhEntry]) -> OwnRow:
    """Return JMH's own `Score ± Error` of the same forks (`AbstractResult`, `ListStatistics`).

    One score that is no number makes both NaN, as in JMH.
    """
    values = [value for entry in entries for fork in range(entry.forks) for value in entry.scores(fork)]
    count = sum(times for _, times in values)
    mean, error = sum(value * times for value, times in values) / count, None
    if count > 2:  # noqa: PLR2004 - as JMH does
        spread = math.sqrt(sum(times * (value - mean) ** 2 for value, times in values) / (count - 1))
        # It takes as long to load as a benchmark may take, and only this table needs it.
        from scipy import stats  # noqa: PLC0415 - see above

        t = float(stats.t.ppf(1 - (1 - _CONFIDENCE) / 2, count - 1))
        error = t * spread / math.sqrt(count)
    return OwnRow(label, entries[0].mode, count, mean, error, entries[0].primary_metric.score_unit)


def imported(
    paths: Sequence[Path], variant: str, tags: Sequence[str]
) -> tuple[str, RunRecord, Callable[[Path, RunRecord], None]] | None:
    """Return a label, the run, and what writes JMH's entries into its folder; None if a file is not of JMH.

    Raises:
        BenchctlError: If a file cannot be read, or files do not belong together.
    """
    if not is_jmh(paths[0]):
        return None
    made, entries = record_of_jmh(paths, check_name(variant), "", tags=tags)

    def write(folder: Path, record: RunRecord) -> None:
        for fork, own in zip(record.forks, entries, strict=True):
            write_entries(entries_file(folder, fork.variant, fork.block), own)

    return f"jmh-{paths[0].stem}", made, write


def record_of_jmh(
    paths: Sequence[Path], variant: str, run_id: str, *, tags: Sequence[str] = ()
) -> tuple[RunRecord, list[dict[str, JmhEntry]]]:
    """Make a run of results of one variant: the forks of each of them, one file after the other.

    Returns:
        The run, and JMH's entries of each of its forks, by label.

    Raises:
        BenchctlError: If a file cannot be read, or files differ in benchmarks, their counts or settings.
    """
    forks: list[ForkRecord] = []
    kept: list[dict[str, JmhEntry]] = []
    caveats: list[str] = []
    read: dict[Path, list[JmhEntry]] = {}
    labels: list[str] = []
    for path in paths:
        entries = read_entries(path)
        counts = {entry.forks for entry in entries}
        if len(counts) != 1 or counts == {0}:
            raise BenchctlError(
                f"{path}: its benchmarks have {' and '.join(map(str, sorted(counts))) or 'no'} forks",
                hint="measure all of them with the same -f, of at least 1",
            )
        labels = _labels(entries)
        _check_alike(path, entries, read)
        read[path] = entries
        caveats += [f"{variant}: {text}" for text in _remarks(path, entries)]
        for fork in range(counts.pop()):
            try:
                figures = [figures_of(place, labels[place], one, fork) for place, one in enumerate(entries)]
            except BenchctlError as err:
                raise BenchctlError(f"{path}: {err}") from err
            forks.append(ForkRecord.of_figures(variant, len(forks), tuple(figures), _created(path)))
            kept.append({label: one.only(fork) for label, one in zip(labels, entries, strict=True)})
    first = entries[0]
    spec = VariantSpec(variant, "jvm", first.jdk_version or UNKNOWN)
    plan = Plan(
        variants=(spec,),
        schedules=(Challenge(paths[0].stem, tuple(map(Task, labels))),),
        warmup_challenges=(),
        restart="never",
        forks=len(forks),
        seed=0,
        heap_mb=0,
        track=UNKNOWN,
        track_digest="",
        corpus=CorpusSpec(seed=0, documents=0, generator_version=0, digest=""),
        segments=0,
        params={},
        ingest_clients=0,
        origin="empty",
        metrics=MICRO_METRICS,
        micro=MicroSpec(str(paths[0].absolute()), ""),
    )
    engine = msgspec.structs.replace(unknown_engine(spec), jdk=spec.version, lucene="")
    return RunRecord(
        record_version=RECORD_VERSION,
        id=run_id,
        created=_created(paths[0]),
        status="complete",
        plan=plan,
        environment=unknown_environment(f"jmh:{UNKNOWN}:"),
        engines=(engine,),
        forks=tuple(forks),
        caveats=tuple(dict.fromkeys(caveats)),
        tags=tuple(tags),
        imported=Imported("jmh", first.jmh_version, tuple(str(path.absolute()) for path in paths)),
    ), kept


def _check_alike(path: Path, entries: Sequence[JmhEntry], read: Mapping[Path, Sequence[JmhEntry]]) -> None:
    """Refuse the results of another variant, and the same ones again."""
    for other, earlier in read.items():
        if entries == earlier:
            raise BenchctlError(f"{path}: the same results as {other}")
        if _labels(entries) != _labels(earlier):
            raise BenchctlError(f"{path}: its benchmarks are not those of {other}")
        for entry, first in zip(entries, earlier, strict=True):
            for name, value in entry.setting.items():
                if value != (before := first.setting[name]):
                    raise BenchctlError(
                        f"{path}: {name} of {entry.benchmark} is '{value}', and '{before}' in {other}",
                        hint="import it as another variant",
                    )


def _remarks(path: Path, entries: Sequence[JmhEntry]) -> Iterator[str]:
    """Yield what JMH's own forks were not."""
    without = [entry.benchmark for entry in entries if entry.asked_forks == 0]
    if without:
        yield (
            f"{', '.join(without)} ran without a fork (-f 0) in {path.name}: in JMH's own JVM, whose "
            "earlier work affects their values"
        )
    fewer = [entry for entry in entries if entry.asked_forks > entry.forks]
    if fewer:
        lost = ", ".join(f"{entry.forks} of {entry.asked_forks} of {entry.benchmark}" for entry in fewer)
        yield f"{path.name} lacks forks that were asked for: it has {lost}"


def _labels(entries: Sequence[JmhEntry]) -> list[str]:
    names = short_names({entry.benchmark for entry in entries})
    many = len({entry.threads for entry in entries}) > 1
    return [
        label_of(names[entry.benchmark], entry.params, entry.threads if many else None) for entry in entries
    ]


def _created(path: Path) -> str:
    """Return when a result was written, ISO 8601 in UTC; it does not say when it was measured."""
    return datetime.fromtimestamp(path.stat().st_mtime, UTC).isoformat(timespec="seconds")
