"""Experiments on disk: a folder each, with its record; the runs that belong to it lie in the run store."""

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec

from benchctl.disk import disk_errors, replacing
from benchctl.errors import BenchctlError, UsageError
from benchctl.results.experiment.model import EXPERIMENT_VERSION, ExperimentRecord
from benchctl.results.store import new_run_id
from benchctl.results.versioned import read_versioned

RECORD_NAME: Final = "experiment.json"
_MOST_OF_NAME: Final = 32
"""Of an experiment's name in its id: a tag of its runs holds the id, and tags have 64 characters."""
_MOST_NAMED: Final = 5


@dataclass(frozen=True)
class ExperimentFolder:
    """The folder of one execution of an experiment."""

    path: Path

    @property
    def record_path(self) -> Path:
        """Where the record is."""
        return self.path / RECORD_NAME

    def save(self, record: ExperimentRecord) -> None:
        """Replace the record: whoever reads it meanwhile, or after a power cut, finds the old or the new one.

        Raises:
            BenchctlError: the disk is full or cannot be written.
        """
        text = msgspec.json.format(msgspec.json.encode(record), indent=1)
        with (
            disk_errors(f"write {self.record_path}"),
            replacing(self.record_path, durable=True) as partial,
        ):
            partial.write_bytes(text + b"\n")

    def load(self) -> ExperimentRecord:
        """Read the record.

        Raises:
            BenchctlError: it is missing, damaged, or of another version.
        """
        record = read_versioned(self.record_path, ExperimentRecord, "record", EXPERIMENT_VERSION)
        if record is None:
            raise BenchctlError(f"{self.record_path} is missing")
        return record


@dataclass(frozen=True)
class ExperimentStore:
    """A folder of experiments; it is made with the first of them."""

    root: Path

    def create(self, name: str, now_text: str) -> ExperimentFolder:
        """Make the folder of a new execution; its name is the id.

        Args:
            name: of the experiment.
            now_text: wall time such as `20261121-070102`.

        Raises:
            BenchctlError: it cannot be made.
        """
        path = self.root / new_run_id(name[:_MOST_OF_NAME], now_text)
        with disk_errors(f"create {path}"):
            path.mkdir(parents=True)
        return ExperimentFolder(path)

    def find(self, name: str, unreadable: Callable[[str], None]) -> ExperimentFolder:
        """An execution by path, id or beginning of an id; by an experiment's name its newest; `latest`.

        Args:
            name: one of these.
            unreadable: told why, of each that is passed over.

        Raises:
            UsageError: none fits, or several do.
            BenchctlError: they cannot be looked into.
        """
        direct = Path(name).absolute()
        if name and _holds_record(direct):
            return ExperimentFolder(direct)
        folders = self.folders()
        if name == "latest" and folders:
            return folders[-1]
        named = [folder for folder, record in self.records(unreadable) if record.spec.name == name]
        if named:
            return named[-1]
        fitting = [folder for folder in folders if name and folder.path.name.startswith(name)]
        exact = [folder for folder in fitting if folder.path.name == name]
        if len(exact) == 1 or len(fitting) == 1:
            return (exact or fitting)[0]
        if fitting:
            some = ", ".join(folder.path.name for folder in fitting[:_MOST_NAMED])
            raise UsageError(f"'{name}' fits {len(fitting)} experiments: {some}", hint="give more of the id")
        raise UsageError(
            f"no experiment '{name}' was run here ({self.root})", hint="see: benchctl experiment list"
        )

    def records(
        self, unreadable: Callable[[str], None]
    ) -> Iterator[tuple[ExperimentFolder, ExperimentRecord]]:
        """Every readable execution, oldest first.

        Args:
            unreadable: told why, of each that is passed over.
        """
        for folder in self.folders():
            try:
                record = folder.load()
            except BenchctlError as err:
                unreadable(err.message)
            else:
                yield folder, record

    def folders(self) -> list[ExperimentFolder]:
        """The folders of all executions, oldest first; nothing is read of them.

        Raises:
            BenchctlError: they cannot be looked into.
        """
        if not self.root.is_dir():
            return []
        with disk_errors(f"read {self.root}"):
            found = sorted(path for path in self.root.iterdir() if _holds_record(path))
        return [ExperimentFolder(path) for path in found]


def _holds_record(path: Path) -> bool:
    return os.access(path / RECORD_NAME, os.R_OK)
