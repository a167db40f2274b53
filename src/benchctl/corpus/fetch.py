"""Published files of documents into benchctl's home: from the network, or from another folder."""

import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import SplitResult, quote, urlsplit

from benchctl.corpus.find import corpus_folder, inside
from benchctl.corpus.lock import locked
from benchctl.disk import FreeBytes, disk_errors, free_bytes, require_space
from benchctl.download import Advice, Download, Piece
from benchctl.errors import BenchctlError, UsageError
from benchctl.home import Home
from benchctl.network import Progress, shown
from benchctl.track.corpora import Corpus, Documents

_COPY_BYTES = 1 << 22
_ADVICE = Advice(
    unreachable="check the network and its proxy settings",
    refused="check where the corpus is to come from: the track's base-url, or --from",
    unfinished="try again: they are kept, and the next attempt goes on from there",
    other_size="it is another file than the track means: check base-url and compressed-bytes",
)


def is_published(documents: Documents) -> bool:
    """Whether the track says where a file can be fetched from."""
    return documents.base_url is not None or documents.source_url is not None


@dataclass(frozen=True)
class Fetch:
    """How files are fetched.

    Attributes:
        home: where they are kept, as they are published: compressed.
        progress: told after each bit.
        source: a URL or a folder that has the files, instead of what the track says.
        free: how much can be written to a folder, bytes.
        pause: waits for some seconds before another attempt.
    """

    home: Home
    progress: Progress
    source: str | None = None
    free: FreeBytes = free_bytes
    pause: Callable[[float], None] = time.sleep

    def get(self, corpus: Corpus, documents: Documents) -> Path:
        """A file of a corpus, fetched unless it is there.

        Raises:
            UsageError: it cannot be kept under its name, or nobody says where to get it.
            BenchctlError: it cannot be had, or has another size than the track says.
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

    def _folder(self) -> Path | None:
        """The folder that files are copied from; None for the network."""
        if self.source is None or _is_url(self.source):
            return None
        folder = Path(self.source)
        if not folder.is_dir():
            raise UsageError(
                f"'{self.source}' is neither a folder nor an http(s) URL",
                hint="give the folder that has the files, or the URL of one",
            )
        return folder

    def _pieces(self, corpus: Corpus, documents: Documents) -> Sequence[Piece]:
        base = self.source or documents.base_url
        if documents.source_url is not None and self.source is None:
            found = [Piece(documents.source_url, documents.published_bytes)]
        elif base is None:
            raise UsageError(
                f"nobody says where corpus '{corpus.name}' is published",
                hint="name a track that does, by --track PATH, or give --from URL or a folder",
            )
        elif documents.source_file_parts:
            found = [Piece(_below(base, part.name), part.size) for part in documents.source_file_parts]
        else:
            found = [Piece(_below(base, documents.source_file), documents.published_bytes)]
        for piece in found:
            if not _is_url(piece.url):
                raise UsageError(
                    f"corpus '{corpus.name}' is published at '{shown(_split(piece.url))}', "
                    "and benchctl reads http and https only",
                    hint="copy the files by other means and give their folder by --from",
                )
        return found

    def _copy(self, folder: Path, documents: Documents, target: Path) -> None:
        names = [part.name for part in documents.source_file_parts]
        if not names or (folder / documents.source_file).is_file():
            names = [documents.source_file]
        sources = [folder / inside(name) for name in names]
        missing = next((source for source in sources if not source.is_file()), None)
        if missing is not None:
            raise UsageError(f"there is no {missing.name} in {folder}")
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
    """The URL of a file in a folder; a query, such as a signature, stays behind it."""
    parts = _split(base)
    return parts._replace(path=f"{parts.path.rstrip('/')}/{quote(name)}").geturl()


def _split(url: str) -> SplitResult:
    try:
        return urlsplit(url)
    except ValueError as err:
        raise UsageError(f"'{url.rpartition('@')[2]}' is no URL of documents") from err


def _check_bytes(path: Path, actual: int, documents: Documents) -> None:
    expected = documents.published_bytes
    if expected is not None and actual != expected:
        raise BenchctlError(
            f"{path} has {actual:,} bytes, and {expected:,} are expected",
            hint="remove it and fetch it again, or correct the track's sizes",
        )
