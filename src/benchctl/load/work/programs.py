"""Turns an operation into what its task's clients send."""

import re
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any
from urllib.parse import quote

import msgspec

from benchctl.load.plugin_work import as_processed, open_plugin
from benchctl.load.work.admin import (
    DECLARED,
    PROGRESS,
    asked_until,
    judge_condition,
    open_check,
    open_downsample,
    open_failover,
    open_polled_force_merge,
    open_run_until,
    open_shrink,
    open_sleep,
    open_train_model,
    open_wait_for_transform,
)
from benchctl.load.work.bulk import open_bulk
from benchctl.load.work.composite import open_composite, open_standalone
from benchctl.load.work.searches import (
    filled,
    open_composite_agg,
    open_multi_search,
    open_paginated_search,
    open_raw_request,
    open_scroll,
    open_search,
    open_sql,
    open_vector_search,
    searches_in,
)
from benchctl.load.workload import (
    DEFAULT_TIMEOUT_S,
    LONG_TIMEOUT_S,
    Envelope,
    WorkContext,
    Workload,
    WorkOrder,
    cannot,
    open_cannot,
    own_query,
    repeated,
    with_assertions,
    with_retries,
)
from benchctl.plugin.session import PluginNeedsError
from benchctl.track.operations import admin, composite, search
from benchctl.track.operations.catalogue import PluginOperation
from benchctl.track.operations.common import Cannot, Form, Operation, Retried, Varying

_KEY = re.compile(r"\{(/?)(\w+)\}")


def _open_form(operation: Operation, order: WorkOrder) -> Workload:
    """The request that an operation declares: the same every time unless it has values."""
    form = operation.wire
    if form is None:
        raise TypeError(f"{operation.type_name} declares no request, and nothing else opens it")
    # No body and an empty one are the same to both engines, and fewer bytes.
    body = msgspec.json.encode(operation.content) if operation.content else b""
    path = _path(operation, form, order)
    condition = getattr(operation, "condition", None)
    missing = getattr(operation, form.missing) if isinstance(form.missing, str) else form.missing
    request = Envelope(operation, timeout_s=LONG_TIMEOUT_S if form.slow else DEFAULT_TIMEOUT_S).request(
        form.method,
        path,
        body,
        params={**form.params, **own_query(operation, form), **operation.url_params},
        judge=None if condition is None else judge_condition(condition, form.condition_at),
        accepted={HTTPStatus.NOT_FOUND} if missing else (),
        searches=searches_in(form.method, path, body, order.context),
    )
    if isinstance(operation, Varying) and operation.content:
        return filled(request, order.bodies(operation, operation.content), operation, order)
    if form.until is not None:
        return asked_until(request, PROGRESS[form.until], getattr(operation, form.every))
    return repeated(request)


def _path(operation: Operation, form: Form, order: WorkOrder) -> str:
    own = form.opensearch if order.context.engine == "opensearch" else None

    def value(match: re.Match[str]) -> str:
        slash, key = match.groups()
        if key != "index":
            return slash + quote(getattr(operation, key), safe=",*")
        target = getattr(operation, "target", None)
        return "" if slash and target is None else slash + order.index(target)

    return _KEY.sub(value, own or form.path)


# Operations of several requests, and those that depend on more than they declare, have an opener each.


def _open_force_merge(operation: admin.ForceMerge, order: WorkOrder) -> Workload:
    return (open_polled_force_merge if operation.mode == "polling" else _open_form)(operation, order)


_OPENERS: Mapping[type[Operation], Callable[[Any, WorkOrder], Workload]] = {
    search.Search: open_search,
    search.PaginatedSearch: open_paginated_search,
    search.ScrollSearch: open_scroll,
    search.CompositeAgg: open_composite_agg,
    search.MultiSearch: open_multi_search,
    search.RawRequest: open_raw_request,
    search.Bulk: open_bulk,
    search.Sleep: open_sleep,
    search.VectorSearch: open_vector_search,
    search.Sql: open_sql,
    composite.Composite: open_composite,
    composite.DeletePointInTime: open_standalone,
    admin.RunUntil: open_run_until,
    admin.ForceMerge: _open_force_merge,
    admin.CheckIndex: open_check,
    admin.Failover: open_failover,
    **DECLARED,
    admin.WaitForTransform: open_wait_for_transform,
    admin.Downsample: open_downsample,
    admin.ShrinkIndex: open_shrink,
    admin.TrainKnnModel: open_train_model,
    PluginOperation: open_plugin,
    Cannot: open_cannot,
    Operation: _open_form,
}
"""The opener of a type and its subtypes."""


def open_workload(operation: Operation, context: WorkContext, *, clients: int, key: str) -> Workload:
    """Prepare an operation for its clients.

    `key` is what the requests' values depend on besides the seed, such as the task's name.

    Raises:
        BenchctlError: If something it needs is missing, such as a corpus.
    """
    order = WorkOrder(context, clients, key, _open)
    try:
        return _open(as_processed(operation, order), order)
    except PluginNeedsError as err:
        return cannot(err.message)


def _open(operation: Operation, order: WorkOrder) -> Workload:
    open_it = next(_OPENERS[kind] for kind in type(operation).__mro__ if kind in _OPENERS)
    workload = open_it(operation, order)
    if order.context.assertions:
        workload = with_assertions(operation, workload)
    return with_retries(operation, workload) if isinstance(operation, Retried) else workload
