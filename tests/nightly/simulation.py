"""The model that calibrates the detector: made-up nights, and the detector replayed over them."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import msgspec
import numpy as np

from benchctl.nightly.model import FindingStatus, Series, SeriesKey
from benchctl.nightly.screening import (
    DEFAULT_MARGIN,
    LEAST_FORKS,
    NIGHTS_TO_RECOVER,
    Nights,
    Screened,
    canary_moved,
    forks_to_confirm,
    judge,
    nights_of,
    recovered,
    screen_nights,
)
from benchctl.results.model import DEFAULT_FORKS
from benchctl.stats.arrays import Floats
from benchctl.stats.compare import Comparison, as_percent

# Series of a made-up suite whose truth is known, for measuring the detector: seeded, on the log scale.


METRIC = "service-time"


@dataclass(frozen=True)
class Process:
    """How nights come about. SDs, steps and drifts are in natural logarithms; figures are times.

    Attributes:
        series: watched series.
        nights: of the suite.
        forks: of every night.
        night_sd: from night to night, of every series by itself.
        fork_sd: from fork to fork within a night.
        step: by which the engine gets slower (above 0) or faster; 0 for never.
        step_night: number of the first night that shows it.
        step_ends: number of the first night that does not any more; None for never.
        drift: by which the engine gets slower every night from `step_night` on.
        host_step: by which the host gets slower for engine and canary alike, from `host_night` on.
        host_night: number of the first night that shows it.
        canaries: series of the canary, of the same tasks; 0 for a suite without one.
        slow_share: share of forks that land in a slow state.
        slow_by: how much slower that is.
        missing: share of nights that are not there.
        baseline_log: of every series at first.
    """

    series: int = 80
    nights: int = 90
    forks: int = DEFAULT_FORKS
    night_sd: float = 0.02
    fork_sd: float = 0.05
    step: float = 0.0
    step_night: int = 61
    step_ends: int | None = None
    drift: float = 0.0
    host_step: float = 0.0
    host_night: int = 61
    canaries: int = 0
    slow_share: float = 0.0
    slow_by: float = math.log(1.18)
    missing: float = 0.0
    baseline_log: float = math.log(10.0)

    def engine(self, night: int) -> float:
        """How much slower the engine is in a night than in the first, in natural logarithms."""
        if night < self.step_night or (self.step_ends is not None and night >= self.step_ends):
            return 0.0
        return self.step + self.drift * (night - self.step_night + 1)

    def host(self, night: int) -> float:
        """How much slower the host is in a night than in the first."""
        return self.host_step if night >= self.host_night else 0.0

    def forks_of(self, level: Floats, forks: int, rng: np.random.Generator) -> Floats:
        """Draw forks at these levels, in natural logarithms; shape of the levels and the forks."""
        drawn = level[..., None] + rng.normal(0.0, self.fork_sd, (*level.shape, forks))
        if self.slow_share:
            drawn += self.slow_by * (rng.random(drawn.shape) < self.slow_share)
        return drawn


@dataclass(frozen=True, eq=False)
class World:
    """What a process gave.

    Attributes:
        process: of it.
        watched, canaries: series, sorted by night and fork.
    """

    process: Process
    watched: tuple[Series, ...]
    canaries: tuple[Series, ...]


def generate(process: Process, rng: np.random.Generator) -> World:
    """Draw a suite: forks of every series in every night that is there."""
    numbers = np.arange(1, process.nights + 1)
    there = numbers[rng.random(process.nights) >= process.missing]
    host = np.array([process.host(int(night)) for night in there])
    engine = np.array([process.engine(int(night)) for night in there])
    watched = _draw(process, "watched", process.series, host + engine, there, rng)
    canaries = _draw(process, "canary", process.canaries, host, there, rng)
    return World(process, watched, canaries)


def _draw(
    process: Process,
    variant: str,
    count: int,
    truth: Floats,
    numbers: np.ndarray[tuple[int], np.dtype[np.int64]],
    rng: np.random.Generator,
) -> tuple[Series, ...]:
    levels = process.baseline_log + truth + rng.normal(0.0, process.night_sd, (count, numbers.size))
    values = np.exp(process.forks_of(levels, process.forks, rng)).reshape(count, numbers.size * process.forks)
    nights = np.repeat(numbers, process.forks)
    forks = np.tile(np.arange(1, process.forks + 1), numbers.size)
    return tuple(
        Series(
            key=SeriesKey(variant=variant, challenge="simulated", task=f"task {place + 1}", metric=METRIC),
            unit="ms",
            higher_is_better=False,
            nights=nights,
            forks=forks,
            values=row,
        )
        for place, row in enumerate(values)
    )


# The whole detector replayed over made-up nights: false alarms, delays, and what confirmations cost.


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

    Every alarm is acknowledged at once: the nights from its beginning on are the new baseline, until the
    series is back at the old level. A night whose finding is refuted counts as a night like any other;
    one whose finding is held, or was too expensive to confirm, never becomes baseline. `most_forks` is
    what a confirmation has time for, a side; None for no limit.
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
        """Fresh forks of last-good and of tonight, interleaved: night and host are the same for both."""
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
        """Update baseline and alarm for the following nights."""
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


# What a replay says about the detector: false alarms, delays and costs, in a few figures.


_OFTEN = 0.9


class Delay(msgspec.Struct, frozen=True, rename="kebab"):
    """Nights from a change until it is seen, over series; 1 is in the first night that shows it.

    Attributes:
        median, p90: None where fewer than half, or nine tenths, of the series saw it at all.
        seen, of: series that saw it, and all.
    """

    median: int | None
    p90: int | None
    seen: int
    of: int


class Outcome(msgspec.Struct, frozen=True, rename="kebab"):
    """The detector's performance on one process.

    Attributes:
        series, nights: watched series, and nights that were there.
        alarms, false_alarms: confirmed findings, and those of which nothing is true.
        screened: findings by what became of them.
        until_screened, until_alarm: delays after the engine's change; None where it does not change.
        recoveries: alarms that ended by themselves.
        confirmations: findings that were put to fresh forks.
        forks: of both sides of all confirmations, each counted by itself, though findings of one night share
            a run.
    """

    series: int
    nights: int
    alarms: int
    false_alarms: int
    screened: dict[FindingStatus, int]
    until_screened: Delay | None
    until_alarm: Delay | None
    recoveries: int
    confirmations: int
    forks: int


def outcome_of(replayed: Replayed, process: Process) -> Outcome:
    """Summarise a replay."""
    changes = process.engine(process.step_night) != 0 and process.step_night <= process.nights
    delays = [
        _delay(replayed.delays(process.step_night, confirmed=confirmed)) if changes else None
        for confirmed in (False, True)
    ]
    counts = Counter(one.status for one in replayed.findings)
    return Outcome(
        series=replayed.series,
        nights=replayed.nights,
        alarms=len(replayed.alarms),
        false_alarms=len(replayed.false_alarms),
        screened=dict(counts),
        until_screened=delays[0],
        until_alarm=delays[1],
        recoveries=replayed.recoveries,
        confirmations=counts["confirmed"] + counts["refuted"],
        forks=replayed.forks,
    )


def _delay(delays: Sequence[int | None]) -> Delay:
    seen = [float(nights) for nights in delays if nights is not None]
    ordered = np.sort(np.array([*seen, *[np.inf] * (len(delays) - len(seen))]))
    median, often = (float(np.quantile(ordered, share, method="inverted_cdf")) for share in (0.5, _OFTEN))
    return Delay(_whole(median), _whole(often), len(seen), len(delays))


def _whole(nights: float) -> int | None:
    return int(nights) if np.isfinite(nights) else None
