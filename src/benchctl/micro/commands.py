"""`benchctl micro`: microbenchmarks of JMH as measured variants."""

import math
import re
import textwrap
import threading
from pathlib import Path

import click
import msgspec

from benchctl.cli.measuring import conclude, measuring, measuring_options
from benchctl.cli.options import (
    TableFormat,
    complete_runs,
    format_option,
    open_run,
    open_store,
    print_table,
    runs_option,
    table_format_option,
    under,
    verbose_option,
)
from benchctl.cli.run_options import FORKS, form_options
from benchctl.cli.streams import say, text_width
from benchctl.cli.watch import watching
from benchctl.engine.jdk import provide_jdk
from benchctl.errors import UsageError
from benchctl.home import resolve_home
from benchctl.micro import jmh
from benchctl.micro.conduct import micro_spec, own_table, parse_variant, plan_micro, profiles
from benchctl.report.table import Column, Format, Table
from benchctl.results.plan import EvidenceSpec, MicroSpec
from benchctl.results.store import RunFolder
from benchctl.run.bench import Bench
from benchctl.run.fitness import check_quiet
from benchctl.run.form import forks_of, stop_of
from benchctl.run.orchestrate import Extras, start_run
from benchctl.run.plan import reload_track
from benchctl.spec import BusyAction, RunForm, check_settings

_COLUMNS = (
    "variant", "benchmark", "mode", Column("count"), Column("score"), Column("error (99.9%)"), "unit",
)  # fmt: skip
_POOLED = (
    "JMH's own table: its error covers how iterations vary, those of all forks in one pot. What forks differ "
    "by counts only as far as it is in iterations, which are not independent; intervals above count forks."
)


@click.group("micro")
def micro_group() -> None:
    """Run JMH microbenchmarks and compare variants."""


source_argument = click.argument("source", type=click.Path(path_type=Path))
include_option = click.option(
    "--include", metavar="REGEX", default="", help="Only benchmarks whose full name matches.",
)  # fmt: skip


@micro_group.command("run")
@source_argument
@include_option
@click.option(
    "--variant",
    "variants",
    multiple=True,
    metavar="VARIANT",
    help="NAME, or NAME=jar:JAR,jvm:FLAG,jdk:JDK: a jar comes before all others, one by Maven coordinates in "
    "the place of another version; jar:patched:FILE.diff is Lucene with a diff. Repeatable; the first is the "
    "baseline.  [default: one, as it is]",
)
@click.option(
    "--param", "params", multiple=True, metavar="NAME=A,B", help="Values of a benchmark's parameter.",
)  # fmt: skip
@click.option("--threads", default="", metavar="N,N", help="Numbers of threads.  [default: the benchmark's]")
@click.option(
    "--jmh", "arguments", default="", metavar="WORDS",
    help="Further arguments of JMH's, such as '-wi 5 -i 5 -prof gc'.",
)  # fmt: skip
@click.option(
    "--timeout", "timeout_s", type=float, default=600.0, show_default=True, metavar="SECONDS",
    help="How long one benchmark may take in one fork.",
)  # fmt: skip
@form_options(*FORKS, "tags")
@click.option("--seed", type=int, default=1, show_default=True, help="Of the order within blocks.")
@under(
    "Execution and output",
    click.option(
        "--evidence", type=click.Choice(["inlining"]), default=None,
        help="Collect inlining logs in one more fork per variant. View with `benchctl explain`.",
    ),
)  # fmt: skip
@measuring_options
@verbose_option
@runs_option
@format_option
def run_command(
    source: Path,
    include: str,
    variants: tuple[str, ...],
    params: tuple[str, ...],
    threads: str,
    arguments: str,
    timeout_s: float,
    seed: int,
    evidence: str | None,
    runs_folder: Path | None,
    output_format: Format,
    *,
    form: RunForm,
    on_busy: BusyAction | None,
    quiet: bool,
    verbose: bool,
) -> None:
    """Run JMH benchmarks and compare variants.

    SOURCE is a Java file, a directory of them, or a jar of benchmarks. What it stands on is named by Maven
    coordinates in comments: //DEPS org.apache.lucene:lucene-core:9.8.0. Every benchmark has a fresh JVM in
    every fork; variants take turns in random blocks. Go on with an interrupted run by `benchctl resume RUN`,
    and add forks by `benchctl extend RUN`.
    """
    home = resolve_home()
    store = open_store(home, runs_folder)
    check_settings(form)
    micro = _asked(source, include, params, threads, arguments, timeout_s)
    specs = [parse_variant(variant) for variant in variants or ("jvm",)]
    collected = None if evidence is None else EvidenceSpec(("inlining",), 1)
    store.open()
    with measuring(on_busy, quiet=quiet) as observer:
        observer.stage(f"{source.name}: compiling benchmarks")
        plan = plan_micro(
            home,
            micro,
            specs,
            forks=forks_of(form),
            seed=seed,
            stop=stop_of(form),
            evidence=collected,
            progress=observer.progress,
        )
        check_quiet(home, [plan], observer.note, on_busy)
        bench = Bench(home, store, observer, threading.Event())
        folder, record = start_run(bench, plan, reload_track(plan), Extras(tags=form.tags, forecast=False))
    conclude(folder, record, home, output_format, details=verbose)
    if output_format == "text":
        _print_own(folder, output_format)


