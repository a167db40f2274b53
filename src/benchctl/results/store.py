"""Folders with a record each, and those of runs: `run.json` beside one Parquet file of samples a fork.

Every write is atomic.
"""

import contextlib
import errno
import fcntl
import hashlib
import os
import re
import secrets
import shlex
import socket
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, ClassVar, Final, Generic, TypeVar

import msgspec

from benchctl.disk import disk_errors, locked, open_regular, read_file, replacing, try_writing
from benchctl.errors import BenchctlError, UsageError
from benchctl.home import home_root
from benchctl.results.model import RECORD_VERSION, ForkRecord, RunRecord, StoredFile
from benchctl.results.plan import Place
from benchctl.results.samples import (
    Columns,
    SampleFile,
    TaskWindow,
    windows_in,
    write_parquet,
)

LATEST: Final = "latest"
RECORD_NAME: Final = "run.json"
_WRITER_NAME: Final = "writer"
_GLANCE_S: Final = 0.1
_TIME, _TIME_FORMAT = re.compile(r"\d{8}-\d{6}"), "%Y%m%d-%H%M%S"
_MOST_OF_LABEL_BYTES = 60
_MOST_NAMED = 5

T = TypeVar("T")
Record = TypeVar("Record")


def read_versioned(path: Path, kind: type[T], what: str, version: int, *, is_sealed: bool = True) -> T | None:
    """Read a file of the only supported version; None when there is none.

    `what` is `record` for a version at `record-version`; also in messages. `is_sealed` files were written by
    `write_versioned`, with a digest.

    Raises:
        BenchctlError: If the file cannot be read, is damaged or changed, or of another version.
    """
    try:
        raw = read_file(path)
    except FileNotFoundError:
        return None
    except OSError as err:
        raise BenchctlError(f"cannot read {path}: {err.strerror}") from err
    try:
        actual = _version(raw, what)
        if actual != version:
            raise BenchctlError(
                f"{path}: unsupported {what} version {actual} (expected {version})",
                hint="read it with the benchctl that wrote it, or delete it",
            )
        return msgspec.json.decode(_unsealed(raw, path) if is_sealed else raw, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError) as err:
        raise BenchctlError(f"{path} is damaged: {err}") from err


def write_versioned(path: Path, content: object) -> None:
    """Replace a file, making its folder: readers, also after a power cut, find the old or the new one.

    Raises:
        BenchctlError: If the disk is full or cannot be written.
    """
    text = sealed(msgspec.json.format(msgspec.json.encode(content), indent=1))
    with disk_errors(f"write {path}"):
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path, durable=True) as partial:
            partial.write_bytes(text + b"\n")


_SEAL: Final = re.compile(rb'\{\n "sha256": "([0-9a-f]{64})",')


def sealed(text: bytes) -> bytes:
    """Return an object in indented JSON with the digest of all the rest as its first key."""
    digest = hashlib.sha256(text.strip()).hexdigest()
    return text.replace(b"{", f'{{\n "sha256": "{digest}",'.encode(), 1)


def _unsealed(raw: bytes, path: Path) -> bytes:
    seal = _SEAL.match(raw)
    text = b"{" + raw[seal.end() :] if seal else raw
    if seal is None or hashlib.sha256(text.strip()).hexdigest() != seal[1].decode():
        raise BenchctlError(
            f"{path} is damaged: its content is not what was written",
            hint="copy it from where it was written, or delete it",
        )
    return text


def _version(raw: bytes, what: str) -> int:
    """The value of the version's key; nothing else is read yet."""
    key = f"{what}-version"
    typed = msgspec.defstruct("Versioned", [("version", int)], rename={"version": key})
    return int(msgspec.structs.astuple(msgspec.json.decode(raw, type=typed))[0])


@dataclass(frozen=True)
class RecordFolder(Generic[Record]):
    """A folder with a record; it can be moved and copied."""

    path: Path

    record_name: ClassVar[str]
    record_type: ClassVar[type[Any]]
    record_version: ClassVar[int]

    @property
    def record_path(self) -> Path:
        """Return the path of the record."""
        return self.path / self.record_name

    def save(self, record: Record) -> None:
        """Replace the record; see `write_versioned`.

        Raises:
            BenchctlError: If the disk is full or cannot be written.
        """
        write_versioned(self.record_path, record)

    def load(self) -> Record:
        """Read the record.

        Raises:
            BenchctlError: If the record is missing, damaged, or of another version.
        """
        record: Record | None = read_versioned(
            self.record_path, self.record_type, "record", self.record_version
        )
        if record is None:
            raise BenchctlError(f"cannot read {self.record_path}: {os.strerror(errno.ENOENT)}")
        return record


