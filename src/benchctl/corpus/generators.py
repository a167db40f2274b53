"""The generators, by the names that tracks call them: each is a module."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from benchctl.corpus import big5, cluster_metrics
from benchctl.corpus.rows import Span
from benchctl.track.model import GeneratorName


@dataclass(frozen=True)
class Generator:
    """What makes documents."""

    version: int  # raised whenever a document changes
    file_bytes_a_document: int  # an upper estimate, compressed
    # (seed, documents, start, stop) -> the documents [start, stop) of a corpus, as blocks of whole lines.
    generate: Callable[[int, int, int, int], Iterator[bytes]]
    # The part files of a corpus of so many documents, in document order.
    spans: Callable[[int], Iterator[Span]]


GENERATORS: Mapping[GeneratorName, Generator] = {
    "big5": Generator(
        big5.GENERATOR_VERSION,
        big5.FILE_BYTES_A_DOCUMENT,
        big5.generate,
        big5.spans,
    ),
    "cluster-metrics": Generator(
        cluster_metrics.GENERATOR_VERSION,
        cluster_metrics.FILE_BYTES_A_DOCUMENT,
        cluster_metrics.generate,
        cluster_metrics.spans,
    ),
}
