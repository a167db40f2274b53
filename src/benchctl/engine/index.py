"""Prepared indices: built once, kept, and given to every fork as a private copy that costs nothing."""

import errno
import hashlib
import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import msgspec

from benchctl.engine.archive import disk_errors
from benchctl.engine.client import SearchClient
from benchctl.engine.install import Installation
from benchctl.errors import BenchctlError
from benchctl.home import Home, Owner, open_folder
from benchctl.results.model import IndexFacts, IngestReport
from benchctl.results.plan import CorpusSpec
from benchctl.track.model import Track

INDEX_FORMAT = 3
MANIFEST_NAME = "manifest.json"
SETTLE_TIMEOUT_S = 60.0
SETTLE_PAUSE_S = 0.1
REFRESH_INTERVAL = "index.refresh_interval"

# Measured on the big5 corpus: about 125 bytes a document at rest; a force-merge needs the index twice more.
BYTES_PER_DOCUMENT = 400
BYTES_PER_DOCUMENT_AT_REST = 150


@dataclass(frozen=True)
class Sent:
    """What a sender did.

    Attributes:
        documents: acknowledged by the node.
        body_bytes: of the bulk requests.
        seconds: first request to last answer.
    """

    documents: int
    body_bytes: int
    seconds: float


Sender = Callable[[str], Sent]
"""Sends the whole corpus to an index, by its name."""


@dataclass(frozen=True)
class IndexKey:
    """What makes two prepared indices interchangeable.

    Attributes:
        installation: the engine that builds it.
        corpus: the documents.
        track: index body and name.
        segments: of the force-merged index.
        clients: concurrent senders that fill it.
        build: which of several builds of the same, from 0; they differ by chance alone.
    """

    installation: Installation
    corpus: CorpusSpec
    track: Track
    segments: int
    clients: int
    build: int = 0

    @property
    def digest(self) -> str:
        """SHA-256 over everything that decides the index's content."""
        parts: tuple[object, ...] = (
            INDEX_FORMAT,
            self.installation.engine,
            self.installation.version,
            self.installation.archive_sha256,
            self.corpus.digest,
            self.track.index_name,
            msgspec.json.encode(self.track.index_body, order="sorted").decode(),
            self.segments,
            self.clients,
        )
        # The first is called as if it were the only one: it is shared with runs that want one.
        if self.build:
            parts = (*parts, self.build)
        return hashlib.sha256(msgspec.json.encode(parts)).hexdigest()

    @property
    def folder_name(self) -> str:
        """Readable, and unique by the digest."""
        engine = f"{self.installation.engine}-{self.installation.version}"
        number = f"-build-{self.build}" if self.build else ""
        return f"{engine}-{self.track.name}-{self.corpus.documents}-{self.digest[:12]}{number}"


@dataclass(frozen=True)
class PreparedIndex:
    """A finished prepared index.

    Attributes:
        root: its folder; `data` inside is a node's data folder, stopped cleanly.
        facts: what it is and how it came to be.
    """

    root: Path
    facts: IndexFacts

    @property
    def data(self) -> Path:
        """The data folder that forks copy."""
        return self.root / "data"


def find_prepared(home: Home, key: IndexKey) -> PreparedIndex | None:
    """The prepared index of this key, or None when it has yet to be built.

    Only a manifest, written last, makes a folder a prepared index.
    """
    root = home.indices / key.folder_name
    try:
        facts = msgspec.json.decode((root / MANIFEST_NAME).read_bytes(), type=IndexFacts)
    except FileNotFoundError:
        return None
    except (OSError, msgspec.DecodeError) as err:
        raise BenchctlError(
            f"the prepared index {root} is damaged: {err}",
            hint=f"delete {root}; the next run builds it again",
        ) from err
    return PreparedIndex(root, msgspec.structs.replace(facts, cached=True))


@contextmanager
def building(
    home: Home, key: IndexKey, *, free_bytes: Callable[[Path], int], more: int = 0
) -> Iterator[Path]:
    """A scratch folder to build in; gone afterwards unless it was kept with `keep`.

    Args:
        home: where.
        key: of the index.
        free_bytes: tells what is free in a folder.
        more: builds of the same kind that are to follow, for which there must be space, too: found out now,
            not after some of them.

    Raises:
        BenchctlError: the disk is too small.
    """
    needed = key.corpus.documents * (BYTES_PER_DOCUMENT + more * BYTES_PER_DOCUMENT_AT_REST)
    free = free_bytes(home.scratch)
    if free < needed:
        what = "an index" if more == 0 else f"{more + 1} builds of an index"
        raise BenchctlError(
            f"preparing {what} of {key.corpus.documents:,} documents needs about {needed / 1e9:.1f} GB in "
            f"{home.root}, {free / 1e9:.1f} GB are free",
            hint="free some space, set BENCHCTL_HOME to a larger disk, or use fewer --docs"
            + (" or --index-builds" if more else ""),
        )
    root = home.scratch / f"index-{key.folder_name}-{os.getpid()}"
    try:
        with disk_errors(f"build an index in {root}"):
            shutil.rmtree(root, ignore_errors=True)
            (root / "data").mkdir(parents=True)
            open_folder(root)
            _give(root / "data", home.node_owner)
        yield root
    finally:
        shutil.rmtree(root, ignore_errors=True)


