"""The opener of every operation type, which makes a workload of it: what its task's clients send."""

import operator
import re
import sys
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import replace
from http import HTTPStatus
from typing import Any
from urllib.parse import quote

import msgspec

from benchctl.errors import BenchctlError
from benchctl.load.plugin_work import as_processed, open_plugin
from benchctl.load.transport import Answer, Request
from benchctl.load.work import (
    DEFAULT_TIMEOUT_S,
    LONG_TIMEOUT_S,
    Envelope,
    Item,
    Program,
    Reply,
    Script,
    WorkContext,
    Workload,
    WorkOrder,
    ask,
    cannot,
    follow,
    lacking,
    own_query,
    repeated,
    scripted,
)
from benchctl.load.work.admin import (
    DECLARED,
    PROGRESS,
    asked_until,
    judge_condition,
    open_run_until,
    open_sleep,
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
from benchctl.load.work.vectors import open_bulk_vectors
from benchctl.plugin.session import PluginNeedsError
from benchctl.results.samples import Outcome
from benchctl.track.operations import (
    Assertion,
    Cannot,
    Form,
    Operation,
    Retried,
    Varying,
    admin,
    catalogue,
    search,
)
from benchctl.track.operations.catalogue import PluginOperation

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
            name = getattr(operation, key).replace("{index}", order.context.index_name)
            return slash + quote(name, safe=",*")
        target = getattr(operation, "target", None)
        return "" if slash and target is None else slash + order.index(target)

    return _KEY.sub(value, own or form.path)


# These outcomes may change on a retry; what a node refuses, it refuses again.
_WRONG = frozenset({Outcome.BAD_BODY, Outcome.PARTIAL})


def with_retries(operation: Retried, workload: Workload) -> Workload:
    """Return the workload, retried as the operation says; unchanged when it says nothing.

    Every answered request is recorded as a success: only the operation's own sample tells how it ended.
    """
    if not operation.retry_until_success and not operation.retries:
        return workload

    def program(client: int) -> Program:
        inner = workload.program(client)
        return lambda: _tries(operation, inner)

    return replace(workload, program=program)


def _tries(operation: Retried, inner: Program) -> Script:
    left = sys.maxsize if operation.retry_until_success else operation.retries
    answer: Answer | None = None
    while (work := inner()) is not None:
        last: Reply | None = None

        def send(request: Request) -> Generator[Item, Reply | None, Reply]:
            nonlocal last
            last = yield from _send(request)
            return last

        answer = (yield from follow(work, send)) or (Answer(Outcome.OK) if last is None else last.answer)
        status = 0 if last is None else last.exchange.status
        if answer.outcome is Outcome.OK or not left or not _is_worth_it(operation, status, answer):
            break
        left -= 1
        yield operation.retry_wait_period
    return answer


def _is_worth_it(operation: Retried, status: int, answer: Answer) -> bool:
    if answer.outcome is Outcome.TIMEOUT or status == HTTPStatus.REQUEST_TIMEOUT:
        return operation.retry_on_timeout or operation.retry_until_success
    wanted = operation.retry_on_error or operation.retry_until_success
    return wanted and answer.outcome in _WRONG


def _send(request: Request) -> Generator[Item, Reply | None, Reply]:
    """Send a request that is recorded as a success whatever its answer, but judge it all the same."""
    reply = yield from ask(msgspec.structs.replace(request, judge=_any_answer))
    if reply.exchange.failure is not None:
        return reply
    return Reply(reply.exchange, request.judge(reply.exchange.status, reply.exchange.body))


def _any_answer(_status: int, _body: bytes) -> Answer:
    return Answer(Outcome.OK)


_COMPARE: Mapping[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    "==": operator.eq,
    ">=": operator.ge,
    ">": operator.gt,
}
_PROPERTIES: Mapping[str, Callable[[Answer], object]] = {
    "hits": lambda answer: answer.hits if answer.hits >= 0 else None,
    "hits_relation": lambda answer: "eq" if answer.hits_exact else "gte",
    "took": lambda answer: answer.took_ms if answer.took_ms >= 0 else None,
    "timed_out": lambda answer: answer.outcome is Outcome.TIMEOUT,
    "success": lambda answer: answer.outcome is Outcome.OK,
}
"""Metadata of every response, by Rally's names."""


def with_assertions(operation: Operation, workload: Workload) -> Workload:
    """Return the workload with the operation's assertions checked; unchanged when it has none.

    Raises:
        BenchctlError: If an assertion is about an unknown property.
    """
    if not operation.assertions:
        return workload
    for assertion in operation.assertions:
        if assertion.property not in _PROPERTIES:
            raise BenchctlError(
                f"operation '{operation.name}' asserts unknown property '{assertion.property}'",
                hint=f"properties are {', '.join(_PROPERTIES)}; to skip all assertions: --no-assertions",
            )

    def program(client: int) -> Program:
        inner = workload.program(client)
        # The same request stays the same object: the wire need not load it again.
        before: tuple[Request, Request] | None = None

        def next_one() -> Request | Script | None:
            nonlocal before
            work = inner()
            if not isinstance(work, Request):
                return None if work is None else _asserted(work, operation.assertions)
            if before is None or before[0] is not work:
                before = (work, _asserting(work, operation.assertions))
            return before[1]

        return next_one

    return replace(workload, program=program)


def _asserting(request: Request, assertions: Sequence[Assertion]) -> Request:
    def judge(status: int, body: bytes) -> Answer:
        return _checked(assertions, request.judge(status, body))

    return msgspec.structs.replace(request, judge=judge)


def _asserted(work: Script, assertions: Sequence[Assertion]) -> Script:
    answer = yield from work
    return None if answer is None else _checked(assertions, answer)


def _checked(assertions: Sequence[Assertion], answer: Answer) -> Answer:
    if answer.outcome is not Outcome.OK:
        return answer
    for assertion in assertions:
        value = _PROPERTIES[assertion.property](answer)
        if not _holds(value, assertion):
            reason = (
                f"expected {assertion.property} {assertion.condition} {assertion.value}, and it is {value}"
            )
            return msgspec.structs.replace(answer, outcome=Outcome.BAD_BODY, reason=reason)
    return answer


def _holds(found: object, assertion: Assertion) -> bool:
    try:
        return _COMPARE[assertion.condition](found, assertion.value)
    except TypeError:
        # An unknown value cannot be compared.
        return False


def open_cannot(operation: Cannot, _order: WorkOrder) -> Workload:
    """Unsupported by benchctl; or by the node, where it refuses the request that the type has."""
    if operation.wire is None:
        return cannot(operation.reason)
    probe = Envelope(operation).request(operation.wire.method, operation.wire.path)

    def script() -> Script:
        reply = yield from ask(probe)
        if reply.answer.outcome is not Outcome.OK:
            return reply.answer
        return (yield from lacking(operation.reason))

    return scripted(script, endless=False)


# Operations of several requests, and those that depend on more than they declare, have an opener each.


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
    search.BulkVectors: open_bulk_vectors,
    search.Sql: open_sql,
    catalogue.Composite: open_composite,
    catalogue.DeletePointInTime: open_standalone,
    admin.RunUntil: open_run_until,
    **DECLARED,
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
