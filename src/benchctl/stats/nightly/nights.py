"""A series night by night: the mean of ln over a night's forks, their spread and number."""

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from benchctl.results.nightly.model import Series
from benchctl.stats.arrays import Floats, Integers


@dataclass(frozen=True, eq=False)
class Nights:
    """One entry a night that has a value, by number; everything in natural logarithms.

    Attributes:
        numbers: of the nights, ascending, shape (n,).
        means: over the night's forks, shape (n,).
        squares: sum of squared deviations of the forks from their night's mean, shape (n,).
        counts: forks, at least 1, shape (n,).
    """

    numbers: Integers
    means: Floats
    squares: Floats
    counts: Integers

    def places_of(self, numbers: Collection[int]) -> Integers:
        """Where these nights are, ascending; those that have no value are passed over."""
        wanted = np.unique(np.fromiter(numbers, np.int64, len(numbers)))
        places = np.searchsorted(self.numbers, wanted)
        inside = places < self.numbers.size
        places, wanted = places[inside], wanted[inside]
        found: Integers = places[self.numbers[places] == wanted]
        return found

    @property
    def sds(self) -> Floats:
        """SD of the forks of every night, shape (n,); not a number where there is one fork."""
        freedom = self.counts - 1
        sds: Floats = np.sqrt(
            np.divide(self.squares, freedom, out=np.full(freedom.shape, np.nan), where=freedom > 0)
        )
        return sds

    def fork_sd(self, places: Integers | None = None) -> float | None:
        """SD from fork to fork, pooled within nights.

        Args:
            places: of the nights that count; None for all.

        Returns:
            None where no night has two forks.
        """
        squares = self.squares if places is None else self.squares[places]
        counts = self.counts if places is None else self.counts[places]
        freedom = int((counts - 1).sum())
        return float(np.sqrt(squares.sum() / freedom)) if freedom else None


def nights_of(series: Series) -> Nights:
    """Sum a series up night by night, vectorised; a series without entries has no nights."""
    if series.nights.size == 0:
        empty = np.empty(0)
        return Nights(series.nights, empty, empty, series.nights)
    logs = np.log(series.values)
    starts = np.flatnonzero(np.diff(series.nights, prepend=series.nights[0] - 1))
    counts = np.diff(starts, append=series.nights.size)
    means = np.add.reduceat(logs, starts) / counts
    squares = np.add.reduceat((logs - np.repeat(means, counts)) ** 2, starts)
    return Nights(series.nights[starts], means, squares, counts)
