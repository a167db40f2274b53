"""Administrative operations: classes of several requests, rows of one, names of what cannot be done."""

import re
from dataclasses import replace
from typing import Annotated, Any, ClassVar, Literal, cast

import msgspec

from benchctl.track.operations import (
    Cannot,
    Codes,
    Condition,
    Criterion,
    Form,
    OnIndex,
    Operation,
    PositiveSeconds,
    Retried,
    Rules,
    UrlPath,
    url_param,
)


class ForceMerge(OnIndex, frozen=True, kw_only=True, tag="force-merge"):
    """Merge segments."""

    wire: ClassVar[Form] = Form("POST", "/{index}/_forcemerge", query=("max_num_segments",), slow=True)

    max_num_segments: int | None = None  # down to how many; None leaves it to the node
    # Either is one request that the node answers when it is done: `polling` is Rally's way around deadlines.
    mode: Literal["blocking", "polling"] = "blocking"


class RunUntil(Retried, frozen=True, kw_only=True, tag="run-until"):
    """Send a request again and again until its answer is the wanted one."""

    path: UrlPath
    json_path: str  # keys into the answer with dots between them
    criterion: Criterion  # what the value there has to be like
    method: Literal["GET", "POST", "PUT", "DELETE", "HEAD", "PATCH"] = "GET"
    body: dict[str, Any] | list[Any] | str | None = None
    retry_wait_interval: Annotated[float, msgspec.Meta(ge=0)] = 60.0  # seconds between requests
    ignore: Codes = ()  # status codes that count as success beside the 2xx


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

    def _rules(self) -> Rules:
        yield self.body is None or self.template is not None, "body: a template needs a name, too"


class DeleteTemplate(Retried, frozen=True, kw_only=True):
    """Operations that delete templates, of the kind that their name names."""

    template: str | None = None  # its name; None means all of this kind that the track declares
    only_if_exists: bool = True  # a missing one is not a failure
    # Also the indices that they are for; None leaves it to the track.
    delete_matching_indices: bool | None = None
    index_pattern: str | None = None  # of these indices

    def _rules(self) -> Rules:
        lacks_pattern = self.delete_matching_indices and self.template is not None and not self.index_pattern
        yield not lacks_pattern, "delete-matching-indices needs an index-pattern"


class EnrichPolicy(Retried, frozen=True, kw_only=True, tag="enrich-policy"):
    """Create enrich policies and execute them."""

    policies: dict[str, dict[str, Any]]  # name -> definition
    delete: bool = True  # those of the same names before


class Downsample(Operation, frozen=True, kw_only=True, tag="downsample"):
    """Make a coarser index of a time series."""

    wire: ClassVar[Form] = Form(
        "POST",
        "/{index}/_downsample/{made_index}",
        body=lambda operation: {
            "fixed_interval": operation.fixed_interval,
            **_given(sampling_method=operation.sampling_method),
        },
        slow=True,
    )

    source_index: str | None = None  # from which; None means the track's own
    target_index: str | None = None  # to which; None means the source's name with the interval behind it
    fixed_interval: str = "1h"
    sampling_method: Literal["aggregate", "last_value"] | None = None  # how values become one

    @property
    def target(self) -> str | None:
        """The index to read; None means the track's own."""
        return self.source_index

    @property
    def made_index(self) -> str:
        """The index to make, where `{index}` is the track's own."""
        return self.target_index or f"{self.source_index or '{index}'}-{self.fixed_interval}"


# Operations of one request, and those that benchctl cannot do: a row each.


_Keys = dict[str, tuple[Any, Any]]
"""Key of an operation, as tracks spell it -> its type, and its default unless it is required."""

_FLAG = (bool, False)
_TIME = (str | None, None)
_QUERY: _Keys = {"defer_validation": _FLAG, "force": _FLAG, "master_timeout": _TIME, "timeout": _TIME}
_BODY: _Keys = {"body": (dict[str, Any], msgspec.NODEFAULT)}
_MORE: _Keys = {"body": (dict[str, Any], {})}  # further keys of the body
_ESQL: _Keys = {"query": (str, msgspec.NODEFAULT), "filter": (dict[str, Any] | None, None), **_MORE}
_CONDITION: _Keys = {"condition": (Condition | None, None)}  # what counts as success; None takes any answer
_WAIT = "completion_recheck_wait_period"
_PERIOD: _Keys = {"completion-recheck-wait-period": (PositiveSeconds, 1.0)}  # seconds between questions

TYPES: dict[str, type[Operation]] = {}
"""Rally's name of a type of one request, or of one that benchctl cannot do -> its class."""


