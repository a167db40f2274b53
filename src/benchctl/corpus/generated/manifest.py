"""The manifest of a corpus: written last, and checked against the files whenever it is read."""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import msgspec

from benchctl.corpus.generated.parts import CorpusPart, damaged
from benchctl.disk import read_file

FORMAT_VERSION = 1

MANIFEST = "manifest.json"
"""Of a generated corpus, in its folder."""


@dataclass(frozen=True)
class Corpus:
    """A complete corpus on disk.

    Attributes:
        root: its folder.
        seed: what its documents were drawn from.
        documents: how many there are.
        generator_version: which generator made them.
        digest: SHA-256 of the documents and their division into parts, whatever the compression; hexadecimal.
        parts: its files, in document order.
    """

    root: Path
    seed: int
    documents: int
    generator_version: int
    digest: str
    parts: tuple[CorpusPart, ...]

    @property
    def raw_bytes(self) -> int:
        """Size of all documents, line ends included."""
        return sum(part.raw_bytes for part in self.parts)

    @property
    def file_bytes(self) -> int:
        """Size of all part files."""
        return sum(part.file_bytes for part in self.parts)


class _Manifest(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    format_version: int
    generator_version: int
    seed: int
    documents: int
    digest: str
    parts: tuple[CorpusPart, ...]


def save_manifest(folder: Path, corpus: Corpus) -> None:
    """Write the manifest of a corpus whose part files are all in a folder.

    Args:
        folder: where they are; it may differ from the corpus's final root.
        corpus: what to write; its root is left out, so that folders can be moved.
    """
    manifest = _Manifest(
        FORMAT_VERSION,
        corpus.generator_version,
        corpus.seed,
        corpus.documents,
        corpus.digest,
        corpus.parts,
    )
    text = msgspec.json.format(msgspec.json.encode(manifest), indent=1)
    (folder / MANIFEST).write_bytes(text + b"\n")


def corpus_digest(parts: Iterable[CorpusPart]) -> str:
    """SHA-256 over a line with the format's version, then a line a part: its name, documents and SHA-256."""
    total = hashlib.sha256(f"benchctl corpus {FORMAT_VERSION}\n".encode())
    for part in parts:
        total.update(f"{part.name} {part.start} {part.stop} {part.sha256}\n".encode())
    return total.hexdigest()


def load_corpus(folder: Path) -> Corpus:
    """Read a corpus's manifest and check that its files are there in their sizes.

    Raises:
        BenchctlError: they are not, or the manifest is damaged.
    """
    path = folder / MANIFEST
    try:
        manifest = msgspec.json.decode(read_file(path), type=_Manifest)
    except (OSError, msgspec.DecodeError) as err:
        raise damaged(path, str(err)) from err
    if manifest.format_version != FORMAT_VERSION or manifest.digest != corpus_digest(manifest.parts):
        raise damaged(path, "its digest or format version does not match")
    for part in manifest.parts:
        _check_file(folder / part.name, part.file_bytes)
    return Corpus(
        folder, manifest.seed, manifest.documents, manifest.generator_version, manifest.digest, manifest.parts
    )


def _check_file(path: Path, expected_bytes: int) -> None:
    try:
        file_bytes = path.stat().st_size
    except OSError as err:
        raise damaged(path, err.strerror or str(err)) from err
    if file_bytes != expected_bytes:
        raise damaged(path, f"{file_bytes} bytes instead of {expected_bytes}")
