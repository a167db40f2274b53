"""Sweeps for readers: the answer in sentences, and tables of points and of growth."""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from operator import attrgetter
from typing import Literal, NamedTuple

import msgspec

from benchctl.report.layout import better, change_cells, marked_word, missed, said, verdict_cell
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
from benchctl.report.sentences import SIZED, goes_by_task, listed
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
    judged,
    named,
    worded,
)
from benchctl.results.plan import HISTORY
from benchctl.stats.analysis import Analysis, AtRecall, Bounded, PowerLaw, SweepAxis, SweepCurve
from benchctl.stats.caveat import WITHOUT_VERDICT, Caveat
from benchctl.stats.compare import DECIDED, FORKS_FOR_QUOTING, UNITS, Comparison
from benchctl.stats.metrics import HELD, metric_of

_Line = tuple[Cell | str, ...]

_TWO = 2
_WHOLE = 100
_MOST_DECIMALS = 6
_NOTHING = -99.9  # percent
_MOST_TOLD = 2  # tasks in full in the first sentences, or curves of a metric on a screen
_WITHOUT = "without a verdict"
_DEPENDS = Column("Depends?", "verdict")
_WEIGHT = attrgetter("weight")
_HISTORIES = {"fresh": "on fresh nodes", "scheduled": "in {}'s schedule", "polluted": "on polluted nodes"}


def sweep_title(curve: SweepCurve) -> str:
    """Return `range-only: range, p90 service time by clients, docs 1m`."""
    where = f"{curve.challenge}: {curve.task}" if curve.challenge else curve.task
    fixed = f", {curve.axis.fixed}" if curve.axis.fixed else ""
    return f"{where}, {metric_of(curve.metric).title} by {curve.axis.name}{fixed}"


def sweep_answer(curve: SweepCurve) -> list[str]:
    """Return which variant is faster where and by how much, and how fast each grows or what depends on it."""
    if between := _answered(curve):
        return [f"{_dependence_text(curve, place)}." for place in between]
    answers = ((pair, _where(curve, place)) for place, pair in enumerate(curve.pairs))
    sentences = [
        f"{pair.contender} against {pair.baseline} by {curve.axis.name}: {answer}"
        for pair, answer in answers
        if answer
    ]
    return [*sentences, *_growth_sentences(curve)]


def _where(curve: SweepCurve, place: int) -> str:
    """Neighbouring points with the same verdict are told together."""
    points = [
        (label, comparisons[place], _why_not(curve, number, comparisons[place]))
        for number, (label, comparisons) in enumerate(
            zip(curve.axis.labels, curve.comparisons, strict=bool(curve.comparisons))
        )
    ]
    parts = []
    for (word, why), group in groupby(points, key=lambda point: (_word(point[1]), point[2])):
        labels, comparisons, _ = zip(*group, strict=True)
        in_unit = comparisons[0].compared_as == "difference"
        effects = [
            comparison.difference if in_unit else comparison.effect_percent for comparison in comparisons
        ]
        known = [effect for effect in effects if effect is not None]
        size = ""
        if known and comparisons[0].verdict in SIZED:
            low, high, shown = min(known), max(known), signed_figure if in_unit else signed_percent
            reach = shown(low) if low == high else f"{shown(low)} to {shown(high)}"
            size = f" ({with_unit(reach, curve.unit if in_unit else '%')})"
        stretch = f"at {labels[0]}" if len(labels) == 1 else f"from {labels[0]} to {labels[-1]}"
        parts.append(f"{word} {stretch}{size}{why and f' ({why})'}")
    return f"{', '.join(parts)}." if parts else ""


def _why_not(curve: SweepCurve, point: int, comparison: Comparison) -> str:
    """Return why there is no verdict at a point, without its figures; empty where there is one."""
    if comparison.verdict not in {"n/a", "insufficient"}:
        return ""
    doubts = (*comparison.caveats, *(curve.caveats[point] if curve.caveats else ()))
    return next((doubt.text for doubt in doubts if doubt.code in WITHOUT_VERDICT), "").partition(":")[0]


def _word(comparison: Comparison) -> str:
    word = said(comparison, comparison.verdict)
    doubt = "?" if comparison.provisional else ""
    if comparison.verdict == "different":
        return f"{said(comparison, comparison.direction or '')}{doubt}, perhaps by too little to matter,"
    return _WITHOUT if word in {"insufficient", "n/a"} else f"{word}{doubt}"


