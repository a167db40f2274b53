from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from benchctl.nightly.alarms import NIGHTS_UNTIL_BLIND, Desk
from benchctl.nightly.model import Acknowledged, Event, NightRecord
from night_records import KEY, finding, night

OTHER = msgspec.structs.replace(KEY, task="sort")


def off(number: int, status: str = "unconfirmed", **fields: Any) -> NightRecord:
    """A night in which a series was off, and the run of the night had figures."""
    return night(number, findings=(finding(number, status, **fields),), forks_done=5)


def desk(nights: Sequence[NightRecord], events: Sequence[Event] = ()) -> Desk:
    return Desk(nights, nights[-1], events, "2026-11-21T03:00:00+00:00")


LONG = [off(number) for number in range(1, NIGHTS_UNTIL_BLIND + 1)]


@pytest.mark.parametrize("status", ["unconfirmed", "held"])
def test_what_nobody_can_confirm_for_five_nights_is_told_once(status: str) -> None:
    nights = [*LONG[:-1], off(NIGHTS_UNTIL_BLIND, status)]
    assert desk(nights[1:]).raised([]) == []
    (one,) = desk(nights).raised([])
    assert (one.alarm, one.kind, one.key.variant, one.direction) == (1, "unwatched", "es", "slower")
    assert one.since == night(1).id
    assert one.title == (
        "es has been off in 5 successive nights, never confirmed: range of short, throughput -20.0%"
    )
    again = [*nights, off(NIGHTS_UNTIL_BLIND + 1)]
    assert desk(again, [one]).raised([]) == []
    assert desk(again, [one, Acknowledged(1, "", "ann")]).raised([]) == []


def test_several_figures_of_a_variant_are_one_alarm() -> None:
    larger = [finding(number, "held", key=OTHER, effect_percent=-30.0) for number in range(1, 6)]
    nights = [
        msgspec.structs.replace(one, findings=(*one.findings, more))
        for one, more in zip(LONG, larger, strict=True)
    ]
    (one,) = desk(nights).raised([])
    assert "sort of short, throughput -30.0%, and 1 more figure" in one.title
    assert len(one.detail.splitlines()) == 2


@pytest.mark.parametrize(
    "between",
    [
        night(3, forks_done=5),
        off(3, "refuted"),
        off(3, direction="faster"),
        off(3, key=OTHER),
    ],
)
def test_a_night_in_which_it_was_not_off_begins_the_count_anew(between: NightRecord) -> None:
    assert desk([*LONG[:2], between, *LONG[3:]]).raised([]) == []


def test_nights_without_figures_and_of_another_era_do_not_count() -> None:
    assert len(desk([*LONG[:-1], night(5, status="failed"), off(6)]).raised([])) == 1
    assert desk([msgspec.structs.replace(LONG[0], era="other"), *LONG[1:]]).raised([]) == []


def test_a_moved_canary_has_an_alarm_of_its_own() -> None:
    moved = msgspec.structs.replace(LONG[-1], canary_moved="all tasks")
    assert desk([*LONG[:-1], moved]).raised([]) == []


def test_it_recovers_once_nothing_is_off_or_it_was_looked_into() -> None:
    (raised,) = desk(LONG).raised([])
    assert desk([*LONG, off(6)], [raised]).recovered({}) == []
    assert desk([*LONG, night(6)], [raised]).recovered({}) == []
    for last in (night(6, forks_done=5), off(6, "confirmed"), off(6, "refuted")):
        assert [one.alarm for one in desk([*LONG, last], [raised]).recovered({})] == [1]
