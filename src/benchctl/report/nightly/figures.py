"""What the site's script draws a history from: compact arrays; texts are put together in the browser."""

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any

from benchctl.report.charts.panels import digits, tint, variant_style
from benchctl.report.grid import Grid, worded
from benchctl.report.html.parts import Figure, anchor, embedded
from benchctl.report.nightly.history import History
from benchctl.report.nightly.marks import Mark
from benchctl.report.nightly.standing import marks as night_marks
from benchctl.report.nightly.standing import metric_title, moment
from benchctl.report.nightly.suite import SuitePages
from benchctl.report.numbers import counted, figure
from benchctl.results.nightly.model import NightRecord

HEIGHT_PX = 380
_RANGE_ALPHA = 0.3
_TABLE_NIGHTS = 30
_SHORT_HASH = 12


def night_data(suite: SuitePages, pages: Collection[str]) -> dict[str, Any]:
    """What the hovers of every chart say of a night; `facts` and `marks` only where they change or are.

    Args:
        suite: whose nights.
        pages: ids of the runs that have a page.
    """
    nights = suite.nights
    facts = {label: _changes(nights, _engine_of(label)) for label in suite.roles}
    return {
        "numbers": [night.number for night in nights],
        "ids": [night.id for night in nights],
        "when": [moment(night.started) for night in nights],
        "runs": [night.run if night.run in pages else 0 for night in nights],
        "marks": {
            place: ", ".join(found) for place, night in enumerate(nights) if (found := night_marks(night))
        },
        "facts": facts,
        "host": _changes(nights, _benchctl),
    }


def metric_figure(
    suite: SuitePages, metric: str, histories: Sequence[History], marks: Iterable[Mark], number: int
) -> Figure:
    """The chart of one metric of a task.

    Args:
        suite: that it belongs to.
        metric: machine name.
        histories: one a variant.
        marks: in it; those that all tasks have included.
        number: of the chart on its page, from 1.
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
        about += f" Differences under {100 * margin:g} % count as none."
    return Figure(
        key=anchor(f"history-{number}"),
        title=f"{metric_title(metric)[:1].upper()}{metric_title(metric)[1:]}",
        about=about,
        json=embedded(data),
        height_px=HEIGHT_PX,
        table=Grid.of(
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
        "means": digits(history.means),
        "lows": digits(history.lows),
        "highs": digits(history.highs),
        "forks": counts[0] if len(set(counts)) == 1 else counts,
    }


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
    """Where a fact becomes another one: its place among the nights, and what it is from there on."""
    found: list[tuple[int, str]] = []
    for place, night in enumerate(nights):
        text = read(night)
        if text and (not found or found[-1][1] != text):
            found.append((place, text))
    return found


def _engine_of(label: str) -> Callable[[NightRecord], str]:
    def read(night: NightRecord) -> str:
        found = night.variant(label)
        if found is None:
            return ""
        if found.facts is None:
            return found.spec.version
        return f"{found.facts.version} {found.facts.build[:_SHORT_HASH]}, {found.facts.jdk}"

    return read


def _benchctl(night: NightRecord) -> str:
    if night.environment is None:
        return ""
    commit = (night.environment.benchctl_commit or "")[:_SHORT_HASH]
    return f"benchctl {night.environment.benchctl} {commit}, kernel {night.environment.kernel}"
