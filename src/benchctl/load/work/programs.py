"""An operation becomes what the clients of its task ask."""

from collections.abc import Mapping

from benchctl.load.plugin_work import as_processed, open_plugin
from benchctl.load.work.admin import (
    ADMINISTRATIVE,
    DECLARED,
    open_administration,
    open_run_until,
    open_sleep,
    open_wait_for_current_snapshots,
    open_wait_for_recovery,
    open_wait_for_snapshot,
)
from benchctl.load.work.bulk import open_bulk
from benchctl.load.work.common import cannot, open_data_set, open_elsewhere, with_assertions, with_retries
from benchctl.load.work.composite import POINTS, open_alone, open_composite
from benchctl.load.work.jobs import (
    MACHINE_LEARNING,
    TRANSFORMS,
    open_downsample,
    open_policy,
    open_shrink,
    open_transform,
)
from benchctl.load.work.searches import (
    open_composite_agg,
    open_esql,
    open_multi_search,
    open_paginated_search,
    open_raw_request,
    open_scroll,
    open_search,
    open_sql,
    open_vector_search,
)
from benchctl.load.workload import Opener, WorkContext, Workload, WorkOrder
from benchctl.plugin.session import PluginNeedsError
from benchctl.track.operations import admin, composite, search
from benchctl.track.operations.catalogue import PluginOperation
from benchctl.track.operations.common import Operation, Retried


def _open_search(operation: search.Search, order: WorkOrder) -> Workload:
    """As in Rally, `pages` makes a search a scroll."""
    return (open_search if operation.pages is None else open_scroll)(operation, order)


def _open_vector_search(operation: search.VectorSearch, order: WorkOrder) -> Workload:
    return (open_data_set if operation.reads_data_set else open_vector_search)(operation, order)


def _open_composite(operation: composite.Composite, order: WorkOrder) -> Workload:
    return open_composite(operation, order, _opened)


def _open_plugin(operation: PluginOperation, order: WorkOrder) -> Workload:
    return open_plugin(operation, order, _opened)


_OPENERS: Mapping[type[Operation], Opener] = {
    search.Search: _open_search,
    search.PaginatedSearch: open_paginated_search,
    search.ScrollSearch: open_scroll,
    search.CompositeAgg: open_composite_agg,
    search.MultiSearch: open_multi_search,
    search.RawRequest: open_raw_request,
    search.Bulk: open_bulk,
    search.Sleep: open_sleep,
    search.VectorSearch: _open_vector_search,
    search.BulkVectorDataSet: open_data_set,
    search.Sql: open_sql,
    search.Esql: open_esql,
    search.EsqlProfile: open_esql,
    composite.Composite: _open_composite,
    **dict.fromkeys(POINTS, open_alone),
    admin.WaitForSnapshotCreate: open_wait_for_snapshot,
    admin.WaitForCurrentSnapshotsCreate: open_wait_for_current_snapshots,
    admin.WaitForRecovery: open_wait_for_recovery,
    admin.RunUntil: open_run_until,
    **dict.fromkeys(ADMINISTRATIVE, open_administration),
    **DECLARED,
    **dict.fromkeys(TRANSFORMS, open_transform),
    admin.CreateIlmPolicy: open_policy,
    admin.DeleteIlmPolicy: open_policy,
    admin.Downsample: open_downsample,
    admin.ShrinkIndex: open_shrink,
    **MACHINE_LEARNING,
    search.ProtoBulk: open_elsewhere,
    search.ProtoSearch: open_elsewhere,
    search.ProtoVectorSearch: open_elsewhere,
    search.ProtoBulkVectorDataSet: open_elsewhere,
    search.ProduceStreamMessage: open_elsewhere,
    PluginOperation: _open_plugin,
}


def open_workload(operation: Operation, context: WorkContext, *, clients: int, key: str) -> Workload:
    """Make an operation ready to be asked.

    Args:
        operation: what a task repeats.
        context: where it runs.
        clients: of the task.
        key: what the values of requests depend on beside the seed, such as the task's name.

    Raises:
        BenchctlError: it needs something that is not there, such as a corpus.
    """
    order = WorkOrder(context, clients, key)
    try:
        return _opened(as_processed(operation, order), order)
    except PluginNeedsError as err:
        return cannot(err.message, order)


def _opened(operation: Operation, order: WorkOrder) -> Workload:
    made = _OPENERS[type(operation)](operation, order)
    if order.context.assertions:
        made = with_assertions(operation, made)
    return with_retries(operation, made) if isinstance(operation, Retried) else made
