"""The difference of two variants on the log scale: its t-test, its intervals, and what it could see."""

import warnings

import msgspec
import numpy as np

from benchctl.stats.arrays import Floats
from benchctl.stats.multiplicity import confidence_in_spite_of_looks, p_in_spite_of_looks
from benchctl.stats.power import detectable

_LEAST_FOR_SPREAD = 2

# Logarithms of equal values differ by rounding alone; below this the spread is no measurement.
_NO_SPREAD = 1e-12


class Spread(msgspec.Struct, frozen=True):
    """What more than one fork a side adds to an effect; everything in natural logarithms.

    Attributes:
        p: two-sided.
        interval95: low and high.
        interval90: low and high; inside the margin means equivalence at 5 % (two one-sided tests).
        error: standard error of the effect.
        mde: the effect that this test finds with 80 % power, by its own degrees of freedom: Welch's are fewer
            than n + m - 2, the more so the more the sides differ in spread or number.
    """

    p: float
    interval95: tuple[float, float]
    interval90: tuple[float, float]
    error: float
    mde: float


def spread(baseline: Floats, contender: Floats, *, paired: bool, looks: int = 1) -> Spread | None:
    """Test contender - baseline.

    Args:
        baseline: ln of one value a fork, shape (n,).
        contender: the same, shape (m,); (n,) and in the order of the pairs when paired.
        paired: use the differences within pairs.
        looks: at the figures so far, or `EVERY_BLOCK`: p and intervals hold in spite of them.

    Returns:
        None when a side has under two forks, or nothing varies.
    """
    if min(baseline.size, contender.size) < _LEAST_FOR_SPREAD:
        return None
    error = _standard_error(baseline, contender, paired=paired)
    if error < _NO_SPREAD:
        return None
    # It takes most of a second to load, which reports of single forks need not wait for.
    from scipy.stats import ttest_ind, ttest_rel  # noqa: PLC0415 - see above

    with warnings.catch_warnings():
        # Equal values on one side alone are no loss of precision: the spread of the other side still counts.
        warnings.filterwarnings("ignore", "Precision loss", RuntimeWarning)
        found = ttest_rel(contender, baseline) if paired else ttest_ind(contender, baseline, equal_var=False)
    of95, of90 = (confidence_in_spite_of_looks(one, looks) for one in (0.95, 0.90))
    wide, narrow = found.confidence_interval(of95), found.confidence_interval(of90)
    return Spread(
        p=p_in_spite_of_looks(float(found.pvalue), looks),
        interval95=(float(wide.low), float(wide.high)),
        interval90=(float(narrow.low), float(narrow.high)),
        error=error,
        mde=detectable(float(found.df), alpha=1 - of95) * error,
    )


def _standard_error(baseline: Floats, contender: Floats, *, paired: bool) -> float:
    if paired:
        return float((contender - baseline).std(ddof=1) / np.sqrt(baseline.size))
    squares = contender.var(ddof=1) / contender.size + baseline.var(ddof=1) / baseline.size
    return float(np.sqrt(squares))
