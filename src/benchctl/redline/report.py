"""Red-lines of finished forks: curves over all of them, doubts, and what a report and a page show of them."""

from collections.abc import Iterator, Mapping, Sequence
from statistics import geometric_mean, median
from typing import Any, NamedTuple

import msgspec

from benchctl.report.charts import OVERVIEW, Chart, variant_style
from benchctl.report.facts import objective_text
from benchctl.report.numbers import NOT_AVAILABLE, counted, figure
from benchctl.report.table import Addition, Notes, Table
from benchctl.results.figures import CurvePoint, RedlineEnd
from benchctl.results.model import ForkRecord
from benchctl.results.plan import RedlineSpec
from benchctl.stats.analysis import Analysis, Curve, CurveRow, ForkCurve, RedlineCurves, Spread, Steadiness
from benchctl.stats.caveat import Caveat
from benchctl.stats.compare import own_interval
from benchctl.stats.metrics import ForkSummaries

_NS_PER_MS = 1e6
# How far below what a fork found a rate is that it should not have failed at.
_CLEARLY = 1.1


def redline_curves(done: Mapping[str, Sequence[ForkRecord]], search: RedlineSpec) -> RedlineCurves:
    """Put the steps of finished forks together, by label."""
    return RedlineCurves(search, tuple(_curve(label, forks) for label, forks in done.items()))


def _curve(variant: str, forks: Sequence[ForkRecord]) -> Curve:
    rungs = sorted({point.rung for fork in forks for point in fork.curve})
    curves = tuple(_fork_curve(fork) for fork in forks)
    searched = [curve.redline for curve in curves if curve.end is not None]
    redlines = [rate for rate in searched if rate is not None]
    whole = bool(redlines) and len(redlines) == len(searched)
    rows = tuple(_row(rung, forks) for rung in rungs)
    result = Curve(variant, rows, curves, geometric_mean(redlines) if whole else None)
    ends = (
        None if not whole or result.at_least else own_interval(redlines, [fork.index_build for fork in forks])
    )
    return result if ends is None else msgspec.structs.replace(result, low=ends[0], high=ends[1])


def _fork_curve(fork: ForkRecord) -> ForkCurve:
    ended = next((summary for summary in fork.summaries if summary.redline_end is not None), None)
    if ended is None:
        return ForkCurve(fork.block, fork.curve)
    return ForkCurve(fork.block, fork.curve, ended.redline_per_s, ended.redline_end)


def _row(rung: int, forks: Sequence[ForkRecord]) -> CurveRow:
    """A rate of a curve, over the forks that tried it."""
    tried = [own for fork in forks if (own := [point for point in fork.curve if point.rung == rung])]
    points = [point for own in tried for point in own]

    def spread(name: str, unit: float = _NS_PER_MS) -> Spread | None:
        known = [[value for point in own if (value := getattr(point, name)) is not None] for own in tried]
        medians = [median(own) / unit for own in known if own]
        return Spread(median(medians), min(medians), max(medians)) if medians else None

    return CurveRow(
        rung=rung,
        rate_per_s=median(own[0].rate_per_s for own in tried),
        forks=len(tried),
        steps=len(points),
        passed=sum(point.verdict == "pass" for point in points),
        driver_limited=sum(point.verdict == "driver-limited" for point in points),
        achieved_per_s=spread("achieved_per_s", 1),
        p50_ms=spread("p50_ns"),
        p90_ms=spread("p90_ns"),
        p99_ms=spread("p99_ns"),
        objective_ms=spread("objective_ns"),
    )


# Doubts about the red-lines of a run.