def _row(
    type_name: str,
    form: Form | None = None,
    keys: _Keys | None = None,
    base: type[Operation] = Retried,
    *,
    shown: bool = False,
    reads: bool = False,
    cannot: str = "",
) -> None:
    """Declare an operation type.

    Its keys are those of `base`, a required text for each name in the path of `form`, one for each name in
    its query, and `keys`, which win.

    With `cannot`, the reason that tables show, benchctl sends at most the request of `form`: a node that
    refuses that one lacks the operation itself.
    """
    named = [*(keys or {}).items()]
    if form is not None:
        in_path = dict.fromkeys(re.findall(r"\{(\w+)\}", form.path), (str, msgspec.NODEFAULT))
        in_path.pop("index", None)
        in_query = {key: _QUERY.get(key, (str | None, None)) for key in form.query}
        parts = in_path | in_query | dict.fromkeys(form.flags, _FLAG)
        named = [(key.replace("_", "-"), kind) for key, kind in parts.items()] + named
    fields = {key.replace("-", "_"): (key, *kind) for key, kind in named}
    base = Cannot if cannot else base
    made = msgspec.defstruct(
        "".join(part.capitalize() for part in type_name.split("-")),
        [(key, kind, msgspec.field(default=usual, name=name)) for key, (name, kind, usual) in fields.items()],
        bases=(base,),
        module=__name__,
        namespace={
            "wire": form, "shown": shown or base.shown, "reads": reads or base.reads, "reason": cannot,
        },
        tag=type_name,
        frozen=True,
        kw_only=True,
    )  # fmt: skip
    TYPES[type_name] = cast("type[Operation]", made)
    # Where pickle looks for it, which hands operations to other processes and hosts.
    globals()[made.__name__] = made


def _given(**values: Any) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def _concurrency(operation: Any) -> dict[str, Any]:
    slices = _given(**{"search.concurrent.max_slice_count": operation.max_slice_count})
    return {"persistent": {"search.concurrent_segment_search.enabled": url_param(operation.enable), **slices}}


def _capabilities(operation: Any) -> dict[str, Any]:
    return {**operation.body, **_given(index_filter=operation.index_filter)}


def _esql(operation: Any) -> dict[str, Any]:
    return {**operation.body, "query": operation.query, **_given(filter=operation.filter)}


def _esql_profile(operation: Any) -> dict[str, Any]:
    return {**_esql(operation), "profile": True}


# Indices and nodes. As in Rally, the health is that of the cluster: the track's index need not exist yet.
_row("refresh", Form("POST", "/{index}/_refresh", slow=True), base=OnIndex)
_row("flush", Form("POST", "/{index}/_flush", slow=True), base=OnIndex)
_row("cluster-health", Form("GET", "/_cluster/health{/index}"), base=OnIndex, reads=True)
_row("index-stats", Form("GET", "/{index}/_stats"), _CONDITION, OnIndex, reads=True)
_row("node-stats", Form("GET", "/_nodes/stats"), base=Operation, reads=True)
_row("wait-for-recovery", Form("GET", "/{index}/_recovery", until="recovered", every=_WAIT), _PERIOD, OnIndex)
_row(
    "field-caps",
    Form("POST", "/{index}/_field_caps", query=("fields",), body=_capabilities),
    {"fields": (str | tuple[str, ...], "*"), "index-filter": (dict[str, Any] | None, None), **_MORE},
    OnIndex,
    shown=True,
    reads=True,
)
_points = Form("GET", "/_search/point_in_time/_all")
_row("list-all-point-in-time", _points, base=Operation, shown=True, reads=True)

# Settings, pipelines and templates. A missing thing to delete is not a failure.
_row("put-settings", Form("PUT", "/_cluster/settings"), _BODY)
_row(
    "update-concurrent-segment-search-settings",
    Form("PUT", "/_cluster/settings", body=_concurrency),
    # Whether OpenSearch searches several segments at the same time, and in how many parts at most.
    {"enable": (bool | Literal["true", "false"], False), "max_slice_count": (int | None, None)},
)
_TIMES = ("master_timeout", "timeout")
_row("put-pipeline", Form("PUT", "/_ingest/pipeline/{id}", query=_TIMES), _BODY)
_row("delete-pipeline", Form("DELETE", "/_ingest/pipeline/{id}", query=_TIMES, missing=True))
_row("create-search-pipeline", Form("PUT", "/_search/pipeline/{id}"), _BODY)
for _kind in ("index", "composable", "component"):
    _row(f"create-{_kind}-template", base=CreateTemplate)
    _row(f"delete-{_kind}-template", base=DeleteTemplate)

