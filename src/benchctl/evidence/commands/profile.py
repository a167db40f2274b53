"""`benchctl explain RUN profile`: where nodes spent their time, as tables, flame graphs and differences."""

import re
from dataclasses import dataclass
from pathlib import Path

import click

from benchctl.cli.options import grouped, open_run, printed_as, runs_option
from benchctl.cli.streams import complain, emit, say
from benchctl.disk import disk_errors, replacing
from benchctl.errors import UsageError
from benchctl.evidence.profile_report import (
    Form,
    Side,
    collapsed_text,
    difference_text,
    document_text,
    flame_page,
    profile_sides,
    profile_text,
)

# What files that it may replace begin with.
_START_CHARACTERS = 4096
_FLAME = re.compile(r'<meta name="generator" content="benchctl ')
_COLLAPSED = re.compile(r"\A\[[^\n]*?\](?:;[^\n]*)?(?: \d+\n|\Z)")


@dataclass(frozen=True)
class Files:
    """Output instead of a table."""

    collapsed: Path | None
    flame: Path | None


form_options = grouped(
    "form",
    Form,
    click.option(
        "--mode", type=click.Choice(["cpu", "native"]), default="cpu", show_default=True,
        help="Threads that ran Java, or those in native code that did not wait there.",
    ),
    click.option(
        "--by", "lines", type=click.Choice(["method", "line"]), default="method", show_default=True,
        callback=lambda _context, _param, by: by == "line", help="What is told apart.",
    ),
    click.option(
        "--stack", "size", type=click.IntRange(1, 100), default=1, show_default=True, metavar="N",
        help="Frames of a stack that are told apart: the running one and its callers.",
    ),
    click.option("--inclusive", is_flag=True, help="Count a frame wherever it is in a stack."),
    click.option("--top", type=click.IntRange(1), default=30, show_default=True, help="Rows to show."),
    click.option("--thread", default="", metavar="REGEX", help="Only threads whose names match."),
    click.option(
        "--task", default="", metavar="[CHALLENGE/]TASK",
        help="Only what was sampled while this task was measured.  [default: while any was]",
    ),
    click.option(
        "--recorded", is_flag=True,
        help="All that was sampled: starting up, warming up and pauses, too.",
    ),
)  # fmt: skip
files_options = grouped(
    "files",
    Files,
    click.option(
        "--collapsed", type=click.Path(path_type=Path, dir_okay=False), default=None, metavar="FILE",
        help="Write collapsed stacks, for other tools.",
    ),
    click.option(
        "--flame", type=click.Path(path_type=Path, dir_okay=False), default=None, metavar="FILE.html",
        help="Write a flame graph that needs no network; with --diff, coloured by the difference.",
    ),
)  # fmt: skip


@click.command("profile")
@click.option("--variant", metavar="VARIANT", help="Only this one.")
@click.option(
    "--diff", nargs=2, default=None, metavar="BASELINE CONTENDER", help="How two variants' shares differ."
)
@form_options
@files_options
@printed_as("text", "json", about="Output format.")
@runs_option
@click.pass_obj
def profile_command(
    run: str,
    variant: str | None,
    diff: tuple[str, str] | None,
    form: Form,
    files: Files,
    output_format: str,
    runs_folder: Path | None,
) -> None:
    """Show where nodes spent CPU time, as table or flame graph.

    Collect profiles with `benchctl run --evidence profile`.
    """
    if diff is not None and variant is not None:
        raise UsageError("--diff names its variants itself", hint="remove --variant")
    if form.recorded and form.task:
        raise UsageError("--task and --recorded say two things about when", hint="use only one of them")
    if diff is not None and len(set(diff)) == 1:
        raise UsageError("--diff needs two different variants")
    if diff is not None and files.collapsed is not None:
        raise UsageError(
            "--collapsed is for one variant, and --diff names two", hint="give --variant instead of --diff"
        )
    folder, record = open_run(run, runs_folder)
    sides = profile_sides(folder, record, diff or ((variant,) if variant else ()), form)
    if files.collapsed is not None:
        _write(files.collapsed, collapsed_text(_only(sides)), _COLLAPSED)
    if files.flame is not None:
        _write(files.flame, flame_page(record.id, sides if diff else [_only(sides)], form), _FLAME)
    if files.collapsed is not None or files.flame is not None:
        return
    if output_format == "json":
        emit(document_text(record.id, sides, form, differ=diff is not None))
    else:
        say(profile_text(sides, form) if diff is None else difference_text(sides, form))


def _only(sides: list[Side]) -> Side:
    if len(sides) > 1:
        names = ", ".join(side.heading.name for side in sides)
        raise UsageError(
            f"there are profiles of {names}, and the file is for one", hint="name it with --variant"
        )
    return sides[0]


def _write(target: Path, text: str, ours: re.Pattern[str]) -> None:
    with disk_errors(f"write {target}"):
        _refuse_foreign(target, ours)
        if target.is_symlink() or (target.exists() and not target.is_file()):
            # Such as /dev/stdout: it is written to, and not replaced.
            target.write_text(text, encoding="utf-8")
        else:
            with replacing(target) as partial:
                partial.write_text(text, encoding="utf-8")
    complain(f"Written: {target}")


def _refuse_foreign(target: Path, ours: re.Pattern[str]) -> None:
    """Refuse to overwrite other files because of a typing mistake."""
    if not target.is_file():
        return
    with target.open(encoding="utf-8", errors="replace") as file:
        start = file.read(_START_CHARACTERS)
    if start and not ours.search(start):
        raise UsageError(f"{target} exists and was not written by benchctl", hint="name another file")
