"""Results on standard output: for people with colours where there is a terminal, for programs without."""

import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path

from benchctl.cli.streams import emit, is_terminal, paint, say, text_width
from benchctl.errors import UsageError
from benchctl.report.facts import fact_lines, fact_markdown
from benchctl.report.formats import Format, render
from benchctl.report.numbers import counted
from benchctl.report.styles import Style, render_styled
from benchctl.report.tables import terminal_report
from benchctl.report.visible import visible
from benchctl.results.model import RunRecord
from benchctl.results.plan import Plan
from benchctl.results.select import Selection, Side
from benchctl.results.store import RunFolder, reference
from benchctl.stats.analyse import analyse_run
from benchctl.stats.analysis import Analysis
from benchctl.stats.gate import GateResult
from benchctl.stats.metrics import THROUGHPUT

FOR_READERS = frozenset({"text", "markdown"})


def print_run(
    folder: RunFolder,
    output_format: Format,
    *,
    usual: Path,
    details: bool = False,
    style: Style | None = None,
) -> RunRecord:
    """Print what a run found.

    Args:
        folder: of the run.
        output_format: as `--format`.
        usual: where runs are looked for by default.
        details: host, engines, indices and times as well, for readers.
        style: whose tables; None for our own.

    Returns:
        The run's record.
    """
    record = folder.load()
    if output_format == "text" and details:
        say("\n".join(fact_lines(record, width=text_width())) + "\n")
    elif output_format == "markdown" and details:
        say(fact_markdown(record) + "\n")
    # Nobody can repeat what another tool measured by a command of ours.
    plan = record.plan if record.imported is None else None
    metrics = (THROUGHPUT,) if style == "luceneutil" and record.plan.redline is None else None
    found = analyse_run(record, metrics=metrics)
    if output_format == "html" and style is None:
        # What draws pages takes a while to load, and no other format needs it.
        from benchctl.report.html.stored import run_page, whole_page  # noqa: PLC0415 - see above

        emit(whole_page(run_page(folder, record, found, usual=usual)))
        return record
    _print(found, output_format, plan, [record], details=details, style=style)
    if output_format in FOR_READERS:
        say(f"\nRun: {folder.path}\nAgain: benchctl show {reference(folder, usual)}")
    return record


def print_comparison(
    selection: Selection,
    analysis: Analysis,
    output_format: Format,
    *,
    style: Style | None = None,
    gate: GateResult | None = None,
) -> None:
    """Print stored results side by side, and say where they come from.

    Args:
        selection: what is compared.
        analysis: of it.
        output_format: as `--format`.
        style: whose tables; None for our own.
        gate: what a gate made of it; None where none was asked for.
    """
    records = [side.run for side in selection.sides]
    runs = {record.id for record in records}
    if output_format in FOR_READERS:
        for side in selection.sides:
            say(_origin(side))
        say("")
    plan = records[0].plan if len(runs) == 1 and records[0].imported is None else None
    _print(analysis, output_format, plan, records, style=style, gate=gate)
    if gate is not None and output_format in FOR_READERS:
        say(f"\nGate: {gate.text}")
        for reason in gate.reasons:
            text = textwrap.fill(visible(reason), text_width(), initial_indent="  ", subsequent_indent="    ")
            say(text)


def _origin(side: Side) -> str:
    forks = counted(len(side.forks), "fork")
    what = forks if side.variant == side.label else f"{forks} of {side.variant}"
    tags = f", tags {' '.join(side.run.tags)}" if side.run.tags else ""
    return f"{side.label}: {what} of run {side.run.id} ({side.run.created}{tags})"


def _print(
    analysis: Analysis,
    output_format: Format,
    plan: Plan | None,
    records: Sequence[RunRecord],
    *,
    details: bool = False,
    style: Style | None = None,
    gate: GateResult | None = None,
) -> None:
    if style is not None:
        if output_format not in ("text", "markdown"):
            raise UsageError(
                f"--style is for readers: {output_format} has everything",
                hint="use --format text or markdown",
            )
        say(render_styled(analysis, style, output_format, width=text_width()), nl=False)
    elif output_format == "text" and is_terminal(sys.stdout):
        paint(terminal_report(analysis, plan=plan, width=text_width(), details=details))
    else:
        written = render(
            analysis,
            output_format,
            plan=plan,
            records=records,
            width=text_width(),
            details=details,
            gate=gate,
        )
        emit(written)
