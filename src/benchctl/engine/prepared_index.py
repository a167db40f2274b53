"""Prepared indices: built once, kept, and given to every fork as a private copy that costs nothing."""

import errno
import hashlib
import os
import shutil
import struct
import time
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from benchctl.disk import (
    FreeBytes,
    disk_errors,
    folder_past_nodes,
    free_bytes,
    open_regular,
    read_file,
    replacing,
    require_space,
)
from benchctl.engine.declared import Places, places, with_settings
from benchctl.engine.distribution import Installation
from benchctl.errors import BenchctlError
from benchctl.home import Home, open_folder
from benchctl.results.model import IndexFacts
from benchctl.results.plan import CorpusSpec
from benchctl.track.model import Track

_LOCKS = frozenset({"write.lock", "node.lock"})
# Lucene ends every file so: a number that says that it is a footer, one of the algorithm, and a CRC-32 of all
# that stands before it, big-endian. The engines write their own state in the same form.
_FOOTER = struct.Struct(">IIQ")
_FOOTER_MAGIC = 0xC02893E8
_CHECKSUM_BYTES = 8
_PIECE_BYTES = 2**20


class Entry(NamedTuple):
    """A folder or file of a data folder, and where its copy goes.

    Attributes:
        source: where it is.
        target: where it goes; folders come before what is in them.
        is_folder: whether it is one.
        write_once: whether it is one of Lucene's files, which are written once and may be linked.
    """

    source: Path
    target: Path
    is_folder: bool
    write_once: bool = False


def entries(source: Path, target: Path) -> Iterator[Entry]:
    """All that a copy of a data folder has to have: everything but the locks of a running node.

    Raises:
        OSError: it cannot be read, or holds a symbolic link.
    """
    yield Entry(source, target, is_folder=True)
    is_lucene = source.name == "index" and source.parent.name.isdigit()
    for entry in source.iterdir():
        if entry.is_symlink():
            # No engine makes one. Another process of the nodes' user may have, and root must not follow it.
            raise OSError(errno.ELOOP, f"{entry} is a symbolic link")
        if entry.is_dir():
            yield from entries(entry, target / entry.name)
        elif entry.name not in _LOCKS:
            yield Entry(entry, target / entry.name, is_folder=False, write_once=is_lucene)


def link(source: Path, target: Path) -> None:
    """Link a file, and no other that a link of the nodes' user leads to.

    Raises:
        OSError: the file system refuses, or there is such a link.
    """
    with folder_past_nodes(source.parent) as folder:
        os.link(source.name, target, src_dir_fd=folder, follow_symlinks=False)


def copy(source: Path, target: Path) -> None:
    """Copy a file, and no other that a link of the nodes' user leads to.

    Raises:
        OSError: the file system refuses, or there is such a link.
    """
    with open_regular(source, follow=False) as file:
        shutil.copyfile(f"/proc/self/fd/{file.fileno()}", target)


def stamps(data: Path) -> dict[str, tuple[int, int, int]]:
    """(inode, size, time of its last change in ns) of every file with a checksum, by its path in the folder.

    Links to a file, which forks make, change none of these.

    Raises:
        OSError: one cannot be looked at.
    """
    found = {}
    for entry in _checksummed(data):
        stat = entry.source.stat()
        found[str(entry.source.relative_to(data))] = (stat.st_ino, stat.st_size, stat.st_mtime_ns)
    return found


def _checksummed(data: Path) -> Iterator[Entry]:
    for entry in entries(data, data):
        if not entry.is_folder and (entry.write_once or entry.source.parent.name == "_state"):
            yield entry


def _damage_of(data: Path, store_bytes: int) -> str:
    """What is wrong with the data folder of a node that was stopped in order, in words; empty for nothing.

    All of its files are read: a node looks at most of them only when a search comes to them, if at all.
    """
    found_bytes = 0
    for entry in _checksummed(data):
        if not _is_whole(entry.source):
            return f"the content of {entry.source.relative_to(data)} does not match its checksum"
        if entry.write_once and not entry.source.name.startswith("segments"):
            found_bytes += entry.source.stat().st_size
    if found_bytes < store_bytes:
        return f"its segments have {found_bytes:,} bytes, and had {store_bytes:,} when it was built"
    return ""


def _is_whole(file: Path) -> bool:
    size = file.stat().st_size
    if size < _FOOTER.size:
        return False
    checksum = 0
    with open_regular(file, follow=False) as opened:
        left = size - _CHECKSUM_BYTES
        while left and (piece := opened.read(min(left, _PIECE_BYTES))):
            checksum = zlib.crc32(piece, checksum)
            left -= len(piece)
        opened.seek(size - _FOOTER.size)
        return _FOOTER.unpack(opened.read(_FOOTER.size)) == (_FOOTER_MAGIC, 0, checksum)


# Indices, kept and copied.

INDEX_FORMAT = 3
MANIFEST_NAME = "manifest.json"
_WHOLE_NAME = "found-whole.json"
_Stamps = dict[str, tuple[int, int, int]]

# Measured on the big5 corpus: about 290 bytes a document at rest; a force-merge needs the index twice more.
BYTES_PER_DOCUMENT = 900
BYTES_PER_DOCUMENT_AT_REST = 300
# The same for documents of any kind, in sizes of their text: an index can be larger than what it was made of.
RAW_SIZES = 3.0
RAW_SIZES_AT_REST = 1.2


