"""`benchctl runs`: list and delete stored runs."""

import os
from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import ClassVar, Final

import click

from benchctl.cli import LazyGroup
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
from benchctl.lock import LOCK_NAME, SHARE_VARIABLE, lock_name, measuring_pid, process_words
from benchctl.quantities import DURATION
from benchctl.report.numbers import counted, mebibytes
from benchctl.report.table import Column, Table
from benchctl.results.model import RunRecord, moment
from benchctl.results.store import LATEST, RunFolder, RunStore
from benchctl.slices import hooks

_DATE_AND_TIME: Final = "20261121-070102"


class _Runs(LazyGroup):
    sections: ClassVar = {
        "Commands": {
            "list": ("benchctl.cli.runs:list_command", "List stored runs, oldest first."),
            "rm": ("benchctl.cli.runs:rm_command", "Delete the given runs without confirmation."),
            "prune": ("benchctl.cli.runs:prune_command", "Delete old runs by count or age."),
        },
    }


@click.group("runs", cls=_Runs)
def runs_group() -> None:
    """List and delete stored runs."""


@click.command("list")
@runs_option
@table_format_option
def list_command(runs_folder: Path | None, output_format: TableFormat) -> None:
    """List stored runs, oldest first."""
    store = stored_runs(runs_folder)
    if not store.folders():
        note(str(no_runs(store)))
        if output_format == "text":
            return
    records = [(record, state_of(record)) for _, record in store.runs(note)]
    rows = [
        (
            record.id,
            state + (" (test mode)" if record.plan.test_mode else ""),
            list(record.plan.families),
            record.plan.corpus.documents or None,  # 0 stands for unknown in imported runs
            f"{record.total - len(record.missing())}/{record.total_text}",
            record.tags,
        )
        for record, state in records
    ]
    columns = ("run", "status", "variants", Column("documents", grouped=True), "forks", "tags")
    print_table(Table.listed("Stored runs", columns, rows), output_format)
    resumable = [record.id for record, state in records if state in {"cut off", "interrupted"}]
    if resumable:
        note(f"resume an unfinished run with: benchctl resume {resumable[-1]}")


@click.command("rm")
@click.argument("names", nargs=-1, required=True, metavar="RUN...", shell_complete=complete_runs)
@click.option("--force", is_flag=True, help="Delete runs that experiments or nights refer to, too.")
@runs_option
def rm_command(names: tuple[str, ...], runs_folder: Path | None, *, force: bool) -> None:
    """Delete the given runs without confirmation.

    RUN is a path, a run id, a unique suffix, or a prefix that includes date and time. Runs in progress, and
    runs referenced by an experiment or a nightly suite, are not deleted; --force deletes referenced runs.
    """
    if LATEST in names:
        raise UsageError(
            "cannot delete 'latest': a run id is required", hint="list runs with: benchctl runs list"
        )
    home = resolve_home()
    store = open_store(home, runs_folder)
    folders = list({folder.path: folder for folder in (_named(store, name) for name in names)}.values())
    references = None if force else References(home)
    for folder in folders:
        if who := _measuring(folder):
            raise BenchctlError(f"run {folder.path.name} is being measured: {who}", hint="wait for it")
        if references is not None and (who := references.to(folder)):
            raise BenchctlError(
                f"{who} refers to run {folder.path.name}",
                hint="with --force it is deleted all the same, and its figures are missing there",
            )
    for folder in folders:
        say(f"{folder.path.name} deleted, {mebibytes(remove_run(folder))}")


def _named(store: RunStore, name: str) -> RunFolder:
    """Return the run of an unambiguous name; that `2` begins only one id today makes it no choice."""
    folder = store.find(name)
    if name != folder.path.name and folder.path.name.startswith(name) and len(name) < len(_DATE_AND_TIME):
        raise UsageError(
            f"'{name}' is too short to delete a run by: {folder.path.name} begins with it",
            hint="give all of its id, or its date and time",
        )
    return folder


@click.command("prune")
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
    store = open_store(home, runs_folder)
    before = None if age_s is None else datetime.now().astimezone() - timedelta(seconds=age_s)
    references = References(home)
    kept: Counter[str] = Counter()
    gone = freed = 0
    for folder, record in _old(store.runs(note), keep, before):
        if _measuring(folder):
            kept["being measured"] += 1
        elif references.to(folder):
            kept["referred to"] += 1
        elif record.tags:
            kept["tagged"] += 1
        else:
            size = size_bytes(folder.path) if dry_run else remove_run(folder)
            say(f"{folder.path.name} {'would be deleted' if dry_run else 'deleted'}, {mebibytes(size)}")
            gone, freed = gone + 1, freed + size
    would = "would be " if dry_run else ""
    also = f"; kept: {', '.join(f'{count} {why}' for why, count in kept.items())}" if kept else ""
    say(f"{counted(gone, 'run')} {would}deleted, {mebibytes(freed)} {would}freed{also}")


def _measuring(folder: RunFolder) -> str:
    """Return the process that may be measuring a run; empty when none is."""
    try:
        record = folder.load()
    except BenchctlError:
        return ""  # what cannot be read is not being written either
    return "" if state_of(record) != "running" else process_words(_measurer())


def state_of(record: RunRecord) -> str:
    """Return a run's status; one that is unfinished and that nobody measures was cut off."""
    return "cut off" if record.status == "running" and _measurer() is None else record.status


def _measurer() -> int | None:
    names = (LOCK_NAME, lock_name({**os.environ, SHARE_VARIABLE: "1"}))
    return next(filter(None, map(measuring_pid, names)), None)


_ASIDE: Final = ".removed-"


class References:
    """References to runs: from experiments and nights.

    Raises:
        BenchctlError: If a record cannot be read, and might refer to any run.
    """

    def __init__(self, home: Home) -> None:
        unread: list[str] = []
        self._by_run: dict[str, str] = {
            run: who for references in hooks("references") for run, who in references(home, unread.append)
        }
        if unread:
            raise BenchctlError(
                f"it is not known which runs are still referred to: {unread[0]}",
                hint="mend or delete what cannot be read; `benchctl runs rm --force` does not ask",
            )

    def to(self, folder: RunFolder) -> str:
        """Return who refers to a run, as text; empty for nobody."""
        path = folder.path.resolve()
        return self._by_run.get(str(path)) or self._by_run.get(path.name, "")


def _old(
    runs: Iterable[tuple[RunFolder, RunRecord]], keep: int | None, before: datetime | None
) -> Iterator[tuple[RunFolder, RunRecord]]:
    """Yield all but the newest `keep` runs, those that began before a time, from oldest to newest."""
    ordered = list(runs)
    for folder, record in ordered if keep is None else ordered[: max(len(ordered) - keep, 0)]:
        began = moment(record.created)  # another tool's file may not say
        if before is None or (began is not None and began < before):
            yield folder, record


def remove_run(folder: RunFolder) -> int:
    """Delete a run, or the link to one that is only linked here; return the bytes freed.

    Raises:
        BenchctlError: If the disk refuses.
    """
    # Out of the way in one step, so that nobody finds half a run. Should we be killed, the next goes on.
    with disk_errors(f"remove {folder.path}"):
        if folder.path.is_symlink():
            folder.path.unlink()
            return 0
        path = folder.path.resolve()  # it may be named `..`
        path.replace(path.with_name(f"{_ASIDE}{path.name}"))
    return sum(map(remove_folder, path.parent.glob(f"{_ASIDE}*")))
