"""Prepared indices: filled once, kept, and copied for every fork at almost no cost."""

import ctypes
import errno
import hashlib
import mmap
import os
import shutil
import time
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import msgspec

from benchctl.disk import (
    NO_LINKS,
    FreeBytes,
    disk_errors,
    folder_past_nodes,
    free_bytes,
    open_regular,
    read_file,
    replacing,
    require_space,
)
from benchctl.engine.client import SearchClient
from benchctl.engine.declared import Places, make_all, places, with_changes
from benchctl.engine.distribution import Installation
from benchctl.engine.process import node_timeout_s
from benchctl.errors import BenchctlError
from benchctl.home import Home, open_folder
from benchctl.results.model import IndexFacts, IngestCosts, IngestReport
from benchctl.results.plan import CorpusSpec, VariantSpec
from benchctl.spec import IngestClient, PageCache
from benchctl.track.model import Track

_LOCKS = frozenset({"write.lock", "node.lock"})
_PIECE_BYTES = 2**20
_MOST_NAMED = 3
# A disk may change bytes without a trace in size and time: all files are read once a day.
_WHOLE_FOR_S = 86_400.0


class DamagedIndexError(BenchctlError):
    """A prepared index whose files are not what they were."""


class Entry(NamedTuple):
    """A folder or file of a data folder, and where its copy goes."""

    source: Path
    target: Path  # folders come before what is in them
    is_folder: bool
    write_once: bool = False  # whether it is one of Lucene's files, which are written once and may be linked


def entries(source: Path, target: Path) -> Iterator[Entry]:
    """Iterate over what a copy of a data folder needs: everything but locks of a running node.

    Raises:
        OSError: If the folder cannot be read, or holds a symbolic link.
    """
    yield Entry(source, target, is_folder=True)
    is_lucene = source.name == "index" and source.parent.name.isdigit()
    for entry in source.iterdir():
        if entry.is_symlink():
            # No engine creates any; another process of the nodes' user may, and root must not follow it.
            raise OSError(errno.ELOOP, f"{entry} is a symbolic link")
        if entry.is_dir():
            yield from entries(entry, target / entry.name)
        elif entry.name not in _LOCKS:
            yield Entry(entry, target / entry.name, is_folder=False, write_once=is_lucene)


def link(source: Path, target: Path) -> None:
    """Link a file, without following links of the nodes' user.

    Raises:
        OSError: If the file system refuses, or there is such a link.
    """
    with folder_past_nodes(source.parent) as folder:
        os.link(source.name, target, src_dir_fd=folder, follow_symlinks=False)


def copy(source: Path, target: Path) -> None:
    """Copy a file, without following links of the nodes' user.

    Raises:
        OSError: If the file system refuses, or there is such a link.
    """
    with open_regular(source, follow=False) as file:
        shutil.copyfile(f"/proc/self/fd/{file.fileno()}", target)


def _files(data: Path) -> Iterator[tuple[str, Path]]:
    for entry in entries(data, data):
        if not entry.is_folder:
            yield str(entry.source.relative_to(data)), entry.source


def stamps(data: Path) -> dict[str, tuple[int, int, int]]:
    """Return (inode, size, mtime in ns) of every file, by its path in the folder.

    Hard links, which forks make, change none of these.

    Raises:
        OSError: If a file cannot be accessed.
    """
    stats = ((name, file.stat()) for name, file in _files(data))
    return {name: (stat.st_ino, stat.st_size, stat.st_mtime_ns) for name, stat in stats}


def contents(data: Path) -> dict[str, tuple[int, int]]:
    """Return the size in bytes and the CRC-32 of every file, by its path in the folder; reads all of them.

    Raises:
        OSError: If a file cannot be read.
    """
    return {name: _content(file) for name, file in _files(data)}


def _content(file: Path) -> tuple[int, int]:
    size = checksum = 0
    with open_regular(file, follow=False) as content:
        while piece := content.read(_PIECE_BYTES):
            size, checksum = size + len(piece), zlib.crc32(piece, checksum)
    return size, checksum


def _damage_of(data: Path, built: Mapping[str, tuple[int, int]]) -> str:
    """Return what is no longer as a build left it; empty for nothing.

    A node checks most files only when a search reads them, if at all, and waits for ever for some.
    """
    found = contents(data)
    words = [
        *(f"{name} is missing" for name in sorted(built.keys() - found.keys())),
        *(f"{name} was added" for name in sorted(found.keys() - built.keys())),
        *(
            f"{name} has changed"
            for name in sorted(found.keys() & built.keys())
            if found[name] != built[name]
        ),
    ]
    more = f", and {len(words) - _MOST_NAMED} more" if len(words) > _MOST_NAMED else ""
    return ", ".join(words[:_MOST_NAMED]) + more


