"""Administrative operations: what prepares, changes or inspects a node and what the track declares on it."""

from typing import Annotated, Any, ClassVar, Literal

import msgspec

from benchctl.track.operations.common import (
    MOST_WAIT_S,
    Cannot,
    Condition,
    Criterion,
    Form,
    OnIndex,
    Operation,
    PositiveSeconds,
    Retried,
    demand,
    url_param,
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


class Refresh(OnIndex, frozen=True, kw_only=True, tag="refresh"):
    """Make everything indexed visible."""

    wire: ClassVar[Form] = Form("POST", "/{index}/_refresh", answer="shards", slow=True)


class Flush(OnIndex, frozen=True, kw_only=True, tag="flush"):
    """Commit."""

    wire: ClassVar[Form] = Form("POST", "/{index}/_flush", answer="shards", slow=True)


class ClusterHealth(OnIndex, frozen=True, kw_only=True, tag="cluster-health"):
    """Wait for a state of health; the wanted one stands in the request parameters.

    With `retry-until-success` it is asked again until the state is reached, up to the request's timeout each
    time.
    """

    reads: ClassVar[bool] = True

    @property
    def form(self) -> Form:
        """Its request."""
        # As in Rally it is that of the cluster: the track's index need not be there yet.
        return Form("GET", f"/_cluster/health{'' if self.target is None else '/{index}'}", answer="health")


class IndexStats(OnIndex, frozen=True, kw_only=True, tag="index-stats"):
    """Statistics of an index.

    Attributes:
        condition: what counts as success; None takes any answer. With `retry-until-success` it is asked again
            until the condition holds.
    """

    reads: ClassVar[bool] = True
    wire: ClassVar[Form] = Form("GET", "/{index}/_stats")

    condition: Condition | None = None


class NodeStats(Operation, frozen=True, kw_only=True, tag="node-stats"):
    """Statistics of the nodes."""

    reads: ClassVar[bool] = True
    wire: ClassVar[Form] = Form("GET", "/_nodes/stats")


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


class PutSettings(Retried, frozen=True, kw_only=True, tag="put-settings"):
    """Change cluster settings."""

    wire: ClassVar[Form] = Form("PUT", "/_cluster/settings")

    body: dict[str, Any]


class UpdateConcurrentSegmentSearchSettings(
    Retried, frozen=True, kw_only=True, tag="update-concurrent-segment-search-settings"
):
    """Say whether searches work on several segments at the same time: OpenSearch's cluster settings.

    Attributes:
        enable: whether they do.
        max_slice_count: on how many parts at most; None leaves it to the node.
    """

    enable: bool | Literal["true", "false"] = False
    max_slice_count: int | None = msgspec.field(default=None, name="max_slice_count")

    @property
    def form(self) -> Form:
        """Its request."""
        settings: dict[str, Any] = {"search.concurrent_segment_search.enabled": url_param(self.enable)}
        if self.max_slice_count is not None:
            settings["search.concurrent.max_slice_count"] = self.max_slice_count
        return Form("PUT", "/_cluster/settings", body={"persistent": settings})


class PutPipeline(Retried, frozen=True, kw_only=True, tag="put-pipeline"):
    """Create an ingest pipeline.

    Attributes:
        id: its name.
        body: what it does.
        master_timeout: how long the node waits for the cluster's manager.
        timeout: how long it waits for the cluster.
    """

    wire: ClassVar[Form] = Form("PUT", "/_ingest/pipeline/{id}", query=("master_timeout", "timeout"))

    id: str
    body: dict[str, Any]
    master_timeout: str | None = None
    timeout: str | None = None


class DeletePipeline(Retried, frozen=True, kw_only=True, tag="delete-pipeline"):
    """Delete an ingest pipeline; a missing one is not a failure.

    Attributes:
        id: its name.
        master_timeout: how long the node waits for the cluster's manager.
        timeout: how long it waits for the cluster.
    """

    wire: ClassVar[Form] = Form(
        "DELETE", "/_ingest/pipeline/{id}", query=("master_timeout", "timeout"), missing=True
    )

    id: str
    master_timeout: str | None = None
    timeout: str | None = None


class CreateSearchPipeline(Retried, frozen=True, kw_only=True, tag="create-search-pipeline"):
    """Create a search pipeline, which OpenSearch has.

    Attributes:
        id: its name.
        body: what it does.
    """

    wire: ClassVar[Form] = Form("PUT", "/_search/pipeline/{id}")

    id: str
    body: dict[str, Any]


class CreateSnapshotRepository(Retried, frozen=True, kw_only=True, tag="create-snapshot-repository"):
    """Register a snapshot repository."""

    wire: ClassVar[Form] = Form("PUT", "/_snapshot/{repository}")

    repository: str
    body: dict[str, Any]


class DeleteSnapshotRepository(Retried, frozen=True, kw_only=True, tag="delete-snapshot-repository"):
    """Forget a snapshot repository; a missing one is not a failure."""

    wire: ClassVar[Form] = Form("DELETE", "/_snapshot/{repository}", missing=True)

    repository: str


class _OnSnapshot(Operation, frozen=True, kw_only=True):
    repository: str
    snapshot: str
    body: dict[str, Any] = msgspec.field(default_factory=dict)
    wait_for_completion: bool = False


class CreateSnapshot(_OnSnapshot, frozen=True, kw_only=True, tag="create-snapshot"):
    """Take a snapshot."""

    wire: ClassVar[Form] = Form(
        "PUT",
        "/_snapshot/{repository}/{snapshot}",
        flags=("wait_for_completion",),
        answer="snapshot",
        slow=True,
    )


class RestoreSnapshot(_OnSnapshot, frozen=True, kw_only=True, tag="restore-snapshot"):
    """Restore a snapshot."""

    wire: ClassVar[Form] = Form(
        "POST",
        "/_snapshot/{repository}/{snapshot}/_restore",
        flags=("wait_for_completion",),
        answer="snapshot",
        slow=True,
    )


class WaitForSnapshotCreate(Retried, frozen=True, kw_only=True, tag="wait-for-snapshot-create"):
    """Ask until a snapshot is complete.

    Attributes:
        completion_recheck_wait_period: seconds between questions.
    """

    repository: str
    snapshot: str
    completion_recheck_wait_period: PositiveSeconds = 1.0


class WaitForCurrentSnapshotsCreate(
    Retried, frozen=True, kw_only=True, tag="wait-for-current-snapshots-create"
):
    """Ask until no snapshot of a repository is being taken any more.

    Attributes:
        repository: its name.
        completion_recheck_wait_period: seconds between questions.
    """

    repository: str
    completion_recheck_wait_period: PositiveSeconds = 1.0


class WaitForRecovery(OnIndex, frozen=True, kw_only=True, tag="wait-for-recovery"):
    """Ask until all shards of an index are recovered.

    Attributes:
        completion_recheck_wait_period: seconds between questions.
    """

    completion_recheck_wait_period: PositiveSeconds = 1.0


class FieldCaps(OnIndex, frozen=True, kw_only=True, tag="field-caps"):
    """Ask what fields can do.

    Attributes:
        fields: patterns.
        body: further keys of the body.
        index_filter: only indices that may hold documents like these.
    """

    shown: ClassVar[bool] = True
    reads: ClassVar[bool] = True

    fields: str | tuple[str, ...] = "*"
    body: dict[str, Any] = msgspec.field(default_factory=dict)
    index_filter: dict[str, Any] | None = None

    @property
    def form(self) -> Form:
        """Its request."""
        chosen = {} if self.index_filter is None else {"index_filter": self.index_filter}
        return Form("POST", "/{index}/_field_caps", query=("fields",), body={**self.body, **chosen})


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


# Operations that make or remove what a track declares: indices, data streams and templates of all kinds.

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
    """Operations that create templates.

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
    """Operations that delete templates.

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


class CreateIndexTemplate(CreateTemplate, frozen=True, kw_only=True, tag="create-index-template"):
    """Create a template of the old kind."""


class DeleteIndexTemplate(DeleteTemplate, frozen=True, kw_only=True, tag="delete-index-template"):
    """Delete a template of the old kind."""


class CreateComposableTemplate(CreateTemplate, frozen=True, kw_only=True, tag="create-composable-template"):
    """Create an index template."""


class DeleteComposableTemplate(DeleteTemplate, frozen=True, kw_only=True, tag="delete-composable-template"):
    """Delete an index template."""


class CreateComponentTemplate(CreateTemplate, frozen=True, kw_only=True, tag="create-component-template"):
    """Create a component template."""


class DeleteComponentTemplate(DeleteTemplate, frozen=True, kw_only=True, tag="delete-component-template"):
    """Delete a component template."""


# Operations that make other indices out of indices: transforms, lifecycles, downsampling, shrinking.


_TRANSFORM, _PLUGIN = "/_transform/{transform_id}", "/_plugins/_transform/{transform_id}"


class _OnTransform(Retried, frozen=True, kw_only=True):
    """Operations on a transform.

    Attributes:
        transform_id: its name.
    """

    transform_id: str


class CreateTransform(_OnTransform, frozen=True, kw_only=True, tag="create-transform"):
    """Create a transform.

    Attributes:
        body: what it does.
        defer_validation: check it only when it starts.
    """

    wire: ClassVar[Form] = Form("PUT", _TRANSFORM, _PLUGIN, query=("defer_validation",))

    body: dict[str, Any]
    defer_validation: bool = False


class StartTransform(_OnTransform, frozen=True, kw_only=True, tag="start-transform"):
    """Start a transform.

    Attributes:
        timeout: how long the node waits for it to start.
    """

    wire: ClassVar[Form] = Form("POST", f"{_TRANSFORM}/_start", f"{_PLUGIN}/_start", query=("timeout",))

    timeout: str | None = None


class WaitForTransform(_OnTransform, frozen=True, kw_only=True, tag="wait-for-transform"):
    """Stop a transform at its next checkpoint, and ask until it has stopped.

    Attributes:
        force: stop it even when it has failed.
        timeout: of the request that stops it.
        wait_for_completion: False does not wait.
        wait_for_checkpoint: False stops it at once.
        transform_timeout: seconds in all.
        poll_interval: seconds between questions.
    """

    force: bool = False
    timeout: str | None = None
    wait_for_completion: bool = True
    wait_for_checkpoint: bool = True
    transform_timeout: PositiveSeconds = 3600.0
    poll_interval: PositiveSeconds = 0.5


class DeleteTransform(_OnTransform, frozen=True, kw_only=True, tag="delete-transform"):
    """Delete a transform; a missing one is not a failure.

    Attributes:
        force: even while it runs.
    """

    wire: ClassVar[Form] = Form("DELETE", _TRANSFORM, _PLUGIN, query=("force",), missing=True)

    force: bool = False


class TransformStats(_OnTransform, frozen=True, kw_only=True, tag="transform-stats"):
    """Statistics of a transform.

    Attributes:
        condition: on the statistics of the first transform of the answer; None takes any answer.
    """

    reads: ClassVar[bool] = True
    wire: ClassVar[Form] = Form(
        "GET", f"{_TRANSFORM}/_stats", f"{_PLUGIN}/_explain", condition_at="transforms.0."
    )

    condition: Condition | None = None


_POLICY = ("/_ilm/policy/{policy_name}", "/_plugins/_ism/policies/{policy_name}")


class _OnPolicy(Retried, frozen=True, kw_only=True):
    """Operations on a lifecycle policy.

    Attributes:
        policy_name: its name.
    """

    policy_name: str


class CreateIlmPolicy(_OnPolicy, frozen=True, kw_only=True, tag="create-ilm-policy"):
    """Create a lifecycle policy.

    Attributes:
        body: with the `policy`.
    """

    wire: ClassVar[Form] = Form("PUT", *_POLICY)

    body: dict[str, Any]

    def __post_init__(self) -> None:
        super().__post_init__()
        demand(("policy" in self.body, "body: 'policy' is missing"))


class DeleteIlmPolicy(_OnPolicy, frozen=True, kw_only=True, tag="delete-ilm-policy"):
    """Delete a lifecycle policy."""

    wire: ClassVar[Form] = Form("DELETE", *_POLICY)


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


# Operations of the machine-learning modules, which none of the core nodes has: one request each, or few.

_DATAFEED, _JOB = "/_ml/datafeeds/{datafeed_id}", "/_ml/anomaly_detectors/{job_id}"


class _OnDatafeed(Retried, frozen=True, kw_only=True):
    """Operations on a datafeed of Elasticsearch.

    Attributes:
        datafeed_id: its name.
    """

    datafeed_id: str


class CreateMlDatafeed(_OnDatafeed, frozen=True, kw_only=True, tag="create-ml-datafeed"):
    """Create a datafeed."""

    wire: ClassVar[Form] = Form("PUT", _DATAFEED)

    body: dict[str, Any]


class DeleteMlDatafeed(_OnDatafeed, frozen=True, kw_only=True, tag="delete-ml-datafeed"):
    """Delete a datafeed; a missing one is not a failure."""

    wire: ClassVar[Form] = Form("DELETE", _DATAFEED, query=("force",), missing=True)

    force: bool = False


class StartMlDatafeed(_OnDatafeed, frozen=True, kw_only=True, tag="start-ml-datafeed"):
    """Start a datafeed."""

    body: dict[str, Any] | None = None
    start: str | int | None = None
    end: str | int | None = None
    timeout: str | None = None

    @property
    def form(self) -> Form:
        """Its request."""
        said = {"start": self.start, "end": self.end, "timeout": self.timeout}
        own = {key: value for key, value in said.items() if value is not None}
        return Form("POST", f"{_DATAFEED}/_start", body={**own, **(self.body or {})})


class StopMlDatafeed(_OnDatafeed, frozen=True, kw_only=True, tag="stop-ml-datafeed"):
    """Stop a datafeed."""

    wire: ClassVar[Form] = Form("POST", f"{_DATAFEED}/_stop", query=("force", "timeout"))

    force: bool = False
    timeout: str | None = None


class _OnJob(Retried, frozen=True, kw_only=True):
    """Operations on an anomaly detection job of Elasticsearch.

    Attributes:
        job_id: its name.
    """

    job_id: str


class CreateMlJob(_OnJob, frozen=True, kw_only=True, tag="create-ml-job"):
    """Create a job."""

    wire: ClassVar[Form] = Form("PUT", _JOB)

    body: dict[str, Any]


class DeleteMlJob(_OnJob, frozen=True, kw_only=True, tag="delete-ml-job"):
    """Delete a job; a missing one is not a failure."""

    wire: ClassVar[Form] = Form("DELETE", _JOB, query=("force",), missing=True)

    force: bool = False


class OpenMlJob(_OnJob, frozen=True, kw_only=True, tag="open-ml-job"):
    """Open a job."""

    wire: ClassVar[Form] = Form("POST", f"{_JOB}/_open")


class CloseMlJob(_OnJob, frozen=True, kw_only=True, tag="close-ml-job"):
    """Close a job."""

    wire: ClassVar[Form] = Form("POST", f"{_JOB}/_close", query=("force", "timeout"))

    force: bool = False
    timeout: str | None = None


class OnModels(Cannot, frozen=True, kw_only=True):
    """Operations on OpenSearch's models of languages: uploads of models, tasks that load them.

    A node that lacks them says so itself.
    """

    shown: ClassVar[bool] = False

    @property
    def reason(self) -> str:
        """Why not, as tables show it."""
        return f"{self.type_name}: benchctl cannot do this to models yet"


class RegisterMlModel(OnModels, frozen=True, kw_only=True, tag="register-ml-model"):
    """Make OpenSearch know a model."""


class DeployMlModel(OnModels, frozen=True, kw_only=True, tag="deploy-ml-model"):
    """Load the model that was registered last into memory."""


class DeleteMlModel(OnModels, frozen=True, kw_only=True, tag="delete-ml-model"):
    """Unload and forget all models of a name."""


class CreateMlConnector(OnModels, frozen=True, kw_only=True, tag="create-ml-connector"):
    """Make OpenSearch know a service with models."""


class DeleteMlConnector(OnModels, frozen=True, kw_only=True, tag="delete-ml-connector"):
    """Forget the connector of a name."""


class RegisterRemoteMlModel(OnModels, frozen=True, kw_only=True, tag="register-remote-ml-model"):
    """Make OpenSearch know a model of a service."""


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


class DeleteKnnModel(Retried, frozen=True, kw_only=True, tag="delete-knn-model"):
    """Delete a model for the nearest vectors.

    Attributes:
        model_id: its name.
        ignore_if_model_does_not_exist: a missing one is not a failure.
    """

    model_id: str = msgspec.field(name="model_id")
    ignore_if_model_does_not_exist: bool = False

    @property
    def form(self) -> Form:
        """Its request."""
        missing = self.ignore_if_model_does_not_exist
        return Form("DELETE", "/_plugins/_knn/models/{model_id}", missing=missing)
