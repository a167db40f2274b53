"""Which nights are usual, what stands out against them, and what is raised and recovers."""

from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchctl.nightly.alarms import NIGHTS_UNTIL_BLIND, Return, Watch, mark_known
from benchctl.nightly.records import Alarm, Finding, NightRecord, SeriesKey
from benchctl.nightly.series import Series
from nightly.made import HOST, KEY, OTHER, alarm, finding, night, night_id, recovered, run, series

EVERY = tuple(range(1, 10))
QUIET = (100.0, 101.0, 99.0, 100.5, 99.5)
TASKS = tuple(msgspec.structs.replace(KEY, variant="canary", task=f"task {number}") for number in range(4))


def watch(
    nights: Sequence[NightRecord], alarms: Sequence[Alarm] = (), margins: dict[str, float] | None = None
) -> Watch:
    return Watch(nights, nights[-1], alarms, {one.number: run() for one in nights}, margins or {})


def usual(
    nights: Sequence[NightRecord], alarms: Sequence[Alarm] = (), key: SeriesKey = KEY
) -> tuple[int, ...]:
    return watch([*nights, night(10)], alarms).usual(key)


def moved(number: int, status: str = "host", **fields: Any) -> NightRecord:
    return night(number, findings=(finding(number, status, key=HOST, **fields),))


# Usual nights.


@pytest.mark.parametrize(
    ("alarms", "key", "expected"),
    [
        ([], KEY, EVERY),
        # From an alarm on, its own level is usual; not of another series.
        ([alarm(1, 5)], KEY, (5, 6, 7, 8, 9)),
        ([alarm(1, 5, acknowledged="ann")], KEY, (5, 6, 7, 8, 9)),
        ([alarm(1, 5)], OTHER, EVERY),
        # Once it has recovered, the nights that it lasted are left out.
        ([recovered(1, 5, 8)], KEY, (1, 2, 3, 4, 8, 9)),
        # The level of the host is that of all series.
        ([alarm(1, 6, 8, key=HOST)], KEY, (6, 7, 8, 9)),
        ([recovered(1, 6, 9, key=HOST)], KEY, (1, 2, 3, 4, 5, 9)),
    ],
)
def test_alarms_decide_which_nights_are_usual(
    alarms: list[Alarm], key: SeriesKey, expected: tuple[int, ...]
) -> None:
    assert usual([night(number) for number in EVERY], alarms, key) == expected


def test_nights_in_which_the_host_moved_are_not_usual_unless_an_alarm_makes_them_its_level() -> None:
    nights = [moved(number) if number >= 6 else night(number) for number in EVERY]
    assert usual(nights) == (1, 2, 3, 4, 5)
    # Night 9 is later than the alarm: what moved then may have been something else.
    assert usual(nights, [alarm(1, 6, 8, key=HOST)]) == (6, 7, 8)


