"""`benchctl list`: what there is."""

import sys
from pathlib import Path

import click
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from benchctl.cli.options import open_store, runs_option
from benchctl.cli.streams import is_terminal
from benchctl.engine.variant import BUILT_IN_VERSIONS, parse_variant
from benchctl.home import resolve_home
from benchctl.track.library import challenge_names, find_challenge, track_names
from benchctl.track.load import load_challenge, load_track

_UNFOLDED = 10_000


@click.group("list")
def list_group() -> None:
    """List runs, challenges, tracks, variants or operations."""


def _print(table: Table) -> None:
    # Lines of a file or a pipe are not folded: programs read them.
    width = None if is_terminal(sys.stdout) else _UNFOLDED
    Console(highlight=False, width=width).print(table)


def _table(*columns: str) -> Table:
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for column in columns:
        table.add_column(column, overflow="fold")
    return table


@list_group.command("runs")
@runs_option
def runs_command(runs_folder: Path | None) -> None:
    """Stored runs, oldest first."""
    table = _table("run", "status", "variants", "documents", "forks")
    for _, record in open_store(resolve_home(), runs_folder).runs():
        plan = record.plan
        total = plan.forks * len(plan.variants)
        table.add_row(
            record.id,
            record.status,
            ", ".join(variant.name for variant in plan.variants),
            f"{plan.corpus.documents:,}",
            f"{total - len(record.missing())}/{total}",
        )
    _print(table)


@list_group.command("challenges")
def challenges_command() -> None:
    """Shipped challenges and their schedules."""
    track, _ = load_track("big5", {})
    table = _table("challenge", "schedule")
    for name in challenge_names():
        challenge, _ = load_challenge(str(find_challenge(name)), track, {})
        table.add_row(name, ", ".join(f"{task.label} x{task.iterations or 1}" for task in challenge.schedule))
    _print(table)


@list_group.command("tracks")
def tracks_command() -> None:
    """Shipped tracks."""
    table = _table("track", "index", "operations")
    for name in track_names():
        track, _ = load_track(name, {})
        table.add_row(name, track.index_name, str(len(track.operations)))
    _print(table)


@list_group.command("operations")
@click.option("--track", "track_name", default="big5", show_default=True, help="Whose operations.")
def operations_command(track_name: str) -> None:
    """Operations of a track."""
    track, _ = load_track(track_name, {})
    table = _table("operation", "type", "body")
    for operation in track.operations.values():
        body = getattr(operation, "body", None)
        keys = ", ".join(body) if isinstance(body, dict) else ""
        table.add_row(operation.name, operation.type_name, keys)
    _print(table)


@list_group.command("variants")
def variants_command() -> None:
    """Built-in variants; any other version is NAME@VERSION."""
    table = _table("variant", "engine", "version")
    for engine in BUILT_IN_VERSIONS:
        spec = parse_variant(engine, distributions={}, jdks={})
        table.add_row(spec.name, spec.engine, spec.version)
    _print(table)
