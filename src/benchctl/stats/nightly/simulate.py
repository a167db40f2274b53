"""The whole detector replayed over made-up nights: false alarms, delays, and what confirmations cost."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import msgspec
import numpy as np

from benchctl.results.nightly.model import FindingStatus, Series
from benchctl.stats.compare import Comparison, as_percent
from benchctl.stats.nightly.canary import canary_moved
from benchctl.stats.nightly.confirm import LEAST_FORKS, forks_to_confirm, judge
from benchctl.stats.nightly.generate import METRIC, World
from benchctl.stats.nightly.nights import Nights, nights_of
from benchctl.stats.nightly.recovery import NIGHTS_TO_RECOVER, recovered
from benchctl.stats.nightly.screen import DEFAULT_MARGIN, Screened, screen_nights


class ReplayedFinding(msgspec.Struct, frozen=True, rename="kebab"):
    """A finding of the replay, and what became of it.

    Attributes:
        series: place of the series.
        night: number of the night that found it.
        screened: how.
        status: confirmed findings are alarms; held ones are the canary's, and unconfirmed ones would have
            taken more forks than there was time for.
        forks: of both sides of the confirmation; 0 where there was none.
        real: the engine is really slower or faster, in that direction, than in the last good night.
    """

    series: int
    night: int
    screened: Screened
    status: FindingStatus
    forks: int
    real: bool


class Replayed(msgspec.Struct, frozen=True, rename="kebab"):
    """What a replay gave.

    Attributes:
        series: watched series.
        nights: that were there.
        findings: in the order of the nights.
        recoveries: alarms that ended by themselves.
    """

    series: int
    nights: int
    findings: tuple[ReplayedFinding, ...]
    recoveries: int

    def of_status(self, *statuses: str) -> tuple[ReplayedFinding, ...]:
        """Findings that ended so."""
        return tuple(one for one in self.findings if one.status in statuses)

    @property
    def alarms(self) -> tuple[ReplayedFinding, ...]:
        """Confirmed findings."""
        return self.of_status("confirmed")

    @property
    def false_alarms(self) -> tuple[ReplayedFinding, ...]:
        """Confirmed findings of which nothing is true."""
        return tuple(one for one in self.alarms if not one.real)

    @property
    def forks(self) -> int:
        """What all confirmations together took."""
        return sum(one.forks for one in self.findings)

    def delays(self, change_night: int, *, confirmed: bool) -> tuple[int | None, ...]:
        """Nights from a change until each series was first screened, or its alarm raised; 1 is at once.

        Args:
            change_night: number of the first night that shows it.
            confirmed: count until the alarm.

        Returns:
            One a series, in order; None where it was missed.
        """
        first: dict[int, int] = {}
        for one in self.findings:
            if one.real and one.night >= change_night and (one.status == "confirmed" or not confirmed):
                first.setdefault(one.series, one.night - change_night + 1)
        return tuple(first.get(place) for place in range(self.series))


def replay(
    world: World, rng: np.random.Generator, *, margin: float = DEFAULT_MARGIN, most_forks: int | None = None
) -> Replayed:
    """Go through the nights of a suite as `nightly run` does, with confirmations on forks drawn for them.

    Every alarm is taken note of at once: the nights from its beginning on are the new baseline, until the
    series is back at the old level. A night whose finding is refuted counts as a night like any other; one
    whose finding is held, or was too dear to confirm, never becomes baseline.

    Args:
        world: what was generated.
        rng: of the forks that confirm.
        margin: relative difference that matters in practice.
        most_forks: a side, that a confirmation has time for; None for no limit.
    """
    suite = _Suite(world, rng, margin, most_forks)
    for night in suite.numbers:
        suite.replay_night(night)
    return Replayed(len(suite.followed), len(suite.numbers), tuple(suite.findings), suite.recoveries)


class _Suite:
    """A suite as the replay goes along."""

    def __init__(self, world: World, rng: np.random.Generator, margin: float, most_forks: int | None) -> None:
        self._world = world
        self._rng = rng
        self._margin = margin
        self._most_forks = most_forks
        self.followed = [_Followed(series, nights_of(series)) for series in world.watched]
        self.numbers = [int(night) for night in self.followed[0].nights.numbers] if self.followed else []
        self.findings: list[ReplayedFinding] = []
        self.recoveries = 0

    def replay_night(self, night: int) -> None:
        self.recoveries += sum(one.recover(night, self._margin) for one in self.followed)
        screened = {
            place: found
            for place, one in enumerate(self.followed)
            if (found := one.screen(night, self._margin)) is not None
        }
        decided = self._decide(night, screened) if screened else {}
        for place, one in enumerate(self.followed):
            one.go_on(night, decided.get(place))
        self.findings += decided.values()

    def _decide(self, night: int, screened: Mapping[int, Screened]) -> dict[int, ReplayedFinding]:
        past = [number for number in self.numbers if number < night]
        canary = canary_moved(self._world.canaries, night, candidates=lambda _: past, margin=self._margin)
        decided: dict[int, ReplayedFinding] = {}
        confirming: dict[int, tuple[int, bool]] = {}
        for place, found in screened.items():
            one = self.followed[place]
            if one.back(night, self._margin):
                decided[place] = self._finding(place, night, found, "known", 0)
            elif canary.holds(one.series.key, found.direction):
                decided[place] = self._finding(place, night, found, "held", 0)
            else:
                wanted = forks_to_confirm(one.until(night), found.effect_log)
                forks = wanted if self._most_forks is None else min(wanted, self._most_forks)
                if forks < LEAST_FORKS:
                    decided[place] = self._finding(place, night, found, "unconfirmed", 0)
                else:
                    confirming[place] = (forks, forks < wanted)
        compared = [
            (self._confirm(screened[place], night, forks), screened[place].direction)
            for place, (forks, _) in confirming.items()
        ]
        for (place, (forks, short)), judged in zip(confirming.items(), judge(compared), strict=True):
            status: FindingStatus = "confirmed" if judged.confirmed else "unconfirmed" if short else "refuted"
            decided[place] = self._finding(place, night, screened[place], status, 2 * forks)
        return dict(sorted(decided.items()))

    def _confirm(self, found: Screened, night: int, forks: int) -> Comparison:
        """Fresh forks of last-good and of tonight, interleaved: night and host are alike to both."""
        process = self._world.process
        levels = np.array([process.engine(found.last_good), process.engine(night)])
        good, tonight = process.forks_of(levels, forks, self._rng)
        # It takes most of a second to load, and nights themselves simulate nothing.
        from scipy.stats import ttest_rel  # noqa: PLC0415 - see above

        # `stats.compare` adds a cross-check by permutation: a hundred times the time, and it never decides.
        tested = ttest_rel(tonight, good)
        return Comparison(
            metric=METRIC,
            baseline="last good",
            contender="tonight",
            higher_is_better=False,
            paired=True,
            judged=True,
            n_baseline=forks,
            n_contender=forks,
            margin_percent=100 * self._margin,
            effect_percent=as_percent(float(tonight.mean() - good.mean())),
            p=float(tested.pvalue) if np.isfinite(tested.pvalue) else None,
        )

    def _finding(
        self, place: int, night: int, found: Screened, status: FindingStatus, forks: int
    ) -> ReplayedFinding:
        process = self._world.process
        change = process.engine(night) - process.engine(found.last_good)
        return ReplayedFinding(place, night, found, status, forks, real=change * found.effect_log > 0)


@dataclass
class _Followed:
    """One watched series as the replay goes along.

    Attributes:
        series: all of it; nights to come are never looked at.
        nights: the same by night.
        candidates: baseline nights.
        resets: nights of refuted findings.
        alarm: the one that is open.
        before: candidates of the time before that.
    """

    series: Series
    nights: Nights
    candidates: list[int] = field(default_factory=list)
    resets: list[int] = field(default_factory=list)
    alarm: Screened | None = None
    before: list[int] = field(default_factory=list)

    def until(self, night: int) -> Series:
        """What was known in a night."""
        known = int(np.searchsorted(self.series.nights, night, side="right"))
        return replace(
            self.series,
            nights=self.series.nights[:known],
            forks=self.series.forks[:known],
            values=self.series.values[:known],
        )

    def screen(self, night: int, margin: float) -> Screened | None:
        return screen_nights(
            self.nights,
            night,
            candidates=self.candidates,
            margin=margin,
            resets=self.resets,
            higher_is_better=self.series.higher_is_better,
        )

    def back(self, night: int, margin: float, nights: int = 1) -> bool:
        """An alarm is open, and the series is at the level before it."""
        return self.alarm is not None and recovered(
            self.series,
            night,
            baseline_log=self.alarm.baseline_log,
            raised_effect_percent=self.alarm.effect_percent,
            margin=margin,
            nights=nights,
        )

    def recover(self, night: int, margin: float) -> bool:
        """End an open alarm whose series is back; the old baseline holds again."""
        if not self.back(night, margin, NIGHTS_TO_RECOVER):
            return False
        self.candidates, self.before, self.alarm = self.before, [], None
        return True

    def go_on(self, night: int, finding: ReplayedFinding | None) -> None:
        """What a night is to those that follow."""
        if finding is None:
            self.candidates.append(night)
        elif finding.status == "refuted":
            self.candidates.append(night)
            self.resets.append(night)
        elif finding.status == "confirmed":
            since = finding.screened.since
            self.before = [number for number in self.candidates if number < since]
            self.candidates = [number for number in self.candidates if number >= since] + [night]
            self.alarm = finding.screened
