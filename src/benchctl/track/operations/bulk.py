"""The operation that sends documents: Rally's `bulk`."""

from typing import ClassVar, Literal

from benchctl.track.operations.common import Operation, demand

_MOST_DOCUMENTS = 2**31 - 1  # that a sample counts


class Bulk(Operation, frozen=True, kw_only=True, tag="bulk"):
    """Documents of the corpus, many a request; it ends with the corpus unless it is looped.

    Attributes:
        bulk_size: documents a request.
        batch_size: taken from Rally's tracks; benchctl reads ahead by itself.
        ingest_percentage: how much of the corpus to send, in whole requests, rounded up.
        ingest_doc_count: how many documents of the corpus to send; not together with a percentage.
        corpora: names of those to send; None means all of the track's.
        indices: only documents for these indices, where the corpora say where they go.
        data_streams: the same for data streams.
        index: where to, for documents that say nothing about it; None means the track's own index.
        data_stream: the same for a data stream, whose documents are created.
        type: of documents, on nodes old enough to have types.
        pipeline: ingest pipeline.
        refresh: the request's refresh parameter.
        looped: start over at the end of the corpus.
        conflicts: give documents ids, of which some repeat; new ids count up, or come in random order.
        conflict_probability: per cent of documents that get the id of an earlier one.
        on_conflict: what is sent for them.
        recency: 0 to 1; how much ids that are new are preferred to repeat, 0 for not at all.
        detailed_results: taken from Rally's tracks; failures are always counted by document.
        timeout: the request's timeout parameter.
    """

    bulk_size: int
    batch_size: int | None = None
    ingest_percentage: float = 100.0
    ingest_doc_count: int | None = None
    corpora: str | tuple[str, ...] | None = None
    indices: str | tuple[str, ...] | None = None
    data_streams: str | tuple[str, ...] | None = None
    index: str | None = None
    data_stream: str | None = None
    type: str | None = None
    pipeline: str | None = None
    refresh: bool | Literal["true", "false", "wait_for"] | None = None
    looped: bool = False
    conflicts: Literal["sequential", "random"] | None = None
    conflict_probability: float = 25.0
    on_conflict: Literal["index", "update"] = "index"
    recency: float = 0.0
    detailed_results: bool = False
    timeout: str | None = None

    shown: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        demand(
            (
                1 <= self.bulk_size <= _MOST_DOCUMENTS,
                f"bulk-size must be at least 1, at most {_MOST_DOCUMENTS:,}",
            ),
            (0 < self.ingest_percentage <= 100, "ingest-percentage must be above 0, at most 100"),  # noqa: PLR2004 - per cent
            (0 <= self.conflict_probability <= 100, "conflict-probability must be from 0 to 100"),  # noqa: PLR2004 - per cent
            (0 <= self.recency <= 1, "recency must be from 0 to 1"),
            (
                self.ingest_doc_count is None or self.ingest_doc_count >= 1,
                "ingest-doc-count must be at least 1",
            ),
            (
                self.ingest_doc_count is None or self.ingest_percentage == 100,  # noqa: PLR2004 - per cent
                "ingest-doc-count and ingest-percentage do not mix",
            ),
            (self.index is None or self.data_stream is None, "index and data-stream do not mix"),
            (self.indices is None or self.data_streams is None, "indices and data-streams do not mix"),
            (
                self.conflicts is None or (self.data_stream is None and self.data_streams is None),
                "conflicts: a data stream has none, since its documents are only ever created",
            ),
        )

    @property
    def unit(self) -> str:
        """What its throughput counts a second."""
        return "docs"

    @property
    def shares_work(self) -> bool:
        """Whether the clients of a task take their work from one source, such as the corpus."""
        return True

    @property
    def ends(self) -> bool:
        """Whether it ends by itself: with the corpus."""
        return not self.looped
