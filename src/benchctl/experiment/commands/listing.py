"""`benchctl experiment list`: what there is to run, and what was run."""

import click

from benchctl.cli.options import TableFormat, print_table, table_format_option
from benchctl.cli.streams import note
from benchctl.experiment.execution import runs_of
from benchctl.experiment.file import experiment_names, find_experiment, read_experiment
from benchctl.experiment.record import ExperimentRecord, ExperimentStore
from benchctl.home import resolve_home
from benchctl.report.table import Column, Table
from benchctl.results.store import RunStore

Row = tuple[object, ...]


@click.command("list")
@table_format_option
def list_command(output_format: TableFormat) -> None:
    """List shipped experiments and past executions."""
    home = resolve_home()
    runs = RunStore(home.root / "runs")
    rows: list[Row] = []
    for name in experiment_names():
        spec = read_experiment(find_experiment(name)).spec
        rows.append((name, None, "shipped", len(spec.measurements), None, spec.title))
    # Whoever only looks makes no folder.
    for _, record in ExperimentStore(home.root / "experiments").records(note):
        rows.append(_executed(record, runs))
    columns = ("experiment", "id", "status", Column("measurements"), "forks", "title")
    print_table(Table.listed("Experiments", columns, rows), output_format)


def _executed(record: ExperimentRecord, store: RunStore) -> Row:
    spec = record.spec
    runs = runs_of(record, store, note).values()
    done = sum(run.total - len(run.missing()) for run in runs)
    return (
        spec.name,
        record.id,
        record.status,
        len(spec.measurements),
        f"{done}/{spec.total_forks}",
        spec.title,
    )
