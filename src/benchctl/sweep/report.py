"""Sweeps for readers: the answer in sentences, and tables of points and of growth."""

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby

from benchctl.report.layout import better, change_cells, said, verdict_cell
from benchctl.report.numbers import (
    NOT_AVAILABLE,
    counted,
    figure,
    p_value,
    signed_figure,
    signed_percent,
    with_unit,
)
from benchctl.report.sentences import goes_by_task
from benchctl.report.table import (
    ABOVE,
    INTERVAL,
    NOTES,
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
from benchctl.stats.analysis import Analysis, Bounded, PowerLaw, SweepCurve
from benchctl.stats.caveat import WITHOUT_VERDICT, Caveat
from benchctl.stats.compare import FORKS_FOR_QUOTING, Comparison
from benchctl.stats.metrics import metric_of

_TWO = 2
_WHOLE = 100
_MOST_DECIMALS = 6


def sweep_title(curve: SweepCurve) -> str:
    """Return `range-only: range, p90 service time by clients, docs 1m`."""
    where = f"{curve.challenge}: {curve.task}" if curve.challenge else curve.task
    fixed = f", {curve.axis.fixed}" if curve.axis.fixed else ""
    return f"{where}, {metric_of(curve.metric).title} by {curve.axis.name}{fixed}"


def sweep_answer(curve: SweepCurve) -> list[str]:
    """Return which variant is faster where and by how much, and how fast each grows."""
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
        if known and comparisons[0].verdict in {"faster", "slower", "different"}:
            low, high, shown = min(known), max(known), signed_figure if in_unit else signed_percent
            reach = shown(low) if low == high else f"{shown(low)} to {shown(high)}"
            size = f" ({with_unit(reach, curve.unit if in_unit else '%')})"
        stretch = f"at {labels[0]}" if len(labels) == 1 else f"from {labels[0]} to {labels[-1]}"
        parts.append(f"{word} {stretch}{size}{why and f' ({why})'}")
    return f"{', '.join(parts)}." if parts else ""


def _why_not(curve: SweepCurve, point: int, comparison: Comparison) -> str:
    """Return why there is no verdict at a point; empty where there is one."""
    if comparison.verdict not in {"n/a", "insufficient"}:
        return ""
    doubts = (*comparison.caveats, *(curve.caveats[point] if curve.caveats else ()))
    return next((doubt.text for doubt in doubts if doubt.code in WITHOUT_VERDICT), "")


def _word(comparison: Comparison) -> str:
    word = said(comparison, comparison.verdict)
    doubt = "?" if comparison.provisional else ""
    if comparison.verdict == "different":
        return f"{said(comparison, comparison.direction or '')}{doubt}, perhaps by too little to matter,"
    return {"insufficient": "without a verdict", "n/a": "without a verdict"}.get(word, f"{word}{doubt}")


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


def report(analysis: Analysis, notes: Notes | None) -> Addition | None:
    """Return what a sweep adds to a report: its curves; None for other runs."""
    if not analysis.curves:
        return None
    results: list[Section] = []
    brief: list[Sequence[Section]] = []
    for curve in analysis.curves:
        answer = sweep_answer(curve)
        points, *growth = sweep_tables(curve, notes)
        results += [[points], answer, growth]
        brief.append([[sweep_tables(curve)[0]], answer])
    compared = any(row.comparisons for row in analysis.rows)
    return Addition(
        answer=() if goes_by_task(analysis) else tuple(_counted(analysis.curves)),
        doubts=() if compared else tuple(_curve_doubts(analysis)),
        results=tuple(results),
        brief=tuple(brief),
    )


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
    for curve in curves:
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
    if curves and not found:
        yield "One variant: how its figures change along the axis."


def sweep_tables(curve: SweepCurve, notes: Notes | None = None) -> list[Table]:
    """Return all points; then growth, where there is any.

    `notes` are those that the doubts about comparisons are numbered by; without, there is no such column.
    """
    return [table for table in (_points(curve, notes), _growth(curve)) if table.lines]


def _points(curve: SweepCurve, notes: Notes | None) -> Table:
    metric = metric_of(curve.metric)
    title = f"{sweep_title(curve)}, {curve.unit} ({better(metric)}; mean, its 95% interval)"
    head = named(curve.axis.name)
    variants = [line.variant for line in curve.lines]
    in_unit = any(one.compared_as == "difference" for point in curve.comparisons for one in point)
    change = f"Diff, {curve.unit}" if in_unit else "Diff %"
    tested: tuple[Column | str, ...] = (change, INTERVAL, "p", VERDICT, NOTES)
    if len(variants) <= _TWO:
        shown = tested if curve.comparisons and len(variants) == _TWO else (worded("Remarks"), NOTES)
        columns = (head, *variants, "Forks", *shown)
        lines = [
            (
                label,
                *_values(curve, place),
                ", ".join(str(line.forks[place]) for line in curve.lines),
                *(
                    _tested(curve, place, 0, notes)
                    if shown == tested
                    else (
                        judged(None, *_remarks(curve, place, *range(len(curve.lines)))),
                        _notes(curve, place, notes),
                    )
                ),
            )
            for place, label in enumerate(curve.axis.labels)
        ]
    else:
        columns = (head, VARIANT, "Value", "Forks", *(tested if curve.comparisons else ()))
        lines = [
            line
            for place, label in enumerate(curve.axis.labels)
            for line in _stacked(curve, place, label, notes)
        ]
    table = Table.of(title, columns, lines).without_empty(NOTES.title).without_empty("Remarks")
    same = len({count for line in curve.lines for count in line.forks}) == 1
    return table.without("Forks") if same else table


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


def _stacked(
    curve: SweepCurve, place: int, label: str, notes: Notes | None
) -> Iterator[tuple[Cell | str, ...]]:
    for number, line in enumerate(curve.lines):
        tested: tuple[Cell | str, ...] = (
            "",
            "",
            "",
            judged(None, "baseline", *_remarks(curve, place, 0)),
            "",
        )
        if number:
            tested = _tested(curve, place, number - 1, notes, who=False) if curve.comparisons else ()
        yield (
            ABOVE if number else label,
            line.variant,
            _value(line.means[place]),
            str(line.forks[place]),
            *(tested if curve.comparisons else ()),
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
