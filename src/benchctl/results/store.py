"""Runs on disk: `run.json` beside one Parquet file of samples a fork; every write is atomic."""

import contextlib
import errno
import hashlib
import os
import re
import secrets
import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec

from benchctl.disk import disk_errors, open_regular, replacing, try_writing
from benchctl.errors import BenchctlError, UsageError
from benchctl.results.figures import TaskSummary
from benchctl.results.folders import LATEST, Shelf, read_versioned, readable
from benchctl.results.model import (
    RECORD_VERSION,
    ForkRecord,
    RunRecord,
    StoredFile,
)
from benchctl.results.plan import Plan
from benchctl.results.samples import Columns, DuckDiskError, parquet_rows, write_parquet

RECORD_NAME = "run.json"
_TIME, _TIME_FORMAT = re.compile(r"\d{8}-\d{6}"), "%Y%m%d-%H%M%S"
_MOST_OF_LABEL_BYTES = 60
_MOST_NAMED = 5


def contradiction(record: RunRecord) -> str:
    """Return why no figure of a record can be relied on; empty for records that benchctl writes."""
    if not record.plan.variants:
        return "its plan has no variant"
    forks = Counter((fork.block, fork.variant) for fork in record.forks)
    for (block, variant), times in forks.items():
        if times > 1:
            return f"it lists fork {block} of {variant} {times} times"
    for fork in record.forks:
        for summary in fork.summaries:
            whose = f"fork {fork.block} of {fork.variant}"
            if not _planned(summary, record.plan):
                return f"{whose} has figures of a task that is not in its plan"
    return ""


def _planned(summary: TaskSummary, plan: Plan) -> bool:
    if not 0 <= summary.schedule < len(plan.schedules):
        return False
    return 0 <= summary.task < len(plan.schedules[summary.schedule].schedule)


def new_run_id(label: str, now_text: str) -> str:
    """Return a folder name that sorts by time, such as `20261121-070102`, and says what was run."""
    safe = "".join(char if char.isalnum() or char in "-_." else "-" for char in label)
    # File systems count bytes, and characters may have four.
    safe = safe.encode()[:_MOST_OF_LABEL_BYTES].decode(errors="ignore")
    return f"{now_text}-{safe}-{secrets.token_hex(2)}"


@dataclass(frozen=True)
class RunFolder:
    """A run's folder; it can be moved and copied."""

    path: Path

    @property
    def record_path(self) -> Path:
        """Return the path of the record."""
        return self.path / RECORD_NAME

    def save(self, record: RunRecord) -> None:
        """Replace the record, atomically.

        Raises:
            BenchctlError: If the disk is full or cannot be written.
        """
        text = msgspec.json.format(msgspec.json.encode(record), indent=1)
        with _writing(self.record_path) as partial:
            partial.write_bytes(text)

    def load(self) -> RunRecord:
        """Read the record.

        Raises:
            BenchctlError: If the record is missing, broken, inconsistent, or of another version.
        """
        record = read_versioned(self.record_path, RunRecord, "record", RECORD_VERSION)
        if record is None:
            raise BenchctlError(f"cannot read {self.record_path}: {os.strerror(errno.ENOENT)}")
        if wrong := contradiction(record):
            raise BenchctlError(f"{self.record_path} is damaged: {wrong}")
        return record

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

    def sample_file(self, variant: str, block: int) -> Path:
        """Return the path of the samples of one fork."""
        return self.path / "forks" / f"{block:03d}-{variant}.parquet"

    def write_samples(self, chunks: Iterable[Columns], variant: str, block: int) -> str:
        """Write one fork's samples as Parquet, in order; holds one chunk at a time.

        Returns:
            The file's path relative to the run.

        Raises:
            BenchctlError: If the disk is full or cannot be written.
        """
        target = self.sample_file(variant, block)
        with _writing(target) as partial:
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
            raise damaged_files(self.path, wrong)


def damaged_files(run: Path, wrong: Sequence[str]) -> BenchctlError:
    """Return the error that names files of a run that changed since its forks wrote them."""
    more = f"; and {len(wrong) - _MOST_NAMED:,} more" if len(wrong) > _MOST_NAMED else ""
    return BenchctlError(
        f"files of run {run} are not as they were written: {'; '.join(wrong[:_MOST_NAMED])}{more}",
        hint="copy them from where the run was measured; the figures in run.json stand without them, charts, "
        "further quantiles and queries of samples do not",
    )


def _described(path: Path) -> StoredFile:
    with open_regular(path, follow=False) as file:
        size = os.fstat(file.fileno()).st_size
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    rows = parquet_rows(path) if path.suffix == ".parquet" else None
    return StoredFile(size, digest, rows)


