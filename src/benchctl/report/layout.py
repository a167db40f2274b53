"""Analysis -> titled grids of words, which the terminal and Markdown only have to draw."""

from collections.abc import Iterator, Sequence

import msgspec

from benchctl.report.notes import Notes
from benchctl.report.numbers import NOT_AVAILABLE, figure, interval, p_value, percent, signed_percent
from benchctl.stats.analysis import Analysis, DriverRow, Figures, Row, Section, TimeRow
from benchctl.stats.compare import Comparison
from benchctl.stats.cost import VerdictCost
from benchctl.stats.metrics import Metric, metric_of

_TWO = 2


class Grid(msgspec.Struct, frozen=True):
    """One table.

    Attributes:
        title: above it.
        headers: of the columns; the first column holds names, the others figures or words.
        lines: cells, one tuple a line, as long as the headers.
        words: positions of the columns that are read, not compared: they are set flush left.
    """

    title: str
    headers: tuple[str, ...]
    lines: tuple[tuple[str, ...], ...]
    words: frozenset[int]

    def without(self, header: str) -> "Grid":
        """The table without one of its columns."""
        drop = self.headers.index(header)
        lines = tuple(line[:drop] + line[drop + 1 :] for line in self.lines)
        words = frozenset(place - (place > drop) for place in self.words if place != drop)
        return Grid(self.title, self.headers[:drop] + self.headers[drop + 1 :], lines, words)

    def without_empty(self, header: str) -> "Grid":
        """The table without that column if nothing stands in it."""
        place = self.headers.index(header)
        return self if any(line[place] for line in self.lines) else self.without(header)


def result_grids(analysis: Analysis, notes: Notes) -> list[Grid]:
    """One grid a challenge and metric, in the order of the challenges."""
    return [
        _result_grid(analysis, section, metric, rows, notes)
        for section in analysis.sections
        for metric in map(metric_of, dict.fromkeys(row.metric for row in analysis.rows))
        for rows in _by_unit([row for row in analysis.rows if _belongs(row, section, metric)])
    ]


def precision_grid(analysis: Analysis) -> Grid | None:
    """What the run could see: spread of forks, detectable difference, cross-check.

    None where that says nothing: for one variant, or with one fork of each.
    """
    lines = tuple(
        (
            task_name(row, analysis),
            metric_title(row),
            comparison.contender,
            f"{percent(comparison.cv_baseline_percent)}, {percent(comparison.cv_contender_percent)}",
            percent(comparison.mde_percent),
            _cross_check(comparison),
        )
        for row in analysis.rows
        for comparison in row.comparisons
    )
    if not any(comparison.mde_percent is not None for row in analysis.rows for comparison in row.comparisons):
        return None
    headers = ("Operation", "Metric", "Variant", "CV of forks", "Sees from", "Permutation p (least)")
    title = f"Precision: CV of {analysis.variants[0]} and of the variant; what 80 % of such runs would find"
    return _without_variant(Grid(title, headers, lines, frozenset({0, 1, 2})), analysis)


def task_name(row: Row | DriverRow | TimeRow | VerdictCost, analysis: Analysis) -> str:
    """The task, with its challenge where there are several."""
    if len(analysis.sections) == 1:
        return row.label
    return f"{analysis.sections[row.schedule].challenge}: {row.label}"


def section_title(section: Section) -> str:
    """A challenge, with what its node had run before: `range-only after warmup`."""
    before = f" after {', '.join(section.preceded_by)}" if section.preceded_by else ""
    return f"{section.challenge}{before}"


def better(metric: Metric | Row) -> str:
    """`higher is better`, or `lower is better`."""
    return f"{'higher' if metric.higher_is_better else 'lower'} is better"


def verdict_word(comparison: Comparison, who: str = "") -> str:
    """The verdict; `different` says in which direction: `different (faster)`, or `different (os faster)`."""
    if comparison.verdict == "different":
        return f"different ({who}{comparison.direction})"
    return comparison.verdict


def _by_unit(rows: Sequence[Row]) -> list[list[Row]]:
    """Rows whose figures can stand in one column."""
    grouped: dict[str, list[Row]] = {}
    for row in rows:
        grouped.setdefault(row.unit, []).append(row)
    return list(grouped.values())


