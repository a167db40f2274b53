"""Results in the tables of others, for readers who know those: `--style luceneutil`, `--style blog`."""

from collections.abc import Callable
from typing import Literal

from benchctl.errors import UsageError
from benchctl.report.blog import blog_grids, blog_legend
from benchctl.report.grid import Grid
from benchctl.report.luceneutil import luceneutil_grids, luceneutil_legend
from benchctl.report.markdown import escaped, grid_table, note_lists
from benchctl.report.notes import Notes, collect_notes
from benchctl.report.tables import WIDE, render_page
from benchctl.stats.analysis import Analysis

Style = Literal["luceneutil", "blog"]

_LEAST_VARIANTS = 2
_GRIDS: dict[Style, Callable[[Analysis, Notes], list[Grid]]] = {
    "luceneutil": luceneutil_grids,
    "blog": blog_grids,
}
_LEGENDS: dict[Style, Callable[[Analysis], list[str]]] = {
    "luceneutil": luceneutil_legend,
    "blog": blog_legend,
}


def render_styled(
    analysis: Analysis, style: Style, output_format: Literal["text", "markdown"], *, width: int = WIDE
) -> str:
    """Write the results of an analysis, with how to read them and all doubts about them.

    Args:
        analysis: what to write.
        style: whose tables.
        output_format: how they are drawn.
        width: columns, for text.

    Raises:
        UsageError: there is only one variant, and these tables are comparisons.
    """
    if len(analysis.variants) < _LEAST_VARIANTS:
        raise UsageError(f"--style {style} compares variants, and there is only {analysis.variants[0]}")
    notes = collect_notes(analysis)
    grids, legend = _GRIDS[style](analysis, notes), _LEGENDS[style](analysis)
    if output_format == "text":
        return render_page(grids, legend, width, notes=notes)
    parts = [*map(grid_table, grids), escaped(" ".join(legend)), *note_lists(notes)]
    return "\n\n".join(part for part in parts if part) + "\n"