def redline_doubts(
    found: Mapping[str, ForkSummaries], done: Mapping[str, Sequence[ForkRecord]]
) -> Iterator[Caveat]:
    """Yield doubts about red-lines, by label; `done` has the steps of forks."""
    for label, forks in found.items():
        summaries = [summary for _, summary in forks]
        if bounded := [summary for summary in summaries if summary.redline_is_bound]:
            yield Caveat(
                "lower-bound",
                f"the red-line of {label} is a lower bound, so no verdict is given: "
                f"{bounded[0].redline_text} ({len(bounded)} of {len(summaries)} forks)",
            )
        missed = [summary for summary in summaries if summary.redline_end and summary.redline_per_s is None]
        if missed:
            text = f"{missed[0].redline_text} ({len(missed)} of {len(summaries)} forks)"
            yield Caveat("missing-values", f"{label} is n/a: {text}")
    for label, steadiness in unsteady_nodes(done).items():
        yield Caveat("not-steady", f"{steadiness.trend}: {label} {steadiness.text}; raise --warm-up")


class _Clash(NamedTuple):
    """A fork that failed at rates well below the one that it found."""

    failed: list[float]  # these rates, ascending
    found: float
    is_early: bool  # whether all of these steps came before any higher rate was passed


def unsteady_nodes(done: Mapping[str, Sequence[ForkRecord]]) -> dict[str, Steadiness]:
    """Return the variants whose nodes changed while a rate was searched for, by label.

    At least half of their forks passed at a rate after, or although, they failed well below it.
    """
    by_label: dict[str, Steadiness] = {}
    for label, forks in done.items():
        clashes = [clash for clash in map(_clash, forks) if clash is not None]
        if clashes and 2 * len(clashes) >= len(forks):
            worst = max(clashes, key=lambda clash: len(clash.failed))
            rates = ", ".join(f"{rate:,.4g}" for rate in worst.failed)
            by_label[label] = Steadiness(
                "not steady",
                text=f"failed at {rates}, below the {worst.found:,.4g} that it passed at "
                f"({len(clashes)} of {len(forks)} forks)",
                trend="not warmed up" if all(clash.is_early for clash in clashes) else "drifting",
            )
    return by_label


def _clash(fork: ForkRecord) -> _Clash | None:
    """Rates at which a fork failed more often than it passed: closer to what it found, either is likely."""
    redline = _fork_curve(fork).redline
    below: dict[int, list[CurvePoint]] = {}
    for point in sorted(fork.curve, key=lambda point: point.rung):
        if redline is not None and point.rate_per_s * _CLEARLY <= redline:
            below.setdefault(point.rung, []).append(point)
    failing = [
        points
        for points in below.values()
        if 2 * sum(point.verdict == "fail" for point in points) > len(points)
    ]
    if redline is None or not failing:
        return None
    last = max(point.step for points in failing for point in points if point.verdict == "fail")
    least = failing[0][0].rung
    passed = min(point.step for point in fork.curve if point.verdict == "pass" and point.rung > least)
    return _Clash([points[0].rate_per_s for points in failing], redline, last < passed)


# For readers.


def report(analysis: Analysis, _notes: Notes | None) -> Addition | None:
    """Return what a red-line search adds to a report; None for other runs."""
    found = analysis.redline
    if found is None:
        return None
    texts = (f"{curve.variant} {_found_text(curve)}" for curve in found.curves)
    answer = f"red-line of {found.search.operation}, {objective_text(found.search)}: {'; '.join(texts)}."
    return Addition(answer=(answer,), results=tuple([table] for table in curve_tables(found)))


_BOUNDS: dict[RedlineEnd | None, str] = {
    "max-rate": "no higher rate was tried",
    "driver-limited": "the driver was the limit",
}


def _found_text(curve: Curve) -> str:
    searched = [fork for fork in curve.forks if fork.end is not None]
    if curve.redline is None:
        lacking = sum(fork.redline is None for fork in searched)
        return f"none in {lacking} of {counted(len(searched), 'fork')}" if searched else NOT_AVAILABLE
    rate = f"{figure(curve.redline)} queries/s"
    if curve.at_least:
        ends = sorted({_BOUNDS[fork.end] for fork in searched if fork.end in _BOUNDS})
        return f"at least {rate} ({' or '.join(ends)})"
    if curve.low is None or curve.high is None:
        return f"{rate} (one fork: no interval)"
    return f"{rate} (95% interval {figure(curve.low)} to {figure(curve.high)})"