def reference(folder: RunFolder, usual: Path) -> str:
    """Return a run's name for a command line; `usual` is the default folder of runs."""
    path = folder.path.absolute()
    return path.name if path.parent == usual.absolute() else shlex.quote(str(path))


@dataclass(frozen=True)
class RunStore:
    """A folder of runs."""

    root: Path
    note: Callable[[str], None] = lambda _text: None
    """Called with what a reader should know of which run was found."""

    def open(self, *, make: bool = True) -> None:
        """Check that runs can be kept here, before hours are spent; `make` the folder unless it is there.

        Raises:
            BenchctlError: If they cannot be made.
        """
        try:
            if make:
                self.root.mkdir(parents=True, exist_ok=True)
            try_writing(self.root)
        except OSError as err:
            raise BenchctlError(
                f"runs cannot be kept in {self.root}: {err.strerror}",
                hint="choose another directory with --runs",
            ) from err

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

    def create(self, run_id: str) -> RunFolder:
        """Make the folder of a new run.

        Raises:
            BenchctlError: If the folder cannot be made.
        """
        path = self.root / run_id
        try:
            (path / "forks").mkdir(parents=True)
        except OSError as err:
            raise BenchctlError(
                f"cannot create {path}: {err.strerror}", hint="choose another directory with --runs"
            ) from err
        return RunFolder(path)

    def find(self, name: str, *, finished: bool = True) -> RunFolder:
        """Return a run by path, id, unique beginning or end of its id, or `latest`.

        `latest` is the newest finished run, and newer ones are noted; without `finished`, the newest of all.

        Raises:
            UsageError: If no run matches, or several do.
            BenchctlError: If the store cannot be looked into.
        """
        folder = RunFolder(self._shelf.find(name))
        # A folder of that name is found as a path.
        return self._latest() if finished and name == LATEST != folder.path.name else folder

    def names(self, name: str) -> bool:
        """Return whether a name may mean any run of the store; reads no run."""
        return bool(self._shelf.fitting(name))

    def _latest(self) -> RunFolder:
        """The newest finished run."""
        newer: list[str] = []
        for folder in reversed(self.folders()):
            try:
                state = folder.load().unfinished
            except BenchctlError as err:
                state = err.message
            if not state:
                if newer:
                    self.note(
                        f"latest is {folder.path.name}, the newest finished run; newer: {_listed(newer)}"
                    )
                return folder
            newer.append(f"{folder.path.name} ({state})")
        raise UsageError(
            f"no run in {self.root} is finished: {_listed(newer)}",
            hint=f"name one by its id, such as {newer[0].partition(' ')[0]}",
        )

    def runs(
        self, unreadable: Callable[[str], None], *, newest_first: bool = False
    ) -> Iterator[tuple[RunFolder, RunRecord]]:
        """Yield every readable run once, oldest first, each read on demand.

        `unreadable` is called with why each other is skipped. Of copies of one run, that in the folder of its
        id counts.
        """
        folders = self.folders()
        names = {folder.path.name for folder in folders}
        seen: set[str] = set()
        for folder, record in readable(
            reversed(folders) if newest_first else folders, RunFolder.load, unreadable
        ):
            if record.id in seen or (folder.path.name != record.id and record.id in names):
                unreadable(f"{folder.path} is another copy of run {record.id}, which counts once")
            else:
                seen.add(record.id)
                yield folder, record

    def newest(self) -> Iterator[RunRecord]:
        """Return every readable record, newest first, each read on demand."""
        return (record for _, record in self.runs(lambda _text: None, newest_first=True))

    def folders(self) -> list[RunFolder]:
        """Return the folders of all runs, oldest first, without reading any.

        Raises:
            BenchctlError: If the store cannot be looked into.
        """
        return [RunFolder(path) for path in self._shelf.folders()]

    @property
    def _shelf(self) -> Shelf:
        return Shelf(self.root, RECORD_NAME, "run", "runs", "see: benchctl runs list")


def _listed(runs: list[str]) -> str:
    rest = len(runs) - _MOST_NAMED
    return ", ".join(runs[:_MOST_NAMED]) + (f" and {rest} more" if rest > 0 else "")


@contextlib.contextmanager
def _writing(target: Path) -> Iterator[Path]:
    """A temporary file that replaces the target when the block succeeds and is removed otherwise."""
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with replacing(target) as partial:
            yield partial
    except (OSError, DuckDiskError) as err:
        reason = err.strerror if isinstance(err, OSError) else str(err)
        raise BenchctlError(
            f"cannot write {target}: {reason}", hint="free some space or choose another directory with --runs"
        ) from err
