"""Arrays that statistics are made of, whose shapes docstrings say, and values of forks on the log scale."""

import math

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


def log_points(values: Floats, *, additive: bool) -> Floats:
    """One value a fork as tests on the log scale take it, shape (n,).

    Of values that may be 0 that is ln of their arithmetic mean, plus how far each is from it as a share of
    it: the mean of these is ln of the mean, and their SD the CV (the delta method). They are not independent
    of each other, so that no sequential test may take them one by one. Where all are 0, so is no logarithm:
    they are minus infinity.
    """
    if not additive:
        return np.log(values)
    mean = float(values.mean()) if values.size else 0.0
    return math.log(mean) + values / mean - 1 if mean > 0 else np.full(values.shape, -math.inf)
