"""`benchctl runs`: list and delete stored runs."""

from collections import Counter
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

import click

from benchctl.cli.options import (
    AmountType,
    TableFormat,
    complete_runs,
    no_runs,
    open_store,
    print_table,
    runs_option,
    stored_runs,
    table_format_option,
)
from benchctl.cli.streams import note, say
from benchctl.disk import disk_errors, remove_folder, size_bytes
from benchctl.errors import BenchctlError, UsageError
from benchctl.home import Home, resolve_home
from benchctl.quantities import DURATION
from benchctl.report.numbers import counted, mebibytes
from benchctl.report.table import Column, Table
from benchctl.results.model import moment
from benchctl.results.store import RunFolder, reference
from benchctl.slices import hooks

_ASIDE: Final = ".removed-"


@click.group("runs")
def runs_group() -> None:
    """List and delete stored runs."""


@runs_group.command("list")
@runs_option
@table_format_option
def list_command(runs_folder: Path | None, output_format: TableFormat) -> None:
    """List stored runs, oldest first."""
    store = stored_runs(runs_folder)
    if not store.folders():
        note(str(no_runs(store)))
        if output_format == "text":
            return
    records = [(folder, record, record.status) for folder, record in store.runs(note)]
    rows = [
        (
            record.id,
            state + (" (test mode)" if record.plan.test_mode else ""),
            list(record.plan.families),
            record.plan.corpus.documents or None,  # 0 stands for unknown in imported runs
            f"{record.total - len(record.missing())}/{record.total_text}",
            record.tags,
        )
        for _, record, state in records
    ]
    columns = ("run", "status", "variants", Column("documents", grouped=True), "forks", "tags")
    print_table(Table.listed("Stored runs", columns, rows), output_format)
    resumable = [folder for folder, _, state in records if state in {"cut off", "interrupted"}]
    if resumable:
        note(f"resume an unfinished run with: benchctl resume {reference(resumable[-1])}")


@runs_group.command("rm")
@click.argument("names", nargs=-1, required=True, metavar="RUN...", shell_complete=complete_runs)
@click.option("--force", is_flag=True, help="Delete runs that experiments or nights refer to, too.")
@runs_option
def rm_command(names: tuple[str, ...], runs_folder: Path | None, *, force: bool) -> None:
    """Delete the given runs without confirmation.

    RUN is a run id or a path. Runs in progress, and runs referenced by an experiment or a nightly suite, are
    not deleted; --force deletes referenced runs.
    """
    home = resolve_home()
    store = open_store(home, runs_folder)
    folders: dict[Path, RunFolder] = {}
    for name in names:
        folder = store.find(name)
        if "/" not in name and name != folder.path.name:
            raise UsageError(f"'{name}' is not a run id", hint=f"to delete it: {folder.path.name}")
        folders[folder.path] = folder
    references = {} if force else _references(home)
    for folder in folders.values():
        if who := folder.writer():
            raise BenchctlError(f"run {folder.path.name} is being measured: {who}", hint="wait for it")
        if who := _referring(folder, references):
            raise BenchctlError(
                f"{who} refers to run {folder.path.name}",
                hint="--force deletes it anyway; its values are then missing there",
            )
    for folder in folders.values():
        say(f"{folder.path.name} deleted, {mebibytes(_remove(folder))}")


@runs_group.command("prune")
@click.option("--keep", type=click.IntRange(0), metavar="N", help="Keep the newest N runs.")
@click.option(
    "--older-than",
    "age_s",
    type=AmountType(DURATION),
    metavar="DURATION",
    help="Only runs older than this, such as 30d.",
)
@click.option("--dry-run", is_flag=True, help="Print what would be deleted.")
@runs_option
def prune_command(keep: int | None, age_s: float | None, runs_folder: Path | None, *, dry_run: bool) -> None:
    """Delete old runs by count or age.

    With both --keep and --older-than, a run must meet both conditions. Runs in progress, tagged runs, and
    runs referenced by experiments or nightly suites are always kept.
    """
    if keep is None and age_s is None:
        raise UsageError("missing option --keep or --older-than", hint="e.g. --keep 20 or --older-than 30d")
    home = resolve_home()
    runs = list(open_store(home, runs_folder).runs(note))
    if keep is not None:
        runs = runs[: max(len(runs) - keep, 0)]
    before = datetime.now().astimezone() - timedelta(seconds=age_s or 0)
    references = _references(home)
    kept: Counter[str] = Counter()
    sizes: list[int] = []
    for folder, record in runs:
        began = moment(record.created)
        if age_s is not None and (began is None or began >= before):
            continue
        if folder.writer():
            kept["being measured"] += 1
        elif _referring(folder, references):
            kept["referenced"] += 1
        elif record.tags:
            kept["tagged"] += 1
        else:
            sizes.append(size_bytes(folder.path) if dry_run else _remove(folder))
            done = "would be deleted" if dry_run else "deleted"
            say(f"{folder.path.name} {done}, {mebibytes(sizes[-1])}")
    would = "would be " if dry_run else ""
    also = f"; kept: {', '.join(f'{count} {why}' for why, count in kept.items())}" if kept else ""
    say(f"{counted(len(sizes), 'run')} {would}deleted, {mebibytes(sum(sizes))} {would}freed{also}")


def _references(home: Home) -> dict[str, str]:
    """Return who refers to runs, by the runs' ids and paths: experiments and nights.

    Raises:
        BenchctlError: If a record cannot be read, and might refer to any run.
    """
    unread: list[str] = []
    found = {run: who for references in hooks("references") for run, who in references(home, unread.append)}
    if unread:
        raise BenchctlError(
            f"cannot determine which runs are still referenced: {unread[0]}",
            hint="repair or delete the unreadable file; `benchctl runs rm --force` skips this check",
        )
    return found


def _referring(folder: RunFolder, references: dict[str, str]) -> str:
    path = folder.path.resolve()
    return references.get(str(path)) or references.get(path.name, "")


def _remove(folder: RunFolder) -> int:
    """Delete a run, or the link to one that is only linked here; return the bytes freed."""
    # Out of the way in one step, so that nobody finds half a run. Should we be killed, the next goes on.
    with disk_errors(f"remove {folder.path}"):
        if folder.path.is_symlink():
            folder.path.unlink()
            return 0
        path = folder.path.resolve()  # it may be named `..`
        path.replace(path.with_name(f"{_ASIDE}{path.name}"))
    return sum(map(remove_folder, path.parent.glob(f"{_ASIDE}*")))
