"""`benchctl runs`: list and delete stored runs; to import and export them has its own modules."""

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import ClassVar, Final

import click
import msgspec

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
    tags_option,
)
from benchctl.cli.streams import note, say
from benchctl.disk import disk_errors, remove_folder, size_bytes
from benchctl.errors import BenchctlError, UsageError
from benchctl.home import Home, resolve_home
from benchctl.lock import LOCK_NAME, SHARE_VARIABLE, lock_name, measuring_pid, process_words
from benchctl.quantities import DURATION
from benchctl.report.numbers import counted, mebibytes
from benchctl.report.table import Column, Table
from benchctl.results.folders import LATEST
from benchctl.results.foreign import Race, Tool, read_races, record_of
from benchctl.results.model import RunRecord, moment
from benchctl.results.plan import VariantSpec
from benchctl.results.store import RunFolder, RunStore, new_run_id, reference
from benchctl.slices import hook, hooks

_DATE_AND_TIME: Final = "20261121-070102"


class _Runs(LazyGroup):
    sections: ClassVar = {
        "Commands": {
            "list": ("benchctl.cli.runs:list_command", "List stored runs, oldest first."),
            "rm": ("benchctl.cli.runs:rm_command", "Delete the given runs without confirmation."),
            "prune": ("benchctl.cli.runs:prune_command", "Delete old runs by count or age."),
            "import": (
                "benchctl.cli.runs:import_command",
                "Import Rally, OpenSearch Benchmark or JMH results.",
            ),
            "export": (
                "benchctl.cli.export:export_command",
                "Export runs to a metrics store or Parquet.",
            ),
        },
    }


@click.group("runs", cls=_Runs)
def runs_group() -> None:
    """List, delete, import and export stored runs."""


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
@click.option("--force", is_flag=True, help="Delete runs that experiments, nights or searches refer to, too.")
@runs_option
def rm_command(names: tuple[str, ...], runs_folder: Path | None, *, force: bool) -> None:
    """Delete the given runs without confirmation.

    RUN is a path, a run id, a unique suffix, or a prefix that includes date and time. Runs in progress, and
    runs referenced by an experiment, a nightly suite or a search, are not deleted; --force deletes referenced
    runs.
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
    runs referenced by experiments, nightly suites or searches are always kept.
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
    """References to runs: from experiments, nights, and searches for the smallest schedule.

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


# `benchctl runs import`: results of Rally, OpenSearch Benchmark and JMH as a run.

_LAST_ONLY_OF_OPENSEARCH = 4  # no tool that is left measures Elasticsearch before 5
_TOOLS: dict[str, Tool] = {"rally": "rally", "osb": "opensearch-benchmark"}


@click.command("import")
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path, dir_okay=False))
@click.option(
    "--variant",
    "variant_text",
    metavar="VARIANT",
    help="What was measured: es, os, es@8.19.0 or LABEL=es; of JMH any name.  [required]",
)
@click.option(
    "--tool",
    type=click.Choice(list(_TOOLS)),
    default=None,
    help="Tool that wrote the files.  [default: what they say]",
)
@tags_option
@runs_option
def import_command(
    files: tuple[Path, ...],
    variant_text: str | None,
    tool: str | None,
    tags: tuple[str, ...],
    runs_folder: Path | None,
) -> None:
    """Import Rally, OpenSearch Benchmark or JMH results.

    FILES are race.json (Rally), or test_run.json or test_execution.json (OpenSearch Benchmark): each becomes
    one fork of a single variant. A jmh-result.json contains its own forks. Imported runs have no samples and
    no host data, so some metrics and checks are unavailable.
    """
    if missing := next((file for file in files if not file.exists()), None):
        raise UsageError(f"no such file: {missing}")
    if variant_text is None:
        raise UsageError(
            "no file says what was measured",
            hint="name it: --variant es, os, es@8.19.0, or LABEL=es to keep it apart from others",
        )
    home = resolve_home()
    keep_rest: Callable[[Path, RunRecord], None] | None = None
    if imported := hook("imported")(files, variant_text, tags):
        label, made, keep_rest = imported
    else:
        races = read_races(files, None if tool is None else _TOOLS[tool])
        spec = _variant(variant_text, races[0])
        label = f"{races[0].tool}-{races[0].challenge or races[0].track or spec.name}"
        made = record_of(races, spec, "", tags=tags)
    store = open_store(home, runs_folder)
    store.open()
    # Sorted by when it was measured: an old race is not the newest result because it is imported today.
    moment = datetime.fromisoformat(max(fork.started for fork in made.forks))
    folder = store.create(new_run_id(label, f"{moment:%Y%m%d-%H%M%S}"))
    record = msgspec.structs.replace(made, id=folder.path.name)
    if keep_rest is not None:
        keep_rest(folder.path, record)
    folder.save(record)
    say(f"Run: {folder.path}\nShow: benchctl show {reference(folder, home.runs)}")
    for remark in record.caveats:
        note(remark)


def _variant(text: str, race: Race) -> VariantSpec:
    """Return the variant that the user names; it must not contradict the version in the file."""
    # What provisions engines takes a while to load, which whoever only lists runs need not wait for.
    from benchctl.engine.variant import parse_variant  # noqa: PLC0415 - see above

    spec = parse_variant(text)
    version = race.engine_version
    major = version.partition(".")[0]
    if spec.engine == "elasticsearch" and major.isdecimal() and int(major) <= _LAST_ONLY_OF_OPENSEARCH:
        raise UsageError(
            f"{race.path} measured version {version}, which is OpenSearch's, not Elasticsearch's",
            hint="import it as os, or as LABEL=os",
        )
    if "@" not in text:
        return spec if version else _of_unknown_version(spec)
    if version and version != spec.version:
        raise UsageError(
            f"{race.path} measured version {version}, not {spec.version}",
            hint=f"name another variant, such as {text.replace(spec.version, version)}",
        )
    return spec


def _of_unknown_version(spec: VariantSpec) -> VariantSpec:
    return VariantSpec(spec.name, spec.engine, "unknown", jvm_flags=spec.jvm_flags, settings=spec.settings)
