"""Sweeps for readers: the answer in sentences, tables of points, recalls and interactions, and charts."""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import attrgetter
from typing import Any, Literal, NamedTuple

from benchctl.report.charts import OVERVIEW, Chart, variant_style
from benchctl.report.layout import better, change_cells, missed, p_column, said, verdict_cell
from benchctl.report.numbers import (
    NOT_AVAILABLE,
    counted,
    figure,
    p_value,
    rough,
    signed_figure,
    signed_percent,
    with_unit,
)
from benchctl.report.sentences import SIZED, listed
from benchctl.report.table import (
    ABOVE,
    INTERVAL,
    NOTES,
    OPERATION,
    VARIANT,
    VERDICT,
    Addition,
    Cell,
    Column,
    Notes,
    Section,
    Table,
    break_name,
    judged,
    named,
    worded,
)
from benchctl.stats.analysis import Analysis, AtRecall, Bounded, SweepCurve
from benchctl.stats.caveat import WITHOUT_VERDICT, Caveat
from benchctl.stats.compare import UNITS, Comparison
from benchctl.stats.metrics import metric_of

_Line = tuple[Cell | str, ...]

_TWO = 2
_WHOLE = 100
_NOTHING = -99.9  # percent
_MOST_TOLD = 2  # tasks in full in the first sentences, or curves of a metric on a screen
_MOST_DRAWN = 8
_LABEL_WIDTH = 24
_WITHOUT = "without a verdict"
_DEPENDS = Column("Depends?", "verdict")
_WEIGHT = attrgetter("weight")


def report(analysis: Analysis, notes: Notes | None) -> Addition | None:
    """Return what a sweep adds to a report: its curves; None for other runs."""
    if not analysis.curves:
        return None
    groups = _alike(analysis.curves)
    # Metrics that never get a verdict, such as the throughput of throttled tasks, come last.
    shown = sorted(groups, key=lambda curves: not _has_verdict(curves))
    return Addition(
        answer=tuple(sweep_answer(analysis.curves)),
        results=tuple([table] for curves in groups for table in sweep_tables(curves, notes)),
        brief=tuple(part for curves in shown for part in _brief(curves)),
    )


def _alike(curves: Sequence[SweepCurve]) -> list[list[SweepCurve]]:
    """Curves of one table."""
    groups: dict[object, list[SweepCurve]] = {}
    for curve in curves:
        key = (curve.challenge, curve.metric, curve.unit, curve.axis.name, curve.axis.labels)
        groups.setdefault(key, []).append(curve)
    return list(groups.values())


def _primary(curves: Sequence[SweepCurve]) -> list[SweepCurve]:
    """Curves of the usual metrics, if there are any."""
    usual = [curve for curve in curves if metric_of(curve.metric).kind.usual]
    return usual or list(curves)


def _has_verdict(curves: Sequence[SweepCurve]) -> bool:
    """Return whether there is a verdict anywhere on curves, or nothing is compared."""
    compared = [one for curve in curves for point in curve.comparisons for one in point]
    return not compared or any(_word(one) != _WITHOUT for one in compared)


# What depends on the point.


def _against_first(curve: SweepCurve, number: int) -> tuple[Comparison, ...]:
    """Comparisons with the first point: interactions of a pair, or changes of a single variant."""
    return curve.pairs[number].interactions if curve.pairs else curve.changes


def _at_points(curve: SweepCurve, number: int) -> list[tuple[str, Comparison]]:
    """Labels with what is compared there: a pair, or a single variant with its first point."""
    points = zip(curve.axis.labels, curve.comparisons, strict=False)
    return [(label, point[number]) for label, point in points if point]


