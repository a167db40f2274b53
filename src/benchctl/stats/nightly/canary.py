"""Whether the canary moved tonight: a variant that never changes, so that what moves it is the host."""

from collections.abc import Callable, Collection, Iterable, Sequence

import msgspec
import numpy as np

from benchctl.results.nightly.model import Direction, Series, SeriesKey
from benchctl.stats.nightly.nights import nights_of
from benchctl.stats.nightly.screen import Screened, screen

Choice = Callable[[Series], Collection[int]]
"""Numbers of the nights of a series that are candidates."""

_FORKS_OF_A_NIGHT = 1_000_000


class Move(msgspec.Struct, frozen=True):
    """One figure of a canary that left its usual range.

    Attributes:
        key: its series.
        screened: how.
    """

    key: SeriesKey
    screened: Screened


class WholeMove(msgspec.Struct, frozen=True):
    """A canary that left its usual range as a whole: the mean of a metric over all of its tasks.

    Attributes:
        variant: label of the canary.
        metric: machine name.
        tasks: with a value tonight and before.
        screened: how.
    """

    variant: str
    metric: str
    tasks: int
    screened: Screened

    @property
    def text(self) -> str:
        """What moved, without a full stop."""
        found = self.screened
        tasks = "its only task" if self.tasks == 1 else f"its {self.tasks} tasks"
        effect = f"{self.metric} of {tasks} {found.effect_percent:+.1f} %"
        return f"{_named(self.variant)} is {found.direction}: {effect}"


class CanaryReport(msgspec.Struct, frozen=True):
    """What the canaries say of a night.

    Attributes:
        moves: single figures that were screened, some of them by chance.
        whole: canaries that moved as a whole.
    """

    moves: tuple[Move, ...] = ()
    whole: tuple[WholeMove, ...] = ()

    @property
    def text(self) -> str:
        """Why the host moved, without a full stop; empty when no canary moved as a whole."""
        return "; ".join(move.text for move in self.whole)

    def holds(self, key: SeriesKey, direction: Direction) -> str:
        """Say why a finding of a watched variant is held.

        It is when a canary as a whole moved the same way in this metric, or on the very same challenge and
        task. Other figures of a canary hold nothing: of eighty, one or two are screened by chance.

        Args:
            key: of the finding.
            direction: of the finding.

        Returns:
            Without a full stop; empty when nothing holds it.
        """
        for whole in self.whole:
            if (whole.metric, whole.screened.direction) == (key.metric, direction):
                return whole.text
        for move in self.moves:
            same = (move.key.challenge, move.key.task, move.key.metric) == (
                key.challenge,
                key.task,
                key.metric,
            )
            if same and move.screened.direction == direction:
                effect = f"{move.screened.effect_percent:+.1f} %"
                return f"{_named(move.key.variant)} is {direction} on the same task: {effect}"
        return ""


def canary_moved(
    canaries: Sequence[Series], night: int, *, candidates: Choice, margin: float
) -> CanaryReport:
    """Screen every figure of the canaries, and each canary as a whole.

    As a whole means fork by fork the mean, over all tasks with a value tonight and before, of how far ln of
    the figure is from its mean over the candidate nights. What happens to single tasks by chance averages
    out; what happens to the host stays.

    Args:
        canaries: all series of all canaries, in any order.
        night: number of the night.
        candidates: nights of a series that may serve as baseline; as a whole, those of any of its tasks.
        margin: relative difference that matters in practice.
    """
    moves = []
    groups: dict[tuple[str, str, bool], list[Series]] = {}
    for series in canaries:
        found = screen(series, night, candidates=candidates(series), margin=margin)
        if found is not None:
            moves.append(Move(series.key, found))
        group = (series.key.variant, series.key.metric, series.higher_is_better)
        groups.setdefault(group, []).append(series)
    whole = []
    for (variant, metric, _), members in groups.items():
        usable = [one for one in members if _usable(one, night, candidates(one))]
        if not usable:
            continue
        chosen = set[int]().union(*(candidates(one) for one in usable))
        found = screen(_mean_of(usable, night, candidates), night, candidates=chosen, margin=margin)
        if found is not None:
            whole.append(WholeMove(variant, metric, len(usable), found))
    return CanaryReport(tuple(moves), tuple(whole))


def _named(variant: str) -> str:
    """A canary by its label, which often says already that it is one."""
    if variant == "canary":
        return "the canary"
    return variant if "canary" in variant else f"canary {variant}"


def _usable(series: Series, night: int, candidates: Iterable[int]) -> bool:
    here = set(series.nights.tolist())
    return night in here and any(one < night and one in here for one in candidates)


def _mean_of(members: Sequence[Series], night: int, candidates: Choice) -> Series:
    """One entry a fork of a night: the mean deviation over the tasks that have it, as a ratio."""
    places, away = [], []
    for one in members:
        nights = nights_of(one)
        before = nights.places_of([number for number in candidates(one) if number < night])
        places.append(one.nights * _FORKS_OF_A_NIGHT + one.forks)
        away.append(np.log(one.values) - nights.means[before].mean())
    entries, place = np.unique(np.concatenate(places), return_inverse=True)
    sums = np.bincount(place, np.concatenate(away), minlength=entries.size)
    ratios = np.exp(sums / np.bincount(place, minlength=entries.size))
    first = members[0]
    return Series(
        key=SeriesKey(variant=first.key.variant, challenge="", task="", metric=first.key.metric),
        unit="",
        higher_is_better=first.higher_is_better,
        nights=entries // _FORKS_OF_A_NIGHT,
        forks=entries % _FORKS_OF_A_NIGHT,
        values=ratios,
    )
