"""The data of a suite's pages: its nights, and the history of its figures task by task."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Final

import msgspec
import numpy as np
import numpy.typing as npt

from benchctl.nightly.model import (
    Alarm,
    Event,
    NightRecord,
    Raised,
    Recovered,
    Role,
    Series,
    SeriesKey,
    TaskProfile,
    alarms_of,
)
from benchctl.nightly.screening import Nights, nights_of
from benchctl.stats.arrays import Floats


@dataclass(frozen=True, eq=False)
class History:
    """A series, night by night; nights without a value are not there."""

    key: SeriesKey
    unit: str
    higher_is_better: bool
    numbers: npt.NDArray[np.int64]  # of the nights, ascending, shape (n,), int64
    # Geometric means over the forks of a night (arithmetic ones where they may be 0), in the unit, shape
    # (n,), float64.
    means: npt.NDArray[np.float64]
    lows: npt.NDArray[np.float64]  # least and greatest of the forks, shape (n,), float64
    highs: npt.NDArray[np.float64]
    forks: npt.NDArray[np.int64]  # how many there are, shape (n,), int64


@dataclass(frozen=True, eq=False)
class Task:
    """Series of one task."""

    challenge: str  # as in the keys of its series
    task: str
    # Machine name -> its histories, one a variant, watched ones before canaries.
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
    """Return series by task and metric, in the order in which they come; variants in the given order."""
    places = {label: place for place, label in enumerate(variants)}
    tasks: dict[tuple[str, str], Task] = {}
    for series in every:
        key = series.key
        task = tasks.setdefault((key.challenge, key.task), Task(key.challenge, key.task, {}))
        task.metrics.setdefault(key.metric, []).append(history_of(series))
    for task in tasks.values():
        # Rates before times; else as they came.
        ordered = sorted(task.metrics.items(), key=lambda one: not one[1][0].higher_is_better)
        task.metrics.clear()
        task.metrics.update(ordered)
        for histories in task.metrics.values():
            histories.sort(
                key=lambda history: (places.get(history.key.variant, len(places)), history.key.variant)
            )
    return list(tasks.values())


# Of the styles of charts, grey is the canaries': what never changes should look like it.
_CANARY_STYLE = 4
_WATCHED_STYLES = (0, 1, 2, 3, 5)


@dataclass(frozen=True, eq=False)
class SuitePages:
    """A suite with all its nights."""

    name: str  # of the suite; also the name of its folder
    title: str  # what people call it; the name where that is empty
    nights: Sequence[NightRecord]
    series: Sequence[Series]  # every series, in the order in which tasks and metrics are to be shown
    events: Sequence[Event]  # the log of alarms and annotations
    # Metric -> relative difference that does not matter in practice.
    margins: Mapping[str, float] = field(default_factory=dict)
    profiles: Callable[[str], Sequence[TaskProfile]] = lambda _: ()  # those of a night, by its id

    @property
    def heading(self) -> str:
        """Name for readers."""
        return self.title or self.name

    @cached_property
    def numbers(self) -> dict[str, int]:
        """Id of a night -> its number."""
        return {night.id: night.number for night in self.nights}

    @cached_property
    def roles(self) -> dict[str, Role]:
        """Label of a variant -> its role, as of the newest night that has it; watched ones first."""
        by_label: dict[str, Role] = {}
        for night in reversed(self.nights):
            for variant in night.variants:
                by_label.setdefault(variant.label, variant.role)
        for series in self.series:
            by_label.setdefault(series.key.variant, "watched")
        return dict(sorted(by_label.items(), key=lambda one: one[1] == "canary"))

    @cached_property
    def styles(self) -> dict[str, int]:
        """Label of a variant -> position of its style in `charts.theme`."""
        watched = [label for label, role in self.roles.items() if role == "watched"]
        return {
            label: _WATCHED_STYLES[watched.index(label) % len(_WATCHED_STYLES)]
            if role == "watched"
            else _CANARY_STYLE
            for label, role in self.roles.items()
        }

    @cached_property
    def tasks(self) -> list[Task]:
        """Every task with its histories."""
        return tasks_of(self.series, list(self.roles))

    @cached_property
    def challenges(self) -> int:
        """Number of challenges: with several, task names include theirs."""
        return len({task.challenge for task in self.tasks})

    @cached_property
    def alarms(self) -> tuple[Alarm, ...]:
        """Every alarm as it stands."""
        return alarms_of(self.events)

    @cached_property
    def _of_nights(self) -> dict[str, list[Event]]:
        by_night: dict[str, list[Event]] = {}
        for event in self.events:
            if isinstance(event, Raised | Recovered):
                by_night.setdefault(event.night, []).append(event)
        return by_night

    def events_of(self, night: NightRecord) -> list[Event]:
        """Return what a night raised and what recovered in it."""
        return self._of_nights.get(night.id, [])

    def named(self, label: str) -> str:
        """Return a variant's name in charts, where a canary is marked as one."""
        silent = self.roles.get(label) == "canary" and "canary" not in label
        return f"{label} (canary)" if silent else label


