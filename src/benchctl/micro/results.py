"""Content of a JMH result (`-rf json`): figures of its forks, and its own table."""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import msgspec
import numpy as np

from benchctl.disk import disk_errors
from benchctl.errors import BenchctlError
from benchctl.results.figures import OPERATIONS, Quantiles, TaskSummary

T = TypeVar("T")

MICRO_METRICS = "throughput,op_time,service_time"
"""Metrics of microbenchmarks; JMH's mode decides which exist."""
MOST_RESULT_BYTES = 64 << 20
"""Largest result, in bytes."""
_NS = {"ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9, "min": 6e10, "hr": 3.6e12, "day": 8.64e13}
_CONFIDENCE = 0.999


# JMH writes what is not finite as text: "NaN", "+INF", "-INF".
_Score = float | str


class _Primary(msgspec.Struct, frozen=True, rename="camel"):
    score_unit: str
    raw_data: tuple[tuple[_Score, ...], ...] = ()
    raw_data_histogram: tuple[tuple[tuple[tuple[_Score, int], ...], ...], ...] = ()


class JmhEntry(msgspec.Struct, frozen=True, rename="camel"):
    """A benchmark with one set of parameters, measured by one JVM."""

    benchmark: str
    mode: str
    threads: int
    primary_metric: _Primary
    params: dict[str, str] = {}

    def scores(self) -> list[tuple[float, int]]:
        """Return the scores of iterations, or sampled operations, and how often each occurred."""
        metric = self.primary_metric
        if metric.raw_data:
            return [(float(score), 1) for scores in metric.raw_data for score in scores]
        iterations = (iteration for jvm in metric.raw_data_histogram for iteration in jvm)
        return [(float(score), times) for iteration in iterations for score, times in iteration]


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


def figures_of(place: int, label: str, entry: JmhEntry) -> TaskSummary:
    """Return the figures of one fork: a mean time, percentiles of sampled times, or a throughput.

    JMH's times are of one thread's operations; throughput is that of all threads together. Iterations whose
    score is no number are failures.

    Raises:
        BenchctlError: If it has no scores, or in a unit that does not fit the mode.
    """
    scores = entry.scores()
    scored = sum(times for _, times in scores)
    if not scored:
        raise BenchctlError(f"{label} has no scores")
    values = sorted(pair for pair in scores if math.isfinite(pair[0]))
    count = sum(times for _, times in values)
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
        numbers, times = zip(*values, strict=True)
        ranked = np.quantile(numbers, (0.5, 0.9, 0.99), weights=times, method="inverted_cdf")
        quantiles = Quantiles(*(ranked * unit_ns).tolist())
    return msgspec.structs.replace(
        blank,
        samples=count,
        throughput_per_s=mean * 1e9 / unit_ns if rate else None,
        mean_ns=None if rate else mean * unit_ns,
        service_time=quantiles,
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
    values = [value for entry in entries for value in entry.scores()]
    count = sum(times for _, times in values)
    mean, error = sum(value * times for value, times in values) / count, None
    if count > 2:  # noqa: PLR2004 - as JMH does
        spread = math.sqrt(sum(times * (value - mean) ** 2 for value, times in values) / (count - 1))
        # It takes as long to load as a benchmark may take, and only this table needs it.
        from scipy import stats  # noqa: PLC0415 - see above

        t = float(stats.t.ppf(1 - (1 - _CONFIDENCE) / 2, count - 1))
        error = t * spread / math.sqrt(count)
    return OwnRow(label, entries[0].mode, count, mean, error, entries[0].primary_metric.score_unit)
