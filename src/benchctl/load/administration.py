"""Administrative operations of a single request, as a table of methods, paths, bodies and judges."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
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
)
from benchctl.load.workload import Repeated, WorkContext, Workload, WorkOrder
from benchctl.track import admin
from benchctl.track.condition import Condition
from benchctl.track.operation import Operation, url_param

_NOT_FOUND = 404
_FIELD = re.compile(r"\{(\w+)\}")


def _own_body(operation: Any, _context: WorkContext) -> object:  # noqa: ANN401 - the classes share no base
    return operation.body


def _no_params(_operation: Any) -> dict[str, str]:  # noqa: ANN401 - the classes share no base
    return {}


def _wait_param(operation: Any) -> dict[str, str]:  # noqa: ANN401 - the classes share no base
    return {"wait_for_completion": url_param(operation.wait_for_completion)}


def _timeouts(operation: admin.PutPipeline | admin.DeletePipeline) -> dict[str, str]:
    found = {"master_timeout": operation.master_timeout, "timeout": operation.timeout}
    return {name: value for name, value in found.items() if value is not None}


def _field_caps_body(operation: admin.FieldCaps, _context: WorkContext) -> object:
    chosen = {} if operation.index_filter is None else {"index_filter": operation.index_filter}
    return {**operation.body, **chosen}


def _field_caps_params(operation: admin.FieldCaps) -> dict[str, str]:
    return {"fields": url_param(operation.fields)}


def _concurrency(operation: admin.UpdateConcurrentSegmentSearchSettings, _context: WorkContext) -> object:
    settings: dict[str, Any] = {"search.concurrent_segment_search.enabled": url_param(operation.enable)}
    if operation.max_slice_count is not None:
        settings["search.concurrent.max_slice_count"] = operation.max_slice_count
    return {"persistent": settings}


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
    admin.UpdateConcurrentSegmentSearchSettings: _Form("PUT", "/_cluster/settings", _concurrency),
    admin.PutPipeline: _Form("PUT", "/_ingest/pipeline/{id}", _own_body, _timeouts),
    admin.DeletePipeline: _Form("DELETE", "/_ingest/pipeline/{id}", params=_timeouts, missing=True),
    admin.CreateSearchPipeline: _put("/_search/pipeline/{id}"),
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
    admin.FieldCaps: _Form("POST", "/{index}/_field_caps", _field_caps_body, _field_caps_params),
}  # fmt: skip

ADMINISTRATIVE = tuple(_FORMS)
"""The types that `open_administration` knows."""


def open_administration(operation: Operation, order: WorkOrder) -> Workload:
    """A request of the table, or a script where the operation wants to be asked again."""
    form = _FORMS[type(operation)]
    judge = form.judge
    match operation:
        case admin.ForceMerge(mode="polling"):
            return open_force_merge_polled(operation, order)
        case admin.IndexStats(condition=Condition() as condition):
            judge = judge_condition(condition)
        case admin.ClusterHealth() if operation.target is None:
            # As in Rally it is that of the cluster: the track's index need not be there yet.
            form = replace(form, path="/_cluster/health")
        case _:
            pass
    return _single(operation, form, judge, order)


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
        return order.index(getattr(operation, "target", None))
    return quote(getattr(operation, name), safe=",*")
