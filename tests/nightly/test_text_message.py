"""What notifiers get: one JSON document that says everything the text does."""

import msgspec
import pytest

from benchctl.nightly.model import Message
from benchctl.nightly.text import message_of
from nightly_suites import eventful_log, eventful_nights, make_night, night_id


def test_a_message_reads_back_as_it_was_written():
    for night in eventful_nights():
        message = message_of(night, eventful_log())
        assert msgspec.json.decode(msgspec.json.encode(message), type=Message) == message


def test_its_keys_are_those_that_scripts_rely_on():
    found = msgspec.json.decode(msgspec.json.encode(message_of(eventful_nights()[41], eventful_log())))
    assert list(found) == [
        "schema-version", "id", "suite", "night", "number", "started", "status", "subject", "text", "raised",
        "recovered", "open", "findings", "not-watched", "run", "wall-s",
    ]  # fmt: skip
    assert found["id"] == f"big5/{night_id(42)}"
    assert found["status"] == "alarm"
    assert found["subject"] == "big5 night 42: 2 alarms raised"
    assert [one["raised"]["alarm"] for one in found["raised"]] == [1, 4]
    assert found["raised"][0]["state"] == "open"
    assert found["raised"][0]["raised"]["effect-percent"] == 11.8
    assert found["findings"] == {"confirmed": 1}


@pytest.mark.parametrize(
    ("number", "status"), [(1, "quiet"), (20, "broken"), (38, "quiet"), (42, "alarm"), (55, "broken")]
)
def test_the_status_is_that_of_the_night(number: int, status: str):
    assert message_of(eventful_nights()[number - 1], eventful_log()).status == status


def test_recovered_alarms_are_those_of_this_night():
    assert [one.raised.alarm for one in message_of(eventful_nights()[37], eventful_log()).recovered] == [3]
    assert message_of(eventful_nights()[38], eventful_log()).recovered == ()


def test_open_alarms_are_neither_acknowledged_nor_recovered():
    assert [one.raised.alarm for one in message_of(eventful_nights()[69], eventful_log()).open] == [1, 2]


def test_a_subject_is_one_line_whatever_the_reason():
    night = make_night(3, status="failed", reason="first\nBcc: x@example.org\r\x1b[2J")
    subject = message_of(night, ()).subject
    assert subject.isprintable()
    assert subject.startswith("big5 night 3: broken: failed, first Bcc:")


def test_nights_that_could_not_begin_are_news_each():
    night = make_night(3, id="", status="failed", started="2026-11-21T03:00:00+01:00")
    assert message_of(night, ()).id == "big5/2026-11-21T030000+0100"
