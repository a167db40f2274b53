"""Where a track's files of documents are on this machine."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from benchctl.corpus.manifest import MANIFEST
from benchctl.errors import UsageError
from benchctl.home import Home
from benchctl.track.corpora import Corpus, Documents

SUFFIXES = (".zst", ".bz2", ".gz", ".zip")
"""Of the compressed files that benchctl reads."""


def corpus_folder(home: Home, name: str) -> Path:
    """Where the files of a corpus that are fetched are kept.

    Raises:
        UsageError: the name of the corpus cannot name a folder.
    """
    if name.startswith(".") or "/" in name or "\0" in name or not name:
        raise UsageError(
            f"a corpus called '{name}' cannot be kept in a folder of its name",
            hint="give the folder with its files by --corpus-dir",
        )
    return home.corpora / name


def fetched_files(home: Home) -> Iterator[Path]:
    """Files of corpora that were fetched, sorted; half-finished ones and generated corpora are left out."""
    for path in sorted(home.corpora.glob("*/**/*")):
        inside = path.relative_to(home.corpora).parts
        hidden = any(name.startswith(".") for name in inside)
        if path.is_file() and not hidden and not (home.corpora / inside[0] / MANIFEST).exists():
            yield path


def names_of(documents: Documents) -> tuple[str, ...]:
    """The names that a file of documents may have: as published, unpacked, or packed in another way."""
    bare = documents.source_file
    for suffix in SUFFIXES:
        bare = bare.removesuffix(suffix)
    return tuple(dict.fromkeys((documents.source_file, bare, *(bare + suffix for suffix in SUFFIXES))))


def find_file(documents: Documents, folders: Iterable[Path]) -> Path | None:
    """The first of the folders' files that can be these documents; the published name goes first in each."""
    for folder in folders:
        for name in names_of(documents):
            path = folder / name
            if path.is_file():
                return path.absolute()
    return None


def not_found(corpus: Corpus, documents: Documents, folders: Sequence[Path]) -> UsageError:
    """The error for a file that is nowhere, and that the track gives no source of."""
    places = ", ".join(str(folder) for folder in dict.fromkeys(folders))
    return UsageError(
        f"corpus '{corpus.name}': there is no {documents.source_file} in {places}, compressed or not, "
        "and the track names no source to fetch it from",
        hint="give its folder by --corpus-dir, or fetch it first: "
        f"benchctl corpus fetch {corpus.name} --from URL",
    )
