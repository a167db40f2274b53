"""Administrative operations of a single request: what each of them sends."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from benchctl.load.judge import judge_health, judge_shards, judge_snapshot
from benchctl.load.work.envelope import LONG_TIMEOUT_S
from benchctl.load.work.forms import Form, own_body, said
from benchctl.load.work.waiting import force_merge_params, judge_condition, open_force_merge_polled
from benchctl.load.workload import Workload, WorkOrder
from benchctl.track.operations import admin
from benchctl.track.operations.common import Condition, Operation, url_param


def _wait_param(operation: admin.CreateSnapshot | admin.RestoreSnapshot) -> dict[str, str]:
    return {"wait_for_completion": url_param(operation.wait_for_completion)}


def _field_caps_body(operation: admin.FieldCaps) -> object:
    chosen = {} if operation.index_filter is None else {"index_filter": operation.index_filter}
    return {**operation.body, **chosen}


def _concurrency(operation: admin.UpdateConcurrentSegmentSearchSettings) -> object:
    settings: dict[str, Any] = {"search.concurrent_segment_search.enabled": url_param(operation.enable)}
    if operation.max_slice_count is not None:
        settings["search.concurrent.max_slice_count"] = operation.max_slice_count
    return {"persistent": settings}


def _put(path: str) -> Form:
    return Form("PUT", path, own_body)


def _delete(path: str) -> Form:
    return Form("DELETE", path, missing=True)


_timeouts = said("master_timeout", "timeout")

_FORMS: Mapping[type[Operation], Form] = {
    admin.ForceMerge: Form(
        "POST",
        "/{index}/_forcemerge",
        params=force_merge_params,
        judge=judge_shards,
        timeout_s=LONG_TIMEOUT_S,
    ),
    admin.Refresh: Form("POST", "/{index}/_refresh", judge=judge_shards, timeout_s=LONG_TIMEOUT_S),
    admin.Flush: Form("POST", "/{index}/_flush", judge=judge_shards, timeout_s=LONG_TIMEOUT_S),
    admin.ClusterHealth: Form("GET", "/_cluster/health/{index}", judge=judge_health),
    admin.IndexStats: Form("GET", "/{index}/_stats"),
    admin.NodeStats: Form("GET", "/_nodes/stats"),
    admin.PutSettings: _put("/_cluster/settings"),
    admin.UpdateConcurrentSegmentSearchSettings: Form("PUT", "/_cluster/settings", _concurrency),
    admin.PutPipeline: Form("PUT", "/_ingest/pipeline/{id}", own_body, _timeouts),
    admin.DeletePipeline: Form("DELETE", "/_ingest/pipeline/{id}", params=_timeouts, missing=True),
    admin.CreateSearchPipeline: _put("/_search/pipeline/{id}"),
    admin.CreateSnapshotRepository: _put("/_snapshot/{repository}"),
    admin.DeleteSnapshotRepository: _delete("/_snapshot/{repository}"),
    admin.CreateSnapshot: Form(
        "PUT", "/_snapshot/{repository}/{snapshot}", own_body, _wait_param, judge_snapshot,
        timeout_s=LONG_TIMEOUT_S,
    ),
    admin.RestoreSnapshot: Form(
        "POST", "/_snapshot/{repository}/{snapshot}/_restore", own_body, _wait_param, judge_snapshot,
        timeout_s=LONG_TIMEOUT_S,
    ),
    admin.FieldCaps: Form("POST", "/{index}/_field_caps", _field_caps_body, said("fields")),
}  # fmt: skip

ADMINISTRATIVE = tuple(_FORMS)
"""The types that `open_administration` knows."""


def open_administration(operation: Operation, order: WorkOrder) -> Workload:
    """A request of the table, or a script where the operation wants to be asked again."""
    form = _FORMS[type(operation)]
    match operation:
        case admin.ForceMerge(mode="polling"):
            return open_force_merge_polled(operation, order)
        case admin.IndexStats(condition=Condition() as condition):
            form = replace(form, judge=judge_condition(condition))
        case admin.ClusterHealth() if operation.target is None:
            # As in Rally it is that of the cluster: the track's index need not be there yet.
            form = replace(form, path="/_cluster/health")
        case _:
            pass
    return form.open(operation, order)
