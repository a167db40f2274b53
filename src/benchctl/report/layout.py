"""An analysis in tables and numbered notes."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import get_args

import msgspec

from benchctl.report.numbers import (
    NOT_AVAILABLE,
    counted,
    figure,
    p_value,
    percent,
    rough,
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
from benchctl.stats.analysis import Analysis, DriverRow, Figures, Row, TimeKind, TimeRow, weaknesses
from benchctl.stats.caveat import Caveat, CaveatCode
from benchctl.stats.compare import DECIDED, HELD_WORDS, QUALITY_WORDS, UNITS, VERDICT_WORDS, Comparison
from benchctl.stats.inference import Method
from benchctl.stats.metrics import HELD, QUALITY, Metric, metric_of
from benchctl.stats.outlook import estimate_of, rule_of

_TWO = 2
_NS_PER_MS, _MS_PER_S = 1e6, 1e3
_LONG_MS = 10
_WHOLE_FROM = 1000
# Doubts that a reader must see first, the gravest first; others follow as they are met.
_GRAVEST: tuple[CaveatCode, ...] = (
    "busy-host", "failures", "counted-less", "ignored-errors", "nothing-found", "answers-differ",
    "hits-changed", "unsupported", "saturated", "driver-limited", "lower-bound",
    "missing-values", "stalled", "not-steady",
)  # fmt: skip


def collect_notes(analysis: Analysis) -> Notes:
    """Number the caveats, the gravest first; those of every row get no number."""
    rows = analysis.rows
    common = set.intersection(*(set(row.caveats) for row in rows)) if len(rows) > 1 else set()
    met = ranked(doubt for row in rows for doubt in row.caveats)
    shared = [doubt for doubt in met if doubt in common]
    return Notes(tuple(doubt for doubt in met if doubt not in common), (*shared, *analysis.caveats))


def ranked(caveats: Iterable[Caveat]) -> list[Caveat]:
    """Return doubts once each, the gravest first."""
    rank = {code: place for place, code in enumerate(_GRAVEST)}
    return sorted(dict.fromkeys(caveats), key=lambda doubt: rank.get(doubt.code, len(rank)))


def result_tables(analysis: Analysis, notes: Notes, *, brief: bool = False) -> list[Table]:
    """Return a table per challenge, metric and unit, in the order of the challenges, then of index builds.

    `brief` titles are without what the headline has.
    """
    tables = []
    several = sum(section.level == "task" for section in analysis.sections) > 1
    for section in analysis.sections:
        before = f" after {', '.join(section.preceded_by)}" if section.preceded_by else ""
        own = [row for row in analysis.task_rows if row.schedule == section.schedule and not row.swept]
        for metric, unit in dict.fromkeys((row.metric, row.unit) for row in own):
            rows = [row for row in own if (row.metric, row.unit) == (metric, unit)]
            title = f"{metric_title(rows[0])}, {unit}"
            title = title if brief else f"{title} ({better(rows[0])})"
            title = f"{section.challenge}{before}: {title}" if several or not brief else title
            tables.append(_result_table(analysis, title, rows, notes))
    if analysis.build_rows:
        title = "Index builds" if brief else f"Index builds: {each_count(analysis, analysis.builds, 'build')}"
        tables.append(_result_table(analysis, title, analysis.build_rows, notes))
    return tables


def _result_table(analysis: Analysis, title: str, rows: Sequence[Row], notes: Notes) -> Table:
    of_builds = rows[0].level == "build"
    head = worded("Metric") if of_builds else OPERATION
    if len(analysis.variants) == 1:
        columns = (head, analysis.variants[0], f"CV of {'builds' if of_builds else 'forks'}", NOTES)
        alone = ((row, row.figures[0]) for row in rows)
        lines: Iterable[tuple[Cell | str, ...]] = (
            (
                line_name(row),
                value_text(only),
                # A bound has no spread of its own.
                "" if only.at_least else percent(only.cv_percent),
                notes.cell(row.caveats, ", ".join(weaknesses([only], row.caveats))),
            )
            for row, only in alone
        )
        return Table.of(title, columns, lines).without_empty(columns[2], NOTES.title)
    in_unit = any(one.compared_as == "difference" for row in rows for one in row.comparisons)
    change = f"Diff{'' if of_builds else f', {rows[0].unit}'}" if in_unit else "Diff %"
    p = p_column(one for row in rows for one in row.comparisons)
    two = len(analysis.variants) == _TWO
    value = analysis.variants[1] if two else "Value"
    compared = (VARIANT, baseline_of(rows), value, change, INTERVAL, p, "MDE %", VERDICT)
    lines = (line for row in rows for line in _compared(row, notes))
    table = Table.of(title, (head, *compared), lines).without_empty("MDE %")
    return table.without(VARIANT.title) if two else table


def _compared(row: Row, notes: Notes) -> Iterator[tuple[Cell | str, ...]]:
    """Yield a line a contender."""
    sides = {side.variant: side for side in row.figures}
    for number, one in enumerate(row.comparisons):
        own = (sides[one.baseline], sides[one.contender])
        found = verdict_cell(one, own, row.caveats)
        yield (
            ABOVE if number else line_name(row),
            one.contender,
            *(value_text(side, one) for side in own),
            *change_cells(one, own),
            p_value(one.p_adjusted),
            rough(one.mde_percent) if one.verdict == "inconclusive" and one.mde_percent is not None else "",
            found if number else msgspec.structs.replace(found, notes=notes.cell(row.caveats).notes),
        )


_ADJUSTED: Mapping[Method, tuple[str, str]] = {
    "benjamini-hochberg": ("BH", "Benjamini-Hochberg"),
    "holm": ("Holm", "Holm"),
}


def p_column(comparisons: Iterable[Comparison]) -> Column:
    """Return the column of p-values, titled by how they are adjusted: `p (BH)`, or `p` where none is."""
    return Column(next((f"p ({_ADJUSTED[one.adjustment][0]})" for one in comparisons if one.adjustment), "p"))


def adjustment_text(comparisons: Sequence[Comparison], of: str = "") -> str:
    """Return what p is adjusted for, `of` which family, as a clause."""
    sizes = sorted({one.family for one in comparisons if one.adjustment})
    method = next((one.adjustment for one in comparisons if one.adjustment), None)
    if method is None:
        return "neither p nor intervals are adjusted"
    rows = f"{' or '.join(map(str, sizes))} rows{of if method != 'holm' else ' of all metrics'}"
    title, (_, name) = p_column(comparisons).title, _ADJUSTED[method]
    return f"{title} is adjusted for the {rows} ({name}), intervals are not"


def metric_title(row: Row) -> str:
    """Return what tables call the metric of a row."""
    return metric_of(row.metric).title


def line_name(row: Row) -> str:
    """Return what a row is called in its table: its task, or of index builds the metric with its unit."""
    if row.level == "task":
        return row.label
    title = metric_title(row)
    return title if title == row.unit else f"{title}, {row.unit}"


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


def each_count(analysis: Analysis, counts: Mapping[str, int], word: str) -> str:
    """Return `3 forks each`, or `forks: es 3, os 2`."""
    if len({*counts.values()}) == 1:
        return f"{counted(next(iter(counts.values())), word)}{' each' if len(analysis.variants) > 1 else ''}"
    return f"{word}s: {', '.join(f'{name} {count}' for name, count in counts.items())}"


# Cells.


def verdict_cell(
    comparison: Comparison,
    sides: Sequence[Figures] = (),
    caveats: Sequence[Caveat] = (),
    *,
    remark: str = "",
) -> Cell:
    """Return the contender's verdict with what it cannot hide: warm-up, other load than requested, failures.

    `different` says in which direction: `different (faster)`; `remark` is one more weakness.
    """
    said_instead = comparison.verdict == "n/a" and any(side.load for side in sides)
    word = [] if said_instead else [marked_word(comparison)]
    return judged(comparison.verdict, *word, *weaknesses(sides, caveats), *filter(None, [remark]))


def marked_word(comparison: Comparison) -> str:
    """Return a verdict in words, marked if it is provisional."""
    doubt = "?" if comparison.provisional else ""
    match comparison.verdict:
        case "different":
            return f"different ({said(comparison, comparison.direction or '')}){doubt}"
        case "insufficient" if min(comparison.replicates) < FORKS_FOR_VERDICT:
            return f"too few {comparison.replicate}s"
        case _:
            return f"{said(comparison, comparison.verdict)}{doubt}"


def said(comparison: Comparison, verdict: str) -> str:
    """Return a verdict, or a direction, in the words for its metric."""
    words = HELD_WORDS if comparison.metric in HELD else VERDICT_WORDS
    return (QUALITY_WORDS if comparison.metric in QUALITY else words).get(verdict, verdict)


def missed(comparison: Comparison) -> str:
    """Return ` (misses 39%)` for what is equal."""
    return "" if comparison.missed_percent is None else f" (misses {comparison.missed_percent:.0f}%)"


def misses(comparisons: Iterable[Comparison]) -> list[str]:
    """Return what so few forks may have missed where they are equal, in a sentence a unit of replication."""
    shares: dict[str, list[float]] = {}
    for one in comparisons:
        if one.missed_percent is not None:
            shares.setdefault(UNITS[one.replicate], []).append(one.missed_percent)
    return [
        f"Equal: a difference that occurs in up to {max(found):.0f}% of {units} may have been missed."
        for units, found in shares.items()
    ]


def at_points(analysis: Analysis) -> list[Comparison]:
    """Return what curves of a sweep compare, point by point and at equal recall."""
    swept = [one for row in analysis.rows if row.swept for one in row.comparisons]
    levels = (level for curve in analysis.curves for level in curve.at_recall)
    return [*swept, *(one for level in levels for one in level.comparisons)]


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
    if figures.at_least and value is not None:
        return f">= {value:,.0f}" if value >= _WHOLE_FROM else f">= {value:.4g}"
    return figure(value)


def change_cells(comparison: Comparison, sides: Sequence[Figures] = ()) -> tuple[str, Cell]:
    """Return how two sides differ, and its interval: in per cent, or in the metric's unit.

    Of a bound it is one, too, without an interval; of two, and where values are missing, nothing.
    """
    bounded = {side.variant for side in sides if side.at_least}
    pair = [name in bounded for name in (comparison.baseline, comparison.contender)]
    if comparison.gapped or all(pair):
        return NOT_AVAILABLE, bounds(None, None)
    differs = comparison.compared_as == "difference"
    change = signed_figure(comparison.difference) if differs else signed_percent(comparison.effect_percent)
    if any(pair):
        return f"{'<=' if pair[0] else '>='} {change}", bounds(None, None)
    if differs:
        return change, bounds(comparison.difference_low, comparison.difference_high, signed_figure)
    return change, bounds(comparison.low_percent, comparison.high_percent)


# What could be seen, all times, and the driver.


def further_tables(analysis: Analysis, *, details: bool) -> list[Table]:
    """Return tables with something to say; `details` adds all kinds of times, and what the driver did."""
    made = [_times_table(analysis), _driver_table(analysis)] if details else []
    return [table for table in (precision_table(analysis), *made) if table is not None]


def precision_table(analysis: Analysis) -> Table | None:
    """Return what the run could detect, and the minutes that inconclusive rows lack.

    None if that says nothing: for one variant, or with one fork of each.
    """
    pairs = [(row, comparison) for row in analysis.rows for comparison in row.comparisons]
    if not any(one.mde_percent is not None for _, one in pairs):
        return None
    lines = []
    for row, one in pairs:
        further = "" if one.further is None else _tenths(one.further * analysis.block_s / 60)
        spread = f"{_tenths(one.cv_baseline_percent)}, {_tenths(one.cv_contender_percent)}"
        lines.append(
            (
                analysis.where(row), metric_title(row), one.contender, spread, _detectable(one.mde_percent),
                further, _shrunk(one),
            )
        )  # fmt: skip
    columns = (OPERATION, worded("Metric"), VARIANT, "CV %", "MDE %", "To go", "Shrunk %")
    title = (
        f"Precision: CV of {baseline_of(analysis.rows)} and of the variant; minimum detectable effect "
        "(MDE, 80% power)"
    )
    if any(one.further for _, one in pairs):
        title += "; minutes to go until inconclusive rows have a verdict"
    if any(_shrunk(one) for _, one in pairs):
        title += "; shrunk: the effect less what a run that ends at a verdict overestimates it by on average"
    table = Table.of(title, columns, lines).without_empty("To go", "Shrunk %")
    return table if len(analysis.variants) > _TWO else table.without("Variant")


def _detectable(value: float | None) -> str:
    most = 1000.0
    return f"over {most:,.0f}" if value is not None and value > most else _tenths(value)


def _tenths(value: float | None) -> str:
    return percent(value).removesuffix("%")


def _shrunk(comparison: Comparison) -> str:
    """Return the effect of a verdict that ended a run, drawn towards 0 by the prior of the test."""
    estimate = estimate_of(comparison)
    if estimate is None or comparison.looks is not None or comparison.verdict not in DECIDED:
        return ""
    return signed_percent(100 * math.expm1(estimate.shrunk(rule_of(comparison))))


def _times_table(analysis: Analysis) -> Table | None:
    """Return a line per task, search of a batch and variant, a column per kind of time, if any."""
    kinds = [kind for kind in get_args(TimeKind) if any(row.kind == kind for row in analysis.times)]
    if not kinds:
        return None
    lines: dict[tuple[str, str], dict[str, TimeRow]] = {}
    for row in analysis.times:
        name = analysis.where(row) + (f", search {row.search}" if row.search else "")
        lines.setdefault((name, row.variant), {})[row.kind] = row
    title = (
        "Times: p50 / p90 / p99, ms, medians over forks; no p90 under 10 requests, no p99 under 100; "
        "took is measured by the engine"
    )
    cells = ((*key, *(_times_cell(found.get(kind)) for kind in kinds)) for key, found in lines.items())
    return Table.of(title, (OPERATION, VARIANT, *kinds), cells)


def _times_cell(row: TimeRow | None) -> str:
    """Known values of the three."""
    if row is None:
        return ""
    return " / ".join(figure(value) for value in (row.p50_ms, row.p90_ms, row.p99_ms) if value is not None)


def _driver_table(analysis: Analysis) -> Table | None:
    """Return a line a task and variant, and one a host of it; None if nothing is known of the driver."""
    if not analysis.drivers:
        return None
    columns = (
        OPERATION, VARIANT, worded("Host"), "Sent/s", "Lag p50", "Lag p99", "Lag max", "CPU", "Gap",
        worded("Load"),
    )  # fmt: skip
    title = (
        "Driver: requests sent (/target), how late, CPU of each process, gap before a task; ms, medians over "
        "forks, Lag max the largest of all"
    )
    lines = []
    for row in analysis.drivers:
        target = "" if row.target_per_s is None else f"/{row.target_per_s:g}"
        gap = NOT_AVAILABLE if row.gap_s is None else f"{row.gap_s * _MS_PER_S:,.1f}"
        processes = f"{row.workers} x " if row.workers > 1 else ""
        lines.append((*_driven(analysis, row, "", target, processes), gap, ", ".join(row.load)))
        place = (row.schedule, row.task, row.variant)
        hosts = (host for host in analysis.hosts if (host.schedule, host.task, host.variant) == place)
        lines += [(*_driven(analysis, host, host.host), "", "") for host in hosts]
    return Table.of(title, columns, lines).without_empty("Host")


def _driven(
    analysis: Analysis, row: DriverRow, host: str, target: str = "", processes: str = ""
) -> tuple[str, ...]:
    cpu = NOT_AVAILABLE if row.cpu_share is None else f"{processes}{percent(100 * row.cpu_share)}"
    lags = map(_ms, (row.lag_p50_ns, row.lag_p99_ns, row.lag_max_ns))
    return (analysis.where(row), row.variant, host, f"{figure(row.offered_per_s)}{target}", *lags, cpu)


def _ms(lag_ns: float | None) -> str:
    """Microseconds at the finest: that is what lags are counted in."""
    if lag_ns is None:
        return NOT_AVAILABLE
    lag_ms = lag_ns / _NS_PER_MS
    return f"{lag_ms:.3f}" if lag_ms < _LONG_MS else f"{lag_ms:,.0f}"