Folder = TypeVar("Folder", bound=RecordFolder[Any])


class Shelf(Generic[Folder]):
    """Folders of one kind, whose names are their ids and sort by time."""

    def __init__(self, root: Path, kind: type[Folder], one: str, several: str, hint: str) -> None:
        self.root = root  # the folder above; may be missing
        self._kind = kind
        self._one, self._several = one, several  # what messages call them
        self._hint = hint  # what to do when nothing fits

    def folders(self) -> list[Folder]:
        """Return all folders, oldest first, without reading any.

        Raises:
            BenchctlError: If the folder above cannot be read.
        """
        with disk_errors(f"read {self.root}"):
            if not self.root.is_dir():
                return []
            # What is hidden is on its way out.
            paths = (path for path in self.root.iterdir() if not path.name.startswith("."))
            return [self._kind(path) for path in sorted(paths) if self._holds_record(path)]

    def fitting(self, name: str) -> list[Folder]:
        """Return folders that a name may mean: an exact match, else all that begin or end with it.

        A path comes first. An end is whole parts between hyphens, such as the four digits at the end of every
        id.

        Raises:
            BenchctlError: If the folder above cannot be read.
        """
        if not name:
            return []
        direct = Path(name).absolute()
        if self._holds_record(direct):
            return [self._kind(direct)]
        folders = self.folders()
        if name == LATEST:
            return folders[-1:]
        exact = [folder for folder in folders if folder.path.name == name]
        return exact or [
            folder
            for folder in folders
            if folder.path.name.startswith(name) or folder.path.name.endswith(f"-{name}")
        ]

    def find(self, name: str) -> Folder:
        """Return the folder that a name means.

        Raises:
            UsageError: If no folder matches, or several do.
            BenchctlError: If the folder above cannot be read.
        """
        folders = self.fitting(name)
        if len(folders) > 1:
            some = ", ".join(folder.path.name for folder in folders[:_MOST_NAMED])
            raise UsageError(
                f"'{name}' is ambiguous: it matches {len(folders)} {self._several} in {self.root} ({some})",
                hint="use a longer part of the id",
            )
        if not folders:
            raise UsageError(f"no such {self._one} '{name}' in {self.root}", hint=self._hint)
        return folders[0]

    def create(self, name: str) -> Folder:
        """Make a new folder, whose name is its id.

        Raises:
            BenchctlError: If it cannot be made.
        """
        path = self.root / name
        with disk_errors(f"create {path}"):
            path.mkdir(parents=True)
        return self._kind(path)

    def records(
        self, unreadable: Callable[[str], None], *, newest_first: bool = False
    ) -> Iterator[tuple[Folder, Any]]:
        """Yield every folder with a readable record, oldest first, each read on demand.

        `unreadable` is called with the reason for each that is skipped.
        """
        folders = self.folders()
        for folder in reversed(folders) if newest_first else folders:
            try:
                record = folder.load()
            except BenchctlError as err:
                unreadable(err.message)
            else:
                yield folder, record

    def _holds_record(self, path: Path) -> bool:
        """Return whether the record exists, or may exist in a folder without permission."""
        try:
            self._kind(path).record_path.stat()
        except PermissionError:
            return True
        except (OSError, ValueError):
            return False
        return True


def _contradiction(record: RunRecord) -> str:
    """Return why no figure of a record can be relied on; empty for records that benchctl writes."""
    if not record.plan.variants:
        return "its plan has no variant"
    forks = Counter((fork.block, fork.variant) for fork in record.forks)
    tasks = [range(len(challenge.schedule)) for challenge in record.plan.schedules]
    for fork in record.forks:
        if (times := forks[fork.block, fork.variant]) > 1:
            return f"it lists fork {fork.block} of {fork.variant} {times} times"
        for summary in fork.summaries:
            planned = summary.schedule in range(len(tasks)) and summary.task in tasks[summary.schedule]
            if not planned:
                return f"fork {fork.block} of {fork.variant} has figures of a task that is not in its plan"
    return ""


