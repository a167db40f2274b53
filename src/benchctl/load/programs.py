"""An operation becomes what the clients of its task ask."""

from collections.abc import Callable, Mapping
from typing import Any

from benchctl.load.administration import ADMINISTRATIVE, open_administration
from benchctl.load.bulk_work import open_bulk
from benchctl.load.languages import open_esql, open_sql
from benchctl.load.paging import open_composite_agg, open_paginated_search, open_scroll
from benchctl.load.searches import open_multi_search, open_raw_request, open_search
from benchctl.load.waiting import open_sleep, open_wait_for_recovery, open_wait_for_snapshot
from benchctl.load.workload import Pause, Program, Reply, Script, WorkContext, Workload, WorkOrder
from benchctl.track import operation as asked
from benchctl.track.admin import Esql, Sql, WaitForRecovery, WaitForSnapshotCreate
from benchctl.track.operation import Operation

__all__ = ["Pause", "Program", "Reply", "Script", "WorkContext", "WorkOrder", "Workload", "open_workload"]

# Each opener takes its own class of operations, which is the key it stands under.
_Open = Callable[[Any, WorkOrder], Workload]


def _open_search(operation: asked.Search, order: WorkOrder) -> Workload:
    """As in Rally, `pages` makes a search a scroll."""
    return (open_search if operation.pages is None else open_scroll)(operation, order)


_OPENERS: Mapping[type[Operation], _Open] = {
    asked.Search: _open_search,
    asked.PaginatedSearch: open_paginated_search,
    asked.ScrollSearch: open_scroll,
    asked.CompositeAgg: open_composite_agg,
    asked.MultiSearch: open_multi_search,
    asked.RawRequest: open_raw_request,
    asked.Bulk: open_bulk,
    asked.Sleep: open_sleep,
    WaitForSnapshotCreate: open_wait_for_snapshot,
    WaitForRecovery: open_wait_for_recovery,
    Sql: open_sql,
    Esql: open_esql,
    **dict.fromkeys(ADMINISTRATIVE, open_administration),
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
    return _OPENERS[type(operation)](operation, WorkOrder(context, clients, key))