INDEX_FORMAT = 7
MANIFEST_NAME = "manifest.json"
_FILES_NAME = "files.json"
_WHOLE_NAME = "found-whole.json"
_Stamps = dict[str, tuple[int, int, int]]
_Contents = dict[str, tuple[int, int]]

# Measured on big5: about 290 bytes a document at rest; a force-merge needs twice that in addition.
BYTES_PER_DOCUMENT = 900
BYTES_PER_DOCUMENT_AT_REST = 300
# The same for any documents, relative to their raw size: an index can be larger than its documents.
RAW_SIZES = 3.0
RAW_SIZES_AT_REST = 1.2


@dataclass(frozen=True)
class IndexKey:
    """Identity of interchangeable prepared indices.

    Plug-ins and modules of the installation count, since analysis may need them. Replaced jars do not: an
    index is always built by the installation without them, so that both read the same bytes.
    """

    installation: Installation  # the engine that builds it
    corpus: CorpusSpec  # the documents
    track: Track  # indices with their bodies, data streams and templates
    segments: int  # of every shard, once it is force-merged
    clients: int  # concurrent senders that fill it
    build: int = 0  # which of several builds of the same, from 0; they differ by chance alone
    variant: VariantSpec | None = None  # settings and mappings that override those of the track's indices
    # what the senders are; it decides how long the filling takes, not what is in the index
    ingest_client: IngestClient = "wire"

    @property
    def places(self) -> Places:
        """Places of its documents."""
        found = places(self.track.of(self.installation.engine), self.corpus.files)
        own = self.variant
        return found if own is None else with_changes(found, own.index_settings, own.mappings)

    @property
    def digest(self) -> str:
        """Return a SHA-256 over everything that determines the index's content."""
        wanted = self.places
        parts = (
            INDEX_FORMAT,
            self.installation.engine,
            self.installation.version,
            self.installation.archive_sha256,
            sorted(plugin.sha256 for plugin in self.installation.plugins),
            self.installation.added,
            self.corpus.digest,
            # What is created on the node before the documents come.
            (wanted.indices, wanted.data_streams, self.track.templates),
            self.segments,
            self.clients,
            self.ingest_client,
            self.build,
        )
        return hashlib.sha256(msgspec.json.encode(parts, order="sorted")).hexdigest()

    @property
    def folder_name(self) -> str:
        """Readable directory name, unique by the digest."""
        engine = f"{self.installation.engine}-{self.installation.version}"
        number = f"-build-{self.build}" if self.build else ""
        return f"{engine}-{self.track.name}-{self.corpus.documents}-{self.digest[:12]}{number}"


@dataclass(frozen=True)
class PreparedIndex:
    """A finished prepared index."""

    root: Path  # its folder
    facts: IndexFacts

    @property
    def data(self) -> Path:
        """The data folder of a stopped node, which forks copy."""
        return self.root / "data"

    @property
    def rebuilt_by(self) -> str:
        """Hint about a damaged index."""
        return "the next run builds it again"

    def damage(self) -> str:
        """Read all files and return what is damaged; empty if nothing is."""
        try:
            built = msgspec.json.decode(read_file(self.root / _FILES_NAME), type=_Contents)
            damage = _damage_of(self.data, built)
        except (OSError, msgspec.DecodeError) as err:
            damage = f"it cannot be read: {err.strerror if isinstance(err, OSError) else err}"
        if damage:
            # Have it read as a whole before it is used again.
            with suppress(OSError):
                (self.root / _WHOLE_NAME).unlink(missing_ok=True)
        return damage


def find_prepared(home: Home, name: str) -> PreparedIndex | None:
    """Return the prepared index in the folder of a name, or None when it has yet to be built.

    Only a manifest, written last, makes a folder a prepared index. Its files are checked, at about a gigabyte
    a second, unless they were within a day and have not changed since: a node would silently search most
    damaged ones, and wait for minutes where a list of segments is missing.

    Raises:
        DamagedIndexError: If the index is damaged.
    """
    root = home.indices / name
    try:
        facts = msgspec.json.decode(read_file(root / MANIFEST_NAME), type=IndexFacts)
    except FileNotFoundError:
        return None
    except (OSError, msgspec.DecodeError) as err:
        raise DamagedIndexError(
            f"the prepared index {root} is damaged: {err}", hint="the next run builds it again"
        ) from err
    index = PreparedIndex(root, msgspec.structs.replace(facts, cached=True))
    with suppress(OSError, msgspec.DecodeError):
        age_s = time.time() - (root / _WHOLE_NAME).stat().st_mtime
        checked = msgspec.json.decode(read_file(root / _WHOLE_NAME), type=_Stamps)
        if 0 <= age_s < _WHOLE_FOR_S and checked == stamps(index.data):
            return index
    if damage := index.damage():
        raise DamagedIndexError(f"the prepared index {root} is damaged: {damage}", hint=index.rebuilt_by)
    _note_whole(index)
    return index


