"""Which nights a series is held against: all earlier ones that nobody and nothing has ruled out."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from benchctl.results.nightly.model import (
    Alarm,
    Annotated,
    Event,
    FindingStatus,
    NightRecord,
    SeriesKey,
    alarms_of,
    annotations_of,
)

# A figure that was off for a reason that has gone, or that nobody could look into, must not become usual; nor
# one that was back for a night, beside those of the alarm that it was back from.
_NOT_USUAL: frozenset[FindingStatus] = frozenset({"held", "unconfirmed", "known"})

# The engine was cleared: what crept up to here was the host's, and sums begin anew.
_CLEARED: frozenset[FindingStatus] = frozenset({"refuted", "same engine"})


@dataclass(frozen=True)
class Baselines:
    """Every night of a suite and what happened to its series, asked from one night's point of view.

    Attributes:
        night: number of the night that is looked at.
        comparable: numbers of the earlier nights that were measured to their end under the same conditions
            and since levels were last declared anew.
        alarms: as they stand.
        findings: series -> night number -> what became of a finding.
        moved: numbers of the nights in which the canary moved as a whole.
    """

    night: int
    comparable: tuple[int, ...]
    alarms: tuple[Alarm, ...]
    findings: Mapping[SeriesKey, Mapping[int, FindingStatus]]
    moved: frozenset[int]

    @classmethod
    def of(cls, nights: Sequence[NightRecord], events: Sequence[Event], tonight: NightRecord) -> "Baselines":
        """From everything that is kept of a suite.

        Args:
            nights: all of them, in any order; tonight's may be among them.
            events: in the order in which they happened.
            tonight: the night that is looked at.
        """
        first = _first_night(annotations_of(events), tonight.number)
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
        """Numbers of the nights that say what is usual for a series, ascending.

        From an alarm on, its own level is what further changes are measured from; once it has recovered, the
        nights that it lasted are left out instead. Nights in which the host moved say nothing.
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
        """Numbers of the nights after which a creeping change is looked for from nothing again."""
        return frozenset(number for number, status in self._found(key).items() if status in _CLEARED)

    def alarms_about(self, key: SeriesKey) -> tuple[Alarm, ...]:
        """Alarms about the figures of one series, in the order in which they were raised."""
        return tuple(
            alarm for alarm in self.alarms if alarm.raised.kind == "figure" and alarm.raised.key == key
        )

    def _found(self, key: SeriesKey) -> Mapping[int, FindingStatus]:
        return self.findings.get(key, {})


def number_of(night: str) -> int:
    """The number that a night's id begins with; 0 for an empty one."""
    digits = night.partition("-")[0]
    return int(digits) if digits.isdecimal() else 0


def night_of(nights: Iterable[NightRecord], number: int) -> NightRecord | None:
    """The night of a number; None when it is not there."""
    return next((night for night in nights if night.number == number), None)


def _first_night(annotations: Iterable[Annotated], tonight: int) -> int:
    """From where on levels are usual: the newest declaration that tonight is not before."""
    return max((one.number for one in annotations if one.rebase and one.number <= tonight), default=0)
