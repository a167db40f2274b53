"""Findings into alarms: raised once, with all that somebody needs to know, and followed to their recovery."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

import msgspec

from benchctl.nightly.detection import Baselines, number_of
from benchctl.nightly.model import (
    ANNOTATED,
    Alarm,
    AnswerChange,
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
    annotations_of,
)
from benchctl.nightly.screening import CanaryReport, is_nearer, nights_of, recovered
from benchctl.report.numbers import counted, interval, signed_percent
from benchctl.stats.metrics import metric_of

NIGHTS_UNTIL_BLIND = 5
"""Number of successive nights with the canary off after which the suite counts as unwatched."""

_SHOWN = 3
# Neither an alarm nor cleared: night after night the same finding, which never becomes usual.
_OPEN: frozenset[FindingStatus] = frozenset({"held", "unconfirmed"})


@dataclass(frozen=True)
class Returns:
    """Inputs of recovery: series, and the canary, which holds back what the host did."""

    series: Sequence[Series]
    canary: CanaryReport
    margin: Callable[[SeriesKey], float]


@dataclass(frozen=True)
class Return:
    """An alarm whose figure is back at the level from before."""

    alarm: Alarm
    level: float  # mean ln of that level
    ended: bool  # the nights are equivalent to it: the alarm has recovered


@dataclass(frozen=True)
class Desk:
    """Context of alarms: tonight, and the nights before."""

    nights: Sequence[NightRecord]  # of the suite, in order, tonight's included as it stands
    tonight: NightRecord
    events: Sequence[Event]
    now: str  # the wall clock, ISO 8601

    def returning(self, baselines: Baselines, returns: Returns) -> dict[SeriesKey, Return]:
        """Return alarms about figures that are back tonight, or have been for so long that they recovered.

        None while the host moves, nor if that level is of other conditions, or of before levels were declared
        anew. Of several alarms about a figure it is the first.
        """
        found: dict[SeriesKey, Return] = {}
        for one in returns.series:
            nights = nights_of(one)
            tonight = nights.places_of((self.tonight.number,))
            for alarm in baselines.alarms_about(one.key):
                raised = alarm.raised
                if (
                    one.key in found
                    or tonight.size == 0
                    or alarm.recovered is not None
                    or raised.effect_percent is None
                    or number_of(raised.last_good) not in baselines.comparable
                ):
                    continue
                back: Direction = "faster" if raised.direction == "slower" else "slower"
                older = nights.means[nights.places_of(baselines.usual(one.key, alarm))]
                if older.size == 0 or returns.canary.holds(one.key, back):
                    continue
                newer = nights.means[nights.numbers >= number_of(raised.since)]
                level, margin = float(older.mean()), returns.margin(one.key)
                ended = recovered(newer, older, margin)
                effect = math.log1p(raised.effect_percent / 100)
                if ended or is_nearer(float(newer[-1]), level, effect, margin):
                    found[one.key] = Return(alarm, level, ended)
        return found

    def recoveries(self, returning: Iterable[Return]) -> list[Recovered]:
        """Return recoveries of figures that are back, which end whatever was raised about them since."""
        found = []
        for one in returning:
            if not one.ended:
                continue
            first = one.alarm
            text = f"back at the level from before, {math.exp(one.level):,.4g}"
            found.append(Recovered(first.raised.alarm, self.now, self.tonight.id, text))
            found += [
                Recovered(
                    later.raised.alarm, self.now, self.tonight.id, f"with alarm {first.raised.alarm}: {text}"
                )
                for later in self._alarms
                if later.raised.kind == "figure"
                and later.raised.key == first.raised.key
                and later.raised.alarm > first.raised.alarm
                and later.recovered is None
            ]
        return found

    def of_findings(self, findings: Iterable[Finding]) -> list[Raised]:
        """Return an alarm for every finding that was confirmed."""
        confirmed = [one for one in findings if one.status == "confirmed"]
        return [self._of_finding(number, one) for number, one in enumerate(confirmed, self.next_number)]

    def of_answers(
        self, changes: Iterable[AnswerChange], back: Iterable[Recovered], first: int
    ) -> list[Raised]:
        """Return one alarm a variant: a version that answers everything differently is one piece of news.

        Alarms that recover tonight, `back`, explain changes; `first` is the number of the first alarm.
        """
        recovering = {one.alarm for one in back}
        known = {
            (alarm.raised.key.variant, operation)
            for alarm in self._alarms
            if alarm.raised.alarm in recovering and alarm.raised.kind == "answer"
            for operation in alarm.raised.operations
        }
        new = [one for one in changes if (one.variant, one.operation) not in known]
        grouped = groupby(sorted(new, key=_variant), key=_variant)
        return [self._of_answers(number, list(group)) for number, (_, group) in enumerate(grouped, first)]

    def of_host(self, first: int) -> list[Raised]:
        """Return an alarm that the canary has been off for so long that all findings are held."""
        moved = self._moved_in_a_row
        if len(moved) < NIGHTS_UNTIL_BLIND or any(
            alarm.raised.kind == "host" for alarm in self._alarms if alarm.recovered is None
        ):
            return []
        since = moved[-1]
        return [
            Raised(
                alarm=first,
                at=self.now,
                night=self.tonight.id,
                kind="host",
                title=f"the host moved in night {since.number} and stays there: nobody watches since then",
                key=SeriesKey("", "", "", ""),
                since=since.id,
                changes=since.changes,
                detail=f"{self.tonight.canary_moved}; once the host is as it will stay, begin new levels: "
                f"benchctl nightly annotate {self.tonight.suite} --rebase TEXT",
            )
        ]

    def host_recovered(self) -> list[Recovered]:
        """Return the recovery that the canary is quiet again."""
        if self.tonight.canary_moved:
            return []
        return [
            Recovered(alarm.raised.alarm, self.now, self.tonight.id, "the canary is at its level again")
            for alarm in self._alarms
            if alarm.raised.kind == "host" and alarm.recovered is None
        ]

    def gone(self) -> list[Recovered]:
        """End alarms of variants that the suite no longer has, which nobody would see recover.

        Acknowledged ones stay: should the variant come back, its level is the usual one.
        """
        labels = {one.label for one in self.tonight.variants}
        return [
            Recovered(
                alarm.raised.alarm,
                self.now,
                self.tonight.id,
                f"closed: the suite has no {alarm.raised.key.variant} any more",
            )
            for alarm in self._alarms
            if alarm.state == "open" and alarm.raised.key.variant and alarm.raised.key.variant not in labels
        ]

    @property
    def next_number(self) -> int:
        """The number of the next alarm."""
        return 1 + max((event.alarm for event in self.events if isinstance(event, Raised)), default=0)

    @property
    def _alarms(self) -> tuple[Alarm, ...]:
        return alarms_of(self.events)

    @property
    def _moved_in_a_row(self) -> list[NightRecord]:
        """Nights in which the canary was off, tonight's first, without a quiet one between."""
        found = []
        earlier = [night for night in self._earlier if night.status == "done"]
        for night in sorted((*earlier, self.tonight), key=lambda night: night.number, reverse=True):
            if not night.canary_moved:
                break
            found.append(night)
        return found

    @property
    def _earlier(self) -> list[NightRecord]:
        return [night for night in self.nights if night.number < self.tonight.number]

    def _of_finding(self, number: int, finding: Finding) -> Raised:
        confirmation = finding.confirmation
        shown = confirmation if confirmation is not None else finding
        effect, low, high = shown.effect_percent, shown.low_percent, shown.high_percent
        return Raised(
            alarm=number,
            at=self.now,
            night=self.tonight.id,
            kind="figure",
            title=_title(finding, effect, low, high),
            key=finding.key,
            direction=finding.direction,
            effect_percent=effect,
            low_percent=low,
            high_percent=high,
            since=finding.since,
            last_good=finding.last_good,
            changes=self.changes_between(finding.last_good, finding.since, finding.key.variant),
            confirmation=confirmation,
            command="" if confirmation is None else confirmation.command,
        )

    def changes_between(self, last_good: str, since: str, variant: str) -> tuple[Change, ...]:
        """Return changes after one night up to another that bear on a variant; annotations included."""
        first, last = number_of(last_good), number_of(since)
        found = [
            change
            for night in (*self._earlier, self.tonight)
            if first < night.number <= last
            for change in night.changes
            if change.variant in ("", variant)
        ]
        found += [
            Change(ANNOTATED, "", note.text)
            for note in annotations_of(self.events)
            if first < note.number <= last
        ]
        return tuple(dict.fromkeys(found))

    def _of_answers(self, number: int, changes: Sequence[AnswerChange]) -> Raised:
        variant = changes[0].variant
        shown = [f"{one.operation}: {one.after}, {one.before} before" for one in changes[:_SHOWN]]
        more = f"; and {len(changes) - _SHOWN} more" if len(changes) > _SHOWN else ""
        searches = counted(len(changes), "search") if len(changes) == 1 else f"{len(changes)} searches"
        return Raised(
            alarm=number,
            at=self.now,
            night=self.tonight.id,
            kind="answer",
            title=f"{variant} answers {searches} otherwise than in night {number_of(changes[0].since)}: "
            f"{'; '.join(shown)}{more}",
            key=SeriesKey(variant, "", "", ""),
            operations=tuple(one.operation for one in changes),
            since=self.tonight.id,
            last_good=changes[0].since,
            changes=self.changes_between(changes[0].since, self.tonight.id, variant),
            command=f"benchctl show {self.tonight.run}",
            detail="\n".join(f"{one.operation}: {one.before} -> {one.after}" for one in changes),
        )


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


