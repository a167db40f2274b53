import msgspec
import pytest

from benchctl.nightly.measure import night_tags
from benchctl.nightly.model import Alarm, NightRecord, Raised
from benchctl.nightly.retention import confirmed_against, looked_into, night_of_run, old_nights
from night_records import KEY, night, variant


def measured(number: int, **fields: object) -> NightRecord:
    return night(number, **{"run": f"r{number}"} | fields)


def numbers(nights: list[NightRecord]) -> list[int]:
    return [one.number for one in nights]


def test_the_newest_measured_nights_are_not_old():
    nights = [measured(number) for number in (3, 1, 2, 4)]
    assert numbers(old_nights(nights, 2, frozenset())) == [1, 2]
    assert numbers(old_nights(nights, 2, {night(1).id})) == [2]
    assert old_nights(nights, 4, frozenset()) == []
    assert old_nights([], 1, frozenset()) == []


def test_nights_that_were_not_measured_keep_nothing_and_are_old_with_those_around_them():
    nights = [night(1), measured(2), night(3, status="discarded"), measured(4), night(5, status="refused")]
    assert numbers(old_nights(nights, 1, frozenset())) == [1, 2, 3]


@pytest.mark.parametrize(("state", "kept"), [("open", True), ("acknowledged", False), ("recovered", False)])
def test_nights_of_open_alarms_are_looked_into(state: str, *, kept: bool):
    raised = Raised(1, "", night(9).id, "figure", "slower", KEY, since=night(8).id, last_good=night(7).id)
    found = looked_into([Alarm(raised, state)])
    assert found == (frozenset(night(number).id for number in (7, 8, 9)) if kept else frozenset())


def test_the_last_two_engines_of_a_variant_may_be_confirmed_against():
    builds = ["b1", "b2", "b2", "b3", "b3", "b3"]
    nights = [
        measured(number, variants=(variant(build=build), variant("canary", "canary", build="c")))
        for number, build in enumerate(builds, 1)
    ]
    silent = msgspec.structs.replace(variant(), facts=None)
    nights.append(measured(7, variants=(silent,)))
    assert confirmed_against(nights) == {night(6).id, night(3).id}


def test_a_run_is_of_the_night_that_its_tags_name():
    nights = [night(1), night(2)]
    assert night_of_run((*night_tags(night(2)), "confirm"), nights) == night(2)
    for tags in (("big5", night(2).id), ("nightly", "other", night(2).id), ("nightly", "big5"), ()):
        assert night_of_run(tags, nights) is None