def new_run_id(label: str, now_text: str) -> str:
    """Return a folder name that sorts by time, such as `20261121-070102`, and says what was run."""
    safe = "".join(char if char.isalnum() or char in "-_." else "-" for char in label)
    # File systems count bytes, and characters may have four.
    safe = safe.encode()[:_MOST_OF_LABEL_BYTES].decode(errors="ignore")
    return f"{now_text}-{safe}-{secrets.token_hex(2)}"


@dataclass(frozen=True)
class ForkSource:
    """A finished fork and its files."""

    label: str  # what tables call its variant
    block: int
    # Chunks of CHART_COLUMNS, to be read as often as needed; None when there are none.
    samples: Iterable[Columns] | None
    absent: str  # what of it is missing or unreadable; empty when nothing is


class UnknownTimesError(BenchctlError):
    """The samples that say when the tasks of a fork ran are gone."""


class RunFolder(RecordFolder[RunRecord]):
    """A run's folder, written by one process at a time."""

    record_name = RECORD_NAME
    record_type = RunRecord
    record_version = RECORD_VERSION

    def load(self) -> RunRecord:
        """Read the record; a run that nothing is writing any more was interrupted, whatever it says.

        Raises:
            BenchctlError: If the record is missing, broken, inconsistent, or of another version.
        """
        record = super().load()
        if wrong := _contradiction(record):
            raise BenchctlError(f"{self.record_path} is damaged: {wrong}")
        if record.status == "running" and not self.writer():
            record = msgspec.structs.replace(record, status="interrupted")
        return record

    @contextlib.contextmanager
    def writing(self) -> Iterator[None]:
        """Hold the run alone, also among containers and homes that share its folder.

        Raises:
            BenchctlError: If another process does, which is named; or the disk refuses.
        """
        with contextlib.ExitStack() as stack:
            with disk_errors(f"lock {self.path}"):
                held = stack.enter_context(locked(self.path, fcntl.LOCK_EX | fcntl.LOCK_NB))
                if held is False:  # perhaps only somebody who looks at this moment
                    time.sleep(_GLANCE_S)
                    held = stack.enter_context(locked(self.path, fcntl.LOCK_EX | fcntl.LOCK_NB))
                if held is not False:
                    (self.path / _WRITER_NAME).write_text(f"process {os.getpid()} of {socket.gethostname()}")
            if held is False:
                who = self.writer()
                raise BenchctlError(f"run {self.path.name} is being measured: {who}", hint="wait for it")
            yield

    def writer(self) -> str:
        """Return the process that holds the run, in words; empty if none does."""
        try:
            with locked(self.path, fcntl.LOCK_SH | fcntl.LOCK_NB) as free:
                return read_file(self.path / _WRITER_NAME).decode() if free is False else ""
        except OSError:
            return ""

    def inside(self, relative: str) -> Path:
        """Return a file that the record names.

        Raises:
            BenchctlError: If the file lies elsewhere: a foreign record may name any file of this host.
        """
        path = self.path / relative
        if Path(relative).is_absolute() or ".." in Path(relative).parts:
            raise BenchctlError(
                f"{self.record_path} names a file that is not in the run's directory: {relative}"
            )
        return path

    def write_samples(self, chunks: Iterable[Columns], variant: str, block: int) -> str:
        """Write one fork's samples as Parquet, in order; holds one chunk at a time.

        Returns:
            The file's path relative to the run.

        Raises:
            BenchctlError: If the disk is full or cannot be written.
        """
        target = self.path / "forks" / f"{block:03d}-{variant}.parquet"
        with disk_errors(f"write {target}"):
            target.parent.mkdir(parents=True, exist_ok=True)
            with replacing(target) as partial:
                write_parquet(chunks, partial)
        return str(target.relative_to(self.path))

    def evidence_folder(self, variant: str, block: int, boot: int) -> Path:
        """Return the folder of the evidence of one node start of a fork."""
        return self.path / "evidence" / f"{block:03d}-{variant}" / f"boot-{boot}"

    def described(self, fork: ForkRecord) -> ForkRecord:
        """Return the record of a fork that has just ended, with facts about its files.

        Raises:
            BenchctlError: If a file cannot be read.
        """
        evidence = self.evidence_folder(fork.variant, fork.block, 0).parent
        paths = [] if fork.samples is None else [self.inside(fork.samples)]
        with disk_errors(f"read what was written to {self.path}"):
            paths += [path for path in evidence.rglob("*") if path.is_file() and not path.is_symlink()]
            files = {str(path.relative_to(self.path)): _described(path) for path in sorted(paths)}
        return msgspec.structs.replace(fork, files=files)

    def damage(self, fork: ForkRecord, relative: str, *, content: bool = True) -> str:
        """Return the damage of a file of a fork, in words; empty if it is as written.

        `content` compares its digest, too, which takes about a second a gigabyte. A file that the record has
        no facts about must only exist.

        Raises:
            BenchctlError: If the file lies outside of the run's folder.
        """
        expected = fork.files.get(relative)
        try:
            with open_regular(self.inside(relative)) as file:
                size = os.fstat(file.fileno()).st_size
                if expected is None:
                    return ""
                if size != expected.size_bytes:
                    return (
                        f"{relative} has {size:,} bytes, and had {expected.size_bytes:,} when it was written"
                    )
                if content and hashlib.file_digest(file, "sha256").hexdigest() != expected.sha256:
                    return f"{relative} is damaged: its content is not what was written"
        except (FileNotFoundError, NotADirectoryError):
            return f"{relative} is gone"
        except OSError as err:
            return f"{relative} cannot be read: {err.strerror}"
        return ""

    def require_files(self, record: RunRecord) -> None:
        """Check that every file of the finished forks exists with its size, without reading any.

        Raises:
            BenchctlError: If files differ; names them.
        """
        wrong = [
            problem
            for fork in record.forks
            if fork.status == "done"
            for relative in dict.fromkeys(filter(None, (fork.samples, *fork.files)))
            if (problem := self.damage(fork, relative, content=False))
        ]
        if wrong:
            more = f"; and {len(wrong) - _MOST_NAMED:,} more" if len(wrong) > _MOST_NAMED else ""
            raise BenchctlError(
                f"files of run {self.path} are not as they were written: "
                f"{'; '.join(wrong[:_MOST_NAMED])}{more}",
                hint="copy them from where the run was measured; values in run.json stay valid, but charts, "
                "further quantiles and queries of samples need these files",
            )

    def samples_of(self, fork: ForkRecord) -> tuple[SampleFile | None, str]:
        """Return the samples of a fork if they are intact, else what is missing or damaged.

        A chart of other samples than those that were measured would be worse than none.

        Raises:
            BenchctlError: If the record names a file outside of the run's folder.
        """
        if fork.samples is None:
            return None, "no samples were kept"
        damage = self.damage(fork, fork.samples)
        return (None, damage) if damage else (SampleFile(self.inside(fork.samples)), "")


