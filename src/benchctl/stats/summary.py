"""One fork's samples of one task -> the figures that forks are compared by."""

from typing import Any

import numpy as np
import numpy.typing as npt

from benchctl.results.model import TaskSummary
from benchctl.results.samples import Columns, Outcome, select
from benchctl.stats.quantiles import quantiles
from benchctl.track.model import Task

_NS_PER_S = 1_000_000_000
_NS_PER_MS = 1_000_000
_LEAST_FOR_LAG1 = 3
_LEAST_FOR_DRIFT = 6


def summarise(
    columns: Columns, *, schedule: int, task_index: int, task: Task, unsupported: str | None = None
) -> TaskSummary:
    """Summarise one task of one fork.

    Only successful measured requests enter the figures; warm-up and failures are counted, never mixed in.

    Args:
        columns: samples of the fork, each column of shape (n,); may hold other tasks too.
        schedule: position of the challenge in the fork.
        task_index: position of the task in that challenge.
        task: the task itself.
        unsupported: the node's reason when it cannot do this operation at all.
    """
    mine = select(columns, (columns["schedule"] == schedule) & (columns["task"] == task_index))
    measured = select(mine, ~mine["warmup"])
    ok = _in_time_order(select(measured, measured["outcome"] == Outcome.OK))
    service_ns = ok["end_ns"] - ok["start_ns"]
    n = int(service_ns.size)
    throttled = task.rate_per_s is not None
    took_ms = ok["took_ms"]
    lag1 = lag1_autocorrelation(service_ns, ok["client"])
    hits, hits_exact = _agreed_hits(ok)
    return TaskSummary(
        schedule=schedule,
        task=task_index,
        label=task.label,
        operation=task.operation,
        samples=n,
        warmup_samples=int(mine["warmup"].sum()),
        failures=_failures(measured),
        throughput_per_s=_throughput_per_s(measured, n, throttled=throttled),
        target_per_s=task.rate_per_s,
        service_time=quantiles(service_ns),
        latency=quantiles(ok["end_ns"] - ok["intended_ns"]) if throttled else None,
        took=quantiles(took_ms[took_ms >= 0].astype(np.int64) * _NS_PER_MS),
        mean_ns=float(service_ns.mean()) if n else None,
        sd_ns=float(service_ns.std(ddof=1)) if n > 1 else None,
        min_ns=float(service_ns.min()) if n else None,
        max_ns=float(service_ns.max()) if n else None,
        lag1=lag1,
        effective_samples=effective_samples(n, lag1) if n else None,
        drift=drift(_in_start_order(ok, service_ns)),
        hits=hits,
        hits_exact=hits_exact,
        unsupported=unsupported,
    )


def lag1_autocorrelation(values: npt.NDArray[Any], clients: npt.NDArray[Any]) -> float | None:
    """Correlation of each value with the one before it of the same client.

    Args:
        values: shape (n,), each client's values in time order and side by side.
        clients: whose value it is, shape (n,).

    Returns:
        Between -1 and 1; None under 3 values or when all are equal.
    """
    if values.size < _LEAST_FOR_LAG1:
        return None
    centred = values - values.mean()
    total = float(centred @ centred)
    if total <= 0.0:
        return None
    neighbours = clients[1:] == clients[:-1]
    return float((centred[1:] * centred[:-1])[neighbours].sum()) / total


def effective_samples(samples: int, lag1: float | None) -> float:
    """How many independent samples an autocorrelated series is worth: m(1-phi)/(1+phi), at most m."""
    if lag1 is None:
        return float(samples)
    return float(samples * min(1.0, (1 - lag1) / (1 + lag1)))


def drift(values: npt.NDArray[Any]) -> float | None:
    """ln(median of the last third / median of the first third); negative when it gets smaller.

    Args:
        values: shape (n,), in time order.

    Returns:
        None under 6 values, or when a median is not positive.
    """
    if values.size < _LEAST_FOR_DRIFT:
        return None
    third = values.size // 3
    first, last = float(np.median(values[:third])), float(np.median(values[-third:]))
    if first <= 0 or last <= 0:
        return None
    return float(np.log(last / first))


def _throughput_per_s(measured: Columns, completions: int, *, throttled: bool) -> float | None:
    """Successful completions over the seconds of the measured window.

    The window opens with the first measured request of any client (when it was due, if the task is throttled)
    and closes with the end of the last one, failed ones included: time spent on failures is time spent.
    Clients may end their warm-up at different times; what a late client still does as warm-up inside the
    window is not counted, so several clients with few iterations are slightly understated, never overstated.
    """
    if completions == 0:
        return None
    opens_ns = measured["intended_ns" if throttled else "start_ns"].min()
    window_ns = int(measured["end_ns"].max() - opens_ns)
    return completions * _NS_PER_S / window_ns if window_ns > 0 else None


def _failures(measured: Columns) -> dict[str, int]:
    codes, counts = np.unique(measured["outcome"], return_counts=True)
    return {
        Outcome(int(code)).name.lower(): int(count)
        for code, count in zip(codes, counts, strict=True)
        if code != Outcome.OK
    }


def _in_time_order(columns: Columns) -> Columns:
    """Client after client, each in the order of its requests."""
    order = np.lexsort((columns["start_ns"], columns["client"]))
    return {name: values[order] for name, values in columns.items()}


def _in_start_order(columns: Columns, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    return values[np.argsort(columns["start_ns"], kind="stable")]


def _agreed_hits(ok: Columns) -> tuple[int | None, bool]:
    """The one number of hits that every answer gave, and whether all counted exactly."""
    hits = ok["hits"]
    if hits.size == 0 or hits[0] < 0 or (hits != hits[0]).any():
        return None, False
    return int(hits[0]), bool(ok["hits_exact"].all())
