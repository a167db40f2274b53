"""Administrative operations of several requests, or whose request depends on the track; the rest are rows."""

from typing import Annotated, Any, ClassVar, Literal

import msgspec

from benchctl.track.operations.common import (
    MOST_WAIT_S,
    Criterion,
    Form,
    OnIndex,
    Operation,
    PositiveSeconds,
    Retried,
    demand,
)


class ForceMerge(OnIndex, frozen=True, kw_only=True, tag="force-merge"):
    """Merge segments.

    Attributes:
        max_num_segments: down to how many; None leaves it to the node.
        mode: wait in one request, or start the merge and ask until it is done. The node keeps the outcome of
            a merge that was started so in an index of its own, `.tasks`.
        poll_period: seconds between questions.
    """

    wire: ClassVar[Form] = Form(
        "POST", "/{index}/_forcemerge", query=("max_num_segments",), answer="shards", slow=True
    )

    max_num_segments: int | None = None
    mode: Literal["blocking", "polling"] = "blocking"
    poll_period: PositiveSeconds = 10.0


class Failover(Operation, frozen=True, kw_only=True, tag="failover"):
    """What befalls a node of a cluster that benchctl started, while other tasks go on.

    Its time is what it takes: to be gone, or to be back with all copies of shards started.

    Attributes:
        action: end the node as its service manager does, kill it, start it again (ended first where it is
            up), or do that to all nodes in turn.
        node: its name, or `master` for whichever is; none for `roll`.
        delay: seconds before it, which are not part of its time.
    """

    shown: ClassVar[bool] = True

    action: Literal["stop", "kill", "restart", "roll"]
    node: str | None = None
    delay: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        demand(
            (0 <= self.delay <= MOST_WAIT_S, f"delay must be from 0 to {MOST_WAIT_S:,} seconds"),
            ((self.node is None) == (self.action == "roll"), "node must be given unless all roll"),
        )


class CheckIndex(Operation, frozen=True, kw_only=True, tag="check-index"):
    """Lucene's check of all shards of nodes that benchctl started on this host, on a copy of their files.

    Its time is what that takes, with the start of a Java runtime for every shard; damage is a failure.
    """

    shown: ClassVar[bool] = True


class RunUntil(Retried, frozen=True, kw_only=True, tag="run-until"):
    """Send a request again and again until its answer is the wanted one.

    Attributes:
        path: with its leading slash.
        json_path: keys into the answer with dots between them.
        criterion: what the value there has to be like.
        method: of HTTP.
        body: any JSON.
        retry_wait_interval: seconds between requests.
        ignore: status codes that count as success beside the 2xx.
    """

    path: str
    json_path: str
    criterion: Criterion
    method: Literal["GET", "POST", "PUT", "DELETE", "HEAD", "PATCH"] = "GET"
    body: dict[str, Any] | list[Any] | str | None = None
    retry_wait_interval: Annotated[float, msgspec.Meta(ge=0)] = 60.0
    ignore: int | tuple[int, ...] = ()

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
    """One name or several, as a tuple; none when nothing was said."""
    if given is None:
        return ()
    return (given,) if isinstance(given, str) else given


class CreateIndex(Retried, frozen=True, kw_only=True, tag="create-index"):
    """Create indices.

    Attributes:
        index: one or several; None means all of the track's.
        body: settings and mappings; None means those that the track declares.
        settings: laid over the body's settings, with or without the `index.` before their names.
    """

    index: Names = None
    body: dict[str, Any] | None = None
    settings: dict[str, Any] = msgspec.field(default_factory=dict)


class DeleteIndex(Retried, frozen=True, kw_only=True, tag="delete-index"):
    """Delete indices.

    Attributes:
        index: one or several; None means all of the track's.
        only_if_exists: a missing one is not a failure.
    """

    index: Names = None
    only_if_exists: bool = True


