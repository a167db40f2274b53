"""`benchctl compare`: stored results side by side."""

from pathlib import Path

import click

from benchctl.cli.comparison import Measures, by_option, by_values, compared, require_pairs
from benchctl.cli.options import (
    AmountType,
    compared_as_option,
    complete_runs,
    format_option,
    metric_option,
    open_store,
    runs_option,
    verbose_option,
)
from benchctl.cli.output import print_comparison
from benchctl.cli.run_options import BUILT_IN
from benchctl.cli.streams import complain, emit
from benchctl.errors import BenchctlError, ExitCode
from benchctl.home import resolve_home
from benchctl.quantities import PERCENT
from benchctl.report.formats import Format
from benchctl.results.select import Archive, choose_sides
from benchctl.spec import ComparedAs
from benchctl.stats.decisions import GateResult, gate

_SHOWN = 3
_EXIT_CODES = {"regression": ExitCode.REGRESSION, "inconclusive": ExitCode.INCONCLUSIVE}


def _complete_sides(context: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
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
    help="Only these runs; repeatable.",
)
@by_option
@click.option("--baseline", metavar="SIDE", help="Side to compare the others with  [default: the first].")
@metric_option
@compared_as_option
@click.option(
    "--quantile",
    "quantiles",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    multiple=True,
    help="Of service time and latency; repeatable  [default: 0.9].",
)
@click.option(
    "--margin",
    type=AmountType(PERCENT),
    help="Difference that does not matter  [default: 3% of throughput, 5% of times].",
)
@click.option("--paired", is_flag=True, help="Insist on pairs, which the run must have declared.")
@click.option(
    "--gate",
    "gating",
    is_flag=True,
    help="Exit with 3 when anything is slower, 4 when that is open; p adjusted by Holm over everything.",
)
@click.option("--force", is_flag=True, help="Compare unlike results; the tables say how they differ.")
@runs_option
@format_option
@verbose_option
def compare_command(
    sides: tuple[str, ...],
    challenge: str | None,
    runs: tuple[str, ...],
    key: str | None,
    baseline: str | None,
    metrics: tuple[str, ...],
    compared_as: ComparedAs | None,
    quantiles: tuple[float, ...],
    margin: float | None,
    runs_folder: Path | None,
    output_format: Format,
    *,
    paired: bool,
    gating: bool,
    force: bool,
    verbose: bool,
) -> None:
    """Compare the newest comparable results of SIDES, such as `es os`; the first is the baseline.

    A side is a variant (es), a version (es@8.11.0), a run (RUN, or RUN:es where it has several variants) or a
    tag (tag:NAME, tag:NAME:es). With two or more --run, one variant stands for its results in each of them.
    """
    archive = Archive(open_store(resolve_home(), runs_folder), runs)
    if key is not None:
        sides = by_values(archive, key, sides)
    selection = choose_sides(archive, sides, challenge=challenge, baseline=baseline, force=force)
    if paired:
        require_pairs(selection)
    analysis = compared(
        archive,
        selection,
        Measures(metrics, quantiles, margin, compared_as, builds=not gating),
        method="holm" if gating else "benjamini-hochberg",
    )
    result = gate(analysis) if gating else None
    if output_format == "html":
        # What draws pages takes a while to load, and no other format needs it.
        from benchctl.report.html.page import comparison_page, single_file_page  # noqa: PLC0415 - see above

        emit(single_file_page(comparison_page(archive, selection, analysis)))
    else:
        print_comparison(selection, analysis, output_format, gate=result, verbose=verbose)
    if result is not None:
        conclude_gate(result)


def conclude_gate(result: GateResult) -> None:
    """Print the verdict of a gate in one line on standard error.

    Raises:
        BenchctlError: If it did not pass, with its exit code.
    """
    shown, rest = result.reasons[:_SHOWN], result.reasons[_SHOWN:]
    text = f"gate: {result.text}: {'; '.join(shown)}" + (f"; and {len(rest)} more" if rest else "")
    if result.outcome in _EXIT_CODES:
        raise BenchctlError(text, exit_code=_EXIT_CODES[result.outcome])
    complain(f"benchctl: {text}")