def _doubt(curve: SweepCurve, law: PowerLaw, *lines: int) -> str:
    """`?` behind what is provisional: of few blocks, or of points that something weakens."""
    weak = law.blocks < FORKS_FOR_QUOTING or any(
        _remarks(curve, place, *lines) for place in range(len(curve.axis.labels))
    )
    return "?" if weak else ""


def _growth_sentences(curve: SweepCurve) -> Iterator[str]:
    fitted = [
        (line.variant, line.growth, _doubt(curve, line.growth, place))
        for place, line in enumerate(curve.lines)
    ]
    known = [f"{name} {_bounded(law.exponent)}" for name, law, _ in fitted if law.exponent is not None]
    known += [
        f"{pair.contender} against {pair.baseline} {_bounded(pair.growth.exponent, signed=True)}"
        for pair in curve.pairs
        if pair.growth.exponent is not None
    ]
    if known:
        doubt = "?" if any(doubt for _, law, doubt in fitted if law.exponent is not None) else ""
        yield f"Growth exponent{doubt} in {curve.axis.name}: {', '.join(known)}."
    lacking = dict.fromkeys(law.reason for _, law, _ in fitted if law.exponent is None and curve.axis.numbers)
    for reason in lacking:
        names = [name for name, law, _ in fitted if law.exponent is None and law.reason == reason]
        yield f"No growth exponent of {', '.join(names)}: {reason}."
    for name, law, doubt in fitted:
        if law.misfit:
            (first, after, low), (before, last, high) = law.steps[0], law.steps[-1]
            yield (
                f"{name} is not a power law{doubt} (p {p_value(law.misfit_p)}): its exponent {law.misfit}, "
                f"{_bounded(low)} from {first} to {after}, {_bounded(high)} from {before} to {last}."
            )


def _bounded(found: Bounded, *, signed: bool = False) -> str:
    value, reach = _exponent(found, signed=signed)
    return f"{value} ({'no interval' if reach == NOT_AVAILABLE else reach})"


def _exponent(found: Bounded, *, signed: bool = False) -> tuple[str, str]:
    """An exponent and its interval, in decimals that tell its ends apart; a rounded zero has no sign."""
    ends = [end for end in (found.low, found.high) if end is not None]
    width = max(ends) - min(ends) if ends else 1.0
    decimals = min(max(2, -math.floor(math.log10(width))), _MOST_DECIMALS) if width > 0 else 2

    def text(value: float) -> str:
        rounded = round(value, decimals)
        return (
            f"{rounded:{'+' if signed and rounded else ''}.{decimals}f}" if rounded else f"{0:.{decimals}f}"
        )

    return text(found.value), f"{text(ends[0])} to {text(ends[1])}" if len(ends) == _TWO else NOT_AVAILABLE


# Points without numbers: what depends on them.


def _answered(curve: SweepCurve) -> range:
    """Numbers of the pairs that have interactions, or 0 for the changes of a single variant."""
    return range(len(curve.pairs) or 1) if _against_first(curve, 0) else range(0)


def _against_first(curve: SweepCurve, number: int) -> tuple[Comparison, ...]:
    """Comparisons with the first point: interactions of a pair, or changes of a single variant."""
    return curve.pairs[number].interactions if curve.pairs else curve.lines[0].changes


def _at_points(curve: SweepCurve, number: int) -> list[tuple[str, Comparison]]:
    """Labels with what is compared there: a pair, or a single variant with its first point."""
    if not curve.pairs:
        return list(zip(curve.axis.labels[1:], curve.lines[0].changes, strict=True))
    return [
        (label, point[number]) for label, point in zip(curve.axis.labels, curve.comparisons, strict=False)
    ]


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
        return ("n/a", "no", "?", "yes").index(self.word), firm, _size(self.decisive)


def _answer(one: Comparison) -> Literal["yes", "?", "no", "n/a"]:
    undecided: Literal["?", "n/a"] = "?" if one.verdict == "inconclusive" else "n/a"
    return "yes" if one.verdict in SIZED else "no" if one.verdict == "equivalent" else undecided


def _size(comparison: Comparison) -> float:
    return abs(math.log1p(max(comparison.effect_percent or 0.0, _NOTHING) / 100))


