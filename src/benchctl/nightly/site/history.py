"""The data of a suite's pages: its nights, and the history of its figures task by task."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

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
from benchctl.nightly.screening import nights_of


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
    found: dict[tuple[str, str], Task] = {}
    for series in every:
        key = series.key
        task = found.setdefault((key.challenge, key.task), Task(key.challenge, key.task, {}))
        task.metrics.setdefault(key.metric, []).append(history_of(series))
    for task in found.values():
        # Rates before times; else as they came.
        ordered = sorted(task.metrics.items(), key=lambda one: not one[1][0].higher_is_better)
        task.metrics.clear()
        task.metrics.update(ordered)
        for histories in task.metrics.values():
            histories.sort(key=lambda one: (places.get(one.key.variant, len(places)), one.key.variant))
    return list(found.values())


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
        found: dict[str, Role] = {}
        for night in reversed(self.nights):
            for variant in night.variants:
                found.setdefault(variant.label, variant.role)
        for series in self.series:
            found.setdefault(series.key.variant, "watched")
        return dict(sorted(found.items(), key=lambda one: one[1] == "canary"))

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
        found: dict[str, list[Event]] = {}
        for event in self.events:
            if isinstance(event, Raised | Recovered):
                found.setdefault(event.night, []).append(event)
        return found

    def events_of(self, night: NightRecord) -> list[Event]:
        """Return what a night raised and what recovered in it."""
        return self._of_nights.get(night.id, [])

    def named(self, label: str) -> str:
        """Return a variant's name in charts, where a canary is marked as one."""
        silent = self.roles.get(label) == "canary" and "canary" not in label
        return f"{label} (canary)" if silent else label
