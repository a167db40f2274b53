"""Files of documents that benchctl did not generate: found, fetched, checked, read by even shares."""

import hashlib
import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple
from urllib.parse import SplitResult, quote, urlsplit

import msgspec

from benchctl.corpus.generated import MANIFEST, locked
from benchctl.corpus.indexed import SUFFIXES, index_file, read_lines
from benchctl.corpus.tables import check_slice
from benchctl.disk import FreeBytes, disk_errors, free_bytes
from benchctl.download import Advice, Download, Piece, RefusedError
from benchctl.errors import BenchctlError, UsageError
from benchctl.home import Home
from benchctl.network import Progress, shown
from benchctl.results.plan import CorpusFile
from benchctl.track.model import Corpus, Documents
from benchctl.track.template import cut

TRIAL_DOCUMENTS = 1000
"""Documents of each set that a trial of a track uses; smaller sets stay whole."""

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
        In order, non-empty stretches; a single one when nothing is skipped.

    Raises:
        ValueError: If the share is larger than the file, or the slice is not within the share.
    """
    stop = documents if stop is None else stop
    check_slice(start, stop, documents)
    check_slice(0, documents, held)
    left_out = held - documents
    blocks = min(documents, BLOCKS) if left_out else 1
    block = start * blocks // max(documents, 1)
    while start < stop:
        end = min((block + 1) * documents // blocks, stop)
        gap = (2 * block + 1) * left_out // (2 * blocks)
        if start < end:
            yield Stretch(start + gap, end + gap)
        block += 1
        start = end


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


Note = Callable[[str], None]
"""Called with a line worth showing."""


# Where files are on this machine.

_LONGEST_NAME = 200  # bytes; file systems allow 255, and temporary files have longer names


def corpus_folder(home: Home, name: str) -> Path:
    """Return the folder of a corpus's fetched files.

    Raises:
        UsageError: If the name of the corpus cannot name a folder.
    """
    if name.startswith(".") or "/" in name or "\0" in name or not name or _is_long(name):
        raise UsageError(
            f"a corpus called '{cut(name)}' cannot be kept in a directory of its name",
            hint="give the directory with its files by --corpus-dir",
        )
    return home.corpora / name


def fetched_files(home: Home) -> Iterator[Path]:
    """Return fetched files of corpora, sorted, without unfinished ones and generated corpora."""
    for path in sorted(home.corpora.glob("*/**/*")):
        inside = path.relative_to(home.corpora).parts
        hidden = any(name.startswith(".") for name in inside)
        if path.is_file() and not hidden and not (home.corpora / inside[0] / MANIFEST).exists():
            yield path


def inside(name: str) -> str:
    """Return a file name that stays within its folder, unchanged.

    Raises:
        UsageError: If it does not, or is none.
    """
    parts = PurePosixPath(name).parts
    bad = not parts or "\0" in name or name.startswith("/") or ".." in parts or any(map(_is_long, parts))
    if bad or parts[-1].startswith("."):
        raise UsageError(f"'{cut(name)}' cannot be the name of a file of documents")
    return name


def _is_long(name: str) -> bool:
    return len(os.fsencode(name)) > _LONGEST_NAME


def names_of(documents: Documents) -> tuple[str, ...]:
    """Return possible names of documents: as published, decompressed, or compressed otherwise."""
    bare = documents.source_file
    for suffix in SUFFIXES:
        bare = bare.removesuffix(suffix)
    return tuple(dict.fromkeys((documents.source_file, bare, *(bare + suffix for suffix in SUFFIXES))))


def find_file(documents: Documents, folders: Iterable[Path]) -> Path | None:
    """Return the first file in the folders that can be these documents, published names first.

    Raises:
        UsageError: If the track names a file outside of them, which it must not read.
    """
    inside(documents.source_file)
    for folder in folders:
        for name in names_of(documents):
            path = folder / name
            if path.is_file():
                return path.absolute()
    return None


def not_found(corpus: Corpus, documents: Documents, folders: Sequence[Path]) -> UsageError:
    """Return the error for a missing file that the track gives no source for."""
    places = ", ".join(str(folder) for folder in dict.fromkeys(folders))
    return UsageError(
        f"corpus '{corpus.name}': no {documents.source_file} in {places}, compressed or not, "
        "and the track names no source to fetch it from",
        hint="give its directory by --corpus-dir, or fetch it first: "
        f"benchctl corpus fetch {corpus.name} --track TRACK --from URL",
    )


# Fetching.

_ADVICE = Advice(
    unreachable="check the network and its proxy settings",
    refused="check the source of the corpus: the track's base-url, or --from",
    unfinished="try again: the next attempt continues where this one ended",
    other_size="it is not the file that the track declares: check base-url and compressed-bytes",
)


def is_published(documents: Documents) -> bool:
    """Return whether the track gives a source to fetch a file from."""
    return documents.base_url is not None or documents.source_url is not None


@dataclass(frozen=True)
class Fetch:
    """The way files are fetched."""

    home: Home  # has them as they are published: compressed
    progress: Progress
    source: str | None = None  # a URL of the files' folder, overriding the track's
    free: FreeBytes = free_bytes  # bytes that can be written to a folder
    pause: Callable[[float], None] = time.sleep  # waits for so many seconds before another attempt

    def get(self, corpus: Corpus, documents: Documents) -> Path:
        """Find a file of a corpus, fetching it unless it exists.

        Raises:
            UsageError: If it cannot be kept under its name, or there is no source.
            BenchctlError: If it cannot be had, or its size differs from the track's.
        """
        target = corpus_folder(self.home, corpus.name) / inside(documents.source_file)
        with disk_errors(f"write to {target.parent}"):
            target.parent.mkdir(parents=True, exist_ok=True)
        with locked(target.with_name(f".{target.name}.lock")):
            if not target.is_file():
                pieces = self._pieces(corpus, documents)
                Download(pieces, target, self.progress, _ADVICE, free=self.free, pause=self.pause).run()
        return target

    def url(self, corpus: Corpus, documents: Documents) -> str:
        """Return where a file, or its first piece, is fetched from, without credentials.

        Raises:
            UsageError: If there is no source.
        """
        return shown(_split(self._pieces(corpus, documents)[0].url))

    def _pieces(self, corpus: Corpus, documents: Documents) -> Sequence[Piece]:
        base = self.source or documents.base_url
        if documents.source_url is not None and self.source is None:
            pieces = [Piece(documents.source_url, documents.published_bytes)]
        elif base is None:
            raise UsageError(
                f"corpus '{corpus.name}' has no download URL",
                hint="use --from URL, or --track PATH of a track that declares one",
            )
        elif documents.source_file_parts:
            pieces = [Piece(_below(base, part.name), part.size) for part in documents.source_file_parts]
        else:
            pieces = [Piece(_below(base, documents.source_file), documents.published_bytes)]
        for piece in pieces:
            url = _split(piece.url)
            if url.scheme not in {"http", "https"}:
                raise UsageError(
                    f"corpus '{corpus.name}' is published at '{shown(url)}', "
                    "and benchctl reads http and https only",
                    hint="copy the files by other means and give their directory by --corpus-dir",
                )
        return pieces


def _below(base: str, name: str) -> str:
    """Return the URL of a file in a folder, keeping a query such as a signature."""
    parts = _split(base)
    return parts._replace(path=f"{parts.path.rstrip('/')}/{quote(name)}").geturl()


def _split(url: str) -> SplitResult:
    try:
        return urlsplit(url)
    except ValueError as err:
        raise UsageError(f"'{url.rpartition('@')[2]}' is not a URL of documents") from err


# Reading.


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
            hint="restore the old file, or start a new run",
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


_ACTIONS = frozenset({"index", "create", "update"})


def local_file(
    path: Path,
    *,
    index: str,
    home: Home,
    docs: int | None = None,
    has_actions: bool | None = None,
    progress: Callable[[int], None] | None = None,
) -> CorpusFile:
    """Return a file of the command line, read in full the first time.

    Args:
        path: of the file, compressed or not.
        index: where its documents go.
        home: keeps the file's index.
        docs: how many of its documents are used, an even share; all of them when None.
        has_actions: whether each document is preceded by an action line; None to go by the first line.
        progress: called with the number of lines newly read, while the file is read for the first time.

    Raises:
        UsageError: If there is no such file, it holds fewer documents, or something else than documents.
        BenchctlError: If it is damaged.
    """
    require_file(path)
    file = index_file(path, home, progress)
    if file.first_empty is not None:
        raise UsageError(
            f"line {file.first_empty + 1:,} of {path} is empty", hint="expected one document per line"
        )
    first = b"".join(read_lines(file, home, [(0, 1)])) if file.lines else b"{}"
    if not first.lstrip().startswith(b"{"):
        raise UsageError(
            f"the first line of {path} is not a JSON object",
            hint=f"expected one document per line, in UTF-8, optionally compressed as {', '.join(SUFFIXES)}",
        )
    has_actions = _is_action(first) if has_actions is None else has_actions
    held, rest = divmod(file.lines, 2 if has_actions else 1)
    if rest:
        raise UsageError(
            f"{path} has {file.lines:,} lines: the last action line is without a document",
            hint="with action lines, every document takes two lines: the action and the document",
        )
    if docs is not None and docs > held:
        raise UsageError(f"{path} holds {held:,} documents, fewer than the {docs:,} that are required")
    return CorpusFile(
        path=file.path,
        documents=held if docs is None else docs,
        held=held,
        raw_bytes=file.raw_bytes,
        sha256=file.sha256,
        index=None if has_actions else index,
        has_actions=has_actions,
    )


def _is_action(line: bytes) -> bool:
    try:
        action = msgspec.json.decode(line, type=dict[str, dict[str, object]])
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return False
    return len(action) == 1 and not _ACTIONS.isdisjoint(action)


def _trial_set(documents: Documents) -> Documents:
    """Return the first documents of a set, as tracks publish them: `NAME-1k.EXT` for `NAME.EXT`."""
    bare = names_of(documents)[documents.packed]
    path = PurePosixPath(inside(bare))
    return msgspec.structs.replace(
        documents,
        source_file=f"{path.with_stem(f'{path.stem}-1k')}{documents.source_file.removeprefix(bare)}",
        document_count=None,
        compressed_bytes=None,
        uncompressed_bytes=None,
        source_url=None,
        source_file_parts=(),
    )


def _find_trial(
    fetch: Fetch, corpus: Corpus, whole: Documents, places: Sequence[Path], note: Note, *, looking: bool
) -> tuple[Documents, Path | None]:
    """Return what a trial reads of a set: its first documents, here or published, or else the whole set.

    The path is None for what is yet to be fetched.
    """
    first = _trial_set(whole)
    for documents in (first, whole):
        path = find_file(documents, places)
        if path is not None:
            return documents, path
    if looking or not is_published(first):
        return first if is_published(first) else whole, None
    try:
        return first, fetch.get(corpus, first)
    except RefusedError as err:
        note(f"{err.message}: corpus '{corpus.name}' needs all of {whole.source_file} in its place")
        return whole, None


def find_documents(
    corpora: Sequence[Corpus],
    *,
    folders: Sequence[Path],
    home: Home,
    docs: int | None = None,
    trial: bool = False,
    note: Note = lambda _: None,
    progress: Callable[[int], None] | None = None,
    downloading: Progress | None = None,
    looking: bool = False,
) -> tuple[CorpusFile, ...]:
    """Return the files of a track's corpora: found or fetched, read in full the first time, and checked.

    Corpora without files (endless streams) and files of vectors have no documents, and are skipped.

    Args:
        corpora: those that are needed.
        folders: searched before benchctl's home: those of the command line, and the track's.
        home: has fetched files, and indices of files.
        docs: how many documents are used in total, shared over the files in proportion, an even share of
            each; all of them when None.
        trial: at most TRIAL_DOCUMENTS of each set are used, of `NAME-1k.EXT` where there is one.
        note: called with a line where there is none, and a whole set is fetched.
        progress: called with the number of lines newly read, while a file is read for the first time.
        downloading: called with the progress of a download.
        looking: files are as the track declares them; nothing but their sizes is read, nothing is fetched,
            and what is not here has its URL for a path.

    Raises:
        UsageError: If a file is missing and cannot be fetched; sizes or counts differ from the track's; or
            there are fewer documents than wanted.
        BenchctlError: If a file is damaged, or cannot be fetched.
    """
    fetch = Fetch(home, downloading or (lambda *_: None))
    available = []
    for corpus in corpora:
        places = [*folders, corpus_folder(home, corpus.name)]
        for whole in corpus.documents:
            if whole.source_format != "bulk" or corpus.streaming_ingestion:
                continue
            documents = whole
            if trial and (whole.document_count is None or whole.document_count > TRIAL_DOCUMENTS):
                documents, path = _find_trial(fetch, corpus, whole, places, note, looking=looking)
            else:
                path = find_file(documents, places)
            if path is None and not is_published(documents):
                raise not_found(corpus, documents, places)
            if path is not None and path.name == Path(documents.source_file).name:
                # Before reading it, which may take long.
                _check(corpus, path, "bytes", path.stat().st_size, documents.published_bytes)
            destination: dict[str, Any] = {
                "corpus": corpus.name,
                "index": documents.target_index,
                "data_stream": documents.target_data_stream,
                "type": documents.target_type,
            }
            has_actions = documents.includes_action_and_meta_data
            if looking:
                url = "" if path else fetch.url(corpus, documents).rpartition("/")[0]
                count = documents.document_count or (0 if documents is whole else TRIAL_DOCUMENTS)
                file = CorpusFile(
                    path=str(path or f"{url}/{documents.source_file}"),
                    documents=count,
                    held=count,
                    raw_bytes=documents.uncompressed_bytes or 0,
                    sha256="",
                    has_actions=has_actions,
                )
            else:
                path = path or fetch.get(corpus, documents)
                file = local_file(path, index="", home=home, has_actions=has_actions, progress=progress)
                _check(corpus, path, "bytes uncompressed", file.raw_bytes, documents.uncompressed_bytes)
                _check(corpus, path, "documents", file.held, documents.document_count)
            if documents is not whole:
                file = msgspec.structs.replace(file, held=min(file.held, TRIAL_DOCUMENTS))
            if trial:
                file = msgspec.structs.replace(file, documents=min(file.held, TRIAL_DOCUMENTS))
            available.append(msgspec.structs.replace(file, **destination))
    return _shares(available, docs)


def is_elsewhere(file: CorpusFile) -> bool:
    """Return whether a file that was only looked for is yet to be fetched."""
    return "://" in file.path


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
