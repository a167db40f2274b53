"""The generators, by the names that tracks call them: each is a module."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol

from benchctl.corpus import big5, cluster_metrics
from benchctl.corpus.rows import Flags, Numbers, Slice, Span
from benchctl.track.model import GeneratorName


class Columns(Protocol):
    """Some documents as columns of shape (n,), without writing them out, in the engines' terms.

    Dates are in milliseconds, keywords indices into a table of texts, so that an engine's answers about the
    corpus can be checked against them. What is no such column is a KeyError.
    """

    documents: int

    def numbers(self, field: str) -> Numbers:
        """The values of one of the generator's number fields."""

    def keywords(self, field: str) -> Numbers:
        """The values of one of its keyword fields, as indices into its `keyword_texts(field)`."""

    def with_words(self, words: tuple[str, ...], /) -> Flags:
        """Which documents have text with at least one of these words, which it must know."""


@dataclass(frozen=True)
class Generator:
    """What makes documents, and knows them.

    Attributes:
        version: raised whenever a document changes.
        file_bytes_a_document: an upper estimate, compressed.
        numbers: fields of integers and dates.
        keywords: fields of keywords.
        generate: (seed, documents, start, stop) -> the documents [start, stop) of a corpus, as blocks of
            whole lines.
        spans: the part files of a corpus of so many documents, in document order.
        blocks: the documents of a slice, in order, in bounded memory.
        keyword_texts: the texts of a keyword field, by index.
        knows_word: whether `with_words` tells all documents that have this word anywhere.
    """

    version: int
    file_bytes_a_document: int
    numbers: tuple[str, ...]
    keywords: tuple[str, ...]
    generate: Callable[[int, int, int, int], Iterator[bytes]]
    spans: Callable[[int], Iterator[Span]]
    blocks: Callable[[Slice], Iterator[Columns]]
    keyword_texts: Callable[[str], tuple[str, ...]]
    knows_word: Callable[[str], bool]


GENERATORS: Mapping[GeneratorName, Generator] = {
    "big5": Generator(
        big5.GENERATOR_VERSION,
        big5.FILE_BYTES_A_DOCUMENT,
        big5.NUMBERS,
        big5.KEYWORDS,
        big5.generate,
        big5.spans,
        big5.blocks,
        big5.keyword_texts,
        big5.knows_word,
    ),
    "cluster-metrics": Generator(
        cluster_metrics.GENERATOR_VERSION,
        cluster_metrics.FILE_BYTES_A_DOCUMENT,
        cluster_metrics.NUMBERS,
        cluster_metrics.KEYWORDS,
        cluster_metrics.generate,
        cluster_metrics.spans,
        cluster_metrics.blocks,
        cluster_metrics.keyword_texts,
        # No document has text.
        lambda _word: False,
    ),
}
