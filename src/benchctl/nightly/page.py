"""The page of a suite: a chart per task and metric over all nights, beside the page of its last run."""

from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import plotly.graph_objects as go

from benchctl.errors import BenchctlError
from benchctl.nightly.folder import SuiteFolder, recall
from benchctl.nightly.model import Alarm, Event, NightRecord, Series, alarms_of
from benchctl.nightly.screening import nights_of
from benchctl.nightly.text import (
    alarm_sentence,
    change_text,
    effect_text,
    headline,
    marks,
    metric_title,
    moment,
    night_label,
    not_watched,
    subject,
    task_name,
)
from benchctl.report.charts import Chart, variant_style
from benchctl.report.charts.effects import errors
from benchctl.report.charts.panels import GUIDE, plain, plot_layout, upright
from benchctl.report.html.page import render_page, run_page, write_pages
from benchctl.report.html.parts import Group, PageBlock, Part, groups, link, rendered
from benchctl.report.numbers import counted, figure
from benchctl.report.table import Cell, Column, Command, Items, Table, Verdict, worded
from benchctl.results.store import RunStore
from benchctl.stats.analyse import analyse_run

_INDEX = "index.html"
_ALARM = "#a8321a"
_ERA = "#7a5200"
_RANGE_WIDTH = 1.0
_TABLE_NIGHTS = 14


def write_page(folder: SuiteFolder, target: Path, note: Callable[[str], None]) -> Path:
    """Write the page of a suite and that of its last run into a directory; return the path of the former.

    Pages of earlier runs in it stay, and are linked. `note` is called with what cannot be read.

    Raises:
        UsageError: If the directory holds files of these names that benchctl did not write.
        BenchctlError: If the suite's files cannot be read, or the pages cannot be written.
    """
    nights = folder.nights(note)
    store = RunStore(Path(recall(folder).runs))
    pages = {}
    last = next((night.run for night in reversed(nights) if night.run), "")
    try:
        run = store.find(last) if last else None
        if run is not None:
            record = run.load()
            pages[f"{last}.html"] = render_page(run_page(run, record, analyse_run(record), usual=store.root))
    except BenchctlError as err:
        note(err.message)
    linked = {path.stem for path in target.glob("*.html")} | {Path(name).stem for name in pages}
    series = folder.series(None, None, note)
    pages[_INDEX] = suite_page(folder.root.name, nights, series, folder.events(note), linked)
    return write_pages(target, pages)


def suite_page(
    name: str,
    nights: Sequence[NightRecord],
    series: Sequence[Series],
    events: Sequence[Event],
    linked: Collection[str],
) -> str:
    """Return the page of a suite.

    Args:
        name: of the suite.
        nights: all of them, by number.
        series: all of them, sorted by key.
        events: all of them, in order.
        linked: ids of the runs that have a page beside this one.
    """
    last = nights[-1] if nights else None
    alarms = alarms_of(events)
    charts = list(_charts(nights, series, alarms))
    titles = dict.fromkeys(chart.group for chart in charts)
    shown = [alarm for alarm in reversed(alarms) if alarm.state == "open"]
    older = [alarm for alarm in reversed(alarms) if alarm.state != "open"]
    to_know = not_watched(last) if last else []
    parts = [
        Part("verdict", "Last night", list(_last_night(last, events, linked))),
        Part("unseen", "To know", [Items("", tuple(to_know))] if to_know else []),
        Part("alarms", "Alarms", [_alarm(alarm) for alarm in (*shown, *older)] or ["None."]),
        Part("history", "Task by task", groups(charts, list(titles)) or ["No value has been measured yet."]),
        Part("nights", "Nights", [_night_table(nights, events, linked)] if nights else []),
    ]
    return rendered(name, parts, subtitle=(counted(len(nights), "night"),))


def _last_night(
    last: NightRecord | None, events: Sequence[Event], linked: Collection[str]
) -> Iterator[PageBlock]:
    if last is None:
        yield Verdict("No night yet.")
        return
    yield Verdict(subject(last, events))
    yield f"{last.id}, {moment(last.started)}"
    if last.run in linked:
        yield Items("", (link(f"{last.run}.html", "Its run"),))


def _alarm(alarm: Alarm) -> Group:
    raised = alarm.raised
    since = f"Since {night_label(raised.since)}" if raised.since else ""
    good = f"last good {night_label(raised.last_good)}" if raised.last_good else ""
    changed = "; ".join(map(change_text, raised.changes)) or "nothing that benchctl knows of"
    confirmation = raised.confirmation
    lines = (
        f"State: {alarm_sentence(alarm)}",
        effect_text(raised),
        ", ".join(filter(None, (since, good, f"raised in {night_label(raised.night)}"))),
        f"Changed then: {changed}",
        "" if confirmation is None else f"Confirmed by run {confirmation.run}",
        raised.detail,
    )
    command = (Command("Repeat it", raised.command),) if raised.command else ()
    return Group(
        f"#{raised.alarm} {raised.title}",
        (Items("", tuple(filter(None, lines))), *command),
        key=f"alarm-{raised.alarm}",
        folded=alarm.state != "open",
    )


def _night_table(nights: Sequence[NightRecord], events: Sequence[Event], linked: Collection[str]) -> Table:
    by_night: dict[str, list[Event]] = {}
    for alarm in alarms_of(events):
        by_night.setdefault(alarm.raised.night, []).append(alarm.raised)
        if alarm.recovered is not None:
            by_night.setdefault(alarm.recovered.night, []).append(alarm.recovered)
    lines = (
        (
            str(night.number),
            moment(night.started),
            headline(night, by_night.get(night.id, [])),
            ", ".join(marks(night)),
            "; ".join(map(change_text, night.changes)),
            Cell((night.run,), link=f"{night.run}.html" if night.run in linked else ""),
        )
        for night in reversed(nights)
    )
    columns = map(worded, ("Night", "Started", "State", "To know", "Changed", "Run"))
    return Table.of("All nights, newest first", tuple(columns), lines)


