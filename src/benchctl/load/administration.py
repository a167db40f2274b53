"""Administrative operations of a single request, as a table of methods, paths, bodies and judges."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import msgspec

from benchctl.load.envelope import DEFAULT_TIMEOUT_S, LONG_TIMEOUT_S, Envelope
from benchctl.load.judge import accepting, judge_health, judge_plain, judge_shards, judge_snapshot
from benchctl.load.request import Judge
from benchctl.load.waiting import (
    force_merge_params,
    judge_condition,
    open_force_merge_polled,
    open_health_retried,
    open_index_stats_retried,
)
from benchctl.load.workload import Repeated, WorkContext, Workload, WorkOrder
from benchctl.track import admin
from benchctl.track.operation import Operation, url_param

_NOT_FOUND = 404
_FIELD = re.compile(r"\{(\w+)\}")


def _own_body(operation: Any, _context: WorkContext) -> object:  # noqa: ANN401 - the classes share no base
    return operation.body


def _no_params(_operation: Any) -> dict[str, str]:  # noqa: ANN401 - the classes share no base
    return {}


def _wait_param(operation: Any) -> dict[str, str]:  # noqa: ANN401 - the classes share no base
    return {"wait_for_completion": url_param(operation.wait_for_completion)}


def _field_caps_body(operation: admin.FieldCaps, _context: WorkContext) -> object:
    return {} if operation.index_filter is None else {"index_filter": operation.index_filter}


def _index_body(operation: admin.CreateIndex, context: WorkContext) -> object:
    body = context.index_body if operation.body is None else operation.body
    if not operation.settings:
        return body
    return {**body, "settings": _flat(body.get("settings") or {}) | _flat(operation.settings)}


def _flat(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings of an index by their whole names, however they are nested: one can be laid over another."""
    return {
        name if name.startswith("index.") else f"index.{name}": value for name, value in _dotted(settings, "")
    }


def _dotted(settings: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, Any]]:
    for name, value in settings.items():
        if isinstance(value, Mapping):
            yield from _dotted(value, f"{prefix}{name}.")
        else:
            yield prefix + name, value


@dataclass(frozen=True)
class _Form:
    """What the requests of one type look like.

    Attributes:
        method: of HTTP.
        path: `{field}` stands for a field of the operation, `{index}` for its index or the track's.
        body: what is sent; None for nothing.
        params: of the query; the operation's own request parameters come before them.
        judge: reads the answer.
        missing: whether a missing thing is no failure; the type's `only_if_exists` has the last word.
        timeout_s: when the operation does not say.
    """

    method: str
    path: str
    body: Callable[[Any, WorkContext], object] | None = None
    params: Callable[[Any], dict[str, str]] = _no_params
    judge: Judge = judge_plain
    missing: bool = False
    timeout_s: float = DEFAULT_TIMEOUT_S


def _put(path: str) -> _Form:
    return _Form("PUT", path, _own_body)


def _delete(path: str) -> _Form:
    return _Form("DELETE", path, missing=True)


_FORMS: Mapping[type[Operation], _Form] = {
    admin.ForceMerge: _Form(
        "POST",
        "/{index}/_forcemerge",
        params=force_merge_params,
        judge=judge_shards,
        timeout_s=LONG_TIMEOUT_S,
    ),
    admin.Refresh: _Form("POST", "/{index}/_refresh", judge=judge_shards, timeout_s=LONG_TIMEOUT_S),
    admin.Flush: _Form("POST", "/{index}/_flush", judge=judge_shards, timeout_s=LONG_TIMEOUT_S),
    admin.ClusterHealth: _Form("GET", "/_cluster/health/{index}", judge=judge_health),
    admin.IndexStats: _Form("GET", "/{index}/_stats"),
    admin.NodeStats: _Form("GET", "/_nodes/stats"),
    admin.PutSettings: _put("/_cluster/settings"),
    admin.CreateIndex: _Form("PUT", "/{index}", _index_body),
    admin.DeleteIndex: _delete("/{index}"),
    admin.CreateDataStream: _Form("PUT", "/_data_stream/{data_stream}"),
    admin.DeleteDataStream: _delete("/_data_stream/{data_stream}"),
    admin.CreateIndexTemplate: _put("/_template/{template}"),
    admin.DeleteIndexTemplate: _delete("/_template/{template}"),
    admin.CreateComposableTemplate: _put("/_index_template/{template}"),
    admin.DeleteComposableTemplate: _delete("/_index_template/{template}"),
    admin.CreateComponentTemplate: _put("/_component_template/{template}"),
    admin.DeleteComponentTemplate: _delete("/_component_template/{template}"),
    admin.PutPipeline: _put("/_ingest/pipeline/{id}"),
    admin.CreateSnapshotRepository: _put("/_snapshot/{repository}"),
    admin.DeleteSnapshotRepository: _delete("/_snapshot/{repository}"),
    admin.CreateSnapshot: _Form(
        "PUT", "/_snapshot/{repository}/{snapshot}", _own_body, _wait_param, judge_snapshot,
        timeout_s=LONG_TIMEOUT_S,
    ),
    admin.RestoreSnapshot: _Form(
        "POST", "/_snapshot/{repository}/{snapshot}/_restore", _own_body, _wait_param, judge_snapshot,
        timeout_s=LONG_TIMEOUT_S,
    ),
    admin.FieldCaps: _Form(
        "POST", "/{index}/_field_caps", _field_caps_body, lambda operation: {"fields": operation.fields}
    ),
}  # fmt: skip

ADMINISTRATIVE = tuple(_FORMS)
"""The types that `open_administration` knows."""


def open_administration(operation: Operation, order: WorkOrder) -> Workload:
    """A request of the table, or a script where the operation wants to be asked again."""
    judge = _FORMS[type(operation)].judge
    match operation:
        case admin.ForceMerge(mode="polling"):
            return open_force_merge_polled(operation, order)
        case admin.ClusterHealth(retry_until_success=True):
            return open_health_retried(operation, order)
        case admin.IndexStats(condition=admin.Condition() as condition):
            if operation.retry_until_success:
                return open_index_stats_retried(operation, condition, order)
            judge = judge_condition(condition)
        case _:
            pass
    return _single(operation, _FORMS[type(operation)], judge, order)


def _single(operation: Operation, form: _Form, judge: Judge, order: WorkOrder) -> Workload:
    missing = getattr(operation, "only_if_exists", form.missing)
    body = form.body(operation, order.context) if form.body is not None else {}
    return Repeated(
        Envelope(operation, timeout_s=form.timeout_s).request(
            form.method,
            _FIELD.sub(lambda match: _field(operation, match[1], order), form.path),
            # No body and an empty one are the same to both engines, and fewer bytes.
            msgspec.json.encode(body) if body else b"",
            params={**form.params(operation), **operation.url_params},
            judge=accepting(judge, {_NOT_FOUND} if missing else ()),
        )
    )


def _field(operation: Operation, name: str, order: WorkOrder) -> str:
    if name == "index":
        return order.index(getattr(operation, "index", None))
    return quote(getattr(operation, name), safe=",*")
