"""OpenSearch Benchmark's operations on vectors: searches for the nearest ones, and data sets to index."""

from typing import Any, ClassVar

import msgspec

from benchctl.track.operations.common import Operation, Varying, demand

_HYPHENATED = frozenset(
    {
        "calculate_recall",
        "detailed_results",
        "id_field_name",
        "profile_metrics",
        "profile_metrics_sample_size",
        "profile_query",
        "response_compression_enabled",
        "retry_max_wait_period",
        "retry_wait_period",
    }
)


def _key(name: str) -> str | None:
    """How OpenSearch Benchmark writes a key of these types: most with underscores."""
    return name.replace("_", "-") if name in _HYPHENATED else None


class VectorSearch(Varying, frozen=True, kw_only=True, rename=_key, tag="vector-search"):
    """A search for the nearest vectors: a body as it is, or one for each vector of a data set.

    Answers of engines that look for neighbours approximately differ by right, so they are not compared.

    Attributes:
        index: what to search; None means the track's own index.
        body: the JSON body; with a data set, its keys beside the query.
        cache: whether the node may answer from its request cache; None leaves it to the index.
        detailed_results: answers are always read in full detail.
        response_compression_enabled: whether the node may compress its answers; not unless this says so.
        calculate_recall: taken from workloads; without the data set's neighbours there is none.
        profile_query: the same as `profile` in the body.
        profile_metrics, profile_metrics_sample_size: taken from workloads; profiles are not read.
        field: of the vectors.
        k: how many neighbours.
        data_set_format, data_set_path, data_set_corpus: where the vectors of a data set come from.
        neighbors_data_set_format, neighbors_data_set_path, neighbors_data_set_corpus: and what is nearest.
        num_vectors, repetitions: how much of it is asked.
        id_field_name: what stands for the id of a hit.
        filter, filter_type, filter_body, space_type, oversample_factor, min_score, max_distance,
            radial_search_type, radial_engine: further parts of the queries that a data set makes.
    """

    index: str | None = None
    body: dict[str, Any] = msgspec.field(default_factory=dict)
    cache: bool | None = None
    detailed_results: bool = False
    response_compression_enabled: bool = False
    calculate_recall: bool = True
    profile_query: bool = False
    profile_metrics: list[Any] | None = None
    profile_metrics_sample_size: int = 0
    field: str | None = None
    k: int | None = None
    data_set_format: str | None = None
    data_set_path: str | None = None
    data_set_corpus: str | None = None
    neighbors_data_set_format: str | None = None
    neighbors_data_set_path: str | None = None
    neighbors_data_set_corpus: str | None = None
    num_vectors: int | None = None
    repetitions: int = 1
    id_field_name: str | None = None
    filter: dict[str, Any] | None = None
    filter_type: str | dict[str, Any] | None = None
    filter_body: dict[str, Any] | None = None
    space_type: str | None = None
    oversample_factor: float | None = None
    min_score: float | None = None
    max_distance: float | None = None
    radial_search_type: str | None = None
    radial_engine: str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        # Workloads write an empty object where a parameter says nothing.
        demand((not self.filter_type or isinstance(self.filter_type, str), "filter_type is no text"))

    @property
    def unit(self) -> str:
        """What its throughput counts a second."""
        return "queries"

    @property
    def templates(self) -> Any:  # noqa: ANN401 - any JSON
        """All that `${name}` may stand in."""
        return self.body

    @property
    def reads_data_set(self) -> bool:
        """Whether its vectors come from a data set: without a body, they have to."""
        return bool(self.data_set_path or self.data_set_corpus) or not self.body


class BulkVectorDataSet(Operation, frozen=True, kw_only=True, rename=_key, tag="bulk-vector-data-set"):
    """Vectors of a data set, many a request.

    Attributes:
        index: where to.
        field: that takes the vectors.
        bulk_size: vectors a request.
        data_set_format, data_set_path, data_set_corpus: where they come from.
        parents_data_set_path, parents_data_set_corpus: documents around them, where they are nested.
        num_vectors: how many.
        filter_attributes: further fields.
        id_field_name: the field of the id.
        retries, retry_wait_period, retry_max_wait_period: what is done with vectors that were refused.
        detailed_results: failures are always counted by document.
    """

    shown: ClassVar[bool] = True

    index: str
    field: str
    bulk_size: int
    data_set_format: str
    data_set_path: str | None = None
    data_set_corpus: str | None = None
    parents_data_set_path: str | None = None
    parents_data_set_corpus: str | None = None
    num_vectors: int | None = None
    filter_attributes: list[Any] = msgspec.field(default_factory=list)
    id_field_name: str = "_id"
    retries: int = 10
    retry_wait_period: float = 0.5
    retry_max_wait_period: float = 60.0
    detailed_results: bool = True

    @property
    def unit(self) -> str:
        """What its throughput counts a second."""
        return "docs"
