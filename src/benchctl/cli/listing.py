"""`benchctl list`: what is shipped and declared."""

from pathlib import Path

import click

from benchctl.cli.options import TableFormat, print_table, table_format_option
from benchctl.cli.run_options import variants_option
from benchctl.engine.variant import BUILT_IN_VERSIONS, load_variants, parse_variant
from benchctl.report.table import Column, Share, Table
from benchctl.results.likeness import beyond
from benchctl.results.metrics import METRIC_KINDS
from benchctl.stats.metrics import used_by
from benchctl.track.library import challenge_names, find_challenge, track_names
from benchctl.track.load import load_challenge, load_track
from benchctl.track.model import Task, Track


@click.group("list")
def list_group() -> None:
    """List challenges, tracks, operations, metrics and variants."""


@list_group.command("challenges")
@click.option("--track", "track_name", default=None, metavar="NAME|PATH", help="List those of a track.")
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
    help="Track whose operations to send.",
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
@variants_option
@table_format_option
def variants_command(variants_file: Path | None, output_format: TableFormat) -> None:
    """List built-in variants and those in a variants file.

    Any other version is NAME@VERSION.
    """
    specs = [parse_variant(engine) for engine in BUILT_IN_VERSIONS]
    if variants_file is None:
        rows: list[tuple[object, ...]] = [(spec.name, spec.engine, spec.version) for spec in specs]
        columns: tuple[str, ...] = ("variant", "engine", "version")
        print_table(Table.listed("Built-in variants", columns, rows), output_format)
        return
    specs += load_variants(variants_file).values()
    rows = [(spec.name, spec.engine, spec.version, list(beyond(spec))) for spec in specs]
    title = f"Variants of {variants_file}, and built-in ones"
    print_table(Table.listed(title, ("variant", "engine", "version", "with"), rows), output_format)


def _extent(task: Task) -> str:
    """Return a task and how often it runs, or for how long, if it specifies that."""
    if task.time_period is not None:
        return f"{task.label} {task.time_period:g} s"
    return task.label if task.iterations is None else f"{task.label} x{task.iterations}"


def places(track: Track) -> list[str]:
    """Return where the documents of a track go."""
    return [index.name for index in track.indices] or list(track.data_streams)
