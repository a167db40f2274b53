"""Files of documents that benchctl did not generate: even shares of them, read from any position."""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from benchctl.corpus.indexed import FileIndex, glance, index_file, read_lines
from benchctl.corpus.published import (
    SUFFIXES,
    Fetch,
    corpus_folder,
    find_file,
    is_published,
    not_found,
)
from benchctl.corpus.tables import check_slice
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
    """Yield where documents [start, stop) of an even share of `documents` are in a file that holds `held`.

    Before the kth of n blocks, (2k + 1) / 2n of the skipped documents have been skipped. `stop` defaults to
    the end of the share.

    Yields:
        In order, non-empty stretches that do not touch; a single one when nothing is skipped.

    Raises:
        ValueError: If the share is larger than the file, or the slice is not within the share.
    """
    stop = documents if stop is None else stop
    check_slice(start, stop, documents)
    check_slice(0, documents, held)
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
        stretch = Stretch(start + gap, end + gap)
        block += 1
        start = end
        if stretch.start == stretch.stop:
            continue
        if waiting is not None and waiting.stop == stretch.start:
            waiting = Stretch(waiting.start, stretch.stop)
            continue
        if waiting is not None:
            yield waiting
        waiting = stretch
    if waiting is not None:
        yield waiting


def shared_out(documents: int, held: Sequence[int]) -> tuple[int, ...]:
    """Split a number of documents over files in proportion to their sizes, each off by less than one."""
    total = sum(held)
    shares = []
    before = 0
    for count in held:
        after = before + count
        shares.append(after * documents // total - before * documents // total if total else 0)
        before = after
    return tuple(shares)


_ACTIONS = frozenset({"index", "create", "update", "delete"})
_ACTION_KEYS = frozenset({"routing", "pipeline", "require_alias", "require_data_stream", "dynamic_templates"})


def open_file(file: CorpusFile, home: Home, *, start: int = 0, stop: int | None = None) -> Iterator[bytes]:
    r"""Yield the selected documents [start, stop), from 0, of a file in order, in memory of a few blocks.

    `stop` defaults to the end of the selection; `home` has the file's index.

    Yields:
        Whole lines with newlines; with action lines, one before each document.

    Raises:
        ValueError: If the slice is not within the selection.
        BenchctlError: If the file is missing, damaged, or has changed since the run was planned; blocks
            before the damage have been yielded.
    """
    path = Path(file.path)
    selected = stretches(file.documents, file.held, start, stop)
    index = index_file(path, home)
    if (index.sha256, index.raw_bytes) != (file.sha256, file.raw_bytes):
        raise BenchctlError(
            f"{path} was changed since the run was planned: its documents have SHA-256 {index.sha256[:12]}, "
            f"not {file.sha256[:12]}",
            hint="put the old file back, or plan a new run",
        )
    lines = 2 if file.has_actions else 1
    yield from read_lines(index, home, ((first * lines, last * lines) for first, last in selected))


def require_file(path: Path) -> None:
    """Check that a file of the command line exists, without reading it.

    Raises:
        UsageError: If it does not.
    """
    try:
        is_file = path.is_file()
    except OSError:  # an impossible name, or a folder without permission
        is_file = False
    if not is_file:
        raise UsageError(
            f"no such file: {cut(str(path))}", hint="give the path of a file with one JSON document a line"
        )


def local_file(
    path: Path,
    *,
    index: str,
    home: Home,
    docs: int | None = None,
    has_actions: bool | None = None,
    progress: Callable[[int], None] | None = None,
    most_bytes: int | None = None,
) -> CorpusFile:
    """Return a file of the command line, read in full the first time.

    Args:
        path: of the file, compressed or not.
        index: where its documents go.
        home: keeps the file's index.
        docs: how many of its documents are used, an even share; all of them when None.
        has_actions: whether each document is preceded by an action line; None to go by the first line.
        progress: called with the number of lines newly read, while the file is read for the first time.
        most_bytes: to look at the file only: no more than that is read of it, unpacked, and nothing is
            written. Of a longer one there is no digest, and `held` is an estimate, 0 for none.

    Raises:
        UsageError: If there is no such file, it holds fewer documents, or something else than documents.
        BenchctlError: If it is damaged.
    """
    require_file(path)
    if most_bytes is None:
        read = index_file(path, home, progress)
        file_index: FileIndex | None = read
        first, last = _end_lines(read, home)
    else:
        look = glance(path, home, most_bytes)
        file_index, first, last = look.index, look.first, look.last
    if file_index is not None and file_index.first_empty is not None:
        raise UsageError(
            f"line {file_index.first_empty + 1:,} of {path} is empty",
            hint="a file of documents has one a line",
        )
    has_actions = _check_first_line(path, first, has_actions=has_actions)
    _check_last_line(path, last)
    if file_index is None:
        about = look.about_lines // (2 if has_actions else 1)
        return CorpusFile(
            path=str(path.absolute()),
            documents=docs or about,
            held=about,
            raw_bytes=0 if look.packing else path.stat().st_size,
            sha256="",
            index=None if has_actions else index,
            has_actions=has_actions,
        )
    if has_actions and file_index.first_delete is not None:
        raise UsageError(
            f"line {file_index.first_delete + 1:,} of {path} is a delete action, which has no document",
            hint="benchctl sends what has a document each: index, create and update",
        )
    held, rest = divmod(file_index.lines, 2 if has_actions else 1)
    if rest:
        raise UsageError(
            f"{path} has {file_index.lines:,} lines: the last action line is without a document",
            hint="with actions, every document is two lines: what to do, and the document",
        )
    if docs is not None and docs > held:
        raise UsageError(f"{path} holds {held:,} documents, fewer than the {docs:,} that are required")
    return CorpusFile(
        path=file_index.path,
        documents=held if docs is None else docs,
        held=held,
        raw_bytes=file_index.raw_bytes,
        sha256=file_index.sha256,
        index=None if has_actions else index,
        has_actions=has_actions,
    )


def _end_lines(file_index: FileIndex, home: Home) -> tuple[bytes, bytes]:
    """Return the first and the last line of a file; empty if it has none, or an empty one."""
    if not file_index.lines or file_index.first_empty is not None:
        return b"", b""
    places = (0, file_index.lines - 1)
    first, last = (b"".join(read_lines(file_index, home, [(line, line + 1)])) for line in places)
    return first, last


def _check_last_line(path: Path, last: bytes) -> None:
    """Refuse an incomplete file, which a node would after all others of its documents."""
    if last.strip() and not last.rstrip().endswith(b"}"):
        raise UsageError(
            f"the last line of {path} is not a whole JSON object",
            hint="the file is incomplete: fetch or copy it again",
        )


def _check_first_line(path: Path, first: bytes, *, has_actions: bool | None) -> bool:
    """Return whether a file has action lines; refuse other files before a node refuses the last line."""
    if not first:
        return bool(has_actions)
    if not first.lstrip().startswith(b"{"):
        raise UsageError(
            f"the first line of {path} is not a JSON object",
            hint=f"a file of documents has one a line, in UTF-8; it may be packed as {', '.join(SUFFIXES)}",
        )
    is_action, is_document = _possible_kinds(first)
    if has_actions is None:
        return not is_document
    if (has_actions and not is_action) or not (has_actions or is_document):
        raise UsageError(
            f"the first line of {path} is {'no' if has_actions else 'an'} action of a bulk request",
            hint=f"{'remove' if has_actions else 'add'} includes-action-and-meta-data in the track",
        )
    return has_actions


def _possible_kinds(line: bytes) -> tuple[bool, bool]:
    """Return whether a line can be an action, and whether it can be a document."""
    try:
        action = msgspec.json.decode(line, type=dict[str, dict[str, Any]])
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return False, True
    if len(action) != 1 or _ACTIONS.isdisjoint(action):
        return False, True
    keys = next(iter(action.values()))
    return True, bool(keys) and not any(key.startswith("_") or key in _ACTION_KEYS for key in keys)


def find_documents(
    corpora: Sequence[Corpus],
    *,
    folders: Sequence[Path],
    home: Home,
    docs: int | None = None,
    progress: Callable[[int], None] | None = None,
    downloading: Progress | None = None,
    most_bytes: int | None = None,
) -> tuple[CorpusFile, ...]:
    """Return the files of a track's corpora: found or fetched, read in full the first time, and checked.

    Corpora without files (endless streams) and files of vectors have no documents, and are skipped.

    Args:
        corpora: those that are needed.
        folders: searched before benchctl's home: those of the command line, and the track's.
        home: has fetched files, and indices of files.
        docs: how many documents are used in total, shared over the files in proportion, an even share of
            each; all of them when None.
        progress: called with the number of lines newly read, while a file is read for the first time.
        downloading: called with the progress of a download.
        most_bytes: to look at files only, as for `local_file`; what is not here is not fetched, and has its
            URL for a path.

    Raises:
        UsageError: If a file is missing and cannot be fetched; sizes or counts differ from the track's; or
            there are fewer documents than wanted.
        BenchctlError: If a file is damaged, or cannot be fetched.
    """
    available = []
    for corpus in corpora:
        places = [*folders, corpus_folder(home, corpus.name)]
        for documents in corpus.documents:
            if documents.source_format != "bulk" or corpus.streaming_ingestion:
                continue
            path = find_file(documents, places)
            if path is None:
                if not is_published(documents):
                    raise not_found(corpus, documents, places)
                if most_bytes is not None:
                    available.append(_ahead(corpus, documents, home))
                    continue
                path = Fetch(home, downloading or (lambda *_: None)).get(corpus, documents)
            available.append(_declared_file(corpus, documents, path, home, progress, most_bytes))
    return _shares(available, docs)


def _declared_file(
    corpus: Corpus,
    documents: Documents,
    path: Path,
    home: Home,
    progress: Callable[[int], None] | None,
    most_bytes: int | None,
) -> CorpusFile:
    """Return a file that a track declares, checked against the declaration."""
    if path.name == Path(documents.source_file).name:
        # Before reading it, which may take long.
        _check(corpus, path, "bytes", path.stat().st_size, documents.published_bytes)
    file = local_file(
        path,
        index="",
        home=home,
        has_actions=documents.includes_action_and_meta_data,
        progress=progress,
        most_bytes=most_bytes,
    )
    if file.raw_bytes or file.sha256:
        _check(corpus, path, "bytes uncompressed", file.raw_bytes, documents.uncompressed_bytes)
    if file.sha256:
        _check(corpus, path, "documents", file.held, documents.document_count)
    else:
        count = documents.document_count or 0
        file = msgspec.structs.replace(file, documents=count, held=count)
    return _placed(file, corpus, documents)


def _ahead(corpus: Corpus, documents: Documents, home: Home) -> CorpusFile:
    """Return a file that is yet to be fetched, as its track declares it."""
    count = documents.document_count or 0
    folder = Fetch(home, lambda *_: None).urls(corpus, documents)[0].rpartition("/")[0]
    file = CorpusFile(
        path=f"{folder}/{documents.source_file}",
        documents=count,
        held=count,
        raw_bytes=documents.uncompressed_bytes or 0,
        sha256="",
        has_actions=documents.includes_action_and_meta_data,
    )
    return _placed(file, corpus, documents)


def is_elsewhere(file: CorpusFile) -> bool:
    """Return whether a file that was only looked for is yet to be fetched."""
    return "://" in file.path


def _placed(file: CorpusFile, corpus: Corpus, documents: Documents) -> CorpusFile:
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
            f"corpus '{corpus.name}': {path} has {actual:,} {what}, but the track declares {declared:,}",
            hint="it is another file, or an incomplete one; documents of your own go in with --corpus FILE",
        )


def _shares(files: Sequence[CorpusFile], docs: int | None) -> tuple[CorpusFile, ...]:
    if docs is None:
        return tuple(files)
    held = [file.held for file in files]
    if docs > sum(held):
        raise UsageError(
            f"the corpora hold {sum(held):,} documents, fewer than the {docs:,} of --docs",
            hint="give fewer, or remove --docs to use all",
        )
    return tuple(
        msgspec.structs.replace(file, documents=documents)
        for file, documents in zip(files, shared_out(docs, held), strict=True)
    )


def corpus_digest(files: Iterable[CorpusFile]) -> str:
    """Compute SHA-256 over which documents of which files go where, not over paths; hexadecimal."""
    total = hashlib.sha256(b"benchctl corpus files 1\n")
    for file in files:
        meaning = (
            file.sha256, file.documents, file.held, file.index, file.data_stream, file.type, file.has_actions
        )  # fmt: skip
        total.update(msgspec.json.encode(meaning) + b"\n")
    return total.hexdigest()
