"""The site written to its folder: only what changed, and without what no page needs any more."""

import re
import uuid
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from xml.etree import ElementTree as ET

import msgspec

import benchctl
from benchctl.disk import read_file
from benchctl.nightly.folder import SuiteFolder
from benchctl.nightly.model import (
    Acknowledged,
    Event,
    NightRecord,
    Raised,
    Recovered,
    Series,
    alarms_of,
)
from benchctl.nightly.screening import nights_of
from benchctl.nightly.site.charts import Locate, change_point_marks, night_data, suite_marks
from benchctl.nightly.site.history import ChangePoint, SuitePages, change_points
from benchctl.nightly.site.pages import (
    ASSETS,
    FEED,
    Card,
    alarms_page,
    assets,
    card_of,
    night_page,
    nights_page,
    page_name,
    suite_page,
    suites_page,
    task_page,
)
from benchctl.nightly.text import change_text, effect_text, night_label, series_name, standing, subject
from benchctl.report.html.page import refuse_foreign, render_page, run_page, write_changed
from benchctl.report.numbers import visible
from benchctl.results.store import RunStore
from benchctl.stats.analyse import analyse_run

MARK = '<meta name="generator" content="benchctl '
"""Near the beginning of every page that benchctl made: no other file is ever removed."""

_MARK_WITHIN_BYTES = 400
_PARTIAL = re.compile(r"\..+\.(html|xml|json)(\.[0-9]+){1,2}\.partial")


def remove_stale(folder: Path, keep: Collection[str]) -> list[str]:
    """Remove pages that benchctl made earlier, except those to keep; return the names of those removed."""
    gone = []
    for path in sorted(folder.glob("*.html")):
        if path.name not in keep and _is_ours(path):
            path.unlink(missing_ok=True)
            gone.append(path.name)
    return gone


def remove_partials(folders: Iterable[Path]) -> None:
    """Remove what killed writers left in these folders; nobody else may be writing there just then.

    Folders below are left alone: a site may lie above files of others.
    """
    for folder in folders:
        for path in folder.glob(".*.partial"):
            if _PARTIAL.fullmatch(path.name):
                path.unlink(missing_ok=True)