@pytest.mark.parametrize(
    ("fields", "of_others"),
    [
        ({"status": "failed"}, (1, 3)),
        ({"era": "another"}, (1, 3)),
        ({"findings": (finding(2, "host", key=HOST),)}, (1, 3)),
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
    nights = [night(1), night(2), night(3, findings=(finding(3, status),)), night(4), night(10)]
    assert watch(nights).doubtful(KEY) == expected
    assert watch(nights).doubtful(OTHER) == set()
    assert watch(nights, [alarm(1, 4)]).doubtful(KEY) == set()
    assert watch(nights, [recovered(1, 2, 5)]).doubtful(KEY) == set()


def test_the_level_before_an_alarm_is_that_of_the_nights_that_it_was_measured_from() -> None:
    first, second = recovered(1, 3, 5), alarm(2, 7)
    found = watch([night(number) for number in range(1, 11)], [first, second])
    assert (found.usual(KEY, first), found.usual(KEY, second)) == ((1, 2), (1, 2, 5, 6))


@given(st.lists(st.tuples(st.integers(1, 20), st.integers(0, 10)), max_size=5), st.integers(1, 24))
def test_usual_nights_are_earlier_and_ascending(spans: list[tuple[int, int]], tonight: int) -> None:
    nights = [night(number) for number in range(1, tonight + 1)]
    alarms = [
        recovered(number, since, since + lasted) if lasted else alarm(number, since)
        for number, (since, lasted) in enumerate(spans, 1)
    ]
    found = watch(nights, alarms).usual(KEY)
    assert list(found) == sorted(set(found))
    assert all(1 <= number < tonight for number in found)


# What stands out.


def five(key: SeriesKey, levels: Sequence[float]) -> Series:
    """Five forks a night, from night 1 on; a level of 0 is a night without a value."""
    nights = [(level * np.linspace(0.995, 1.005, 5)).tolist() if level else [] for level in levels]
    return series(nights, key=key, higher_is_better=True)


def screened(
    *levels: float, canary: Sequence[float] = (), **of: Any
) -> tuple[Watch, list[Finding], list[str]]:
    found = watch([night(number) for number in range(1, len(levels) + 1)], **of)
    histories = found.histories(
        [five(KEY, levels), *(five(key, canary or [50.0] * len(levels)) for key in TASKS)]
    )
    return found, *found.screened(histories)


def test_a_value_as_usual_is_no_finding():
    _, findings, remarks = screened(*QUIET, 100.0)
    assert (findings, remarks) == ([], [])


def test_a_slower_night_is_a_finding_that_waits_to_be_looked_into():
    _, (one,), _ = screened(*QUIET, 70.0)
    assert (one.key, one.direction, one.status) == (KEY, "slower", "unconfirmed")
    assert one.effect_percent == pytest.approx(-30, abs=0.5)
    assert (one.since, one.last_good) == (night_id(6), night_id(5))


def test_what_the_canary_shows_as_well_is_held_if_it_is_the_same_way():
    slower = (50.0, 50.5, 49.5, 50.2, 49.8, 35.0)
    _, (host, held), _ = screened(*QUIET, 70.0, canary=slower)
    assert (host.key, host.status, host.direction) == (HOST, "host", "slower")
    assert (held.key, held.status, held.reason) == (KEY, "held", host.reason)
    _, (host, other), _ = screened(*QUIET, 140.0, canary=slower)
    assert (host.status, other.status) == ("host", "unconfirmed")


def test_a_single_task_of_the_canary_moves_nothing():
    found = watch([night(number) for number in range(1, 7)])
    tasks = [five(key, (*QUIET, 99.0 if place else 85.0)) for place, key in enumerate(TASKS * 5)]
    keys = [msgspec.structs.replace(HOST, task=str(place)) for place in range(len(tasks))]
    histories = found.histories(
        [Series(**{**vars(one), "key": key}) for one, key in zip(tasks, keys, strict=True)]
    )
    assert [*histories] == [HOST]
    assert found.screened(histories)[0] == []


def test_a_margin_of_the_suite_counts_for_its_metric_alone():
    assert screened(*QUIET, 80.0, margins={"throughput": 0.6})[1] == []
    assert len(screened(*QUIET, 80.0, margins={"service_time_p90": 0.6})[1]) == 1


@pytest.mark.parametrize(
    ("levels", "remark"),
    [
        ((70.0,), "no earlier nights to compare this one with"),
        ((0, 0, 0, 0, 0, 70.0), "1 series have no earlier night to compare with"),
        ((100.0, 101.0), "with 1 earlier night, only large"),
        ((*QUIET, 0.0), "1 series that had values in the night before have none tonight"),
    ],
)
def test_what_could_not_be_seen_is_told(levels: tuple[float, ...], remark: str):
    _, findings, remarks = screened(*levels)
    assert findings == []
    assert remark in remarks[0]


@pytest.mark.parametrize("rare", [1, 6])
def test_a_night_of_zeros_has_no_ratio_and_is_counted(rare: int):
    nights = [[0.0, 0.0] if number == rare else [1.0, 1.0 + number / 100] for number in range(1, 7)]
    found = watch([night(number) for number in range(1, 7)])
    findings, remarks = found.screened(found.histories([series(nights, additive=True)]))
    assert (findings, remarks[0].split(" series")[0]) == ([], "1")


@pytest.mark.parametrize(
    ("changed", "expected"), [((), 5), ((3,), 2), ((5,), 4)], ids=["never", "early", "last night"]
)
def test_last_good_is_the_newest_night_before_that_had_another_engine(
    changed: tuple[int, ...], expected: int
):
    builds = ["old"] * 5 if changed else ["new"] * 5
    for change in changed:
        builds[change - 1 :] = ["new"] * (6 - change)
    runs = {number: run(build) for number, build in enumerate([*builds, "new"], 1)}
    nights = [night(number) for number in range(1, 7)]
    found = Watch(nights, nights[-1], (), runs, {})
    (one,), _ = found.screened(found.histories([five(KEY, (*QUIET, 70.0))]))
    assert one.last_good == night_id(expected)


# What is raised.


def test_an_alarm_carries_its_finding_and_what_changed_then() -> None:
    nights = [night(number) for number in (1, 2, 3, 4)]
    runs = {1: run(), 2: run(), 3: run("b2"), 4: run("b3")}
    found = Watch(nights, nights[-1], [alarm(7, 1, key=OTHER)], runs, {})
    (one,) = found.raised([finding(3)])
    assert (one.number, one.night, one.finding, one.is_open) == (8, night_id(4), finding(3), True)
    assert "es: build b1 → b2" in one.changes
    assert not any("canary" in text for text in one.changes)
    assert one.title == "es is slower: range of short, throughput -20.0% (-25..-15) since night 3"


@pytest.mark.parametrize("status", ["refuted", "unconfirmed", "held", "same engine", "known", "host"])
def test_only_a_confirmed_finding_raises_an_alarm_at_once(status: str) -> None:
    assert watch([night(2), night(3)]).raised([finding(3, status)]) == []


def off(number: int, status: str = "unconfirmed", key: SeriesKey = KEY, **fields: Any) -> NightRecord:
    return night(number, findings=(finding(number, status, key=key, **fields),))


@pytest.mark.parametrize(
    ("status", "key", "title"),
    [
        ("unconfirmed", KEY, "never confirmed in 5 nights"),
        ("host", HOST, "the host changed permanently: the canary canary is slower"),
    ],
)
def test_what_nobody_can_confirm_for_five_nights_is_an_alarm(status: str, key: SeriesKey, title: str) -> None:
    nights = [off(number, status, key) for number in range(1, NIGHTS_UNTIL_BLIND + 1)]
    tonight = nights[-1].findings
    assert watch(nights[1:]).raised(tonight) == []
    (one,) = watch(nights).raised(tonight)
    assert (one.finding.since, one.finding.key) == (night_id(1), key)
    assert title in one.title
    # Its nights are the level from then on.
    assert watch([*nights, night(6)], [one]).usual(key) == (1, 2, 3, 4, 5)


@pytest.mark.parametrize(
    "between", [night(3), off(3, "refuted"), off(3, direction="faster"), off(3, key=OTHER)]
)
def test_a_night_in_which_it_was_not_off_begins_the_count_anew(between: NightRecord) -> None:
    nights = [off(1), off(2), between, off(4), off(5)]
    assert watch(nights).raised(nights[-1].findings) == []


def test_nights_that_failed_do_not_count_and_those_of_another_era_do_not() -> None:
    nights = [*(off(number) for number in range(1, 5)), night(5, status="failed"), off(6)]
    assert len(watch(nights).raised(nights[-1].findings)) == 1
    nights[0] = msgspec.structs.replace(nights[0], era="other")
    assert watch(nights).raised(nights[-1].findings) == []


# What recovers.


def returning(
    *newest: float,
    findings: Sequence[Finding] = (),
    alarms: Sequence[Alarm] = (alarm(3, 3),),
    era: str = "same",
) -> dict[int, bool]:
    """Return number -> whether it has recovered, of the alarms whose values are back."""
    nights = [night(number, era=era if number < 3 else "same") for number in range(1, 3 + len(newest))]
    found = watch(nights, alarms)
    history = series([[value] for value in (10.0, 10.1, *newest)], higher_is_better=True)
    returns = found.returning(found.histories([history]), findings)
    return {one.alarm.number: one.ended for one in returns.values()}


def test_a_value_recovers_once_nights_are_equivalent_to_the_level_before() -> None:
    assert returning(8.0, 10.1) == {3: False}
    assert returning(8.0, 9.9, 10.1) == {3: False}
    assert returning(8.0, 9.9, 10.1, 10.0) == {3: True}
    assert returning(8.0, 9.9, 10.1, 10.0, alarms=[alarm(3, 3, acknowledged="ann")]) == {3: True}


def test_what_is_still_off_or_recovered_before_does_not() -> None:
    assert returning(8.0, 9.9, 8.1) == {}
    assert returning(8.0, 9.9, 10.1, 10.0, alarms=[recovered(3, 3, 4)]) == {}


def test_nothing_recovers_while_the_host_moves_or_at_another_level_of_it() -> None:
    host = finding(6, "host", key=HOST, direction="faster")
    assert returning(8.0, 9.9, 10.1, 10.0, findings=[host]) == {}
    assert returning(8.0, 9.9, 10.1, 10.0, alarms=[alarm(3, 3), alarm(4, 4, key=HOST)]) == {}
    assert returning(8.0, 9.9, 10.1, 10.0, era="old") == {}


def test_the_host_recovers_like_any_other() -> None:
    nights = [night(number) for number in range(1, 8)]
    alarms = [alarm(1, 3, key=HOST), alarm(2, 3, key=msgspec.structs.replace(HOST, metric="cpu"))]
    for levels, expected in (((8, 10, 10.1, 9.9, 10), {HOST: True}), ((8,) * 5, {})):
        found = watch(nights, alarms)
        histories = found.histories([five(key, (10.0, 10.1, *levels)) for key in TASKS])
        returns = found.returning(histories, [])
        assert {key: one.ended for key, one in returns.items()} == expected


def test_what_is_back_at_the_first_level_has_recovered_from_all_that_came_after() -> None:
    alarms = [alarm(3, 3), alarm(4, 4), alarm(5, 4, key=OTHER)]
    assert returning(8.0, 9.9, 10.1, 10.0, alarms=alarms) == {3: True}
    found = watch([night(6)], alarms)
    back = Return(alarms[0], float(np.log(10.0)), ended=True)
    assert found.ended({KEY: back}) == dict.fromkeys((3, 4), "back at the level from before, 10")
    assert found.ended({KEY: Return(alarms[0], 2.3, ended=False)}) == {}


def test_open_alarms_about_a_variant_that_is_gone_are_closed() -> None:
    gone = msgspec.structs.replace(KEY, variant="os")
    alarms = [alarm(1, 1), alarm(2, 1, key=gone), alarm(3, 1, key=gone, acknowledged="ann")]
    assert watch([night(5)], alarms).ended({}) == {2: "closed: the suite has no os any more"}


def test_a_finding_that_is_an_alarms_way_back_is_no_news() -> None:
    back = finding(5, "unconfirmed", direction="faster")
    worse, other = finding(5, "unconfirmed"), finding(5, "unconfirmed", direction="faster", key=OTHER)
    known = {KEY: Return(alarm(3, 3), 2.3, ended=False)}
    statuses = [one.status for one in mark_known([back, worse, other], known)]
    assert statuses == ["known", "unconfirmed", "unconfirmed"]
