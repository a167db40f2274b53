"""An analysis in tables, numbered notes, and a sentence or two that may be quoted."""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product
from typing import NamedTuple, get_args

import msgspec

from benchctl.quantities import COUNT
from benchctl.report.numbers import (
    NOT_AVAILABLE,
    counted,
    figure,
    interval,
    p_value,
    percent,
    signed_figure,
    signed_percent,
)
from benchctl.report.table import (
    ABOVE,
    INTERVAL,
    NOTES,
    OPERATION,
    VARIANT,
    VERDICT,
    Cell,
    Column,
    Table,
    bounds,
    judged,
    worded,
)
from benchctl.results.model import FORKS_FOR_VERDICT
from benchctl.stats.analysis import Analysis, Figures, Row, Section, quotable, weaknesses
from benchctl.stats.caveat import Caveat, CaveatCode
from benchctl.stats.compare import (
    DECIDED,
    FORKS_FOR_QUOTING,
    HELD_WORDS,
    UNITS,
    VERDICT_WORDS,
    Comparison,
    Verdict,
)
from benchctl.stats.metrics import HELD, INDEX_BUILDS, Metric, metric_of
from benchctl.stats.outlook import VerdictCost, estimate_of, rule_of
from benchctl.stats.steady import Trend


class Notes(msgspec.Struct, frozen=True):
    """Notes below the tables: `numbered` ones about some rows, from 1, and `general` ones about every row."""

    numbered: tuple[Caveat, ...]
    general: tuple[Caveat, ...]

    def cell(self, caveats: Sequence[Caveat], *remarks: str) -> Cell:
        """Return remarks and the numbers of a row's notes, as a cell."""
        return Cell(
            (" ".join(remarks),),
            notes=tuple(number for number, doubt in enumerate(self.numbered, 1) if doubt in caveats),
        )


def collect_notes(analysis: Analysis) -> Notes:
    """Number the caveats in the order in which a reader meets them; those of every row get no number."""
    rows = analysis.rows
    common = set.intersection(*(set(row.caveats) for row in rows)) if len(rows) > 1 else set()
    shared = [doubt for doubt in rows[0].caveats if doubt in common] if common else []
    met = dict.fromkeys(
        doubt for row in (*rows, *analysis.beside) for doubt in row.caveats if doubt not in shared
    )
    return Notes(tuple(met), (*shared, *analysis.caveats))


_TWO = 2


class Command(msgspec.Struct, frozen=True):
    """A command line, and what it is for."""

    purpose: str
    line: str


def result_grids(analysis: Analysis, notes: Notes) -> list[Table]:
    """Return a grid per challenge and metric, in the order of the challenges, then one of index builds."""
    tasks = (*analysis.task_rows, *analysis.beside)
    grids = [
        _result_grid(
            analysis,
            f"{section_title(section)}: {metric_title(rows[0])}, {rows[0].unit} ({better(rows[0])})",
            rows,
            notes,
        )
        for section in analysis.sections
        for metric in dict.fromkeys(row.metric for row in tasks)
        for rows in _by_unit(
            [
                row
                for row in tasks
                if row.schedule == section.schedule and row.metric == metric and not row.swept
            ]
        )
    ]
    if analysis.build_rows:
        title = f"Index builds: {_each(analysis, analysis.builds, 'build')}"
        grids.append(_result_grid(analysis, title, analysis.build_rows, notes))
    return grids