def _what(axis: SweepAxis) -> str:
    return "what ran before" if axis.name == HISTORY else axis.name


def _at(curve: SweepCurve, label: str) -> str:
    if curve.axis.name != HISTORY:
        return f"at {label}"
    return _HISTORIES[label].format(curve.challenge) if label in _HISTORIES else label


def _dependence_text(curve: SweepCurve, number: int) -> str:
    """`range: equal on fresh nodes; os is 21% slower after x: the difference depends on ... (p <0.001)`."""
    word, _, _, decisive = _Dependence.of(curve, number)
    what = f"on {_what(curve.axis)}"
    who = "the difference" if curve.pairs else f"the result of {curve.lines[0].variant}"
    manner = ", provisionally" if decisive.provisional else ""
    match word:
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
    return f"{_task(curve)}: {_points_text(curve, number)}{end}"


def _task(curve: SweepCurve) -> str:
    metric = metric_of(curve.metric)
    fixed = f", {curve.axis.fixed}" if curve.axis.fixed else ""
    return f"{curve.task}{fixed}" + ("" if metric.kind.counts else f", {metric.title}")


def _points_text(curve: SweepCurve, number: int) -> str:
    """`equal on fresh nodes; os is 21% slower after x: `; points that read the same are together."""
    who = curve.pairs[number].contender if curve.pairs else curve.lines[0].variant
    than = "" if curve.pairs else f" than {_at(curve, curve.axis.labels[0])}"
    places: dict[str, list[str]] = {}
    for label, comparison in _at_points(curve, number):
        places.setdefault(_change_text(comparison, who, curve.unit), []).append(_at(curve, label))
    parts = [
        f"{text} {listed(labels)}{than if text.startswith(f'{who} ') else ''}"
        for text, labels in places.items()
    ]
    return f"{'; '.join(parts)}: " if parts else ""


def _change_text(comparison: Comparison, who: str, unit: str) -> str:
    """`os is 21% slower`, `equal`."""
    doubt = "?" if comparison.provisional else ""
    direction = comparison.direction
    if comparison.verdict not in SIZED or direction is None:
        return _word(comparison)
    size = f"{rough(abs(comparison.effect_percent or 0.0))}%"
    if comparison.compared_as == "difference":
        size = with_unit(figure(abs(comparison.difference or 0.0)), unit)
    little = ", perhaps by too little to matter," if comparison.verdict == "different" else ""
    verb = "has" if comparison.metric in HELD else "is"
    return f"{who} {verb} {size} {said(comparison, direction)}{doubt}{little}"


def recall_sentences(curves: Sequence[SweepCurve]) -> Iterator[str]:
    """Yield how variants compare at equal recall: of the first tasks in full, then counted over all."""
    tasks: dict[tuple[str, str, str], list[SweepCurve]] = {}
    for curve in _primary(curves):
        if curve.at_recall and curve.pairs:
            tasks.setdefault((curve.challenge, curve.task, curve.axis.fixed), []).append(curve)
    # What is offered, such as the throughput of throttled tasks, has no verdict.
    told = [min(own, key=lambda curve: _undecided(curve.at_recall, 0)) for own in tasks.values()]
    for curve in told[:_MOST_TOLD]:
        yield from (_recall_text(curve, number) for number in range(len(curve.pairs)))
    for number, pair in enumerate(told[0].pairs if len(told) > _MOST_TOLD else ()):
        words = Counter(_word(level.comparisons[number]) for curve in told for level in curve.at_recall)
        listing = ", ".join(f"{word} at {count}" for word, count in words.most_common())
        yield f"{pair.contender} against {pair.baseline} at equal recall of {len(told)} tasks: {listing}."


def _undecided(levels: Sequence[AtRecall], number: int) -> bool:
    return not any(level.comparisons[number].verdict in DECIDED for level in levels)


def _recall_text(curve: SweepCurve, number: int) -> str:
    """`knn: at recall 0.95, os is 21% slower than es (95% interval -25.1 to -17.2%); at 0.9 equal.`."""
    # The middle one first, unless others have a verdict and it has none.
    middle = len(curve.at_recall) // 2
    order = [*curve.at_recall[middle:], *curve.at_recall[middle - 1 :: -1]]
    main, *others = sorted(order, key=lambda level: _undecided([level], number))
    text, one = _level_text(curve, main, number), main.comparisons[number]
    if one.verdict in SIZED:
        unit = curve.unit if one.compared_as == "difference" else "%"
        reach = with_unit(change_cells(one)[1].words_text, unit)
        text += f" than {one.baseline} (95% interval {reach})"
    further = (f"; at {level.recall:g} {_level_text(curve, level, number).rstrip(',')}" for level in others)
    return f"{_task(curve)}: at recall {main.recall:g}, {text}{''.join(further)}."