def fill(client: SearchClient, key: IndexKey, send: Sender) -> IndexFacts:
    """Create, ingest, refresh, force-merge and flush; the node is still up afterwards.

    Periodic refreshes are off during the ingest: they cut segments by the clock, and the same corpus would
    become another index each time.

    Raises:
        BenchctlError: the node refused a step, lost documents, or did not merge to the stated segments.
    """
    name = key.track.index_name
    body = key.track.index_body
    quiet = {**body.settings, REFRESH_INTERVAL: "-1"}
    aliases = {"aliases": body.aliases} if body.aliases else {}
    client.create_index(name, {"settings": quiet, "mappings": body.mappings, **aliases})
    sent = send(name)
    refresh_s = _timed(lambda: client.refresh(name))
    merge_s = _timed(lambda: client.force_merge(name, key.segments))
    client.put_settings(name, {REFRESH_INTERVAL: body.settings.get(REFRESH_INTERVAL)})
    flush_s = _timed(lambda: _settle(client, name))
    return _facts(client, key, sent, refresh_s, merge_s, flush_s)


def _settle(client: SearchClient, name: str) -> None:
    """Commit until the last commit is the only one and the translog is empty.

    With an asynchronous translog the engine keeps older commits, their segments and gigabytes of translog
    until it knows that everything before them is on disk; forks would copy and trim all of that.

    Raises:
        BenchctlError: it does not come to that.
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


def _timed(step: Callable[[], object]) -> float:
    start = time.monotonic()
    step()
    return time.monotonic() - start


def _facts(
    client: SearchClient, key: IndexKey, sent: Sent, refresh_s: float, merge_s: float, flush_s: float
) -> IndexFacts:
    name = key.track.index_name
    stats = client.index_stats(name)
    segments = tuple(client.segments(name))
    expected = key.corpus.documents
    if stats.documents != expected:
        raise BenchctlError(
            f"{key.installation.engine} {key.installation.version} holds {stats.documents:,} of "
            f"{expected:,} documents after the ingest",
            hint="the node's log says why; the half-built index was discarded",
        )
    if len(segments) > key.segments:
        raise BenchctlError(f"the force-merge left {len(segments)} segments, {key.segments} were asked for")
    report = IngestReport(
        documents=sent.documents,
        body_bytes=sent.body_bytes,
        clients=key.clients,
        ingest_s=sent.seconds,
        refresh_s=refresh_s,
        force_merge_s=merge_s,
        flush_s=flush_s,
        engine_indexing_s=stats.indexing_ms / 1000,
        engine_refresh_s=stats.refresh_ms / 1000,
        engine_merge_s=stats.merge_ms / 1000,
        engine_flush_s=stats.flush_ms / 1000,
    )
    # The engine's own store size is a cached figure; the segments are what is there now.
    store_bytes = sum(segment.size_bytes for segment in segments)
    return IndexFacts(key.digest, stats.documents, store_bytes, segments, report)


def keep(home: Home, key: IndexKey, built: Path, facts: IndexFacts) -> PreparedIndex:
    """Move a finished index, its node stopped, to where forks find it.

    Raises:
        BenchctlError: the disk is full or cannot be written.
    """
    root = home.indices / key.folder_name
    with disk_errors(f"keep the prepared index {root}"):
        (built / "data" / "node.lock").unlink(missing_ok=True)
        (built / MANIFEST_NAME).write_bytes(msgspec.json.format(msgspec.json.encode(facts), indent=1))
        shutil.rmtree(root, ignore_errors=True)
        built.replace(root)
    return PreparedIndex(root, facts)


def copy_index(prepared: PreparedIndex, target: Path, owner: Owner | None) -> float:
    """Give a fork its private copy of the index.

    Lucene never rewrites a file of its `index` folders, so those are hard-linked where the file system can,
    and written where it cannot. Everything else (cluster state, translog with its checkpoints, which are
    rewritten in place) is copied.

    Args:
        prepared: what to copy.
        target: a data folder that does not exist yet.
        owner: whose the copy is to be; None leaves it to the current user.

    Returns:
        Seconds.

    Raises:
        BenchctlError: no space, or the source cannot be read.
    """
    start = time.monotonic()
    try:
        _copy_tree(prepared.data, target, owner)
    except OSError as err:
        shutil.rmtree(target, ignore_errors=True)
        raise BenchctlError(
            f"cannot copy the prepared index {prepared.root} to {target}: {err.strerror}",
            hint="free some space" if err.errno == errno.ENOSPC else "",
        ) from err
    return time.monotonic() - start


def _copy_tree(source: Path, target: Path, owner: Owner | None) -> None:
    target.mkdir(parents=True)
    _give(target, owner)
    write_once = source.name == "index" and source.parent.name.isdigit()
    for entry in source.iterdir():
        copied = target / entry.name
        if entry.is_symlink():
            # No engine makes one. Another process of the nodes' user may have, and root must not follow it.
            raise OSError(errno.ELOOP, f"{entry} is a symbolic link")
        if entry.is_dir():
            _copy_tree(entry, copied, owner)
        elif entry.name in {"write.lock", "node.lock"}:
            continue
        elif not (write_once and _link(entry, copied)):
            shutil.copyfile(entry, copied)
            _give(copied, owner)


def _link(source: Path, target: Path) -> bool:
    """Hard-link; False where the file system or the kernel's rules do not allow it."""
    try:
        os.link(source, target)
    except OSError as err:
        if err.errno in {errno.EXDEV, errno.EPERM, errno.EMLINK, errno.ENOTSUP}:
            return False
        raise
    return True


def _give(path: Path, owner: Owner | None) -> None:
    if owner is not None:
        os.chown(path, owner.uid, owner.gid)
