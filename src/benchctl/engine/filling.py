"""The filling of what a track declares: created on a node, indexed, merged, committed; or resumed."""

import errno
import shutil
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import msgspec

from benchctl.corpus.bulk import Range, count, merged, missing
from benchctl.disk import disk_errors, read_file, replacing
from benchctl.engine.client import EngineClocks, SearchClient
from benchctl.engine.declared import make_all
from benchctl.engine.prepared_index import IndexKey, copy, entries, link
from benchctl.errors import BenchctlError
from benchctl.home import Home, open_folder
from benchctl.results.model import IndexFacts, IngestCosts, IngestReport

SETTLE_TIMEOUT_S = 60.0
SETTLE_PAUSE_S = 0.1


def settle(client: SearchClient, name: str) -> None:
    """Commit until the last commit is the only one and the translog is empty.

    With an asynchronous translog the engine keeps older commits, their segments and gigabytes of translog
    until everything before them is on disk; a copy of the data would include all of that.

    Raises:
        BenchctlError: If that takes too long.
    """
    deadline = time.monotonic() + SETTLE_TIMEOUT_S
    while True:
        client.flush(name)
        # Segments that were merged away stay open until the next refresh.
        client.refresh(name)
        left = client.translog_operations(name)
        if left == 0:
            return
        if time.monotonic() > deadline:
            raise BenchctlError(
                f"the translog still holds {left:,} operations after {SETTLE_TIMEOUT_S:.0f} s"
            )
        time.sleep(SETTLE_PAUSE_S)


# Half-built indices: checkpoints from which an interrupted ingest resumes.
#
# A checkpoint is a commit of the index and a second set of links to its files. Lucene writes every file once,
# so whatever happens to the node or to benchctl afterwards, the checkpoint stays what it was: exactly the
# documents that its manifest names.

MANIFEST_NAME = "manifest.json"


# The node rarely commits on its own while files are being linked; two times in a row are no coincidence.
ATTEMPTS = 3


def freeze(source: Path, target: Path) -> None:
    """Link or copy a data folder as of its last commits; a node may be running on it, if nobody indexes.

    Lucene writes every file of its `index` folders once, so those are always linked: copying them would take
    as long as building the index. Files in no commit may be linked, too: whoever opens the index removes
    them. Everything else is small and copied.

    Args:
        source: a node's data folder.
        target: a folder that does not exist yet, on the same file system; removed after a failure.

    Raises:
        OSError: If the file system cannot link, is full, or the node keeps committing.
    """
    for _ in range(ATTEMPTS):
        before = _state(source)
        try:
            _link_tree(source, target)
        except OSError:
            shutil.rmtree(target, ignore_errors=True)
            raise
        # Files of an older commit may vanish while they are linked, but only when there is a newer one.
        if before == _state(source):
            return
        shutil.rmtree(target, ignore_errors=True)
    raise OSError(errno.EAGAIN, "the node commits all the time")


def _state(data: Path) -> dict[Path, bytes]:
    """Lucene's commits, those of the cluster state included, and the checkpoints of the translogs."""
    contents = {}
    for path in [*data.rglob("segments_*"), *data.rglob("*.ckp")]:
        try:
            contents[path] = read_file(path, follow=False)
        except FileNotFoundError:
            # Just replaced; it will differ from the next state.
            contents[path] = b""
    return contents


def _link_tree(source: Path, target: Path) -> None:
    for entry in entries(source, target):
        if entry.is_folder:
            entry.target.mkdir(parents=True)
            continue
        try:
            (link if entry.write_once else copy)(entry.source, entry.target)
        except FileNotFoundError:
            # Deleted meanwhile: part of no commit, or no longer of the last one.
            continue


NO_CLOCKS = EngineClocks()