def _level_text(curve: SweepCurve, level: AtRecall, number: int) -> str:
    text = _change_text(level.comparisons[number], curve.pairs[number].contender, curve.unit)
    lines = (line for line in (level.lines[0], level.lines[1 + number]) if line.reason)
    why = ", ".join(f"{line.variant} {line.reason}" for line in lines)
    return f"{text} ({why})" if why and text == _WITHOUT else text


def dependence_sentences(curves: Sequence[SweepCurve]) -> Iterator[str]:
    """Yield on which tasks differences depend on the point, the strongest in full, others counted."""
    subjects: dict[tuple[str, str], dict[tuple[str, ...], list[_Dependence]]] = {}
    for curve in _primary(curves):
        for number in _answered(curve):
            pair = curve.pairs[number] if curve.pairs else None
            of = f"difference between {pair.contender} and {pair.baseline}" if pair else ""
            who = f"the {of or f'result of {curve.lines[0].variant}'}"
            tasks = subjects.setdefault((who, _what(curve.axis)), {})
            own = tasks.setdefault((curve.challenge, curve.task, curve.axis.fixed), [])
            own.append(_Dependence.of(curve, number))
    for (who, what), tasks in subjects.items():
        first, *others = found = sorted(
            (max(own, key=_WEIGHT) for own in tasks.values()), key=_WEIGHT, reverse=True
        )
        if first.word == "n/a" and (others or first.curve.axis.derived):
            # Nobody asked for derived histories; tables have them all the same.
            if not first.curve.axis.derived:
                yield f"No verdict on whether {who} depends on {what}, on any of {len(found)} tasks."
            continue
        if first.word == "yes" or not others:
            yield f"{_dependence_text(first.curve, first.number)}."
        if others:
            yield f"Of {len(found)} tasks, {who} depends on {what} on {_dependence_counts(found)}."


def strongest(curves: Sequence[SweepCurve]) -> list[SweepCurve]:
    """Return curves of the usual metrics, those first whose first contender depends most on the point.

    Without those that get no verdict where others do.
    """
    curves = _primary(curves)
    curves = [curve for curve in curves if _has_verdict([curve])] or curves
    having = [curve for curve in curves if _answered(curve)]
    having.sort(key=lambda curve: _Dependence.of(curve, 0).weight, reverse=True)
    return [*having, *(curve for curve in curves if curve not in having)]


def _dependence_counts(found: Sequence[_Dependence]) -> str:
    """`3 (a, b and c; 1 provisionally), does not on 20, undecided on 14`."""
    counts: Counter[str] = Counter(one.word for one in found)
    depending = [one for one in found if one.word == "yes"]
    doubtful = sum(one.decisive.provisional for one in depending)
    names = listed([one.curve.task for one in depending]) if len(depending) > 1 else ""
    inside = "; ".join(filter(None, [names, f"{doubtful} provisionally" if doubtful else ""]))
    parts = [f"{counts['yes'] or 'none'}{f' ({inside})' if inside else ''}"]
    for word, text in (("no", "does not on"), ("?", "undecided on"), ("n/a", "without a verdict on")):
        parts += [f"{text} {counts[word]}"] if counts[word] else []
    return ", ".join(parts)


def _primary(curves: Sequence[SweepCurve]) -> list[SweepCurve]:
    """Curves of the usual metrics, if there are any."""
    usual = [curve for curve in curves if metric_of(curve.metric).kind.usual]
    return usual or list(curves)


def _alike(curves: Sequence[SweepCurve]) -> list[list[SweepCurve]]:
    """Curves of one table: those without numbers by metric, others alone."""
    groups: dict[object, list[SweepCurve]] = {}
    for number, curve in enumerate(curves):
        axis = curve.axis
        key = (curve.challenge, curve.metric, curve.unit, axis.name, axis.fixed, axis.derived or axis.labels)
        groups.setdefault(number if axis.numbers else key, []).append(curve)
    return list(groups.values())