def _belongs(row: Row, section: Section, metric: Metric) -> bool:
    return row.schedule == section.schedule and row.metric == metric.key


def _result_grid(
    analysis: Analysis, section: Section, metric: Metric, rows: Sequence[Row], notes: Notes
) -> Grid:
    title = f"{section_title(section)}: {metric.title}, {rows[0].unit} ({better(metric)})"
    variants = analysis.variants
    if len(variants) == 1:
        headers: tuple[str, ...] = ("Operation", variants[0], "CV of forks", "Notes")
        lines = tuple(_alone(row, notes) for row in rows)
    elif len(variants) == _TWO:
        headers = ("Operation", *variants, "Diff %", "95 % interval", "p", "Verdict", "Notes")
        lines = tuple(_side_by_side(row, notes) for row in rows)
    else:
        headers = ("Operation", "Variant", "Value", "Diff %", "95 % interval", "p", "Verdict", "Notes")
        lines = tuple(line for row in rows for line in _one_below_the_other(row, notes))
    words = {0, headers.index("Notes")}
    words |= {headers.index(name) for name in ("Variant", "Verdict") if name in headers}
    return Grid(title, headers, lines, frozenset(words))


def _alone(row: Row, notes: Notes) -> tuple[str, ...]:
    only = row.figures[0]
    remarks = " ".join((*only.load, notes.numbers(row)))
    return (row.label, _value(only), percent(only.cv_percent), remarks)


def _side_by_side(row: Row, notes: Notes) -> tuple[str, ...]:
    comparison = row.comparisons[0]
    return (
        row.label,
        *(_value(figures) for figures in row.figures),
        *_tested(comparison),
        _verdict(comparison, row.figures, row),
        notes.numbers(row),
    )


def _one_below_the_other(row: Row, notes: Notes) -> Iterator[tuple[str, ...]]:
    """The baseline's line, then one a contender."""
    baseline, *others = row.figures
    first = ", ".join(("baseline", *baseline.load))
    yield (row.label, baseline.variant, _value(baseline), "", "", "", first, notes.numbers(row))
    for figures, comparison in zip(others, row.comparisons, strict=True):
        verdict = _verdict(comparison, (baseline, figures), row, named=False)
        yield ("", figures.variant, _value(figures), *_tested(comparison), verdict, "")


def _value(figures: Figures) -> str:
    if figures.unsupported:
        return NOT_AVAILABLE
    return f">= {figure(figures.value)}" if figures.at_least else figure(figures.value)


def _tested(comparison: Comparison) -> tuple[str, str, str]:
    return (
        signed_percent(comparison.effect_percent),
        interval(comparison.low_percent, comparison.high_percent),
        p_value(comparison.p_adjusted),
    )


def _verdict(comparison: Comparison, sides: Sequence[Figures], row: Row, *, named: bool = True) -> str:
    """`faster` and `slower` name who is, unless the line does; `different` says in which direction.

    A side that had not settled was measured while it warmed up, and one whose load was not what it should be
    was measured under another, which no verdict can hide. Nor can it hide that requests failed.
    """
    who = f"{comparison.contender} " if named else ""
    text = verdict_word(comparison, who)
    if comparison.verdict in ("faster", "slower"):
        text = f"{who}{text}"
    loads = dict.fromkeys(state for side in sides for state in side.load)
    if loads:
        text = ", ".join(loads if comparison.verdict == "n/a" else (text, *loads))
    if any(doubt.code == "failures" for doubt in row.caveats):
        text = f"{text}, requests failed"
    return f"{text}, not steady" if any(side.steady.state == "not steady" for side in sides) else text


def _cross_check(comparison: Comparison) -> str:
    if comparison.p_permutation is None:
        return NOT_AVAILABLE
    drawn = "" if comparison.p_permutation_exact else ", drawn"
    return f"{_short(comparison.p_permutation)} ({_short(comparison.p_permutation_least)}{drawn})"


def _short(p: float | None) -> str:
    return NOT_AVAILABLE if p is None else f"{p:.2g}"


def metric_title(row: Row) -> str:
    """What tables call the metric of a row."""
    return metric_of(row.metric).title


def _without_variant(grid: Grid, analysis: Analysis) -> Grid:
    """Two variants need no column that says which."""
    return grid if len(analysis.variants) > _TWO else grid.without("Variant")
