"""Retention of large data: indices, logs, samples and runs of nights that nothing needs any more."""

import shutil
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Annotated, Final

import msgspec
import psutil

from benchctl.disk import disk_errors, read_file, remove_folder, size_bytes
from benchctl.errors import BenchctlError
from benchctl.home import Home
from benchctl.nightly.folder import SuiteFolder, suites
from benchctl.nightly.model import Alarm, NightRecord, alarms_of
from benchctl.report.numbers import mebibytes
from benchctl.results.model import ForkRecord
from benchctl.results.store import RunFolder, RunStore

_ENGINES = 2


def old_nights(nights: Iterable[NightRecord], keep: int, spared: Collection[str]) -> list[NightRecord]:
    """Return the nights before the newest `keep`, at least 1, that have a run, interrupted ones included.

    `spared` are ids of nights that are never old.
    """
    ordered = sorted(nights, key=lambda night: night.number)
    measured = [night.number for night in ordered if night.run]
    if len(measured) <= keep:
        return []
    return [night for night in ordered if night.number < measured[-keep] and night.id not in spared]


def looked_into(alarms: Iterable[Alarm]) -> frozenset[str]:
    """Return ids of the nights that open alarms are about: their data will be wanted."""
    return frozenset(
        night
        for alarm in alarms
        if alarm.state == "open"
        for night in (alarm.raised.last_good, alarm.raised.since, alarm.raised.night)
    )


def confirmed_against(nights: Iterable[NightRecord]) -> frozenset[str]:
    """Return ids of the newest nights that had the last two engines of a variant.

    A change that crept up under one engine is confirmed against the one before, however long ago.
    """
    by_variant: dict[str, dict[str, str]] = {}
    for night in sorted(nights, key=lambda night: night.number, reverse=True):
        for variant in night.variants:
            engines = by_variant.setdefault(variant.label, {})
            if variant.facts is not None and len(engines) < _ENGINES:
                engines.setdefault(variant.facts.archive_sha256, night.id)
    return frozenset(night for engines in by_variant.values() for night in engines.values())


def night_of_run(tags: Collection[str], nights: Sequence[NightRecord]) -> NightRecord | None:
    """Return the night that a run was made in, by its tags; None when it was none of them."""
    if "nightly" not in tags:
        return None
    return next((night for night in nights if night.id in tags and night.suite in tags), None)


Nights = Annotated[int, msgspec.Meta(ge=1)]

_RAW_FOLDERS: Final = ("forks", "boots")
"""Raw parts of a run's directory: samples, and logs of nodes."""


_MANIFEST: Final = "manifest.json"


@dataclass(frozen=True)
class Leftover:
    """Something in benchctl's home that can be fetched or built again."""

    key: str  # digest by which records know it: of the archive, or of the prepared index
    made_s: float  # when it was complete, seconds since the epoch
    paths: tuple[Path, ...]  # its files and folders, in the order of removal


class RunUse(msgspec.Struct, frozen=True, rename="kebab"):
    """Files that a run used: the relevant fields of a `RunRecord`, of any version."""

    tags: tuple[str, ...] = ()  # words that the run was given
    engines: tuple["_Engine", ...] = ()  # facts of its engines
    indices: dict[str, "_Index"] = {}  # variant -> its prepared indices
    builds: dict[str, tuple["_Index", ...]] = {}

    @property
    def keys(self) -> frozenset[str]:
        """Digests of archives and of prepared indices."""
        indices = [*self.indices.values(), *(index for builds in self.builds.values() for index in builds)]
        return frozenset(
            [engine.archive_sha256 for engine in self.engines] + [index.key for index in indices]
        )


class _Engine(msgspec.Struct, frozen=True, rename="kebab"):
    archive_sha256: str


class _Index(msgspec.Struct, frozen=True):
    key: str


class _Made(msgspec.Struct, frozen=True):
    """The manifest of an engine or of a prepared index, or what is known of an archive."""

    archive_sha256: str = ""
    key: str = ""
    sha256: str = ""


_USE: Final = msgspec.json.Decoder(RunUse)
_MADE: Final = msgspec.json.Decoder(_Made)


def _run_use(folder: RunFolder) -> RunUse:
    """Return what a run used."""
    try:
        return _USE.decode(read_file(folder.record_path))
    except (OSError, msgspec.DecodeError, UnicodeDecodeError) as err:
        raise BenchctlError(f"cannot read {folder.record_path}: {err}") from err


def program_in_use(path: Path) -> bool:
    """Return whether a process was started from a folder, such as a node of another benchctl."""
    wanted = f"{path}/"
    return any(
        wanted in argument
        for process in psutil.process_iter(["cmdline"])
        for argument in process.info["cmdline"] or ()
    )


