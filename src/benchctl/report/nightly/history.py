"""A series as its charts want it: one value a night, with the range of its forks."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from benchctl.results.nightly.model import Series, SeriesKey
from benchctl.stats.nightly.nights import nights_of


@dataclass(frozen=True, eq=False)
class History:
    """One series, night by night; nights without a value are not there.

    Attributes:
        key: which.
        unit: of the values.
        higher_is_better: which way is faster.
        numbers: of the nights, ascending, shape (n,), int64.
        means: geometric means over the forks of a night, in the unit, shape (n,), float64.
        lows, highs: least and greatest of the forks, shape (n,), float64.
        forks: how many there are, shape (n,), int64.
    """

    key: SeriesKey
    unit: str
    higher_is_better: bool
    numbers: npt.NDArray[np.int64]
    means: npt.NDArray[np.float64]
    lows: npt.NDArray[np.float64]
    highs: npt.NDArray[np.float64]
    forks: npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Task:
    """All that is followed of one task.

    Attributes:
        challenge, task: as in the keys of its series.
        metrics: machine name -> its histories, one a variant, watched ones before canaries.
    """

    challenge: str
    task: str
    metrics: dict[str, list[History]]


def history_of(series: Series) -> History:
    """Summarise the forks of every night."""
    nights = nights_of(series)
    starts = np.cumsum(nights.counts) - nights.counts
    some = nights.counts.size > 0
    return History(
        key=series.key,
        unit=series.unit,
        higher_is_better=series.higher_is_better,
        numbers=nights.numbers,
        means=np.exp(nights.means),
        lows=np.minimum.reduceat(series.values, starts) if some else series.values,
        highs=np.maximum.reduceat(series.values, starts) if some else series.values,
        forks=nights.counts,
    )


def tasks_of(every: Iterable[Series], variants: Sequence[str]) -> list[Task]:
    """Series by task and metric, in the order in which they come; variants in the order that is given."""
    places = {label: place for place, label in enumerate(variants)}
    found: dict[tuple[str, str], Task] = {}
    for series in every:
        key = series.key
        task = found.setdefault((key.challenge, key.task), Task(key.challenge, key.task, {}))
        task.metrics.setdefault(key.metric, []).append(history_of(series))
    for task in found.values():
        _put_in_order(task.metrics)
        for histories in task.metrics.values():
            histories.sort(key=lambda one: (places.get(one.key.variant, len(places)), one.key.variant))
    return list(found.values())


def _put_in_order(metrics: dict[str, list[History]]) -> None:
    """Rates before times; else as they came."""
    ordered = sorted(metrics.items(), key=lambda one: not one[1][0].higher_is_better)
    metrics.clear()
    metrics.update(ordered)