class Progress(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """Progress of an ingest over all its attempts."""

    ranges: tuple[Range, ...] = ()  # numbers of the acknowledged documents, [start, stop)
    body_bytes: int = 0  # of the bulk requests
    seconds: float = 0.0  # that they took
    checkpoint_s: float = 0.0  # that checkpoints took
    clocks: EngineClocks = NO_CLOCKS
    goes: int = 0  # how often it was started or resumed
    # of each index, the settings that are others during an ingest; None for the default
    declared: dict[str, dict[str, str | None]] = {}

    @property
    def documents(self) -> int:
        """Number of documents in the index."""
        return count(self.ranges)

    def missing(self, documents: int) -> tuple[Range, ...]:
        """Return the ranges missing of a corpus of that many documents."""
        return missing(self.ranges, documents)

    def plus(self, other: "Progress") -> "Progress":
        """Return the sum of this progress and what came after it."""
        return Progress(
            merged([*self.ranges, *other.ranges]),
            self.body_bytes + other.body_bytes,
            self.seconds + other.seconds,
            self.checkpoint_s + other.checkpoint_s,
            self.clocks.plus(other.clocks),
            self.goes + other.goes,
            other.declared,
        )


class _Manifest(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """Makes a folder a partial index."""

    key: str  # digest of the index that is being built
    data: str  # name of the folder with the node's data
    progress: Progress  # what is in it


@dataclass(frozen=True)
class PartialIndex:
    """The folder of an index's checkpoint, if there is one; `key` is the digest of the index."""

    root: Path
    key: str

    @classmethod
    def of(cls, home: Home, folder_name: str, key: str) -> Self:
        """Return the checkpoint of an index, by the name of its folder and the digest of its key."""
        return cls(home.partial / folder_name, key)

    def progress(self) -> Progress | None:
        """Return the checkpoint's progress; None when there is no usable one.

        Raises:
            BenchctlError: If the checkpoint is damaged.
        """
        manifest = self._manifest()
        return None if manifest is None else manifest.progress

    def size_bytes(self) -> int:
        """Return the size on disk, counting files linked from elsewhere in full."""
        return _size_bytes(self.root)

    def save(
        self, client: SearchClient, target: str, data: Path, before: Progress, now: Progress
    ) -> Progress:
        """Save what a running node holds; replaces the previous checkpoint, which stays after a failure.

        Args:
            client: of the node; no requests to the indices may be in flight.
            target: its indices, as a path component.
            data: the node's data folder.
            before: the progress before the node was started.
            now: what was acknowledged since; its engine's clocks are read here.

        Returns:
            The saved progress.

        Raises:
            BenchctlError: If the node holds more or fewer documents than were acknowledged, it fails, or the
                disk refuses.
        """
        settle(client, target)
        clocks = client.write_clocks_of(target)
        progress = before.plus(msgspec.structs.replace(now, clocks=clocks, goes=1))
        held = client.count(target)
        if held != progress.documents:
            raise BenchctlError(
                f"{held:,} documents are in the index, {progress.documents:,} were acknowledged"
            )
        with disk_errors(f"put by a half-built index in {self.root}"):
            self.root.mkdir(parents=True, exist_ok=True)
            open_folder(self.root)
            current = self._manifest()
            name = "data-1" if current is None or current.data == "data-2" else "data-2"
            # Leftovers of a killed benchctl.
            shutil.rmtree(self.root / name, ignore_errors=True)
            freeze(data, self.root / name)
            self._write(_Manifest(self.key, name, progress))
            for entry in self.root.iterdir():
                if entry.name not in {name, MANIFEST_NAME}:
                    shutil.rmtree(entry, ignore_errors=True)
        return progress

    def take_up(self, data: Path) -> None:
        """Copy the checkpoint to a data folder for a node, which must not exist yet.

        Raises:
            BenchctlError: If there is no checkpoint, or the disk refuses.
        """
        manifest = self._manifest()
        if manifest is None:
            raise BenchctlError(f"no half-built index is in {self.root}")
        with disk_errors(f"take up the half-built index {self.root}"):
            freeze(self.root / manifest.data, data)

    def discard(self) -> None:
        """Remove the checkpoint, if there is one."""
        # First the manifest: without it, the rest of an interrupted removal is ignored.
        (self.root / MANIFEST_NAME).unlink(missing_ok=True)
        shutil.rmtree(self.root, ignore_errors=True)

    def _manifest(self) -> _Manifest | None:
        path = self.root / MANIFEST_NAME
        try:
            manifest = msgspec.json.decode(read_file(path), type=_Manifest)
        except FileNotFoundError:
            return None
        except (OSError, msgspec.DecodeError) as err:
            raise BenchctlError(
                f"the half-built index {self.root} is damaged: {err}",
                hint=f"delete {self.root}; the index is then built from its beginning",
            ) from err
        return manifest if manifest.key == self.key else None

    def _write(self, manifest: _Manifest) -> None:
        text = msgspec.json.format(msgspec.json.encode(manifest), indent=1)
        with replacing(self.root / MANIFEST_NAME, durable=True) as beside:
            beside.write_bytes(text + b"\n")


def leftovers(home: Home, wanted: Collection[str]) -> Iterator[tuple[Path, int]]:
    """Yield checkpoints of indices that are not wanted: their directories, and sizes in bytes."""
    for root in sorted(home.partial.iterdir()):
        if root.name not in wanted:
            yield root, _size_bytes(root)


def _size_bytes(root: Path) -> int:
    return sum(path.stat().st_size for path in root.rglob("*") if path.is_file())


REFRESH_INTERVAL = "index.refresh_interval"
# As large as engines take them: nothing is committed by size, and nothing merged unless that is asked for.
_NO_OTHER_CUTS = {
    "index.translog.flush_threshold_size": "1pb",
    "index.merge.policy.segments_per_tier": 100_000,
    "index.merge.policy.max_merge_at_once": 100_000,
}


@dataclass(frozen=True)
class Sent:
    """Result of a sender."""

    documents: int  # acknowledged by the node
    body_bytes: int  # of the bulk requests
    seconds: float  # first request to last answer, without checkpoints
    checkpoint_s: float = 0.0  # what checkpoints took
    resumed: int = 0  # how often it was interrupted and resumed
    clocks: EngineClocks = NO_CLOCKS  # the engine's clocks of earlier node starts
    costs: IngestCosts | None = None  # of all of it; None where they are not known


Sender = Callable[[], Sent]
"""Indexes the whole corpus."""

Declared = Mapping[str, Mapping[str, str | None]]
"""Index -> settings that are others while it is filled, as they were declared; None for the default."""


def fill(client: SearchClient, key: IndexKey, send: Sender) -> IndexFacts:
    """Create, ingest, refresh, force-merge and flush; the node is still up afterwards.

    Raises:
        BenchctlError: If the node refused a step, lost documents, or did not merge to the stated segments.
    """
    declared = create(client, key)
    return finish(client, key, declared, send())


def create(client: SearchClient, key: IndexKey) -> Declared:
    """Create what the key's track declares, ready for the documents.

    Periodic refreshes are switched off: they cut segments by the clock, and the same corpus would become a
    different index each time. For one that is to be the same each time, segments are neither cut by size nor
    merged before all are there: whoever sends the documents refreshes at always the same ones.

    Returns:
        What `finish` is to restore.

    Raises:
        BenchctlError: If the node refuses something.
    """
    wanted = key.places
    make_all(client, key.track, wanted, key.index_settings)
    meanwhile = {REFRESH_INTERVAL: "-1", **(_NO_OTHER_CUTS if key.deterministic else {})}
    declared: dict[str, dict[str, str | None]] = {}
    for setting in meanwhile:
        for name, value in client.setting(wanted.target, setting).items():
            declared.setdefault(name, {})[setting] = value
    for name in declared:
        client.put_settings(name, meanwhile)
    return declared


def finish(client: SearchClient, key: IndexKey, declared: Declared, sent: Sent) -> IndexFacts:
    """Refresh, force-merge and flush the documents, and report on the index.

    Raises:
        BenchctlError: If the node refused a step, lost documents, or did not merge to the stated segments.
    """
    target = key.places.target
    refresh_s = _timed(lambda: client.refresh(target))
    merge_s = _timed(lambda: client.force_merge(target, key.segments))
    for name, settings in declared.items():
        client.put_settings(name, settings)
    flush_s = _timed(lambda: settle(client, target))
    return _facts(client, key, sent, refresh_s, merge_s, flush_s)


def _timed(step: Callable[[], object]) -> float:
    start = time.monotonic()
    step()
    return time.monotonic() - start


def _facts(
    client: SearchClient, key: IndexKey, sent: Sent, refresh_s: float, merge_s: float, flush_s: float
) -> IndexFacts:
    name = key.places.target
    clocks = sent.clocks.plus(client.write_clocks_of(name))
    segments = tuple(client.segments(name))
    documents = client.count(name)
    expected = key.corpus.documents
    # Action lines may also replace or delete documents.
    counts = not any(file.has_actions for file in key.corpus.files)
    if counts and documents != expected:
        raise BenchctlError(
            f"{key.installation.engine} {key.installation.version} holds {documents:,} of "
            f"{expected:,} documents after the ingest",
            hint="see the node's log; the half-built index was discarded",
        )
    most = key.segments * client.primary_shards(name)
    if len(segments) > most:
        raise BenchctlError(f"the force-merge left {len(segments)} segments, {most} were asked for")
    report = IngestReport(
        documents=sent.documents,
        body_bytes=sent.body_bytes,
        clients=key.clients,
        ingest_s=sent.seconds,
        refresh_s=refresh_s,
        force_merge_s=merge_s,
        flush_s=flush_s,
        engine_indexing_s=clocks.indexing_ms / 1000,
        engine_refresh_s=clocks.refresh_ms / 1000,
        engine_merge_s=clocks.merge_ms / 1000,
        engine_flush_s=clocks.flush_ms / 1000,
        checkpoint_s=sent.checkpoint_s,
        resumed=sent.resumed,
        costs=sent.costs,
    )
    # The engine's own store size is cached; the segments are current.
    store_bytes = sum(segment.size_bytes for segment in segments)
    return IndexFacts(key.digest, documents, store_bytes, segments, report)
