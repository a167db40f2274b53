"""The figures of many nights, one series a variant, task and metric: flat arrays, one entry a fork."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from benchctl.results.nightly.model import SeriesKey


@dataclass(frozen=True, eq=False)
class Series:
    """One series; entries sorted by night, then fork. Nights without a value are simply not there.

    Attributes:
        key: which.
        unit: of the values.
        higher_is_better: which way is faster.
        nights: number of the night of each entry, shape (n,), int64.
        forks: number of the fork of each entry, shape (n,), int64.
        values: in the unit, positive and finite, shape (n,), float64.
    """

    key: SeriesKey
    unit: str
    higher_is_better: bool
    nights: npt.NDArray[np.int64]
    forks: npt.NDArray[np.int64]
    values: npt.NDArray[np.float64]
