"""Permutation tests over forks: a cross-check of the t-test that assumes no distribution."""

import math

import msgspec
import numpy as np

from benchctl.stats.arrays import Floats

# Up to 8 forks a side, or 14 pairs, every arrangement is looked at; above, this many drawn with a fixed seed.
_MOST_ARRANGEMENTS = 20_000
_RESAMPLES = 9_999
_SEED = 20_240_301


class PermutationResult(msgspec.Struct, frozen=True):
    """What the test says.

    Attributes:
        p: two-sided.
        least: the smallest p that this number of forks can give.
        exact: every arrangement was looked at.
    """

    p: float
    least: float
    exact: bool


def permutation_p(baseline: Floats, contender: Floats, *, paired: bool) -> PermutationResult:
    """Test the difference of means by rearranging forks.

    Args:
        baseline: one value a fork, shape (n,), n >= 2; usually logarithms.
        contender: the same, shape (m,); (n,) and in the order of the pairs when paired.
        paired: rearrange within pairs only.
    """
    # It takes most of a second to load, which reports of single forks need not wait for.
    from scipy.stats import permutation_test  # noqa: PLC0415 - see above

    n, m = baseline.size, contender.size
    arrangements = 2**n if paired else math.comb(n + m, n)
    exact = arrangements <= _MOST_ARRANGEMENTS
    found = permutation_test(
        (contender, baseline),
        _difference_of_means,
        permutation_type="samples" if paired else "independent",
        vectorized=True,
        n_resamples=_MOST_ARRANGEMENTS if exact else _RESAMPLES,
        rng=np.random.default_rng(_SEED),
    )
    least = 2 / (arrangements if exact else _RESAMPLES + 1)
    return PermutationResult(float(found.pvalue), min(1.0, least), exact)


def _difference_of_means(left: Floats, right: Floats, axis: int) -> Floats:
    return np.asarray(np.mean(left, axis=axis) - np.mean(right, axis=axis))
