"""An experiment's report as text, Markdown or JSON."""

from collections.abc import Iterator, Mapping
from typing import Literal

import msgspec

from benchctl.errors import UsageError
from benchctl.report.experiment.call_sites import fate_grid, fate_lines
from benchctl.report.experiment.facts import (
    about_lines,
    difference_lines,
    legend,
    run_lines,
    scale_lines,
    setting_lines,
    table_lines,
)
from benchctl.report.experiment.layout import (
    collect_notes,
    expectation_grid,
    expectation_remarks,
    expectation_summary,
    narrow_grid,
    wide_grid,
)
from benchctl.report.json_text import json_text
from benchctl.report.markdown import escaped, grid_table, note_lists
from benchctl.report.tables import WIDE, render_page
from benchctl.report.visible import visible
from benchctl.results.experiment import ExperimentRecord
from benchctl.results.model import EngineFacts, Environment, RunRecord, RunStatus
from benchctl.stats.experiment.model import ExperimentAnalysis

Format = Literal["text", "markdown", "json"]
"""What a report can be printed as; pages are written by `report.experiment.html`."""


class ExperimentSource(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """The run of one measurement, as far as a reader of figures needs it."""

    run: str
    status: RunStatus
    environment: Environment
    engines: tuple[EngineFacts, ...]


class ExperimentDocument(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What `json` prints.

    Attributes:
        experiment: what it asked, as in experiment.json.
        analysis: what came of it.
        sources: measurement -> its run.
    """

    experiment: ExperimentRecord
    analysis: ExperimentAnalysis
    sources: dict[str, ExperimentSource]


def render(
    record: ExperimentRecord,
    runs: Mapping[str, RunRecord],
    analysis: ExperimentAnalysis,
    output_format: Format = "text",
    *,
    width: int = WIDE,
) -> str:
    """Write the report.

    Args:
        record: the experiment.
        runs: measurement -> its run.
        analysis: of both.
        output_format: text and Markdown are for readers, JSON for programs, in full precision.
        width: columns, for text.

    Raises:
        UsageError: there is no such format.
    """
    match output_format:
        case "text":
            return _text(record, runs, analysis, width)
        case "markdown":
            return _markdown(record, runs, analysis)
        case "json":
            return json_text(_document(record, runs, analysis))
        case _:
            raise UsageError(f"no output format '{output_format}'", hint="one of text, markdown, json")


def _text(
    record: ExperimentRecord, runs: Mapping[str, RunRecord], analysis: ExperimentAnalysis, width: int
) -> str:
    """Blocks with an empty line in between."""
    notes = collect_notes(analysis)

    def lines(*sentences: str) -> str:
        return render_page([], sentences, width)

    blocks = [lines(record.spec.title)]
    blocks += [lines(text) for text in about_lines(record)]
    blocks.append(lines(*setting_lines(record, runs, analysis)))
    expected = expectation_grid(analysis)
    if expected is not None:
        blocks.append(lines(expectation_summary(analysis)))
        blocks.append(render_page([expected], expectation_remarks(analysis), width))
    fates = fate_grid(record.spec, analysis)
    if fates is not None:
        blocks.append(render_page([fates], fate_lines(record.spec, analysis), width))
    for table, spec in zip(analysis.tables, record.spec.tables, strict=True):
        blocks.append(render_page([narrow_grid(table, spec, notes)], table_lines(spec), width))
    blocks.append(render_page([], legend(analysis), width, notes=notes))
    blocks.append(lines(*scale_lines(analysis)))
    blocks.append(_listed("How variants differ:", difference_lines(runs), width))
    blocks.append(_listed("Runs:", run_lines(record), width))
    return "\n".join(block for block in blocks if block)


def _listed(heading: str, items: Iterator[str], width: int) -> str:
    """Lines below a heading, indented; none without lines."""
    lines = [render_page([], [item], width - 2).splitlines() for item in items]
    if not lines:
        return ""
    return "\n".join([heading, *(f"  {line}" for own in lines for line in own)]) + "\n"


def _markdown(record: ExperimentRecord, runs: Mapping[str, RunRecord], analysis: ExperimentAnalysis) -> str:
    notes = collect_notes(analysis)
    parts = [f"## {escaped(record.spec.title)}"]
    parts += [escaped(text) for text in about_lines(record)]
    parts.append(_items(setting_lines(record, runs, analysis)))
    expected = expectation_grid(analysis)
    if expected is not None:
        parts += [escaped(expectation_summary(analysis)), grid_table(expected)]
        parts.append(_items(expectation_remarks(analysis)))
    fates = fate_grid(record.spec, analysis)
    if fates is not None:
        parts += [grid_table(fates), _items(fate_lines(record.spec, analysis))]
    for table, spec in zip(analysis.tables, record.spec.tables, strict=True):
        parts.append(grid_table(wide_grid(table, spec, notes)))
        parts += [escaped(text) for text in table_lines(spec)]
    parts.append(_items(legend(analysis)))
    parts += note_lists(notes)
    parts.append(_items(scale_lines(analysis)))
    differences = _items(difference_lines(runs))
    parts += ["### How variants differ", differences] if differences else []
    parts += ["### Runs", "\n".join(["```text", *map(visible, run_lines(record)), "```"])]
    return "\n\n".join(part for part in parts if part) + "\n"


def _items(lines: Iterator[str]) -> str:
    return "\n".join(f"- {escaped(line)}" for line in lines)


def _document(
    record: ExperimentRecord, runs: Mapping[str, RunRecord], analysis: ExperimentAnalysis
) -> ExperimentDocument:
    sources = {
        name: ExperimentSource(run.id, run.status, run.environment, run.engines) for name, run in runs.items()
    }
    return ExperimentDocument(record, analysis, sources)
