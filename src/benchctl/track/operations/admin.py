"""The typed form of administrative operations: requests that prepare, change or inspect a node."""

from typing import Annotated, Any, ClassVar, Literal

import msgspec

from benchctl.track.operations.common import OnIndex, Operation, PositiveSeconds, Retried, demand
from benchctl.track.operations.condition import Condition, Criterion


class ForceMerge(OnIndex, frozen=True, kw_only=True, tag="force-merge"):
    """Merge segments.

    Attributes:
        max_num_segments: down to how many; None leaves it to the node.
        mode: wait in one request, or start the merge and ask until it is done. The node keeps the outcome of
            a merge that was started so in an index of its own, `.tasks`.
        poll_period: seconds between questions.
    """

    max_num_segments: int | None = None
    mode: Literal["blocking", "polling"] = "blocking"
    poll_period: PositiveSeconds = 10.0


class Refresh(OnIndex, frozen=True, kw_only=True, tag="refresh"):
    """Make everything indexed visible."""


class Flush(OnIndex, frozen=True, kw_only=True, tag="flush"):
    """Commit."""


class ClusterHealth(OnIndex, frozen=True, kw_only=True, tag="cluster-health"):
    """Wait for a state of health; the wanted one stands in the request parameters.

    With `retry-until-success` it is asked again until the state is reached, up to the request's timeout each
    time.
    """


class IndexStats(OnIndex, frozen=True, kw_only=True, tag="index-stats"):
    """Statistics of an index.

    Attributes:
        condition: what counts as success; None takes any answer. With `retry-until-success` it is asked again
            until the condition holds.
    """

    condition: Condition | None = None


class NodeStats(Operation, frozen=True, kw_only=True, tag="node-stats"):
    """Statistics of the nodes."""


class PutSettings(Retried, frozen=True, kw_only=True, tag="put-settings"):
    """Change cluster settings."""

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


class PutPipeline(Retried, frozen=True, kw_only=True, tag="put-pipeline"):
    """Create an ingest pipeline.

    Attributes:
        id: its name.
        body: what it does.
        master_timeout: how long the node waits for the cluster's manager.
        timeout: how long it waits for the cluster.
    """

    id: str
    body: dict[str, Any]
    master_timeout: str | None = None
    timeout: str | None = None


class DeletePipeline(Retried, frozen=True, kw_only=True, tag="delete-pipeline"):
    """Delete an ingest pipeline; a missing one is no failure.

    Attributes:
        id: its name.
        master_timeout: how long the node waits for the cluster's manager.
        timeout: how long it waits for the cluster.
    """

    id: str
    master_timeout: str | None = None
    timeout: str | None = None


class CreateSearchPipeline(Retried, frozen=True, kw_only=True, tag="create-search-pipeline"):
    """Create a search pipeline, which OpenSearch has.

    Attributes:
        id: its name.
        body: what it does.
    """

    id: str
    body: dict[str, Any]


class CreateSnapshotRepository(Retried, frozen=True, kw_only=True, tag="create-snapshot-repository"):
    """Register a snapshot repository."""

    repository: str
    body: dict[str, Any]


class DeleteSnapshotRepository(Retried, frozen=True, kw_only=True, tag="delete-snapshot-repository"):
    """Forget a snapshot repository; a missing one is no failure."""

    repository: str


class _OnSnapshot(Operation, frozen=True, kw_only=True):
    repository: str
    snapshot: str
    body: dict[str, Any] = msgspec.field(default_factory=dict)
    wait_for_completion: bool = False


class CreateSnapshot(_OnSnapshot, frozen=True, kw_only=True, tag="create-snapshot"):
    """Take a snapshot."""


class RestoreSnapshot(_OnSnapshot, frozen=True, kw_only=True, tag="restore-snapshot"):
    """Restore a snapshot."""


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

    fields: str | tuple[str, ...] = "*"
    body: dict[str, Any] = msgspec.field(default_factory=dict)
    index_filter: dict[str, Any] | None = None


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
