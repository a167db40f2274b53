from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import msgspec
import numpy as np
import pytest

from benchctl.nightly.alarms import NIGHTS_UNTIL_BLIND, Desk, Return, mark_known
from benchctl.nightly.detection import Baselines
from benchctl.nightly.model import (
    Acknowledged,
    AlarmKind,
    Change,
    Confirmation,
    Event,
    NightRecord,
    NightVariant,
    Raised,
    Recovered,
    Series,
    SeriesKey,
    alarms_of,
)
from builders import ES, OS
from night_records import KEY, finding, night

BOTH = (NightVariant("es", "watched", "es", ES), NightVariant("os", "watched", "os", OS))
QUIET = SimpleNamespace(holds=lambda _key, _direction: "", text="")
MOVING = SimpleNamespace(holds=lambda _key, _direction: "the canary moved", text="the canary moved")


def desk(nights: Sequence[NightRecord], events: Sequence[Event] = ()) -> Desk:
    return Desk(nights, nights[-1], events, "2026-11-21T03:00:00+00:00")


def confirmation() -> Confirmation:
    return Confirmation("run", 5, 5, -21.0, -24.0, -18.0, 0.001, "benchctl run --variant a --variant b")


def test_an_alarm_carries_what_was_confirmed_and_what_changed_then() -> None:
    version = Change("es: version", "8.11.0", "8.12.0", "es")
    kernel = Change("kernel", "6.1", "6.2")
    foreign = Change("os: version", "2.11.0", "2.12.0", "os")
    nights = [night(1, changes=(kernel,)), night(2), night(3, changes=(version, foreign, kernel)), night(4)]
    found = finding(3, confirmation=confirmation())
    (one,) = desk(nights).raised([found])
    assert (one.alarm, one.kind, one.direction) == (1, "figure", "slower")
    assert (one.effect_percent, one.low_percent, one.high_percent) == (-21.0, -24.0, -18.0)
    assert one.changes == (version, kernel)
    assert one.command == "benchctl run --variant a --variant b"
    assert one.title == ("es is slower: range of short, throughput -21.0% (-24.0 to -18.0) since night 3")


@pytest.mark.parametrize("status", ["refuted", "unconfirmed", "held", "same engine", "known"])
def test_only_a_confirmed_finding_raises_an_alarm(status: str) -> None:
    assert desk([night(3)]).raised([finding(3, status)]) == []


def test_alarms_are_numbered_on() -> None:
    events = [Raised(7, "", night(1).id, "figure", "", KEY)]
    other = msgspec.structs.replace(KEY, task="sort")
    found = desk([night(3)], events).raised([finding(3), finding(3, key=other)])
    assert [one.alarm for one in found] == [8, 9]


def series(*newest: float) -> list[Series]:
    """Two nights at ten, then the newest, from night 3 on."""
    values = np.array([10.0, 10.1, *newest])
    return [
        Series(
            key=KEY,
            unit="queries/s",
            higher_is_better=True,
            nights=np.arange(1, len(values) + 1),
            forks=np.zeros(len(values), np.int64),
            values=values,
        )
    ]


def raised_alarm() -> Raised:
    return Raised(
        3, "", night(3).id, "figure", "", KEY, direction="slower", effect_percent=-20.0, since=night(3).id,
        last_good=night(2).id,
    )  # fmt: skip


def returning(
    *newest: float, canary: Any = QUIET, events: Sequence[Event] = (), era: str = "same"
) -> dict[int, bool]:
    """Return number -> whether it has recovered, of the alarms whose figures are back."""
    known = [night(number, era=era if number < 3 else "same") for number in range(1, 3 + len(newest))]
    events = events or [raised_alarm()]
    baselines = Baselines.of(known, events, known[-1])
    found = desk(known, events).returning(baselines, series(*newest), canary, lambda _key: 0.05)
    return {one.alarm.raised.alarm: one.ended for one in found.values()}


def test_a_figure_recovers_once_nights_are_equivalent_to_the_level_before() -> None:
    assert returning(8.0, 10.1) == {3: False}
    assert returning(8.0, 9.9, 10.1) == {3: False}
    assert returning(8.0, 9.9, 10.1, 10.0) == {3: True}


