"""Where a track's files of documents are on this machine."""

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path, PurePosixPath

from benchctl.corpus.generated.manifest import MANIFEST
from benchctl.errors import UsageError
from benchctl.home import Home
from benchctl.track.corpora import Corpus, Documents
from benchctl.track.template.excerpt import cut

SUFFIXES = (".zst", ".bz2", ".gz", ".zip")
"""Of the compressed files that benchctl reads."""

_LONGEST_NAME = 200  # bytes; file systems have 255, and what is beside a half-finished file has a longer one


def corpus_folder(home: Home, name: str) -> Path:
    """Where the files of a corpus that are fetched are kept.

    Raises:
        UsageError: the name of the corpus cannot name a folder.
    """
    if name.startswith(".") or "/" in name or "\0" in name or not name or _is_long(name):
        raise UsageError(
            f"a corpus called '{cut(name)}' cannot be kept in a folder of its name",
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


def inside(name: str) -> str:
    """A name of a file that stays in its folder, as it is.

    Raises:
        UsageError: it does not, or is none.
    """
    parts = PurePosixPath(name).parts
    bad = not parts or "\0" in name or name.startswith("/") or ".." in parts or any(map(_is_long, parts))
    if bad or parts[-1].startswith("."):
        raise UsageError(f"'{cut(name)}' cannot be the name of a file of documents")
    return name


def _is_long(name: str) -> bool:
    return len(os.fsencode(name)) > _LONGEST_NAME


def names_of(documents: Documents) -> tuple[str, ...]:
    """The names that a file of documents may have: as published, unpacked, or packed in another way."""
    bare = documents.source_file
    for suffix in SUFFIXES:
        bare = bare.removesuffix(suffix)
    return tuple(dict.fromkeys((documents.source_file, bare, *(bare + suffix for suffix in SUFFIXES))))


def find_file(documents: Documents, folders: Iterable[Path]) -> Path | None:
    """The first of the folders' files that can be these documents; the published name goes first in each.

    Raises:
        UsageError: the track gives a file outside of them, which is not its own to read.
    """
    inside(documents.source_file)
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
        f"benchctl corpus fetch {corpus.name} --track TRACK --from URL",
    )
