"""Operations that ask for documents or send them: searches, vectors, query languages, bulk, any request."""

from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from operator import getitem
from typing import Annotated, Any, ClassVar, Final, Literal

import msgspec

from benchctl.track.operations import (
    MOST_WAIT_S,
    Asking,
    Codes,
    Count,
    Operation,
    Rules,
    UrlPath,
    Varying,
)
from benchctl.track.values import Entry

Path = tuple[str, ...]
"""The keys to a part of a body; every second of those to a composite aggregation is an aggregation's name."""


def composites(body: Mapping[str, Any]) -> Iterator[Path]:
    """Yield the path of every composite aggregation of a search body."""
    for key in ("aggs", "aggregations"):
        for name, aggregation in _objects(body.get(key)):
            if isinstance(aggregation.get("composite"), Mapping):
                yield (key, name, "composite")
            for inner in composites(aggregation):
                yield (key, name, *inner)


def change_composite(body: Mapping[str, Any], path: Path, changes: Mapping[str, Any]) -> dict[str, Any]:
    """Copy a body whose object at a path gets further keys after its own."""
    if not path:
        return {**body, **changes}
    return {**body, path[0]: change_composite(body[path[0]], path[1:], changes)}


def composite_at(body: Any, path: Path) -> Mapping[str, Any]:
    """Return the composite aggregation itself: its sources, size and so on."""
    found: Mapping[str, Any] = reduce(getitem, path, body)
    return found


def _objects(found: object) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The entries of an object that are objects themselves; of anything else, none."""
    if isinstance(found, Mapping):
        yield from ((name, value) for name, value in found.items() if isinstance(value, Mapping))


def _keys(content: object) -> Iterator[str]:
    """Yield all keys of the objects in JSON content."""
    if isinstance(content, Mapping):
        yield from content
        content = [*content.values()]
    if isinstance(content, list):
        for part in content:
            yield from _keys(part)


_ALL = 100  # per cent
_Percent = Annotated[float, msgspec.Meta(ge=0, le=_ALL)]
_Documents = Annotated[int, msgspec.Meta(ge=1, le=2**31 - 1)]
"""The documents that a sample can count."""


class Bulk(Operation, frozen=True, kw_only=True, tag="bulk"):
    """Documents of the corpus, many a request; it ends with the corpus unless it is looped."""

    shown: ClassVar[bool] = True
    counts: ClassVar[str] = "docs"
    shares_work: ClassVar[bool] = True

    bulk_size: _Documents  # a request
    # How much of the corpus to send, in whole requests, rounded up.
    ingest_percentage: Annotated[float, msgspec.Meta(gt=0, le=100)] = 100.0
    ingest_from_percentage: _Percent = 0.0  # how much of the corpus to leave out before that
    # How many documents of the corpus to send; not together with a percentage.
    ingest_doc_count: Count | None = None
    corpora: str | tuple[str, ...] | None = None  # names of those to send; None means all of the track's
    # Only documents for these indices, where the corpora say where they go.
    indices: str | tuple[str, ...] | None = None
    data_streams: str | tuple[str, ...] | None = None  # the same for data streams
    # Where to, for documents that say nothing about it; None means the track's own index.
    index: str | None = None
    data_stream: str | None = None  # the same for a data stream, whose documents are created
    type: str | None = None  # of documents, on nodes old enough to have types
    pipeline: str | None = None  # ingest pipeline
    refresh: bool | Literal["true", "false", "wait_for"] | None = None  # the request's refresh parameter
    looped: bool = False  # start over at the end of the corpus
    # Give documents ids, of which some repeat; new ids count up, or come in random order.
    conflicts: Literal["sequential", "random"] | None = None
    conflict_probability: _Percent = 25.0  # of documents that get the id of an earlier one
    on_conflict: Literal["index", "update"] = "index"  # what is sent for them
    # How much ids that are new are preferred to repeat, 0 for not at all.
    recency: Annotated[float, msgspec.Meta(ge=0, le=1)] = 0.0
    timeout: str | None = None  # the request's timeout parameter

    def _rules(self) -> Rules:
        sent = self.ingest_from_percentage + self.ingest_percentage
        yield sent <= _ALL, "ingest-from-percentage and ingest-percentage must not exceed 100 together"
        is_whole = self.ingest_percentage == _ALL and not self.ingest_from_percentage
        yield (
            self.ingest_doc_count is None or is_whole,
            "ingest-doc-count and ingest-percentage cannot be combined",
        )
        streams = self.data_stream is not None or self.data_streams is not None
        yield self.conflicts is None or not streams, "conflicts: documents of a data stream are only created"

    @property
    def ends(self) -> bool:
        """Return whether it ends by itself: with the corpus."""
        return not self.looped


class _Paging(Asking, frozen=True, kw_only=True):
    """Operations that ask one thing, perhaps in several pages."""

    body: dict[str, Any] = msgspec.field(default_factory=dict)
    # Name of the operation whose point in time is searched; within a composite only.
    with_point_in_time_from: str | None = None
    pages: Count | Literal["all"] | None = "all"  # how many pages at most; `all` reads to the end
    results_per_page: Count | None = None  # hits or buckets a page; None leaves it to the body
    # Whether the node may answer from its request cache; None leaves it to the index.
    cache: bool | None = None
    # Whether the node may compress its answers. They are not unless this says so: unpacking costs the
    # driver time.
    response_compression_enabled: bool = False


class Search(_Paging, frozen=True, kw_only=True, tag="search"):
    """A search; with `pages` it scrolls, as in Rally."""

    pages: Count | Literal["all"] | None = None  # how many pages to scroll through; None asks once
    profile_query: bool = False  # OpenSearch Benchmark's word for `profile` in the body

    def _rules(self) -> Rules:
        both = self.pages is not None and self.with_point_in_time_from is not None
        yield (
            not both,
            "with-point-in-time-from and pages cannot be combined: a scroll has its own point in time",
        )


QUERY_LOG: Final = "query-log"
"""The key of a track, and the name of its log of queries."""
POLLUTION_LOG: Final = "pollution"
"""The key of a track, and the name of the log that stands for a node's history."""