@dataclass(frozen=True)
class IndexKey:
    """What makes two prepared indices interchangeable.

    Attributes:
        installation: the engine that builds it.
        corpus: the documents.
        track: indices with their bodies, data streams and templates.
        segments: of every shard, once it is force-merged.
        clients: concurrent senders that fill it.
        build: which of several builds of the same, from 0; they differ by chance alone.
        index_settings: over those of the track's indices, by names that begin with `index.`.

    Plug-ins of the installation count, since analysis may need them. Jars that are replaced in it do not: an
    index is always built by the installation without them, so that both read the same bytes.
    """

    installation: Installation
    corpus: CorpusSpec
    track: Track
    segments: int
    clients: int
    build: int = 0
    index_settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def places(self) -> Places:
        """Where its documents are."""
        return with_settings(places(self.track, self.corpus.files), self.index_settings)

    @property
    def digest(self) -> str:
        """SHA-256 over everything that decides the index's content."""
        parts: tuple[object, ...] = (
            INDEX_FORMAT,
            self.installation.engine,
            self.installation.version,
            self.installation.archive_sha256,
            self.corpus.digest,
            *self._declared,
            self.segments,
            self.clients,
        )
        if self.installation.plugins:
            parts = (*parts, sorted(one.sha256 for one in self.installation.plugins))
        # The first is called as if it were the only one: it is shared with runs that want one.
        if self.build:
            parts = (*parts, self.build)
        return hashlib.sha256(msgspec.json.encode(parts)).hexdigest()

    @property
    def _declared(self) -> tuple[object, ...]:
        """What is made on the node before the documents come."""
        wanted = self.places
        if len(wanted.indices) == 1 and not wanted.data_streams and not self.track.templates:
            # The form under which indices are kept since before there could be several.
            (index,) = wanted.indices
            return index.name, msgspec.json.encode(index.body, order="sorted").decode()
        all_of_it = (wanted.indices, wanted.data_streams, self.track.templates)
        return (msgspec.json.encode(all_of_it, order="sorted").decode(),)

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

    @property
    def rebuilt_by(self) -> str:
        """What to do about a damaged one."""
        return f"delete {self.root}; the next run builds it again"

    def damage(self) -> str:
        """What is wrong with its files, in words, all of which are read; empty when nothing is."""
        try:
            return _damage_of(self.data, self.facts.store_bytes)
        except OSError as err:
            return f"it cannot be read: {err.strerror or err}"


def find_prepared(home: Home, key: IndexKey) -> PreparedIndex | None:
    """The prepared index of this key, or None when it has yet to be built.

    Only a manifest, written last, makes a folder a prepared index. Its files are read, about a gigabyte a
    second, unless they are those that were found whole before: a node would search in most damaged ones
    without a word.

    Raises:
        BenchctlError: it is damaged.
    """
    root = home.indices / key.folder_name
    try:
        facts = msgspec.json.decode(read_file(root / MANIFEST_NAME), type=IndexFacts)
    except FileNotFoundError:
        return None
    except (OSError, msgspec.DecodeError) as err:
        raise BenchctlError(
            f"the prepared index {root} is damaged: {err}",
            hint=f"delete {root}; the next run builds it again",
        ) from err
    found = PreparedIndex(root, msgspec.structs.replace(facts, cached=True))
    with suppress(OSError, msgspec.DecodeError):
        if msgspec.json.decode(read_file(root / _WHOLE_NAME), type=_Stamps) == stamps(found.data):
            return found
    if damage := found.damage():
        raise BenchctlError(f"the prepared index {root} is damaged: {damage}", hint=found.rebuilt_by)
    # A home that cannot be written costs the next run another look.
    with suppress(OSError), replacing(root / _WHOLE_NAME) as partial:
        partial.write_bytes(msgspec.json.encode(stamps(found.data)))
    return found


def bytes_per_document(corpus: CorpusSpec, more: int = 0) -> float:
    """About how much space an index takes while it is built, by the document.

    Args:
        corpus: its documents.
        more: indices of the same kind that are kept beside it.
    """
    generated = BYTES_PER_DOCUMENT + more * BYTES_PER_DOCUMENT_AT_REST
    held = sum(file.held for file in corpus.files)
    if not held:
        return generated
    raw = sum(file.raw_bytes for file in corpus.files) / held
    return max(generated, raw * (RAW_SIZES + more * RAW_SIZES_AT_REST))


@contextmanager
def building(home: Home, key: IndexKey, *, free: FreeBytes = free_bytes, more: int = 0) -> Iterator[Path]:
    """A scratch folder to build in; gone afterwards unless it was kept with `keep`.

    Args:
        home: where.
        key: of the index.
        free: how much can be written to a folder, bytes.
        more: builds of the same kind that are to follow, for which there must be space, too: found out now,
            not after some of them.

    Raises:
        BenchctlError: the disk is too small.
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


def copy_index(prepared: PreparedIndex, target: Path) -> float:
    """Give a fork its private copy of the index.

    Lucene never rewrites a file of its `index` folders, so those are hard-linked where the file system can,
    and written where it cannot. Everything else (cluster state, translog with its checkpoints, which are
    rewritten in place) is copied.

    Args:
        prepared: what to copy.
        target: a data folder that does not exist yet; the node that is started on it is given it.

    Returns:
        Seconds.

    Raises:
        BenchctlError: no space, or the source cannot be read.
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
    """Hard-link; False where the file system or the kernel's rules do not allow it."""
    try:
        link(entry.source, entry.target)
    except OSError as err:
        if err.errno in {errno.EXDEV, errno.EPERM, errno.EMLINK, errno.ENOTSUP}:
            return False
        raise
    return True
