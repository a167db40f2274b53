"""Findings into alarms: raised once, with all that somebody needs to know, and followed to their recovery."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, takewhile

import msgspec

from benchctl.nightly.detection import Baselines, number_of
from benchctl.nightly.model import (
    Alarm,
    AlarmKind,
    Change,
    Direction,
    Event,
    Finding,
    FindingStatus,
    NightRecord,
    Raised,
    Recovered,
    Series,
    SeriesKey,
    alarms_of,
)
from benchctl.nightly.screening import CanaryReport, is_nearer, nights_of, recovered
from benchctl.report.numbers import counted, interval, signed_percent
from benchctl.stats.metrics import metric_of

NIGHTS_UNTIL_BLIND = 5
"""Number of successive nights with the canary off after which the suite counts as unwatched."""

# Neither an alarm nor cleared: night after night the same finding, which never becomes usual.
_OPEN: frozenset[FindingStatus] = frozenset({"held", "unconfirmed"})


@dataclass(frozen=True)
class Return:
    """An alarm whose figure is back at the level from before."""

    alarm: Alarm
    level: float  # mean ln of that level
    ended: bool  # the nights are equivalent to it: the alarm has recovered


@dataclass(frozen=True)
class Desk:
    """Context of alarms: tonight, and the nights before.

    Tonight's findings have to be final for all but `returning`.
    """

    nights: Sequence[NightRecord]  # of the suite, in order, tonight's included as it stands
    tonight: NightRecord
    events: Sequence[Event]
    now: str  # the wall clock, ISO 8601

    def returning(
        self,
        baselines: Baselines,
        series: Iterable[Series],
        canary: CanaryReport,
        margin_of: Callable[[SeriesKey], float],
    ) -> dict[SeriesKey, Return]:
        """Return alarms about figures that are back tonight, or have been for so long that they recovered.

        None while the host moves, nor if that level is of other conditions, or of before levels were declared
        anew. Of several alarms about a figure it is the first.
        """
        returns: dict[SeriesKey, Return] = {}
        for history in series:
            nights = nights_of(history)
            tonight = nights.places_of((self.tonight.number,))
            for alarm in baselines.alarms_about(history.key):
                raised = alarm.raised
                if (
                    history.key in returns
                    or tonight.size == 0
                    or alarm.recovered is not None
                    or raised.effect_percent is None
                    or number_of(raised.last_good) not in baselines.comparable
                ):
                    continue
                back: Direction = "faster" if raised.direction == "slower" else "slower"
                older = nights.means[nights.places_of(baselines.usual(history.key, alarm))]
                if older.size == 0 or canary.holds(history.key, back):
                    continue
                newer = nights.means[nights.numbers >= number_of(raised.since)]
                level, margin = float(older.mean()), margin_of(history.key)
                ended = recovered(newer, older, margin)
                effect = math.log1p(raised.effect_percent / 100)
                if ended or is_nearer(float(newer[-1]), level, effect, margin):
                    returns[history.key] = Return(alarm, level, ended)
        return returns

    def recovered(self, returning: Mapping[SeriesKey, Return]) -> list[Recovered]:
        """Return recoveries of alarms of all kinds, in their order.

        Of `returning` figures, what ended ends whatever was raised about them since.
        """
        texts = ((alarm.raised.alarm, self._end(alarm, returning)) for alarm in self._lasting)
        return [Recovered(number, self.now, self.tonight.id, text) for number, text in texts if text]

    def _end(self, alarm: Alarm, returning: Mapping[SeriesKey, Return]) -> str:
        """Return why an alarm ends tonight; empty if it lasts."""
        raised, variant = alarm.raised, alarm.raised.key.variant
        present = self.tonight.variant(variant) is not None
        # Nobody would see it recover. Once acknowledged, its level is the usual one should it come back.
        if alarm.state == "open" and variant and not present:
            return f"closed: the suite has no {variant} any more"
        match raised.kind:
            case "figure":
                back = returning.get(raised.key)
                if back is None or not back.ended or raised.alarm < back.alarm.raised.alarm:
                    return ""
                text = f"back at the level from before, {math.exp(back.level):,.4g}"
                first = back.alarm.raised.alarm
                return text if raised.alarm == first else f"with alarm {first}: {text}"
            case "host":
                return "" if self.tonight.canary_moved else "the canary is at its level again"
            case "unwatched":
                off = {finding.key.variant for finding in self.tonight.findings if finding.status in _OPEN}
                quiet = self.tonight.forks_done and present and variant not in off
                return "values are back to their usual levels, or were acknowledged" if quiet else ""

    def raised(self, findings: Iterable[Finding]) -> list[Raised]:
        """Return new alarms of all kinds."""
        new = (
            *(self._of_finding(finding) for finding in findings if finding.status == "confirmed"),
            *self._of_host(),
            *self._of_unwatched(),
        )
        first = 1 + max((event.alarm for event in self.events if isinstance(event, Raised)), default=0)
        return [msgspec.structs.replace(alarm, alarm=number) for number, alarm in enumerate(new, first)]

    def changes_between(self, last_good: str, since: str, variant: str) -> tuple[Change, ...]:
        """Return changes after one night up to another that bear on a variant."""
        first, last = number_of(last_good), number_of(since)
        changes = (
            change
            for night in (*self._earlier, self.tonight)
            if first < night.number <= last
            for change in night.changes
            if change.variant in ("", variant)
        )
        return tuple(dict.fromkeys(changes))

    @property
    def _lasting(self) -> list[Alarm]:
        return [alarm for alarm in alarms_of(self.events) if alarm.recovered is None]

    @property
    def _earlier(self) -> list[NightRecord]:
        return [night for night in self.nights if night.number < self.tonight.number]

    @property
    def _measured(self) -> list[NightRecord]:
        """Nights that were measured, tonight's first."""
        earlier = [night for night in self._earlier if night.status == "done"]
        return sorted((*earlier, self.tonight), key=lambda night: -night.number)

    def _raise(self, kind: AlarmKind, title: str, key: SeriesKey, **more: object) -> Raised:
        base = Raised(alarm=0, at=self.now, night=self.tonight.id, kind=kind, title=title, key=key)
        alarm = msgspec.structs.replace(base, **more)
        if "changes" in more:
            return alarm
        changes = self.changes_between(alarm.last_good, alarm.since, key.variant)
        return msgspec.structs.replace(alarm, changes=changes)

    def _of_finding(self, finding: Finding) -> Raised:
        confirmation = finding.confirmation
        shown = finding if confirmation is None else confirmation
        return self._raise(
            "figure",
            _title(finding, shown.effect_percent, shown.low_percent, shown.high_percent),
            finding.key,
            direction=finding.direction,
            effect_percent=shown.effect_percent,
            low_percent=shown.low_percent,
            high_percent=shown.high_percent,
            since=finding.since,
            last_good=finding.last_good,
            confirmation=confirmation,
            command="" if confirmation is None else confirmation.command,
        )

    def _of_host(self) -> Iterator[Raised]:
        """Yield an alarm that the canary has been off for so long that all findings are held."""
        moved = list(takewhile(lambda night: night.canary_moved, self._measured))
        if len(moved) < NIGHTS_UNTIL_BLIND or any(alarm.raised.kind == "host" for alarm in self._lasting):
            return
        since = moved[-1]
        yield self._raise(
            "host",
            f"the host moved in night {since.number} for good: later changes go unnoticed",
            SeriesKey("", "", "", ""),
            since=since.id,
            changes=since.changes,
            detail=f"{self.tonight.canary_moved}; if the host stays as it is, begin new levels: "
            f"benchctl nightly ack {self.tonight.suite} ALARM",
        )

    def _of_unwatched(self) -> Iterator[Raised]:
        """Yield one alarm a variant with figures that were held or unconfirmed in five nights running.

        A night in which the canary moved as a whole raises none: there is an alarm for that.
        """
        if self.tonight.canary_moved:
            return
        reported = {alarm.raised.key.variant for alarm in self._lasting if alarm.raised.kind == "unwatched"}
        stuck = (finding for finding in self._stuck() if finding.key.variant not in reported)
        ordered = sorted(stuck, key=lambda finding: (finding.key.variant, -abs(finding.effect_percent)))
        for variant, group in groupby(ordered, key=lambda finding: finding.key.variant):
            findings = list(group)
            largest = findings[0]
            more = f", and {counted(len(findings) - 1, 'more figure')}" if len(findings) > 1 else ""
            yield self._raise(
                "unwatched",
                f"{variant} has been off in {NIGHTS_UNTIL_BLIND} successive nights, never confirmed: "
                f"{_figure(largest)}{more}",
                SeriesKey(variant, "", "", ""),
                direction=largest.direction,
                effect_percent=largest.effect_percent,
                low_percent=largest.low_percent,
                high_percent=largest.high_percent,
                since=largest.since,
                last_good=largest.last_good,
                command=f"benchctl show {self.tonight.run}",
                detail="\n".join(
                    f"{_figure(finding)}, {finding.status}: {finding.reason}" for finding in findings
                ),
            )

    def _stuck(self) -> Iterator[Finding]:
        """Yield tonight's findings that were off in the nights before, too, with the first of these."""
        before = [night for night in self._measured[1:] if night.era == self.tonight.era]
        before = before[: NIGHTS_UNTIL_BLIND - 1]
        for finding in self.tonight.findings if len(before) == NIGHTS_UNTIL_BLIND - 1 else ():
            earlier = [_same_in(night, finding) for night in before]
            first = earlier[-1]
            if finding.status in _OPEN and first is not None and None not in earlier:
                # Those nights never became usual, so that tonight by itself seems to be the first.
                yield msgspec.structs.replace(finding, since=first.since)