def precision_grid(analysis: Analysis) -> Table | None:
    """Return what the run could detect, and the forks and minutes to detect a smaller difference.

    None if that says nothing: for one variant, or with one fork of each.
    """
    pairs = [(row, one) for row in analysis.rows for one in row.comparisons]
    if not any(one.mde_percent is not None for _, one in pairs):
        return None
    costs = {(one.schedule, one.task, one.metric, one.contender): one for one in analysis.costs}
    lines = []
    for row, one in pairs:
        cost = costs.get((row.schedule, row.task, row.metric, one.contender))
        lines.append(
            (
                analysis.where(row),
                metric_title(row),
                one.contender,
                f"{_tenths(one.cv_baseline_percent)}, {_tenths(one.cv_contender_percent)}",
                _tenths(one.mde_percent),
                NOT_AVAILABLE if cost is None else cost.forks.text,
                NOT_AVAILABLE if cost is None or cost.minutes is None else _tenths(cost.minutes),
                _to_go(cost),
                _shrunk(one),
            )
        )
    columns = (
        OPERATION, worded("Metric"), VARIANT, "CV %", "MDE %", "Forks", "Minutes", "To go", "Shrunk %",
    )  # fmt: skip
    title = (
        f"Precision: CV of {baseline_of(analysis.rows)} and of the variant; minimum detectable effect "
        "(MDE, 80 % power)"
    )
    if analysis.costs:
        title += f"; forks a side that find {analysis.costs[0].effect_percent:g} %, and their minutes"
    if any(one.further for one in analysis.costs):
        title += "; minutes to go until open rows have a verdict: the middle, and a range that holds 80 %"
    if any(_shrunk(one) for _, one in pairs):
        title += "; what a verdict that ended the run says of the size, drawn towards 0 by the test's prior"
    grid = Table.of(title, columns, lines).without_empty("To go", "Shrunk %")
    grid = grid if analysis.costs else grid.without("Forks", "Minutes")
    return grid if len(analysis.variants) > _TWO else grid.without("Variant")


def _to_go(cost: VerdictCost | None) -> str:
    if cost is None or cost.further is None:
        return ""
    if not cost.further.within_reach:
        return "far"
    middle, low, high = ("far" if minutes is None else _tenths(minutes) for minutes in cost.further_minutes)
    return middle if low == high else f"{middle} ({low} to {high})"


def _shrunk(comparison: Comparison) -> str:
    """Return the effect of a verdict that ended a run, whose estimate lies too far from 0 on average."""
    found = estimate_of(comparison)
    if found is None or not comparison.sequential or comparison.verdict not in DECIDED:
        return ""
    return signed_percent(100 * math.expm1(found.shrunk(rule_of(comparison))))


def section_title(section: Section) -> str:
    """Return a challenge, with what its node had run before: `range-only after warmup`."""
    before = f" after {', '.join(section.preceded_by)}" if section.preceded_by else ""
    return f"{section.challenge}{before}"


def paired_points(analysis: Analysis) -> bool:
    """Return whether variants are compared at every point of a sweep, and not points of one variant."""
    return any(curve.pairs for curve in analysis.curves)


def baseline_of(rows: Iterable[Row]) -> str:
    """Return what variants are compared with: points of a sweep have their own."""
    found = {one.baseline for row in rows for one in row.comparisons}
    return found.pop() if len(found) == 1 else "the first"


def better(metric: Metric | Row) -> str:
    """Return `higher is better`, or `lower is better`."""
    return f"{'higher' if metric.higher_is_better else 'lower'} is better"


def verdict_cell(
    comparison: Comparison,
    sides: Sequence[Figures] = (),
    caveats: Sequence[Caveat] = (),
    *,
    who: str = "",
    remark: str = "",
) -> Cell:
    """Return a verdict with what it cannot hide: warm-up, load that was not as requested, failed requests.

    `different` says in which direction: `different (faster)`. `who` is the contender if the line does not
    name it: `os faster`, `different (os faster)`; `remark` is one more weakness.
    """
    word = _marked_word(comparison, who)
    said_instead = comparison.verdict == "n/a" and any(side.load for side in sides)
    remarks = [*([] if said_instead else [word]), *weaknesses(sides, caveats), *filter(None, [remark])]
    return judged(comparison.verdict, *remarks)


def _marked_word(comparison: Comparison, who: str) -> str:
    return f"{_verdict_word(comparison, who)}{'?' if comparison.provisional else ''}"


def _verdict_word(comparison: Comparison, who: str) -> str:
    lead = f"{who} " if who else ""
    match comparison.verdict:
        case "different":
            return f"different ({lead}{said(comparison, comparison.direction or '')})"
        case "faster" | "slower":
            return f"{lead}{said(comparison, comparison.verdict)}"
        case "insufficient" if min(comparison.replicates) < FORKS_FOR_VERDICT:
            return f"too few {comparison.replicate}s"
        case _:
            return said(comparison, comparison.verdict)


