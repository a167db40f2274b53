"""What is unusual tonight: every series against its earlier nights, and the canary asked about the host."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from benchctl.nightly.model import (
    Alarm,
    Event,
    Finding,
    FindingStatus,
    NightRecord,
    NightVariant,
    Role,
    Series,
    SeriesKey,
    alarms_of,
    annotations_of,
)
from benchctl.nightly.screening import (
    DEFAULT_MARGIN,
    CanaryReport,
    Screened,
    canary_moved,
    forks_to_confirm,
    screen,
    too_rare,
)

# A figure that was off for a reason that has gone, or that nobody could look into, must not become usual; nor
# one that was back for a night, beside those of the alarm that it was back from.
_NOT_USUAL: frozenset[FindingStatus] = frozenset({"held", "unconfirmed", "known"})

# The engine was cleared: what crept up to here was the host's, and sums begin anew.
_CLEARED: frozenset[FindingStatus] = frozenset({"refuted", "same engine"})


@dataclass(frozen=True)
class Baselines:
    """Every night of a suite and what happened to its series, as of one night."""

    night: int  # number of that night
    # Numbers of the earlier complete nights under the same conditions, since levels were last declared anew.
    comparable: tuple[int, ...]
    alarms: tuple[Alarm, ...]  # as they stand
    # Series -> night number -> what became of a finding.
    findings: Mapping[SeriesKey, Mapping[int, FindingStatus]]
    moved: frozenset[int]  # numbers of the nights in which the canary moved as a whole

    @classmethod
    def of(cls, nights: Sequence[NightRecord], events: Sequence[Event], tonight: NightRecord) -> "Baselines":
        """Build the baselines from all nights, in any order, and all events, in theirs."""
        rebased = (
            one.number for one in annotations_of(events) if one.rebase and one.number <= tonight.number
        )
        first = max(rebased, default=0)
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
            moved=frozenset(night.number for night in earlier if night.canary_moved),
        )

    def candidates(self, key: SeriesKey) -> tuple[int, ...]:
        """Return numbers of the nights that define what is usual for a series, ascending.

        From an alarm on, further changes are measured from its own level; once it has recovered, the nights
        that it lasted are left out instead. So are nights in which the host moved.
        """
        out = set(self.moved)
        out |= {number for number, status in self._found(key).items() if status in _NOT_USUAL}
        first = 0
        for alarm in self.alarms_about(key):
            since = number_of(alarm.raised.since)
            if alarm.recovered is None:
                first = max(first, since)
            else:
                out |= set(range(since, number_of(alarm.recovered.night)))
        return tuple(number for number in self.comparable if number >= first and number not in out)

    def resets(self, key: SeriesKey) -> frozenset[int]:
        """Return numbers of the nights after which the search for a creeping change starts again."""
        return frozenset(number for number, status in self._found(key).items() if status in _CLEARED)

    def alarms_about(self, key: SeriesKey) -> tuple[Alarm, ...]:
        """Return alarms about the figures of one series, in the order in which they were raised."""
        return tuple(
            alarm for alarm in self.alarms if alarm.raised.kind == "figure" and alarm.raised.key == key
        )

    def _found(self, key: SeriesKey) -> Mapping[int, FindingStatus]:
        return self.findings.get(key, {})


def number_of(night: str) -> int:
    """Return the number that a night's id begins with; 0 for an empty one."""
    digits = night.partition("-")[0]
    return int(digits) if digits.isdecimal() else 0


def night_of(nights: Iterable[NightRecord], number: int) -> NightRecord | None:
    """Return the night of a number; None when it does not exist."""
    return next((night for night in nights if night.number == number), None)


@dataclass(frozen=True)
class Detected:
    """What the screens say of a night, before anything is confirmed."""

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
    levels: Mapping[SeriesKey, float]  # of series with a finding, the mean of ln over the nights before


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
            candidates=lambda one: self.baselines.candidates(one.key),
            margin=DEFAULT_MARGIN,
        )
        findings = []
        levels = {}
        young = rare = 0
        for one in by_role["watched"]:
            candidates = self.baselines.candidates(one.key)
            young += not any(number in one.nights for number in candidates)
            rare += too_rare(one, [*candidates, self.tonight.number])
            found = screen(
                one,
                self.tonight.number,
                candidates=candidates,
                margin=self.margin(one.key),
                resets=self.baselines.resets(one.key),
            )
            if found is not None:
                findings.append(self._finding(one, found, canary))
                levels[one.key] = found.baseline_log
        watched = len(by_role["watched"])
        return Detected(tuple(findings), canary, watched - young - rare, young, rare, gone, levels)

    def margin(self, key: SeriesKey) -> float:
        """Return the relative change of a series from which on an alarm is raised."""
        return self.margins.get(key.metric, DEFAULT_MARGIN)

    def _finding(self, series: Series, found: Screened, canary: CanaryReport) -> Finding:
        held = canary.holds(series.key, found.direction)
        since = night_of(self.nights, found.since) or self.tonight
        good = self.last_good(series.key, found)
        return Finding(
            key=series.key,
            rules=found.rules,
            direction=found.direction,
            effect_percent=found.effect_percent,
            low_percent=found.low_percent,
            high_percent=found.high_percent,
            baseline_nights=found.baseline_nights,
            since=since.id,
            last_good="" if good is None else good.id,
            status="held" if held else "unconfirmed",
            reason=held or "nothing was run to confirm it",
            forks_needed=forks_to_confirm(series, found.effect_log),
        )

    def last_good(self, key: SeriesKey, found: Screened) -> NightRecord | None:
        """Return the newest night before a change that had another engine; else the newest before.

        The start of a change is known only within a few nights: a night just before it with tonight's engine
        cannot tell whether the engine did it.
        """
        tonight = self.tonight.variant(key.variant)
        usual = [
            night
            for number in sorted(self.baselines.candidates(key), reverse=True)
            if number < found.since and (night := night_of(self.nights, number)) is not None
        ]
        if tonight is None or not usual:
            return night_of(self.nights, found.last_good)
        another = (
            night
            for night in usual
            if (then := night.variant(key.variant)) is not None and not same_engine(then, tonight)
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
