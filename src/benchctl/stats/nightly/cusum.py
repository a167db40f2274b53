"""CUSUM of standardised values: small shifts that last, and since when."""

from typing import Final

import numpy as np

from benchctl.stats.arrays import Floats

SLACK: Final = 1.0
"""k, in SDs: shifts of twice as much are found soonest."""
LIMIT: Final = 5.0
"""h: with k = 1, an unchanged normal series of known mean and SD passes it once in some 56,000 nights."""


def rise(steps: Floats) -> tuple[float, int | None]:
    """Sum steps up, from 0 anew whenever the sum would fall below it (Page 1954).

    Args:
        steps: what values deviate by in one direction, less the slack, in order, shape (n,).

    Returns:
        The sum after the last step, and the place of the first step after it was last 0; None when it is 0.
    """
    # The sum that is kept at 0 is the plain one less the least that it has been, 0 at the start included.
    plain = np.concatenate(([0.0], np.cumsum(steps)))
    lowest = plain.size - 1 - int(np.argmin(plain[::-1]))
    height = float(plain[-1] - plain[lowest])
    return (height, lowest) if height > 0 else (0.0, None)