def test_a_figure_that_is_still_off_has_not() -> None:
    assert returning(8.0, 9.9, 8.1) == {}


def test_nothing_recovers_while_the_host_moves() -> None:
    assert returning(8.0, 9.9, 10.1, 10.0, canary=MOVING) == {}


def test_nothing_recovers_twice() -> None:
    events = [raised_alarm(), Recovered(3, "", night(4).id)]
    assert returning(8.0, 9.9, 10.1, 10.0, events=events) == {}


def test_a_level_of_other_conditions_or_of_before_a_rebase_is_nothing_to_be_back_at() -> None:
    host = Raised(4, "", night(3).id, "host", "", SeriesKey("", "", "", ""), since=night(3).id)
    events = [raised_alarm(), host, Acknowledged(4, "", "ann")]
    assert returning(8.0, 9.9, 10.1, 10.0, events=events) == {}
    assert returning(8.0, 9.9, 10.1, 10.0, era="old") == {}


def test_whoever_is_back_at_the_first_level_has_recovered_from_all_that_came_after() -> None:
    worse = msgspec.structs.replace(raised_alarm(), alarm=4, since=night(4).id)
    other = msgspec.structs.replace(worse, alarm=5, key=msgspec.structs.replace(KEY, task="sort"))
    events = [raised_alarm(), worse, other]
    assert returning(8.0, 9.9, 10.1, 10.0, events=events) == {3: True}
    first = Return(alarms_of(events[:1])[0], float(np.log(10.0)), ended=True)
    last = night(5, variants=BOTH)
    back = desk([last], events).recovered({KEY: first})
    assert [(one.alarm, one.night) for one in back] == [(3, last.id), (4, last.id)]
    assert back[0].text == "back at the level from before, 10"
    assert back[1].text == "with alarm 3: back at the level from before, 10"
    single = {KEY: Return(first.alarm, first.level, ended=False)}
    assert desk([last], events).recovered(single) == []


def test_a_finding_that_is_an_alarms_way_back_is_no_news() -> None:
    back = finding(5, "unconfirmed", direction="faster")
    worse = finding(5, "unconfirmed")
    other = finding(5, "unconfirmed", direction="faster", key=msgspec.structs.replace(KEY, task="sort"))
    known = {KEY: Return(alarms_of([raised_alarm()])[0], 2.3, ended=False)}
    assert [one.status for one in mark_known([back, worse, other], known)] == [
        "known",
        "unconfirmed",
        "unconfirmed",
    ]


def test_open_alarms_about_a_variant_that_is_gone_are_closed_and_say_so() -> None:
    def raised(number: int, variant: str, kind: AlarmKind = "figure") -> Raised:
        return Raised(number, "", night(1).id, kind, "", SeriesKey(variant, "", "", ""))

    events = [
        raised(1, "es"),
        raised(2, "os"),
        raised(3, "os", "unwatched"),
        raised(4, "", "host"),
        raised(5, "os"),
        Acknowledged(5, "", "ann"),
        raised(6, "os"),
        Recovered(6, "", night(2).id),
    ]
    closed = desk([night(5, variants=BOTH[:1], canary_moved="all")], events).recovered({})
    assert [(one.alarm, one.text) for one in closed] == [
        (2, "closed: the suite has no os any more"),
        (3, "closed: the suite has no os any more"),
    ]
    assert desk([night(5, variants=BOTH, canary_moved="all")], events).recovered({}) == []


def test_a_canary_that_stays_off_is_told_once_and_recovers() -> None:
    quiet = [night(number) for number in range(1, 4)]
    off = [night(number, canary_moved="all tasks") for number in range(4, 4 + NIGHTS_UNTIL_BLIND)]
    nights = [*quiet, *off]
    assert desk(nights[:-1]).raised([]) == []
    (one,) = desk(nights).raised([])
    assert (one.kind, one.since) == ("host", night(4).id)
    assert "benchctl nightly ack big5 ALARM" in one.detail
    later = [*nights, night(20, canary_moved="all tasks")]
    assert desk(later, [one]).raised([]) == []
    assert desk(later, [one]).recovered({}) == []
    (back,) = desk([*later, night(21)], [one]).recovered({})
    assert back.alarm == 1
