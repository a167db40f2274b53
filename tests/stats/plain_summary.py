"""A task's figures from samples that are all in memory: plain, slow, and what `summarise` has to equal."""

import math
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.stats import beta

from benchctl.results.figures import Quantiles
from benchctl.results.samples import Columns, Outcome, select

PROBABILITIES = [0.5, 0.9, 0.99]


def plain_summary(samples: Columns, *, throttled: bool) -> dict[str, Any]:
    """What a TaskSummary of these samples, all of one task, has in its fields."""
    whole = select(samples, (samples["part"] == 0) & (samples["outcome"] != Outcome.CANCELLED))
    measured = select(whole, ~whole["warmup"])
    ok = select(measured, measured["outcome"] == Outcome.OK)
    every = select(whole, whole["outcome"] == Outcome.OK)
    in_order = np.lexsort((ok["start_ns"], ok["client"]))
    ok = {name: values[in_order] for name, values in ok.items()}
    service_ns = ok["end_ns"] - ok["start_ns"]
    n = service_ns.size
    sent = select(samples, ~samples["warmup"] & (samples["outcome"] != Outcome.CANCELLED))
    page = (sent["part"] > 0) & (sent["outcome"] == Outcome.OK)
    window_ns = 0
    if n:
        opens_ns = measured["intended_ns" if throttled else "start_ns"].min()
        window_ns = int(measured["end_ns"].max() - opens_ns)
    failed = measured["outcome"][measured["outcome"] != Outcome.OK].tolist()
    retries = int((sent["attempt"] > 0).sum())
    lost = max(0, len(failed) - retries)
    lost_pages = int(((sent["part"] > 0) & (sent["outcome"] != Outcome.OK)).sum())
    agreed = len(set(ok["hits"].tolist())) == 1 and ok["hits"][0] >= 0
    return {
        "samples": n,
        "warmup_samples": int(whole["warmup"].sum()),
        "cancelled": int(((samples["part"] == 0) & (samples["outcome"] == Outcome.CANCELLED)).sum()),
        "retries": retries,
        "failures": {Outcome(code).name.lower(): failed.count(code) for code in sorted(set(failed))},
        "throughput_per_s": int(ok["weight"].sum()) * 1e9 / window_ns if window_ns else None,
        "service_time": plain_quantiles(service_ns, lost),
        "latency": plain_quantiles(ok["end_ns"] - ok["intended_ns"], lost) if throttled else None,
        "took": plain_quantiles(ok["took_ms"][ok["took_ms"] >= 0].astype(np.int64) * 1_000_000, lost),
        "processing_time": plain_quantiles(ok["processing_ns"][ok["processing_ns"] > 0], lost),
        "pages": plain_quantiles((sent["end_ns"] - sent["start_ns"])[page], lost_pages),
        **_first_two(select(samples, samples["part"] == 0)),
        "mean_ns": float(service_ns.mean()) if n else None,
        "drift": _drift(every["end_ns"] - every["start_ns"], every["start_ns"], n),
        "hits": int(ok["hits"][0]) if agreed else None,
        "hits_exact": agreed and bool(ok["hits_exact"].all()),
        **_stalls(ok, measured),
    }


def _first_two(whole: Columns) -> dict[str, float | None]:
    """The request that was sent first, and the first of those sent once it had ended, to the microsecond."""
    rows = sorted(
        zip(whole["start_ns"], whole["end_ns"], whole["outcome"], strict=True), key=lambda row: row[0]
    )
    first, *_ = rows or [None]
    second, *_ = [row for row in rows if first and row[0] >= first[1] - 1000] or [None]
    times = [float(row[1] - row[0]) if row and row[2] == Outcome.OK else None for row in (first, second)]
    return {"first_ns": times[0], "second_ns": None if times[0] is None else times[1]}


def _stalls(ok: Columns, measured: Columns) -> dict[str, float]:
    """Successes in the order of clients and starts; a client's first request is no stall."""
    values = (ok["end_ns"] - ok["start_ns"]).tolist()
    failed = measured["outcome"] != Outcome.OK
    lost = (measured["end_ns"] - measured["start_ns"])[failed].tolist()
    if not values:
        return {"stalled": 0, "stalled_s": 0.0, "stalled_share": 0.0}
    logs = np.log(np.maximum(values, 1))
    middle = np.sort(logs)[(logs.size - 1) // 2]
    spread = 1.4826 * np.sort(np.abs(logs - middle))[(logs.size - 1) // 2]
    reach = max(math.log(10), 6 * spread)
    long = [value for value in lost if value > math.exp(middle + reach)]
    for place in range(1, len(values)):
        far = values[place] > max(math.exp(middle + reach), math.exp(reach) * values[place - 1])
        if far and ok["client"][place] == ok["client"][place - 1]:
            long.append(values[place])
    total = sum(values) + sum(lost)
    return {
        "stalled": len(long),
        "stalled_s": sum(long) / 1e9,
        "stalled_share": sum(long) / total if total else 0.0,
    }


def plain_quantiles(values: npt.NDArray[np.int64], failed: int = 0) -> Quantiles | None:
    """Both estimators over every single value; failed requests rank above all."""
    if values.size == 0:
        return None
    estimates = [
        (_harrell_davis(np.sort(values), failed, share), _log_error(np.sort(values), failed, share))
        for share in PROBABILITIES
    ]
    return Quantiles(*(value for value, _ in estimates), *(error for _, error in estimates))


def _harrell_davis(ordered: npt.NDArray[np.int64], failed: int, share: float) -> float | None:
    n = ordered.size + failed
    up_to = beta((n + 1) * share, (n + 1) * (1 - share)).cdf(np.arange(n + 1) / n)
    weights, unknown = np.diff(up_to)[: ordered.size], 1 - up_to[ordered.size]
    weights[-1] += unknown
    return float(weights @ ordered) if unknown < 1e-3 else None


def _log_error(ordered: npt.NDArray[np.int64], failed: int, share: float) -> float | None:
    n = ordered.size + failed
    low, high = n * share - math.sqrt(n * share * (1 - share)), n * share + math.sqrt(n * share * (1 - share))
    if low <= 0 or high >= ordered.size:
        return None
    # The value of rank k stands for the ranks from k - 1 to k.
    least, most = np.interp([low, high], np.arange(ordered.size) + 0.5, ordered)
    return math.log(most / least) / 2 if least > 0 else None


def _drift(values: npt.NDArray[np.int64], starts: npt.NDArray[np.int64], measured: int) -> float | None:
    """Requests that start together are in one third."""
    kept = max(measured, values.size // 3) if measured else 0
    third, ranks = kept // 3, np.searchsorted(np.sort(starts), starts) - (values.size - kept)
    first, last = values[(ranks >= 0) & (ranks < third)], values[ranks >= kept - third]
    if kept < 6 or not first.size or not last.size or min(*first, *last) <= 0:
        return None
    return float(np.log(last).mean() - np.log(first).mean())
