from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchctl.nightly.detection import Baselines, number_of
from benchctl.nightly.model import (
    Acknowledged,
    Event,
    NightRecord,
    Raised,
    Recovered,
    SeriesKey,
)
from night_records import KEY, finding, night

OTHER = SeriesKey("es", "short", "sort", "throughput")


def raised(number: int, since: int) -> Raised:
    return Raised(number, "", night(since).id, "figure", "", KEY, since=night(since).id)


def usual(
    nights: Sequence[NightRecord], events: Sequence[Event] = (), tonight: int = 10, key: SeriesKey = KEY
) -> tuple[int, ...]:
    return Baselines.of(nights, events, night(tonight)).usual(key)


EVERY = tuple(range(1, 10))
ALARM = raised(1, since=5)
MOVED = Raised(2, "", night(8).id, "host", "", SeriesKey("", "", "", ""), since=night(6).id)


@pytest.mark.parametrize(
    ("events", "key", "expected"),
    [
        ([], KEY, EVERY),
        # From an alarm on, its own level is usual; not of another series.
        ([ALARM], KEY, (5, 6, 7, 8, 9)),
        ([ALARM, Acknowledged(1, "", "ann")], KEY, (5, 6, 7, 8, 9)),
        ([ALARM], OTHER, EVERY),
        # Once it has recovered, the nights that it lasted are left out.
        ([ALARM, Recovered(1, "", night(8).id)], KEY, (1, 2, 3, 4, 8, 9)),
        # A move of the host is acknowledged while it lasts, or not at all.
        ([MOVED, Acknowledged(2, "", "ann")], KEY, (6, 7, 8, 9)),
        ([MOVED], KEY, EVERY),
        ([MOVED, Recovered(2, "", night(9).id), Acknowledged(2, "", "ann")], KEY, EVERY),
    ],
)
def test_what_was_said_decides_which_nights_are_usual(
    events: list[Event], key: SeriesKey, expected: tuple[int, ...]
) -> None:
    # Night 11 is later than tonight.
    nights = [night(number) for number in (*EVERY, 11)]
    assert usual(nights, events, key=key) == expected


def test_nights_of_a_move_that_is_acknowledged_are_the_new_level() -> None:
    nights = [night(number, canary_moved="all tasks" if number >= 6 else "") for number in EVERY]
    assert usual(nights, [MOVED]) == (1, 2, 3, 4, 5)
    # Night 9 is later than the alarm: what moved then may have been something else.
    assert usual(nights, [MOVED, Acknowledged(2, "", "ann")]) == (6, 7, 8)


@pytest.mark.parametrize(
    ("fields", "of_others"),
    [
        ({"status": "failed"}, (1, 3)),
        ({"status": "discarded"}, (1, 3)),
        ({"era": "another"}, (1, 3)),
        ({"canary_moved": "all of it"}, (1, 3)),
        ({"findings": (finding(2, "held"),)}, (1, 2, 3)),
        ({"findings": (finding(2, "unconfirmed"),)}, (1, 2, 3)),
        ({"findings": (finding(2, "known"),)}, (1, 2, 3)),
    ],
)
def test_a_night_that_nobody_can_go_by_is_not_usual(
    fields: dict[str, Any], of_others: tuple[int, ...]
) -> None:
    nights = [night(1), night(2, **fields), night(3)]
    assert usual(nights) == (1, 3)
    assert usual(nights, key=OTHER) == of_others


@pytest.mark.parametrize(("status", "expected"), [("unconfirmed", {3}), ("known", {3}), ("held", set())])
def test_what_nobody_could_confirm_stays_evidence_until_the_next_alarm(
    status: str, expected: set[int]
) -> None:
    nights = [night(1), night(2), night(3, findings=(finding(3, status),)), night(4), night(5)]
    assert Baselines.of(nights, (), night(10)).doubtful(KEY) == expected
    assert Baselines.of(nights, (), night(10)).doubtful(OTHER) == set()
    assert Baselines.of(nights, [raised(1, since=4)], night(10)).doubtful(KEY) == set()
    events: list[Event] = [raised(1, since=2), Recovered(1, "", night(5).id)]
    assert Baselines.of(nights, events, night(10)).doubtful(KEY) == set()


def test_a_level_that_nobody_could_confirm_is_usual_once_its_alarm_is_acknowledged() -> None:
    off = {3, 4, 5}
    nights = [
        night(number, findings=(finding(number, "unconfirmed"),) if number in off else ())
        for number in range(1, 8)
    ]
    key = SeriesKey("es", "", "", "")
    told = Raised(1, "", night(5).id, "unwatched", "", key, since=night(3).id)
    ended = Recovered(1, "", night(5).id)
    for events, expected, doubtful in (
        ([told], (1, 2, 6, 7), off),
        ([told, Acknowledged(1, "", "ann")], (3, 4, 5, 6, 7), set()),
        ([told, Acknowledged(1, "", "ann"), ended], (3, 4, 6, 7), {5}),
    ):
        found = Baselines.of(nights, events, night(10))
        assert (found.usual(KEY), found.doubtful(KEY)) == (expected, doubtful)
        assert found.usual(OTHER) == tuple(range(1, 8))


def test_the_level_before_an_alarm_is_that_of_the_nights_that_it_was_measured_from() -> None:
    nights = [night(number) for number in range(1, 10)]
    events: list[Event] = [raised(1, since=3), Recovered(1, "", night(5).id), raised(2, since=7)]
    found = Baselines.of(nights, events, night(10))
    first, second = found.alarms
    assert (found.usual(KEY, first), found.usual(KEY, second)) == ((1, 2), (1, 2, 5, 6))


@pytest.mark.parametrize("status", ["refuted", "same engine"])
def test_a_figure_of_a_cleared_engine_stays_and_sums_begin_anew(status: str) -> None:
    nights = [night(1), night(2), night(3, findings=(finding(3, status),))]
    found = Baselines.of(nights, (), night(10))
    assert found.usual(KEY) == (1, 2, 3)
    assert found.cleared(KEY) == {3}
    assert found.cleared(OTHER) == frozenset()


@given(st.lists(st.tuples(st.integers(1, 20), st.integers(0, 10)), max_size=5), st.integers(1, 30))
def test_usual_nights_are_earlier_ascending_and_known(alarms: list[tuple[int, int]], tonight: int) -> None:
    nights = [night(number) for number in range(1, 25)]
    events: list[Event] = []
    for number, (since, lasted) in enumerate(alarms, 1):
        events.append(raised(number, since))
        if lasted:
            events.append(Recovered(number, "", night(since + lasted).id))
    found = usual(nights, events, tonight)
    assert list(found) == sorted(set(found))
    assert all(1 <= number < tonight for number in found)


def test_a_night_is_known_by_the_number_that_its_id_begins_with() -> None:
    assert number_of("00042-20261121-0300") == 42
    assert number_of("") == 0
