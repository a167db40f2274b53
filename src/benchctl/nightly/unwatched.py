"""Figures that have been off for many nights without anybody knowing why: that, too, is told, and once."""

from collections.abc import Iterator
from itertools import groupby

import msgspec

from benchctl.nightly.alarms import NIGHTS_UNTIL_BLIND, Desk
from benchctl.report.numbers import counted, signed_percent
from benchctl.results.nightly.events import Raised, Recovered, alarms_of
from benchctl.results.nightly.model import Finding, FindingStatus, NightRecord, SeriesKey
from benchctl.stats.metrics import metric_of

# Neither an alarm nor cleared: night after night the same finding, which never becomes usual.
_OPEN: frozenset[FindingStatus] = frozenset({"held", "unconfirmed"})


def of_unwatched(desk: Desk, first: int) -> list[Raised]:
    """One alarm a variant that has figures which were held or unconfirmed in five nights running.

    A night in which the canary moved as a whole raises none: there is an alarm for that.

    Args:
        desk: of tonight, whose findings are as they ended.
        first: number of the first alarm.
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
    """Alarms about variants of which nothing is held or unconfirmed any more."""
    tonight = desk.tonight
    off = {one.key.variant for one in tonight.findings if one.status in _OPEN}
    text = "what was off is as usual, or was looked into"
    return [
        Recovered(number, desk.now, tonight.id, text)
        for number, variant in _lasting(desk)
        if tonight.forks_done and tonight.variant(variant) is not None and variant not in off
    ]


def _lasting(desk: Desk) -> Iterator[tuple[int, str]]:
    """Number and variant of the alarms that were raised here and have not recovered."""
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
    return f"{one.key.task} of {one.key.challenge}, {metric} {signed_percent(one.effect_percent)} %"
