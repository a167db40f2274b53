"""The figures that variants are compared by, and which number each fork contributes."""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from statistics import NormalDist
from typing import Annotated, Final, Literal

import msgspec

from benchctl.errors import UsageError
from benchctl.results.figures import TaskSummary
from benchctl.results.model import ForkRecord
from benchctl.results.plan import Place, Plan
from benchctl.track.model import Task

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

SUMMARISED = (0.5, 0.9, 0.99)
"""The quantiles that every fork's summary holds."""

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


def kept_metric_of(key: MetricKey) -> Metric:
    """The metric of this machine name, whose values are kept with every fork.

    Raises:
        ValueError: there is none, or it takes samples.
    """
    found = metric_of(key)
    if found.quantile not in (None, *SUMMARISED):
        kept = ", ".join(map(percentile, SUMMARISED))
        raise ValueError(f"'{key}' is not kept of forks, only {kept} are")
    return found


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


# Which number each fork contributes: summaries of one task by variant, and their values in one metric.


ForkSummaries = list[tuple[int, TaskSummary]]
"""(block, summary) of one task in every finished fork of a variant."""


def places(plan: Plan) -> list[Place]:
    """Every task of the plan, in the order in which they ran."""
    return [
        (schedule, task)
        for schedule, challenge in enumerate(plan.schedules)
        for task in range(len(challenge.schedule))
    ]


def challenge_title(plan: Plan, schedule: int) -> str:
    """A challenge's name; of one that runs more than once, with its number."""
    names = [challenge.name for challenge in plan.schedules]
    name = names[schedule]
    if names.count(name) == 1:
        return name
    return f"{name} ({names[: schedule + 1].count(name)} of {names.count(name)})"


def task_at(plan: Plan, place: Place) -> Task:
    """The task at a place."""
    return plan.schedules[place[0]].schedule[place[1]]


def collect(done: Mapping[str, Sequence[ForkRecord]], place: Place, task: Task) -> dict[str, ForkSummaries]:
    """Find one task's summaries.

    Args:
        done: label -> finished forks.
        place: where the task is.
        task: what should be there.

    Raises:
        UsageError: another task was there.
    """
    return {
        label: [(fork.block, _summary(fork, label, place, task)) for fork in group]
        for label, group in done.items()
    }


def open_loop(task: Task, found: Mapping[str, ForkSummaries]) -> bool:
    """Whether requests had a due time; of imported results, only their latency tells."""
    return task.throttled or any(one.latency is not None for forks in found.values() for _, one in forks)


def unit_of(found: Iterable[ForkSummaries]) -> str:
    """What the throughput of a task counts, from the first fork of any side."""
    return next((summary.unit for forks in found for _, summary in forks), "queries")


def fork_values(metric: Metric, found: ForkSummaries) -> list[float]:
    """One value a fork, in the metric's unit; NaN where the fork has none."""
    values = [metric.value(summary) for _, summary in found]
    return [math.nan if value is None else value for value in values]


def block_values(
    metric: Metric, baseline: ForkSummaries, contender: ForkSummaries
) -> tuple[list[float], list[float]]:
    """Values of the blocks that both sides finished, side by side in block order."""
    left = dict(zip((block for block, _ in baseline), fork_values(metric, baseline), strict=True))
    right = dict(zip((block for block, _ in contender), fork_values(metric, contender), strict=True))
    common = sorted(left.keys() & right.keys())
    return [left[block] for block in common], [right[block] for block in common]


def _summary(fork: ForkRecord, label: str, place: Place, task: Task) -> TaskSummary:
    for summary in fork.summaries:
        if (summary.schedule, summary.task) == place:
            if summary.label != task.label:
                raise UsageError(
                    f"fork {fork.block} of '{label}' ran '{summary.label}' where the plan has '{task.label}'",
                    hint="compare runs of the same challenges",
                )
            return summary
    return TaskSummary(place[0], place[1], task.label, task.operation)
