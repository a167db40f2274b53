"""The page of a suite: a chart per task and metric over all nights, its alarms, and the list of nights."""

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
import plotly.graph_objects as go

from benchctl.errors import BenchctlError
from benchctl.nightly.message import alarm_lines, headline, moment, remarks, subject
from benchctl.nightly.records import Alarm, NightRecord, SuiteFolder, number_of
from benchctl.nightly.series import Series, nights_of, read_runs
from benchctl.report.charts import Chart, variant_style
from benchctl.report.charts.plots import GUIDE, errors, plain, plot_layout, upright
from benchctl.report.html import Group, Part, groups, rendered
from benchctl.report.html.page import write_html
from benchctl.report.numbers import counted
from benchctl.report.table import Command, Items, Table, Verdict, worded
from benchctl.results.store import RunStore
from benchctl.stats.metrics import metric_of

_ALARM = "#a8321a"
_ERA = "#7a5200"
_RANGE_WIDTH = 1.0


def write_page(folder: SuiteFolder, store: RunStore, target: Path, note: Callable[[str], None]) -> Path:
    """Write the page of a suite into a directory; return its path. `note` gets what cannot be read.

    Raises:
        UsageError: If the directory holds files of these names that benchctl did not write.
        BenchctlError: If the suite's files cannot be read, or the page cannot be written.
    """
    nights = folder.nights(note)
    if not nights:
        raise BenchctlError(f"no night of {folder.root.name} can be read")
    _, series = read_runs(store, nights, note)
    return write_html(target, suite_page(folder.root.name, nights, series, folder.state().alarms))


def suite_page(
    name: str, nights: Sequence[NightRecord], series: Sequence[Series], alarms: Sequence[Alarm]
) -> str:
    """Return the page of a suite.

    Args:
        name: of the suite.
        nights: all of them, by number, at least one.
        series: all of them, sorted by key.
        alarms: all of them, by number.
    """
    last = nights[-1]
    run = (Command("Its run", f"benchctl show {last.run}"),) if last.run else ()
    charts = list(_charts(nights, series, alarms))
    titles = dict.fromkeys(chart.group for chart in charts)
    shown = sorted(alarms, key=lambda alarm: (not alarm.is_open, -alarm.number))
    to_know = remarks(last)
    parts = [
        Part("verdict", "Last night", [Verdict(subject(last, alarms)), moment(last.started), *run]),
        Part("unseen", "Notes", [Items("", tuple(to_know))] if to_know else []),
        Part("alarms", "Alarms", [_alarm(alarm) for alarm in shown] or ["None."]),
        Part("history", "Task by task", groups(charts, list(titles)) or ["No value has been measured yet."]),
        Part("nights", "Nights", [_night_table(nights, alarms)]),
    ]
    return rendered(name, parts, subtitle=(counted(len(nights), "night"),))


def _alarm(alarm: Alarm) -> Group:
    lines = (*alarm_lines(alarm), f"Raised in night {number_of(alarm.night)}")
    command = (Command("Repeat it", alarm.finding.command),) if alarm.finding.command else ()
    return Group(
        f"#{alarm.number} {alarm.title}",
        (Items("", lines), *command),
        key=f"alarm-{alarm.number}",
        folded=not alarm.is_open,
    )


def _night_table(nights: Sequence[NightRecord], alarms: Sequence[Alarm]) -> Table:
    lines = (
        (
            str(night.number),
            moment(night.started),
            headline(night, [alarm for alarm in alarms if night.id in (alarm.night, alarm.recovered)]),
            "; ".join(night.changes),
            night.run,
        )
        for night in reversed(nights)
    )
    columns = map(worded, ("Night", "Started", "State", "Changed", "Run"))
    return Table.of("All nights, newest first", tuple(columns), lines)


def _charts(
    nights: Sequence[NightRecord], series: Sequence[Series], alarms: Sequence[Alarm]
) -> Iterator[Chart]:
    """Yield a chart per task and metric, tasks in the order of their names."""
    canaries = {night.canary for night in nights}
    labels = sorted({one.key.variant for one in series}, key=lambda label: (label in canaries, label))
    several = len({one.key.challenge for one in series}) > 1
    by_chart: dict[tuple[str, str, str], list[Series]] = {}
    for one in series:
        by_chart.setdefault((one.key.challenge, one.key.task, one.key.metric), []).append(one)
    measured = pairwise(night for night in nights if night.era)
    eras = [night.number - 0.5 for before, night in measured if night.era != before.era]
    for number, ((challenge, task, metric), own) in enumerate(sorted(by_chart.items())):
        own.sort(key=lambda one: labels.index(one.key.variant))
        title = metric_of(metric).title
        better = "higher" if own[0].higher_is_better else "lower"
        traces = [_trace(one, labels, " (canary)" if one.key.variant in canaries else "") for one in own]
        yield Chart(
            key=f"history-{number}",
            group=f"{challenge}: {task}" if several else task,
            title=f"{title[:1].upper()}{title[1:]}",
            about="A point is the mean of a night's forks, with their range; a line ends where a night is "
            "missing. A red mark is where an alarm begins. Nights to the left of a dashed line are not "
            "comparable: the host, the documents or a size was another one.",
            data=[*traces, *_alarm_marks(own, alarms)],
            layout=plot_layout(
                "night",
                f"{plain(title)}, {plain(own[0].unit)} ({better} is better)",
                shapes=[upright(night, color=_ERA, dash="dash") for night in eras],
                hoverdistance=30,
            ),
        )


def _trace(series: Series, labels: Sequence[str], suffix: str) -> go.Scatter:
    history = nights_of(series)
    starts = np.cumsum(history.counts) - history.counts
    first, last = int(history.numbers[0]), int(history.numbers[-1])
    # A place for every night, so that lines end where one is missing.
    values = np.full((3, last - first + 1), np.nan)
    mean = np.exp(history.means)
    low, high = np.minimum.reduceat(series.values, starts), np.maximum.reduceat(series.values, starts)
    values[:, history.numbers - first] = mean, mean - low, high - mean
    style = variant_style(labels.index(series.key.variant))
    name = f"{plain(series.key.variant)}{suffix}"
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
        for alarm in (alarm for alarm in alarms if alarm.finding.key == series.key):
            since, text = number_of(alarm.finding.since), f"#{alarm.number} {plain(alarm.title)}"
            places = history.places_of((since,))
            marked += [(since, float(np.exp(history.means[place])), text) for place in places]
    if not marked:
        return []
    return [
        go.Scatter(
            mode="markers",
            name="alarm",
            x=[x for x, _, _ in marked],
            y=[y for _, y, _ in marked],
            text=[text for *_, text in marked],
            marker={"color": _ALARM, "symbol": "diamond", "size": 11, "line": {"color": GUIDE}},
            hovertemplate="%{text}<extra></extra>",
        )
    ]