class _Dependence(NamedTuple):
    """Answer to whether a difference, or a single variant, depends on the point, with what decides it."""

    word: Literal["yes", "?", "no", "n/a"]
    curve: SweepCurve
    number: int  # of the pair
    decisive: Comparison

    @classmethod
    def of(cls, curve: SweepCurve, number: int) -> "_Dependence":
        """Of all points: it depends if it does at any, and does not if it does at none."""
        answers = (cls(_answer(one), curve, number, one) for one in _against_first(curve, number))
        return max(answers, key=lambda one: (("no", "n/a", "?", "yes").index(one.word), one.weight))

    @property
    def weight(self) -> tuple[int, bool, float]:
        """Sort key: of several metrics, what shows it counts most, then what leaves it open."""
        firm = self.word == "yes" and not self.decisive.provisional
        size = abs(math.log1p(max(self.decisive.effect_percent or 0.0, _NOTHING) / 100))
        return ("n/a", "no", "?", "yes").index(self.word), firm, size


def _answer(one: Comparison) -> Literal["yes", "?", "no", "n/a"]:
    undecided: Literal["?", "n/a"] = "?" if one.verdict == "inconclusive" else "n/a"
    return "yes" if one.verdict in SIZED else "no" if one.verdict == "equivalent" else undecided


def strongest(curves: Sequence[SweepCurve]) -> list[SweepCurve]:
    """Return curves of the usual metrics, those first whose first contender depends most on the point.

    Without those that get no verdict where others do.
    """
    curves = _primary(curves)
    curves = [curve for curve in curves if _has_verdict([curve])] or curves
    asked = [curve for curve in curves if _against_first(curve, 0)]
    asked.sort(key=lambda curve: _Dependence.of(curve, 0).weight, reverse=True)
    return [*asked, *(curve for curve in curves if curve not in asked)]


# Sentences.


def sweep_answer(curves: Sequence[SweepCurve]) -> Iterator[str]:
    """Yield how variants compare at equal recall, and what depends on the point; else what is at points."""
    told = [*recall_sentences(curves), *dependence_sentences(curves)]
    yield from told
    for curve in () if told else _primary(curves)[:_MOST_TOLD]:
        for number in range(len(curve.pairs)):
            yield f"{_task(curve)}: {_points_text(curve, number)}."


def recall_sentences(curves: Sequence[SweepCurve]) -> Iterator[str]:
    """Yield how variants compare at equal recall, of the first tasks."""
    tasks: dict[tuple[str, str], SweepCurve] = {}
    # What is offered, such as the throughput of throttled tasks, has no verdict.
    for curve in sorted(_primary(curves), key=lambda curve: not _has_verdict([curve])):
        if curve.at_recall:
            tasks.setdefault((curve.challenge, curve.task), curve)
    for curve in [*tasks.values()][:_MOST_TOLD]:
        for number, pair in enumerate(curve.pairs):
            levels = [(f"{level.recall:g}", level.comparisons[number]) for level in curve.at_recall]
            found = _grouped(levels, curve.unit)
            yield f"{_task(curve)} at equal recall: {pair.contender} against {pair.baseline} {found}."


def dependence_sentences(curves: Sequence[SweepCurve]) -> Iterator[str]:
    """Yield on which tasks differences depend on the point, the strongest in full, others counted."""
    asked = [curve for curve in _primary(curves) if _against_first(curve, 0)]
    for number in range(len(asked[0].pairs) or 1) if asked else ():
        tasks: dict[tuple[str, str], _Dependence] = {}
        for one in sorted((_Dependence.of(curve, number) for curve in asked), key=_WEIGHT, reverse=True):
            tasks.setdefault((one.curve.challenge, one.curve.task), one)
        first, *others = tasks.values()
        if first.word == "yes" or not others:
            yield f"{_dependence_text(first)}."
        if others:
            on = f"depends on {first.curve.axis.name} on {_dependence_counts([*tasks.values()])}"
            yield f"Of {len(tasks)} tasks, {_who(first.curve, number)} {on}."


def _who(curve: SweepCurve, number: int) -> str:
    if not curve.pairs:
        return f"the result of {curve.lines[0].variant}"
    return f"the difference between {curve.pairs[number].contender} and {curve.pairs[number].baseline}"


