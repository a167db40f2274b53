"""A track's published files of documents: where they are on this machine, and how they are fetched."""

import os
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Literal
from urllib.parse import SplitResult, quote, urlsplit

import msgspec

from benchctl.corpus.generated import MANIFEST, locked
from benchctl.disk import FreeBytes, disk_errors, free_bytes, require_space
from benchctl.download import Advice, Download, Piece
from benchctl.errors import BenchctlError, UsageError
from benchctl.home import Home
from benchctl.network import Progress, shown
from benchctl.track.model import Corpus, Documents, SourcePart
from benchctl.track.template_source import cut

SUFFIXES = (".zst", ".bz2", ".gz", ".zip", ".tgz", ".tar.gz", ".tar.bz2", ".tar.zst", ".tar")
"""Extensions of the packed files that benchctl reads."""
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


# Fetching: from the network, or from another folder.

_COPY_BYTES = 1 << 22
_ADVICE = Advice(
    unreachable="check the network and its proxy settings",
    refused="check where the corpus is to come from: the track's base-url, or --from",
    unfinished="try again: they are kept, and the next attempt continues from there",
    other_size="it is another file than the track means: check base-url and compressed-bytes",
)


def is_published(documents: Documents) -> bool:
    """Return whether the track gives a source to fetch a file from."""
    return documents.base_url is not None or documents.source_url is not None


@dataclass(frozen=True)
class Fetch:
    """The way files are fetched."""

    home: Home  # has them as they are published: compressed
    progress: Progress
    source: str | None = None  # a URL or a folder with the files, overriding the track's
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
                folder = self._folder()
                if folder is None:
                    pieces = self._pieces(corpus, documents)
                    Download(pieces, target, self.progress, _ADVICE, free=self.free, pause=self.pause).run()
                else:
                    self._copy(folder, documents, target)
        _check_bytes(target, target.stat().st_size, documents)
        return target

    def urls(self, corpus: Corpus, documents: Documents) -> list[str]:
        """Return where a file, or each of its pieces, is fetched from, without credentials.

        Raises:
            UsageError: If there is no source.
        """
        return [shown(_split(piece.url)) for piece in self._pieces(corpus, documents)]

    def _folder(self) -> Path | None:
        """Return the folder that files are copied from; None for the network."""
        if self.source is None or _is_url(self.source):
            return None
        folder = Path(self.source)
        if not folder.is_dir():
            raise UsageError(
                f"'{self.source}' is neither a directory nor an http(s) URL",
                hint="give the directory that has the files, or the URL of one",
            )
        return folder

    def _pieces(self, corpus: Corpus, documents: Documents) -> Sequence[Piece]:
        base = self.source or documents.base_url
        if documents.source_url is not None and self.source is None:
            pieces = [Piece(documents.source_url, documents.published_bytes)]
        elif base is None:
            raise UsageError(
                f"corpus '{corpus.name}' has no download URL",
                hint="use --from URL|DIR, or --track PATH of a track that declares one",
            )
        elif documents.source_file_parts:
            pieces = [Piece(_below(base, part.name), part.size) for part in documents.source_file_parts]
        else:
            pieces = [Piece(_below(base, documents.source_file), documents.published_bytes)]
        for piece in pieces:
            if not _is_url(piece.url):
                raise UsageError(
                    f"corpus '{corpus.name}' is published at '{shown(_split(piece.url))}', "
                    "and benchctl reads http and https only",
                    hint="copy the files by other means and give their directory by --from",
                )
        return pieces

    def _copy(self, folder: Path, documents: Documents, target: Path) -> None:
        names = [part.name for part in documents.source_file_parts]
        if not names or (folder / documents.source_file).is_file():
            names = [documents.source_file]
        sources = [folder / inside(name) for name in names]
        missing = next((source for source in sources if not source.is_file()), None)
        if missing is not None:
            raise UsageError(f"no {missing.name} in {folder}")
        with disk_errors(f"copy {documents.source_file} from {folder}"):
            total = sum(source.stat().st_size for source in sources)
            _check_bytes(folder / documents.source_file, total, documents)
            require_space(target.parent, total, f"copy {target.name}", available=self.free(target.parent))
            partial = target.with_name(f".{target.name}.copy")
            with partial.open("wb") as sink:
                for source in sources:
                    with source.open("rb") as raw:
                        while block := raw.read(_COPY_BYTES):
                            sink.write(block)
                            self.progress("bytes", sink.tell(), total)
            shutil.copystat(sources[-1], partial)
            partial.replace(target)


