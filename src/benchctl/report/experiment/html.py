"""An experiment's report as a page: the frame, style and tables of the pages of runs."""

from collections.abc import Mapping
from pathlib import Path

import msgspec

import benchctl
from benchctl.report.charts.panels import dark_palette
from benchctl.report.experiment.formats import (
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
    fate_grid,
    fate_lines,
    wide_grid,
)
from benchctl.report.grid import Grid
from benchctl.report.html.page import write_pages
from benchctl.report.html.parts import FOLDER, content_policy, embedded, templates
from benchctl.results.experiment import ExperimentRecord
from benchctl.results.model import RunRecord
from benchctl.stats.experiment.model import ExperimentAnalysis


class _Section(msgspec.Struct, frozen=True):
    """A table and what is said below it."""

    table: Grid
    lines: tuple[str, ...]


def write(
    folder: Path, record: ExperimentRecord, runs: Mapping[str, RunRecord], analysis: ExperimentAnalysis
) -> Path:
    """Write the page and the files that it needs; it loads nothing from any network.

    Args:
        folder: where to; made when there is none.
        record: the experiment.
        runs: measurement -> its run.
        analysis: of both.

    Returns:
        The path of `index.html`.

    Raises:
        UsageError: the folder holds a page that benchctl did not write.
        BenchctlError: it cannot be written.
    """
    return write_pages(folder, {"index.html": page(record, runs, analysis)})


def page(record: ExperimentRecord, runs: Mapping[str, RunRecord], analysis: ExperimentAnalysis) -> str:
    """The page as text; style and script lie in a folder beside it."""
    notes = collect_notes(analysis)
    expected = expectation_grid(analysis)
    fates = fate_grid(record.spec, analysis)
    return (
        templates(("benchctl.report.experiment", ""))
        .get_template("experiment.html.jinja")
        .render(
            title=record.spec.title,
            subtitle=tuple(setting_lines(record, runs, analysis)),
            about=tuple(about_lines(record)),
            summary=expectation_summary(analysis) if expected is not None else "",
            expectations=expected,
            remarks=tuple(expectation_remarks(analysis)),
            fates=fates,
            fate_lines=tuple(fate_lines(record.spec, analysis)),
            sections=[
                _Section(wide_grid(found, spec, notes), tuple(table_lines(spec)))
                for found, spec in zip(analysis.tables, record.spec.tables, strict=True)
            ],
            legend=tuple(legend(analysis)),
            notes=[doubt.text for doubt in notes.numbered],
            general=[doubt.text for doubt in notes.general],
            scale=tuple(scale_lines(analysis)),
            differences=tuple(difference_lines(runs)),
            runs="\n".join(run_lines(record)),
            folder=FOLDER,
            inline=False,
            version=benchctl.__version__,
            policy=content_policy(inline=False),
            palette=embedded(dark_palette()),
        )
    )
