"""The generators, by the names that tracks call them: each is a module."""

from collections.abc import Iterator, Mapping
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
        """The values of one of the generator's NUMBERS."""

    def keywords(self, field: str) -> Numbers:
        """The values of one of its KEYWORDS, as indices into its `keyword_texts(field)`."""

    def with_words(self, words: tuple[str, ...]) -> Flags:
        """Which documents have text with at least one of these words, which it must know."""


class Generator(Protocol):
    """What a module has to have to be a generator; see `big5` for what each means."""

    @property
    def GENERATOR_VERSION(self) -> int:  # noqa: N802 - a module's constant
        """Raised whenever a document changes."""

    @property
    def FILE_BYTES_A_DOCUMENT(self) -> int:  # noqa: N802
        """An upper estimate, compressed."""

    @property
    def NUMBERS(self) -> tuple[str, ...]:  # noqa: N802
        """Fields of integers and dates."""

    @property
    def KEYWORDS(self) -> tuple[str, ...]:  # noqa: N802
        """Fields of keywords."""

    def generate(self, seed: int, documents: int, start: int, stop: int) -> Iterator[bytes]:
        """The documents [start, stop) of a corpus, as blocks of whole lines."""

    def spans(self, documents: int) -> Iterator[Span]:
        """The part files of a corpus, in document order."""

    def blocks(self, part: Slice) -> Iterator[Columns]:
        """The documents of a slice, in order, in bounded memory."""

    def keyword_texts(self, field: str) -> tuple[str, ...]:
        """The texts of one of KEYWORDS, by index."""

    def knows_word(self, word: str) -> bool:
        """Whether `with_words` tells all documents that have this word anywhere."""


GENERATORS: Mapping[GeneratorName, Generator] = {"big5": big5, "cluster-metrics": cluster_metrics}