def _note_whole(index: PreparedIndex) -> None:
    # If the home cannot be written, the next run checks again.
    with suppress(OSError), replacing(index.root / _WHOLE_NAME) as partial:
        partial.write_bytes(msgspec.json.encode(stamps(index.data)))


def bytes_per_document(corpus: CorpusSpec, more: int = 0) -> float:
    """Return approximate disk space per document while an index is built.

    `more` is the number of indices of the same kind kept beside it.
    """
    generated = BYTES_PER_DOCUMENT + more * BYTES_PER_DOCUMENT_AT_REST
    held = sum(file.held for file in corpus.files)
    if not held:
        return generated
    raw = sum(file.raw_bytes for file in corpus.files) / held
    return max(generated, raw * (RAW_SIZES + more * RAW_SIZES_AT_REST))


def bytes_at_rest(corpus: CorpusSpec) -> float:
    """Return approximate disk space per document of a prepared index."""
    return bytes_per_document(corpus, 1) - bytes_per_document(corpus)


@contextmanager
def building(home: Home, key: IndexKey, *, free: FreeBytes = free_bytes, more: int = 0) -> Iterator[Path]:
    """Make a scratch folder to build in; removed afterwards unless `keep` moved it.

    `more` is the number of further builds of the same kind, whose space is checked now as well.

    Raises:
        BenchctlError: If the disk is too small.
    """
    needed = round(key.corpus.documents * bytes_per_document(key.corpus, more))
    what = "an index" if more == 0 else f"{more + 1} builds of an index"
    require_space(
        home.scratch,
        needed,
        f"prepare {what} of {key.corpus.documents:,} documents",
        available=free(home.scratch),
        hint="free some space, set BENCHCTL_HOME to a larger disk, or use fewer --docs"
        + (" or --index-builds" if more else ""),
    )
    root = home.scratch / f"index-{key.folder_name}-{os.getpid()}"
    try:
        with disk_errors(f"build an index in {root}"):
            shutil.rmtree(root, ignore_errors=True)
            (root / "data").mkdir(parents=True)
            open_folder(root)
        yield root
    finally:
        shutil.rmtree(root, ignore_errors=True)


def keep(home: Home, name: str, built: Path, facts: IndexFacts) -> PreparedIndex:
    """Move a finished index, its node stopped, to where forks find it.

    Raises:
        BenchctlError: If the disk is full or cannot be written.
    """
    root = home.indices / name
    with disk_errors(f"keep the prepared index {root}"):
        for lock in (built / "data").rglob("node.lock"):
            lock.unlink()
        (built / _FILES_NAME).write_bytes(msgspec.json.encode(contents(built / "data")))
        (built / MANIFEST_NAME).write_bytes(msgspec.json.format(msgspec.json.encode(facts), indent=1))
        shutil.rmtree(root, ignore_errors=True)
        built.replace(root)
    index = PreparedIndex(root, facts)
    _note_whole(index)
    return index


def copy_index(prepared: PreparedIndex, target: Path) -> float:
    """Give a fork its private copy of the index; returns the seconds it took.

    Lucene never rewrites a file of its `index` folders, so those are hard-linked where the file system can.
    Everything else (cluster state, translog with its checkpoints, which are rewritten in place) is copied.
    The target is a data folder that does not exist yet.

    Raises:
        BenchctlError: If there is no space, or the source cannot be read.
    """
    start = time.monotonic()
    try:
        for entry in entries(prepared.data, target):
            if entry.is_folder:
                entry.target.mkdir(parents=True)
            elif not (entry.write_once and _linked(entry)):
                copy(entry.source, entry.target)
    except OSError as err:
        shutil.rmtree(target, ignore_errors=True)
        raise BenchctlError(
            f"cannot copy the prepared index {prepared.root} to {target}: {err.strerror}",
            hint="free some space" if err.errno == errno.ENOSPC else "",
        ) from err
    return time.monotonic() - start


def _linked(entry: Entry) -> bool:
    """Hard-link; False where the file system or the kernel does not allow it."""
    try:
        link(entry.source, entry.target)
    except OSError as err:
        if err.errno in NO_LINKS:
            return False
        raise
    return True


_MOST_RESIDENT = 0.01
_CHUNK = 1024 * 1024
_libc = ctypes.CDLL(None, use_errno=True)