def _dependence_counts(found: Sequence[_Dependence]) -> str:
    """`a, b and c, does not on 20, undecided on 14`."""
    counts: Counter[str] = Counter(one.word for one in found)
    parts = [listed([one.curve.task for one in found if one.word == "yes"]) or "none"]
    for word, text in (("no", "does not on"), ("?", "undecided on"), ("n/a", "without a verdict on")):
        parts += [f"{text} {counts[word]}"] if counts[word] else []
    return ", ".join(parts)


def _dependence_text(found: _Dependence) -> str:
    """`range: os against es equal at fresh; slower at polluted (+21%): the difference depends on ...`."""
    curve, decisive = found.curve, found.decisive
    what = f"on {curve.axis.name}"
    who = "the difference" if curve.pairs else _who(curve, found.number)
    manner = ", provisionally" if decisive.provisional else ""
    match found.word:
        case "yes":
            end = f"{who} depends {what}{manner} (p {p_value(decisive.p_adjusted)})"
            end += ", perhaps by too little to matter" if decisive.verdict == "different" else ""
        case "no":
            within = f" (within {decisive.margin_percent:g}%){missed(decisive)}"
            end = f"{who} does not depend {what}{manner}{within}"
        case "?":
            detects = "" if decisive.mde_percent is None else f" (detects {rough(decisive.mde_percent)}%)"
            end = f"whether {who} depends {what} is undecided{detects}"
        case _:
            why = next((doubt.text for doubt in decisive.caveats if doubt.code in WITHOUT_VERDICT), "")
            end = f"no verdict on whether {who} depends {what}{why and f' ({why})'}"
    points = _points_text(curve, found.number)
    return f"{_task(curve)}: {points}{': ' if points else ''}{end}"


def _task(curve: SweepCurve) -> str:
    metric = metric_of(curve.metric)
    return curve.task if metric.kind.counts else f"{curve.task}, {metric.title}"


def _points_text(curve: SweepCurve, number: int) -> str:
    """`os against es slower at 1, 2 (+12 to +38%); equal at 4`; a single variant is against its first."""
    found = _at_points(curve, number)
    if not found:
        return ""
    if not curve.pairs:
        return f"{curve.lines[0].variant} {_grouped(found, curve.unit)}, against {curve.axis.labels[0]}"
    pair = curve.pairs[number]
    return f"{pair.contender} against {pair.baseline} {_grouped(found, curve.unit)}"


def _grouped(found: Sequence[tuple[str, Comparison]], unit: str) -> str:
    """Verdicts with where they are; what reads the same is together."""
    groups: dict[str, list[tuple[str, Comparison]]] = {}
    for label, one in found:
        groups.setdefault(_word(one), []).append((label, one))
    parts = []
    for word, group in groups.items():
        in_unit = group[0][1].compared_as == "difference"
        sizes = [one.difference if in_unit else one.effect_percent for _, one in group]
        known, size = [one for one in sizes if one is not None], ""
        if known and group[0][1].verdict in SIZED:
            low, high = map(signed_figure if in_unit else signed_percent, (min(known), max(known)))
            reach = low if low == high else f"{low} to {high}"
            size = f" ({with_unit(reach, unit if in_unit else '%')})"
        every = len(group) == len(found) > 1
        where = f"all {len(found)}" if every else ", ".join(label for label, _ in group)
        parts.append(f"{word} at {where}{size}")
    return "; ".join(parts)


def _word(comparison: Comparison) -> str:
    word = said(comparison, comparison.verdict)
    doubt = "?" if comparison.provisional else ""
    if comparison.verdict == "different":
        return f"{said(comparison, comparison.direction or '')}{doubt}, perhaps by too little to matter,"
    return _WITHOUT if word in {"insufficient", "n/a"} else f"{word}{doubt}"


# Tables.


def sweep_tables(curves: Sequence[SweepCurve], notes: Notes | None = None) -> list[Table]:
    """Return all points of curves, then equal recall and interactions, where there are any.

    `curves` are alike in metric and axis. `notes` are those that the doubts about comparisons are numbered
    by; without, there is no such column.
    """
    tables = (_points(curves, notes), _at_recall(curves), _interactions(curves))
    return [table for table in tables if table.lines]


