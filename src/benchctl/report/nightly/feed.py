"""What became true, as an Atom feed: alarms raised, acknowledged, recovered, and broken nights."""

import re
import uuid
from collections.abc import Iterator, Sequence
from typing import Final
from xml.etree import ElementTree as ET

import msgspec

import benchctl
from benchctl.report.nightly.standing import (
    change_text,
    effect_text,
    night_label,
    series_name,
    standing,
    subject,
)
from benchctl.report.visible import visible
from benchctl.results.nightly.events import Acknowledged, Event, Raised, Recovered, alarms_of
from benchctl.results.nightly.model import NightRecord

_ATOM: Final = "http://www.w3.org/2005/Atom"
_MOST_ENTRIES: Final = 200
_NEVER: Final = "1970-01-01T00:00:00+00:00"
_NO_XML = re.compile("[\ud800-\udfff\ufffe\uffff]")


class _Entry(msgspec.Struct, frozen=True):
    """One entry: what makes its id, when, and what it says."""

    name: str
    at: str
    title: str
    lines: tuple[str, ...]
    page: str


def atom_feed(suite: str, title: str, nights: Sequence[NightRecord], events: Sequence[Event]) -> str:
    """Write the feed, newest entries first, 200 at most.

    The id of an entry rests on the suite's name and the number of an alarm, or the id of a night: it is the
    same in every rebuild, and holds no name of a host.

    Args:
        suite: name of the suite.
        title: of the feed.
        nights: of the suite.
        events: of the suite.
    """
    entries = sorted((*_of_alarms(events), *_of_nights(nights, events)), key=lambda one: one.at, reverse=True)
    newest = entries[0].at if entries else nights[-1].started if nights else _NEVER
    feed = ET.Element("feed", xmlns=_ATOM)
    _add(feed, "id", _id(suite, "feed"))
    _add(feed, "title", title)
    _add(feed, "updated", newest)
    _add(_add(feed, "author", ""), "name", "benchctl")
    _add(feed, "generator", "benchctl", version=benchctl.__version__)
    _add(feed, "link", "", rel="self", href="feed.xml")
    _add(feed, "link", "", rel="alternate", type="text/html", href="index.html")
    for one in entries[:_MOST_ENTRIES]:
        entry = _add(feed, "entry", "")
        _add(entry, "id", _id(suite, one.name))
        _add(entry, "title", one.title)
        _add(entry, "updated", one.at)
        _add(entry, "link", "", rel="alternate", type="text/html", href=one.page)
        _add(entry, "content", "\n".join(line for line in one.lines if line), type="text")
    ET.indent(feed)
    return f'<?xml version="1.0" encoding="utf-8"?>\n{ET.tostring(feed, encoding="unicode")}\n'


def _of_alarms(events: Sequence[Event]) -> Iterator[_Entry]:
    alarms = {alarm.raised.alarm: alarm.raised for alarm in alarms_of(events)}
    for place, event in enumerate(events):
        if isinstance(event, Raised):
            yield _raised(event)
        elif isinstance(event, Acknowledged | Recovered) and event.alarm in alarms:
            word = "acknowledged" if isinstance(event, Acknowledged) else "recovered"
            who = f"by {event.who}" if isinstance(event, Acknowledged) else f"in {night_label(event.night)}"
            # An alarm can be acknowledged again, with another text.
            earlier = sum(type(one) is type(event) and one.alarm == event.alarm for one in events[:place])
            yield _Entry(
                f"alarm/{event.alarm}/{word}{f'/{earlier}' if earlier else ''}",
                event.at,
                f"{word.capitalize()}: #{event.alarm} {alarms[event.alarm].title}",
                (f"{word.capitalize()} {who}.", event.text),
                f"alarms.html#alarm-{event.alarm}",
            )


def _raised(event: Raised) -> _Entry:
    confirmed = f"Confirmed by run {event.confirmation.run}." if event.confirmation is not None else ""
    return _Entry(
        f"alarm/{event.alarm}/raised",
        event.at,
        f"Alarm #{event.alarm}: {event.title}",
        (
            f"{series_name(event.key)}: {effect_text(event)}" if event.effect_percent is not None else "",
            f"Since {night_label(event.since)}." if event.since else "",
            *(f"Changed then: {change_text(change)}." for change in event.changes),
            confirmed,
            event.detail,
            event.command,
        ),
        f"alarms.html#alarm-{event.alarm}",
    )


def _of_nights(nights: Sequence[NightRecord], events: Sequence[Event]) -> Iterator[_Entry]:
    for night in nights:
        if standing(night, events) == "broken":
            yield _Entry(
                f"night/{night.id}", night.started, subject(night, events), (night.reason,),
                f"nights/{night.id}.html",
            )  # fmt: skip


def _id(suite: str, name: str) -> str:
    return f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, f'benchctl:nightly/{suite}/{name}')}"


def _add(parent: ET.Element, tag: str, text: str, **attributes: str) -> ET.Element:
    element = ET.SubElement(parent, tag, {name: _clean(value) for name, value in attributes.items()})
    element.text = _clean(text) or None
    return element


def _clean(text: str) -> str:
    """Text without what XML cannot hold."""
    return _NO_XML.sub("\N{REPLACEMENT CHARACTER}", visible(text))
