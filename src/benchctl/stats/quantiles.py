"""Quantiles of one fork's samples: the Harrell-Davis estimator, and linear interpolation beside it."""

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import betainc, betaincc, betainccinv, betaincinv

from benchctl.results.model import Quantiles

_PROBABILITIES = (0.5, 0.9, 0.99)

# Order statistics whose weights sum to less than this cannot move a double-precision result.
_NEGLIGIBLE_WEIGHT = 1e-17


def quantiles(values: npt.NDArray[Any]) -> Quantiles | None:
    """Estimate p50, p90 and p99.

    Args:
        values: samples of shape (n,), in nanoseconds and any order.

    Returns:
        The quantiles in nanoseconds; None when there are no samples.
    """
    if values.size == 0:
        return None
    ordered = np.sort(values.astype(np.float64))
    smooth = [_harrell_davis(ordered, probability) for probability in _PROBABILITIES]
    linear = [float(value) for value in np.quantile(ordered, _PROBABILITIES)]
    return Quantiles(*smooth, *linear)


def _harrell_davis(ordered: npt.NDArray[np.float64], probability: float) -> float:
    """The weighted sum of order statistics of Harrell and Davis (Biometrika 69, 1982).

    The same estimator as `scipy.stats.mstats.hdquantiles`. That one evaluates a beta distribution at every
    sample, which takes most of a second for a million; here only the order statistics that carry weight are
    looked at, a few thousand of the million.

    Args:
        ordered: samples of shape (n,), ascending, n >= 1.
        probability: between 0 and 1, both excluded.
    """
    n = ordered.size
    a, b = (n + 1) * probability, (n + 1) * (1 - probability)
    first = int(np.floor(n * betaincinv(a, b, _NEGLIGIBLE_WEIGHT)))
    last = int(np.ceil(n * betainccinv(a, b, _NEGLIGIBLE_WEIGHT)))
    edges = np.arange(first, last + 1) / n
    lower, upper = betainc(a, b, edges), betaincc(a, b, edges)
    # Each difference is taken in the tail where it does not cancel.
    weights = np.where(edges[1:] <= probability, np.diff(lower), -np.diff(upper))
    return float(weights @ ordered[first:last])
