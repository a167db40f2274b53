"""Quantiles of a fork's samples, those that no summary holds, of each task of it."""

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

import msgspec
import numpy as np
import numpy.typing as npt
from scipy.special import betainc, betaincc, betainccinv, betaincinv

from benchctl.results.figures import Quantiles, TaskSummary
from benchctl.results.model import ForkRecord
from benchctl.results.plan import Place
from benchctl.results.samples import Columns, Outcome, select
from benchctl.stats.arrays import Floats, Integers, ValueCounts

_PROBABILITIES = (0.5, 0.9, 0.99)
_NS_PER_MS = 1_000_000

# Order statistics whose weights sum to less than this cannot move a double-precision result.
_NEGLIGIBLE_WEIGHT = 1e-17
# Where failed requests carry so much, the estimate depends on how slow they are taken to be.
_DECIDING_WEIGHT = 1e-3


def quantiles(samples: ValueCounts, failed: int = 0) -> Quantiles | None:
    """Estimate p50, p90 and p99 of samples in nanoseconds; None when there are none.

    Requests that `failed` have no sample, and rank above all that have one.
    """
    if samples.size == 0:
        return None
    estimates = [
        (quantile(samples, probability, failed), log_error(samples, probability, failed))
        for probability in _PROBABILITIES
    ]
    return Quantiles(*(value for value, _ in estimates), *(error for _, error in estimates))


def quantile(samples: ValueCounts, probability: float, failed: int = 0) -> float | None:
    """Return one quantile by Harrell and Davis, in the unit of the samples.

    Args:
        samples: of the requests that succeeded.
        probability: between 0 and 1, both excluded.
        failed: requests that rank above all samples.

    Returns:
        None without samples, or where failed requests would carry a thousandth of the weight or more: then it
        has no upper bound.
    """
    if samples.size == 0:
        return None
    values, counts = samples.pairs()
    return _harrell_davis(values, np.cumsum(counts), probability, failed)


def log_error(samples: ValueCounts, probability: float, failed: int = 0) -> float | None:
    """Return the standard error of ln(quantile): half of the interval between two order statistics.

    These are the ones whose ranks are a standard deviation of the binomial distribution from the quantile's.
    Of log-normal, exponential and two-state samples it is the SD of the Harrell-Davis estimate, or up to a
    third more. The arguments are those of `quantile`.

    Returns:
        None where a rank lies beyond the samples: fewer than 1 / (1 - probability), or too many failed.
    """
    requests = samples.size + failed
    if requests == 0:
        return None
    reach = math.sqrt(probability * (1 - probability) / requests)
    ranks = requests * np.array([probability - reach, probability + reach])
    if not (ranks[0] > 0 and ranks[1] < samples.size):
        return None
    shares = np.clip((ranks - 0.5) / (samples.size - 1), 0, 1)
    low, high = linear_quantiles(*samples.pairs(), shares).tolist()
    return math.log(high / low) / 2 if low > 0 else None


def linear_quantiles(values: Integers, counts: Integers, probabilities: npt.ArrayLike) -> Floats:
    """Quantiles by linear interpolation between order statistics, as `numpy.quantile` has them by default.

    Args:
        values: distinct values, ascending, shape (k,); at least one.
        counts: how often each occurred, shape (k,).
        probabilities: from 0 to 1, shape (m,).

    Returns:
        Shape (m,), in the unit of the values.
    """
    up_to = np.cumsum(counts)
    last = int(up_to[-1]) - 1
    ranks = np.asarray(probabilities, dtype=np.float64) * last
    below = np.floor(ranks).astype(np.int64)
    low = values[np.searchsorted(up_to, below, side="right")].astype(np.float64)
    high = values[np.searchsorted(up_to, np.minimum(below + 1, last), side="right")]
    return low + (ranks - below) * (high - low)


