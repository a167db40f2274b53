"""Files of documents that benchctl did not generate: even shares of them, read from any position."""

import hashlib
import os
from bisect import bisect_left
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from benchctl.corpus.packed import decode, unreadable
from benchctl.corpus.published import SUFFIXES, Fetch, corpus_folder, find_file, is_published, not_found
from benchctl.disk import disk_errors, read_file
from benchctl.errors import BenchctlError, UsageError
from benchctl.home import Home
from benchctl.network import Progress
from benchctl.results.plan import CorpusFile
from benchctl.track.model import Corpus, Documents
from benchctl.track.template_source import cut

# Partial use of a file: evenly spaced blocks, the same ones every time.
#
# Corpora are ordered by day, so a prefix would hold the first days only.

BLOCKS = 1000
"""Blocks of a share: no stretch of a file deviates from its due by more than a thousandth of the share."""


class Stretch(NamedTuple):
    """Consecutive documents of a file, [start, stop), numbered within the file."""

    start: int
    stop: int


def stretches(documents: int, held: int, start: int = 0, stop: int | None = None) -> Iterator[Stretch]:
    """Where documents [start, stop) of an even share of `documents` are in a file that holds `held`.

    Before the kth of n blocks, (2k + 1) / 2n of the skipped documents have been skipped. `stop` defaults to
    the end
    of the share.

    Yields:
        In order, non-empty stretches that do not touch; a single one when nothing is skipped.

    Raises:
        ValueError: the share is larger than the file, or the slice is not within the share.
    """
    stop = documents if stop is None else stop
    if not 0 <= start <= stop <= documents <= held:
        raise ValueError(f"documents [{start}, {stop}) are not a slice of {documents} out of {held}")
    left_out = held - documents
    if left_out == 0:
        if start < stop:
            yield Stretch(start, stop)
        return
    blocks = min(documents, BLOCKS)
    block = start * blocks // documents if blocks else 0
    waiting: Stretch | None = None
    while start < stop:
        end = min((block + 1) * documents // blocks, stop)
        gap = (2 * block + 1) * left_out // (2 * blocks)
        found = Stretch(start + gap, end + gap)
        block += 1
        start = end
        if found.start == found.stop:
            continue
        if waiting is not None and waiting.stop == found.start:
            waiting = Stretch(waiting.start, found.stop)
            continue
        if waiting is not None:
            yield waiting
        waiting = found
    if waiting is not None:
        yield waiting


def shared_out(documents: int, held: Sequence[int]) -> tuple[int, ...]:
    """Split a number of documents over files in proportion to their sizes, each off by less than one."""
    total = sum(held)
    found = []
    before = 0
    for count in held:
        after = before + count
        found.append(after * documents // total - before * documents // total if total else 0)
        before = after
    return tuple(found)


# The index of a file that was read in full: its lines, its digest, and where decoding can start.

_FORMAT_VERSION = 2
_APART_BYTES = 1 << 22  # decoded; denser entries save little, and those of a terabyte fit in memory

_EMPTY = (b"\n\n", b"\n\r\n")


class Entry(msgspec.Struct, frozen=True, array_like=True):
    """A position from which a file can be decoded.

    Attributes:
        at: in the file, in the unit of its format.
        raw_bytes: decoded bytes before it.
        line_ends: newlines before it.
    """

    at: int
    raw_bytes: int
    line_ends: int


class FileIndex(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab", kw_only=True):
    r"""The index of a file of lines.

    Attributes:
        format_version: of this form.
        path: absolute.
        file_bytes: its size on disk.
        modified_ns: mtime.
        status_ns: ctime, which no program can set back.
        lines: number of lines, including an unfinished last one.
        raw_bytes: of all lines, decompressed.
        sha256: of the same, hexadecimal.
        entries: where decoding can start, in order; the first is the beginning.
        first_empty: number of the first empty line, from 0; None when there is none.
    """

    format_version: int
    path: str
    file_bytes: int
    modified_ns: int
    status_ns: int
    lines: int
    raw_bytes: int
    sha256: str
    entries: tuple[Entry, ...]
    first_empty: int | None = None

    def entry_before(self, line: int) -> int:
        """The last entry before the line's first byte."""
        return max(bisect_left(self.entries, line, key=lambda entry: entry.line_ends) - 1, 0)

    def entry_behind(self, line: int) -> int:
        """The first entry after the end of all lines before `line`; len(entries) for none."""
        return bisect_left(self.entries, line, key=lambda entry: entry.line_ends)


def index_file(
    path: Path,
    home: Home,
    progress: Callable[[int], None] | None = None,
    *,
    apart_bytes: int = _APART_BYTES,
) -> FileIndex:
    """The index of a file: kept from the last time in `home`, or created by reading all of it.

    `progress` is called with the number of lines newly read; entries are at least `apart_bytes` decoded bytes
    apart.

    Raises:
        BenchctlError: the file is missing or damaged, or was changed while it was read.
    """
    path = path.absolute()
    kept = _kept_at(path, home)
    found = _load(kept, path)
    if found is None:
        found = _read(path, progress, apart_bytes)
        with disk_errors(f"keep what is known of {path} in {kept.parent}"):
            kept.parent.mkdir(parents=True, exist_ok=True)
            building = kept.with_name(f"{kept.name}.{os.getpid()}")
            building.write_bytes(msgspec.json.encode(found))
            building.replace(kept)
    return found


def _kept_at(path: Path, home: Home) -> Path:
    name = hashlib.sha256(os.fsencode(path)).hexdigest()[:32]
    return home.corpora / ".files" / f"{name}.json"


def _load(kept: Path, path: Path) -> FileIndex | None:
    """The kept index; None when there is none for the file's current state."""
    with suppress(OSError, msgspec.DecodeError):
        found = msgspec.json.decode(read_file(kept), type=FileIndex)
        if (found.format_version, found.path) == (_FORMAT_VERSION, str(path)) and _facts(path) == (
            found.file_bytes,
            found.modified_ns,
            found.status_ns,
        ):
            return found
    return None


def _facts(path: Path) -> tuple[int, int, int]:
    """(size in bytes, mtime in ns, ctime in ns)."""
    try:
        info = path.stat()
    except OSError as err:
        raise unreadable(path, err.strerror or str(err)) from err
    return info.st_size, info.st_mtime_ns, info.st_ctime_ns


def _read(path: Path, progress: Callable[[int], None] | None, apart_bytes: int) -> FileIndex:
    before = _facts(path)
    digest = hashlib.sha256()
    entries = [Entry(0, 0, 0)]
    raw_bytes = line_ends = 0
    first_empty: int | None = None
    last = b"\n"
    for at, block in decode(path):
        if at > 0 and raw_bytes - entries[-1].raw_bytes >= apart_bytes:
            entries.append(Entry(at, raw_bytes, line_ends))
        joined = last + block
        if first_empty is None and (places := [at for empty in _EMPTY if (at := joined.find(empty)) >= 0]):
            first_empty = line_ends + block.count(b"\n", 0, max(min(places) + 1 - len(last), 0))
        count = block.count(b"\n")
        digest.update(block)
        raw_bytes += len(block)
        line_ends += count
        last = joined[-2:]
        if progress is not None:
            progress(count)
    if _facts(path)[:2] != before[:2]:
        raise unreadable(path, "it was changed while it was read")
    return FileIndex(
        format_version=_FORMAT_VERSION,
        path=str(path),
        file_bytes=before[0],
        modified_ns=before[1],
        status_ns=before[2],
        lines=line_ends + (not last.endswith(b"\n")),
        raw_bytes=raw_bytes,
        sha256=digest.hexdigest(),
        entries=tuple(entries),
        first_empty=first_empty,
    )


_ACTIONS = frozenset({"index", "create", "update", "delete"})
_ACTION_KEYS = frozenset({"routing", "pipeline", "require_alias", "require_data_stream", "dynamic_templates"})


# Lines of a file by number: decoding starts near them if the file's index allows it.


class _Run(NamedTuple):
    """Stretches of lines that are decoded in one go.

    Attributes:
        start: where decoding starts.
        stop: where it ends; None for the end of the file.
        line_ends: before `start`.
        stretches: of lines, in order.
    """

    start: int
    stop: int | None
    line_ends: int
    stretches: Sequence[Stretch]


def _read_lines(
    path: Path, wanted: Iterable[Stretch], index: FileIndex | None
) -> Generator[bytes, None, None]:
    r"""Lines of a file, in memory of a few blocks."""
    for run in _runs(wanted, index):
        with closing(decode(path, start=run.start, stop=run.stop)) as decoded:
            reached = yield from _slices((block for _, block in decoded), run.line_ends, run.stretches)
        if reached < run.stretches[-1].stop:
            raise unreadable(path, f"it ends after {reached:,} lines")


def _runs(wanted: Iterable[Stretch], index: FileIndex | None) -> Iterator[_Run]:
    if index is None:
        if found := list(wanted):
            yield _Run(0, None, 0, found)
        return
    together: list[Stretch] = []
    first = last = 0
    for stretch in wanted:
        before, behind = index.entry_before(stretch.start), index.entry_behind(stretch.stop)
        if together and before > last:
            yield _run(index, first, last, together)
            together = []
        if not together:
            first = before
        last = behind
        together.append(stretch)
    if together:
        yield _run(index, first, last, together)


def _run(index: FileIndex, first: int, last: int, stretches: Sequence[Stretch]) -> _Run:
    entry = index.entries[first]
    stop = index.entries[last].at if last < len(index.entries) else None
    return _Run(entry.at, stop, entry.line_ends, stretches)


def _slices(
    blocks: Iterable[bytes], line_ends: int, stretches: Sequence[Stretch]
) -> Generator[bytes, None, int]:
    """Cut lines out of blocks that may end anywhere; returns the number of the line that was reached."""
    unfinished: list[bytes] = []  # begun by the current stretch
    waiting = list(reversed(stretches))
    for block in blocks:
        reached = line_ends + block.count(b"\n")
        at = 0  # behind the line end of number `line_ends`
        while waiting and waiting[-1].start <= reached:
            begin = _behind(block, at, waiting[-1].start - line_ends)
            line_ends = max(line_ends, waiting[-1].start)
            finished = waiting[-1].stop <= reached
            end = _behind(block, begin, waiting[-1].stop - line_ends) if finished else block.rfind(b"\n") + 1
            if end > begin:
                yield _joined(unfinished, block, begin, end)
                unfinished.clear()
            if not finished:
                unfinished.append(block[max(begin, end) :])
                break
            at, line_ends = end, waiting.pop().stop
        line_ends = reached
        if not waiting:
            return line_ends
    if rest := b"".join(unfinished):
        yield rest + b"\n"
        return line_ends + 1
    return line_ends


def _joined(unfinished: Sequence[bytes], block: bytes, begin: int, end: int) -> bytes:
    if not unfinished and (begin, end) == (0, len(block)):
        return block
    return b"".join([*unfinished, memoryview(block)[begin:end]])


def _behind(block: bytes, at: int, line_ends: int) -> int:
    """The position after that many line ends from `at` on; `at` itself for none."""
    for _ in range(line_ends):
        at = block.index(b"\n", at) + 1
    return at


def open_file(
    file: CorpusFile, *, start: int = 0, stop: int | None = None, home: Home | None = None
) -> Iterator[bytes]:
    r"""The selected documents [start, stop), from 0, of a file in order, in memory of a few blocks.

    `stop` defaults to the end of the selection. Without `home`, which has the file's index, the file is read
    from
    its beginning, which is slower.

    Yields:
        Whole lines with newlines; with action lines, one before each document.

    Raises:
        ValueError: the slice is not within the selection.
        BenchctlError: the file is missing, damaged, or has changed since the run was planned; blocks before
            the damage have been yielded.
    """
    path = Path(file.path)
    wanted = stretches(file.documents, file.held, start, stop)
    known = None if home is None else index_file(path, home)
    if known is not None and (known.sha256, known.raw_bytes) != (file.sha256, file.raw_bytes):
        raise BenchctlError(
            f"{path} was changed since the run was planned: its documents have SHA-256 {known.sha256[:12]}, "
            f"not {file.sha256[:12]}",
            hint="put the old file back, or plan a new run",
        )
    lines = 2 if file.has_actions else 1
    yield from _read_lines(path, (Stretch(first * lines, last * lines) for first, last in wanted), known)


def require_file(path: Path) -> None:
    """Check that a file of the command line exists, without reading it.

    Raises:
        UsageError: it does not.
    """
    if not _is_file(path):
        raise UsageError(
            f"there is no file {cut(str(path))}", hint="give the path of a file with one JSON document a line"
        )


def local_file(
    path: Path,
    *,
    index: str,
    home: Home,
    docs: int | None = None,
    has_actions: bool = False,
    progress: Callable[[int], None] | None = None,
) -> CorpusFile:
    """A file of the command line, read in full the first time.

    Args:
        path: of the file, compressed or not.
        index: where its documents go.
        home: keeps the file's index.
        docs: how many of its documents are used, an even share; all of them when None.
        has_actions: whether each document is preceded by an action line.
        progress: called with the number of lines newly read, while the file is read for the first time.

    Raises:
        UsageError: there is no such file, it holds fewer documents, or something else than documents.
        BenchctlError: it is damaged.
    """
    require_file(path)
    known = index_file(path, home, progress)
    if known.first_empty is not None:
        raise UsageError(
            f"line {known.first_empty + 1:,} of {path} is empty", hint="a file of documents has one a line"
        )
    held, rest = divmod(known.lines, 2 if has_actions else 1)
    if rest:
        raise UsageError(
            f"{path} has {known.lines:,} lines: the last action line is without a document",
            hint="with actions, every document is two lines: what to do, and the document",
        )
    if held:
        _check_first_line(path, known, has_actions=has_actions)
    if docs is not None and docs > held:
        raise UsageError(f"{path} holds {held:,} documents, fewer than the {docs:,} that are wanted")
    return CorpusFile(
        path=known.path,
        documents=held if docs is None else docs,
        held=held,
        raw_bytes=known.raw_bytes,
        sha256=known.sha256,
        index=None if has_actions else index,
        has_actions=has_actions,
    )


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # an impossible name, or a folder without permission
        return False


def _check_first_line(path: Path, known: FileIndex, *, has_actions: bool) -> None:
    """Refuse other files by their first line, before a node refuses the last one."""
    with closing(_read_lines(path, [Stretch(0, 1)], known)) as lines:
        first = next(lines, b"")
    if not first.lstrip().startswith(b"{"):
        raise UsageError(
            f"the first line of {path} is not a JSON object",
            hint="a file of documents has one a line, in UTF-8 without a byte order mark; "
            f"it may be packed as {', '.join(SUFFIXES)}",
        )
    is_action, is_document = _possible_kinds(first)
    if (has_actions and not is_action) or not (has_actions or is_document):
        raise UsageError(
            f"the first line of {path} is {'no' if has_actions else 'an'} action of a bulk request",
            hint="with action lines, give --corpus-has-actions, or includes-action-and-meta-data in the "
            "track; without them, neither",
        )


def _possible_kinds(line: bytes) -> tuple[bool, bool]:
    """Whether a line can be an action, and whether it can be a document."""
    try:
        said = msgspec.json.decode(line, type=dict[str, dict[str, Any]])
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return False, True
    if len(said) != 1 or _ACTIONS.isdisjoint(said):
        return False, True
    keys = next(iter(said.values()))
    return True, not all(key.startswith("_") or key in _ACTION_KEYS for key in keys)


def find_documents(
    corpora: Sequence[Corpus],
    *,
    folders: Sequence[Path],
    home: Home,
    docs: int | None = None,
    progress: Callable[[int], None] | None = None,
    downloading: Progress | None = None,
) -> tuple[CorpusFile, ...]:
    """The files of a track's corpora: found or fetched, read in full the first time, and checked.

    Corpora without files (endless streams) and files of vectors have no documents, and are skipped.

    Args:
        corpora: those that are needed.
        folders: searched before benchctl's home: those of the command line, and the track's.
        home: has fetched files, and indices of files.
        docs: how many documents are used in total, shared over the files in proportion, an even share of
            each; all of them when None.
        progress: called with the number of lines newly read, while a file is read for the first time.
        downloading: called with the progress of a download.

    Raises:
        UsageError: a file is missing and cannot be fetched; sizes or counts differ from the track's;
            or there are fewer documents than wanted.
        BenchctlError: a file is damaged, or cannot be fetched.
    """
    found = []
    for corpus in corpora:
        places = [*folders, corpus_folder(home, corpus.name)]
        for documents in corpus.documents:
            if documents.source_format != "bulk" or corpus.streaming_ingestion:
                continue
            path = find_file(documents, places)
            if path is None:
                if not is_published(documents):
                    raise not_found(corpus, documents, places)
                path = Fetch(home, downloading or (lambda *_: None)).get(corpus, documents)
            found.append(_declared_file(corpus, documents, path, home, progress))
    return _shares(found, docs)


def _declared_file(
    corpus: Corpus,
    documents: Documents,
    path: Path,
    home: Home,
    progress: Callable[[int], None] | None,
) -> CorpusFile:
    """A file that a track declares, checked against the declaration."""
    if path.name == Path(documents.source_file).name:
        # Before reading it, which may take long.
        _check(corpus, path, "bytes", path.stat().st_size, documents.published_bytes)
    file = local_file(
        path, index="", home=home, has_actions=documents.includes_action_and_meta_data, progress=progress
    )
    _check(corpus, path, "bytes uncompressed", file.raw_bytes, documents.uncompressed_bytes)
    _check(corpus, path, "documents", file.held, documents.document_count)
    return msgspec.structs.replace(
        file,
        corpus=corpus.name,
        index=documents.target_index,
        data_stream=documents.target_data_stream,
        type=documents.target_type,
    )


def _check(corpus: Corpus, path: Path, what: str, actual: int, declared: int | None) -> None:
    if declared is not None and actual != declared:
        raise UsageError(
            f"corpus '{corpus.name}': {path} has {actual:,} {what}, and the track says {declared:,}",
            hint="it is another file, or an incomplete one; documents of your own go in with --corpus FILE",
        )


def _shares(files: Sequence[CorpusFile], docs: int | None) -> tuple[CorpusFile, ...]:
    if docs is None:
        return tuple(files)
    held = [file.held for file in files]
    if docs > sum(held):
        raise UsageError(
            f"the corpora hold {sum(held):,} documents, fewer than the {docs:,} of --docs",
            hint="give fewer, or leave --docs out for all of them",
        )
    return tuple(
        msgspec.structs.replace(file, documents=documents)
        for file, documents in zip(files, shared_out(docs, held), strict=True)
    )


def corpus_digest(files: Iterable[CorpusFile]) -> str:
    """SHA-256 over which documents of which files go where, whatever the files' paths; hexadecimal."""
    total = hashlib.sha256(b"benchctl corpus files 1\n")
    for file in files:
        meaning = (
            file.sha256, file.documents, file.held, file.index, file.data_stream, file.type, file.has_actions
        )  # fmt: skip
        total.update(msgspec.json.encode(meaning) + b"\n")
    return total.hexdigest()
