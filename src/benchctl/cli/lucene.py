"""`benchctl lucene`: Lucene with a change to it."""

import shlex
import shutil
from pathlib import Path

import click

from benchctl.cli.options import check_new_file
from benchctl.cli.run_options import resolve_variants
from benchctl.cli.streams import say
from benchctl.cli.watch import watching
from benchctl.disk import disk_errors
from benchctl.engine.distribution import install
from benchctl.engine.jdk import provide_jdk
from benchctl.engine.lucene_diff import build_diff, library_of
from benchctl.engine.maven import digest
from benchctl.engine.patched_lucene import CHANGES, build_lucene
from benchctl.engine.plugins_and_jars import equip
from benchctl.engine.variant import PATCHED, RECOMPILED, placed_jar
from benchctl.errors import UsageError
from benchctl.home import Home, resolve_home
from benchctl.results.plan import VariantSpec


@click.group("lucene")
def lucene_group() -> None:
    """Build Lucene with a change to it, as variants with `patched:NAME` among their jars run."""


@lucene_group.command("patch")
@click.option(
    "--variant",
    "--engine",
    default="es",
    show_default=True,
    help="Variant whose Lucene to patch, such as es@8.11.0.",
)
@click.option("--distribution", metavar="PATH|URL", help="Instead of Maven Central.")
@click.option(
    "--name",
    type=click.Choice(sorted(CHANGES)),
    default=None,
    help="Which change of benchctl's own  [default: bulk-visit].",
)
@click.option(
    "--diff",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE.diff",
    help="Instead, a git diff of Lucene's sources; its control, the same classes unchanged, is built, too.",
)
@click.option(
    "--output", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE", help="Copy the jar there."
)
@click.option("-q", "--quiet", is_flag=True, help="Print the result only.")
def patch_command(
    variant: str,
    distribution: str | None,
    name: str | None,
    diff: Path | None,
    output: Path | None,
    *,
    quiet: bool,
) -> None:
    """Compile a changed Lucene for a variant's engine, and show the change.

    The sources are those that Lucene publishes for the engine's own version.
    """
    if diff is not None and (name is not None or output is not None):
        raise UsageError("--diff may change several jars", hint="leave --name and --output out")
    if output is not None:
        check_new_file("--output", output)
    home = resolve_home()
    spec = resolve_variants((variant,), (distribution,) if distribution else (), ())[0]
    if diff is not None:
        _from_diff(home, spec, diff, quiet=quiet)
        return
    name = name or "bulk-visit"
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


def _from_diff(home: Home, spec: VariantSpec, diff: Path, *, quiet: bool) -> None:
    if spec.jars:
        raise UsageError(f"variant '{spec.name}' has replaced jars already", hint="name a plain one")
    if placed_jar(f"{PATCHED}{diff}", Path.cwd()) != f"{PATCHED}{diff.absolute()}":
        raise UsageError(f"--diff {diff}: its name has to end in .diff or .patch")
    with watching(quiet=quiet) as observer:
        equipped = equip(home, spec, observer.progress)
        library = library_of(equipped.builder.root, equipped.builder.lucene)
        # What does not build unchanged is told first: it is not the diff's fault.
        build_diff(home, library, provide_jdk(home, None), diff, observer.progress, unchanged=True)
        built = build_diff(home, library, provide_jdk(home, None), diff, observer.progress)
    say(built.difference, nl=False)
    classes = ", ".join(Path(one).stem for one in built.classes)
    say(f"Lucene {library.lucene}: {diff.name}: {classes}, in {', '.join(built.jars)}")
    say("No class of the engine's jars uses anything that is gone.")
    if built.left_out:
        say(f"Left out, being no part of a jar: {', '.join(built.left_out)}")
    for path in built.jars.values():
        say(f"sha256 {digest(path, 'sha256')} {path}")
    words = [
        "benchctl", "run", "--challenge", "range-only-short",
        "--variant", spec.name,
        "--variant", f"control={spec.name},jar:{PATCHED}{RECOMPILED}{diff}",
        "--variant", f"patched={spec.name},jar:{PATCHED}{diff}",
    ]  # fmt: skip
    say(f"To measure it, with answers compared: {shlex.join(words)}")