def _brief(curves: Sequence[SweepCurve]) -> Iterator[Sequence[Section]]:
    """Yield parts for a screen: a few curves in full, of many what depends on the point, that first."""
    if (at_recall := _at_recall(curves)).lines:
        yield [[at_recall, ""]]
    if len(curves) <= _MOST_TOLD or not (curves[0].pairs and _against_first(curves[0], 0)):
        yield [[_points(curves, None), ""]]
    else:
        yield [[_interactions(strongest(curves)), ""]]


def _depends_cell(interaction: Comparison) -> Cell:
    word = _answer(interaction)
    doubt = "?" if interaction.provisional else ""
    little = " (little)" if interaction.verdict == "different" else ""
    shown = f"{word}{doubt}{little}{missed(interaction)}"
    return judged("different" if word == "yes" else interaction.verdict, shown)


def _title(curves: Sequence[SweepCurve]) -> str:
    """`range-only: range, p90 service time by clients`; of several curves their number."""
    curve = curves[0]
    task = curve.task if len(curves) == 1 else counted(len(curves), "task")
    where = f"{curve.challenge}: {task}" if curve.challenge else task
    return f"{where}, {metric_of(curve.metric).title} by {curve.axis.name}"


def _table(
    title: str,
    columns: Sequence[Column | str],
    curves: Sequence[SweepCurve],
    lines_of: Callable[[SweepCurve], Iterable[_Line]],
) -> Table:
    """A table of curves; the lines of several have their task in front."""
    if len(curves) == 1:
        return Table.of(title, columns, lines_of(curves[0]))
    lines = [
        (ABOVE if number else curve.task, *line)
        for curve in curves
        for number, line in enumerate(lines_of(curve))
    ]
    return Table.of(title, (OPERATION, *columns), lines)


def _change(comparisons: Iterable[Comparison], unit: str) -> str:
    return f"Diff, {unit}" if any(one.compared_as == "difference" for one in comparisons) else "Diff %"


def _points(curves: Sequence[SweepCurve], notes: Notes | None) -> Table:
    """A line a point for one or two variants; for more, a line a point and variant."""
    first = curves[0]
    variants = [line.variant for line in first.lines]
    title = f"{_title(curves)}, {first.unit} ({better(metric_of(first.metric))}; mean, its 95% interval)"
    change = _change((one for curve in curves for point in curve.comparisons for one in point), first.unit)
    p = p_column(one for curve in curves for point in curve.comparisons for one in point)
    tested = (change, INTERVAL, p, VERDICT, NOTES)

    def lines(curve: SweepCurve) -> Iterator[_Line]:
        for place, label in enumerate(curve.axis.labels):
            if len(variants) <= _TWO:
                yield (
                    label,
                    *(_value(line.means[place]) for line in curve.lines),
                    ", ".join(str(line.forks[place]) for line in curve.lines),
                    *_tested(curve, place, 0, range(len(variants)), notes),
                )
                continue
            for number, line in enumerate(curve.lines):
                cells = _tested(curve, place, number - 1, (0, number), notes)
                value = _value(line.means[place])
                yield (ABOVE if number else label, line.variant, value, str(line.forks[place]), *cells)

    values: Sequence[Column | str] = variants if len(variants) <= _TWO else (VARIANT, "Value")
    columns = (named(first.axis.name), *values, "Forks", *tested)
    table = _table(title, columns, curves, lines).without_empty(NOTES.title).without_empty(VERDICT.title)
    if not first.comparisons:
        table = table.without(change, INTERVAL.title, p.title)
    same = len({count for curve in curves for line in curve.lines for count in line.forks}) == 1
    return table.without("Forks") if same else table


def _value(mean: Bounded | None) -> Cell:
    if mean is None:
        return Cell(NOT_AVAILABLE)
    if mean.high is None:
        return Cell(f"{figure(mean.value)} (one fork)")
    if not mean.value:
        return Cell("0")
    return Cell(f"{figure(mean.value)} ({_end(mean.low)}..{_end(mean.high)})")


