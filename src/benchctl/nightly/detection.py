"""Detection of unusual values: every series against its earlier nights, and the host by its canary."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from benchctl.nightly.model import (
    Acknowledged,
    Alarm,
    Event,
    Finding,
    FindingStatus,
    NightRecord,
    NightVariant,
    Raised,
    Recovered,
    Role,
    Series,
    SeriesKey,
    alarms_of,
)
from benchctl.nightly.screening import (
    DEFAULT_MARGIN,
    CanaryReport,
    Nights,
    Screened,
    canary_moved,
    nights_of,
    screen,
)
from benchctl.stats.compare import as_percent

# A figure that was off for a reason that has gone, or that nobody could look into, must not become usual; nor
# one that was back for a night, beside those of the alarm that it was back from.
_NOT_USUAL: frozenset[FindingStatus] = frozenset({"held", "unconfirmed", "known"})

# What stays evidence for the nights to come; what is held says nothing about the engine.
_DOUBTFUL: frozenset[FindingStatus] = frozenset({"unconfirmed", "known"})

# The engine was cleared: what crept up to here was the host's, and sums begin anew.
_CLEARED: frozenset[FindingStatus] = frozenset({"refuted", "same engine"})


@dataclass(frozen=True)
class Baselines:
    """Every night of a suite and what happened to its series, as of one night."""

    night: int  # number of that night
    # Numbers of the earlier complete nights under the same conditions, since a move of the host was accepted.
    comparable: tuple[int, ...]
    alarms: tuple[Alarm, ...]  # as they stand
    # Series -> night number -> what became of a finding.
    findings: Mapping[SeriesKey, Mapping[int, FindingStatus]]
    moved: frozenset[int]  # numbers of the nights in which the canary moved, and nobody accepted that

    @classmethod
    def of(cls, nights: Sequence[NightRecord], events: Sequence[Event], tonight: NightRecord) -> "Baselines":
        """Build the baselines from all nights, in any order, and all events, in theirs."""
        first, last = _rebased(events)
        earlier = [
            night
            for night in nights
            if night.status == "done" and night.era == tonight.era and first <= night.number < tonight.number
        ]
        findings: dict[SeriesKey, dict[int, FindingStatus]] = {}
        for night in earlier:
            for finding in night.findings:
                findings.setdefault(finding.key, {})[night.number] = finding.status
        return cls(
            night=tonight.number,
            comparable=tuple(sorted(night.number for night in earlier)),
            alarms=alarms_of(events),
            findings=findings,
            moved=frozenset(night.number for night in earlier if night.canary_moved and night.number > last),
        )

    def usual(self, key: SeriesKey, before: Alarm | None = None) -> tuple[int, ...]:
        """Return numbers of the nights that define the level of a series, ascending.

        From an alarm on, further changes are measured from its own level; once it has recovered, the nights
        that it lasted are left out instead. So are nights in which the host moved. With `before`, they are
        the nights that this alarm was measured from.
        """
        accepted = self._accepted(key)
        out = set(self.moved) | (self._with_status(key, _NOT_USUAL) - accepted)
        first, end = min(accepted, default=0), self.night
        for alarm in self.alarms_about(key):
            since = number_of(alarm.raised.since)
            if before is not None and alarm.raised.alarm == before.raised.alarm:
                end = since
                break
            if alarm.recovered is None:
                first = max(first, since)
            else:
                out |= set(range(since, number_of(alarm.recovered.night)))
        return tuple(number for number in self.comparable if first <= number < end and number not in out)

    def doubtful(self, key: SeriesKey) -> frozenset[int]:
        """Return nights in which a series was off and nobody could confirm it."""
        last = 0
        for alarm in self.alarms_about(key):
            recovered = alarm.recovered
            last = max(last, number_of(alarm.raised.since if recovered is None else recovered.night))
        return frozenset(
            self._with_status(key, _DOUBTFUL) - self.moved - self._accepted(key) - set(range(last))
        )

    def cleared(self, key: SeriesKey) -> frozenset[int]:
        """Return nights after which the search for a creeping change begins again."""
        return frozenset(self._with_status(key, _CLEARED))

    def alarms_about(self, key: SeriesKey) -> tuple[Alarm, ...]:
        """Return alarms about the figures of one series, in the order in which they were raised."""
        return tuple(
            alarm for alarm in self.alarms if alarm.raised.kind == "figure" and alarm.raised.key == key
        )

    def _accepted(self, key: SeriesKey) -> set[int]:
        """Return nights whose level is accepted: the alarm that nobody could confirm it is acknowledged."""
        accepted: set[int] = set()
        for alarm in self.alarms:
            if alarm.raised.kind == "unwatched" and alarm.acknowledged and alarm.raised.concerns(key):
                end = self.night if alarm.recovered is None else number_of(alarm.recovered.night)
                accepted |= set(range(number_of(alarm.raised.since), end))
        return accepted & self._with_status(key, _NOT_USUAL)

    def _with_status(self, key: SeriesKey, statuses: Collection[FindingStatus]) -> set[int]:
        return {number for number, status in self.findings.get(key, {}).items() if status in statuses}


def _rebased(events: Iterable[Event]) -> tuple[int, int]:
    """Return the first and last night of the level of the host that was accepted last; (0, 0) for none.

    An alarm about the host has to be acknowledged while the host is off: once it has recovered, the level is
    another one.
    """
    lasting: dict[int, Raised] = {}
    accepted = (0, 0)
    for event in events:
        match event:
            case Raised() if event.kind == "host":
                lasting[event.alarm] = event
            case Acknowledged() if event.alarm in lasting:
                alarm = lasting[event.alarm]
                accepted = (number_of(alarm.since), number_of(alarm.night))
            case Recovered():
                lasting.pop(event.alarm, None)
            case _:
                pass
    return accepted


def number_of(night: str) -> int:
    """Return the number that a night's id begins with; 0 for an empty one."""
    digits = night.partition("-")[0]
    return int(digits) if digits.isdecimal() else 0


