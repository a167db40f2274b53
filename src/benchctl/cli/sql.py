"""`benchctl sql`: one query over runs and all their samples, and over the nights of suites."""

from collections.abc import Sequence
from pathlib import Path

import click

from benchctl.cli.options import TableFormat, open_store, print_table, runs_option, table_format_option
from benchctl.cli.streams import note, say
from benchctl.errors import UsageError
from benchctl.home import Home, resolve_home
from benchctl.report.table import Column, Table
from benchctl.results.model import moment
from benchctl.results.sql import ONE_ROW, FileView, StoredRun, answered, view_columns
from benchctl.results.store import RunStore
from benchctl.slices import hooks


@click.command("sql")
@click.argument("query", required=False)
@click.option("--run", "runs", multiple=True, metavar="RUN", help="Only these runs. Repeatable.")
@click.option("--views", is_flag=True, help="Describe the tables and their columns instead.")
@runs_option
@table_format_option
def sql_command(
    query: str | None,
    runs: tuple[str, ...],
    runs_folder: Path | None,
    output_format: TableFormat,
    *,
    views: bool,
) -> None:
    """Query stored runs and samples with SQL.

    The tables are runs, forks, tasks and samples, and nights for the history of nightly suites. Nothing
    else can be read, and nothing written.
    """
    if views:
        _describe(output_format, _slice_views(resolve_home()))
        return
    if not query:
        raise UsageError("sql needs a query", hint='for example: benchctl sql "select * from runs"')
    home = resolve_home()
    stored = stored_runs(open_store(home, runs_folder), runs)
    with answered(query, stored, _slice_views(home), note) as answer:
        columns = (Column(name) if at in answer.numeric else name for at, name in enumerate(answer.columns))
        print_table(Table.listed("Answer of a query", columns, answer.rows), output_format)


def stored_runs(store: RunStore, names: tuple[str, ...]) -> list[StoredRun]:
    """Return the named runs, or all."""
    if names:
        stored: list[StoredRun] = []
        for folder in {folder.path.resolve(): folder for folder in map(store.find, names)}.values():
            record = folder.load()
            if any(run.record.id == record.id for run in stored):
                note(f"{folder.path} is another copy of run {record.id}, which counts once")
            else:
                stored.append(StoredRun(folder, record))
    else:
        stored = [StoredRun(folder, record) for folder, record in store.runs(note)]
    for run in stored:
        if moment(run.record.created) is None:
            note(f"{run.folder.record_path}: '{run.record.created}' is not a time, and is left out")
    return stored


def _slice_views(home: Home) -> list[FileView]:
    return [view(home) for view in hooks("sql_view")]


def _describe(output_format: TableFormat, views: Sequence[FileView]) -> None:
    """Print the views, described by the code that makes them."""
    described = [
        *((name, one_row, view_columns(name)) for name, one_row in ONE_ROW.items()),
        *((view.name, view.one_row, view_columns(view)) for view in views),
    ]
    if output_format != "text":
        rows = [(name, *column) for name, _, columns in described for column in columns]
        heads = ("view", "column", "type", "meaning")
        print_table(Table.listed("What benchctl sql can be answered", heads, rows), output_format)
        return
    for name, one_row, columns in described:
        say(f"{name}: {one_row}")
        for column, sql_type, meaning in columns:
            say(f"  {column:<20} {sql_type:<10} {meaning}")
