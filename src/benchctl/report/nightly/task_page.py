"""The page of one task: how every variant stands, a chart of its history a metric, and what happened."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec
from markupsafe import Markup

from benchctl.report.html.parts import anchor, embedded
from benchctl.report.nightly.figures import metric_figure
from benchctl.report.nightly.history import History, Task
from benchctl.report.nightly.marks import KIND_TITLES, Mark, alarm_marks
from benchctl.report.nightly.spark import sparkline
from benchctl.report.nightly.standing import metric_title, task_name
from benchctl.report.nightly.suite import SuitePages
from benchctl.report.nightly.templates import rendered
from benchctl.report.numbers import counted, figure
from benchctl.results.nightly.model import Raised, SeriesKey

_NAME_LENGTH = 60
_DIGEST_LENGTH = 8
_MOST_MARKS = 150
_SPARK_SIZE = (330, 34)

Shifts = Mapping[SeriesKey, Sequence[Mark]]
"""Change points of every series, as marks."""


class Row(msgspec.Struct, frozen=True):
    """One variant and metric: its newest value, and all of its history as a line."""

    name: str
    metric: str
    value: str
    forks: str
    night: str
    spark: Markup


class _Listed(msgspec.Struct, frozen=True):
    number: int
    kind: str
    title: str
    text: str
    page: str


def page_name(challenge: str, task: str) -> str:
    """File name of a task's page: readable, and unlike that of every other task."""
    digest = hashlib.sha256(f"{challenge}\0{task}".encode()).hexdigest()[:_DIGEST_LENGTH]
    return f"{anchor(task)[:_NAME_LENGTH].strip('-') or 'task'}-{digest}.html"


def task_page(
    suite: SuitePages, task: Task, *, common: Sequence[Mark], shifts: Shifts, nights: dict[str, Any]
) -> str:
    """Write the page.

    Args:
        suite: that it belongs to.
        task: which.
        common: marks that every task has.
        shifts: change points.
        nights: see `figures.night_data`.
    """
    own: list[Mark] = []
    figures = []
    for number, (metric, histories) in enumerate(task.metrics.items(), 1):
        marks = [
            *alarm_marks(suite.alarms, suite.numbers, _of_chart(histories)),
            *(mark for history in histories for mark in shifts.get(history.key, ())),
        ]
        figures.append(metric_figure(suite, metric, histories, (*common, *marks), number))
        own += [msgspec.structs.replace(mark, text=f"{metric_title(metric)}, {mark.text}") for mark in marks]
    key = SeriesKey("", task.challenge, task.task, "")
    return rendered(
        "nightly-task.html.jinja",
        depth=2,
        title=task_name(key, challenges=suite.challenges),
        subtitle=(
            f"Suite {suite.heading}, {counted(len(suite.nights), 'night')}",
            f"Challenge {task.challenge}",
        ),
        rows=[_row(suite, one) for histories in task.metrics.values() for one in histories],
        figures=figures,
        nights=embedded(nights),
        listed=_listed(suite, [*own, *common]),
        left_out=max(0, len(own) + len(common) - _MOST_MARKS),
    )


def alarmed(suite: SuitePages, key: SeriesKey) -> set[int]:
    """Numbers of the nights in which alarms about a series begin."""
    marks = alarm_marks(suite.alarms, suite.numbers, lambda alarm: alarm.concerns(key))
    return {mark.number for mark in marks}


def _of_chart(histories: Sequence[History]) -> Callable[[Raised], bool]:
    """Whether an alarm is about any of a chart's series."""
    return lambda alarm: any(alarm.concerns(history.key) for history in histories)


def _row(suite: SuitePages, history: History) -> Row:
    label = suite.named(history.key.variant)
    empty = history.numbers.size == 0
    return Row(
        name=label,
        metric=metric_title(history.key.metric),
        value="n/a" if empty else f"{figure(float(history.means[-1]))} {history.unit}",
        forks="" if empty else f"{figure(float(history.lows[-1]))} to {figure(float(history.highs[-1]))}",
        night="" if empty else str(int(history.numbers[-1])),
        spark=sparkline(
            history.numbers,
            history.means,
            span=(suite.nights[0].number, suite.nights[-1].number) if suite.nights else (0, 0),
            label=f"{label}, {metric_title(history.key.metric)}, all nights",
            position=suite.styles[history.key.variant],
            marked=alarmed(suite, history.key),
            size=_SPARK_SIZE,
        ),
    )


def _listed(suite: SuitePages, marks: Sequence[Mark]) -> list[_Listed]:
    """The newest of them, with what they link to."""
    pages = {night.number: f"nights/{night.id}.html" for night in suite.nights}
    newest = sorted(marks, key=lambda mark: -mark.number)[:_MOST_MARKS]
    return [
        _Listed(one.number, one.kind, KIND_TITLES[one.kind], one.text, one.page or pages.get(one.number, ""))
        for one in newest
    ]
