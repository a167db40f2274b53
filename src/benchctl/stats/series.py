"""One side of a comparison: the values of its forks, and what they say on their own."""

from collections.abc import Sequence

import msgspec
import numpy as np

from benchctl.stats.arrays import Floats, Mask
from benchctl.stats.builds import Nested, nested


class Series(msgspec.Struct, frozen=True):
    """Values of one variant's forks.

    Attributes:
        logs: natural logarithms of the usable values, shape (n,).
        missing: values that are none: not positive or not finite.
        kept: which of all values the logarithms are of, in the same order; shape (n + those left out,).
    """

    logs: Floats
    missing: int
    kept: Mask

    @classmethod
    def of(cls, values: Sequence[float]) -> "Series":
        """Keep what is positive and finite, count the rest."""
        raw = np.asarray(values, dtype=np.float64)
        usable = _usable(raw)
        return cls(np.log(raw[usable]), int((~usable).sum()), usable)

    @classmethod
    def pairs(cls, left: Sequence[float], right: Sequence[float]) -> tuple["Series", "Series"]:
        """Keep the pairs of which both values are usable; each side counts its own missing ones.

        Raises:
            ValueError: the sides differ in length.
        """
        if len(left) != len(right):
            raise ValueError(f"{len(left)} values cannot be paired with {len(right)}")
        sides = [np.asarray(values, dtype=np.float64) for values in (left, right)]
        usable = [_usable(raw) for raw in sides]
        both = usable[0] & usable[1]
        first, second = (
            cls(np.log(raw[both]), int((~own).sum()), both) for raw, own in zip(sides, usable, strict=True)
        )
        return first, second

    @property
    def forks(self) -> int:
        """Usable values."""
        return self.logs.size

    @property
    def value(self) -> float | None:
        """Geometric mean; None without values."""
        return float(np.exp(self.logs.mean())) if self.forks else None

    @property
    def cv_percent(self) -> float | None:
        """SD over mean of the values themselves; None under two."""
        if self.forks <= 1:
            return None
        scaled = np.exp(self.logs - self.logs.max())  # relative to the largest, so that nothing overflows
        return float(100 * scaled.std(ddof=1) / scaled.mean())

    def nested(self, builds: Sequence[int]) -> Nested:
        """By index build.

        Args:
            builds: of each value that the series was made of, those left out included.
        """
        return nested(self.logs, self.own(builds))

    def own(self, builds: Sequence[int]) -> list[int]:
        """The builds of the values that were kept."""
        return [build for build, kept in zip(builds, self.kept.tolist(), strict=True) if kept]


def _usable(raw: Floats) -> Mask:
    return np.isfinite(raw) & (raw > 0)
