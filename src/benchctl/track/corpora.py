"""The typed form of a track's corpora: which files hold the documents, and where those go."""

from collections.abc import Iterator, Sequence
from typing import Any, Literal, NamedTuple

import msgspec

from benchctl.track.template.document import Document, convert

SourceFormat = Literal["bulk", "hdf5", "big-ann"]

_PACKED = (".bz2", ".gz", ".zst", ".zip", ".tar", ".tar.gz", ".tgz", ".tar.bz2")


class SourcePart(msgspec.Struct, frozen=True, rename="kebab"):
    """One of the pieces in which a large file is published.

    Attributes:
        name: of the file.
        size: bytes.
    """

    name: str
    size: int


class Documents(msgspec.Struct, frozen=True, rename="kebab", omit_defaults=True, kw_only=True):
    """One file of documents.

    Attributes:
        source_file: its name, as it is published: compressed, if it is.
        document_count: how many documents it holds; None where a stream has no end.
        compressed_bytes: of the file as published; None when the track does not say.
        uncompressed_bytes: of its text; None when the track does not say.
        base_url: the folder of the published file.
        source_url: the published file itself, where it has a name of its own.
        source_file_parts: the pieces that it is published in; empty for one file.
        source_format: `bulk` is a JSON document a line; the others hold vectors.
        target_index: where its documents go; None when they say so themselves, or go to a data stream.
        target_data_stream: the same for a data stream.
        target_type: of the documents, for engines that had types.
        includes_action_and_meta_data: whether a line before each document says what to do with it.
        meta: the user's own notes.
    """

    source_file: str
    document_count: int | None = None
    compressed_bytes: int | None = None
    uncompressed_bytes: int | None = None
    base_url: str | None = None
    source_url: str | None = None
    source_file_parts: tuple[SourcePart, ...] = ()
    source_format: SourceFormat = "bulk"
    target_index: str | None = None
    target_data_stream: str | None = None
    target_type: str | None = None
    includes_action_and_meta_data: bool = False
    meta: dict[str, Any] = {}

    @property
    def packed(self) -> bool:
        """Whether the published file is compressed."""
        return self.source_file.endswith(_PACKED)

    @property
    def published_bytes(self) -> int | None:
        """Size of the file as it is published; None when the track does not say."""
        return self.compressed_bytes if self.packed else self.uncompressed_bytes


class Corpus(msgspec.Struct, frozen=True, rename="kebab", omit_defaults=True):
    """A named set of documents.

    Attributes:
        name: what operations call it.
        documents: its files.
        streaming_ingestion: which source a stream of documents without an end comes from; empty for files.
        meta: the user's own notes.
    """

    name: str
    documents: tuple[Documents, ...]
    streaming_ingestion: str = ""
    meta: dict[str, Any] = {}


class _CorpusEntry(msgspec.Struct, frozen=True, rename="kebab"):
    """A corpus in a file: most keys hold for all of its documents that do not say otherwise."""

    name: str
    documents: tuple[dict[str, Any], ...]
    base_url: str | None = None
    source_format: SourceFormat | None = None
    includes_action_and_meta_data: bool | None = None
    target_index: str | None = None
    target_data_stream: str | None = None
    target_type: str | None = None
    streaming_ingestion: str | None = None
    meta: dict[str, Any] | None = None


_INHERITED = (
    "base_url",
    "source_format",
    "includes_action_and_meta_data",
    "target_index",
    "target_data_stream",
    "target_type",
)


class Targets(NamedTuple):
    """Where the documents of a track can go; to the only index or data stream unless they say otherwise.

    Attributes:
        indices: names of its indices.
        types: of their documents, all together, for engines that had types.
        data_streams: names of its data streams.
    """

    indices: tuple[str, ...]
    types: tuple[str, ...]
    data_streams: tuple[str, ...]


def read_corpora(entries: Sequence[Any], document: Document, targets: Targets) -> tuple[Corpus, ...]:
    """Read the corpora of a track.

    Args:
        entries: the JSON at `$.corpora`.
        document: that they stand in.
        targets: where documents can go.

    Raises:
        UsageError: something is wrong or contradictory; the message names file and JSON path.
    """
    found: dict[str, Corpus] = {}
    for place, raw in enumerate(entries):
        where = f"$.corpora[{place}]"
        entry = convert(raw, _CorpusEntry, document, where)
        if entry.name in found:
            raise document.refuse(f"{where}.name", f"two corpora are called '{entry.name}'")
        documents = tuple(_documents(entry, document, where, targets))
        found[entry.name] = Corpus(entry.name, documents, entry.streaming_ingestion or "", entry.meta or {})
    return tuple(found.values())


def _documents(entry: _CorpusEntry, document: Document, where: str, targets: Targets) -> Iterator[Documents]:
    inherited = {
        name.replace("_", "-"): value for name in _INHERITED if (value := getattr(entry, name)) is not None
    }
    for key, names in (("target-index", targets.indices), ("target-data-stream", targets.data_streams)):
        if len(names) == 1:
            inherited.setdefault(key, names[0])
    if len(targets.indices) == len(targets.types) == 1:
        inherited.setdefault("target-type", targets.types[0])
    for place, raw in enumerate(entry.documents):
        here = f"{where}.documents[{place}]"
        found = convert({**inherited, **raw}, Documents, document, here)
        if found.includes_action_and_meta_data:
            # The documents say themselves where they go.
            found = msgspec.structs.replace(
                found, target_index=None, target_data_stream=None, target_type=None
            )
        problem = _problem(found, targets, streams=bool(entry.streaming_ingestion))
        if problem:
            raise document.refuse(here, problem)
        yield found


def _problem(found: Documents, targets: Targets, *, streams: bool) -> str:
    """What is wrong with a file of documents; empty when nothing is."""
    sizes = (found.document_count, found.compressed_bytes, found.uncompressed_bytes)
    untargeted = found.target_index is None and found.target_data_stream is None
    parts = sum(part.size for part in found.source_file_parts)
    published = found.published_bytes
    rules = (
        (found.document_count is None and not streams, "document-count is missing"),
        (any(size is not None and size < 0 for size in sizes), "a size or count is negative"),
        (
            bool(parts) and published is not None and parts != published,
            f"its source-file-parts have {parts:,} bytes together, the file {published or 0:,}",
        ),
        (
            found.target_index is not None and found.target_data_stream is not None,
            "target-index and target-data-stream exclude each other",
        ),
        (
            found.target_index is not None and bool(targets.data_streams),
            "target-index in a track with data streams",
        ),
        (
            found.target_data_stream is not None and bool(targets.indices),
            "target-data-stream in a track with indices",
        ),
        (
            found.target_data_stream is not None and found.target_type is not None,
            "documents of a data stream have no target-type",
        ),
        (
            untargeted and not found.includes_action_and_meta_data,
            f"a {'target-data-stream' if targets.data_streams else 'target-index'} is needed for them",
        ),
    )
    return next((text for broken, text in rules if broken), "")
