"""Findings of a night against earlier ones, the alarms that follow from them, and their end."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

import msgspec
import numpy as np

from benchctl.nightly.records import (
    Alarm,
    Direction,
    Finding,
    FindingStatus,
    NightRecord,
    SeriesKey,
    number_of,
)
from benchctl.nightly.series import (
    DEFAULT_MARGIN,
    Nights,
    Screened,
    Series,
    changes,
    is_nearer,
    mean_of,
    nights_of,
    recovered,
    same_engine,
    screen,
)
from benchctl.report.numbers import counted, interval, signed_percent
from benchctl.results.model import RunRecord
from benchctl.stats.compare import as_percent
from benchctl.stats.metrics import metric_of

NIGHTS_UNTIL_BLIND: Final = 5
"""A finding without a verdict in so many nights running is an alarm: what is never usual is not watched."""
_NIGHTS_TO_SEE: Final = 5
"""From so many earlier nights on, it is known how much nights differ; before, only how much forks do."""

_Statuses = frozenset[FindingStatus]
# Neither an alarm nor cleared.
_OPEN: Final[_Statuses] = frozenset({"unconfirmed", "host"})
# A value that was off for a reason that has gone, or that nobody could look into, must not become usual; nor
# one that was back for a night, beside those of the alarm that it was back from.
_NOT_USUAL: Final[_Statuses] = frozenset({"held", "unconfirmed", "known", "host"})
# What stays evidence for the nights to come; what is held says nothing about the engine.
_DOUBTFUL: Final[_Statuses] = frozenset({"unconfirmed", "known"})
# The engine was cleared: what crept up to here was the host's, and sums begin anew.
_CLEARED: Final[_Statuses] = frozenset({"refuted", "same engine"})


@dataclass(frozen=True)
class Return:
    """An alarm whose value is back at the level from before."""

    alarm: Alarm
    level: float  # mean ln of that level
    ended: bool  # the nights are equivalent to it: the alarm has recovered


@dataclass(frozen=True)
class Watch:
    """Knowledge of a suite tonight."""

    nights: Sequence[NightRecord]  # of the suite, in order, tonight's included
    tonight: NightRecord
    alarms: Sequence[Alarm]  # by number
    runs: Mapping[int, RunRecord]  # number of the night -> its run, without forks
    margins: Mapping[str, float]  # metric -> relative change that matters, where it is not the default

    # Which nights a series is held against.

    @cached_property
    def comparable(self) -> tuple[int, ...]:
        """Numbers of the earlier measured nights under the same conditions."""
        return tuple(
            night.number
            for night in self.nights
            if night.number < self.tonight.number and night.status == "done" and night.era == self.tonight.era
        )

    def usual(self, key: SeriesKey, before: Alarm | None = None) -> tuple[int, ...]:
        """Return numbers of the nights that define the level of a series, ascending.

        From an alarm on, further changes are measured from its own level; once it has recovered, the nights
        that it lasted are left out instead. So are nights in which the host moved. With `before`, they are
        the nights that this alarm was measured from.
        """
        out = self._moved | (self._with_status(key, _NOT_USUAL) - self._accepted(key))
        first, end = 0, self.tonight.number if before is None else number_of(before.finding.since)
        for alarm in self._about(key):
            since = number_of(alarm.finding.since)
            if since >= end:
                continue
            if alarm.recovered:
                out |= set(range(since, number_of(alarm.recovered)))
            else:
                first = max(first, since)
        return tuple(number for number in self.comparable if first <= number < end and number not in out)

    def doubtful(self, key: SeriesKey) -> set[int]:
        """Return nights in which a series was off and nobody could confirm it."""
        ends = (number_of(alarm.recovered or alarm.finding.since) for alarm in self._about(key))
        known = set(range(max(ends, default=0)))
        return self._with_status(key, _DOUBTFUL) - self._moved - self._accepted(key) - known

    def _about(self, key: SeriesKey) -> list[Alarm]:
        """Return the alarms that decide the level of a series: its own, and those about the host."""
        return [alarm for alarm in self.alarms if alarm.finding.key == key or not alarm.finding.key.task]

    def _accepted(self, key: SeriesKey) -> set[int]:
        """Return nights whose level is that of an alarm about a series, or the host."""
        return {number for alarm in self._about(key) for number in _until_raised(alarm)}

    @cached_property
    def _moved(self) -> set[int]:
        """Nights in which the host moved, and no alarm says that this is its level now."""
        of_host = (alarm for alarm in self.alarms if not alarm.finding.key.task)
        accepted = {number for alarm in of_host for number in _until_raised(alarm)}
        moved = (night for night in self.nights if any(not finding.key.task for finding in night.findings))
        return {night.number for night in moved} - accepted

    def _with_status(self, key: SeriesKey, statuses: _Statuses) -> set[int]:
        return {number for number, status in self._statuses.get(key, {}).items() if status in statuses}

    @cached_property
    def _statuses(self) -> dict[SeriesKey, dict[int, FindingStatus]]:
        statuses: dict[SeriesKey, dict[int, FindingStatus]] = {}
        for night in (night for night in self.nights if night.number in self.comparable):
            for finding in night.findings:
                statuses.setdefault(finding.key, {})[night.number] = finding.status
        return statuses

    # What stands out.

    def histories(self, series: Iterable[Series]) -> dict[SeriesKey, Nights]:
        """Return tonight's variants night by night: the canary first, as the mean over all tasks of a metric.

        Of it, what happens to single tasks by chance averages out; what happens to the host stays. The
        mean is that of how far tasks are from their usual level; tasks without a value tonight or before do
        not count.
        """
        labels = {spec.name for spec in self.runs[self.tonight.number].plan.variants}
        watched: dict[SeriesKey, Nights] = {}
        groups: dict[SeriesKey, list[Nights]] = {}
        for history in (history for history in series if history.key.variant in labels):
            nights, key = nights_of(history), history.key
            if key.variant != self.tonight.canary:
                watched[key] = nights
                continue
            finite = np.isfinite(nights.means)
            level = nights.means[finite & np.isin(nights.numbers, self.usual(key))]
            if level.size and self.tonight.number in nights.numbers[finite]:
                away = replace(
                    nights, numbers=nights.numbers[finite], means=nights.means[finite] - level.mean()
                )
                groups.setdefault(SeriesKey(key.variant, "", "", key.metric), []).append(away)
        return {key: mean_of(members) for key, members in groups.items()} | watched

    def screened(self, histories: Mapping[SeriesKey, Nights]) -> tuple[list[Finding], list[str]]:
        """Hold tonight against the nights before.

        Returns:
            What left its usual range: the canary, what it explains as `held`, and all others, `unconfirmed`
            until somebody looks into them; and what could not be seen, in sentences.
        """
        number, last = self.tonight.number, max(self.comparable, default=0)
        findings: list[Finding] = []
        watched = young = rare = gone = 0
        for key, nights in histories.items():
            usual = self.usual(key)
            compared = nights.means[nights.places_of([*usual, number])]
            if number not in nights.numbers:
                gone += last in nights.numbers
            elif not np.isfinite(compared).all():
                rare += 1
            elif compared.size == 1:
                young += bool(key.task)
            else:
                watched += 1
                found = screen(
                    nights,
                    number,
                    usual=usual,
                    doubtful=self.doubtful(key),
                    cleared=self._with_status(key, _CLEARED),
                    margin=self.margin(key),
                )
                findings += [] if found is None else [self._finding(key, found, findings)]
        remarks = [f"{gone} series that had values in the night before have none tonight"] if gone else []
        if rare:
            remarks.append(f"{rare} series were 0 in all forks of a night, and have no ratio to compare")
        if young and not watched:
            remarks.append("no earlier nights to compare this one with")
        elif young:
            remarks.append(f"{young} series have no earlier night to compare with")
        elif len(self.comparable) < _NIGHTS_TO_SEE:
            earlier = counted(len(self.comparable), "earlier night")
            remarks.append(f"with {earlier}, only large changes can be detected")
        return findings, remarks

    def margin(self, key: SeriesKey) -> float:
        """Return the relative change of a series from which on an alarm is raised."""
        return self.margins.get(key.metric, DEFAULT_MARGIN) if key.task else DEFAULT_MARGIN

    def _finding(self, key: SeriesKey, found: Screened, before: Sequence[Finding]) -> Finding:
        since = self.night(found.since)
        finding = Finding(
            key=key,
            direction=found.direction,
            effect_percent=found.effect_percent,
            low_percent=as_percent(found.low_log),
            high_percent=as_percent(found.high_log),
            since=since.id,
            last_good=self._last_good(key, found).id,
            status="unconfirmed" if key.task else "host",
            reason="no run was made to confirm it" if key.task else _moved_text(key, found),
        )
        if key.task and (held := _held(key, found.direction, before)):
            return msgspec.structs.replace(finding, status="held", reason=held)
        return finding

    def _last_good(self, key: SeriesKey, found: Screened) -> NightRecord:
        """Return the newest usual night before a change that had another engine; else the newest before."""
        now = self.runs[self.tonight.number]
        usual = [number for number in self.usual(key) if number <= found.last_good][::-1]
        another = (
            number
            for number in usual
            if number in self.runs and not same_engine(self.runs[number], now, key.variant)
        )
        return self.night(next(another, usual[0]))

    def night(self, number: int) -> NightRecord:
        """Return the night of a number."""
        return next(night for night in self.nights if night.number == number)

    # Alarms.

    def returning(
        self, histories: Mapping[SeriesKey, Nights], findings: Sequence[Finding]
    ) -> dict[SeriesKey, Return]:
        """Return alarms whose values are back tonight, or have been for so long that they recovered.

        None while the host moves, nor if that level is of other conditions, or of another level of the host.
        Of several alarms about a series it is the first.
        """
        returns: dict[SeriesKey, Return] = {}
        for alarm in (alarm for alarm in self.alarms if not alarm.recovered):
            finding = alarm.finding
            key, nights = finding.key, histories.get(finding.key)
            hosts = [other for other in self.alarms if not other.recovered and not other.finding.key.task]
            if (
                nights is None
                or key in returns
                or self.tonight.number not in nights.numbers
                or number_of(finding.last_good) not in self.comparable
                or (key.task and any(finding.last_good < host.finding.since for host in hosts))
            ):
                continue
            back: Direction = "faster" if finding.direction == "slower" else "slower"
            older = nights.means[nights.places_of(self.usual(key, alarm))]
            if older.size == 0 or (key.task and _held(key, back, findings)):
                continue
            newer = nights.means[nights.numbers >= number_of(finding.since)]
            level, margin = float(older.mean()), self.margin(key)
            ended = recovered(newer, older, margin)
            effect = math.log1p(finding.effect_percent / 100)
            if ended or is_nearer(float(newer[-1]), level, effect, margin):
                returns[key] = Return(alarm, level, ended)
        return returns

    def ended(self, returning: Mapping[SeriesKey, Return]) -> dict[int, str]:
        """Return number -> why of the alarms that end tonight.

        A value that is back for good ends whatever was raised about it since.
        """
        labels = {spec.name for spec in self.runs[self.tonight.number].plan.variants}
        ends = {}
        for alarm in (alarm for alarm in self.alarms if not alarm.recovered):
            key = alarm.finding.key
            back = returning.get(key)
            # Nobody would see it recover. Once acknowledged, its level is the usual one should it come back.
            if alarm.is_open and key.variant not in labels:
                ends[alarm.number] = f"closed: the suite has no {key.variant} any more"
            elif back is not None and back.ended and alarm.number >= back.alarm.number:
                level = f", {math.exp(back.level):,.4g}" if key.task else ""
                ends[alarm.number] = f"back at the level from before{level}"
        return ends

    def raised(self, findings: Iterable[Finding]) -> list[Alarm]:
        """Return new alarms: about what was confirmed, and what nobody could for so many nights."""
        raised: list[Alarm] = []
        first = 1 + max((alarm.number for alarm in self.alarms), default=0)
        for finding in findings:
            since = finding.since if finding.status == "confirmed" else self._stuck_since(finding)
            if not since:
                continue
            lasting = msgspec.structs.replace(finding, since=since)
            before, then = (self.runs.get(number_of(night)) for night in (lasting.last_good, since))
            found = () if before is None or then is None else changes(before, then, lasting.key.variant)
            raised.append(Alarm(first + len(raised), self.tonight.id, _title(lasting), lasting, found))
        return raised

    def _stuck_since(self, finding: Finding) -> str:
        """Return since when a finding has been open in five successive nights; empty if it has not."""
        if finding.status not in _OPEN:
            return ""
        # Those nights never became usual, so that tonight by itself seems to be the first.
        since = finding.since
        recent = self.comparable[:-NIGHTS_UNTIL_BLIND:-1]
        for number in recent:
            same = [
                other
                for other in self.night(number).findings
                if (other.key, other.direction) == (finding.key, finding.direction) and other.status in _OPEN
            ]
            if not same:
                return ""
            since = same[0].since
        return since if len(recent) == NIGHTS_UNTIL_BLIND - 1 else ""


def mark_known(findings: Iterable[Finding], returning: Mapping[SeriesKey, Return]) -> list[Finding]:
    """Mark findings that are an alarm's way back: they are not news, and nothing is run for them."""
    marked = []
    for finding in findings:
        back = returning.get(finding.key)
        if back is not None and finding.direction != back.alarm.finding.direction:
            reason = f"it is on its way back to the level from before alarm {back.alarm.number}"
            finding = msgspec.structs.replace(finding, status="known", reason=reason)  # noqa: PLW2901 - the same
        marked.append(finding)
    return marked


