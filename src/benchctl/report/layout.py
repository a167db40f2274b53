"""An analysis in tables, numbered notes, and a sentence or two that may be quoted."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence

from benchctl.report.numbers import (
    NOT_AVAILABLE,
    counted,
    figure,
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
    Notes,
    Table,
    bounds,
    judged,
    worded,
)
from benchctl.results.model import FORKS_FOR_VERDICT
from benchctl.stats.analysis import Analysis, Figures, Row, Section, weaknesses
from benchctl.stats.caveat import Caveat
from benchctl.stats.compare import (
    DECIDED,
    HELD_WORDS,
    QUALITY_WORDS,
    VERDICT_WORDS,
    Comparison,
)
from benchctl.stats.metrics import HELD, QUALITY, Metric, metric_of
from benchctl.stats.outlook import estimate_of, rule_of


def collect_notes(analysis: Analysis) -> Notes:
    """Number the caveats in the order in which a reader meets them; those of every row get no number."""
    rows = analysis.rows
    common = set.intersection(*(set(row.caveats) for row in rows)) if len(rows) > 1 else set()
    shared = [doubt for doubt in rows[0].caveats if doubt in common] if common else []
    met = dict.fromkeys(doubt for row in rows for doubt in row.caveats if doubt not in shared)
    return Notes(tuple(met), (*shared, *analysis.caveats))


_TWO = 2


def result_tables(analysis: Analysis, notes: Notes) -> list[Table]:
    """Return a table per challenge and metric, in the order of the challenges, then one of index builds."""
    tasks = analysis.task_rows
    tables = [
        _result_table(
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
        title = f"Index builds: {each_count(analysis, analysis.builds, 'build')}"
        tables.append(_result_table(analysis, title, analysis.build_rows, notes))
    return tables


def precision_table(analysis: Analysis) -> Table | None:
    """Return what the run could detect, and the minutes that open rows lack.

    None if that says nothing: for one variant, or with one fork of each.
    """
    pairs = [(row, comparison) for row in analysis.rows for comparison in row.comparisons]
    if not any(one.mde_percent is not None for _, one in pairs):
        return None
    lines = [
        (
            analysis.where(row),
            metric_title(row),
            one.contender,
            f"{_tenths(one.cv_baseline_percent)}, {_tenths(one.cv_contender_percent)}",
            _tenths(one.mde_percent),
            "" if one.further is None else _tenths(one.further * analysis.block_s / 60),
            _shrunk(one),
        )
        for row, one in pairs
    ]
    columns = (OPERATION, worded("Metric"), VARIANT, "CV %", "MDE %", "To go", "Shrunk %")
    title = (
        f"Precision: CV of {baseline_of(analysis.rows)} and of the variant; minimum detectable effect "
        "(MDE, 80% power)"
    )
    if any(one.further for _, one in pairs):
        title += "; minutes to go until inconclusive rows have a verdict, if effect and spread stay"
    if any(_shrunk(one) for _, one in pairs):
        title += "; what a verdict that ended the run says of the size, drawn towards 0 by the test's prior"
    table = Table.of(title, columns, lines).without_empty("To go", "Shrunk %")
    return table if len(analysis.variants) > _TWO else table.without("Variant")


def _shrunk(comparison: Comparison) -> str:
    """Return the effect of a verdict that ended a run, whose estimate lies too far from 0 on average."""
    estimate = estimate_of(comparison)
    if estimate is None or comparison.looks is not None or comparison.verdict not in DECIDED:
        return ""
    return signed_percent(100 * math.expm1(estimate.shrunk(rule_of(comparison))))


def section_title(section: Section) -> str:
    """Return a challenge, with what its node had run before: `range-only after warmup`."""
    before = f" after {', '.join(section.preceded_by)}" if section.preceded_by else ""
    return f"{section.challenge}{before}"


def paired_points(analysis: Analysis) -> bool:
    """Return whether variants are compared at every point of a sweep, and not points of one variant."""
    return any(curve.pairs for curve in analysis.curves)


def baseline_of(rows: Iterable[Row]) -> str:
    """Return what variants are compared with: points of a sweep have their own."""
    found = {comparison.baseline for row in rows for comparison in row.comparisons}
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
    word = marked_word(comparison, who)
    said_instead = comparison.verdict == "n/a" and any(side.load for side in sides)
    remarks = [*([] if said_instead else [word]), *weaknesses(sides, caveats), *filter(None, [remark])]
    return judged(comparison.verdict, *remarks)


def marked_word(comparison: Comparison, who: str = "") -> str:
    """Return a verdict in words, marked if it is provisional, with what it may have missed."""
    return f"{_verdict_word(comparison, who)}{'?' if comparison.provisional else ''}{missed(comparison)}"


MISSES = "what happens in up to this share of forks may not have been seen"


def missed(comparison: Comparison) -> str:
    """Return ` (misses 39%)` for what is equal: `MISSES` explains it."""
    return "" if comparison.missed_percent is None else f" (misses {comparison.missed_percent:.0f}%)"


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
    words = HELD_WORDS if comparison.metric in HELD else VERDICT_WORDS
    return (QUALITY_WORDS if comparison.metric in QUALITY else words).get(verdict, verdict)


def _by_unit(rows: Sequence[Row]) -> list[list[Row]]:
    """Rows whose figures can share a column."""
    grouped: dict[str, list[Row]] = {}
    for row in rows:
        grouped.setdefault(row.unit, []).append(row)
    return list(grouped.values())


def _result_table(analysis: Analysis, title: str, rows: Sequence[Row], notes: Notes) -> Table:
    variants = analysis.variants
    of_builds = rows[0].level == "build"
    in_unit = any(comparison.compared_as == "difference" for row in rows for comparison in row.comparisons)
    unit = "" if of_builds else f", {rows[0].unit}"  # which the lines have there
    tested = (f"Diff{unit}" if in_unit else "Diff %", INTERVAL, "p", VERDICT, NOTES)
    head = worded("Metric") if of_builds else OPERATION
    columns: tuple[Column | str, ...]
    if len(variants) == 1:
        columns = (head, variants[0], f"CV of {'builds' if of_builds else 'forks'}", NOTES)
        table = Table.of(
            title,
            columns,
            (
                (line_name(row), value_text(only), cv_text(only), notes.cell(row.caveats, *only.load))
                for row in rows
                for only in row.figures[:1]
            ),
        )
        return table.without_empty(columns[2], NOTES.title)
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
    return percent(value).removesuffix("%")


def metric_title(row: Row) -> str:
    """Return what tables call the metric of a row."""
    return metric_of(row.metric).title


def line_name(row: Row) -> str:
    """Return what a row is called in its table: its task, or of index builds the metric with its unit."""
    if row.level == "task":
        return row.label
    title = metric_title(row)
    return title if title == row.unit else f"{title}, {row.unit}"


def each_count(analysis: Analysis, counts: Mapping[str, int], word: str) -> str:
    """Return `3 forks each`, or `forks: es 3, os 2`."""
    if len({*counts.values()}) == 1:
        return f"{counted(next(iter(counts.values())), word)}{' each' if len(analysis.variants) > 1 else ''}"
    return f"{word}s: {', '.join(f'{name} {count}' for name, count in counts.items())}"