def night_of(nights: Iterable[NightRecord], number: int) -> NightRecord | None:
    """Return the night of a number; None when it does not exist."""
    return next((night for night in nights if night.number == number), None)


@dataclass(frozen=True)
class Detected:
    """Result of the screens for a night, before anything is confirmed."""

    # Series that left their usual range; those that the canary explains are `held`, all others `unconfirmed`
    # until somebody looks into them.
    findings: tuple[Finding, ...]
    canary: CanaryReport  # what moved of it
    watched: int  # how many series were compared with earlier nights
    young: int  # how many have no earlier night to compare with
    # How many were 0 in all forks of a night that they were compared with, or of this one, so that no screen
    # takes them.
    rare: int
    gone: int  # how many of tonight's variants had a value when last measured, and have none tonight


@dataclass(frozen=True)
class Detector:
    """The screens and their input."""

    nights: Sequence[NightRecord]  # of the suite, tonight's included
    tonight: NightRecord
    baselines: Baselines
    margins: Mapping[str, float]  # metric -> relative change that matters, where it is not the default

    def detect(self, series: Iterable[Series]) -> Detected:
        """Screen the series of tonight's variants; those of others are ignored."""
        by_role: dict[Role, list[Series]] = {"watched": [], "canary": []}
        last = max(self.baselines.comparable, default=0)
        gone = 0
        for one in series:
            variant = self.tonight.variant(one.key.variant)
            if variant is not None and self.tonight.number in one.nights:
                by_role[variant.role].append(one)
            elif variant is not None:
                gone += last in one.nights
        canary = canary_moved(
            by_role["canary"],
            self.tonight.number,
            usual=lambda one: self.baselines.usual(one.key),
            margin=DEFAULT_MARGIN,
        )
        findings = []
        young = rare = 0
        for one in by_role["watched"]:
            nights, usual = nights_of(one), self.baselines.usual(one.key)
            compared = nights.means[nights.places_of([*usual, self.tonight.number])]
            if not np.isfinite(compared).all():
                rare += 1
            elif compared.size == 1:
                young += 1
            elif (screened := self._screened(one, nights, usual)) is not None:
                findings.append(self._finding(one.key, screened, canary))
        watched = len(by_role["watched"]) - young - rare
        return Detected(tuple(findings), canary, watched, young, rare, gone)

    def margin(self, key: SeriesKey) -> float:
        """Return the relative change of a series from which on an alarm is raised."""
        return self.margins.get(key.metric, DEFAULT_MARGIN)

    def _screened(self, series: Series, nights: Nights, usual: Collection[int]) -> Screened | None:
        return screen(
            nights,
            self.tonight.number,
            usual=usual,
            doubtful=self.baselines.doubtful(series.key),
            cleared=self.baselines.cleared(series.key),
            margin=self.margin(series.key),
            higher_is_better=series.higher_is_better,
        )

    def _finding(self, key: SeriesKey, found: Screened, canary: CanaryReport) -> Finding:
        held = canary.holds(key, found.direction)
        since = night_of(self.nights, found.since) or self.tonight
        return Finding(
            key=key,
            direction=found.direction,
            effect_percent=found.effect_percent,
            low_percent=as_percent(found.low_log),
            high_percent=as_percent(found.high_log),
            baseline_nights=found.baseline_nights,
            since=since.id,
            last_good=self.last_good(key, found).id,
            status="held" if held else "unconfirmed",
            reason=held or "nothing was run to confirm it",
        )

    def last_good(self, key: SeriesKey, found: Screened) -> NightRecord:
        """Return the newest usual night before a change that had another engine; else the newest before."""
        tonight = self.tonight.variant(key.variant)
        usual = [
            night
            for number in sorted(self.baselines.usual(key), reverse=True)
            if number <= found.last_good and (night := night_of(self.nights, number)) is not None
        ]
        another = (
            night
            for night in usual
            if tonight is not None
            and (then := night.variant(key.variant)) is not None
            and not same_engine(then, tonight)
        )
        return next(another, usual[0])


def same_engine(one: NightVariant, other: NightVariant) -> bool:
    """Return whether two nights measured the same under a label: it cannot have got slower by itself."""
    return _identity(one) == _identity(other)


def _identity(variant: NightVariant) -> object:
    facts = variant.facts
    resolved = None if facts is None else (facts.version, facts.build, facts.archive_sha256, facts.jdk)
    spec = variant.spec
    return spec.engine, spec.version, spec.jvm_flags, spec.settings, resolved