def _harrell_davis(values: Integers, up_to: Integers, probability: float, failed: int) -> float | None:
    """The weighted sum of order statistics of Harrell and Davis (Biometrika 69, 1982).

    The same estimator as `scipy.stats.mstats.hdquantiles`. That one evaluates a beta distribution at every
    sample, which takes most of a second for a million. Samples that are equal share one weight, the beta
    distribution's mass over all their ranks, and only those that carry weight are looked at. What little
    weight failed requests carry goes to the greatest sample.

    Args:
        values: distinct samples, ascending, shape (k,).
        up_to: samples that are at most so large, shape (k,); the last is their number.
        probability: between 0 and 1, both excluded.
        failed: further samples that are larger; None where they decide.
    """
    n = int(up_to[-1]) + failed
    a, b = (n + 1) * probability, (n + 1) * (1 - probability)
    if failed and betaincc(a, b, up_to[-1] / n) >= _DECIDING_WEIGHT:
        return None
    first = int(np.searchsorted(up_to, n * betaincinv(a, b, _NEGLIGIBLE_WEIGHT), side="right"))
    last = int(np.searchsorted(up_to, n * betainccinv(a, b, _NEGLIGIBLE_WEIGHT)))
    carrying = slice(first, last + 1)
    edges = np.concatenate([[0], up_to[carrying]]) / n  # what lies before the first carries nothing
    # Each difference is taken in the tail where it does not cancel; one interval has an end in either.
    middle = np.searchsorted(edges, probability, side="right")
    lower, upper = betainc(a, b, edges[:middle]), betaincc(a, b, edges[middle:])
    weights = np.concatenate([np.diff(lower), [1 - lower[-1] - upper[0]], -np.diff(upper)])
    weights[-1] += upper[-1]
    return float(weights @ values[carrying])


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
    # No answer takes no time: 0 is what a recorder keeps when it does not know.
}

_Times = dict[str, ValueCounts]


def requantiled(fork: ForkRecord, chunks: Iterable[Columns], quantiles: Collection[float]) -> ForkRecord:
    """Return the same fork, whose summaries know further quantiles of their times.

    The requests are those of `summarise`: measured operations, without the parts of longer ones.
    Memory is bounded by a chunk and the number of distinct times.

    Args:
        fork: a finished fork.
        chunks: its samples, with the columns of `results.samples.CHART_COLUMNS`.
        quantiles: probabilities between 0 and 1, both excluded.
    """
    times: dict[Place, _Times] = {}
    for place, rows in by_place(chunks):
        ok = select(rows, ~rows["warmup"] & (rows["part"] == 0) & (rows["outcome"] == Outcome.OK))
        for field, counts in times.setdefault(place, {field: ValueCounts() for field in TIMES}).items():
            counts.add(TIMES[field](ok))
    summaries = tuple(
        _with_more(summary, times.get((summary.schedule, summary.task)), quantiles)
        for summary in fork.summaries
    )
    return msgspec.structs.replace(fork, summaries=summaries)


def by_place(chunks: Iterable[Columns]) -> Iterator[tuple[Place, Columns]]:
    """Yield the rows of samples by (schedule, task), chunk by chunk."""
    for chunk in chunks:
        keys = chunk["schedule"].astype(np.int64) << 16 | chunk["task"]
        for key in np.unique(keys).tolist():
            yield (key >> 16, key & 0xFFFF), select(chunk, keys == key)


def _with_more(summary: TaskSummary, times: _Times | None, quantiles: Collection[float]) -> TaskSummary:
    """A closed loop has no quantiles of latency."""
    if times is None:
        return summary
    failed = summary.unanswered
    more = {
        field: MoreQuantiles(
            **msgspec.structs.asdict(quantiles_),
            more={value: quantile(counts, value, failed) for value in quantiles},
            errors={value: log_error(counts, value, failed) for value in quantiles},
        )
        for field, counts in times.items()
        if (quantiles_ := getattr(summary, field)) is not None
    }
    return msgspec.structs.replace(summary, **more)
