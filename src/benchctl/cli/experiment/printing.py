"""The report of an experiment on standard output, and as pages."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, TypeVar

import click

from benchctl.cli.streams import complain, emit, note, text_width
from benchctl.disk import disk_errors
from benchctl.experiment.call_sites import seen_calls
from benchctl.experiment.execution import runs_of
from benchctl.results.experiment import ExperimentRecord
from benchctl.results.model import RunRecord
from benchctl.results.store import RunStore

F = TypeVar("F", bound=Callable[..., Any])

ReportFormat = Literal["text", "markdown", "json"]


def report_options(command: F) -> F:
    """`--format` and `--html`."""
    printed = click.option(
        "--format",
        "output_format",
        type=click.Choice(["text", "markdown", "json"]),
        default="text",
        show_default=True,
        help="How the report is printed.",
    )
    pages = click.option(
        "--html",
        "html_folder",
        type=click.Path(path_type=Path, file_okay=False),
        default=None,
        metavar="DIR",
        help="Write its page there, too; open index.html in it.",
    )
    return printed(pages(command))


def check_page_folder(folder: Path) -> None:
    """Refuse, before hours of measuring, a folder that the page will not go into.

    Raises:
        UsageError: it is none, or holds somebody else's files of the page's names.
        BenchctlError: the file system does not let us look.
    """
    from benchctl.report.html.page import refuse_foreign  # noqa: PLC0415 - see below

    with disk_errors(f"look into {folder}"):
        refuse_foreign(folder, ["index.html"])


def print_report(
    record: ExperimentRecord, store: RunStore, output_format: ReportFormat, html_folder: Path | None
) -> dict[str, RunRecord]:
    """Judge an experiment from what is on disk, and print that.

    Args:
        record: of it.
        store: of its runs.
        output_format: as `--format`.
        html_folder: for its page; None for no page.

    Returns:
        Measurement -> record of its run, as far as they are there.
    """
    # The statistics and what draws pages take longer to load than a search; no first request waits for them.
    from benchctl.report.experiment.formats import render  # noqa: PLC0415 - see above
    from benchctl.stats.experiment.analyse import analyse_experiment  # noqa: PLC0415 - see above

    runs = runs_of(record, store, note)
    analysis = analyse_experiment(record, runs, seen_calls(record.spec, runs, store))
    emit(render(record, runs, analysis, output_format, width=text_width()))
    if html_folder is not None:
        from benchctl.report.experiment.html import write  # noqa: PLC0415 - see above

        complain(f"Report: {write(html_folder, record, runs, analysis)}")
    return runs