@micro_group.command("list")
@source_argument
@include_option
@table_format_option
def list_command(source: Path, include: str, output_format: TableFormat) -> None:
    """List benchmarks and their parameters."""
    home = resolve_home()
    micro = _asked(source, include, (), "", "", 1.0)
    with watching(quiet=False) as observer:
        bench = jmh.Workbench(home, provide_jdk(home, None), observer.progress)
        micro = msgspec.structs.replace(micro, release=jmh.least_release([bench.jdk]))
        subject = bench.subject(parse_variant("jvm"), micro, bench.classes(micro))
        benchmarks = jmh.list_benchmarks(subject.jdk, subject.class_path, include)
    rows = [
        (benchmark.name, [f"{name}={','.join(values)}" for name, values in benchmark.params.items()])
        for benchmark in benchmarks
    ]
    print_table(Table.listed("", ("benchmark", "parameters"), rows), output_format)


@micro_group.command("table")
@click.argument("run", shell_complete=complete_runs)
@runs_option
@table_format_option
def table_command(run: str, runs_folder: Path | None, output_format: TableFormat) -> None:
    """Print results in JMH's own table format."""
    folder, record = open_run(run, runs_folder)
    if record.plan.micro is None:
        raise UsageError(f"run {run} has no microbenchmarks", hint="make one with: benchctl micro run")
    _print_own(folder, output_format)


@micro_group.command("profile")
@click.argument("run", shell_complete=complete_runs)
@click.option("--variant", default=None, metavar="NAME", help="Only this variant.")
@click.option("--include", metavar="REGEX", default="", help="Only benchmarks whose label matches.")
@click.option("--block", type=int, default=None, metavar="N", help="Of which fork.  [default: the first]")
@runs_option
def profile_command(
    run: str, variant: str | None, include: str, block: int | None, runs_folder: Path | None
) -> None:
    """Print JMH profiler output of a run."""
    folder, record = open_run(run, runs_folder)
    try:
        wanted = re.compile(include)
    except re.error as err:
        raise UsageError(f"--include {include}: {err}") from err
    if record.plan.micro is None:
        raise UsageError(f"run {run} has no microbenchmarks", hint="make one with: benchctl micro run")
    seen = set()
    for profile in profiles(folder):
        pair = (profile.variant, profile.label)
        fits = (
            variant in {None, profile.variant}
            and block in {None, profile.block}
            and wanted.search(profile.label)
        )
        if fits and pair not in seen:
            seen.add(pair)
            say(
                f"{profile.label}, {profile.variant}, fork {profile.block}\n"
                f"{textwrap.indent(profile.text, '  ')}\n"
            )
    if not seen:
        raise UsageError(
            f"run {run} has nothing of a profiler that fits",
            hint="measure with: benchctl micro run SOURCE --jmh '-prof stack'",
        )


def _print_own(folder: RunFolder, output_format: TableFormat) -> None:
    rows = [
        (name, row.label, row.mode, row.count, _four(row.score), _four(row.error), row.unit)
        for name, own in own_table(folder).items()
        for row in own
    ]
    if output_format in {"text", "markdown"}:
        say(f"\n{textwrap.fill(_POOLED, text_width())}\n")
    print_table(Table.listed("JMH's own table", _COLUMNS, rows), output_format)


def _four(value: float | None) -> float | None:
    """Return four digits; None for what JMH prints as NaN."""
    return None if value is None or not math.isfinite(value) else float(f"{value:.4g}")


def _asked(
    source: Path, include: str, params: tuple[str, ...], threads: str, arguments: str, timeout_s: float
) -> MicroSpec:
    try:
        counts = tuple(int(thread) for thread in threads.split(",")) if threads else ()
    except ValueError as err:
        raise UsageError(f"--threads {threads}: {err}", hint="write --threads 1,2") from err
    return micro_spec(
        source,
        include=include,
        params=dict(jmh.named_params(params)),
        threads=counts,
        arguments=arguments,
        timeout_s=timeout_s,
    )
