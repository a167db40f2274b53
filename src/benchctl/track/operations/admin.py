"""Administrative operations: classes of several requests, rows of one, names of what cannot be done."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, cast

import msgspec

from benchctl.track.operations import (
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
    """Merge segments."""

    wire: ClassVar[Form] = Form("POST", "/{index}/_forcemerge", query=("max_num_segments",), slow=True)

    max_num_segments: int | None = None  # down to how many; None leaves it to the node
    # Wait in one request, or start the merge and ask until it is done. The node keeps the outcome of a
    # merge that was started so in an index of its own, `.tasks`.
    mode: Literal["blocking", "polling"] = "blocking"
    poll_period: PositiveSeconds = 10.0  # seconds between questions


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


# Operations of one request, and those that benchctl cannot do: a row each.


class Key(NamedTuple):
    """A key of an operation: its type, its default unless it is required, and what the schema says of it."""

    type: Any
    default: Any = msgspec.NODEFAULT
    about: str = ""


@dataclass(frozen=True)
class Row:
    """An operation type.

    Its keys are those of `base`, a required text for each name in the path of `form`, one for each name in
    its query, and `keys`, which win and are spelled as tracks spell them.

    With `cannot`, the reason that tables show, benchctl sends at most the request of `form`: a node that
    refuses that one lacks the operation itself.
    """

    name: str
    about: str
    form: Form | None = None
    keys: Mapping[str, Key] = field(default_factory=dict)
    base: type[Operation] = Retried
    shown: bool = False
    reads: bool = False
    cannot: str = ""

    def operation_type(self) -> type[Operation]:
        """Make the class of the operations."""
        base = Cannot if self.cannot else self.base
        namespace: dict[str, Any] = {
            "__doc__": self.about,
            "wire": self.form,
            "shown": self.shown or base.shown,
            "reads": self.reads or base.reads,
            "reason": self.cannot,
        }
        keys = {**_keys_of(self.form), **{_attribute(name): (name, key) for name, key in self.keys.items()}}
        made = msgspec.defstruct(
            "".join(part.capitalize() for part in self.name.split("-")),
            [(attribute, *_field(*named)) for attribute, named in keys.items()],
            bases=(base,),
            module=__name__,
            namespace=namespace,
            tag=self.name,
            frozen=True,
            kw_only=True,
        )
        return cast("type[Operation]", made)


def _keys_of(form: Form | None) -> dict[str, tuple[str, Key]]:
    """Attribute -> name and key of each that a request needs."""
    if form is None:
        return {}
    in_path = dict.fromkeys(re.findall(r"\{(\w+)\}", form.path), Key(str))
    in_path.pop("index", None)
    in_query = {name: _QUERY.get(name, Key(str | None, None)) for name in form.query}
    in_query |= dict.fromkeys(form.flags, _FLAG)
    return {name: (name.replace("_", "-"), key) for name, key in {**in_path, **in_query}.items()}


def _attribute(name: str) -> str:
    return name.replace("-", "_")


def _field(name: str, key: Key) -> tuple[Any, Any]:
    described = Annotated[key.type, msgspec.Meta(description=key.about)] if key.about else key.type
    return described, msgspec.field(default=key.default, name=name)


def _given(**values: Any) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


_FLAG = Key(bool, False)  # noqa: FBT003 - a default
_TIME = Key(str | None, None)
_QUERY = {
    "defer_validation": _FLAG._replace(about="check it only when it starts."),
    "force": _FLAG._replace(about="even while it runs."),
    "master_timeout": _TIME._replace(about="how long the node waits for the cluster's manager."),
    "timeout": _TIME._replace(about="how long the node waits until it is done."),
}
_BODY = {"body": Key(dict[str, Any])}
_MORE = {"body": Key(dict[str, Any], {}, "further keys of the body.")}
_ESQL = {
    "query": Key(str, about="its text."),
    "filter": Key(dict[str, Any] | None, None, "a query that documents must match first."),
    **_MORE,
}
_CONDITION = {"condition": Key(Condition | None, None, "what counts as success; None takes any answer.")}
_PERIOD = {"completion-recheck-wait-period": Key(PositiveSeconds, 1.0, "seconds between questions.")}
_WAIT = "completion_recheck_wait_period"

_REPOSITORY = "/_snapshot/{repository}"
_SNAPSHOT = f"{_REPOSITORY}/{{snapshot}}"
_TRANSFORM, _PLUGIN = "/_transform/{transform_id}", "/_plugins/_transform/{transform_id}"
_POLICY = ("/_ilm/policy/{policy_name}", "/_plugins/_ism/policies/{policy_name}")


def _elsewhere(name: str, about: str, protocol: str = "gRPC") -> Row:
    return Row(name, about, shown=True, cannot=f"{name} speaks {protocol}: benchctl speaks HTTP")


def _on_models(name: str, about: str) -> Row:
    reason = f"{name}: benchctl cannot do this to models yet"
    return Row(name, about, Form("GET", "/_plugins/_ml/stats"), cannot=reason)


def _concurrency(operation: Any) -> dict[str, Any]:
    slices = _given(**{"search.concurrent.max_slice_count": operation.max_slice_count})
    return {"persistent": {"search.concurrent_segment_search.enabled": url_param(operation.enable), **slices}}


def _capabilities(operation: Any) -> dict[str, Any]:
    return {**operation.body, **_given(index_filter=operation.index_filter)}


def _esql(operation: Any) -> dict[str, Any]:
    return {**operation.body, "query": operation.query, **_given(filter=operation.filter)}


def _esql_profile(operation: Any) -> dict[str, Any]:
    return {**_esql(operation), "profile": True}


ROWS = (
    # Indices and nodes.
    Row(
        "refresh",
        "Make everything indexed visible.",
        Form("POST", "/{index}/_refresh", slow=True),
        base=OnIndex,
    ),
    Row("flush", "Commit.", Form("POST", "/{index}/_flush", slow=True), base=OnIndex),
    Row(
        "cluster-health",
        "Wait for the health in the request parameters; with `retry-until-success`, until it is reached.",
        # As in Rally it is that of the cluster: the track's index need not exist yet.
        Form("GET", "/_cluster/health{/index}"),
        base=OnIndex,
        reads=True,
    ),
    Row(
        "index-stats",
        "Statistics of an index; with `retry-until-success`, until the condition holds.",
        Form("GET", "/{index}/_stats"),
        _CONDITION,
        base=OnIndex,
        reads=True,
    ),
    Row("node-stats", "Statistics of the nodes.", Form("GET", "/_nodes/stats"), base=Operation, reads=True),
    Row(
        "wait-for-recovery",
        "Ask until all shards of an index are recovered.",
        Form("GET", "/{index}/_recovery", until="recovered", every=_WAIT),
        _PERIOD,
        base=OnIndex,
    ),
    Row(
        "field-caps",
        "Ask what fields can do.",
        Form("POST", "/{index}/_field_caps", query=("fields",), body=_capabilities),
        {
            "fields": Key(str | tuple[str, ...], "*", "patterns."),
            "index-filter": Key(dict[str, Any] | None, None, "only of indices that may hold such documents."),
            **_MORE,
        },
        base=OnIndex,
        shown=True,
        reads=True,
    ),
    Row(
        "list-all-point-in-time",
        "Ask OpenSearch for all points in time that are open.",
        Form("GET", "/_search/point_in_time/_all"),
        base=Operation,
        shown=True,
    ),
    # Settings, pipelines and templates.
    Row("put-settings", "Change cluster settings.", Form("PUT", "/_cluster/settings"), _BODY),
    Row(
        "update-concurrent-segment-search-settings",
        "Set whether searches work on several segments at the same time: OpenSearch's cluster settings.",
        Form("PUT", "/_cluster/settings", body=_concurrency),
        {
            "enable": Key(bool | Literal["true", "false"], False, "whether they do."),  # noqa: FBT003 - a default
            "max_slice_count": Key(int | None, None, "most parts; None leaves it to the node."),
        },
    ),
    Row(
        "put-pipeline",
        "Create an ingest pipeline.",
        Form("PUT", "/_ingest/pipeline/{id}", query=("master_timeout", "timeout")),
        _BODY,
    ),
    Row(
        "delete-pipeline",
        "Delete an ingest pipeline; a missing one is not a failure.",
        Form("DELETE", "/_ingest/pipeline/{id}", query=("master_timeout", "timeout"), missing=True),
    ),
    Row(
        "create-search-pipeline",
        "Create a search pipeline, which OpenSearch has.",
        Form("PUT", "/_search/pipeline/{id}"),
        _BODY,
    ),
    Row("create-index-template", "Create a template of the old kind.", base=CreateTemplate),
    Row("delete-index-template", "Delete a template of the old kind.", base=DeleteTemplate),
    Row("create-composable-template", "Create an index template.", base=CreateTemplate),
    Row("delete-composable-template", "Delete an index template.", base=DeleteTemplate),
    Row("create-component-template", "Create a component template.", base=CreateTemplate),
    Row("delete-component-template", "Delete a component template.", base=DeleteTemplate),
    # Snapshots.
    Row("create-snapshot-repository", "Register a snapshot repository.", Form("PUT", _REPOSITORY), _BODY),
    Row(
        "delete-snapshot-repository",
        "Forget a snapshot repository; a missing one is not a failure.",
        Form("DELETE", _REPOSITORY, missing=True),
    ),
    Row(
        "create-snapshot",
        "Take a snapshot.",
        Form("PUT", _SNAPSHOT, flags=("wait_for_completion",), slow=True),
        _MORE,
        base=Operation,
    ),
    Row(
        "restore-snapshot",
        "Restore a snapshot.",
        Form("POST", f"{_SNAPSHOT}/_restore", flags=("wait_for_completion",), slow=True),
        _MORE,
        base=Operation,
    ),
    Row(
        "wait-for-snapshot-create",
        "Ask until a snapshot is complete.",
        Form(
            "GET",
            f"{_SNAPSHOT}/_status",
            params={"ignore_unavailable": "true"},
            until="snapshot complete",
            every=_WAIT,
        ),
        _PERIOD,
    ),
    Row(
        "wait-for-current-snapshots-create",
        "Ask until no snapshot of a repository is being taken any more.",
        Form(
            "GET",
            f"{_REPOSITORY}/_current",
            params={"verbose": "false"},
            until="no snapshot running",
            every=_WAIT,
        ),
        _PERIOD,
    ),
    # Transforms and lifecycles.
    Row(
        "create-transform",
        "Create a transform.",
        Form("PUT", _TRANSFORM, _PLUGIN, query=("defer_validation",)),
        _BODY,
    ),
    Row(
        "start-transform",
        "Start a transform.",
        Form("POST", f"{_TRANSFORM}/_start", f"{_PLUGIN}/_start", query=("timeout",)),
    ),
    Row(
        "delete-transform",
        "Delete a transform; a missing one is not a failure.",
        Form("DELETE", _TRANSFORM, _PLUGIN, query=("force",), missing=True),
    ),
    Row(
        "transform-stats",
        "Statistics of a transform; the condition is on the first one of the answer.",
        Form("GET", f"{_TRANSFORM}/_stats", f"{_PLUGIN}/_explain", condition_at="transforms.0."),
        _CONDITION,
        reads=True,
    ),
    Row("create-ilm-policy", "Create a lifecycle policy.", Form("PUT", *_POLICY), _BODY),
    Row("delete-ilm-policy", "Delete a lifecycle policy.", Form("DELETE", *_POLICY)),
    # Machine learning, which needs a licence.
    *(
        Row(f"{verb}-ml-{thing}", about, cannot=f"{verb}-ml-{thing}: benchctl does no machine learning")
        for verb, thing, about in (
            ("create", "datafeed", "Create a datafeed."),
            ("delete", "datafeed", "Delete a datafeed."),
            ("start", "datafeed", "Start a datafeed."),
            ("stop", "datafeed", "Stop a datafeed."),
            ("create", "job", "Create a job."),
            ("delete", "job", "Delete a job."),
            ("open", "job", "Open a job."),
            ("close", "job", "Close a job."),
        )
    ),
    Row(
        "delete-knn-model",
        "Delete a model for the nearest vectors.",
        Form("DELETE", "/_plugins/_knn/models/{model_id}", missing="ignore_if_model_does_not_exist"),
        {
            "model_id": Key(str),
            "ignore-if-model-does-not-exist": _FLAG._replace(about="a missing one is not a failure."),
        },
    ),
    _on_models("register-ml-model", "Make OpenSearch know a model."),
    _on_models("deploy-ml-model", "Load the model that was registered last into memory."),
    _on_models("delete-ml-model", "Unload and forget all models of a name."),
    _on_models("create-ml-connector", "Make OpenSearch know a service with models."),
    _on_models("delete-ml-connector", "Forget the connector of a name."),
    _on_models("register-remote-ml-model", "Make OpenSearch know a model of a service."),
    # Queries in ES|QL, which the engine does not count among its searches.
    Row(
        "esql",
        "A query in ES|QL.",
        Form("POST", "/_query", body=_esql),
        _ESQL,
        base=Operation,
        shown=True,
        reads=True,
    ),
    Row(
        "esql-profile",
        "A query in ES|QL that the node also profiles; benchctl draws no figures from the profile.",
        Form("POST", "/_query", body=_esql_profile),
        _ESQL,
        base=Operation,
        shown=True,
        reads=True,
    ),
    Row(
        "shrink-index",
        "Indices with fewer shards, each made of one whose shards move to one node.",
        cannot="shrink-index: benchctl does not move shards between nodes",
    ),
    Row(
        "train-knn-model",
        "A model for the nearest vectors, of OpenSearch's native libraries.",
        Form("GET", "/_plugins/_knn/stats"),
        cannot="train-knn-model: benchctl trains no models",
    ),
    # What goes neither over HTTP nor out of a file of documents.
    _elsewhere("proto-bulk", "A bulk request over gRPC."),
    _elsewhere("proto-search", "A search over gRPC."),
    _elsewhere("proto-vector-search", "A search for vectors over gRPC."),
    _elsewhere("proto-bulk-vector-data-set", "Vectors of a data set over gRPC."),
    _elsewhere(
        "produce-stream-message",
        "Documents of the corpus into a stream that the node reads.",
        "the protocol of a message broker",
    ),
)

TYPES: Mapping[str, type[Operation]] = {row.name: row.operation_type() for row in ROWS}
"""Rally's name of a type -> its class."""

# Where pickle looks for them, which hands operations to other processes and hosts.
globals().update({kind.__name__: kind for kind in TYPES.values()})
