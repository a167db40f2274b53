"""`benchctl list` and `benchctl help`: what is shipped and declared, and pages of the documentation."""

import re
import sys
from pathlib import Path

import click

from benchctl.cli.options import TableFormat, print_table, table_format_option
from benchctl.cli.streams import is_terminal, say
from benchctl.engine.variant import BUILT_IN_VERSIONS, load_variants, parse_variant
from benchctl.errors import UsageError, guess
from benchctl.report.table import Column, Share, Table
from benchctl.results.likeness import beyond
from benchctl.results.metrics import METRIC_KINDS
from benchctl.spec import setting
from benchctl.stats.metrics import used_by
from benchctl.track.library import challenge_names, find_challenge, shipped, track_names
from benchctl.track.load import load_challenge, load_track
from benchctl.track.model import Task, Track


@click.group("list")
def list_group() -> None:
    """List challenges, tracks, operations, metrics and variants."""


@list_group.command("challenges")
@click.option("--track", "track_name", metavar="NAME|PATH", help="List those of a track.")
@table_format_option
def challenges_command(track_name: str | None, output_format: TableFormat) -> None:
    """List challenges and their schedules."""
    track, _ = load_track(track_name or "big5", {})
    challenges = dict(track.challenges)
    if track_name is None:
        challenges = {
            name: load_challenge(str(find_challenge(name)), track, {})[0] for name in challenge_names()
        }
    rows = [(name, [_extent(task) for task in challenge.schedule]) for name, challenge in challenges.items()]
    title = "Shipped challenges" if track_name is None else f"Challenges of {track.name}"
    print_table(Table.listed(title, ("challenge", "schedule"), rows), output_format)


@list_group.command("tracks")
@table_format_option
def tracks_command(output_format: TableFormat) -> None:
    """List shipped tracks."""
    tracks = [load_track(name, {})[0] for name in track_names()]
    rows = [(track.name, places(track), len(track.operations)) for track in tracks]
    columns = ("track", "indices", Column("operations"))
    print_table(Table.listed("Shipped tracks", columns, rows), output_format)


@list_group.command("operations")
@click.option(
    "--track",
    "track_name",
    default="big5",
    show_default=True,
    metavar="NAME|PATH",
    help="Track whose operations to list.",
)
@table_format_option
def operations_command(track_name: str, output_format: TableFormat) -> None:
    """List the operations of a track."""
    track, _ = load_track(track_name, {})
    rows = []
    for operation in track.operations.values():
        body = getattr(operation, "body", None)
        rows.append((operation.name, operation.type_name, list(body) if isinstance(body, dict) else []))
    columns = ("operation", "type", "body")
    print_table(Table.listed(f"Operations of {track.name}", columns, rows), output_format)


@list_group.command("metrics")
@table_format_option
def metrics_command(output_format: TableFormat) -> None:
    """List metrics with unit, margin and description."""
    print_table(metrics_table(), output_format)


def metrics_table() -> Table:
    """Return all metrics as they are declared."""
    rows = [
        (
            figure.name,
            figure.unit,
            figure.better,
            Share(figure.margin),
            figure.level,
            "yes" if figure.told_by_targets else "no",
            figure.meaning,
            used_by(figure),
        )
        for figure in METRIC_KINDS
    ]
    columns = ("metric", "unit", "better", Column("margin"), "level", "target", "meaning", "used by")
    return Table.listed("Metrics", columns, rows)


@list_group.command("variants")
@click.option(
    "--variants",
    "variants_file",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help=setting("variants_file").meta.description,
)
@table_format_option
def variants_command(variants_file: Path | None, output_format: TableFormat) -> None:
    """List built-in variants and those in a variants file.

    Any other version is NAME@VERSION.
    """
    specs = [parse_variant(engine) for engine in BUILT_IN_VERSIONS]
    if variants_file is not None:
        specs += load_variants(variants_file).values()
    rows = [(spec.name, spec.engine, spec.version, list(beyond(spec))) for spec in specs]
    print_table(Table.listed("Variants", ("variant", "engine", "version", "with"), rows), output_format)


def _extent(task: Task) -> str:
    """Return a task and how often it runs, or for how long, if it specifies that."""
    if task.time_period is not None:
        return f"{task.label} {task.time_period:g} s"
    return task.label if task.iterations is None else f"{task.label} x{task.iterations}"


def places(track: Track) -> list[str]:
    """Return where the documents of a track go."""
    return [index.name for index in track.indices] or list(track.data_streams)


# Pages of the documentation, without a network.

_COMMENT = re.compile(r"<!--.*?-->\n?", re.DOTALL)
_SECTIONS = ("start", "how-to", "concepts", "method", "reference", "case-studies")


@click.command("help")
@click.argument("topic", required=False, default="")
def help_command(topic: str) -> None:
    """Read a page of the documentation, e.g. `benchctl help sweeps`; without TOPIC, list the pages."""
    pages = _pages()
    if not topic:
        for section in _SECTIONS:
            say(f"\n{section.replace('-', ' ').capitalize()}:")
            for name, path in pages.items():
                if path.parent.name == section:
                    say(f"  {name:<20} {_title(path)}")
        say("\nRead one: benchctl help TOPIC")
        return
    named = topic.lower().replace(" ", "-")
    if named not in pages:
        raise UsageError(f"no page '{topic}'", hint=guess(named, pages) or "list all with: benchctl help")
    text = _COMMENT.sub("", pages[named].read_text(encoding="utf-8"))
    if not is_terminal(sys.stdout):
        say(text, nl=False)
        return
    from rich.console import Console  # noqa: PLC0415 - takes a while to load
    from rich.markdown import Markdown  # noqa: PLC0415 - the same

    console = Console()
    with console.pager(styles=True):
        console.print(Markdown(text))


def _pages() -> dict[str, Path]:
    """Name -> file, by section; a name that an earlier section has gets its section's in front."""
    pages: dict[str, Path] = {}
    for section in _SECTIONS:
        for path in sorted((shipped("docs") / "pages" / section).glob("*.md")):
            if path.stem != "index":
                pages[f"{section}-{path.stem}" if path.stem in pages else path.stem] = path
    return pages


def _title(path: Path) -> str:
    lines = path.read_text(encoding="utf-8").splitlines()
    return next(line.removeprefix("# ") for line in lines if line.startswith("# "))
