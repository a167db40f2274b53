"""One analysis as text, Markdown, CSV or JSON."""

import csv
import io
from typing import Literal, get_args

import msgspec

from benchctl.errors import UsageError
from benchctl.report.curve import curve_grids, curve_plot
from benchctl.report.details import further_grids
from benchctl.report.layout import Grid, result_grids
from benchctl.report.notes import collect_notes
from benchctl.report.planning import planning_lines
from benchctl.report.tables import WIDE, legend, render_text
from benchctl.results.plan import Plan
from benchctl.stats.analysis import Analysis, Figures, Row
from benchctl.stats.compare import Comparison

Format = Literal["text", "markdown", "csv", "json"]

# Of a row, of a comparison, and of both sides: the columns of the CSV form.
_ROW_COLUMNS = ("schedule", "challenge", "task", "label", "operation", "metric", "unit", "higher_is_better")
_COMPARISON_COLUMNS = tuple(
    name for name in Comparison.__struct_fields__ if name not in ("metric", "higher_is_better", "caveats")
)
_LIST_COLUMNS = ("values_baseline", "values_contender", "load_baseline", "load_contender", "caveats")


def render(
    analysis: Analysis,
    output_format: Format = "text",
    *,
    plan: Plan | None = None,
    width: int = WIDE,
    details: bool = False,
) -> str:
    """Write an analysis.

    Args:
        analysis: what to write.
        output_format: text and Markdown are for readers, CSV (one line a task, metric and contender) and JSON
            (everything) for programs, in full precision.
        plan: what was run; without it no command is proposed to readers.
        width: columns, for text.
        details: with every kind of time, and what the driver itself did, for readers; JSON always holds it.

    Raises:
        UsageError: there is no such format.
    """
    match output_format:
        case "text":
            return render_text(analysis, plan=plan, width=width, details=details)
        case "markdown":
            return _markdown(analysis, plan, details=details)
        case "csv":
            return _csv(analysis)
        case "json":
            return msgspec.json.format(msgspec.json.encode(analysis), indent=1).decode() + "\n"
        case _:
            raise UsageError(
                f"no output format '{output_format}'", hint=f"one of {', '.join(get_args(Format))}"
            )


def _markdown(analysis: Analysis, plan: Plan | None, *, details: bool) -> str:
    notes = collect_notes(analysis)
    parts = [_markdown_grid(grid) for grid in result_grids(analysis, notes)]
    parts.append(" ".join(legend(analysis)))
    listed = [f"{number}. {_escaped(doubt.text)}" for number, doubt in enumerate(notes.numbered, 1)]
    parts.append("\n".join(listed))
    parts.append("\n".join(f"- {_escaped(doubt.text)}" for doubt in notes.general))
    parts += [_markdown_grid(grid) for grid in further_grids(analysis, details=details)]
    if analysis.redline is not None:
        parts += [_markdown_grid(grid) for grid in curve_grids(analysis.redline)]
        plot = curve_plot(analysis.redline, WIDE)
        parts.append("\n".join(["```text", *plot, "```"]) if plot else "")
    parts.append("\n".join(f"- {_planning_item(line)}" for line in planning_lines(analysis, plan)))
    return "\n\n".join(part for part in parts if part) + "\n"


def _markdown_grid(grid: Grid) -> str:
    rules = ["---" if place in grid.words else "---:" for place in range(len(grid.headers))]
    rows = [grid.headers, rules, *grid.lines]
    lines = [
        "| " + " | ".join(cell if row is rules else _escaped(cell) for cell in row) + " |" for row in rows
    ]
    return "\n".join([f"### {_escaped(grid.title)}", "", *lines])


def _planning_item(line: str) -> str:
    words, colon, rest = line.partition(": ")
    return f"{words}{colon}`{rest}`" if rest.startswith("benchctl ") else _escaped(line)


def _escaped(text: str) -> str:
    """Names with underscores and reasons with pipes or angle brackets stay what they are."""
    for special in ("\\", "|", "_", "*", "<", "`"):
        text = text.replace(special, f"\\{special}")
    return " ".join(text.split())


def _csv(analysis: Analysis) -> str:
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow((*_ROW_COLUMNS, *_COMPARISON_COLUMNS, *_LIST_COLUMNS))
    for row in analysis.rows:
        figures = {one.variant: one for one in row.figures}
        for comparison in row.comparisons:
            writer.writerow(_csv_line(row, comparison, figures))
    return stream.getvalue()


def _csv_line(row: Row, comparison: Comparison, figures: dict[str, Figures]) -> list[object]:
    """Full precision; an empty field where there is no value; lists separated by spaces."""
    sides = [figures[comparison.baseline], figures[comparison.contender]]
    return [
        *(getattr(row, name) for name in _ROW_COLUMNS),
        *(getattr(comparison, name) for name in _COMPARISON_COLUMNS),
        *(" ".join("" if value is None else repr(value) for value in side.values) for side in sides),
        *(" ".join(side.load) for side in sides),
        " ".join(dict.fromkeys(doubt.code for doubt in row.caveats)),
    ]
