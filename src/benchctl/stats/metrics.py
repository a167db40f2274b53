"""The figures that variants are compared by: where they are, which way is better, what margin matters."""

import math
import re
from statistics import NormalDist
from typing import Annotated, Final, Literal

import msgspec

from benchctl.results.figures import TaskSummary

MetricKind = Literal["throughput", "service_time", "latency", "redline"]
TimeMetricKind = Literal["service_time", "latency"]

MetricKey = Annotated[
    str,
    msgspec.Meta(pattern=r"^(throughput|redline|(service_time|latency)_p[0-9]+(\.[0-9]+)?)$"),
]
"""A metric's machine name: `throughput`, `redline`, or a time and its percentile such as `latency_p99.9`."""

_TIMES: Final[dict[TimeMetricKind, str]] = {"service_time": "service time", "latency": "latency"}
_TIME_KEY = re.compile(r"(?P<kind>service_time|latency)_p(?P<percentile>[0-9]+(?:\.[0-9]+)?)")
_NS_PER_MS = 1e6
_USUAL_QUANTILE = 0.9

# Beyond a quantile there should be so many samples before it is precise: 100 for p90, 1,000 for p99.
_SAMPLES_BEYOND = 10

# Quantiles that differ by less are the same: 0.9 has no exact form in binary.
_DIGITS = 12


class Metric(msgspec.Struct, frozen=True):
    """One figure of a task.

    Attributes:
        kind: which figure.
        title: what tables call it.
        unit: of the per-fork values.
        higher_is_better: which way is faster.
        margin: relative difference that does not matter in practice.
        error_factor: its within-fork standard error, in units of the mean service time's.
        quantile: of times, between 0 and 1; None for rates.
    """

    kind: MetricKind
    title: str
    unit: str
    higher_is_better: bool
    margin: float
    error_factor: float
    quantile: float | None = None

    @property
    def key(self) -> MetricKey:
        """Machine name."""
        return self.kind if self.quantile is None else f"{self.kind}_{percentile(self.quantile)}"

    @property
    def usual_key(self) -> MetricKey:
        """The name of the metric of this kind that is compared unless another is asked for."""
        return self.kind if self.quantile is None else f"{self.kind}_{percentile(_USUAL_QUANTILE)}"

    @property
    def samples_needed(self) -> int:
        """Requests that a fork should have for a precise value; 0 for rates."""
        if self.quantile is None:
            return 0
        rarer = min(self.quantile, 1 - self.quantile)
        return math.ceil(round(_SAMPLES_BEYOND / rarer, _DIGITS - 4))

    @property
    def samples_least(self) -> int:
        """Requests of a fork under which the value is that of the slowest (or fastest) one; 0 for rates."""
        if self.quantile is None:
            return 0
        return math.ceil(round(1 / min(self.quantile, 1 - self.quantile), _DIGITS - 4))

    def counting(self, unit: str) -> "Metric":
        """The metric for tasks whose throughput counts something else, such as documents."""
        return msgspec.structs.replace(self, unit=f"{unit}/s") if self.kind == "throughput" else self

    def value(self, summary: TaskSummary) -> float | None:
        """One fork's value in `unit`; None when the fork has none."""
        if self.kind == "throughput":
            return summary.throughput_per_s
        if self.kind == "redline":
            return summary.redline_per_s
        found = summary.latency if self.kind == "latency" else summary.service_time
        if found is None or self.quantile is None:
            return None
        value_ns = found.at(self.quantile)
        return None if value_ns is None else value_ns / _NS_PER_MS


def percentile(quantile: float) -> str:
    """A quantile as readers call it: 0.9 is `p90`, 0.999 is `p99.9`."""
    text = f"{round(100 * quantile, _DIGITS):.{_DIGITS}f}".rstrip("0").rstrip(".")
    return f"p{text}"


def time_metric(kind: TimeMetricKind, quantile: float) -> Metric:
    """A quantile of a time.

    Args:
        kind: which time.
        quantile: between 0 and 1, both excluded.

    Raises:
        ValueError: it is not.
    """
    if not 0 < quantile < 1:
        raise ValueError(f"a quantile lies between 0 and 1, not at {quantile:g}")
    return Metric(
        kind=kind,
        title=f"{percentile(quantile)} {_TIMES[kind]}",
        unit="ms",
        higher_is_better=False,
        margin=0.05,
        error_factor=_error_factor(quantile),
        quantile=quantile,
    )


def metric_of(key: MetricKey) -> Metric:
    """The metric that has this machine name.

    Raises:
        ValueError: none has.
    """
    for metric in (THROUGHPUT, REDLINE):
        if metric.key == key:
            return metric
    match = _TIME_KEY.fullmatch(key)
    if match is None:
        raise ValueError(f"there is no metric '{key}'")
    kind: TimeMetricKind = "latency" if match["kind"] == "latency" else "service_time"
    return time_metric(kind, round(float(match["percentile"]) / 100, _DIGITS))


def _error_factor(quantile: float) -> float:
    """Standard error of a quantile in units of that of the mean, for log-normal samples of a small spread."""
    normal = NormalDist()
    return math.sqrt(quantile * (1 - quantile)) / normal.pdf(normal.inv_cdf(quantile))


THROUGHPUT = Metric(
    kind="throughput",
    title="throughput",
    unit="queries/s",
    higher_is_better=True,
    margin=0.03,
    error_factor=1.0,
)
SERVICE_TIME = time_metric("service_time", _USUAL_QUANTILE)
LATENCY = time_metric("latency", _USUAL_QUANTILE)
REDLINE = msgspec.structs.replace(THROUGHPUT, kind="redline", title="red-line")
# What a run of challenges is compared by unless something else is asked for.
METRICS = (THROUGHPUT, SERVICE_TIME, LATENCY)
