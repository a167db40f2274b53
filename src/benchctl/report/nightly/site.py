"""The static site of a suite: pages that need no network, no server and no script to be read."""

import re
import uuid
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final
from xml.etree import ElementTree as ET

import msgspec

import benchctl
from benchctl.disk import read_file
from benchctl.report.nightly.figures import night_data
from benchctl.report.nightly.files import refuse_foreign, remove_partials, remove_stale, write_changed
from benchctl.report.nightly.marks import Locate, Mark, change_point_marks, suite_marks
from benchctl.report.nightly.night_pages import alarms_page, night_page, nights_page
from benchctl.report.nightly.overview import Card, card_of, suite_page, suites_page
from benchctl.report.nightly.standing import (
    change_text,
    effect_text,
    night_label,
    series_name,
    standing,
    subject,
)
from benchctl.report.nightly.suite import SuitePages
from benchctl.report.nightly.task_page import page_name, task_page
from benchctl.report.nightly.templates import ASSETS, assets
from benchctl.report.numbers import visible
from benchctl.results.nightly.model import (
    Acknowledged,
    Event,
    NightRecord,
    Raised,
    Recovered,
    Series,
    SeriesKey,
    alarms_of,
)
from benchctl.stats.nightly.divisive import ChangePoint, change_points
from benchctl.stats.nightly.nights import nights_of

CARD = "suite.json"
INDEX = "index.html"
FEED = "feed.xml"
RUNS, TASKS, NIGHTS = "runs", "tasks", "nights"


# What became true, as an Atom feed: alarms raised, acknowledged, recovered, and broken nights.

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


# The static site of a suite.


def located(series: Series) -> tuple[ChangePoint, ...]:
    """The change points of a series, by E-divisive."""
    return change_points(nights_of(series))


def write_site(
    folder: Path, suite: SuitePages, *, pages: Collection[str] = (), locate: Locate = located
) -> Path:
    """Write or refresh the pages of a suite below `folder/<suite>/`, and the page of all suites above it.

    Pages of runs, `folder/<suite>/runs/<run id>.html`, are somebody else's: they are linked, never touched.
    Pages that have not changed are left alone; those of tasks and nights that are gone are removed. The top
    page is made from the `suite.json` of whatever suites are there.

    Args:
        folder: of the site.
        suite: what to write.
        pages: ids of the runs that have a page.
        locate: finds the change points of a series.

    Returns:
        The suite's index.

    Raises:
        BenchctlError: a file cannot be written.
    """
    own = folder / suite.name
    for page in (folder / INDEX, own / INDEX):
        refuse_foreign(page)
    for name, text in assets().items():
        write_changed(folder / ASSETS / name, text)
    remove_partials((own, own / TASKS, own / NIGHTS, own / RUNS))
    _write_tasks(own / TASKS, suite, pages, locate)
    names = [f"{night.id}.html" for night in suite.nights]
    for place, name in enumerate(names):
        write_changed(own / NIGHTS / name, night_page(suite, place, pages))
    remove_stale(own / NIGHTS, set(names))
    write_changed(own / "nights.html", nights_page(suite, pages))
    write_changed(own / "alarms.html", alarms_page(suite, pages))
    write_changed(own / FEED, atom_feed(suite.name, suite.heading, suite.nights, suite.events))
    write_changed(own / INDEX, suite_page(suite, pages))
    write_changed(own / CARD, msgspec.json.encode(card_of(suite)).decode() + "\n")
    write_top(folder)
    return own / INDEX


def write_top(folder: Path) -> Path:
    """Write the page of all suites from what is there; a suite whose card cannot be read is named as such.

    Returns:
        Its path.
    """
    cards, unreadable = [], []
    for path in sorted(folder.glob(f"*/{CARD}")):
        try:
            card = msgspec.json.decode(read_file(path), type=Card)
            cards.append(msgspec.structs.replace(card, name=path.parent.name))
        except (OSError, msgspec.DecodeError):
            unreadable.append(f"The state of {path.parent.name} cannot be read.")
    write_changed(folder / INDEX, suites_page(cards, unreadable))
    return folder / INDEX


def _write_tasks(folder: Path, suite: SuitePages, pages: Collection[str], locate: Locate) -> None:
    common = suite_marks(suite.nights, suite.events)
    shifts = _shifts(suite.series, locate)
    nights = night_data(suite, pages)
    names = set()
    for task in suite.tasks:
        name = page_name(task.challenge, task.task)
        names.add(name)
        write_changed(folder / name, task_page(suite, task, common=common, shifts=shifts, nights=nights))
    remove_stale(folder, names)


def _shifts(every: Iterable[Series], locate: Locate) -> dict[SeriesKey, list[Mark]]:
    return {series.key: list(change_point_marks(series, locate(series))) for series in every}
