"""An operation becomes what the clients of its task ask."""

from collections.abc import Mapping

from benchctl.load.plugin.work import as_processed, open_plugin
from benchctl.load.work.administration import ADMINISTRATIVE, open_administration
from benchctl.load.work.asserting import with_assertions
from benchctl.load.work.bulk import open_bulk
from benchctl.load.work.declared import DECLARED
from benchctl.load.work.elsewhere import cannot, open_data_set, open_elsewhere
from benchctl.load.work.languages import open_esql, open_sql
from benchctl.load.work.machine_learning import MACHINE_LEARNING
from benchctl.load.work.paging import open_composite_agg, open_paginated_search, open_scroll
from benchctl.load.work.retrying import with_retries
from benchctl.load.work.searches import open_multi_search, open_raw_request, open_search, open_vector_search
from benchctl.load.work.streams import POINTS, open_alone, open_composite
from benchctl.load.work.transforms import (
    TRANSFORMS,
    open_downsample,
    open_policy,
    open_shrink,
    open_transform,
)
from benchctl.load.work.waiting import (
    open_run_until,
    open_sleep,
    open_wait_for_current_snapshots,
    open_wait_for_recovery,
    open_wait_for_snapshot,
)
from benchctl.load.workload import Opener, WorkContext, Workload, WorkOrder
from benchctl.plugin.session import PluginNeedsError
from benchctl.track.operations import admin, composite, search
from benchctl.track.operations import search as asked
from benchctl.track.operations.catalogue import PluginOperation
from benchctl.track.operations.common import Operation, Retried


def _open_search(operation: asked.Search, order: WorkOrder) -> Workload:
    """As in Rally, `pages` makes a search a scroll."""
    return (open_search if operation.pages is None else open_scroll)(operation, order)


def _open_vector_search(operation: search.VectorSearch, order: WorkOrder) -> Workload:
    return (open_data_set if operation.reads_data_set else open_vector_search)(operation, order)


def _open_composite(operation: composite.Composite, order: WorkOrder) -> Workload:
    return open_composite(operation, order, _opened)


def _open_plugin(operation: PluginOperation, order: WorkOrder) -> Workload:
    return open_plugin(operation, order, _opened)


_OPENERS: Mapping[type[Operation], Opener] = {
    asked.Search: _open_search,
    asked.PaginatedSearch: open_paginated_search,
    asked.ScrollSearch: open_scroll,
    asked.CompositeAgg: open_composite_agg,
    asked.MultiSearch: open_multi_search,
    asked.RawRequest: open_raw_request,
    asked.Bulk: open_bulk,
    asked.Sleep: open_sleep,
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