def prepare_page_cache(data: Path, wanted: PageCache) -> float | None:
    """Evict an index from the page cache, or read it in.

    Hard links share their pages, so a copy is evicted with what it was linked from. Pages that a process has
    mapped stay: do this before a node starts.

    Args:
        data: of a node that is down.
        wanted: `as-is` does nothing.

    Returns:
        The share of its bytes that is in the page cache now, 0 to 1; None where nothing was done.

    Raises:
        BenchctlError: If the file system keeps its pages, as one in memory does, or a file cannot be read.
    """
    if wanted == "as-is":
        return None
    with disk_errors(f"prepare the page cache of {data}"):
        for descriptor, size in _open_files(data):
            if wanted == "cold":
                os.fdatasync(descriptor)  # what is not written yet cannot be dropped
                os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
            else:
                for at in range(0, size, _CHUNK):
                    os.pread(descriptor, _CHUNK, at)
    share = resident_share(data)
    if wanted == "cold" and share > _MOST_RESIDENT:
        raise BenchctlError(
            f"{100 * share:.0f}% of {data} stays in the page cache although it was to be dropped",
            hint="remove --page-cache, or set BENCHCTL_HOME to a directory on a disk",
        )
    return share


def resident_share(data: Path) -> float:
    """Return the share of an index in the page cache, 0 to 1; a node may be using it.

    Raises:
        BenchctlError: If a file cannot be read.
    """
    resident = total = 0
    with disk_errors(f"look at the page cache of {data}"):
        for descriptor, size in _open_files(data):
            resident += _resident_bytes(descriptor, size)
            total += size
    return min(resident / total, 1.0) if total else 0.0


def _open_files(data: Path) -> Iterator[tuple[int, int]]:
    for path in data.rglob("*"):
        # What a node removes meanwhile is not part of its index any more.
        with suppress(FileNotFoundError):
            if path.is_file() and not path.is_symlink():
                with open_regular(path, follow=False) as file:
                    if size := os.fstat(file.fileno()).st_size:
                        yield file.fileno(), size


def _resident_bytes(descriptor: int, size: int) -> int:
    """By mincore, which tells the truth to a file's owner and to root only."""
    # Private and writable only so that ctypes finds its address; nothing is touched.
    with mmap.mmap(descriptor, size, access=mmap.ACCESS_COPY) as mapped:
        pages = (ctypes.c_ubyte * -(-size // mmap.PAGESIZE))()
        view = (ctypes.c_char * size).from_buffer(mapped)
        try:
            if _libc.mincore(ctypes.c_void_p(ctypes.addressof(view)), ctypes.c_size_t(size), pages):
                raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
        finally:
            del view
        return sum(page & 1 for page in pages) * mmap.PAGESIZE


# The filling of what a track declares: created on a node, indexed, merged, committed.

SETTLE_PAUSE_S = 0.1


def settle(client: SearchClient, name: str) -> None:
    """Commit until the last commit is the only one and the translog is empty.

    With an asynchronous translog the engine keeps older commits, their segments and gigabytes of translog
    until everything before them is on disk; a copy of the data would include all of that.

    Raises:
        BenchctlError: If that takes too long.
    """
    limit_s = node_timeout_s()
    deadline = time.monotonic() + limit_s
    while True:
        client.flush(name)
        # Segments that were merged away stay open until the next refresh.
        client.refresh(name)
        left = client.translog_operations(name)
        if left == 0:
            return
        if time.monotonic() > deadline:
            raise BenchctlError(f"the translog still holds {left:,} operations after {limit_s:.0f} s")
        time.sleep(SETTLE_PAUSE_S)


REFRESH_INTERVAL = "index.refresh_interval"


@dataclass(frozen=True)
class Sent:
    """Result of a sender."""

    documents: int  # acknowledged by the node
    body_bytes: int  # of the bulk requests
    seconds: float  # first request to last answer
    costs: IngestCosts


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
    different index each time.

    Returns:
        What `finish` is to restore.

    Raises:
        BenchctlError: If the node refuses something.
    """
    wanted = key.places
    make_all(client, key.track, wanted, key.variant.of_index if key.variant else {})
    declared = {
        name: {REFRESH_INTERVAL: value}
        for name, value in client.setting(wanted.target, REFRESH_INTERVAL).items()
    }
    for name in declared:
        client.put_settings(name, {REFRESH_INTERVAL: "-1"})
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
    clocks = client.write_clocks_of(name)
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
        raise BenchctlError(f"the force-merge left {len(segments)} segments, {most} were requested")
    report = IngestReport(
        documents=sent.documents,
        body_bytes=sent.body_bytes,
        clients=key.clients,
        ingest_s=sent.seconds,
        refresh_s=refresh_s,
        force_merge_s=merge_s,
        flush_s=flush_s,
        engine_indexing_s=clocks["indexing_ms"] / 1000,
        engine_refresh_s=clocks["refresh_ms"] / 1000,
        engine_merge_s=clocks["merge_ms"] / 1000,
        engine_flush_s=clocks["flush_ms"] / 1000,
        costs=sent.costs,
    )
    # The engine's own store size is cached; the segments are current.
    store_bytes = sum(segment.size_bytes for segment in segments)
    return IndexFacts(key.digest, documents, store_bytes, segments, report)
