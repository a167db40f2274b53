"""Changes in speed of one comparison, or of one over another, as a contrast over forks."""

from collections.abc import Iterable

import numpy as np

from benchctl.stats.analysis import Figures
from benchctl.stats.arrays import Floats
from benchctl.stats.contrast import Contrast, contrast
from benchctl.stats.experiment.model import ExperimentRow

_Values = dict[int, float]
"""Block -> value of its fork."""


def speed_of(row: ExperimentRow) -> Contrast | None:
    """By how much the contender is faster than the baseline, natural logarithm; None without a spread."""
    return _combined([(row, 1.0)])


def speed_over(row: ExperimentRow, than: ExperimentRow) -> Contrast | None:
    """By how much more the one contender is faster than the other: a difference of differences."""
    return _combined([(row, 1.0), (than, -1.0)])


def _combined(terms: Iterable[tuple[ExperimentRow, float]]) -> Contrast | None:
    """The weighted sum of changes in speed.

    Tasks of the same forks are no independent groups, and neither are forks of one block: their values are
    added up first. So what two comparisons have in common cancels, the speed of the host in a block as well.
    """
    terms = list(terms)
    blocked = all(row.blocked for row, _ in terms)
    groups_of: dict[tuple[str, str] | None, list[_Values]] = {}
    for row, weight in terms:
        towards_speed = weight if row.higher_is_better else -weight
        sides = zip((row.baseline, row.contender), row.figures, (-towards_speed, towards_speed), strict=True)
        for reference, figures, factor in sides:
            forks = None if blocked else (reference.measurement, reference.variant)
            groups_of.setdefault(forks, []).append({block: factor * log for block, log in _logs(figures)})
    groups = [_sums(values) for values in groups_of.values()]
    return contrast(groups, [1.0] * len(groups))


def _logs(figures: Figures) -> Iterable[tuple[int, float]]:
    for block, value in zip(figures.blocks, figures.values, strict=True):
        if value is not None and np.isfinite(value) and value > 0:
            yield block, float(np.log(value))


def _sums(values: list[_Values]) -> Floats:
    """Fork by fork or block by block, over those that have all of them."""
    common = sorted(set.intersection(*(set(one) for one in values)))
    return np.asarray([sum(one[block] for one in values) for block in common], dtype=np.float64)