# Change points of a series, by the statistic of E-divisive: pages draw them, and they decide nothing.

LEAST_NIGHTS: Final = 20
LEAST_NIGHTS_OF_LEVEL: Final = 5
MAGNITUDE: Final = 0.03

# Greatest Q-hat in mean distances of two nights: one unchanged series in a thousand has more.
_LIMIT: Final = 9.0
# Values at which distribution functions are compared: all of them up to so many, else as many quantiles.
_GRID: Final = 64


class ChangePoint(msgspec.Struct, frozen=True):
    """Boundary between two levels."""

    night: int  # number of the first night of the new level
    before_log: float  # mean ln over the nights of the level before and of the new one
    after_log: float


def change_points(nights: Nights) -> tuple[ChangePoint, ...]:
    """Cut a series where Q-hat is greatest, cut the parts again, and keep changes of 3% and more.

    Matteson and James, Journal of the American Statistical Association 109, 2014, with an exponent of 1 and a
    limit in place of their permutation test. A host that drifts gives change points, too.

    Returns:
        Ascending; none under 20 nights, or where a night was 0 in all forks.
    """
    means = nights.means
    if means.size < LEAST_NIGHTS or not np.isfinite(means).all():
        return ()
    cuts: list[int] = []
    parts = [(0, means.size)]
    edge = LEAST_NIGHTS_OF_LEVEL
    while parts:
        low, high = parts.pop()
        if high - low < 2 * edge:
            continue
        q = q_hat(means[low:high])[edge - 1 : high - low - edge]
        if q.max() > _LIMIT:
            cut = low + edge + int(q.argmax())
            cuts.append(cut)
            parts += [(low, cut), (cut, high)]
    cuts.sort()
    while cuts:
        levels = _levels(means, cuts)
        steps = [abs(after - before) for before, after in pairwise(levels)]
        if min(steps) >= math.log1p(MAGNITUDE):
            break
        del cuts[steps.index(min(steps))]
    return tuple(
        ChangePoint(int(nights.numbers[cut]), before, after)
        for cut, (before, after) in zip(cuts, pairwise(_levels(means, cuts)), strict=True)
    )


def q_hat(values: Floats) -> Floats:
    """Return how much the distributions on both sides of every cut differ, in mean distances of two values.

    For cuts of n values into the first t and the rest, t (n - t) / n times the energy distance
    2 E|X - Y| - E|X - X'| - E|Y - Y'|, all pairs counted. In one dimension that distance is twice the
    integral of the squared difference of the distribution functions (Székely and Rizzo 2013).

    Args:
        values: in the order of the nights, shape (n,).

    Returns:
        For t = 1 to n - 1, shape (n - 1,), at least 0; 0 where all values are equal.
    """
    n = values.size
    grid = np.sort(values)[np.linspace(0, n - 1, min(n, _GRID)).round().astype(np.int64)]
    gaps = np.diff(grid)
    below = values[:, None] <= grid[:-1]
    share = below.mean(axis=0)
    mean_distance = float(2 * gaps @ (share * (1 - share)))
    t = np.arange(1, n)
    apart = (below.cumsum(axis=0)[:-1] - t[:, None] * share) ** 2 @ gaps
    q: Floats = 2 * n / (t * (n - t)) * apart / (mean_distance or 1.0)
    return q


def _levels(means: Floats, cuts: list[int]) -> list[float]:
    return [float(means[low:high].mean()) for low, high in pairwise([0, *cuts, means.size])]