def mark_known(findings: Iterable[Finding], returning: Mapping[SeriesKey, Return]) -> list[Finding]:
    """Mark findings that are an alarm's way back: they are not news, and nothing is run for them."""
    marked = []
    for finding in findings:
        back = returning.get(finding.key)
        if back is not None and finding.direction != back.alarm.raised.direction:
            reason = f"the level from before alarm {back.alarm.raised.alarm}"
            if not back.ended:
                reason += ", which recovers once nights are equivalent to it"
            finding = msgspec.structs.replace(finding, status="known", reason=reason)  # noqa: PLW2901 - the same finding
        marked.append(finding)
    return marked


def _title(finding: Finding, effect: float | None, low: float | None, high: float | None) -> str:
    metric = metric_of(finding.key.metric)
    value = signed_percent(effect)
    size = f"{value}% ({interval(low, high)})" if low is not None else f"{value}%"
    return (
        f"{finding.key.variant} is {finding.direction}: {finding.key.task} of {finding.key.challenge}, "
        f"{metric.title} {size} since night {number_of(finding.since)}"
    )


def _same_in(night: NightRecord, now: Finding) -> Finding | None:
    same = (
        finding
        for finding in night.findings
        if finding.key == now.key and finding.direction == now.direction and finding.status in _OPEN
    )
    return next(same, None)


def _figure(one: Finding) -> str:
    metric = metric_of(one.key.metric).title
    return f"{one.key.task} of {one.key.challenge}, {metric} {signed_percent(one.effect_percent)}%"