def _is_ours(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return MARK.encode() in file.read(_MARK_WITHIN_BYTES)
    except OSError:
        return False


_CARD = "suite.json"
INDEX = "index.html"
RUNS, TASKS, NIGHTS = "runs", "tasks", "nights"


_ATOM: Final = "http://www.w3.org/2005/Atom"
_MOST_ENTRIES: Final = 200
_NEVER: Final = "1970-01-01T00:00:00+00:00"
_NO_XML = re.compile("[\ud800-\udfff\ufffe\uffff]")


class _Entry(msgspec.Struct, frozen=True):
    name: str
    at: str
    title: str
    lines: tuple[str, ...]
    page: str


def atom_feed(suite: str, title: str, nights: Sequence[NightRecord], events: Sequence[Event]) -> str:
    """Write the feed, newest entries first, 200 at most.

    The id of an entry is made of the suite's name and the number of an alarm, or the id of a night: it is
    the same in every rebuild, and holds no name of a host.
    """
    entries = sorted(
        (*_of_alarms(events), *_of_nights(nights, events)), key=lambda entry: entry.at, reverse=True
    )
    newest = entries[0].at if entries else nights[-1].started if nights else _NEVER
    feed = ET.Element("feed", xmlns=_ATOM)
    _add(feed, "id", _id(suite, "feed"))
    _add(feed, "title", title)
    _add(feed, "updated", newest)
    _add(_add(feed, "author", ""), "name", "benchctl")
    _add(feed, "generator", "benchctl", version=benchctl.__version__)
    _add(feed, "link", "", rel="self", href=FEED)
    _add(feed, "link", "", rel="alternate", type="text/html", href="index.html")
    for item in entries[:_MOST_ENTRIES]:
        entry = _add(feed, "entry", "")
        _add(entry, "id", _id(suite, item.name))
        _add(entry, "title", item.title)
        _add(entry, "updated", item.at)
        _add(entry, "link", "", rel="alternate", type="text/html", href=item.page)
        _add(entry, "content", "\n".join(line for line in item.lines if line), type="text")
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
            earlier = sum(
                type(other) is type(event) and other.alarm == event.alarm for other in events[:place]
            )
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
    """Return text without characters that XML cannot hold."""
    return _NO_XML.sub("\N{REPLACEMENT CHARACTER}", visible(text))


def located(series: Series) -> tuple[ChangePoint, ...]:
    """Return the change points of a series, by E-divisive."""
    return change_points(nights_of(series))


def write_site(
    folder: Path, suite: SuitePages, *, pages: Collection[str] = (), locate: Locate = located
) -> Path:
    """Write or refresh the pages of a suite below `folder/<suite>/`, and the page of all suites.

    Pages of runs, `folder/<suite>/runs/<run id>.html`, are somebody else's: they are linked, never touched.
    Unchanged pages are left alone; those of tasks and nights that are gone are removed. The top page is made
    from the `suite.json` of all suites there. `pages` are ids of the runs that have a page; `locate` finds
    change points.

    Returns:
        The suite's index.

    Raises:
        BenchctlError: If a file cannot be written.
    """
    own = folder / suite.name
    refuse_foreign(folder, [INDEX, f"{suite.name}/{INDEX}"])
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
    write_changed(own / _CARD, msgspec.json.encode(card_of(suite)).decode() + "\n")
    write_top(folder)
    return own / INDEX


def write_top(folder: Path) -> Path:
    """Write the page of all suites from their cards, naming unreadable ones, and return its path."""
    cards, unreadable = [], []
    for path in sorted(folder.glob(f"*/{_CARD}")):
        try:
            card = msgspec.json.decode(read_file(path), type=Card)
            cards.append(msgspec.structs.replace(card, name=path.parent.name))
        except (OSError, msgspec.DecodeError):
            unreadable.append(f"The state of {path.parent.name} cannot be read.")
    write_changed(folder / INDEX, suites_page(cards, unreadable))
    return folder / INDEX


def _write_tasks(folder: Path, suite: SuitePages, pages: Collection[str], locate: Locate) -> None:
    common = suite_marks(suite.nights, suite.events)
    shifts = {series.key: list(change_point_marks(series, locate(series))) for series in suite.series}
    nights = night_data(suite, pages)
    names = set()
    for task in suite.tasks:
        name = page_name(task.challenge, task.task)
        names.add(name)
        write_changed(folder / name, task_page(suite, task, common=common, shifts=shifts, nights=nights))
    remove_stale(folder, names)


@dataclass(frozen=True)
class Publisher:
    """Writes the pages of a suite."""

    folder: SuiteFolder
    store: RunStore
    site: Path  # folder of the pages of all suites
    title: str
    margins: Mapping[str, float]  # metric -> relative change that nobody is to be woken for
    note: Callable[[str], None]  # called with what cannot be read

    def publish(
        self, nights: Sequence[NightRecord], events: Sequence[Event], new_runs: Collection[str]
    ) -> Path:
        """Write what is new, from all nights and events, and return the suite's page.

        `new_runs` are ids of the runs without a page so far.

        Raises:
            BenchctlError: If the disk is full or cannot be written.
        """
        pages = self.site / self.folder.root.name / "runs"
        for run in new_runs:
            folder = self.store.find(run)
            record = folder.load()
            page = run_page(folder, record, analyse_run(record), usual=self.store.root)
            write_changed(pages / f"{run}.html", render_page(page, folder="../../assets"))
        there = {path.stem for path in pages.glob("*.html")}
        series = self.folder.series(None, None, self.note)
        return write_site(
            self.site,
            SuitePages(
                name=self.folder.root.name,
                title=self.title,
                nights=nights,
                series=series,
                events=events,
                margins=self.margins,
                profiles=self.folder.profiles,
            ),
            pages=there,
        )


def without_page(site: Path, suite: str, nights: Sequence[NightRecord], store: RunStore) -> list[str]:
    """Runs of nights that still exist and have no page."""
    pages = site / suite / "runs"
    there = {folder.path.name for folder in store.folders()}
    return [
        run for night in nights for run in night.runs if run in there and not (pages / f"{run}.html").exists()
    ]