def _end(value: float | None) -> str:
    """The end of an interval: three digits, as many as are known of it."""
    rounded = float(f"{value or 0.0:.3g}")
    return f"{rounded:,.0f}" if not rounded or abs(rounded) >= _WHOLE else f"{rounded:#.3g}"


def _tested(
    curve: SweepCurve, place: int, index: int, lines: Iterable[int], notes: Notes | None
) -> tuple[Cell | str, ...]:
    """The cells of a comparison at a point, by its index there, and what must be said beside these lines."""
    said_of = [curve.lines[line].remarks[place] for line in lines if curve.lines[line].remarks]
    remarks = tuple(dict.fromkeys(remark for told in said_of for remark in told))
    doubts: tuple[Caveat, ...] = curve.caveats[place] if curve.caveats else ()
    compared = curve.comparisons[place] if curve.comparisons else ()
    if index < 0 or not compared:
        first = ["baseline"] if curve.comparisons else []
        told = judged(None, *first, *remarks)
        return "", "", "", told, "" if notes is None or index < 0 else notes.cell(doubts)
    one = compared[index]
    return (
        *change_cells(one),
        p_value(one.p_adjusted),
        verdict_cell(one, remark=", ".join(remarks)),
        "" if notes is None else notes.cell((*doubts, *one.caveats)),
    )


def _at_recall(curves: Sequence[SweepCurve]) -> Table:
    """A line a recall and variant: its value, the points that it lies between, and the comparison."""
    found = [one for curve in curves for level in curve.at_recall for one in level.comparisons]
    change, p = _change(found, curves[0].unit), p_column(found)

    def lines(level: AtRecall) -> Iterator[_Line]:
        unit = UNITS[level.comparisons[0].replicate if level.comparisons else "fork"]
        for number, line in enumerate(level.lines):
            tested: _Line = ("", "", "", judged(None, "baseline"))
            if number:
                one = level.comparisons[number - 1]
                tested = (*change_cells(one), p_value(one.p_adjusted), verdict_cell(one))
            some = f"in {line.reached} of {line.blocks} {unit}" if 0 < line.reached < line.blocks else ""
            yield (
                ABOVE if number else f"{level.recall:g}",
                line.variant,
                _value(line.mean),
                Cell(" to ".join(dict.fromkeys((*line.between[:1], *line.between[-1:])))),
                *tested,
                ", ".join(filter(None, (some, line.reason))),
            )

    table = _table(
        f"{_title(curves)}, at equal recall, {curves[0].unit} (mean, its 95% interval)",
        (named("Recall"), VARIANT, "Value", "Between", change, INTERVAL, p, VERDICT, worded("Remarks")),
        curves,
        lambda curve: [line for level in curve.at_recall for line in lines(level)],
    ).without_empty("Remarks")
    alone = len(curves[0].lines) == 1
    return table.without(VARIANT.title, change, INTERVAL.title, p.title, VERDICT.title) if alone else table


def _interactions(curves: Sequence[SweepCurve]) -> Table:
    """A line a point and contender: both changes since the first point, and their ratio."""
    axis, several = curves[0].axis, len(curves[0].pairs) > 1
    variants = [line.variant for line in curves[0].lines]
    sides = (VARIANT, "Baseline %", "Variant %") if several else tuple(f"{name} %" for name in variants)

    def lines(curve: SweepCurve) -> Iterator[_Line]:
        for place, label in enumerate(curve.axis.labels[1:]):
            for number, pair in enumerate(pair for pair in curve.pairs if pair.interactions):
                one = pair.interactions[place]
                ratios = (one.baseline_value, one.contender_value)
                yield (
                    ABOVE if number else label,
                    *([pair.contender] if several else []),
                    *(
                        NOT_AVAILABLE if ratio is None else signed_percent(100 * (ratio - 1))
                        for ratio in ratios
                    ),
                    *change_cells(one),
                    p_value(one.p_adjusted),
                    _depends_cell(one),
                )

    title = f"{_title(curves)}: does the difference depend on {axis.name}? Changes since the first row"
    p = p_column(one for curve in curves for pair in curve.pairs for one in pair.interactions)
    columns = (named(axis.name), *sides, "Ratio %", INTERVAL, p, _DEPENDS)
    return _table(title, columns, curves, lines)