def said(comparison: Comparison, verdict: str) -> str:
    """Return a verdict, or a direction, in the words for its metric."""
    return (HELD_WORDS if comparison.metric in HELD else VERDICT_WORDS).get(verdict, verdict)


def _by_unit(rows: Sequence[Row]) -> list[list[Row]]:
    """Rows whose figures can share a column."""
    grouped: dict[str, list[Row]] = {}
    for row in rows:
        grouped.setdefault(row.unit, []).append(row)
    return list(grouped.values())


def _result_grid(analysis: Analysis, title: str, rows: Sequence[Row], notes: Notes) -> Table:
    variants = analysis.variants
    of_builds = rows[0].level == "build"
    in_unit = any(one.compared_as == "difference" for row in rows for one in row.comparisons)
    unit = "" if of_builds else f", {rows[0].unit}"  # which the lines have there
    tested = (f"Diff{unit}" if in_unit else "Diff %", INTERVAL, "p", VERDICT, NOTES)
    head = worded("Metric") if of_builds else OPERATION
    columns: tuple[Column | str, ...]
    if len(variants) == 1:
        columns = (head, variants[0], f"CV of {'builds' if of_builds else 'forks'}", NOTES)
        grid = Table.of(
            title,
            columns,
            (
                (line_name(row), value_text(only), cv_text(only), notes.cell(row.caveats, *only.load))
                for row in rows
                for only in row.figures[:1]
            ),
        )
        return grid.without_empty(columns[2], NOTES.title)
    if len(variants) == _TWO:
        columns = (head, *variants, *tested)
        return Table.of(title, columns, (_side_by_side(row, notes) for row in rows)).without_empty(
            NOTES.title
        )
    columns = (head, VARIANT, "Value", *tested)
    lines = (line for row in rows for line in _one_below_the_other(row, notes))
    return Table.of(title, columns, lines).without_empty(NOTES.title)


def _side_by_side(row: Row, notes: Notes) -> tuple[Cell | str, ...]:
    comparison = row.comparisons[0]
    return (
        line_name(row),
        *(value_text(figures, comparison) for figures in row.figures),
        *_tested(comparison, row.figures),
        verdict_cell(comparison, row.figures, row.caveats, who=comparison.contender),
        notes.cell(row.caveats),
    )


def _one_below_the_other(row: Row, notes: Notes) -> Iterator[tuple[Cell | str, ...]]:
    """The baseline's line, then one a contender."""
    baseline, *others = row.figures
    first = judged(None, "baseline", *baseline.load)
    yield (line_name(row), baseline.variant, value_text(baseline), "", "", "", first, notes.cell(row.caveats))
    for figures, comparison in zip(others, row.comparisons, strict=True):
        verdict = verdict_cell(comparison, (baseline, figures), row.caveats)
        yield (
            ABOVE,
            figures.variant,
            value_text(figures, comparison),
            *_tested(comparison, row.figures),
            verdict,
            "",
        )


def value_text(figures: Figures, comparison: Comparison | None = None) -> str:
    """Return a variant's value, marked if it is a lower bound.

    For pairs, that of the blocks which both sides have, like the change beside it; where values are missing,
    which has no change, of all that are there.
    """
    if figures.unsupported:
        return NOT_AVAILABLE
    value = figures.value
    of_pairs = comparison is not None and comparison.paired and not comparison.gapped
    if comparison is not None and of_pairs and comparison.baseline_value is not None:
        of_baseline = figures.variant == comparison.baseline
        value = comparison.baseline_value if of_baseline else comparison.contender_value
    # A bound is what was tried: it has no digits that nobody asked for.
    return f">= {value:,.4g}" if figures.at_least and value is not None else figure(value)


def cv_text(figures: Figures) -> str:
    """Return how forks differ; nothing of a bound, which has no spread of its own."""
    return "" if figures.at_least else percent(figures.cv_percent)


