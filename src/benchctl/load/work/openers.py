"""The opener of every operation type, and operations of several requests that administer a cluster."""

import operator
import re
import sys
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import replace
from http import HTTPStatus
from typing import Any
from urllib.parse import quote

import msgspec

from benchctl.errors import BenchctlError
from benchctl.load.plugin_work import as_processed, open_plugin
from benchctl.load.transport import Answer, Judge, Request
from benchctl.load.work import (
    DEFAULT_TIMEOUT_S,
    LONG_TIMEOUT_S,
    Envelope,
    Item,
    Program,
    Reply,
    Script,
    Verdict,
    WorkContext,
    Workload,
    WorkOrder,
    ask,
    cannot,
    follow,
    lacking,
    own_query,
    poll,
    repeated,
    scripted,
)
from benchctl.load.work.bulk import open_bulk
from benchctl.load.work.composite import open_composite, open_standalone
from benchctl.load.work.judges import UNDECODABLE, is_unsupported, judge_plain, judging, shorten
from benchctl.load.work.searches import (
    PATH_SAFE,
    filled,
    open_composite_agg,
    open_logged,
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
from benchctl.track.model import DATA_STREAM, DATA_STREAMS, Template, TemplateKind, as_plain_template
from benchctl.track.operations import (
    Assertion,
    Cannot,
    Condition,
    Criterion,
    Form,
    Operation,
    Progress,
    Retried,
    Varying,
    admin,
    catalogue,
    is_number,
    search,
)
from benchctl.track.operations.admin import names_of
from benchctl.track.operations.catalogue import PluginOperation

_OK = Answer(Outcome.OK)


class _SnapshotState(msgspec.Struct):
    state: str = ""  # not in every list


class _SnapshotStates(msgspec.Struct):
    snapshots: list[_SnapshotState]


class _ShardStage(msgspec.Struct):
    stage: str


class _IndexStages(msgspec.Struct):
    shards: list[_ShardStage]


def _open_sleep(operation: search.Sleep, _order: WorkOrder) -> Workload:
    """Open a pause; nothing is sent."""

    def script() -> Script:
        yield operation.duration
        return _OK

    return scripted(script)


def _judge_condition(condition: Condition, root: str = "") -> Judge:
    """Return a judge of the value at the condition's path below `root`."""

    def verdict(answer: object) -> Answer:
        value = _at_path(answer, f"{root}{condition.path}")
        if value == condition.expected_value:
            return _OK
        expected = msgspec.json.encode(condition.expected_value).decode()
        actual = msgspec.json.encode(value).decode()
        return Answer(Outcome.BAD_BODY, reason=shorten(f"{condition.path} is {actual}, not {expected}"))

    return judging(object, "JSON", verdict)


def _at_path(found: Any, path: str) -> Any:
    """Return the value at a dotted path, with numbers as list indices; None where there is none."""
    for key in path.split("."):
        if isinstance(found, dict):
            found = found.get(key)
        elif isinstance(found, list) and key.isdecimal() and int(key) < len(found):
            found = found[int(key)]
        else:
            return None
    return found


def _open_run_until(operation: admin.RunUntil, order: WorkOrder) -> Workload:
    """Open a request that is repeated until its answer meets the criterion."""
    given = operation.body
    body = given.encode() if isinstance(given, str) else msgspec.json.encode(given) if given else b""
    question = Envelope(operation).request(
        operation.method,
        quote(operation.path, safe=PATH_SAFE),
        body,
        params=operation.url_params,
        judge=judge_plain,
        searches=searches_in(operation.method, operation.path, body, order.context),
    )

    def verdict(reply: Reply) -> Answer | None:
        value = _at_path(msgspec.json.decode(reply.exchange.body), operation.json_path)
        return _OK if _meets(operation.criterion, value) else None

    return _asked_until(question, verdict, operation.retry_wait_interval)


def _meets(criterion: Criterion, found: object) -> bool:
    if criterion.operator in {"exists", "not_exists"}:
        return (found is not None) == (criterion.operator == "exists")
    if not is_number(found):
        return False
    value, target = float(str(found)), float(str(criterion.value))
    return {
        "gte": value >= target,
        "lte": value <= target,
        "eq": value == target,
        "neq": value != target,
    }[criterion.operator]


def _snapshots(reply: Reply) -> list[_SnapshotState]:
    return msgspec.json.decode(reply.exchange.body, type=_SnapshotStates).snapshots


def _snapshot_verdict(reply: Reply) -> Answer | None:
    states = {snapshot.state for snapshot in _snapshots(reply)}
    if not states:
        return Answer(Outcome.HTTP_ERROR, reason="no such snapshot")
    if states & {"FAILED", "PARTIAL", "ABORTED"}:
        return Answer(Outcome.PARTIAL, reason=f"the snapshot is {', '.join(sorted(states))}")
    return _OK if states == {"SUCCESS"} else None


def _recovery_verdict(reply: Reply) -> Answer | None:
    # There is nothing yet when the question comes before the recovery is planned.
    indices = msgspec.json.decode(reply.exchange.body, type=dict[str, _IndexStages]).values()
    stages = [shard.stage for index in indices for shard in index.shards]
    return _OK if stages and all(stage == "DONE" for stage in stages) else None


_PROGRESS: Mapping[Progress, Verdict] = {
    "recovered": _recovery_verdict,
    "snapshot complete": _snapshot_verdict,
    "no snapshot running": lambda reply: None if _snapshots(reply) else _OK,
}


def _asked_until(question: Request, verdict: Verdict, period_s: float) -> Workload:
    """Open a request that is repeated until there is a verdict."""
    return scripted(lambda: poll(question, verdict, period_s))


# What a track declares is created and deleted: one request for each index, data stream and template.

_PATHS: Mapping[TemplateKind, str] = {
    "index": "_template",
    "composable": "_index_template",
    "component": "_component_template",
}


def _open_create_index(operation: admin.CreateIndex, order: WorkOrder) -> Workload:
    """Indices, with the bodies that the track declares unless the operation has one."""
    context = order.context
    envelope = Envelope(operation)

    def request(name: str) -> Request:
        body = context.indices.get(name, context.index_body) if operation.body is None else operation.body
        marked = _with_mark(_with_settings(body, operation.settings), context.mark)
        return _put(envelope, operation, f"/{quote(name, safe='')}", marked)

    return _each([request(name) for name in names_of(operation.index) or _indices(operation, context)])


def _open_delete_index(operation: admin.DeleteIndex, order: WorkOrder) -> Workload:
    """Indices by name, or by pattern, resolved first: nodes refuse to delete by pattern."""
    names = names_of(operation.index) or _indices(operation, order.context)
    envelope = Envelope(operation)
    if any("*" in name for name in names):
        return scripted(lambda: _delete_matching(operation, envelope, names))
    missing = operation.only_if_exists
    return _each(
        [_delete(operation, envelope, f"/{quote(name, safe=',')}", missing=missing) for name in names]
    )


def _open_data_streams(
    operation: admin.CreateDataStream | admin.DeleteDataStream, order: WorkOrder
) -> Workload:
    """Data streams, by name or all of the track's; plain indices where the node lacks data streams."""
    names = names_of(operation.data_stream) or order.context.data_streams
    if not names:
        raise _nothing(operation, "data-stream", "data streams")
    method = "DELETE" if isinstance(operation, admin.DeleteDataStream) else "PUT"
    missing = isinstance(operation, admin.DeleteDataStream) and operation.only_if_exists
    accepted = {HTTPStatus.NOT_FOUND} if missing else ()
    envelope = Envelope(operation)

    def request(path: str, judge: Judge | None = None) -> Request:
        return envelope.request(method, path, params=operation.url_params, judge=judge, accepted=accepted)

    paths = [quote(name, safe=",*") for name in names]
    pairs = [(request(f"/_data_stream/{path}", _judge_unless_lacking), request(f"/{path}")) for path in paths]

    def script() -> Script:
        for stream, plain in pairs:
            reply = yield from ask(stream)
            if _lacks(reply):
                reply = yield from ask(plain)
            if reply.answer.outcome is not Outcome.OK:
                return reply.answer
        return _OK

    return scripted(script)


def _open_create_template(operation: admin.CreateTemplate, order: WorkOrder) -> Workload:
    """Templates, by name or all of their kind that the track declares."""
    kind = _kind_of(operation)
    if operation.body is not None and operation.template is not None:
        bodies = {operation.template: operation.body}
    else:
        bodies = {template.name: template.body for template in _templates(operation, kind, order.context)}
    envelope = Envelope(operation)

    def request(name: str, body: Mapping[str, Any]) -> Request:
        settings = operation.settings
        if kind == "index":
            body = _with_settings(body, settings)
        elif settings:  # the newer kinds nest settings one level deeper
            body = {**body, "template": _with_settings(body.get("template") or {}, settings)}
        return _put(envelope, operation, f"/{_PATHS[kind]}/{quote(name, safe='')}", body)

    requests = [request(name, body) for name, body in bodies.items()]
    if not any(DATA_STREAM in body for body in bodies.values()):
        return _each(requests)
    declared = order.context.templates
    plain = [request(name, as_plain_template(body, declared)) for name, body in bodies.items()]
    question = envelope.request("GET", DATA_STREAMS, judge=_judge_unless_lacking)

    def script() -> Script:
        reply = yield from ask(question)
        if reply.answer.outcome is not Outcome.OK:
            return reply.answer
        return (yield from _send_all(plain if _lacks(reply) else requests))

    return scripted(script)


def _open_delete_template(operation: admin.DeleteTemplate, order: WorkOrder) -> Workload:
    """Templates, by name or all of their kind, with their matching indices where asked for."""
    kind, named, deletes = _kind_of(operation), operation.template, operation.delete_matching_indices
    if named is not None:
        patterns = {named: operation.index_pattern if deletes else None}
    else:
        patterns = {
            template.name: template.index_pattern
            if template.delete_matching_indices and deletes is not False
            else None
            for template in _templates(operation, kind, order.context)
        }
    envelope, missing = Envelope(operation), operation.only_if_exists
    paths = [f"/{_PATHS[kind]}/{quote(name, safe='*')}" for name in patterns]
    requests = [_delete(operation, envelope, path, missing=missing) for path in paths]
    matching = [pattern for pattern in patterns.values() if pattern]
    if not matching:
        return _each(requests)

    def script() -> Script:
        answer = yield from _send_all(requests)
        if answer is not _OK:
            return answer
        return (yield from _delete_matching(operation, envelope, matching))

    return scripted(script)


def _open_enrich_policy(operation: admin.EnrichPolicy, _order: WorkOrder) -> Workload:
    """Enrich policies, each created and executed, which makes the index that processors look into."""
    envelope = Envelope(operation, timeout_s=LONG_TIMEOUT_S)
    requests = []
    for name, body in operation.policies.items():
        path = f"/_enrich/policy/{quote(name, safe='')}"
        if operation.delete:
            requests.append(_delete(operation, envelope, path, missing=True))
        requests += [
            _put(envelope, operation, path, body),
            _put(envelope, operation, f"{path}/_execute", {}),
        ]
    return _each(requests)


def _kind_of(operation: admin.CreateTemplate | admin.DeleteTemplate) -> TemplateKind:
    """The kind of templates that an operation's name names."""
    return next(kind for kind in _PATHS if f"-{kind}-" in operation.type_name)


def _judge_unless_lacking(status: int, body: bytes) -> Answer:
    """Accept that a node has no data streams: a substitute request follows."""
    return _OK if is_unsupported(status, body) else judge_plain(status, body)


def _lacks(reply: Reply) -> bool:
    return is_unsupported(reply.exchange.status, reply.exchange.body) is not None


def _indices(operation: Operation, context: WorkContext) -> tuple[str, ...]:
    if context.indices:
        return tuple(context.indices)
    if context.index_name and not context.data_streams:
        return (context.index_name,)
    raise _nothing(operation, "index", "indices")


def _templates(
    operation: admin.CreateTemplate | admin.DeleteTemplate, kind: TemplateKind, context: WorkContext
) -> list[Template]:
    """The declared templates of a kind, or the one that the operation names."""
    name = operation.template
    of_kind = [template for template in context.templates if template.kind == kind]
    templates = [template for template in of_kind if name in (None, template.name)]
    if not templates:
        raise _nothing(operation, "template", f"{kind} templates" if name is None else f"template '{name}'")
    return templates


def _nothing(operation: Operation, key: str, what: str) -> BenchctlError:
    return BenchctlError(
        f"operation '{operation.name}': the track declares no {what}",
        hint=f"declare them in the track, or name them by the operation's '{key}'",
    )


def _put(envelope: Envelope, operation: Operation, path: str, body: Mapping[str, Any]) -> Request:
    # No body and an empty one are the same to both engines, and fewer bytes.
    encoded = msgspec.json.encode(body) if body else b""
    return envelope.request("PUT", path, encoded, params=operation.url_params)


def _delete(operation: Operation, envelope: Envelope, path: str, *, missing: bool) -> Request:
    accepted = {HTTPStatus.NOT_FOUND} if missing else ()
    return envelope.request("DELETE", path, params=operation.url_params, accepted=accepted)


def _delete_matching(operation: Operation, envelope: Envelope, patterns: Iterable[str]) -> Script:
    """Resolve patterns to indices, and delete each."""
    listed = quote(",".join(patterns), safe=",*-")
    question = envelope.request(
        "GET",
        f"/{listed}/_alias",
        params={"ignore_unavailable": "true"},
        accepted={HTTPStatus.NOT_FOUND},
    )
    reply = yield from ask(question)
    if reply.answer.outcome is not Outcome.OK or reply.exchange.status == HTTPStatus.NOT_FOUND:
        return reply.answer
    try:
        names = list(msgspec.json.decode(reply.exchange.body, type=dict[str, msgspec.Raw]))
    except UNDECODABLE as err:
        return Answer(Outcome.BAD_BODY, reason=shorten(f"not a list of indices: {err}"))
    # Another client may have deleted one meanwhile.
    requests = [_delete(operation, envelope, f"/{quote(name, safe='')}", missing=True) for name in names]
    return (yield from _send_all(requests))


def _send_all(requests: Iterable[Request]) -> Script:
    """Send one after the other; the first failed answer, or `_OK`."""
    for request in requests:
        reply = yield from ask(request)
        if reply.answer.outcome is not Outcome.OK:
            return reply.answer
    return _OK


def _each(requests: Sequence[Request]) -> Workload:
    """Requests, one per name; a single one is the same object every time."""
    return repeated(requests[0]) if len(requests) == 1 else scripted(lambda: _send_all(requests))


def _with_settings(body: Mapping[str, Any], settings: Mapping[str, Any]) -> Mapping[str, Any]:
    if not settings:
        return body
    return {**body, "settings": _flat(body.get("settings") or {}) | _flat(settings)}


def _with_mark(body: Mapping[str, Any], mark: Mapping[str, str]) -> Mapping[str, Any]:
    if not mark:
        return body
    mappings = body.get("mappings") or {}
    return {**body, "mappings": {**mappings, "_meta": {**mappings.get("_meta", {}), **mark}}}


def _flat(settings: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Index settings by their full names, so that one set can override another."""
    flat: dict[str, Any] = {}
    for name, value in settings.items():
        full = prefix + name
        if isinstance(value, Mapping):
            flat |= _flat(value, f"{full}.")
        else:
            flat[full if full.startswith("index.") else f"index.{full}"] = value
    return flat


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
        judge=None if condition is None else _judge_condition(condition, form.condition_at),
        accepted={HTTPStatus.NOT_FOUND} if missing else (),
        searches=searches_in(form.method, path, body, order.context),
    )
    if isinstance(operation, Varying) and operation.content:
        return filled(request, order.bodies(operation, operation.content), operation, order)
    if form.until is not None:
        return _asked_until(request, _PROGRESS[form.until], getattr(operation, form.every))
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


def _with_retries(operation: Retried, workload: Workload) -> Workload:
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

        answer = (yield from follow(work, send)) or (_OK if last is None else last.answer)
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
    return _OK


_COMPARE: Mapping[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    "==": operator.eq,
    ">=": operator.ge,
    ">": operator.gt,
}


def _asserted_of(answer: Answer, weight: int) -> Mapping[str, object]:
    """Return the values of ASSERTED; None for unknown ones.

    Of what is not a success, nothing is asserted: a bulk request with an error is a failure anyway.
    """
    return {
        "hits": answer.hits if answer.hits >= 0 else None,
        "hits_relation": "eq" if answer.hits_exact else "gte",
        "took": answer.took_ms if answer.took_ms >= 0 else None,
        "timed_out": False,
        "success": True,
        "weight": weight,
        "success-count": weight,
        "error-count": 0,
    }


def _with_assertions(operation: Operation, workload: Workload) -> Workload:
    """Return the workload with the operation's assertions checked; unchanged when it has none."""
    if not operation.assertions:
        return workload

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
        return _checked(assertions, request.judge(status, body), request.weight)

    return msgspec.structs.replace(request, judge=judge)


def _asserted(work: Script, assertions: Sequence[Assertion]) -> Script:
    answer = yield from work
    return None if answer is None else _checked(assertions, answer, answer.weight)


def _checked(assertions: Sequence[Assertion], answer: Answer, weight: int) -> Answer:
    if answer.outcome is not Outcome.OK:
        return answer
    values = _asserted_of(answer, weight)
    for asserted in assertions:
        value = values[asserted.property]
        try:
            holds = _COMPARE[asserted.condition](value, asserted.value)
        except TypeError:
            holds = False  # an unknown value cannot be compared
        if not holds:
            reason = f"expected {asserted.property} {asserted.condition} {asserted.value}, but it is {value}"
            return msgspec.structs.replace(answer, outcome=Outcome.BAD_BODY, reason=reason)
    return answer


def _open_cannot(operation: Cannot, _order: WorkOrder) -> Workload:
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


_OPENERS: Mapping[type[Operation], Callable[[Any, WorkOrder], Workload]] = {
    search.Search: open_search,
    search.LoggedSearch: open_logged,
    search.AllTogether: lambda _operation, _order: cannot(
        "its requests are those of the other tasks of its parallel element"
    ),
    search.PaginatedSearch: open_paginated_search,
    search.ScrollSearch: open_scroll,
    search.CompositeAgg: open_composite_agg,
    search.MultiSearch: open_multi_search,
    search.RawRequest: open_raw_request,
    search.Bulk: open_bulk,
    search.Sleep: _open_sleep,
    search.VectorSearch: open_vector_search,
    search.BulkVectors: open_bulk_vectors,
    search.Sql: open_sql,
    catalogue.Composite: open_composite,
    catalogue.DeletePointInTime: open_standalone,
    admin.RunUntil: _open_run_until,
    admin.CreateIndex: _open_create_index,
    admin.DeleteIndex: _open_delete_index,
    admin.CreateDataStream: _open_data_streams,
    admin.DeleteDataStream: _open_data_streams,
    admin.CreateTemplate: _open_create_template,
    admin.DeleteTemplate: _open_delete_template,
    admin.EnrichPolicy: _open_enrich_policy,
    PluginOperation: open_plugin,
    Cannot: _open_cannot,
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
        workload = _with_assertions(operation, workload)
    return _with_retries(operation, workload) if isinstance(operation, Retried) else workload