def _charts(
    nights: Sequence[NightRecord], every: Sequence[Series], alarms: Sequence[Alarm]
) -> Iterator[Chart]:
    """Yield a chart per task and metric, tasks in the order of their names."""
    roles = {variant.label: variant.role for night in nights for variant in night.variants}
    labels = sorted(
        {series.key.variant for series in every}, key=lambda label: (roles.get(label) == "canary", label)
    )
    challenges = len({series.key.challenge for series in every})
    by_chart: dict[tuple[str, str, str], list[Series]] = {}
    for series in every:
        key = series.key
        by_chart.setdefault((key.challenge, key.task, key.metric), []).append(series)
    eras = list(_eras(nights))
    for number, (_, own) in enumerate(sorted(by_chart.items())):
        own.sort(key=lambda series: labels.index(series.key.variant))
        first = own[0]
        title = metric_title(first.key.metric)
        better = "higher" if first.higher_is_better else "lower"
        traces = [_trace(series, labels, roles.get(series.key.variant) == "canary") for series in own]
        layout = plot_layout(
            "night",
            f"{plain(title)}, {plain(first.unit)} ({better} is better)",
            shapes=[upright(night, color=_ERA, dash="dash") for night in eras],
            hoverdistance=30,
        )
        yield Chart(
            key=f"history-{number}",
            group=task_name(first.key, challenges=challenges),
            title=f"{title[:1].upper()}{title[1:]}",
            about="A point is the mean of a night's forks, with their range; a line ends where a night is "
            "missing. A red mark is where an alarm begins. Nights to the left of a dashed line are not "
            "comparable: the host, the documents or a size was another one.",
            data=[*traces, *_alarm_marks(own, alarms)],
            layout=layout,
            table=_values(nights, own),
        )


def _eras(nights: Sequence[NightRecord]) -> Iterator[float]:
    """Yield where nights are not comparable with those before: half-way between the two."""
    era = ""
    for night in nights:
        if night.era and era and night.era != era:
            yield night.number - 0.5
        era = night.era or era


def _trace(series: Series, labels: Sequence[str], is_canary: bool) -> go.Scatter:  # noqa: FBT001 - private
    history = nights_of(series)
    starts = np.cumsum(history.counts) - history.counts
    first, last = int(history.numbers[0]), int(history.numbers[-1])
    # A place for every night, so that lines end where one is missing.
    values = np.full((3, last - first + 1), np.nan)
    mean = np.exp(history.means)
    low, high = np.minimum.reduceat(series.values, starts), np.maximum.reduceat(series.values, starts)
    values[:, history.numbers - first] = mean, mean - low, high - mean
    style = variant_style(labels.index(series.key.variant))
    name = f"{plain(series.key.variant)}{' (canary)' if is_canary else ''}"
    return go.Scatter(
        mode="lines+markers",
        name=name,
        x=np.arange(first, last + 1),
        y=values[0],
        error_y=errors(values[1], values[2], style.colour, _RANGE_WIDTH, 0),
        line={"color": style.colour, "width": 1.5},
        marker={"color": style.colour, "symbol": style.symbol, "size": 5},
        hovertemplate=f"{name}, night %{{x}}: %{{y:,.5~r}} {plain(series.unit)}<extra></extra>",
    )


def _alarm_marks(own: Sequence[Series], alarms: Sequence[Alarm]) -> list[go.Scatter]:
    """Return marks where alarms about the series begin, at their values then; none without any."""
    marked: list[tuple[int, float, str]] = []
    for series in own:
        history = nights_of(series)
        for alarm in alarms:
            since = alarm.raised.since or alarm.raised.night
            places = history.places_of((int(since.partition("-")[0]),))
            if places.size and alarm.raised.concerns(series.key):
                text = f"#{alarm.raised.alarm} {plain(alarm.raised.title)}, {plain(alarm_sentence(alarm))}"
                place = int(places[0])
                marked.append((int(history.numbers[place]), float(np.exp(history.means[place])), text))
    if not marked:
        return []
    marker: dict[str, Any] = {"color": _ALARM, "symbol": "diamond", "size": 11, "line": {"color": GUIDE}}
    return [
        go.Scatter(
            mode="markers", name="alarm", x=[x for x, _, _ in marked], y=[y for _, y, _ in marked],
            text=[text for *_, text in marked], marker=marker,
            hovertemplate="%{text}<extra></extra>",
        )
    ]  # fmt: skip


def _values(nights: Sequence[NightRecord], own: Sequence[Series]) -> Table:
    """Return the means of the last nights."""
    columns = []
    for series in own:
        history = nights_of(series)
        columns.append(dict(zip(history.numbers.tolist(), np.exp(history.means).tolist(), strict=True)))
    lines = (
        (
            str(night.number),
            moment(night.started),
            *(figure(column.get(night.number)) for column in columns),
        )
        for night in reversed(nights[-_TABLE_NIGHTS:])
    )
    titles: list[Column | str] = [worded("Night"), worded("Started")]
    titles += [series.key.variant for series in own]
    return Table.of(f"{metric_title(own[0].key.metric)}, {own[0].unit}: the last nights", titles, lines)