def change_cells(comparison: Comparison, sides: Sequence[Figures] = ()) -> tuple[str, Cell]:
    """Return how two sides differ, and its interval: in per cent, or in the metric's unit.

    Of a bound it is one, too, without an interval; of two, and where values are missing, nothing.
    """
    if comparison.gapped:
        return NOT_AVAILABLE, bounds(None, None)
    differs = comparison.compared_as == "difference"
    change = signed_figure(comparison.difference) if differs else signed_percent(comparison.effect_percent)
    if mark := bound_mark(comparison, sides):
        return NOT_AVAILABLE if mark == NOT_AVAILABLE else f"{mark} {change}", bounds(None, None)
    if differs:
        return change, bounds(comparison.difference_low, comparison.difference_high, signed_figure)
    return change, bounds(comparison.low_percent, comparison.high_percent)


def bound_mark(comparison: Comparison, sides: Sequence[Figures]) -> str:
    """Return what stands before a change between bounds; `n/a` where both are, and empty where neither is."""
    bounded = {side.variant for side in sides if side.at_least}
    pair = [name in bounded for name in (comparison.baseline, comparison.contender)]
    return NOT_AVAILABLE if all(pair) else "<=" if pair[0] else ">=" if pair[1] else ""


def _tested(comparison: Comparison, sides: Sequence[Figures]) -> tuple[str, Cell, str]:
    return (*change_cells(comparison, sides), p_value(comparison.p_adjusted))


def _tenths(value: float | None) -> str:
    return percent(value).removesuffix(" %")


def _short(p: float | None) -> str:
    return NOT_AVAILABLE if p is None else f"{p:.2g}"


def metric_title(row: Row) -> str:
    """Return what tables call the metric of a row; with the part of an index that it is of."""
    found = metric_of(row.metric)
    return f"{found.title} {row.label}" if found.figure.named else found.title


def line_name(row: Row) -> str:
    """Return what a row is called in its table: its task, or of index builds the metric with its unit."""
    if row.level == "task":
        return row.label
    title = metric_title(row)
    return title if title == row.unit else f"{title}, {row.unit}"


def comparison_text(row: Row, one: Comparison) -> str:
    """Return `es 15,601, os 14,949 docs/s: -4.2 % (-8.1 to +0.2), p 0.051, inconclusive`."""
    means = f"{one.baseline} {figure(one.baseline_value)}, {one.contender} {figure(one.contender_value)}"
    values = f"{means} {row.unit}"
    word = _marked_word(one, "")
    if one.effect_percent is None:
        return f"{values}: {word}"
    reach = "" if one.low_percent is None else f" ({interval(one.low_percent, one.high_percent)})"
    return f"{values}: {signed_percent(one.effect_percent)} %{reach}, p {p_value(one.p_adjusted)}, {word}"


_MOST_NAMED = 3
_NAMED = {
    "slower": "slower{}{by} on",
    "faster": "faster{}{by} on",
    "mixed": "faster{} by one metric and slower by another{which} on",
    "different": "different{}{by}, perhaps by too little to matter, on",
}
_NAMED_HELD = {
    "slower": "heavier{} on",
    "faster": "lighter{} on",
    "mixed": "lighter{} by one metric and heavier by another on",
}
_DESIGNS: dict[CaveatCode, str] = {
    "imported": "Measured by another tool.",
    "few-runs": "One or two runs per variant do not show how much runs differ.",
    "separate-runs": "Runs count, not forks: host, day and index build differ from run to run.",
    "not-restarted": "Nodes were not restarted between forks.",
}
_THAN = {"different": "from"}
_MANNERS = ("", "provisionally ")
_COUNTED = {
    "equivalent": "equal within the margin",
    "inconclusive": "inconclusive",
    "n/a": "without a verdict",
}


def headline(analysis: Analysis) -> str:
    """Return `big5rangedebug: os 2.11.0 vs es 8.11.0 (baseline), 10 forks each, 500k documents`."""
    names = list(dict.fromkeys(one.challenge for one in analysis.sections if one.level == "task"))
    variants: Iterable[str] = analysis.variants
    size = f", {COUNT.text(analysis.documents)} documents" if analysis.documents else ""
    if analysis.curves:
        names = list(dict.fromkeys(curve.challenge for curve in analysis.curves))
        variants = dict.fromkeys(line.variant for curve in analysis.curves for line in curve.lines)
    versions = {name: analysis.versions.get(name, "") for name in variants}
    baseline, *others = (
        name if not version or version in name else f"{name} {version}" for name, version in versions.items()
    )
    who = f"{_listed(others)} vs {baseline} (baseline)" if others else baseline
    on = {
        side.variant: len({*side.units}) for row in analysis.task_rows for side in row.figures if side.units
    }
    found = [_each(analysis, analysis.forks, "fork")] if names else []
    if on and analysis.replicate == "run":
        found.insert(0, _each(analysis, on, "run"))
    elif on and not analysis.builds:
        found[-1] += f" on {counted(max(on.values()), 'index build')}"
    found += [_each(analysis, analysis.builds, "index build")] if analysis.builds else []
    return f"{_listed(names or [INDEX_BUILDS])}: {who}, {', '.join(found) or 'not measured'}{size}"


