"""What is marked in the history of a task: alarms, change points, annotations, and what changed by itself."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Literal

import msgspec
import numpy as np

from benchctl.report.nightly.standing import alarm_sentence, change_text, effect_text
from benchctl.report.numbers import p_value, signed_percent
from benchctl.results.nightly.model import Alarm, Event, NightRecord, Raised, Series, annotations_of
from benchctl.stats.nightly.divisive import ChangePoint

MarkKind = Literal["alarm", "change-point", "annotation", "change", "era"]

KIND_TITLES: Mapping[MarkKind, str] = {
    "alarm": "alarm",
    "change-point": "change point",
    "annotation": "annotation",
    "change": "automatic change",
    "era": "not comparable before",
}


Locate = Callable[[Series], Iterable[ChangePoint]]
"""Finds the change points of a series."""


class Mark(msgspec.Struct, frozen=True):
    """One mark.

    Attributes:
        number: of its night.
        kind: what it is.
        text: in words.
        page: what it links to, relative to the suite's folder; empty for nothing.
    """

    number: int
    kind: MarkKind
    text: str
    page: str = ""


def suite_marks(nights: Sequence[NightRecord], events: Iterable[Event]) -> list[Mark]:
    """Those that every task has: annotations, automatic changes, and where a new era begins."""
    found = [
        Mark(one.number, "annotation", f"{one.text}{f' ({one.who})' if one.who else ''}")
        for one in annotations_of(events)
    ]
    era = ""
    for night in nights:
        page = f"nights/{night.id}.html"
        if night.era and era and night.era != era:
            found.append(Mark(night.number, "era", "The host, the corpus or a size is another one.", page))
        era = night.era or era
        if night.changes:
            found.append(Mark(night.number, "change", "; ".join(map(change_text, night.changes)), page))
    return found


def alarm_marks(
    alarms: Iterable[Alarm], numbers: Mapping[str, int], concerns: Callable[[Raised], bool]
) -> list[Mark]:
    """Alarms about some series, at the first night that shows what they are about.

    Args:
        alarms: of the suite.
        numbers: id of a night -> its number.
        concerns: whether an alarm is about one of them.
    """
    found = []
    for alarm in alarms:
        raised = alarm.raised
        number = numbers.get(raised.since, numbers.get(raised.night))
        if number is not None and concerns(raised):
            found.append(Mark(number, "alarm", _alarm_text(alarm), f"alarms.html#alarm-{raised.alarm}"))
    return found


def change_point_marks(series: Series, points: Iterable[ChangePoint]) -> Iterator[Mark]:
    """Where the level of one series changed, looking back from today."""
    for point in points:
        effect = signed_percent(100 * float(np.expm1(point.after_log - point.before_log)))
        text = f"{series.key.variant}: level {effect} % from here on (p {p_value(point.p)})"
        yield Mark(point.night, "change-point", text)


def _alarm_text(alarm: Alarm) -> str:
    effect = effect_text(alarm.raised)
    who = f"{alarm.raised.key.variant}: " if alarm.raised.key.variant else ""
    return f"#{alarm.raised.alarm} {who}{effect or alarm.raised.title}, {alarm_sentence(alarm)}"
