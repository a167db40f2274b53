"""`benchctl lucene`: Lucene with a diff."""

import shlex
import shutil
from pathlib import Path

import click

from benchctl.cli.options import check_new_file
from benchctl.cli.run_options import resolve_variants
from benchctl.cli.streams import say
from benchctl.cli.watch import watching
from benchctl.disk import disk_errors
from benchctl.engine.equipment import equip
from benchctl.engine.jdk import provide_jdk
from benchctl.engine.maven import digest
from benchctl.engine.patched_lucene import build_diff, library_of
from benchctl.engine.variant import PATCHED, RECOMPILED, SHIPPED_DIFFS
from benchctl.errors import UsageError
from benchctl.home import resolve_home


@click.group("lucene")
def lucene_group() -> None:
    """Build patched Lucene jars."""


@lucene_group.command("patch")
@click.option(
    "--variant",
    "--engine",
    default="es",
    show_default=True,
    help="Variant whose Lucene to patch, such as es@8.11.0.",
)
@click.option(
    "--name",
    type=click.Choice(sorted(SHIPPED_DIFFS)),
    default="bulk-visit",
    show_default=True,
    help="Shipped diff.",
)
@click.option(
    "--diff",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE.diff",
    help="A git diff of Lucene's sources instead.",
)
@click.option(
    "--output", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE", help="Copy the jar there."
)
@click.option("-q", "--quiet", is_flag=True, help="Print the result only.")
def patch_command(variant: str, name: str, diff: Path | None, output: Path | None, *, quiet: bool) -> None:
    """Build Lucene with a patch for a variant's engine.

    The sources are those that Lucene publishes for the engine's own version; the control is the same classes
    unchanged.
    """
    if output is not None:
        check_new_file("--output", output)
    home = resolve_home()
    spec = resolve_variants((variant,))[0]
    if spec.jars:
        raise UsageError(f"variant '{spec.name}' has replaced jars already", hint="name a plain one")
    path = SHIPPED_DIFFS[name] if diff is None else diff
    if path.suffix not in {".diff", ".patch"}:
        raise UsageError(f"--diff {diff}: its name has to end in .diff or .patch")
    with watching(quiet=quiet) as observer:
        equipped = equip(home, spec, observer.progress)
        library = library_of(equipped.builder.root, equipped.builder.lucene)
        # What does not build unchanged is reported first: it is not the diff's fault.
        build_diff(home, library, provide_jdk(home, None), path, observer.progress, unchanged=True)
        built = build_diff(home, library, provide_jdk(home, None), path, observer.progress)
    jars = [*built.jars.values()]
    if output is not None:
        if len(jars) > 1:
            raise UsageError(f"--output: {path} changes several jars", hint="remove --output")
        with disk_errors(f"write {output}"):
            shutil.copyfile(jars[0], output)
        jars = [output]
    say(built.text, nl=False)
    classes = ", ".join(Path(entry).stem for entry in built.classes)
    say(f"Lucene {library.lucene}: {path.name}: {classes}, in {', '.join(built.jars)}")
    if built.left_out:
        say(f"Left out, being no part of a jar: {', '.join(built.left_out)}")
    for jar in jars:
        say(f"sha256 {digest(jar, 'sha256')} {jar}")
    words = [
        "benchctl", "run", "--challenge", "range-only-short",
        "--variant", spec.name,
        "--variant", f"control={spec.name},jar:{PATCHED}{RECOMPILED}{diff or name}",
        "--variant", f"patched={spec.name},jar:{PATCHED}{diff or name}",
    ]  # fmt: skip
    say(f"To measure it, with results compared: {shlex.join(words)}")