# Snapshots.
_REPOSITORY = "/_snapshot/{repository}"
_SNAPSHOT = f"{_REPOSITORY}/{{snapshot}}"
_COMPLETE = ("wait_for_completion",)
_row("create-snapshot-repository", Form("PUT", _REPOSITORY), _BODY)
_row("delete-snapshot-repository", Form("DELETE", _REPOSITORY, missing=True))
_row("create-snapshot", Form("PUT", _SNAPSHOT, flags=_COMPLETE, slow=True), _MORE, Operation)
_row("restore-snapshot", Form("POST", f"{_SNAPSHOT}/_restore", flags=_COMPLETE, slow=True), _MORE, Operation)
_status = Form("GET", f"{_SNAPSHOT}/_status", params={"ignore_unavailable": "true"}, every=_WAIT)
_row("wait-for-snapshot-create", replace(_status, until="snapshot complete"), _PERIOD)
_current = Form("GET", f"{_REPOSITORY}/_current", params={"verbose": "false"}, every=_WAIT)
_row("wait-for-current-snapshots-create", replace(_current, until="no snapshot running"), _PERIOD)

# Transforms, whose statistics are the first of the answer, and lifecycles.
_TRANSFORM, _PLUGIN = "/_transform/{transform_id}", "/_plugins/_transform/{transform_id}"
_POLICY = ("/_ilm/policy/{policy_name}", "/_plugins/_ism/policies/{policy_name}")
_row("create-transform", Form("PUT", _TRANSFORM, _PLUGIN, query=("defer_validation",)), _BODY)
_row("start-transform", Form("POST", f"{_TRANSFORM}/_start", f"{_PLUGIN}/_start", query=("timeout",)))
_stop = Form(
    "POST",
    f"{_TRANSFORM}/_stop",
    query=("timeout",),
    flags=("force", "wait_for_completion", "wait_for_checkpoint"),
    slow=True,
)
_row(
    "wait-for-transform",
    _stop,
    {"timeout": (str, "4h"), "wait-for-completion": (bool, True), "wait-for-checkpoint": (bool, True)},
)
_row("delete-transform", Form("DELETE", _TRANSFORM, _PLUGIN, query=("force",), missing=True))
_stats = Form("GET", f"{_TRANSFORM}/_stats", f"{_PLUGIN}/_explain", condition_at="transforms.0.")
_row("transform-stats", _stats, _CONDITION, reads=True)
_row("create-ilm-policy", Form("PUT", *_POLICY), _BODY)
_row("delete-ilm-policy", Form("DELETE", *_POLICY))

# Queries in ES|QL, which the engine does not count among its searches; profiles are not read.
_row("esql", Form("POST", "/_query", body=_esql), _ESQL, Operation, shown=True, reads=True)
_row("esql-profile", Form("POST", "/_query", body=_esql_profile), _ESQL, Operation, shown=True, reads=True)

# Models.
_row(
    "delete-knn-model",
    Form("DELETE", "/_plugins/_knn/models/{model_id}", missing="ignore_if_model_does_not_exist"),
    {"model_id": (str, msgspec.NODEFAULT), "ignore-if-model-does-not-exist": _FLAG},
)
_knn = Form("GET", "/_plugins/_knn/stats")
_row("train-knn-model", _knn, cannot="train-knn-model: benchctl trains no models")
for _name in (
    "register-ml-model", "deploy-ml-model", "delete-ml-model", "create-ml-connector", "delete-ml-connector",
    "register-remote-ml-model",
):  # fmt: skip
    _row(_name, Form("GET", "/_plugins/_ml/stats"), cannot=f"{_name}: benchctl cannot do this to models yet")
for _name in (
    "create-ml-datafeed", "delete-ml-datafeed", "start-ml-datafeed", "stop-ml-datafeed", "create-ml-job",
    "delete-ml-job", "open-ml-job", "close-ml-job",
):  # fmt: skip
    _row(_name, cannot=f"{_name}: benchctl does no machine learning")

# What goes neither over HTTP nor out of a file of documents.
_row("shrink-index", cannot="shrink-index: benchctl does not move shards between nodes")
for _name in ("proto-bulk", "proto-search", "proto-vector-search", "proto-bulk-vector-data-set"):
    _row(_name, shown=True, cannot=f"{_name} speaks gRPC: benchctl speaks HTTP")
_row("otlp-ingest", shown=True, cannot="otlp-ingest sends protocol buffers of metrics: benchctl sends JSON")
_row(
    "produce-stream-message",
    shown=True,
    cannot="produce-stream-message speaks the protocol of a message broker: benchctl speaks HTTP",
)
