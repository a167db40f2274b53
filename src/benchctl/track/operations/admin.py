"""Administrative operations of several requests, or whose request depends on the track; the rest are rows."""

from typing import Annotated, Any, ClassVar, Literal

import msgspec

from benchctl.track.operations.common import (
    Criterion,
    Form,
    OnIndex,
    Operation,
    PositiveSeconds,
    Retried,
    demand,
)


class ForceMerge(OnIndex, frozen=True, kw_only=True, tag="force-merge"):
    """Merge segments."""

    wire: ClassVar[Form] = Form("POST", "/{index}/_forcemerge", query=("max_num_segments",), slow=True)

    max_num_segments: int | None = None  # down to how many; None leaves it to the node
    # Wait in one request, or start the merge and ask until it is done. The node keeps the outcome of a
    # merge that was started so in an index of its own, `.tasks`.
    mode: Literal["blocking", "polling"] = "blocking"
    poll_period: PositiveSeconds = 10.0  # seconds between questions


class CheckIndex(Operation, frozen=True, kw_only=True, tag="check-index"):
    """Lucene's check of all shards of nodes that benchctl started on this host, on a copy of their files.

    Its time is what that takes, with the start of a Java runtime for every shard; damage is a failure.
    """

    shown: ClassVar[bool] = True


class RunUntil(Retried, frozen=True, kw_only=True, tag="run-until"):
    """Send a request again and again until its answer is the wanted one."""

    path: str  # with its leading slash
    json_path: str  # keys into the answer with dots between them
    criterion: Criterion  # what the value there has to be like
    method: Literal["GET", "POST", "PUT", "DELETE", "HEAD", "PATCH"] = "GET"
    body: dict[str, Any] | list[Any] | str | None = None
    retry_wait_interval: Annotated[float, msgspec.Meta(ge=0)] = 60.0  # seconds between requests
    ignore: int | tuple[int, ...] = ()  # status codes that count as success beside the 2xx

    def __post_init__(self) -> None:
        super().__post_init__()
        demand((self.path.startswith("/"), "path must begin with a slash"))

    @property
    def accepted(self) -> frozenset[int]:
        """Status codes that count as success beside the 2xx."""
        own = (self.ignore,) if isinstance(self.ignore, int) else self.ignore
        return super().accepted | frozenset(own)


Names = str | tuple[str, ...] | None


def names_of(given: Names) -> tuple[str, ...]:
    """Return one name or several as a tuple; none when nothing was given."""
    if given is None:
        return ()
    return (given,) if isinstance(given, str) else given


class CreateIndex(Retried, frozen=True, kw_only=True, tag="create-index"):
    """Create indices."""

    index: Names = None  # one or several; None means all of the track's
    body: dict[str, Any] | None = None  # settings and mappings; None means those that the track declares
    # Laid over the body's settings, with or without the `index.` before their names.
    settings: dict[str, Any] = msgspec.field(default_factory=dict)


class DeleteIndex(Retried, frozen=True, kw_only=True, tag="delete-index"):
    """Delete indices."""

    index: Names = None  # one or several; None means all of the track's
    only_if_exists: bool = True  # a missing one is not a failure


class CreateDataStream(Retried, frozen=True, kw_only=True, tag="create-data-stream"):
    """Create data streams."""

    data_stream: Names = None  # one or several; None means all of the track's


class DeleteDataStream(Retried, frozen=True, kw_only=True, tag="delete-data-stream"):
    """Delete data streams."""

    data_stream: Names = None  # one or several; None means all of the track's
    only_if_exists: bool = True  # a missing one is not a failure


class CreateTemplate(Retried, frozen=True, kw_only=True):
    """Operations that create templates, of the kind that their name names."""

    template: str | None = None  # its name; None means all of this kind that the track declares
    body: dict[str, Any] | None = None  # of one that the track does not declare
    # Laid over the settings of those that it does.
    settings: dict[str, Any] = msgspec.field(default_factory=dict)

    def __post_init__(self) -> None:
        super().__post_init__()
        demand((self.body is None or self.template is not None, "body: a template needs a name, too"))


class DeleteTemplate(Retried, frozen=True, kw_only=True):
    """Operations that delete templates, of the kind that their name names."""

    template: str | None = None  # its name; None means all of this kind that the track declares
    only_if_exists: bool = True  # a missing one is not a failure
    # Also the indices that they are for; None leaves it to the track.
    delete_matching_indices: bool | None = None
    index_pattern: str | None = None  # of these indices

    def __post_init__(self) -> None:
        super().__post_init__()
        demand(
            (
                not self.delete_matching_indices or self.template is None or bool(self.index_pattern),
                "delete-matching-indices needs an index-pattern",
            ),
        )


class WaitForTransform(Retried, frozen=True, kw_only=True, tag="wait-for-transform"):
    """Stop a transform at its next checkpoint, and ask until it has stopped."""

    transform_id: str
    force: bool = False  # stop it even when it has failed
    timeout: str | None = None  # of the request that stops it
    wait_for_completion: bool = True  # False does not wait
    wait_for_checkpoint: bool = True  # False stops it at once
    transform_timeout: PositiveSeconds = 3600.0
    poll_interval: PositiveSeconds = 0.5  # seconds between questions


class Downsample(Operation, frozen=True, kw_only=True, tag="downsample"):
    """Make a coarser index of a time series."""

    source_index: str | None = None  # from which; None means the track's own
    target_index: str | None = None  # to which; None means the source's name with the interval behind it
    fixed_interval: str = "1h"
    sampling_method: Literal["aggregate", "last_value"] | None = None  # how values become one


class ShrinkIndex(Retried, frozen=True, kw_only=True, tag="shrink-index"):
    """Make indices with fewer shards: all shards of a source move to one node, and become fewer there."""

    source_index: str  # one, or a pattern
    target_index: str  # its name; with several sources, what they do not have in common goes behind it
    target_body: dict[str, Any] = msgspec.field(default_factory=dict)  # settings of the target
    # That takes the shards; None means one that holds data, drawn by the run's seed.
    shrink_node: str | None = None


class TrainKnnModel(Retried, frozen=True, kw_only=True, tag="train-knn-model"):
    """Train a model for the nearest vectors, and ask until it is there."""

    model_id: str = msgspec.field(name="model_id")
    body: dict[str, Any]  # what it learns from
    retries: int = 1000  # how often it is asked for
    poll_period: PositiveSeconds = msgspec.field(default=0.5, name="poll_period")  # seconds between questions