def fork_sources(
    folder: RunFolder, forks: Iterable[ForkRecord], *, label: str | None = None
) -> Iterator[ForkSource]:
    """Return a run's finished forks, each with its samples if they are intact.

    `label` is what tables call them; None for the names of their variants.

    Raises:
        BenchctlError: If the record names files outside of the run's folder.
    """
    for fork in sorted((fork for fork in forks if fork.status == "done"), key=lambda fork: fork.block):
        yield ForkSource(label or fork.variant, fork.block, *folder.samples_of(fork))


def task_windows(folder: RunFolder, fork: ForkRecord) -> dict[Place, TaskWindow]:
    """Return the tasks of a fork that measured anything, in their order.

    Raises:
        UnknownTimesError: If its samples are gone: nothing else has the times of tasks.
        BenchctlError: If they cannot be read.
    """
    samples, absent = folder.samples_of(fork)
    if samples is None:
        raise UnknownTimesError(
            f"the samples of fork {fork.block} of {fork.variant} are not there ({absent}): "
            "only they record when tasks ran"
        )
    return windows_in(samples.path)


def _described(path: Path) -> StoredFile:
    with open_regular(path, follow=False) as file:
        size = os.fstat(file.fileno()).st_size
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return StoredFile(size, digest)


def usual_runs() -> Path:
    """Return the default directory of runs; it need not exist."""
    return home_root() / "runs"


