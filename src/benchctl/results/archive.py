"""A store's runs from newest to oldest, each read once, and only when it is asked for."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from benchctl.errors import BenchctlError
from benchctl.results.model import RunRecord
from benchctl.results.store import RunFolder, RunStore


class Archive:
    """Runs to choose from.

    Args:
        store: where they are.
        only: names of the runs that count, as `RunStore.find` takes them; empty for all of the store.

    Attributes:
        only: as given.
        unreadable: why runs of the store were passed over, as far as it has been read.

    Raises:
        BenchctlError: one of `only` cannot be found or read.
    """

    def __init__(self, store: RunStore, only: Sequence[str] = ()) -> None:
        self._store = store
        self.only = tuple(dict.fromkeys(only))
        self._read: dict[Path, RunRecord] = {}
        self._folders: dict[str, RunFolder] = {}
        self._named: dict[str, RunFolder] = {}
        self.unreadable: list[str] = []
        named = [self.find(name) for name in self.only]
        self._newest = sorted(named, key=lambda record: record.created, reverse=True)
        self._rest = iter([] if only else reversed(store.folders()))

    def __iter__(self) -> Iterator[RunRecord]:
        """Newest first. Several iterations at a time share what has been read."""
        place = 0
        while place < len(self._newest) or self._read_next():
            yield self._newest[place]
            place += 1

    def find(self, name: str) -> RunRecord:
        """The run of that name, whether it is one of those to choose from or not.

        Raises:
            UsageError: none or several runs fit.
            BenchctlError: it cannot be read.
        """
        if name not in self._named:  # what there is to say of it is said once
            self._named[name] = self._store.find(name)
        return self._load(self._named[name])

    def names(self, name: str) -> bool:
        """Whether a name may mean any run of the store; reads no run."""
        return self._store.names(name)

    def folder_of(self, record: RunRecord) -> RunFolder:
        """Where a run that came from here is."""
        return self._folders[record.id]

    def _read_next(self) -> bool:
        """Read one more run; False when there is none."""
        for folder in self._rest:
            try:
                self._newest.append(self._load(folder))
            except BenchctlError as err:
                self.unreadable.append(err.message)
            else:
                return True
        return False

    def _load(self, folder: RunFolder) -> RunRecord:
        if folder.path not in self._read:
            record = folder.load()
            self._read[folder.path] = record
            self._folders[record.id] = folder
        return self._read[folder.path]
