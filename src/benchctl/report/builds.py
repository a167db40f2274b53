"""Where the spread comes from when indices were built several times: builds, or forks on one build."""

from benchctl.report.layout import Grid, metric_title, task_name
from benchctl.report.numbers import percent
from benchctl.stats.analysis import Analysis, Figures

_HEADERS = ("Operation", "Metric", "Variant", "Forks on each build", "SD of builds", "SD of forks on a build")


def builds_grid(analysis: Analysis) -> Grid | None:
    """A line a task, metric and variant; None for one build."""
    lines = tuple(
        (
            task_name(row, analysis),
            metric_title(row),
            figures.variant,
            _counts(figures),
            percent(figures.between_builds_percent),
            percent(figures.within_builds_percent),
        )
        for row in analysis.rows
        for figures in row.figures
        if figures.builds
    )
    if not lines:
        return None
    title = "Index builds: parts of the spread, by the method of moments; an SD of 0: the forks explain it"
    return Grid(title, _HEADERS, lines, frozenset({0, 1, 2}))


def _counts(figures: Figures) -> str:
    """Forks that have a value, build by build: `5 5 4`."""
    having = [build for build, value in zip(figures.builds, figures.values, strict=True) if value is not None]
    return " ".join(str(having.count(build)) for build in sorted(set(figures.builds)))
