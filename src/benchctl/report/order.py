"""What ran before is a factor, not a detail: tables of the same operation in several places of one fork."""

from collections.abc import Sequence

from benchctl.report.grid import (
    ABOVE,
    INTERVAL,
    OPERATION,
    VARIANT,
    VERDICT,
    Cell,
    Grid,
    bounds,
    judged,
    worded,
)
from benchctl.report.layout import verdict_cell
from benchctl.report.numbers import figure, p_value, signed_percent
from benchctl.stats.analysis import Analysis
from benchctl.stats.order import OrderEffect, describe_before

_COLUMNS = (OPERATION, VARIANT, worded("Where"), "Value", "Diff %", INTERVAL, "p", VERDICT)


def order_grids(analysis: Analysis) -> list[Grid]:
    """One grid a metric; none when every operation runs in one place only."""
    metrics = dict.fromkeys(effect.metric for effect in analysis.order_effects)
    return [
        _grid([effect for effect in analysis.order_effects if effect.metric == metric]) for metric in metrics
    ]


def _grid(effects: Sequence[OrderEffect]) -> Grid:
    """The place where least had run, then the others, each against it."""
    lines: list[tuple[Cell | str, ...]] = []
    shown = None
    for effect in sorted(effects, key=lambda one: (one.baseline_place, one.variant)):
        comparison = effect.comparison
        if shown != (effect.baseline_place, effect.variant):
            shown = (effect.baseline_place, effect.variant)
            first = (effect.operation, effect.variant, describe_before(effect.baseline_after))
            lines.append((*first, figure(comparison.baseline_value), "", "", "", judged(None, "baseline")))
        lines.append(
            (
                ABOVE,
                "",
                describe_before(effect.contender_after),
                figure(comparison.contender_value),
                signed_percent(comparison.effect_percent),
                bounds(comparison.low_percent, comparison.high_percent),
                p_value(comparison.p_adjusted),
                verdict_cell(comparison, remark="not as often asked" if effect.unequal_requests else ""),
            )
        )
    title = f"Order: {effects[0].title}, {effects[0].unit}, by what the same node had run before"
    return Grid.of(f"{title} (paired over forks)", _COLUMNS, lines)