def _each(analysis: Analysis, counts: Mapping[str, int], word: str) -> str:
    """`3 forks each`, or `forks: es 3, os 2`."""
    if len({*counts.values()}) == 1:
        return f"{counted(next(iter(counts.values())), word)}{' each' if len(analysis.variants) > 1 else ''}"
    return f"{word}s: {', '.join(f'{name} {count}' for name, count in counts.items())}"


def verdict_sentence(
    analysis: Analysis, answer: Sequence[str] = (), doubts: Sequence[str] = (), *, by_task: bool = True
) -> str:
    """Return the answer, `by_task` what differs, is equal or inconclusive, and the warnings.

    A verdict that is provisional is called so, and takes nothing away from others; `doubts` are about the
    answer.
    """
    found = list(answer)
    if not any(analysis.forks.values()) and not analysis.build_rows:
        found = found or ["Nothing was measured: no fork was finished."]
    elif by_task and analysis.task_rows:
        found += [_about(contender, analysis) for contender in analysis.variants[1:]]
        found += filter(None, (_about_cpu(contender, analysis) for contender in analysis.variants[1:]))
    found += filter(None, (_about_builds(contender, analysis) for contender in analysis.variants[1:]))
    if not found:
        alone = map(_sentence, _stalls(analysis, analysis.rows))
        found = [*alone, "One variant: there is nothing to compare it with."]
    found += [_sentence(doubt.text) for doubt in analysis.caveats if doubt.code == "busy-host"]
    reasons = [*doubts, *_reservations(analysis, _provisional(analysis))]
    found += [f"Provisional: {'; '.join(reasons)}."] if reasons else []
    unready = _reservations(analysis, _unready(analysis))
    found += [_sentence(reason) for reason in unready if reason not in reasons]
    ordered = dict.fromkeys(
        one.operation for one in analysis.order_effects if one.comparison.verdict in DECIDED - {"equivalent"}
    )
    places = f"At several places of a fork, after different tasks, {_listed(list(ordered))} differs."
    found += [places] if ordered else []
    found += _unsound(analysis)
    return " ".join(found)


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."


def _about(contender: str, analysis: Analysis) -> str:
    tasks: dict[str, list[Comparison]] = {}
    # What nodes hold is in the sentence only where nothing else was asked for.
    fast = [row for row in analysis.task_rows if row.metric not in HELD]
    named = _NAMED if fast else {**_NAMED, **_NAMED_HELD}
    for row in fast or analysis.task_rows:
        own = [one for one in row.comparisons if one.contender == contender]
        tasks.setdefault(analysis.where(row), []).extend(own)
    outcomes = {name: _outcome(comparisons) for name, comparisons in tasks.items()}
    deciding = {name: _unusual(tasks[name]) for name in tasks} if fast else {}
    every, baseline = counted(len(tasks), "task"), analysis.variants[0]
    parts: list[str] = []
    for manner, (outcome, words) in product(_MANNERS, named.items()):
        groups: dict[tuple[str, ...], list[str]] = {}
        for name in (name for name, found in outcomes.items() if found == (outcome, manner)):
            groups.setdefault(deciding.get(name, ()), []).append(name)
        for metrics, names in groups.items():
            than = "" if parts else f" {_THAN.get(outcome, 'than')} {baseline}"
            where = _listed(names) if len(names) < _MOST_NAMED else f"{len(names)} of {every}"
            by, which = (f" by {_listed(metrics)}", f" ({_listed(metrics)})") if metrics else ("", "")
            parts.append(f"{manner}{words.format(than, by=by, which=which)} {where}")
    if not parts and len(outcomes) == 1 and len(fast or analysis.rows) > 1:
        return _by_metric(contender, analysis, fast or analysis.rows)
    counts = Counter(outcomes.values())
    rest = [
        f"{count} {manner}{words}"
        for (outcome, words), manner in product(_COUNTED.items(), _MANNERS)
        if (count := counts[_Outcome(outcome, manner)])
    ]
    if parts:
        return f"{contender} is {'; '.join([*parts, *([', '.join(rest)] if rest else [])])}."
    return f"{contender} vs {baseline}, {every}: {', '.join(rest)}."