def _variant(change: AnswerChange) -> str:
    return change.variant


def of_unwatched(desk: Desk, first: int) -> list[Raised]:
    """Return one alarm a variant with figures that were held or unconfirmed in five nights running.

    A night in which the canary moved as a whole raises none: there is an alarm for that. Tonight's
    findings are final; `first` is the number of the first alarm.
    """
    if desk.tonight.canary_moved:
        return []
    told = {variant for _, variant in _lasting(desk)}
    stuck = sorted(_stuck(desk), key=lambda one: (one.key.variant, -abs(one.effect_percent)))
    grouped = [
        (variant, list(group))
        for variant, group in groupby(stuck, key=lambda one: one.key.variant)
        if variant not in told
    ]
    return [
        _alarm(desk, number, variant, findings) for number, (variant, findings) in enumerate(grouped, first)
    ]


def watched_again(desk: Desk) -> list[Recovered]:
    """Return recoveries of variants of which nothing is held or unconfirmed any more."""
    tonight = desk.tonight
    off = {one.key.variant for one in tonight.findings if one.status in _OPEN}
    text = "what was off is as usual, or was looked into"
    return [
        Recovered(number, desk.now, tonight.id, text)
        for number, variant in _lasting(desk)
        if tonight.forks_done and tonight.variant(variant) is not None and variant not in off
    ]


