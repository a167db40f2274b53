"""Charts of histories: figures, their marks, and sparklines."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

import msgspec
import numpy as np
import numpy.typing as npt
from markupsafe import Markup

from benchctl.nightly.model import Alarm, Event, NightRecord, Raised, Series, annotations_of
from benchctl.nightly.site.history import ChangePoint, History, SuitePages
from benchctl.nightly.text import alarm_sentence, change_text, effect_text, metric_title, moment
from benchctl.nightly.text import marks as night_marks
from benchctl.report.charts import tint, variant_style
from benchctl.report.html.parts import Figure, anchor, embedded
from benchctl.report.numbers import counted, figure, signed_percent
from benchctl.report.table import Table, worded

# What is marked in the history of a task: alarms, change points, annotations, and what changed by itself.


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
    """A mark."""

    number: int  # of its night
    kind: MarkKind
    text: str
    page: str = ""  # what it links to, relative to the suite's folder; empty for nothing


def suite_marks(nights: Sequence[NightRecord], events: Iterable[Event]) -> list[Mark]:
    """Return marks that every task has: annotations, automatic changes, and where a new era begins."""
    marks = [
        Mark(
            annotation.number,
            "annotation",
            f"{annotation.text}{f' ({annotation.who})' if annotation.who else ''}",
        )
        for annotation in annotations_of(events)
    ]
    era = ""
    for night in nights:
        page = f"nights/{night.id}.html"
        if night.era and era and night.era != era:
            marks.append(Mark(night.number, "era", "The host, the corpus or a size is another one.", page))
        era = night.era or era
        if night.changes:
            marks.append(Mark(night.number, "change", "; ".join(map(change_text, night.changes)), page))
    return marks


def alarm_marks(
    alarms: Iterable[Alarm], numbers: Mapping[str, int], concerns: Callable[[Raised], bool]
) -> list[Mark]:
    """Return alarms that `concerns` accepts, at the first night that shows what they are about.

    `numbers` maps ids of nights to their numbers.
    """
    marks = []
    for alarm in alarms:
        raised = alarm.raised
        number = numbers.get(raised.since, numbers.get(raised.night))
        if number is not None and concerns(raised):
            marks.append(Mark(number, "alarm", _alarm_text(alarm), f"alarms.html#alarm-{raised.alarm}"))
    return marks


def change_point_marks(series: Series, points: Iterable[ChangePoint]) -> Iterator[Mark]:
    """Return where the level of one series changed, looking back from today."""
    for point in points:
        effect = signed_percent(100 * float(np.expm1(point.after_log - point.before_log)))
        text = f"{series.key.variant}: level {effect}% from here on"
        yield Mark(point.night, "change-point", text)


def _alarm_text(alarm: Alarm) -> str:
    effect = effect_text(alarm.raised)
    who = f"{alarm.raised.key.variant}: " if alarm.raised.key.variant else ""
    return f"#{alarm.raised.alarm} {who}{effect or alarm.raised.title}, {alarm_sentence(alarm)}"


# What the site's script draws a history from: compact arrays; texts are put together in the browser.


_HEIGHT_PX = 380
_RANGE_ALPHA = 0.3
_TABLE_NIGHTS = 30
_SHORT_HASH = 12


def night_data(suite: SuitePages, pages: Collection[str]) -> dict[str, Any]:
    """Return hover texts of nights in every chart; `facts` and `marks` only where they change or exist.

    `pages` are ids of the runs that have a page.
    """
    nights = suite.nights
    facts = {label: _changes(nights, _engine_of(label)) for label in suite.roles}
    return {
        "numbers": [night.number for night in nights],
        "ids": [night.id for night in nights],
        "when": [moment(night.started) for night in nights],
        "runs": [night.run if night.run in pages else 0 for night in nights],
        "marks": {
            place: ", ".join(marks) for place, night in enumerate(nights) if (marks := night_marks(night))
        },
        "facts": facts,
        "host": _changes(nights, _benchctl),
    }


def metric_figure(
    suite: SuitePages, metric: str, histories: Sequence[History], marks: Iterable[Mark], number: int
) -> Figure:
    """Return the chart of one metric of a task, with one history a variant.

    `marks` include those of all tasks; `number` is the chart's on its page, from 1.
    """
    first = histories[0]
    data = {
        "unit": first.unit,
        "title": metric_title(metric),
        "variants": [_variant(suite, history) for history in histories],
        "marks": [[mark.number, mark.kind, mark.text] for mark in marks],
    }
    better = "higher" if first.higher_is_better else "lower"
    margin = suite.margins.get(metric)
    about = (
        f"{first.unit}, {better} is better. A point is the geometric mean of a night's forks, the bar their "
        "range; a line ends where a night is missing."
    )
    if margin is not None:
        about += f" Differences under {100 * margin:g}% count as none."
    return Figure(
        key=anchor(f"history-{number}"),
        title=f"{metric_title(metric)[:1].upper()}{metric_title(metric)[1:]}",
        about=about,
        json=embedded(data),
        height_px=_HEIGHT_PX,
        table=Table.of(
            f"{metric_title(metric)}, {first.unit}: the last {counted(_TABLE_NIGHTS, 'night')}",
            (
                worded("Night"),
                worded("Started"),
                *(suite.named(history.key.variant) for history in histories),
            ),
            _last_rows(suite, histories),
        ),
    )


def _variant(suite: SuitePages, history: History) -> dict[str, Any]:
    style = variant_style(suite.styles[history.key.variant])
    counts = history.forks.tolist()
    return {
        "label": history.key.variant,
        "name": suite.named(history.key.variant),
        "colour": style.colour,
        "range": tint(style.colour, _RANGE_ALPHA),
        "symbol": style.symbol,
        "numbers": history.numbers.tolist(),
        "means": _digits(history.means),
        "lows": _digits(history.lows),
        "highs": _digits(history.highs),
        "forks": counts[0] if len(set(counts)) == 1 else counts,
    }


def _digits(values: npt.NDArray[np.float64]) -> list[float]:
    """Round each value to five significant digits, which look like all of them."""
    return [float(f"{value:.5g}") for value in values.tolist()]


def _last_rows(suite: SuitePages, histories: Sequence[History]) -> list[tuple[str, ...]]:
    columns = []
    for history in histories:
        last = slice(-_TABLE_NIGHTS, None)
        columns.append(
            {
                number: f"{figure(mean)} ({figure(low)} to {figure(high)})"
                for number, mean, low, high in zip(
                    history.numbers[last].tolist(), history.means[last].tolist(),
                    history.lows[last].tolist(), history.highs[last].tolist(), strict=True,
                )
            }
        )  # fmt: skip
    return [
        (
            str(night.number),
            moment(night.started),
            *(column.get(night.number, "n/a") for column in columns),
        )
        for night in reversed(suite.nights[-_TABLE_NIGHTS:])
    ]


def _changes(nights: Sequence[NightRecord], read: Callable[[NightRecord], str]) -> list[tuple[int, str]]:
    """Yield where a fact changes: its place among the nights, and its value from there on."""
    changes: list[tuple[int, str]] = []
    for place, night in enumerate(nights):
        text = read(night)
        if text and (not changes or changes[-1][1] != text):
            changes.append((place, text))
    return changes


def _engine_of(label: str) -> Callable[[NightRecord], str]:
    def read(night: NightRecord) -> str:
        variant = night.variant(label)
        if variant is None:
            return ""
        if variant.facts is None:
            return variant.spec.version
        return f"{variant.facts.version} {variant.facts.build[:_SHORT_HASH]}, {variant.facts.jdk}"

    return read


def _benchctl(night: NightRecord) -> str:
    if night.environment is None:
        return ""
    commit = (night.environment.benchctl_commit or "")[:_SHORT_HASH]
    return f"benchctl {night.environment.benchctl} {commit}, kernel {night.environment.kernel}"


# A history as one small line: an inline SVG that is there without any script.


_PAD = 3.0
# A change smaller than this fills only part of the height: noise should look like noise.
_LEAST_SPAN = 0.1


def sparkline(
    numbers: npt.NDArray[np.int64],
    values: npt.NDArray[np.float64],
    *,
    span: tuple[int, int],
    label: str,
    position: int,
    marked: Collection[int] = (),
    size: tuple[int, int] = (150, 30),
) -> Markup:
    """Draw the values of nights, at least 0, by ascending number, within a span of numbers from edge to edge.

    `label` describes it, `position` is that of the variant's style, nights in `marked` get a mark (those that
    raised an alarm), and `size` is width and height, pixels.
    """
    inside = (numbers >= span[0]) & (numbers <= span[1])
    numbers, values = numbers[inside], values[inside]
    if numbers.size == 0:
        return Markup('<span class="nothing">no value</span>')
    xs, ys = _places(numbers, values, span, size)
    gaps = np.flatnonzero(np.diff(numbers) > 1) + 1
    parts = [_path(x, y) for x, y in zip(np.split(xs, gaps), np.split(ys, gaps), strict=True)]
    dots = [(xs[place], ys[place]) for place, number in enumerate(numbers.tolist()) if number in marked]
    return Markup(
        '<svg class="spark v{position}" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        'preserveAspectRatio="none" role="img" aria-label="{label}"><path d="{path}"/>{dots}{last}</svg>'
    ).format(
        position=position,
        width=size[0],
        height=size[1],
        label=label,
        path="".join(parts),
        dots=Markup().join(_dot(x, y, "alarm", 3.2) for x, y in dots),
        last=_dot(xs[-1], ys[-1], "last", 2.2),
    )


def _places(
    numbers: npt.NDArray[np.int64],
    values: npt.NDArray[np.float64],
    span: tuple[int, int],
    size: tuple[int, int],
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    width, height = (edge - 2 * _PAD for edge in size)
    xs = _PAD + (numbers - span[0]) / max(1, span[1] - span[0]) * width
    logs = np.log(values) if values.all() else values / max(float(values.max()), _LEAST_SPAN)
    low, high = float(logs.min()), float(logs.max())
    wanted = max(high - low, _LEAST_SPAN)
    bottom = (low + high - wanted) / 2
    return xs, _PAD + (1 - (logs - bottom) / wanted) * height


def _path(xs: npt.NDArray[np.float64], ys: npt.NDArray[np.float64]) -> str:
    """Return a stroke through neighbours; a single night becomes a point."""
    points = " ".join(f"{x:.1f} {y:.1f}" for x, y in zip(xs.tolist(), ys.tolist(), strict=True))
    return f"M{points}" if xs.size > 1 else f"M{points}h.01"


def _dot(x: float, y: float, kind: str, radius: float) -> Markup:
    return Markup('<circle class="{}" cx="{:.1f}" cy="{:.1f}" r="{}"/>').format(
        kind, float(x), float(y), radius
    )
