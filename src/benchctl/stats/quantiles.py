"""Quantiles of a fork's samples, those that no summary holds, of each task of it."""

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

import msgspec
import numpy as np
from scipy.special import betainc, betaincc, betainccinv, betaincinv

from benchctl.results.figures import Quantiles, TaskSummary
from benchctl.results.model import ForkRecord
from benchctl.results.plan import Place
from benchctl.results.samples import Columns, Outcome, select
from benchctl.stats.inference import Integers

_PROBABILITIES = (0.5, 0.9, 0.99)
_NS_PER_MS = 1_000_000

# Order statistics whose weights sum to less than this cannot move a double-precision result.
_NEGLIGIBLE_WEIGHT = 1e-17
# Where failed requests carry so much, the estimate depends on how slow they are taken to be.
_DECIDING_WEIGHT = 1e-3


def quantiles(samples: Integers, failed: int = 0) -> Quantiles | None:
    """Estimate p50, p90 and p99 of samples, shape (n,), in nanoseconds; None when there are none.

    Requests that `failed` have no sample, and rank above all that have one.
    """
    if samples.size == 0:
        return None
    ordered = np.sort(samples)
    return Quantiles(
        *(quantile(ordered, probability, failed) for probability in _PROBABILITIES),
        *(log_error(ordered, probability, failed) for probability in _PROBABILITIES),
    )


def quantile(ordered: Integers, probability: float, failed: int = 0) -> float | None:
    """Return one quantile by Harrell and Davis (Biometrika 69, 1982), in the unit of the samples.

    The same estimator as `scipy.stats.mstats.hdquantiles`, which evaluates a beta distribution at every
    sample; here only those that carry weight are looked at. What little weight failed requests carry goes to
    the greatest sample.

    Args:
        ordered: samples of the requests that succeeded, ascending, shape (n,).
        probability: between 0 and 1, both excluded.
        failed: requests that rank above all samples.

    Returns:
        None without samples, or where failed requests would carry a thousandth of the weight or more: then it
        has no upper bound.
    """
    if ordered.size == 0:
        return None
    n = ordered.size + failed
    a, b = (n + 1) * probability, (n + 1) * (1 - probability)
    if failed and betaincc(a, b, ordered.size / n) >= _DECIDING_WEIGHT:
        return None
    first = min(int(n * betaincinv(a, b, _NEGLIGIBLE_WEIGHT)), ordered.size - 1)
    last = min(math.ceil(n * betainccinv(a, b, _NEGLIGIBLE_WEIGHT)), ordered.size)
    up_to = betainc(a, b, np.arange(first, last + 1) / n)
    up_to[-1] = 1.0
    return float(np.diff(up_to) @ ordered[first:last])


def log_error(ordered: Integers, probability: float, failed: int = 0) -> float | None:
    """Return the standard error of ln(quantile): half of the interval between two order statistics.

    These are the ones whose ranks are a standard deviation of the binomial distribution from the quantile's.
    Of log-normal, exponential and two-state samples it is the SD of the Harrell-Davis estimate, or up to a
    third more. The arguments are those of `quantile`.

    Returns:
        None where a rank lies beyond the samples: fewer than 1 / (1 - probability), or too many failed.
    """
    requests = ordered.size + failed
    if requests == 0:
        return None
    reach = math.sqrt(probability * (1 - probability) / requests)
    ranks = requests * np.array([probability - reach, probability + reach])
    if not (ranks[0] > 0 and ranks[1] < ordered.size):
        return None
    low, high = np.quantile(ordered, np.clip((ranks - 0.5) / (ordered.size - 1), 0, 1)).tolist()
    return math.log(high / low) / 2 if low > 0 else None


class MoreQuantiles(Quantiles, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Quantiles with further ones, in nanoseconds; never written to a record."""

    # `more`, `errors`: probability -> quantile, and standard error of its natural logarithm.
    more: dict[float, float | None]
    errors: dict[float, float | None]

    def at(self, probability: float) -> float | None:
        """Return the requested value, whichever it is."""
        return self.more.get(probability, super().at(probability))

    def error_at(self, probability: float) -> float | None:
        """Return the requested value, whichever it is."""
        return self.errors.get(probability, super().error_at(probability))


# Field of `TaskSummary` -> its values in successful operations, nanoseconds; unknown ones left out.
TIMES: Mapping[str, Callable[[Columns], Integers]] = {
    "service_time": lambda ok: ok["end_ns"] - ok["start_ns"],
    "latency": lambda ok: ok["end_ns"] - ok["intended_ns"],
    "took": lambda ok: ok["took_ms"][ok["took_ms"] >= 0].astype(np.int64) * _NS_PER_MS,
}


def requantiled(fork: ForkRecord, chunks: Iterable[Columns], quantiles: Collection[float]) -> ForkRecord:
    """Return the same fork, whose summaries know further quantiles of their times.

    The requests are those of `summarise`: measured operations, without the parts of longer ones.

    Args:
        fork: a finished fork.
        chunks: its samples, with the columns of `results.samples.CHART_COLUMNS`.
        quantiles: probabilities between 0 and 1, both excluded.
    """
    times: dict[Place, list[dict[str, Integers]]] = {}
    for place, rows in by_place(chunks):
        ok = select(rows, ~rows["warmup"] & (rows["part"] == 0) & (rows["outcome"] == Outcome.OK))
        times.setdefault(place, []).append({field: of(ok) for field, of in TIMES.items()})
    summaries = tuple(
        _with_more(summary, times.get((summary.schedule, summary.task), []), quantiles)
        for summary in fork.summaries
    )
    return msgspec.structs.replace(fork, summaries=summaries)


def by_place(chunks: Iterable[Columns]) -> Iterator[tuple[Place, Columns]]:
    """Yield the rows of samples by (schedule, task), chunk by chunk."""
    for chunk in chunks:
        keys = chunk["schedule"].astype(np.int64) << 16 | chunk["task"]
        for key in np.unique(keys).tolist():
            yield (key >> 16, key & 0xFFFF), select(chunk, keys == key)


def _with_more(
    summary: TaskSummary, times: list[dict[str, Integers]], asked: Collection[float]
) -> TaskSummary:
    """A closed loop has no quantiles of latency."""
    more, failed = {}, summary.unanswered
    for field in TIMES if times else ():
        known = getattr(summary, field)
        if known is not None:
            ordered = np.sort(np.concatenate([chunk[field] for chunk in times]))
            more[field] = MoreQuantiles(
                **msgspec.structs.asdict(known),
                more={value: quantile(ordered, value, failed) for value in asked},
                errors={value: log_error(ordered, value, failed) for value in asked},
            )
    return msgspec.structs.replace(summary, **more)
