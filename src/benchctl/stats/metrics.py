"""The figures that variants are compared by: where they are, which way is better, what margin matters."""

from typing import Literal

import msgspec

from benchctl.results.figures import TaskSummary

MetricKey = Literal["throughput", "service_time_p90", "latency_p90", "redline"]
_NS_PER_MS = 1e6

# Standard error of a p90 in units of that of the mean, for log-normal samples: sqrt(.9 * .1) / phi(1.2816).
_P90_TO_MEAN_ERROR = 1.71


class Metric(msgspec.Struct, frozen=True):
    """One figure of a task.

    Attributes:
        key: machine name.
        title: what tables call it.
        unit: of the per-fork values.
        higher_is_better: which way is faster.
        margin: relative difference that does not matter in practice.
        error_factor: its within-fork standard error, in units of the mean service time's.
    """

    key: MetricKey
    title: str
    unit: str
    higher_is_better: bool
    margin: float
    error_factor: float

    def counting(self, unit: str) -> "Metric":
        """The metric for tasks whose throughput counts something else, such as documents."""
        return msgspec.structs.replace(self, unit=f"{unit}/s") if self.key == "throughput" else self

    def value(self, summary: TaskSummary) -> float | None:
        """One fork's value in `unit`; None when the fork has none."""
        if self.key == "throughput":
            return summary.throughput_per_s
        if self.key == "redline":
            return summary.redline_per_s
        found = summary.latency if self.key == "latency_p90" else summary.service_time
        return None if found is None else found.p90 / _NS_PER_MS


THROUGHPUT = Metric(
    key="throughput",
    title="throughput",
    unit="queries/s",
    higher_is_better=True,
    margin=0.03,
    error_factor=1.0,
)
SERVICE_TIME = Metric(
    key="service_time_p90",
    title="p90 service time",
    unit="ms",
    higher_is_better=False,
    margin=0.05,
    error_factor=_P90_TO_MEAN_ERROR,
)
LATENCY = msgspec.structs.replace(SERVICE_TIME, key="latency_p90", title="p90 latency")
REDLINE = msgspec.structs.replace(THROUGHPUT, key="redline", title="red-line")
# What a run of challenges is compared by, and everything that tables may hold.
METRICS = (THROUGHPUT, SERVICE_TIME, LATENCY)
ALL_METRICS = (*METRICS, REDLINE)
