"""Experiments on disk: a folder each, with its record; the runs that belong to it lie in the run store."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchctl.disk import disk_errors
from benchctl.errors import BenchctlError
from benchctl.results.experiment.model import EXPERIMENT_VERSION, ExperimentRecord
from benchctl.results.finding import Shelf, readable
from benchctl.results.store import new_run_id
from benchctl.results.versioned import read_versioned, write_versioned

RECORD_NAME: Final = "experiment.json"
_MOST_OF_NAME: Final = 32
"""Of an experiment's name in its id: a tag of its runs holds the id, and tags have 64 characters."""


@dataclass(frozen=True)
class ExperimentFolder:
    """The folder of one execution of an experiment."""

    path: Path

    @property
    def record_path(self) -> Path:
        """Where the record is."""
        return self.path / RECORD_NAME

    def save(self, record: ExperimentRecord) -> None:
        """Replace the record; see `write_versioned`.

        Raises:
            BenchctlError: the disk is full or cannot be written.
        """
        write_versioned(self.record_path, record)

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
        """An execution by path, id or a part of it; by an experiment's name its newest; `latest`.

        Args:
            name: one of these.
            unreadable: told why, of each that is passed over.

        Raises:
            UsageError: none fits, or several do.
            BenchctlError: they cannot be looked into.
        """
        if len(self._shelf.fitting(name)) != 1:
            named = [folder for folder, record in self.records(unreadable) if record.spec.name == name]
            if named:
                return named[-1]
        return ExperimentFolder(self._shelf.find(name))

    def records(
        self, unreadable: Callable[[str], None]
    ) -> Iterator[tuple[ExperimentFolder, ExperimentRecord]]:
        """Every readable execution, oldest first.

        Args:
            unreadable: told why, of each that is passed over.
        """
        return readable(self.folders(), ExperimentFolder.load, unreadable)

    def folders(self) -> list[ExperimentFolder]:
        """The folders of all executions, oldest first; nothing is read of them.

        Raises:
            BenchctlError: they cannot be looked into.
        """
        return [ExperimentFolder(path) for path in self._shelf.folders()]

    @property
    def _shelf(self) -> Shelf:
        return Shelf(self.root, RECORD_NAME, "execution", "executions", "see: benchctl experiment list")
