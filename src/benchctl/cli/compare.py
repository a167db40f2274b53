"""`benchctl compare`: stored results side by side."""

from pathlib import Path

import click

from benchctl.cli.comparison import Measures, compared
from benchctl.cli.options import (
    AmountType,
    check_html,
    complete_runs,
    diff_option,
    format_option,
    html_option,
    metric_option,
    open_store,
    require_runs,
    runs_option,
    verbose_option,
)
from benchctl.cli.output import Part, print_comparison, print_page, print_run
from benchctl.cli.streams import complain, typed_words
from benchctl.errors import BenchctlError, ExitCode, UsageError
from benchctl.home import resolve_home
from benchctl.quantities import PERCENT
from benchctl.report.table import Command, Format
from benchctl.results.select import Archive, at_point, choose_sides
from benchctl.spec import Diff
from benchctl.stats.decisions import GateResult, gate

_SHOWN = 3
# Formats for readers, with the reasons of a gate.
_WITH_REASONS = ("text", "markdown")
_EXIT_CODES = {"regression": ExitCode.REGRESSION, "inconclusive": ExitCode.INCONCLUSIVE}


def _complete_sides(context: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    # Whoever only compares or shows does not wait for what measures.
    from benchctl.cli.run_options import BUILT_IN  # noqa: PLC0415 - see above

    variants = [name for name in BUILT_IN if name.startswith(incomplete)]
    return [*variants, *complete_runs(context, param, incomplete)]


@click.command("compare")
@click.argument("sides", nargs=-1, shell_complete=_complete_sides)
@click.option("--challenge", help="Only runs of this challenge.")
@click.option(
    "--run",
    "runs",
    multiple=True,
    metavar="RUN",
    shell_complete=complete_runs,
    help="Only these runs. Repeatable.",
)
@click.option(
    "--at",
    "point",
    multiple=True,
    metavar="AXIS=VALUE",
    help="Only this point of a sweep, such as history=fresh. Repeatable.",
)
@click.option("--baseline", metavar="SIDE", help="Side to compare the others with.  [default: the first]")
@metric_option
@diff_option
@click.option(
    "--quantile",
    "quantiles",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    multiple=True,
    help="Quantile of service time and latency. Repeatable.  [default: 0.9]",
)
@click.option(
    "--margin",
    type=AmountType(PERCENT),
    help="Difference that does not matter.  [default: 3% of throughput, 5% of times]",
)
@click.option(
    "--gate",
    "gating",
    is_flag=True,
    help="Exit 3 if anything is slower, 4 if inconclusive; p-values are Holm-adjusted over all rows.",
)
@click.option("--force", is_flag=True, help="Compare incomparable results; tables show how they differ.")
@runs_option
@format_option
@html_option
@verbose_option
def compare_command(
    sides: tuple[str, ...],
    challenge: str | None,
    runs: tuple[str, ...],
    point: tuple[str, ...],
    baseline: str | None,
    metrics: tuple[str, ...],
    diff: Diff | None,
    quantiles: tuple[float, ...],
    margin: float | None,
    runs_folder: Path | None,
    output_format: Format,
    html: Path | None,
    *,
    gating: bool,
    force: bool,
    verbose: bool,
) -> None:
    """Compare stored results, optionally as a CI gate.

    SIDES such as `es os` are compared by their newest comparable results; the first is the baseline. A side
    is a variant (es), a version (es@8.11.0), a run (RUN, or RUN:es where it has several variants) or a tag
    (tag:NAME, tag:NAME:es). A run alone stands for its variants. With two or more --run, one variant stands
    for its results in each of them.
    """
    check_html(html, output_format)
    require_runs(runs_folder, *sides, *runs)
    archive = Archive(open_store(resolve_home(), runs_folder), runs)
    selection = choose_sides(archive, sides, challenge=challenge, baseline=baseline, force=force)
    if point:
        selection = at_point(selection, point)
    analysis = compared(
        archive,
        selection,
        Measures(metrics, quantiles, margin, diff, builds=not gating),
        method="holm" if gating else "benjamini-hochberg",
    )
    result = gate(analysis) if gating else None
    if html is not None or output_format == "html":
        # What draws pages takes a while to load, and no other format needs it.
        from benchctl.report.html.page import comparison_page  # noqa: PLC0415 - see above
        from benchctl.report.planning import again  # noqa: PLC0415 - see above

        commands = [Command("Make this page again", again(typed_words()))]
        print_page(comparison_page(archive, selection, analysis, commands), html)
    else:
        print_comparison(selection, analysis, output_format, gate=result, verbose=verbose, runs=runs_folder)
    if html is not None:
        for part in selection.parts:
            archive.folder_of(part.run).require_files(part.run)
    if result is not None:
        conclude_gate(result, printed=html is None and output_format in _WITH_REASONS)


def conclude_gate(result: GateResult, *, printed: bool) -> None:
    """Print the verdict of a gate in one line on standard error.

    The first reasons are part of it unless all of them were `printed` for readers.

    Raises:
        BenchctlError: If it did not pass, with its exit code.
    """
    text = f"gate: {result.text}"
    if not printed:
        shown, rest = result.reasons[:_SHOWN], result.reasons[_SHOWN:]
        text += f": {'; '.join(shown)}" + (f"; and {len(rest)} more" if rest else "")
    if result.outcome in _EXIT_CODES:
        raise BenchctlError(text, exit_code=_EXIT_CODES[result.outcome])
    complain(f"benchctl: {text}")


# `benchctl show`: a stored run on a screen, in full, or as an HTML report.


@click.command("show")
@click.argument("run", shell_complete=complete_runs)
@click.option("--notes", "part", flag_value="notes", help="Print all warnings and their tasks.")
@click.option("--host", "part", flag_value="host", help="Print host, engines, indices, order and times.")
@click.option("-v", "--verbose", "part", flag_value="all", help="Print every section.")
@metric_option
@diff_option
@format_option
@html_option
@runs_option
def show_command(
    run: str,
    part: Part | None,
    metrics: tuple[str, ...],
    diff: Diff | None,
    runs_folder: Path | None,
    output_format: Format,
    html: Path | None,
) -> None:
    """Show the results of a stored run.

    RUN is a run id, a unique prefix or suffix of one, a path, or `latest`.
    """
    check_html(html, output_format)
    if part in ("notes", "host") and output_format != "text":
        raise UsageError(f"--{part} requires --format text", hint="print everything with -v")
    require_runs(runs_folder, run)
    home = resolve_home()
    store = open_store(home, runs_folder)
    folder = store.find(run)
    record = print_run(
        folder,
        output_format,
        usual=home.runs,
        part=part,
        figures=metrics,
        diff=diff,
        html=html,
    )
    # Its figures are worth being printed whatever became of the files beside them.
    folder.require_files(record)