@dataclass(frozen=True)
class Leftovers:
    """Files of a suite."""

    folder: SuiteFolder
    home: Home  # where engines and indices are
    store: RunStore
    keep: int  # for how many measured nights they are kept; taken for the other suites of this home, too
    in_use: Callable[[Path], bool] = program_in_use  # whether a process runs from a folder just now

    def remove(self, nights: Sequence[NightRecord], alarms: Iterable[Alarm]) -> Iterator[str]:
        """Remove what only old nights used; yield what was removed, or why nothing is.

        Raises:
            BenchctlError: If the disk refuses.
        """
        old = self._old(nights, alarms)
        if not old:
            return
        elsewhere = list(self._old_elsewhere())
        first_s: dict[str, float] = {}
        ids = {night.id for night in old}
        kept = {key for night in nights if night.id not in ids for key in _keys(night)}
        try:
            for folder in self.store.folders():
                use = _run_use(folder)
                night = night_of_run(use.tags, old)
                if night is not None:
                    began_s = datetime.fromisoformat(night.started).timestamp()
                    first_s |= {key: min(began_s, first_s.get(key, began_s)) for key in use.keys}
                elif night_of_run(use.tags, elsewhere) is None:
                    kept |= use.keys
        except BenchctlError as err:
            yield f"engines and indices of old nights stay: what uses them is not known: {err.message}"
            return
        for leftover in self._all():
            ours = leftover.key in first_s and leftover.made_s >= first_s[leftover.key]
            if ours and leftover.key not in kept and not any(map(self.in_use, leftover.paths)):
                yield self._remove(leftover)

    def _old(self, nights: Sequence[NightRecord], alarms: Iterable[Alarm]) -> list[NightRecord]:
        return old_nights(nights, self.keep, looked_into(alarms) | confirmed_against(nights))

    def _old_elsewhere(self) -> Iterator[NightRecord]:
        """Return old nights of the other suites: their runs keep nothing from being removed."""
        # An unreadable night is not among them, so that its runs keep what they used.
        for suite in suites(self.home):
            if suite.root != self.folder.root:
                yield from self._old(suite.nights(_passed_over), alarms_of(suite.events(_passed_over)))

    def _all(self) -> Iterator[Leftover]:
        """Return engines, archives and prepared indices of the home; nothing damaged or incomplete."""
        for manifest in (
            *self.home.engines.glob(f"*/{_MANIFEST}"),
            *self.home.indices.glob(f"*/{_MANIFEST}"),
        ):
            yield from _leftover(manifest, manifest.parent)
        for record in self.home.artifacts.glob("*.json"):
            # The archive goes first: without its record, nobody would ever look for it again.
            yield from _leftover(record, record.with_suffix(""), record)

    def _remove(self, one: Leftover) -> str:
        names = one.paths[0].name
        with disk_errors(f"remove {one.paths[0]}"):
            freed = sum(map(size_bytes, one.paths))
            for path in one.paths:
                if path.is_dir():
                    # Out of the way in one step, so that nobody finds half of it. Should we be killed, the
                    # next installation of an engine sweeps away what has such a name.
                    aside = self.home.scratch / f".partial-{path.name}"
                    path.replace(aside)
                    shutil.rmtree(aside, ignore_errors=True)
                else:
                    path.unlink(missing_ok=True)
        return f"{names} removed, which only old nights used, {mebibytes(freed)}"


def _passed_over(_message: str) -> None:
    """Ignore trouble of other suites, which report it themselves."""


def _keys(night: NightRecord) -> Iterator[str]:
    for variant in night.variants:
        if variant.facts is not None:
            yield variant.facts.archive_sha256
        if variant.index_key:
            yield variant.index_key


def _leftover(manifest: Path, *paths: Path) -> Iterator[Leftover]:
    try:
        made = _MADE.decode(read_file(manifest))
        made_s = manifest.stat().st_mtime
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        return
    if key := made.archive_sha256 or made.key or made.sha256:
        yield Leftover(key, made_s, paths)


class Retention(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """For how many measured nights things are kept."""

    raw_nights: Nights | None = 30  # nights of samples and node logs; `null` keeps all
    engine_nights: Nights | None = 30  # nights of engines and prepared indices; `null` keeps all


def apply_retention(
    folder: SuiteFolder,
    nights: Iterable[NightRecord],
    store: RunStore,
    home: Home,
    keep: Retention,
    alarms: Iterable[Alarm],
) -> list[str]:
    """Remove what is older than `keep`, under the lock of the suite.

    Nights that an open alarm is about keep everything: somebody is going to look into them. Nothing is
    removed that was not measured, fetched or built for the suite. Nights include tonight's, in any order.

    Returns:
        What was removed, and what could not be, in words.

    Raises:
        BenchctlError: If the disk refuses.
    """
    nights, alarms = list(nights), list(alarms)
    removed: list[str] = []
    if keep.raw_nights is not None:
        removed += _strip_runs(store, old_nights(nights, keep.raw_nights, looked_into(alarms)))
    if keep.engine_nights is not None:
        removed += Leftovers(folder, home, store, keep.engine_nights).remove(nights, alarms)
    return removed


def _strip_runs(store: RunStore, old: Sequence[NightRecord]) -> Iterator[str]:
    """Remove raw data of the runs of old nights, also of those cut off before they named one."""
    for folder in store.folders() if old else ():
        # Most runs were looked at in an earlier night, and have nothing left.
        raw = [folder.path / name for name in _RAW_FOLDERS if (folder.path / name).is_dir()]
        try:
            night = night_of_run(_run_use(folder).tags, old) if raw else None
            if night is not None:
                record = folder.load()
                # The record first: should we be killed here, the next night removes the rest.
                folder.save(
                    msgspec.structs.replace(record, forks=tuple(map(_fork_without_raw, record.forks)))
                )
                freed = sum(map(remove_folder, raw))
                yield f"samples and logs of night {night.id}, run {record.id}, removed, {mebibytes(freed)}"
        except BenchctlError as err:
            yield f"run {folder.path.name} stays as it is: {err.message}"


def _fork_without_raw(fork: ForkRecord) -> ForkRecord:
    boots = tuple(msgspec.structs.replace(boot, logs="") for boot in fork.boots)
    return msgspec.structs.replace(fork, samples=None, boots=boots, files={})