def _until_raised(alarm: Alarm) -> range:
    return range(number_of(alarm.finding.since), number_of(alarm.night) + 1)


def _held(key: SeriesKey, direction: Direction, findings: Iterable[Finding]) -> str:
    """Return why a change of a series is held: the canary moved the same way in this metric."""
    moves = (
        finding.reason
        for finding in findings
        if finding.status == "host" and (finding.key.metric, finding.direction) == (key.metric, direction)
    )
    return next(moves, "")


def _moved_text(key: SeriesKey, found: Screened) -> str:
    effect = signed_percent(found.effect_percent)
    return f"the canary {key.variant} is {found.direction}: {key.metric} of all its tasks {effect}%"


def _title(finding: Finding) -> str:
    key = finding.key
    what = f"{metric_of(key.metric).title} {signed_percent(finding.effect_percent)}%"
    bounds = f"({interval(finding.low_percent, finding.high_percent)}) since night {number_of(finding.since)}"
    if not key.task:
        return (
            f"the host changed permanently: the canary {key.variant} is {finding.direction}, {what} {bounds}"
        )
    verdict = "" if finding.status == "confirmed" else f", never confirmed in {NIGHTS_UNTIL_BLIND} nights"
    return f"{key.variant} is {finding.direction}: {key.task} of {key.challenge}, {what} {bounds}{verdict}"