def report(analysis: Analysis, notes: Notes | None) -> Addition | None:
    """Return what a sweep adds to a report: its curves; None for other runs."""
    if not analysis.curves:
        return None
    results: list[Section] = []
    brief: list[tuple[bool, Sequence[Section]]] = []
    for curves in _alike(analysis.curves):
        points, *further = sweep_tables(curves, notes)
        answer = sweep_answer(curves[0]) if len(curves) == 1 else []
        results += [[points], answer, *([table] for table in further)]
        if not curves[0].axis.derived:
            brief += [(_has_verdict(curves), part) for part in _brief(curves, analysis)]
    compared = any(row.comparisons for row in analysis.rows)
    swept = [curve for curve in analysis.curves if not curve.axis.derived]
    return Addition(
        answer=(
            *recall_sentences(analysis.curves),
            *dependence_sentences(analysis.curves),
            *(() if not swept or goes_by_task(analysis) or _is_told(swept) else _counted(swept)),
        ),
        doubts=() if compared else tuple(_curve_doubts(analysis)),
        results=tuple(results),
        # Metrics that never get a verdict, such as the throughput of throttled tasks, come last.
        brief=tuple(part for decides in (True, False) for has, part in brief if has is decides),
    )


def _has_verdict(curves: Sequence[SweepCurve]) -> bool:
    """Return whether there is a verdict anywhere on curves, or nothing is compared."""
    compared = [one for curve in curves for point in curve.comparisons for one in point]
    compared = compared or [one for curve in curves for line in curve.lines for one in line.changes]
    return not compared or any(_word(one) != _WITHOUT for one in compared)


def _is_told(curves: Sequence[SweepCurve]) -> bool:
    """Return whether the sentence about the only task has all of its points."""
    tasks = {(curve.challenge, curve.task, curve.axis.fixed) for curve in curves}
    return len(tasks) == len(_answered(curves[0])) == 1


def _brief(curves: Sequence[SweepCurve], analysis: Analysis) -> Iterator[Sequence[Section]]:
    """Yield parts for a screen: a curve in full, of many without numbers a line a task."""
    if (at_recall := _at_recall(curves[0])).lines:
        yield [[at_recall, ""]]
    if len(curves) <= _MOST_TOLD or not _answered(curves[0]):
        for curve in curves:
            points = sweep_tables([curve])[0]
            yield [[points, ""]] if _answered(curve) else [[points], sweep_answer(curve)]
    elif curves[0] in _primary(analysis.curves):
        for number in _answered(curves[0]):
            yield [[_dependence_lines(curves, number), ""]]


def _dependence_lines(curves: Sequence[SweepCurve], number: int) -> Table:
    """The verdict at every point, and whether it depends on the point; what is decided comes first."""
    found = sorted((_Dependence.of(curve, number) for curve in curves), key=_WEIGHT, reverse=True)
    found.sort(key=lambda one: ("yes", "no", "?", "n/a").index(one.word))
    axis, pairs = curves[0].axis, curves[0].pairs
    against = f" against {pairs[number].baseline}" if pairs else f" against {axis.labels[0]}"
    who = pairs[number].contender if pairs else curves[0].lines[0].variant
    labels = [label for label, _ in _at_points(curves[0], number)]
    columns = (OPERATION, *(Column(label, "verdict") for label in labels), _DEPENDS)
    lines = [
        (
            one.curve.task,
            *(_brief_cell(comparison) for _, comparison in _at_points(one.curve, number)),
            _depends_cell(one.decisive),
        )
        for one in found
    ]
    fixed = axis.fixed and f", {axis.fixed}"
    title = f"{metric_of(curves[0].metric).title}: {who}{against} by {axis.name}{fixed}"
    return Table.of(title, columns, lines)


def _brief_cell(comparison: Comparison) -> Cell:
    """`slower? +21%`; undecided or without a verdict, `? +21%`."""
    change, _ = change_cells(comparison)
    if comparison.verdict == "equivalent" or change == NOT_AVAILABLE:
        return judged(comparison.verdict, change if change == NOT_AVAILABLE else marked_word(comparison))
    word = marked_word(comparison) if comparison.verdict in SIZED else "?"
    return judged(comparison.verdict, f"{word} {change}{'%' * (comparison.compared_as == 'ratio')}")