def _is_url(text: str) -> bool:
    return _split(text).scheme in {"http", "https"}


def _below(base: str, name: str) -> str:
    """Return the URL of a file in a folder, keeping a query such as a signature."""
    parts = _split(base)
    return parts._replace(path=f"{parts.path.rstrip('/')}/{quote(name)}").geturl()


def _split(url: str) -> SplitResult:
    try:
        return urlsplit(url)
    except ValueError as err:
        raise UsageError(f"'{url.rpartition('@')[2]}' is not a URL of documents") from err


def _check_bytes(path: Path, actual: int, documents: Documents) -> None:
    expected = documents.published_bytes
    if expected is not None and actual != expected:
        raise BenchctlError(
            f"{path} has {actual:,} bytes, and {expected:,} are expected",
            hint="remove it and fetch it again, or correct the track's sizes",
        )


# The published files of big5: names, sizes and counts, as its own workload declares them.

BIG5 = "big5"
BIG5_SIZES = (60, 100, 880, 1000)
"""Approximate size of each, decompressed, in GB."""

Packing = Literal["zst", "bz2"]


class _Size(msgspec.Struct, frozen=True):
    documents: int
    raw_bytes: int
    packed_bytes: Mapping[Packing, int | None]


_FILES = {
    60: _Size(69_223_950, 64_048_001_338, {"zst": 4_309_639_180, "bz2": 3_494_648_233}),
    100: _Size(116_000_000, 107_321_418_111, {"zst": 7_306_225_533, "bz2": 6_023_614_688}),
    # The workload declares the same 27,685,953,536 bytes for both, so at most one of them is right.
    880: _Size(1_020_000_000, 943_679_382_267, {"zst": None, "bz2": None}),
    1000: _Size(1_160_800_000, 1_073_936_121_222, {"zst": 73_368_668_568, "bz2": 60_567_183_163}),
}
_PARTS: Mapping[tuple[int, Packing], tuple[SourcePart, ...]] = {
    (1000, "zst"): (
        SourcePart("documents-1000-zstd-part0", 21_474_836_480),
        SourcePart("documents-1000-zstd-part1", 21_474_836_480),
        SourcePart("documents-1000-zstd-part2", 21_474_836_480),
        SourcePart("documents-1000-zstd-part3", 8_944_159_128),
    ),
    (1000, "bz2"): (
        SourcePart("documents-1000-part0", 20_189_061_054),
        SourcePart("documents-1000-part1", 20_189_061_054),
        SourcePart("documents-1000-part2", 20_189_061_055),
    ),
}


def big5_corpus(size: int, packing: Packing) -> Corpus:
    """Return a published file of one of BIG5_SIZES as a track declares it, without a URL.

    Raises:
        UsageError: If there is no such size.
    """
    if size not in _FILES:
        raise UsageError(
            f"no such published big5 corpus: size {size}",
            hint=f"give --size, one of {', '.join(map(str, BIG5_SIZES))}",
        )
    facts = _FILES[size]
    documents = Documents(
        source_file=f"documents-{size}.json.{packing}",
        document_count=facts.documents,
        compressed_bytes=facts.packed_bytes[packing],
        uncompressed_bytes=facts.raw_bytes,
        source_file_parts=_PARTS.get((size, packing), ()),
        target_index=BIG5,
    )
    return Corpus(BIG5, (documents,))