class LoggedSearch(Asking, frozen=True, kw_only=True, tag="logged-search"):
    """Searches of the track's log of queries, in its order, and from the start again at its end."""

    reads: ClassVar[bool] = True

    shape: str | None = None  # which of them, by the log's name of their shape; None means all
    log: Literal["query-log", "pollution"] = QUERY_LOG  # which of the track's two
    # Whether the node may answer from its request cache; None leaves it to the index.
    cache: bool | None = None
    # Of the log, different ones whose answers are compared; benchctl puts them here.
    searches: "tuple[OneSearch, ...]" = ()

    @property
    def constant(self) -> bool:
        """Return False: only the log knows."""
        return False


class AllTogether(Operation, frozen=True, kw_only=True, tag="all-together"):
    """The requests of all other tasks of its parallel element, as one task; sends nothing itself."""

    shown: ClassVar[bool] = True
    counts: ClassVar[str] = "queries"
    reads: ClassVar[bool] = True


class PaginatedSearch(_Paging, frozen=True, kw_only=True, tag="paginated-search"):
    """A search that goes on with `search_after`.

    Its body needs a sort, best one that no two documents share: of hits that sort alike, those that do not
    fit on a page are on none.
    """

    def _rules(self) -> Rules:
        yield "sort" in self.body, "body: a paginated-search needs a sort"
        yield "search_after" not in self.body, "body: search_after is set by benchctl for each page"
        yield not self.body.get("from"), "body: search_after and from cannot be combined"


class ScrollSearch(_Paging, frozen=True, kw_only=True, tag="scroll-search"):
    """A search that goes on with a scroll, which is cleared at the end.

    As in Rally, hits come in index order unless the body sorts them, and a scroll is kept for ten seconds
    from page to page unless the request parameters say `scroll`.
    """

    def _rules(self) -> Rules:
        given = self.with_point_in_time_from is not None
        yield not given, "with-point-in-time-from: a scroll has its own point in time"


class CompositeAgg(_Paging, frozen=True, kw_only=True, tag="composite-agg"):
    """A composite aggregation that goes on with its `after_key`; it may stand inside of others."""

    def _rules(self) -> Rules:
        found = [composite_at(self.body, path) for path in composites(self.body)]
        yield len(found) == 1, f"body: exactly one composite aggregation is needed, found {len(found)}"
        yield "after" not in found[0], "body: after is set by benchctl for each page"
        yield "sources" in found[0], "body: a composite aggregation needs sources"