def _depends_cell(interaction: Comparison) -> Cell:
    word = _answer(interaction)
    doubt = "?" if interaction.provisional else ""
    little = " (little)" if interaction.verdict == "different" else ""
    shown = f"{word}{doubt}{little}{missed(interaction)}"
    return judged("different" if word == "yes" else interaction.verdict, shown)


def _curve_doubts(analysis: Analysis) -> Iterator[str]:
    """Yield why the curves of one variant are provisional."""
    lines = [line for curve in analysis.curves for line in curve.lines]
    remarks = dict.fromkeys(remark for line in lines for point in line.remarks for remark in point)
    yield from (f"{remark} at some points" for remark in remarks)
    if lines and min(min(line.forks) for line in lines) < FORKS_FOR_QUOTING:
        yield f"fewer than {FORKS_FOR_QUOTING} forks at a point"


def _counted(curves: Sequence[SweepCurve]) -> Iterator[str]:
    """`os against es: throughput slower at 3 of 4 points, inconclusive at 1; ...`, contender by contender."""
    found: dict[tuple[str, str], dict[str, Counter[str]]] = {}
    for curve in [curve for curve in curves if _has_verdict([curve])] or curves:
        for place, pair in enumerate(curve.pairs):
            words = (_word(point[place]) for point in curve.comparisons)
            by_metric = found.setdefault((pair.contender, pair.baseline), {})
            by_metric.setdefault(metric_of(curve.metric).title, Counter()).update(words)
    for (contender, baseline), by_metric in found.items():
        parts = []
        for title, counts in by_metric.items():
            (first, most), *rest = counts.most_common()
            others = "".join(f", {word} at {count}" for word, count in rest)
            parts.append(f"{title} {first} at {most} of {counted(counts.total(), 'point')}{others}")
        yield f"{contender} against {baseline}: {'; '.join(parts)}."
    if curves and not found and not any(line.changes for curve in curves for line in curve.lines):
        yield "One variant: how its figures change along the axis."


def sweep_tables(curves: Sequence[SweepCurve], notes: Notes | None = None) -> list[Table]:
    """Return all points, then equal recall and growth, or what depends on the point, where there is any.

    `curves` are alike in metric and axis, and only one where that has numbers. `notes` are those that the
    doubts about comparisons are numbered by; without, there is no such column.
    """
    alone = (_at_recall(curves[0]), _growth(curves[0]))
    tables = (_points(curves, notes), *alone, _interactions(curves), _changes(curves))
    return [table for table in tables if table.lines]


def _table_title(curves: Sequence[SweepCurve]) -> str:
    """Return the title of a curve, or of several with their number."""
    if len(curves) == 1:
        return sweep_title(curves[0])
    return sweep_title(msgspec.structs.replace(curves[0], task=counted(len(curves), "task")))


def _headed(curves: Sequence[SweepCurve], lines_of: Callable[[SweepCurve], Iterable[_Line]]) -> list[_Line]:
    """The lines of curves; those of several have their task in front."""
    if len(curves) == 1:
        return list(lines_of(curves[0]))
    return [
        (ABOVE if number else curve.task, *line)
        for curve in curves
        for number, line in enumerate(lines_of(curve))
    ]


def _points(curves: Sequence[SweepCurve], notes: Notes | None) -> Table:
    metric = metric_of(curves[0].metric)
    title = f"{_table_title(curves)}, {curves[0].unit} ({better(metric)}; mean, its 95% interval)"
    head = (*([OPERATION] if len(curves) > 1 else []), named(curves[0].axis.name))
    variants = [line.variant for line in curves[0].lines]
    in_unit = any(
        one.compared_as == "difference" for curve in curves for point in curve.comparisons for one in point
    )
    change = f"Diff, {curves[0].unit}" if in_unit else "Diff %"
    tested: tuple[Column | str, ...] = (change, INTERVAL, "p", VERDICT, NOTES)
    columns: tuple[Column | str, ...]
    if len(variants) <= _TWO:
        is_tested = bool(curves[0].comparisons) and len(variants) == _TWO
        columns = (*head, *variants, "Forks", *(tested if is_tested else (worded("Remarks"), NOTES)))
        lines = _headed(curves, lambda curve: _side_by_side(curve, notes, is_tested=is_tested))
    else:
        columns = (*head, VARIANT, "Value", "Forks", *(tested if curves[0].comparisons else ()))
        lines = _headed(curves, lambda curve: _stacked(curve, notes))
    table = Table.of(title, columns, lines).without_empty(NOTES.title).without_empty("Remarks")
    same = len({count for curve in curves for line in curve.lines for count in line.forks}) == 1
    return table.without("Forks") if same else table