# Charts.


def page(analysis: Analysis, *_run: object) -> tuple[list[Chart], list[Table]]:
    """Return a chart for each curve, or of many for the strongest."""
    drawn = strongest(analysis.curves)[:_MOST_DRAWN]
    return [sweep_chart(curve, f"sweep-{number}") for number, curve in enumerate(drawn)], []


def sweep_chart(curve: SweepCurve, key: str) -> Chart:
    """Return the chart of a metric of a task by recall, or along its axis; `key` is unique on its page."""
    # Plotly takes most of a second to load, and no text needs it.
    import plotly.graph_objects as go  # noqa: PLC0415 - see above

    from benchctl.report.charts.plots import (  # noqa: PLC0415 - see above
        errors,
        plain,
        plot_layout,
        scaled_axis,
    )

    metric, axis = metric_of(curve.metric), curve.axis
    places = axis.numbers or [float(place) for place in range(len(axis.labels))]
    ends: list[float] = []
    traces: list[Any] = []
    for number, line in enumerate(curve.lines):
        style, name = variant_style(number), plain(line.variant)
        # Nothing lies between points that are no numbers: variants stand side by side there.
        aside = 0.0 if axis.numbers else 0.12 * (number - (len(curve.lines) - 1) / 2)
        reached = [None if mean is None else mean.value for mean in line.recall]
        points = zip(reached if curve.at_recall else places, line.means, axis.labels, strict=True)
        known = [
            (at + aside, mean, label) for at, mean, label in points if at is not None and mean is not None
        ]
        values = [mean.value for _, mean, _ in known]
        # Without an interval, a point is its own.
        low = [mean.value if mean.low is None else mean.low for _, mean, _ in known]
        high = [mean.value if mean.high is None else mean.high for _, mean, _ in known]
        ends += [*low, *high]
        traces.append(
            go.Scatter(
                name=name,
                mode="lines+markers" if axis.numbers else "markers",
                x=[place for place, _, _ in known],
                y=values,
                error_y=errors(
                    [value - end for value, end in zip(values, low, strict=True)],
                    [end - value for value, end in zip(values, high, strict=True)],
                    style.colour, 2, 5,
                ),
                line={"color": style.colour, "dash": style.dash, "width": 2},
                marker={"color": style.colour, "symbol": style.symbol, "size": 8},
                text=[
                    f"{name}, {plain(axis.name)} {plain(label)}: {_value(mean).text} {plain(curve.unit)}"
                    for _, mean, label in known
                ],
                hovertemplate="%{text}<extra></extra>",
            )
        )  # fmt: skip
    ticks: dict[str, Any] = {
        **(scaled_axis(places) if axis.numbers and axis.numbers[0] > 0 else {}),
        "tickmode": "array",
        "tickvals": list(places),
        "ticktext": [plain(break_name(label, _LABEL_WIDTH)).replace("\n", "<br>") for label in axis.labels],
    }
    return Chart(
        key=key,
        group=OVERVIEW,
        title=_title([curve]) + (", against recall" if curve.at_recall else ""),
        about=(
            f"Each mark is the mean over forks, with its 95% interval ({better(metric)}). Whether two "
            "variants differ at a point is in the table, not in whether these intervals overlap."
        )
        + "".join(f" {answer}" for answer in sweep_answer([curve])),
        data=traces,
        layout=plot_layout(
            "recall" if curve.at_recall else plain(axis.name),
            f"{plain(metric.title)}, {plain(curve.unit)}",
            xaxis={} if curve.at_recall else ticks,
            # What may be 0 has no place on a logarithmic axis.
            yaxis=(scaled_axis(ends) if min(ends, default=0.0) > 0 else {}) or {"rangemode": "tozero"},
        ),
    )
