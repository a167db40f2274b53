"""What is kept of old nights: figures and records for ever, samples, logs and engines for some time."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Annotated, Final

import msgspec

from benchctl.disk import remove_folder
from benchctl.errors import BenchctlError
from benchctl.home import Home
from benchctl.nightly.retention.ages import looked_into, night_of_run, old_nights
from benchctl.nightly.retention.engines import Leftovers, run_use
from benchctl.report.numbers import mebibytes
from benchctl.results.model import ForkRecord, RunRecord
from benchctl.results.nightly.events import Alarm
from benchctl.results.nightly.folder import SuiteFolder
from benchctl.results.nightly.model import NightRecord
from benchctl.results.store import RunStore

Nights = Annotated[int, msgspec.Meta(ge=1)]

RAW_FOLDERS: Final = ("forks", "telemetry", "boots", "evidence")
"""What of a run's folder is raw: samples, what nodes used, their logs, and what was collected beside them."""


class Retention(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """For how many measured nights things are kept.

    Attributes:
        raw_nights: samples, telemetry, logs of nodes, and evidence; None for ever.
        engine_nights: engines with their archives, and prepared indices; None for ever.
    """

    raw_nights: Nights | None = 30
    engine_nights: Nights | None = 30


def apply_retention(
    folder: SuiteFolder,
    nights: Iterable[NightRecord],
    store: RunStore,
    home: Home,
    keep: Retention,
    alarms: Iterable[Alarm],
) -> list[str]:
    """Remove what is older than what is to be kept; to be called under the lock of the suite.

    The nights that an open alarm is about keep everything: somebody is going to look into them. Nothing is
    removed that was not measured, fetched or built for the suite.

    Args:
        folder: of the suite.
        nights: of the suite, tonight's included, in any order.
        store: where their runs are.
        home: where engines and indices are.
        keep: for how many nights.
        alarms: of the suite, as they stand.

    Returns:
        What was removed, and what could not be, in words.

    Raises:
        BenchctlError: the disk refuses.
    """
    nights, alarms = list(nights), list(alarms)
    told: list[str] = []
    if keep.raw_nights is not None:
        told += _strip_runs(store, old_nights(nights, keep.raw_nights, looked_into(alarms)))
    if keep.engine_nights is not None:
        told += Leftovers(folder, home, store, keep.engine_nights).remove(nights, alarms)
    return told


def _strip_runs(store: RunStore, old: Sequence[NightRecord]) -> Iterator[str]:
    """Remove what is raw of the runs of old nights, also of those that were cut off before they named one."""
    for folder in store.folders() if old else ():
        # Most runs were looked at in an earlier night, and have nothing left.
        raw = [folder.path / name for name in RAW_FOLDERS if (folder.path / name).is_dir()]
        try:
            night = night_of_run(run_use(folder).tags, old) if raw else None
            if night is not None:
                record = folder.load()
                # The record first: should we be killed here, the next night removes the rest.
                folder.save(_without_raw(record))
                freed = sum(map(remove_folder, raw))
                yield f"samples and logs of night {night.id}, run {record.id}, removed, {mebibytes(freed)}"
        except BenchctlError as err:
            yield f"run {folder.path.name} stays as it is: {err.message}"


def _without_raw(record: RunRecord) -> RunRecord:
    return msgspec.structs.replace(record, forks=tuple(map(_fork_without_raw, record.forks)))


def _fork_without_raw(fork: ForkRecord) -> ForkRecord:
    boots = tuple(msgspec.structs.replace(boot, logs="") for boot in fork.boots)
    return msgspec.structs.replace(fork, samples=None, telemetry=None, boots=boots, files={})