def _side_by_side(curve: SweepCurve, notes: Notes | None, *, is_tested: bool) -> Iterator[_Line]:
    for place, label in enumerate(curve.axis.labels):
        remarks = judged(None, *_remarks(curve, place, *range(len(curve.lines))))
        yield (
            label,
            *_values(curve, place),
            ", ".join(str(line.forks[place]) for line in curve.lines),
            *(_tested(curve, place, 0, notes) if is_tested else (remarks, _notes(curve, place, notes))),
        )


def _values(curve: SweepCurve, place: int) -> list[Cell]:
    return [_value(line.means[place]) for line in curve.lines]


def _value(mean: Bounded | None) -> Cell:
    if mean is None:
        return Cell((NOT_AVAILABLE,))
    if mean.high is None:
        return Cell((figure(mean.value),), aside="one fork")
    if not mean.value:
        return Cell(("0",))
    return Cell((figure(mean.value),), aside=f"{_end(mean.low)}..{_end(mean.high)}")


def _end(value: float | None) -> str:
    """The end of an interval: three digits, as many as are known of it."""
    rounded = float(f"{value or 0.0:.3g}")
    return f"{rounded:,.0f}" if not rounded or abs(rounded) >= _WHOLE else f"{rounded:#.3g}"


def _remarks(curve: SweepCurve, place: int, *lines: int) -> tuple[str, ...]:
    """Return what must be said beside these lines at a point."""
    said_of = [curve.lines[line].remarks for line in lines]
    return tuple(dict.fromkeys(remark for told in said_of if told for remark in told[place]))


def _notes(curve: SweepCurve, place: int, notes: Notes | None, *further: Caveat) -> Cell | str:
    doubts = (*(curve.caveats[place] if curve.caveats else ()), *further)
    return "" if notes is None else notes.cell(doubts)


def _tested(
    curve: SweepCurve, place: int, contender: int, notes: Notes | None, *, who: bool = True
) -> tuple[Cell | str, ...]:
    one = curve.comparisons[place][contender]
    remark = ", ".join(_remarks(curve, place, 0, 1 + contender))
    return (
        *change_cells(one),
        p_value(one.p_adjusted),
        verdict_cell(one, who=curve.lines[1 + contender].variant if who else "", remark=remark),
        _notes(curve, place, notes, *one.caveats),
    )


def _stacked(curve: SweepCurve, notes: Notes | None) -> Iterator[_Line]:
    for place, label in enumerate(curve.axis.labels):
        for number, line in enumerate(curve.lines):
            tested: _Line = ("", "", "", judged(None, "baseline", *_remarks(curve, place, 0)), "")
            if number:
                tested = _tested(curve, place, number - 1, notes, who=False) if curve.comparisons else ()
            yield (
                ABOVE if number else label,
                line.variant,
                _value(line.means[place]),
                str(line.forks[place]),
                *(tested if curve.comparisons else ()),
            )


def _at_recall(curve: SweepCurve) -> Table:
    """A line a recall and variant: its value, the points that it lies between, and the comparison."""
    in_unit = any(one.compared_as == "difference" for level in curve.at_recall for one in level.comparisons)
    change = f"Diff, {curve.unit}" if in_unit else "Diff %"
    columns = (
        named("Recall"), VARIANT, "Value", "Between", change, INTERVAL, "p", VERDICT, worded("Remarks"),
    )  # fmt: skip

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
                Cell((f"{line.between[0]} to", line.between[-1])) if line.between[1:] else Cell(line.between),
                *tested,
                ", ".join(filter(None, (some, line.reason))),
            )

    title = f"{sweep_title(curve)}, at equal recall, {curve.unit} (mean, its 95% interval)"
    found = [line for level in curve.at_recall for line in lines(level)]
    table = Table.of(title, columns, found).without_empty("Remarks")
    return table if len(curve.lines) > 1 else table.without("Variant", change, "95% interval", "p", "Verdict")


