"""Quantiles of one fork's samples: the Harrell-Davis estimator, and linear interpolation beside it."""

import numpy as np
import numpy.typing as npt
from scipy.special import betainc, betaincc, betainccinv, betaincinv

from benchctl.results.figures import Quantiles
from benchctl.stats.arrays import Floats, Integers
from benchctl.stats.counts import ValueCounts

_PROBABILITIES = (0.5, 0.9, 0.99)

# Order statistics whose weights sum to less than this cannot move a double-precision result.
_NEGLIGIBLE_WEIGHT = 1e-17


def quantiles(samples: ValueCounts) -> Quantiles | None:
    """Estimate p50, p90 and p99.

    Args:
        samples: in nanoseconds.

    Returns:
        The quantiles in nanoseconds, of all samples as they are counted; None when there are none.
    """
    if samples.size == 0:
        return None
    values, counts = samples.pairs()
    up_to = np.cumsum(counts)
    smooth = [_harrell_davis(values, up_to, probability) for probability in _PROBABILITIES]
    return Quantiles(*smooth, *linear_quantiles(values, counts, _PROBABILITIES).tolist())


def quantile(samples: ValueCounts, probability: float) -> float | None:
    """One quantile by Harrell and Davis, in the unit of the samples; None when there are none.

    Args:
        samples: what it is of.
        probability: between 0 and 1, both excluded.
    """
    if samples.size == 0:
        return None
    values, counts = samples.pairs()
    return _harrell_davis(values, np.cumsum(counts), probability)


def median(samples: ValueCounts) -> float:
    """The middle sample, or the mean of the two in the middle.

    Args:
        samples: at least one.
    """
    return float(linear_quantiles(*samples.pairs(), 0.5))


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


def _harrell_davis(values: Integers, up_to: Integers, probability: float) -> float:
    """The weighted sum of order statistics of Harrell and Davis (Biometrika 69, 1982).

    The same estimator as `scipy.stats.mstats.hdquantiles`. That one evaluates a beta distribution at every
    sample, which takes most of a second for a million. Samples that are equal share one weight, the beta
    distribution's mass over all their ranks, and only those that carry weight are looked at.

    Args:
        values: distinct samples, ascending, shape (k,).
        up_to: samples that are at most so large, shape (k,); the last is n, the number of samples.
        probability: between 0 and 1, both excluded.
    """
    n = int(up_to[-1])
    a, b = (n + 1) * probability, (n + 1) * (1 - probability)
    first = int(np.searchsorted(up_to, n * betaincinv(a, b, _NEGLIGIBLE_WEIGHT), side="right"))
    last = int(np.searchsorted(up_to, n * betainccinv(a, b, _NEGLIGIBLE_WEIGHT)))
    carrying = slice(first, last + 1)
    edges = np.concatenate([[0], up_to[carrying]]) / n  # what lies before the first carries nothing
    # Each difference is taken in the tail where it does not cancel; one interval has an end in either.
    middle = np.searchsorted(edges, probability, side="right")
    lower, upper = betainc(a, b, edges[:middle]), betaincc(a, b, edges[middle:])
    weights = np.concatenate([np.diff(lower), [1 - lower[-1] - upper[0]], -np.diff(upper)])
    return float(weights @ values[carrying])
