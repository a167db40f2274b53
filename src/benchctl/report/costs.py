"""Minutes to a verdict, as a table: forks needed times what they cost."""

from benchctl.report.layout import Grid, task_name
from benchctl.report.numbers import NOT_AVAILABLE
from benchctl.stats.analysis import Analysis
from benchctl.stats.metrics import metric_of

_TWO = 2
_ADJUSTED = "Adjusted"
_HEADERS = ("Operation", "Metric", "Variant", "CV %", "Forks a side", "Pair, s", "Minutes", _ADJUSTED)


def costs_grid(analysis: Analysis) -> Grid | None:
    """A line a task, metric and contender; None where nothing is known."""
    if not analysis.costs:
        return None
    lines = tuple(
        (
            task_name(one, analysis),
            metric_of(one.metric).title,
            one.contender,
            f"{_tenths(one.cv_baseline_percent)}, {_tenths(one.cv_contender_percent)}",
            f"{one.forks:,}",
            _tenths(one.pair_s),
            _tenths(one.minutes),
            _tenths(one.minutes_adjusted),
        )
        for one in analysis.costs
    )
    adjusted = any(one.minutes_adjusted is not None for one in analysis.costs)
    effect = f"{analysis.costs[0].effect_percent:g} %"
    title = (
        f"Minutes to find a difference of {effect} in four of five runs: forks a side x seconds of a pair of "
        "forks"
    )
    if adjusted:
        title += "; the last column with the host's probes held equal"
    grid = Grid(title, _HEADERS, lines, frozenset({0, 1, 2}))
    grid = grid if adjusted else grid.without(_ADJUSTED)
    return grid if len(analysis.variants) > _TWO else grid.without("Variant")


def _tenths(value: float | None) -> str:
    return NOT_AVAILABLE if value is None else f"{value:,.1f}"
