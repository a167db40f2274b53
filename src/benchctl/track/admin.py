"""The typed form of administrative operations: single requests that prepare, change or inspect a node."""

from typing import Annotated, Any, Literal

import msgspec

from benchctl.track.operation import MOST_WAIT_S, Operation

PositiveSeconds = Annotated[float, msgspec.Meta(gt=0, le=MOST_WAIT_S)]


class _OnIndex(Operation, frozen=True, kw_only=True):
    """Operations on an index; None means the track's own."""

    index: str | None = None


class ForceMerge(_OnIndex, frozen=True, kw_only=True, tag="force-merge"):
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


class Refresh(_OnIndex, frozen=True, kw_only=True, tag="refresh"):
    """Make everything indexed visible."""


class Flush(_OnIndex, frozen=True, kw_only=True, tag="flush"):
    """Commit."""


class ClusterHealth(_OnIndex, frozen=True, kw_only=True, tag="cluster-health"):
    """Wait for a state of health; the wanted one stands in the request parameters.

    Attributes:
        retry_until_success: ask again until the state is reached, up to the request's timeout each time.
    """

    retry_until_success: bool = False


class Condition(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """What an answer has to say.

    Attributes:
        path: keys into the answer with dots between them, such as `_all.total.merges.current`.
        expected_value: what has to stand there.
    """

    path: str
    expected_value: Any


class IndexStats(_OnIndex, frozen=True, kw_only=True, tag="index-stats"):
    """Statistics of an index.

    Attributes:
        condition: what counts as success; None takes any answer.
        retry_until_success: ask again until the condition holds.
    """

    condition: Condition | None = None
    retry_until_success: bool = False


class NodeStats(Operation, frozen=True, kw_only=True, tag="node-stats"):
    """Statistics of the nodes."""


class PutSettings(Operation, frozen=True, kw_only=True, tag="put-settings"):
    """Change cluster settings."""

    body: dict[str, Any]


class CreateIndex(_OnIndex, frozen=True, kw_only=True, tag="create-index"):
    """Create an index.

    Attributes:
        body: settings and mappings; None means the track's.
        settings: laid over the body's settings, with or without the `index.` before their names.
    """

    body: dict[str, Any] | None = None
    settings: dict[str, Any] = msgspec.field(default_factory=dict)


class DeleteIndex(_OnIndex, frozen=True, kw_only=True, tag="delete-index"):
    """Delete an index.

    Attributes:
        only_if_exists: a missing one is no failure.
    """

    only_if_exists: bool = True


class _OnDataStream(Operation, frozen=True, kw_only=True):
    """Operations on a data stream."""

    data_stream: str


class CreateDataStream(_OnDataStream, frozen=True, kw_only=True, tag="create-data-stream"):
    """Create a data stream."""


class DeleteDataStream(_OnDataStream, frozen=True, kw_only=True, tag="delete-data-stream"):
    """Delete a data stream; a missing one is no failure unless told so."""

    only_if_exists: bool = True


class _OnTemplate(Operation, frozen=True, kw_only=True):
    """Operations on a template."""

    template: str


class _CreateTemplate(_OnTemplate, frozen=True, kw_only=True):
    body: dict[str, Any]


class _DeleteTemplate(_OnTemplate, frozen=True, kw_only=True):
    only_if_exists: bool = True


class CreateIndexTemplate(_CreateTemplate, frozen=True, kw_only=True, tag="create-index-template"):
    """Create a template of the old kind."""


class DeleteIndexTemplate(_DeleteTemplate, frozen=True, kw_only=True, tag="delete-index-template"):
    """Delete a template of the old kind."""


class CreateComposableTemplate(_CreateTemplate, frozen=True, kw_only=True, tag="create-composable-template"):
    """Create an index template."""


class DeleteComposableTemplate(_DeleteTemplate, frozen=True, kw_only=True, tag="delete-composable-template"):
    """Delete an index template."""


class CreateComponentTemplate(_CreateTemplate, frozen=True, kw_only=True, tag="create-component-template"):
    """Create a component template."""


class DeleteComponentTemplate(_DeleteTemplate, frozen=True, kw_only=True, tag="delete-component-template"):
    """Delete a component template."""


class PutPipeline(Operation, frozen=True, kw_only=True, tag="put-pipeline"):
    """Create an ingest pipeline."""

    id: str
    body: dict[str, Any]


class CreateSnapshotRepository(Operation, frozen=True, kw_only=True, tag="create-snapshot-repository"):
    """Register a snapshot repository."""

    repository: str
    body: dict[str, Any]


class DeleteSnapshotRepository(Operation, frozen=True, kw_only=True, tag="delete-snapshot-repository"):
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


class WaitForSnapshotCreate(Operation, frozen=True, kw_only=True, tag="wait-for-snapshot-create"):
    """Ask until a snapshot is complete.

    Attributes:
        completion_recheck_wait_period: seconds between questions.
    """

    repository: str
    snapshot: str
    completion_recheck_wait_period: PositiveSeconds = 1.0


class WaitForRecovery(_OnIndex, frozen=True, kw_only=True, tag="wait-for-recovery"):
    """Ask until all shards of an index are recovered.

    Attributes:
        completion_recheck_wait_period: seconds between questions.
    """

    completion_recheck_wait_period: PositiveSeconds = 1.0


class FieldCaps(_OnIndex, frozen=True, kw_only=True, tag="field-caps"):
    """Ask what fields can do."""

    fields: str = "*"
    index_filter: dict[str, Any] | None = None


class Sql(Operation, frozen=True, kw_only=True, tag="sql"):
    """A query in SQL; further pages come by its cursor.

    Attributes:
        body: with the `query`.
        pages: how many pages at most.
    """

    body: dict[str, Any]
    pages: Annotated[int, msgspec.Meta(ge=1)] = 1


class Esql(Operation, frozen=True, kw_only=True, tag="esql"):
    """A query in ES|QL.

    Attributes:
        query: its text.
        filter: a query that documents must match first.
        body: further keys of the body.
    """

    query: str
    filter: dict[str, Any] | None = None
    body: dict[str, Any] = msgspec.field(default_factory=dict)