class _Outcome(NamedTuple):
    """What the metrics of a task show together."""

    word: str  # a verdict, or `mixed`
    manner: str  # of `_MANNERS`


def _about_cpu(contender: str, analysis: Analysis) -> str:
    """`os costs 94% more CPU on the node than es on range.`, where what was asked for is inconclusive."""
    costs: dict[str, list[str]] = {}
    for row in analysis.beside:
        judged = [
            one
            for other in analysis.task_rows
            if (other.schedule, other.task) == (row.schedule, row.task)
            for one in other.comparisons
            if one.contender == contender
        ]
        for one in row.comparisons:
            if one.contender != contender or _outcome(judged).word != "inconclusive":
                continue
            own = costs.setdefault(_outcome([one]).manner, [])
            if one.verdict in _SIZED and one.effect_percent is not None:
                way = "more" if one.effect_percent > 0 else "less"
                first = "" if own else f" CPU on the node than {one.baseline}"
                own.append(f"{abs(one.effect_percent):.0f}% {way}{first} on {analysis.where(row)}")
            elif one.verdict == "equivalent":
                first = "" if own else f" CPU on the node as {one.baseline}"
                own.append(f"as much{first} on {analysis.where(row)}")
    sentences = []
    for manner, own in costs.items():
        more = [f"and is decided on {len(own) - _MOST_NAMED} more"] if len(own) > _MOST_NAMED else []
        listed = ", ".join([*own[:_MOST_NAMED], *more])
        sentences += [f"{contender} {manner}costs {listed}."] if own else []
    return " ".join(sentences)


def _about_builds(contender: str, analysis: Analysis) -> str:
    """`Index builds of os against es: slower? in CPU; inconclusive in docs/s; equal in size.`."""
    told: dict[str, list[str]] = {}
    baseline = ""
    for row in analysis.build_rows:
        for one in row.comparisons:
            if one.contender == contender:
                baseline = one.baseline
                size = f" ({signed_percent(one.effect_percent)} %)" if one.verdict in _SIZED else ""
                word = _marked_word(one, "")
                word = _COUNTED["n/a"] if word in {"n/a", "insufficient"} else word
                told.setdefault(word, []).append(f"{metric_title(row)}{size}")
    if not told:
        return ""
    parts = [f"{word} in {_listed(names)}" for word, names in told.items()]
    return f"Index builds of {contender} against {baseline}: {'; '.join(parts)}."


_SIZED: frozenset[Verdict] = frozenset({"faster", "slower", "different"})


def _by_metric(contender: str, analysis: Analysis, rows: Sequence[Row]) -> str:
    """Of the only task, where no metric shows a difference, metrics with the same outcome together."""
    titles: dict[_Outcome, list[str]] = {}
    for row in rows:
        outcome = _outcome([one for one in row.comparisons if one.contender == contender])
        titles.setdefault(outcome, []).append(metric_title(row))
    told = (f"{manner}{_COUNTED[word]} by {_listed(names)}" for (word, manner), names in titles.items())
    return f"{contender} vs {analysis.variants[0]} on {analysis.where(rows[0])}: {', '.join(told)}."


def _unusual(comparisons: Sequence[Comparison]) -> tuple[str, ...]:
    """The metrics that show a difference of a task, if who reads `slower` would not think of any of them."""
    found = [metric_of(one.metric).figure for one in comparisons if one.verdict in _SIZED]
    usual = any(figure.usual or figure.loop == "search" for figure in found)
    return () if usual else tuple(dict.fromkeys(figure.title for figure in found))


