"""The feed as a reader of feeds sees it: valid, stable ids, nothing that breaks it."""

from xml.etree import ElementTree as ET

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from benchctl.nightly.model import Acknowledged
from benchctl.nightly.site.publish import atom_feed
from nightly_suites import eventful_log, eventful_nights, make_night, make_raised, night_id

ATOM = "{http://www.w3.org/2005/Atom}"


def entries(text: str) -> list[ET.Element]:
    return ET.fromstring(text).findall(f"{ATOM}entry")  # noqa: S314 - our own


def titles(text: str) -> list[str | None]:
    return [entry.findtext(f"{ATOM}title") for entry in entries(text)]


def ids(text: str) -> list[str | None]:
    return [entry.findtext(f"{ATOM}id") for entry in entries(text)]


def test_alarms_and_broken_nights_are_entries_newest_first():
    assert titles(atom_feed("big5", "Big five", eventful_nights(), eventful_log())) == [
        "Alarm #2: range on os@latest answers otherwise: 1,001 hits, not 1,000",
        "big5 night 55: broken: interrupted, the power went",
        "Acknowledged: #4 range throughput on es@latest is 10% lower since night 40",
        "Alarm #1: range p90 service time on es@latest is 11.8% slower since night 40",
        "Alarm #4: range throughput on es@latest is 10% lower since night 40",
        "Recovered: #3 desc_sort_timestamp throughput on os@latest is 6% lower since night 30",
        "Alarm #3: desc_sort_timestamp throughput on os@latest is 6% lower since night 30",
        "big5 night 21: broken: failed, no space left on the device",
        "big5 night 20: broken: refused, the load was 3.1 on 2 CPUs",
    ]


def test_every_entry_has_what_atom_asks_for_and_no_two_the_same_id():
    text = atom_feed("big5", "Big five", eventful_nights(), eventful_log())
    feed = ET.fromstring(text)  # noqa: S314 - our own
    for name in ("id", "title", "updated", "author"):
        assert feed.find(f"{ATOM}{name}") is not None
    for entry in entries(text):
        for name in ("id", "title", "updated", "content"):
            assert entry.findtext(f"{ATOM}{name}")
    assert len(set(ids(text))) == len(entries(text))


def test_ids_stay_when_the_log_grows_and_titles_change():
    before = set(ids(atom_feed("big5", "Big five", eventful_nights()[:60], eventful_log()[:6])))
    after = set(ids(atom_feed("big5", "Another title", eventful_nights(), eventful_log())))
    assert before < after
    assert not before & set(ids(atom_feed("other", "Big five", eventful_nights(), eventful_log())))


def test_an_alarm_acknowledged_twice_has_two_entries():
    log = (
        make_raised(),
        Acknowledged(1, "2026-07-13T09:00:00Z", "a"),
        Acknowledged(1, "2026-07-14T09:00:00Z", "b"),
    )
    assert len(set(ids(atom_feed("big5", "", [make_night(42)], log)))) == 3


def test_a_suite_without_nights_has_an_empty_feed():
    assert entries(atom_feed("big5", "", [], ())) == []


@settings(max_examples=60, deadline=None)
@given(st.text())
def test_no_text_breaks_it(text: str):
    alarm = make_raised(title=text, detail=text, command=text)
    night = msgspec.structs.replace(make_night(42), status="failed", reason=text)
    broken = make_night(43, status="failed", reason=text, id=night_id(43))
    found = entries(atom_feed("big5", text, [night, broken], (alarm,)))
    assert len(found) == 2


def test_what_xml_cannot_hold_is_replaced():
    assert "\ufffd" in atom_feed("big5", "a\x00b\ud800", [], ())
