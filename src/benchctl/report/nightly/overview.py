"""The page of a suite: its last night, what is open, every task at a glance; and the page of all suites."""

from collections.abc import Collection, Sequence

import msgspec
from markupsafe import Markup

from benchctl.report.nightly.history import History, Task
from benchctl.report.nightly.night_pages import NightRow, night_row
from benchctl.report.nightly.spark import sparkline
from benchctl.report.nightly.standing import (
    headline,
    look,
    metric_title,
    moment,
    not_watched,
    task_name,
)
from benchctl.report.nightly.suite import SuitePages
from benchctl.report.nightly.task_page import alarmed, page_name
from benchctl.report.nightly.templates import rendered
from benchctl.report.numbers import counted, figure
from benchctl.results.nightly.model import Alarm, SeriesKey

CARD_VERSION = 1

_LAST_NIGHTS = 14
_STRIP_NIGHTS = 60
_SPARK_NIGHTS = 90


class Card(msgspec.Struct, frozen=True, rename="kebab"):
    """A suite on the page of all suites; it stands as `suite.json` beside the suite's pages.

    Attributes:
        card_version: of this format.
        name: of the suite and its folder.
        title: what people call it.
        standing: of its last night; empty when there was none.
        headline: the same in words.
        night: number of that night; 0 when there was none.
        started: when that was, in words.
        open: alarms that nobody has acknowledged.
        nights: how many there are.
    """

    card_version: int
    name: str
    title: str
    standing: str
    headline: str
    night: int
    started: str
    open: int
    nights: int


class _Cell(msgspec.Struct, frozen=True):
    variant: str
    spark: Markup
    value: str


class _Line(msgspec.Struct, frozen=True):
    name: str
    page: str
    metric: str
    open: int
    cells: tuple[_Cell, ...]


def card_of(suite: SuitePages) -> Card:
    """How a suite stands."""
    last = suite.nights[-1] if suite.nights else None
    return Card(
        card_version=CARD_VERSION,
        name=suite.name,
        title=suite.heading,
        standing="" if last is None else look(last, suite.events_of(last)),
        headline="no night yet" if last is None else headline(last, suite.events_of(last)),
        night=0 if last is None else last.number,
        started="" if last is None else moment(last.started),
        open=len(_open(suite)),
        nights=len(suite.nights),
    )


def suite_page(suite: SuitePages, pages: Collection[str]) -> str:
    """Write the page of a suite.

    Args:
        suite: which.
        pages: ids of the runs that have a page.
    """
    rows = [night_row(suite, night, pages) for night in suite.nights[-_STRIP_NIGHTS:]]
    last = suite.nights[-1] if suite.nights else None
    return rendered(
        "nightly-suite.html.jinja",
        depth=1,
        title=suite.heading,
        subtitle=_subtitle(suite),
        card=card_of(suite),
        last=rows[-1] if rows else None,
        unseen=[] if last is None else not_watched(last),
        strip=rows,
        alarms=_open(suite),
        known=[alarm for alarm in suite.alarms if alarm.state == "acknowledged"],
        variants=[suite.named(label) for label in suite.roles],
        styles=list(suite.styles.values()),
        tasks=[_line(suite, task) for task in suite.tasks],
        spark_nights=min(_SPARK_NIGHTS, len(suite.nights)),
        nights=_newest(rows),
        more=max(0, len(suite.nights) - _LAST_NIGHTS),
    )


def suites_page(cards: Sequence[Card], unreadable: Sequence[str]) -> str:
    """Write the page of all suites.

    Args:
        cards: of every suite.
        unreadable: what could not be read, a sentence each.
    """
    return rendered(
        "nightly-suites.html.jinja",
        depth=0,
        title="Nightly benchmarks",
        subtitle=(counted(len(cards), "suite"),),
        cards=sorted(cards, key=lambda card: card.name),
        unreadable=unreadable,
    )


def _open(suite: SuitePages) -> list[Alarm]:
    return [alarm for alarm in suite.alarms if alarm.state == "open"]


def _newest(rows: Sequence[NightRow]) -> list[NightRow]:
    return list(reversed(rows[-_LAST_NIGHTS:]))


def _subtitle(suite: SuitePages) -> tuple[str, ...]:
    if not suite.nights:
        return ("Nothing has been measured yet.",)
    first, last = suite.nights[0], suite.nights[-1]
    days = dict.fromkeys((moment(first.started)[:10], moment(last.started)[:10]))
    when = f"{counted(len(suite.nights), 'night')}, {' to '.join(days)}"
    variants = ", ".join(suite.named(label) for label in suite.roles)
    return (when, f"{counted(len(suite.tasks), 'task')} on {variants}") if suite.tasks else (when,)


def _line(suite: SuitePages, task: Task) -> _Line:
    """A task by its first metric."""
    metric, histories = next(iter(task.metrics.items()))
    found = {history.key.variant: history for history in histories}
    key = SeriesKey("", task.challenge, task.task, metric)
    about = sum(_is_about(alarm, task) for alarm in _open(suite))
    return _Line(
        name=task_name(key, challenges=suite.challenges),
        page=f"tasks/{page_name(task.challenge, task.task)}",
        metric=f"{metric_title(metric)}, {histories[0].unit}",
        open=about,
        cells=tuple(_cell(suite, label, found.get(label), metric) for label in suite.roles),
    )


def _is_about(alarm: Alarm, task: Task) -> bool:
    """Whether any figure or answer of a task is what it is about; not what is about all of them alike."""
    raised = alarm.raised
    if raised.operations:
        return task.task in raised.operations
    return raised.key.task == task.task and raised.key.challenge in ("", task.challenge)


def _cell(suite: SuitePages, label: str, history: History | None, metric: str) -> _Cell:
    if history is None or history.numbers.size == 0:
        return _Cell(suite.named(label), Markup('<span class="nothing">no value</span>'), "")
    last = suite.nights[-1].number if suite.nights else int(history.numbers[-1])
    stale = int(history.numbers[-1]) != last
    value = figure(float(history.means[-1]))
    return _Cell(
        suite.named(label),
        sparkline(
            history.numbers,
            history.means,
            span=(max(1, last - _SPARK_NIGHTS + 1), last),
            label=f"{suite.named(label)}, {metric_title(metric)}, last {counted(_SPARK_NIGHTS, 'night')}",
            position=suite.styles[label],
            marked=alarmed(suite, history.key),
        ),
        f"{value} (night {int(history.numbers[-1])})" if stale else value,
    )