def _outcome(comparisons: Sequence[Comparison]) -> _Outcome:
    """Of one task over its metrics; what a metric leaves open does not undo what another one shows."""
    firm = {one.verdict for one in comparisons if not one.provisional}
    for found in (firm, {one.verdict for one in comparisons}):
        if {"faster", "slower"} <= found:
            return _Outcome("mixed", _MANNERS[found is not firm])
        decided = [verdict for verdict in ("slower", "faster", "different") if verdict in found]
        if decided:
            return _Outcome(decided[0], _MANNERS[found is not firm])
    word = next((verdict for verdict in ("inconclusive", "equivalent") if verdict in found), "n/a")
    return _Outcome(word, _MANNERS[word == "equivalent" and word not in firm])


_Pairs = Sequence[tuple[Row, Comparison]]


def _provisional(analysis: Analysis) -> _Pairs:
    rows = (*analysis.rows, *analysis.beside)
    return [(row, one) for row in rows for one in row.comparisons if one.provisional]


def _unready(analysis: Analysis) -> _Pairs:
    """Inconclusive rows that more forks or warm-up may change, of tasks without a provisional verdict."""
    told = {analysis.where(row) for row, _ in _provisional(analysis)}
    return [
        (row, one)
        for row in analysis.rows
        for one in row.comparisons
        if one.verdict == "inconclusive" and analysis.where(row) not in told
        if not quotable(one, row.figures)
    ]


def _reservations(analysis: Analysis, doubtful: _Pairs) -> Iterator[str]:
    """Yield why these verdicts are provisional, or these rows not to be relied on."""
    tasks = {analysis.where(row) for row in analysis.task_rows}
    yield from _stalls(analysis, [row for row, _ in doubtful])
    for trend in get_args(Trend):
        rows = [row for row, _ in doubtful if any(side.steady.trend == trend for side in row.figures)]
        names = list(dict.fromkeys(analysis.where(row) for row in rows))
        if names:
            where = _listed(names) if len(names) == 1 else f"{len(names)} of {len(tasks)} tasks"
            yield f"{trend} on {where}"
    few = [one.replicate for _, one in doubtful if min(one.replicates) < FORKS_FOR_QUOTING]
    for kind in dict.fromkeys(few):
        yield f"fewer than {FORKS_FOR_QUOTING} {UNITS[kind]} a side"


def _stalls(analysis: Analysis, rows: Iterable[Row]) -> Iterator[str]:
    stalled = {
        analysis.where(row): max(side.stalled for side in row.figures)
        for row in rows
        if any(side.stalled for side in row.figures)
    }
    if stalled:
        share = f"stalls took up to {100 * max(stalled.values()):.0f} % of the time"
        yield f"{share} on {_listed(list(stalled))}"


def _unsound(analysis: Analysis) -> Iterator[str]:
    """Failed requests or different answers: no verdict may stand without that."""
    for doubt in analysis.caveats:
        if doubt.code in {"failed-forks", "other-tasks", "test-mode", "unfinished", "unlike"}:
            yield _sentence(doubt.text)
    general = {doubt.code for doubt in analysis.caveats}
    yield from (text for code, text in _DESIGNS.items() if code in general)
    for codes, text in (
        ({"counted-less"}, "Something other than the nodes answered searches of {}."),
        ({"failures"}, "Requests failed on {}."),
        ({"hits-changed"}, "The same requests matched different documents on {}."),
        ({"nothing-found"}, "Searches found nothing on {}."),
        ({"answers-differ"}, "Answers are not alike on {}."),
    ):
        rows = [row for row in analysis.rows if any(doubt.code in codes for doubt in row.caveats)]
        names = list(dict.fromkeys(analysis.where(row) for row in rows))
        if names:
            yield text.format(_listed(names))


def _listed(names: Sequence[str]) -> str:
    """`a, b and c`; of many, the first and how many more."""
    if len(names) > _MOST_NAMED:
        names = [*names[: _MOST_NAMED - 1], f"{len(names) - _MOST_NAMED + 1} others"]
    return " and ".join(part for part in (", ".join(names[:-1]), *names[-1:]) if part)