def _interactions(curves: Sequence[SweepCurve]) -> Table:
    """A line a point and contender: both changes since the first point, and their ratio."""
    axis, several = curves[0].axis, len(curves[0].pairs) > 1
    variants = [line.variant for line in curves[0].lines]
    sides = (VARIANT, "Baseline %", "Variant %") if several else tuple(f"{name} %" for name in variants)
    head = [OPERATION] if len(curves) > 1 else []
    columns: tuple[Column | str, ...] = (
        *head, named(axis.name), *sides, "Ratio %", INTERVAL, "p", _DEPENDS,
    )  # fmt: skip

    def lines(curve: SweepCurve) -> Iterator[_Line]:
        for place, label in enumerate(curve.axis.labels[1:]):
            for number, pair in enumerate(pair for pair in curve.pairs if pair.interactions):
                one = pair.interactions[place]
                yield (
                    ABOVE if number else label,
                    *([pair.contender] if several else []),
                    *(_since(value) for value in (one.baseline_value, one.contender_value)),
                    *change_cells(one),
                    p_value(one.p_adjusted),
                    _depends_cell(one),
                )

    title = (
        f"{_table_title(curves)}: does the difference depend on {_what(axis)}? Changes since the first row"
    )
    return Table.of(title, columns, _headed(curves, lines))


def _since(ratio: float | None) -> str:
    return NOT_AVAILABLE if ratio is None else signed_percent(100 * (ratio - 1))


def _changes(curves: Sequence[SweepCurve]) -> Table:
    """A line a point and variant, against its first."""
    axis = curves[0].axis
    head = [OPERATION] if len(curves) > 1 else []
    in_unit = any(
        one.compared_as == "difference" for curve in curves for line in curve.lines for one in line.changes
    )
    change = f"Diff, {curves[0].unit}" if in_unit else "Diff %"

    def lines(curve: SweepCurve) -> Iterator[_Line]:
        for line in curve.lines:
            for number, one in enumerate(line.changes):
                yield (
                    ABOVE if number else line.variant,
                    one.contender,
                    *change_cells(one),
                    p_value(one.p_adjusted),
                    verdict_cell(one),
                )

    columns: tuple[Column | str, ...] = (*head, VARIANT, named(axis.name), change, INTERVAL, "p", VERDICT)
    return Table.of(
        f"{_table_title(curves)}: each variant against its first row", columns, _headed(curves, lines)
    )


def _growth(curve: SweepCurve) -> Table:
    axis = curve.axis.name
    fitted = [
        (line.variant, line.growth, _doubt(curve, line.growth, place), False)
        for place, line in enumerate(curve.lines)
    ]
    fitted += [
        (f"{pair.contender} - {pair.baseline}", pair.growth, _doubt(curve, pair.growth, 0, place), True)
        for place, pair in enumerate(curve.pairs, 1)
    ]
    columns = (VARIANT, named(axis), "Exponent", INTERVAL, worded("Constant exponent?"))
    lines = [
        line
        for name, law, doubt, signed in fitted
        if law.steps
        for line in _law_lines(name, law, doubt, signed=signed)
    ]
    return Table.of(f"{sweep_title(curve)}: growth, b of {axis}^b", columns, lines)


def _law_lines(name: str, law: PowerLaw, doubt: str, *, signed: bool) -> Iterator[tuple[Cell | str, ...]]:
    if law.exponent is not None:
        yield (
            name,
            f"{law.steps[0][0]} to {law.steps[-1][1]}",
            *_exponent(law.exponent, signed=signed),
            _fit_text(law, doubt),
        )
    if len(law.steps) > 1 and not signed:
        for low, high, step in law.steps:
            yield ABOVE, f"{low} to {high}", *_exponent(step, signed=signed), ""


def _fit_text(law: PowerLaw, doubt: str) -> str:
    remarks = [law.reason]
    if law.misfit:
        remarks.append(f"no{doubt}, it {law.misfit} (p {p_value(law.misfit_p)})")
    elif law.misfit_p is not None:
        remarks.append(f"not refuted (p {p_value(law.misfit_p)})")
    return "; ".join(filter(None, (*remarks, _left_out(law))))


def _left_out(law: PowerLaw) -> str:
    blocks = f"{counted(law.left_out, 'block')} without all points excluded" if law.left_out else ""
    points = f"without {', '.join(law.without)}, which most blocks lack" if law.without else ""
    return "; ".join(filter(None, (blocks, points)))
