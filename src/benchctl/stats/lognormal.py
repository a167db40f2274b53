"""Spread of log-normal values: the coefficient of variation of them, and the SD of their logarithms."""

import math

_MOST_SD = 10.0  # of which the CV is 10^21


def cv_of(sd: float) -> float:
    """The CV, as a ratio, of values whose natural logarithms have this SD."""
    return math.sqrt(math.expm1(min(sd, _MOST_SD) ** 2))


def sd_of(cv: float) -> float:
    """The SD of the natural logarithms of values that have this CV, as a ratio."""
    return math.sqrt(math.log1p(cv**2))