def curve_tables(found: RedlineCurves) -> list[Table]:
    """Return a table per variant, by rate; none for one that never reached a step."""
    search = found.search
    columns = {"p50": "p50_ms", "p90": "p90_ms", "p99": "p99_ms"}
    columns.setdefault(f"p{search.percentile:g}", "objective_ms")
    titles = ("Rate/s", "Achieved/s", *columns, "Met", "Forks")

    def line(row: CurveRow) -> tuple[str, ...]:
        return (
            figure(row.rate_per_s),
            _spread_text(row.achieved_per_s),
            *(_spread_text(getattr(row, name)) for name in columns.values()),
            f"{row.passed} of {row.steps}{', driver-limited' if row.driver_limited else ''}",
            str(row.forks),
        )

    return [
        Table.of(
            f"{curve.variant}: {search.operation} by offered rate; latency in ms, median over forks (range)",
            titles,
            map(line, curve.rows),
        )
        for curve in found.curves
        if curve.rows
    ]


def _spread_text(value: Spread | None) -> str:
    if value is None:
        return NOT_AVAILABLE
    if value.low == value.high:
        return figure(value.median)
    return f"{figure(value.median)} ({figure(value.low)}-{figure(value.high)})"


def page(analysis: Analysis, *_run: object) -> tuple[list[Chart], list[Table]]:
    """Return one plot of the percentile by rate, for all variants; none where nothing was measured."""
    found = analysis.redline
    traces = [] if found is None else [*_traces(found)]
    if found is None or not traces:
        return [], []
    # Plotly takes most of a second to load, and no text needs it.
    import plotly.graph_objects as go  # noqa: PLC0415 - see above

    from benchctl.report.charts.plots import GUIDE, plot_layout, scaled_axis  # noqa: PLC0415 - see above

    objective, name = objective_text(found.search), f"p{found.search.percentile:g}"
    limit_ms = found.search.limit_ns / _NS_PER_MS
    chart = Chart(
        key="redline",
        group=OVERVIEW,
        title=f"Latency by offered rate: {found.search.operation}",
        about=(
            f"Each mark is a rate that was tried: the median over forks of the {name} of latency, with the "
            f"range over forks. The dashed line is the objective ({objective}); hollow marks are rates at "
            "which the driver itself was the limit. The tables of the results have the same figures."
        ),
        data=[go.Scatter(**trace) for trace in traces],
        layout=plot_layout(
            "offered requests/s",
            f"{name} of latency, ms",
            yaxis=scaled_axis([limit_ms, *(value for trace in traces for value in trace["y"])]),
            shapes=[
                go.layout.Shape(
                    type="line", xref="paper", x0=0, x1=1, y0=limit_ms, y1=limit_ms,
                    line={"color": GUIDE, "width": 2, "dash": "dash"},
                )
            ],
        ),
    )  # fmt: skip
    return [chart], []


def _traces(found: RedlineCurves) -> Iterator[dict[str, Any]]:
    from benchctl.report.charts.plots import errors, plain  # noqa: PLC0415 - as above

    for place, curve in enumerate(found.curves):
        style, variant = variant_style(place), plain(curve.variant)
        measured = [(row, row.objective_ms) for row in curve.rows if row.objective_ms is not None]
        if measured:
            yield {
                "mode": "lines+markers",
                "name": variant,
                "x": [row.rate_per_s for row, _ in measured],
                "y": [latency.median for _, latency in measured],
                "error_y": errors(
                    [latency.median - latency.low for _, latency in measured],
                    [latency.high - latency.median for _, latency in measured],
                    style.colour, 1, 3,
                ),
                "line": {"color": style.colour, "dash": style.dash, "width": 2},
                "marker": {
                    "color": style.colour,
                    "symbol": [f"{style.symbol}{'-open' * bool(row.driver_limited)}" for row, _ in measured],
                    "size": 8,
                },
                "text": [
                    f"{variant}, {figure(row.rate_per_s)}/s: {_spread_text(latency)} ms<br>"
                    f"met {row.passed} of {row.steps} times"
                    for row, latency in measured
                ],
                "hovertemplate": "%{text}<extra></extra>",
            }  # fmt: skip
