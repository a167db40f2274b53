"""`benchctl lucene`: Lucene with a change to it."""

import shutil
from pathlib import Path

import click

from benchctl.cli.options import check_new_file
from benchctl.cli.streams import say
from benchctl.cli.variants import resolve_variants
from benchctl.cli.watch import watching
from benchctl.disk import disk_errors
from benchctl.engine.distribution import install
from benchctl.engine.jdk import provide_jdk
from benchctl.engine.patched_lucene import CHANGES, build_lucene
from benchctl.home import resolve_home


@click.group("lucene")
def lucene_group() -> None:
    """Build Lucene with a change to it, as variants with `patched:NAME` among their jars run."""


@lucene_group.command("patch")
@click.option("--variant", default="es", show_default=True, help="Variant whose Lucene to patch.")
@click.option("--distribution", metavar="PATH|URL", help="Instead of Maven Central.")
@click.option(
    "--name",
    type=click.Choice(sorted(CHANGES)),
    default="bulk-visit",
    show_default=True,
    help="Which change.",
)
@click.option(
    "--output", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE", help="Copy the jar there."
)
@click.option("-q", "--quiet", is_flag=True, help="Print the result only.")
def patch_command(
    variant: str, distribution: str | None, name: str, output: Path | None, *, quiet: bool
) -> None:
    """Compile a changed lucene-core for a variant's engine, and show the change.

    The sources are those that Lucene publishes for the engine's own version.
    """
    if output is not None:
        check_new_file("--output", output)
    home = resolve_home()
    spec = resolve_variants((variant,), (distribution,) if distribution else (), ())[0]
    with watching(quiet=quiet) as observer:
        installation = install(home, spec, observer.progress)
        built = build_lucene(home, installation, provide_jdk(home, None), name, observer.progress)
    if output is not None:
        with disk_errors(f"write {output}"):
            shutil.copyfile(built.path, output)
    say(built.difference, nl=False)
    say(
        f"Lucene {built.lucene}: {name}: {CHANGES[name].about}\nsha256 {built.sha256}\n{output or built.path}"
    )