class OneSearch(Entry, frozen=True):
    """A search of a batch."""

    body: dict[str, Any]
    index: str | None = None  # what it searches; None means the operation's
    # Further keys of its header line.
    header: dict[str, Any] = msgspec.field(default_factory=dict)


class MultiSearch(Asking, frozen=True, kw_only=True, tag="multi-search"):
    """Several searches in one request to `_msearch`."""

    searches: Annotated[tuple[OneSearch, ...], msgspec.Meta(min_length=1)]

    @property
    def templates(self) -> Any:
        """Texts that may contain `${name}`."""
        return [[search.header, search.body] for search in self.searches]


class RawRequest(Varying, frozen=True, kw_only=True, tag="raw-request"):
    """A request of any kind."""

    path: UrlPath
    method: Literal["GET", "POST", "PUT", "DELETE", "HEAD"] = "GET"
    ignore: Codes = ()  # status codes that count as success beside the 2xx
    # One JSON value, or lines of them, which go out as NDJSON; a text goes out as it is.
    body: dict[str, Any] | list[Any] | str = msgspec.field(default_factory=dict)

    @property
    def templates(self) -> Any:
        """Texts that may contain `${name}`."""
        return [self.path, self.body]


class Sleep(Operation, frozen=True, kw_only=True, tag="sleep"):
    """A pause."""

    duration: Annotated[float, msgspec.Meta(ge=0, le=MOST_WAIT_S)]  # seconds


class Sql(Operation, frozen=True, kw_only=True, tag="sql"):
    """A query in SQL; further pages come by its cursor."""

    shown: ClassVar[bool] = True
    reads: ClassVar[bool] = True

    body: dict[str, Any]  # with the `query`
    pages: Count = 1  # how many pages at most


# OpenSearch Benchmark spells keys of these types with underscores, and a few with hyphens.
_SPELLED = {
    name: name.replace("_", "-")
    for name in ("calculate_recall", "id_field_name", "profile_query", "response_compression_enabled")
}


# With such a key of a body, or of the query in it, other hits than the nearest k are right, or fewer.
_CHANGING_HITS: Final = {"post_filter", "min_score", "size", "from", "collapse", "rescore"}
_CHANGING_QUERY: Final = {"filter", "similarity", "min_score", "max_distance"}


class _OfDataSet(Varying, frozen=True, kw_only=True, rename=_SPELLED):
    """Operations on the vectors of a data set; OpenSearch Benchmark's keys."""

    index: str | None = None  # None means the track's own index
    field: str | None = None  # that holds the vectors
    # `data_set_format`, `data_set_path`, `data_set_corpus`: the file, or the track's corpus, of the vectors.
    data_set_format: Literal["hdf5", "bigann", "big-ann"] = "hdf5"
    data_set_path: str | None = None
    data_set_corpus: str | None = None
    num_vectors: int | None = None  # how many of them; None and -1 mean all
    # What stands for the id of a document, which is the number of its vector; None means the `_id`.
    id_field_name: str | None = None

    def _rules(self) -> Rules:
        both = self.data_set_path and self.data_set_corpus
        yield not both, "data_set_path and data_set_corpus exclude each other"

    @property
    def takes_all(self) -> bool:
        """Return whether it takes all vectors there are."""
        return self.num_vectors is None or self.num_vectors < 1

    @property
    def ends(self) -> bool:
        """Return whether it ends by itself: with the data set."""
        return True


class BulkVectors(_OfDataSet, frozen=True, kw_only=True, rename=_SPELLED, tag="bulk-vector-data-set"):
    """Vectors of a data set, many a request; their ids are their numbers."""

    counts: ClassVar[str] = "docs"
    shares_work: ClassVar[bool] = True

    bulk_size: _Documents  # vectors a request
    # Of HDF5 files, by which searches filter: they are not indexed, so refused.
    filter_attributes: tuple[Any, ...] = ()

    def _rules(self) -> Rules:
        yield from super()._rules()
        yield not self.filter_attributes, "filter_attributes: only vectors are indexed"