def _lasting(desk: Desk) -> Iterator[tuple[int, str]]:
    """Return number and variant of the alarms that were raised here and have not recovered."""
    for alarm in alarms_of(desk.events):
        if alarm.raised.kind == "unwatched" and alarm.recovered is None:
            yield alarm.raised.alarm, alarm.raised.key.variant


def _stuck(desk: Desk) -> Iterator[Finding]:
    tonight = desk.tonight
    before = sorted(
        (
            night
            for night in desk.nights
            if night.number < tonight.number and night.status == "done" and night.era == tonight.era
        ),
        key=lambda night: -night.number,
    )[: NIGHTS_UNTIL_BLIND - 1]
    if len(before) < NIGHTS_UNTIL_BLIND - 1:
        return
    for one in tonight.findings:
        earlier = [_same_in(night, one) for night in before]
        first = earlier[-1]
        if one.status in _OPEN and first is not None and None not in earlier:
            # Those nights never became usual, so that tonight by itself seems to be the first.
            yield msgspec.structs.replace(one, since=first.since)


def _same_in(night: NightRecord, now: Finding) -> Finding | None:
    same = (
        one
        for one in night.findings
        if one.key == now.key and one.direction == now.direction and one.status in _OPEN
    )
    return next(same, None)


def _alarm(desk: Desk, number: int, variant: str, findings: list[Finding]) -> Raised:
    largest = findings[0]
    more = f", and {counted(len(findings) - 1, 'more figure')}" if len(findings) > 1 else ""
    return Raised(
        alarm=number,
        at=desk.now,
        night=desk.tonight.id,
        kind="unwatched",
        title=f"{variant} has been off in {NIGHTS_UNTIL_BLIND} nights running and nobody could confirm it: "
        f"{_figure(largest)}{more}",
        key=SeriesKey(variant, "", "", ""),
        direction=largest.direction,
        effect_percent=largest.effect_percent,
        low_percent=largest.low_percent,
        high_percent=largest.high_percent,
        since=largest.since,
        last_good=largest.last_good,
        changes=desk.changes_between(largest.last_good, largest.since, variant),
        command=f"benchctl show {desk.tonight.run}",
        detail="\n".join(f"{_figure(one)}, {one.status}: {one.reason}" for one in findings),
    )


def _figure(one: Finding) -> str:
    metric = metric_of(one.key.metric).title
    return f"{one.key.task} of {one.key.challenge}, {metric} {signed_percent(one.effect_percent)}%"
