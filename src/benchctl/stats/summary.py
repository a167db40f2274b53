"""Summary of a fork's samples of a task: the values that forks are compared by, the driver."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from http import HTTPStatus

import numpy as np

from benchctl.results.figures import DriverFigures, Quantiles, TaskSummary
from benchctl.results.samples import Columns, Outcome, Span, empty_columns, select
from benchctl.stats.inference import Floats, Integers, Mask
from benchctl.stats.quantiles import TIMES, quantiles
from benchctl.track.model import Task

_NS_PER_S = 1_000_000_000
_NS_PER_MS = 1_000_000
_NS_PER_US = 1_000
_LONG_AGO_NS = -(2**62)
_TURN_BITS = 32
# libcurl's clock and ours may differ by less than the microsecond that libcurl's is rounded to.
_CLOCKS_APART_NS = 1_000

_LEAST_FOR_DRIFT = 6
# A request is far beyond the typical one at ten times the median, and six robust SDs of the logarithms.
_TIMES_TYPICAL = 10.0
_FAR_SPREADS = 6.0
_SD_OF_MAD = 1.4826

# Columns that figures are made of; the others are not kept in memory.
_COLUMNS = (
    "client", "intended_ns", "start_ns", "end_ns", "took_ms", "hits", "hits_exact", "weight", "processing_ns",
    "part", "outcome", "warmup", "attempt", "turn", "status",
)  # fmt: skip


def summarise(
    chunks: Columns | Iterable[Columns],
    *,
    schedule: int,
    task_index: int,
    task: Task,
    unsupported: str | None = None,
    constant: bool = False,
) -> TaskSummary:
    """Summarise one task of one fork.

    Only successful measured operations enter the figures; warm-up, failures and what the driver cancelled are
    counted, never mixed in. But failed requests rank above all others in quantiles, which would get better
    without the slowest ones. The parts of an operation of several requests enter `pages` alone. The first and
    the second request may be of the warm-up.

    All samples of the task are in memory at once, about 130 bytes each with what is made of them.

    Args:
        chunks: samples of the fork, each column of shape (n,); may hold other tasks, too. The rows of a
            client are in the order of its requests, over all chunks.
        schedule: position of the challenge in the fork.
        task_index: position of the task in that challenge.
        task: the task itself.
        unsupported: the node's reason when it cannot do this operation at all.
        constant: whether all requests are the same, of documents that nothing is meant to change.
    """
    chunks = [chunks] if isinstance(chunks, dict) else chunks
    mine = _joined(
        select(chunk, (chunk["schedule"] == schedule) & (chunk["task"] == task_index)) for chunk in chunks
    )
    whole, succeeded = mine["part"] == 0, mine["outcome"] == Outcome.OK
    cancelled = mine["outcome"] == Outcome.CANCELLED
    measured = ~mine["warmup"] & ~cancelled
    answered, lost = whole & measured & succeeded, whole & measured & ~succeeded
    retries = int((measured & (mine["attempt"] > 0)).sum())
    failed = max(0, int(lost.sum()) - retries)
    failures = Counter(mine["outcome"][lost].tolist())
    ok = select(mine, answered)
    times = {field: of(ok) for field, of in TIMES.items()}
    service_ns = times["service_time"]
    pages = measured & ~whole
    hits, hits_exact = _agreed_hits(ok)
    hits_least, hits_most = _changed_hits(ok) if constant else (None, None)
    firsts = _first_two(select(mine, whole))
    stalled_ns = _stalled(ok, (mine["end_ns"] - mine["start_ns"])[lost])
    all_ns = int((mine["end_ns"] - mine["start_ns"])[answered | lost].sum()) if service_ns.size else 0
    # An operation of several requests has the status of one of them, such as its clean-up.
    ignored = bool(whole.all()) * int((ok["status"] >= HTTPStatus.BAD_REQUEST).sum())
    return TaskSummary(
        schedule=schedule,
        task=task_index,
        label=task.label,
        operation=task.operation,
        samples=service_ns.size,
        warmup_samples=int((whole & mine["warmup"] & ~cancelled).sum()),
        cancelled=int((whole & cancelled).sum()),
        retries=retries,
        ignored_errors=ignored,
        failures={Outcome(code).name.lower(): count for code, count in sorted(failures.items())},
        throughput_per_s=_throughput_per_s(task, select(mine, whole & ~cancelled)),
        units_per_request=int(ok["weight"].sum()) / service_ns.size if service_ns.size else None,
        target_per_s=task.rate_per_s,
        service_time=quantiles(service_ns, failed),
        latency=quantiles(times["latency"], failed) if task.throttled else None,
        took=quantiles(times["took"], failed),
        processing_time=quantiles(ok["processing_ns"][ok["processing_ns"] > 0], failed),
        pages=quantiles(
            (mine["end_ns"] - mine["start_ns"])[pages & succeeded], int((pages & ~succeeded).sum())
        ),
        first_ns=firsts[0],
        second_ns=firsts[1],
        mean_ns=int(service_ns.sum()) / service_ns.size if service_ns.size else None,
        drift=_drift(task, select(mine, whole & succeeded), service_ns.size),
        hits=hits,
        hits_exact=hits_exact,
        hits_least=hits_least,
        hits_most=hits_most,
        stalled=stalled_ns.size,
        stalled_s=int(stalled_ns.sum()) / _NS_PER_S,
        stalled_share=int(stalled_ns.sum()) / all_ns if all_ns else 0.0,
        unsupported=unsupported,
    )


def _joined(chunks: Iterable[Columns]) -> Columns:
    found = [{name: chunk[name] for name in _COLUMNS} for chunk in chunks] or [empty_columns(0)]
    return {name: np.concatenate([chunk[name] for chunk in found]) for name in _COLUMNS}


def _throughput_per_s(task: Task, whole: Columns) -> float | None:
    """Successful units over the seconds of the measured window; None without samples.

    The window opens with the first measured request of any client (when it was due, if the task is throttled)
    and closes with the end of the last one, failed ones included: time spent on failures is time spent.
    Clients may end their warm-up at different times; what a late client still does as warm-up inside the
    window is not counted, so several clients with few iterations are slightly understated, never overstated.
    In turns, a client's window is the sum of its turns, each from the end of its first request, which is
    warm-up, to the end of its last; clients count alike.
    """
    within = _in_window(whole)
    succeeded = whole["outcome"] == Outcome.OK
    if not (succeeded & ~whole["warmup"]).any():
        return None
    # Clients that share connections do not work all the time of a turn.
    turns = whole["turn"] > 0
    if turns.any() and not (task.throttled or task.mixed or task.lanes):
        weight = int(whole["weight"][succeeded & ~whole["warmup"]].sum())
        window_ns = _turns_ns(select(whole, turns))
    else:
        weight = int(whole["weight"][succeeded & within].sum())
        opens = whole["intended_ns" if task.throttled else "start_ns"][within].min()
        window_ns = float(whole["end_ns"][within].max() - opens)
    return weight * _NS_PER_S / window_ns if window_ns > 0 else None


def _turns_ns(rows: Columns) -> float:
    """Return the time of all turns of a client, mean over clients."""
    keys, places = np.unique(
        (rows["client"].astype(np.int64) << _TURN_BITS) | rows["turn"], return_inverse=True
    )
    opens, closes = np.full(keys.size, -_LONG_AGO_NS), np.zeros(keys.size, np.int64)
    np.minimum.at(opens, places, np.where(rows["warmup"], rows["end_ns"], rows["start_ns"]))
    np.maximum.at(closes, places, rows["end_ns"])
    return float((closes - opens).sum()) / np.unique(keys >> _TURN_BITS).size


def _first_two(whole: Columns) -> tuple[float | None, float | None]:
    """Return the service times of the operation that began first, and of the first that did after its end.

    Measured or not; None where it failed, or there is none.
    """
    found: list[float | None] = []
    since_ns = _LONG_AGO_NS
    for _ in range(2):
        rows = np.flatnonzero(whole["start_ns"] >= since_ns)
        if rows.size == 0 or None in found:
            break
        row = rows[whole["start_ns"][rows].argmin()]
        taken_ns = float(whole["end_ns"][row] - whole["start_ns"][row])
        found.append(taken_ns if whole["outcome"][row] == Outcome.OK else None)
        since_ns = int(whole["end_ns"][row]) - _CLOCKS_APART_NS
    first, second, *_ = (*found, None, None)
    return first, second


def _stalled(ok: Columns, lost_ns: Integers) -> Integers:
    """Return the times of requests far beyond the typical one and the client's one before, ns.

    A client's first request is none; failed ones, `lost_ns`, have none before.
    """
    order = np.argsort(ok["client"], kind="stable")
    clients, taken_ns = ok["client"][order], (ok["end_ns"] - ok["start_ns"])[order]
    if taken_ns.size == 0:
        return taken_ns
    logs = np.log(np.maximum(taken_ns, 1))
    middle = _lower_median(logs)
    reach = max(math.log(_TIMES_TYPICAL), _FAR_SPREADS * _SD_OF_MAD * _lower_median(np.abs(logs - middle)))
    far_ns = math.exp(middle + reach)
    follows = clients[1:] == clients[:-1]
    far = follows & (taken_ns[1:] > far_ns) & (taken_ns[1:] > math.exp(reach) * taken_ns[:-1])
    return np.concatenate([taken_ns[1:][far], lost_ns[lost_ns > far_ns]])


def _lower_median(values: Floats) -> float:
    return float(np.quantile(values, 0.5, method="inverted_cdf"))


def _drift(task: Task, every: Columns, measured: int) -> float | None:
    """Return ln(geometric mean of the last third / of the first) of successes, warm-up included, by start.

    Of the requests that have to be level: the measured ones, or a third of all if these are more. 100
    measured behind 400 do not show a task that gets 5% faster every hundred; the last 167 do. Clients that
    ramp up are fast at first, for want of others: then only measured ones count.

    Negative when times get smaller; None under 6 of them, or when one is not positive. Means, because a
    warm-up of less than a sixth of the requests moves no median of a third, and yet every quantile of the
    task from p84 on.
    """
    starts, taken_ns = every["start_ns"], every["end_ns"] - every["start_ns"]
    last = max(measured, starts.size // 3) if measured and not task.ramp_up_time_period else measured
    if last < _LEAST_FOR_DRIFT:
        return None
    # Requests that start together share a rank, and a third.
    ranks = np.searchsorted(np.sort(starts), starts) - (starts.size - last)
    thirds = taken_ns[(ranks >= 0) & (ranks < last // 3)], taken_ns[ranks >= last - last // 3]
    if not all(third.size and third.min() > 0 for third in thirds):
        return None
    first, final = (float(np.log(third).mean()) for third in thirds)
    return final - first


def _agreed_hits(ok: Columns) -> tuple[int | None, bool]:
    """Return the one number of hits that every answer gave, and whether all counted exactly."""
    hits = ok["hits"]
    if hits.size == 0 or hits.min() != hits.max() or hits[0] < 0:
        return None, False
    return int(hits[0]), bool(ok["hits_exact"].all())


def _changed_hits(ok: Columns) -> tuple[int | None, int | None]:
    """Return the fewest and most hits, if exact ones differ or only some answers are exact; else None.

    What is not exact depends on how far the engine counted, and answers without hits do not count.
    """
    known = [ok["hits"][ok["hits_exact"] == exact] for exact in (True, False)]
    exact, other = (hits if hits.size and hits.min() >= 0 else hits[:0] for hits in known)
    if exact.size == 0 or (exact.min() == exact.max() and other.size == 0):
        return None, None
    both = np.concatenate([exact, other])
    return int(both.min()), int(both.max())


def took_quantiles(tooks: Sequence[Mapping[int, int]], failed: int) -> tuple[Quantiles, ...]:
    """Quantiles of each of several times, in nanoseconds, from milliseconds -> how often it was measured.

    Requests that `failed` are in none of them.
    """
    parts = (quantiles(np.repeat(np.array([*took]) * _NS_PER_MS, [*took.values()]), failed) for took in tooks)
    return tuple(part for part in parts if part is not None)


# The driver's share of a task's time: how late it sent requests, and what rate that cost.


def covered_ns(spans: Iterable[Span], begin_ns: int, end_ns: int) -> int:
    """Return the ns between begin and end that the spans cover; overlaps count once."""
    covered = 0
    for low, high in sorted(spans):
        upto_ns = min(high, end_ns)
        covered += max(upto_ns - max(low, begin_ns), 0)
        begin_ns = max(begin_ns, upto_ns)
    return covered


def driver_figures(
    samples: Iterable[Columns],
    task: Task,
    *,
    cpu_s: float,
    wall_s: float,
    workers: int = 1,
    stops: Iterable[Span] = (),
    share: float = 1.0,
) -> DriverFigures:
    """Return the driver's figures for one task of one fork, without what only the fork knows.

    A request can be sent once it is due and its client's previous request has ended; in a closed loop it is
    always due. The time from then until it is sent is lag, for which no node is to blame. Waiting behind a
    slow answer is not lag but latency. Nor is the back-off before a rejected request is resent: the operation
    asks for that.

    Args:
        samples: of that task only, in chunks; rows of a client in the order of its requests, across all
            chunks.
        task: the task.
        cpu_s: CPU time of the driver during the task, seconds.
        wall_s: wall time of the task, seconds.
        workers: number of processes its clients ran in.
        stops: when one of these did not run, on the clock of the samples.
        share: of the task's rate that these samples' clients have.
    """
    is_open = task.throttled
    every = _joined(samples)
    # The single requests of a longer operation are the operation's own business.
    every = select(every, every["part"] == 0)
    order = np.argsort(every["client"], kind="stable")
    rows = {name: values[order] for name, values in every.items()}
    borders = np.flatnonzero(np.diff(rows["client"], prepend=-1))
    lag_ns, could_start_ns, took_ns = _course(rows, borders, is_open=is_open)
    within = _in_window(rows)
    follows = np.concatenate([[False], within[:-1]])[: within.size]
    follows[borders] = False
    # Of the rate, the first of a turn is a part, too.
    firsts = within & (rows["attempt"] == 0)
    sent = firsts & ~rows["warmup"]
    lags = lag_ns[sent & (lag_ns >= 0)]
    spent_ns = {
        "gaps": int(lag_ns[sent & follows].sum()),
        "took": int(took_ns[~rows["warmup"]].sum()),
    }
    opens_ns = rows["intended_ns" if is_open else "start_ns"][firsts].min(initial=-_LONG_AGO_NS)
    ended_ns = rows["end_ns"][within].max(initial=_LONG_AGO_NS)

    def rate(closes: Integers) -> float | None:
        """Requests per second of the window, which begins when the first was due or sent.

        An open loop's window extends one interval beyond the last request, so that n requests on time have
        exactly the target rate, however few they are.
        """
        if not firsts.any():
            return None
        window_s = float(closes.max() - opens_ns) / _NS_PER_S
        if task.rate_per_s is not None:
            window_s += 1 / (share * task.rate_per_s)
        return int(firsts.sum()) / window_s if window_s > 0 else None

    # Between two requests of a mixed task there are others', which are no lag.
    known = lags.size > 0 and not task.mixed
    p50_ns, p99_ns = _quantiles_ns(lags) if known else (None, None)
    window_ns = int(ended_ns - opens_ns) if firsts.any() else 0
    total_ns = sum(spent_ns.values())
    return DriverFigures(
        requests=int(firsts.sum()),
        offered_per_s=rate(rows["start_ns"][firsts] if is_open else rows["end_ns"][within]),
        due_per_s=rate(rows["intended_ns"][firsts]) if is_open else None,
        possible_per_s=rate(could_start_ns[firsts]) if is_open else None,
        lag_p50_ns=p50_ns,
        lag_p99_ns=p99_ns,
        lag_max_ns=int(lags.max()) if known else None,
        think_share=spent_ns["gaps"] / total_ns if known and total_ns and not is_open else None,
        clients=borders.size,
        cpu_share=cpu_s / wall_s / workers if wall_s > 0 else None,
        workers=workers,
        window_s=window_ns / _NS_PER_S if window_ns else None,
        stopped_s=covered_ns(stops, int(opens_ns), int(ended_ns)) / _NS_PER_S if window_ns else 0.0,
    )


def start_late_ns(samples: Iterable[Columns], task: Task, start_ns: int) -> int | None:
    """Return by how much the first request of these clients was late, in ns; None if unknown.

    Args:
        samples: of some clients of that task, in chunks.
        task: the task.
        start_ns: the common start, on the clock of the samples.
    """
    rows = _joined(samples)
    if rows["start_ns"].size == 0 or (not task.throttled and task.ramp_up_time_period):
        return None
    first = int(rows["start_ns"].argmin())
    return int(rows["start_ns"][first]) - (int(rows["intended_ns"][first]) if task.throttled else start_ns)


def _quantiles_ns(lags_ns: Integers) -> tuple[int, int]:
    """The smallest lags, to the microsecond, that half and 99% of the requests stay within."""
    lags_us = (lags_ns + _NS_PER_US // 2) // _NS_PER_US
    p50, p99 = np.quantile(lags_us, (0.5, 0.99), method="inverted_cdf").tolist()
    return int(p50) * _NS_PER_US, int(p99) * _NS_PER_US


def _course(rows: Columns, borders: Integers, *, is_open: bool) -> tuple[Integers, Integers, Integers]:
    """Follow the requests of each client; `borders` are the rows where one begins.

    Given the measured response times and a driver that is never late, request i ends at
    E(i) = max(due(i), E(i - 1)) + t(i). Unrolled, with T(i) the sum of all t up to i, that is
    T(i) + max over j up to i of due(j) - T(j - 1): one cumulative maximum.

    Returns:
        Lag in nanoseconds and when each could have been sent, meaningless for retries, and how long each
        took, a retry with the back-off before it; all of shape (n,). The lag of a first request in a
        closed loop is -1: it follows none.
    """
    starts, ends, again = rows["start_ns"], rows["end_ns"], rows["attempt"] > 0
    before = np.concatenate([[_LONG_AGO_NS], ends[:-1]])[: ends.size]
    before[borders] = _LONG_AGO_NS
    due = np.where(again, _LONG_AGO_NS, rows["intended_ns"]) if is_open else np.full_like(ends, _LONG_AGO_NS)
    possible = np.maximum(due, before)
    lag_ns = np.where(possible == _LONG_AGO_NS, -1, np.maximum(starts - possible, 0))
    took_ns = ends - np.where(again, before, starts)
    could_start_ns = np.empty_like(ends)
    for own in np.split(np.arange(ends.size), borders)[1:]:
        since = np.cumsum(took_ns[own]) - took_ns[own]
        could_start_ns[own] = since + np.maximum.accumulate(due[own] - since)
    return lag_ns, could_start_ns, took_ns


def _in_window(rows: Columns) -> Mask:
    """Return which rows are measured, or the first of a turn, which is none but is followed by some."""
    return ~rows["warmup"] | (rows["turn"] > 0)