class VectorSearch(_OfDataSet, frozen=True, kw_only=True, rename=_SPELLED, tag="vector-search"):
    """A search for the nearest vectors: a body as it is, or one for each vector of a data set.

    Without a data set, the vectors are queries for the generated corpus of the track `vectors`. Answers of
    engines that look for neighbours approximately differ by right, so they are not compared.
    """

    counts: ClassVar[str] = "queries"
    reads: ClassVar[bool] = True

    data_stream: str | None = msgspec.field(default=None, name="data-stream")  # the same for a data stream
    # The JSON body; with a data set, its keys beside the query, which override those that are made.
    body: dict[str, Any] = msgspec.field(default_factory=dict)
    # Whether the node may answer from its request cache; None leaves it to the index.
    cache: bool | None = None
    # Whether the node may compress its answers; not unless this says so.
    response_compression_enabled: bool = False
    calculate_recall: bool = True  # whether answers are held against the exact neighbours, where known
    profile_query: bool = False  # the same as `profile` in the body
    k: Count | None = None  # how many neighbours
    # How many are looked at to find them: `num_candidates` of Elasticsearch, `ef_search` of OpenSearch; None
    # leaves it to the engine.
    candidates: Count | None = None
    # `neighbors_data_set_format`, `neighbors_data_set_path`, `neighbors_data_set_corpus`: what is nearest; by
    # default what an HDF5 data set says itself.
    neighbors_data_set_format: Literal["hdf5", "bigann", "big-ann"] | None = None
    neighbors_data_set_path: str | None = None
    neighbors_data_set_corpus: str | None = None
    # How often a task without iterations or a time period asks for every vector.
    repetitions: Count = 1
    filter: dict[str, Any] | None = None  # a query of neighbours, which the search applies while it looks
    # `filter_type`, `filter_body`: the same if `efficient`; `post_filter`, `boolean` apply it to the hits.
    # Without a type, a body has no effect, as in OpenSearch Benchmark.
    filter_type: str | None = None
    filter_body: dict[str, Any] | None = None
    # How many times as many neighbours are found in the quantized vectors, to be ranked by the whole ones.
    oversample_factor: float | None = None
    space_type: str | None = None  # how distances are measured, where the mapping leaves it open
    # `min_score`, `max_distance`: of searches by radius, which benchctl does not do with a data set.
    min_score: float | None = None
    max_distance: float | None = None

    def _rules(self) -> Rules:
        yield from super()._rules()
        few = self.k is not None and self.candidates is not None and self.candidates < self.k
        yield not few, "candidates must be at least k"
        lacks_file = self._has_neighbours and not self._has_file
        yield not lacks_file, "neighbors_data_set_path and neighbors_data_set_corpus require a data set"

    @property
    def _has_file(self) -> bool:
        return bool(self.data_set_path or self.data_set_corpus)

    @property
    def _has_neighbours(self) -> bool:
        return bool(self.neighbors_data_set_path or self.neighbors_data_set_corpus)

    @property
    def reads_data_set(self) -> bool:
        """Return whether its vectors come from a data set: without a body, they have to."""
        return self._has_file or bool(self.field) or not self.body

    @property
    def ends(self) -> bool:
        """Return whether it ends by itself: with the data set."""
        return self.reads_data_set

    @property
    def constant(self) -> bool:
        """Return whether all of its requests are the same."""
        return super().constant and not self.reads_data_set

    @property
    def applied_filter(self) -> dict[str, Any] | None:
        """The query of neighbours that holds while the search looks, by whichever key; None for none."""
        return self.filter or (self.filter_body if self.filter_type == "efficient" else None) or None

    @property
    def groups(self) -> Sequence[int] | None:
        """The groups of generated documents that pass the filter; None if it is about something else."""
        match self.applied_filter:
            case {"range": {"group": {"lt": int(bound), **more}}} if not more:
                return range(bound)
            case {"term": {"group": int(value) | {"value": int(value)}}}:
                return (value,)
            case {"terms": {"group": [*values]}}:
                return values
        return None

    @property
    def has_truth(self) -> bool:
        """Return whether the exact neighbours are known: of filters other than by group only where given.

        Of searches whose body changes which hits there are, they are not.
        """
        asked = _keys([self.body.get("knn"), self.body.get("query")])
        if _CHANGING_HITS & self.body.keys() or not _CHANGING_QUERY.isdisjoint(asked):
            return False
        if not (self.calculate_recall and self.reads_data_set):
            return False
        if self._has_neighbours:
            return True
        is_filtered = self.applied_filter is not None or self.filter_type in ("post_filter", "boolean")
        return not is_filtered or (not self._has_file and self.groups is not None)
