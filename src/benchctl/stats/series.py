"""One side of a comparison: the values of its forks, and what they say on their own."""

from collections.abc import Sequence

import msgspec
import numpy as np
import numpy.typing as npt


class Series(msgspec.Struct, frozen=True):
    """Values of one variant's forks.

    Attributes:
        logs: natural logarithms of the usable values, shape (n,).
        missing: values that are none: not positive or not finite.
    """

    logs: npt.NDArray[np.float64]
    missing: int = 0

    @classmethod
    def of(cls, values: Sequence[float]) -> "Series":
        """Keep what is positive and finite, count the rest."""
        raw = np.asarray(values, dtype=np.float64)
        usable = _usable(raw)
        return cls(np.log(raw[usable]), int((~usable).sum()))

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
            cls(np.log(raw[both]), int((~own).sum())) for raw, own in zip(sides, usable, strict=True)
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


def _usable(raw: npt.NDArray[np.float64]) -> npt.NDArray[np.bool_]:
    return np.isfinite(raw) & (raw > 0)
