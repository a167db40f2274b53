"""Recorded series under the detector: screens and change points. Nobody can confirm what is long past."""

import msgspec

from benchctl.results.nightly.model import Series
from benchctl.stats.nightly.divisive import ChangePoint, change_points
from benchctl.stats.nightly.nights import nights_of
from benchctl.stats.nightly.screen import Screened, screen_nights


class RescreenedFinding(msgspec.Struct, frozen=True, rename="kebab"):
    """What would have been confirmed, had it been tonight.

    Attributes:
        night: number of the night that found it.
        screened: how.
    """

    night: int
    screened: Screened


class Rescreened(msgspec.Struct, frozen=True, rename="kebab"):
    """One recorded series.

    Attributes:
        name: of the series; empty where there is one.
        nights: with a value.
        findings: in the order of the nights.
        change_points: located with hindsight, ascending.
    """

    name: str
    nights: int
    findings: tuple[RescreenedFinding, ...]
    change_points: tuple[ChangePoint, ...]


def rescreen(series: Series, *, margin: float) -> Rescreened:
    """Go through a series night by night, knowing nothing of the nights to come.

    Every finding is taken for true: the nights from its beginning on are the new baseline. So a single night
    that stands out is found twice, when it comes and when it goes.

    Args:
        series: recorded.
        margin: relative difference that matters in practice.
    """
    nights = nights_of(series)
    candidates: list[int] = []
    findings = []
    for number in nights.numbers.tolist():
        found = screen_nights(
            nights, number, candidates=candidates, margin=margin, higher_is_better=series.higher_is_better
        )
        if found is not None:
            findings.append(RescreenedFinding(number, found))
            candidates = [earlier for earlier in candidates if earlier >= found.since]
        candidates.append(number)
    return Rescreened(series.key.task, len(nights.numbers), tuple(findings), change_points(nights))
