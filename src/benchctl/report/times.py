"""All the times of a task side by side, as a compact table."""

from typing import get_args

from benchctl.report.layout import Grid, task_name
from benchctl.report.numbers import figure
from benchctl.stats.analysis import Analysis, TimeKind, TimeRow


def times_grid(analysis: Analysis) -> Grid | None:
    """A line a task and variant, a column a kind of time; None where nothing is known."""
    kinds = [kind for kind in get_args(TimeKind) if any(row.kind == kind for row in analysis.times)]
    if not kinds:
        return None
    lines: dict[tuple[int, int, str], dict[str, TimeRow]] = {}
    for row in analysis.times:
        lines.setdefault((row.schedule, row.task, row.variant), {})[row.kind] = row
    title = (
        "Times: p50 / p90 / p99, ms, medians over forks; no p90 under 10 requests, no p99 under 100; "
        "took is the engine's own clock"
    )
    return Grid(
        title,
        ("Operation", "Variant", *kinds),
        tuple(
            (
                task_name(next(iter(found.values())), analysis),
                variant,
                *(_cell(found.get(kind)) for kind in kinds),
            )
            for (_, _, variant), found in lines.items()
        ),
        frozenset({0, 1}),
    )


def _cell(row: TimeRow | None) -> str:
    """What there is of the three."""
    if row is None:
        return ""
    return " / ".join(figure(value) for value in (row.p50_ms, row.p90_ms, row.p99_ms) if value is not None)
