"""`benchctl micro`: microbenchmarks of JMH as measured variants."""

import threading
from pathlib import Path

import click
import msgspec

from benchctl.cli.measuring import conclude, measuring, measuring_options
from benchctl.cli.options import format_option, open_store, runs_option, under, verbose_option
from benchctl.cli.run_options import FORKS, form_options
from benchctl.cli.streams import typed_words
from benchctl.errors import UsageError
from benchctl.home import resolve_home
from benchctl.micro.conduct import MicroEntry, parse_variant, plan_micro
from benchctl.report.table import Format
from benchctl.results.plan import EvidenceSpec
from benchctl.run.bench import Bench
from benchctl.run.fitness import check_quiet
from benchctl.run.form import forks_of, stop_of
from benchctl.run.orchestrate import Extras, start_run
from benchctl.run.plan import reload_track
from benchctl.spec import BusyAction, RunForm, check_settings


@click.group("micro")
def micro_group() -> None:
    """Run JMH microbenchmarks and compare variants."""


@micro_group.command("run")
@click.argument("source", type=click.Path(path_type=Path))
@click.option(
    "--include", metavar="REGEX", default="", help="Only benchmarks whose full name matches.",
)  # fmt: skip
@click.option(
    "--variant",
    "variants",
    multiple=True,
    metavar="VARIANT",
    help="NAME, or NAME=jar:JAR,jvm:FLAG,jdk:JDK: a jar comes before all others, one by Maven coordinates in "
    "the place of another version; jar:patched:FILE.diff is Lucene with a diff. Repeatable; the first is the "
    "baseline.  [default: one, unchanged]",
)
@click.option(
    "--param", "params", multiple=True, metavar="NAME=A,B", help="Values of a benchmark's parameter.",
)  # fmt: skip
@click.option("--threads", default="", metavar="N,N", help="Numbers of threads.  [default: the benchmark's]")
@click.option(
    "--jmh", "arguments", default="", metavar="WORDS",
    help="Further JMH arguments, such as '-wi 5 -i 5 -prof gc'.",
)  # fmt: skip
@click.option(
    "--timeout", "timeout_s", type=float, default=600.0, show_default=True, metavar="SECONDS",
    help="Time limit per benchmark and fork.",
)  # fmt: skip
@form_options(*FORKS, "tags")
@click.option(
    "--seed", type=int, default=1, show_default=True, help="Random seed for the order within blocks."
)
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

    SOURCE is a Java file, a directory of them, or a jar of benchmarks. Dependencies are Maven
    coordinates in comments: //DEPS org.apache.lucene:lucene-core:9.8.0. Every benchmark has a fresh JVM in
    every fork; variants take turns in random blocks. Resume an interrupted run with `benchctl resume RUN`,
    and add forks with `benchctl extend RUN`.
    """
    home = resolve_home()
    store = open_store(home, runs_folder)
    check_settings(form)
    try:
        counts = tuple(int(thread) for thread in threads.split(",")) if threads else ()
    except ValueError as err:
        raise UsageError(f"--threads {threads}: {err}", hint="write --threads 1,2") from err
    entry = MicroEntry(str(source), include, dict(map(_param, params)), counts, arguments, timeout_s)
    micro = entry.spec(Path.cwd())
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
        plan = msgspec.structs.replace(plan, words=typed_words())
        folder, record = start_run(bench, plan, reload_track(plan), Extras(tags=form.tags, forecast=False))
    conclude(folder, record, home, output_format, details=verbose)


def _param(text: str) -> tuple[str, tuple[str, ...]]:
    """Parse `--param NAME=A,B`."""
    name, equals, values = text.partition("=")
    if not (name and equals and values):
        raise UsageError(f"--param {text}: it is not NAME=VALUE", hint="write --param size=10,100")
    return name, tuple(values.split(","))