def reference(folder: RunFolder, usual: Path | None = None) -> str:
    """Return a run's name for a command line; `usual` is the default directory of runs."""
    path = folder.path.absolute()
    usual = usual_runs() if usual is None else usual.absolute()
    return path.name if path.parent == usual else shlex.quote(str(path))


def listing(root: Path) -> str:
    """Return the command that lists the runs of a directory."""
    root = root.absolute()
    return "benchctl runs list" + ("" if root == usual_runs() else f" --runs {shlex.quote(str(root))}")


class RunStore(Shelf[RunFolder]):
    """A folder of runs; `note` is called with what a reader should know of which run was found."""

    def __init__(self, root: Path, note: Callable[[str], None] = lambda _text: None) -> None:
        super().__init__(root, RunFolder, "run", "runs", f"see: {listing(root)}")
        self._note = note

    def open(self, *, make: bool = True) -> None:
        """Check that runs can be kept here, before hours are spent; `make` the folder unless it is there.

        Raises:
            BenchctlError: If they cannot be made.
        """
        with disk_errors(f"keep runs in {self.root}"):
            if make:
                self.root.mkdir(parents=True, exist_ok=True)
            try_writing(self.root)

    def new_id(self, label: str, now: datetime) -> str:
        """Return an id that sorts after existing ones even if the clock was set back; `now` is UTC.

        It is a second behind the newest then, up to a day ahead: what is further ahead was never the time.
        """
        newest = max(
            (match[0] for run in self.folders() if (match := _TIME.match(run.path.name))), default=""
        )
        if now.strftime(_TIME_FORMAT) <= newest <= (now + timedelta(days=1)).strftime(_TIME_FORMAT):
            with contextlib.suppress(ValueError):  # digits that are no time
                now = datetime.strptime(newest, _TIME_FORMAT).replace(tzinfo=UTC) + timedelta(seconds=1)
        return new_run_id(label, now.strftime(_TIME_FORMAT))

    def create(self, name: str) -> RunFolder:
        """Make the folder of a new run, with one for its samples.

        Raises:
            BenchctlError: If it cannot be made.
        """
        folder = super().create(name)
        (folder.path / "forks").mkdir()
        return folder

    def find(self, name: str, *, finished: bool = True) -> RunFolder:
        """Return a run by path, id, unique beginning or end of its id, or `latest`.

        `latest` is the newest finished run, and newer ones are noted; without `finished`, the newest of all.

        Raises:
            UsageError: If no run matches, or several do.
            BenchctlError: If the store cannot be looked into.
        """
        folder = super().find(name)
        # A folder of that name is found as a path.
        if not finished or name != LATEST or folder.path.name == LATEST:
            return folder
        newer: list[str] = []
        for folder in reversed(self.folders()):
            try:
                state = folder.load().unfinished
            except BenchctlError as err:
                state = err.message
            if not state:
                if newer:
                    self._note(
                        f"latest is {folder.path.name}, the newest finished run; newer: {_listed(newer)}"
                    )
                return folder
            newer.append(f"{folder.path.name} ({state})")
        raise UsageError(
            f"no run in {self.root} is finished: {_listed(newer)}",
            hint=f"name one by its id, such as {newer[0].partition(' ')[0]}",
        )

    def names(self, name: str) -> bool:
        """Return whether a name may mean any run of the store; reads no run."""
        return bool(self.fitting(name))

    def runs(
        self, unreadable: Callable[[str], None], *, newest_first: bool = False
    ) -> Iterator[tuple[RunFolder, RunRecord]]:
        """Yield every readable run once, oldest first, each read on demand.

        `unreadable` is called with why each other is skipped. Of copies of one run, that in the folder of its
        id counts.
        """
        names = {folder.path.name for folder in self.folders()}
        seen: set[str] = set()
        for folder, record in self.records(unreadable, newest_first=newest_first):
            if record.id in seen or (folder.path.name != record.id and record.id in names):
                unreadable(f"{folder.path} is another copy of run {record.id}, which counts once")
            else:
                seen.add(record.id)
                yield folder, record

    def newest(self) -> Iterator[RunRecord]:
        """Return every readable record, newest first, each read on demand."""
        return (record for _, record in self.runs(lambda _text: None, newest_first=True))


def _listed(runs: list[str]) -> str:
    rest = len(runs) - _MOST_NAMED
    return ", ".join(runs[:_MOST_NAMED]) + (f" and {rest} more" if rest > 0 else "")
