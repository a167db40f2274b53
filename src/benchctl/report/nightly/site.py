"""The static site of a suite: pages that need no network, no server and no script to be read."""

from collections.abc import Collection, Iterable
from pathlib import Path

import msgspec

from benchctl.disk import read_file
from benchctl.report.nightly.feed import atom_feed
from benchctl.report.nightly.figures import night_data
from benchctl.report.nightly.files import refuse_foreign, remove_partials, remove_stale, write_changed
from benchctl.report.nightly.marks import Locate, Mark, change_point_marks, suite_marks
from benchctl.report.nightly.night_pages import alarms_page, night_page, nights_page
from benchctl.report.nightly.overview import Card, card_of, suite_page, suites_page
from benchctl.report.nightly.suite import SuitePages
from benchctl.report.nightly.task_page import page_name, task_page
from benchctl.report.nightly.templates import ASSETS, assets
from benchctl.results.nightly.model import SeriesKey
from benchctl.results.nightly.series import Series
from benchctl.stats.nightly.divisive import ChangePoint, change_points
from benchctl.stats.nightly.nights import nights_of

CARD = "suite.json"
INDEX = "index.html"
FEED = "feed.xml"
RUNS, TASKS, NIGHTS = "runs", "tasks", "nights"


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