class CreateDataStream(Retried, frozen=True, kw_only=True, tag="create-data-stream"):
    """Create data streams.

    Attributes:
        data_stream: one or several; None means all of the track's.
    """

    data_stream: Names = None


class DeleteDataStream(Retried, frozen=True, kw_only=True, tag="delete-data-stream"):
    """Delete data streams.

    Attributes:
        data_stream: one or several; None means all of the track's.
        only_if_exists: a missing one is not a failure.
    """

    data_stream: Names = None
    only_if_exists: bool = True


class CreateTemplate(Retried, frozen=True, kw_only=True):
    """Operations that create templates, of the kind that their name names.

    Attributes:
        template: its name; None means all of this kind that the track declares.
        body: of one that the track does not declare.
        settings: laid over the settings of those that it does.
    """

    template: str | None = None
    body: dict[str, Any] | None = None
    settings: dict[str, Any] = msgspec.field(default_factory=dict)

    def __post_init__(self) -> None:
        super().__post_init__()
        demand((self.body is None or self.template is not None, "body: a template needs a name, too"))


class DeleteTemplate(Retried, frozen=True, kw_only=True):
    """Operations that delete templates, of the kind that their name names.

    Attributes:
        template: its name; None means all of this kind that the track declares.
        only_if_exists: a missing one is not a failure.
        delete_matching_indices: also the indices that they are for; None leaves it to the track.
        index_pattern: of these indices.
    """

    template: str | None = None
    only_if_exists: bool = True
    delete_matching_indices: bool | None = None
    index_pattern: str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        demand(
            (
                not self.delete_matching_indices or self.template is None or bool(self.index_pattern),
                "delete-matching-indices needs an index-pattern",
            ),
        )


class WaitForTransform(Retried, frozen=True, kw_only=True, tag="wait-for-transform"):
    """Stop a transform at its next checkpoint, and ask until it has stopped.

    Attributes:
        transform_id: its name.
        force: stop it even when it has failed.
        timeout: of the request that stops it.
        wait_for_completion: False does not wait.
        wait_for_checkpoint: False stops it at once.
        transform_timeout: seconds in all.
        poll_interval: seconds between questions.
    """

    transform_id: str
    force: bool = False
    timeout: str | None = None
    wait_for_completion: bool = True
    wait_for_checkpoint: bool = True
    transform_timeout: PositiveSeconds = 3600.0
    poll_interval: PositiveSeconds = 0.5


class Downsample(Operation, frozen=True, kw_only=True, tag="downsample"):
    """Make a coarser index of a time series.

    Attributes:
        source_index: from which; None means the track's own.
        target_index: to which; None means the source's name with the interval behind it.
        fixed_interval: of its points.
        sampling_method: how values become one.
    """

    source_index: str | None = None
    target_index: str | None = None
    fixed_interval: str = "1h"
    sampling_method: Literal["aggregate", "last_value"] | None = None


class ShrinkIndex(Retried, frozen=True, kw_only=True, tag="shrink-index"):
    """Make indices with fewer shards: all shards of a source move to one node, and become fewer there.

    Attributes:
        source_index: one, or a pattern.
        target_index: its name; with several sources, what they do not have in common goes behind it.
        target_body: settings of the target.
        shrink_node: that takes the shards; None means one that holds data, drawn by the run's seed.
    """

    source_index: str
    target_index: str
    target_body: dict[str, Any] = msgspec.field(default_factory=dict)
    shrink_node: str | None = None


class TrainKnnModel(Retried, frozen=True, kw_only=True, tag="train-knn-model"):
    """Train a model for the nearest vectors, and ask until it is there.

    Attributes:
        model_id: its name.
        body: what it learns from.
        retries: how often it is asked for.
        poll_period: seconds between questions.
    """

    model_id: str = msgspec.field(name="model_id")
    body: dict[str, Any]
    retries: int = 1000
    poll_period: PositiveSeconds = msgspec.field(default=0.5, name="poll_period")
