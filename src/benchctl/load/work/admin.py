"""Administrative operations of several requests: polling, creating and deleting what a track declares."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from http import HTTPStatus
from typing import Any
from urllib.parse import quote

import msgspec

from benchctl.errors import BenchctlError
from benchctl.load.transport import Answer, Judge, Request
from benchctl.load.work import (
    Envelope,
    Reply,
    Script,
    Verdict,
    WorkContext,
    Workload,
    WorkOrder,
    ask,
    poll,
    repeated,
    scripted,
)
from benchctl.load.work.judges import (
    UNDECODABLE,
    is_unsupported,
    judge_plain,
    judging,
    shorten,
)
from benchctl.load.work.searches import PATH_SAFE, searches_in
from benchctl.results.samples import Outcome
from benchctl.track.model import DATA_STREAM, DATA_STREAMS, Template, TemplateKind, as_plain_template
from benchctl.track.operations import Condition, Criterion, Operation, Progress, is_number
from benchctl.track.operations.admin import (
    CreateDataStream,
    CreateIndex,
    CreateTemplate,
    DeleteDataStream,
    DeleteIndex,
    DeleteTemplate,
    RunUntil,
    names_of,
)
from benchctl.track.operations.search import Sleep

_OK = Answer(Outcome.OK)


class _SnapshotState(msgspec.Struct):
    state: str = ""  # not in every list


class _SnapshotStates(msgspec.Struct):
    snapshots: list[_SnapshotState]


class _ShardStage(msgspec.Struct):
    stage: str


class _IndexStages(msgspec.Struct):
    shards: list[_ShardStage]


def open_sleep(operation: Sleep, _order: WorkOrder) -> Workload:
    """Open a pause; nothing is sent."""

    def script() -> Script:
        yield operation.duration
        return _OK

    return scripted(script)


def judge_condition(condition: Condition, root: str = "") -> Judge:
    """Return a judge of the value at the condition's path below `root`."""

    def verdict(answer: object) -> Answer:
        value = at_path(answer, f"{root}{condition.path}")
        if value == condition.expected_value:
            return _OK
        expected = msgspec.json.encode(condition.expected_value).decode()
        actual = msgspec.json.encode(value).decode()
        return Answer(Outcome.BAD_BODY, reason=shorten(f"{condition.path} is {actual}, not {expected}"))

    return judging(object, "JSON", verdict)


def at_path(found: Any, path: str) -> Any:
    """Return the value at a dotted path, with numbers as list indices; None where there is none."""
    for key in path.split("."):
        if isinstance(found, dict):
            found = found.get(key)
        elif isinstance(found, list) and key.isdecimal() and int(key) < len(found):
            found = found[int(key)]
        else:
            return None
    return found


def open_run_until(operation: RunUntil, order: WorkOrder) -> Workload:
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
        value = at_path(msgspec.json.decode(reply.exchange.body), operation.json_path)
        return _OK if _meets(operation.criterion, value) else None

    return asked_until(question, verdict, operation.retry_wait_interval)


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


PROGRESS: Mapping[Progress, Verdict] = {
    "recovered": _recovery_verdict,
    "snapshot complete": _snapshot_verdict,
    "no snapshot running": lambda reply: None if _snapshots(reply) else _OK,
}
"""Polled response -> its verdict."""


def asked_until(question: Request, verdict: Verdict, period_s: float) -> Workload:
    """Open a request that is repeated until there is a verdict."""
    return scripted(lambda: poll(question, verdict, period_s))


# What a track declares is created and deleted: one request for each index, data stream and template.

_PATHS: Mapping[TemplateKind, str] = {
    "index": "_template",
    "composable": "_index_template",
    "component": "_component_template",
}


def _open_create_index(operation: CreateIndex, order: WorkOrder) -> Workload:
    """Indices, with the bodies that the track declares unless the operation has one."""
    context = order.context
    envelope = Envelope(operation)

    def request(name: str) -> Request:
        body = context.indices.get(name, context.index_body) if operation.body is None else operation.body
        marked = _with_mark(_with_settings(body, operation.settings), context.mark)
        return _put(envelope, operation, f"/{quote(name, safe='')}", marked)

    return _each([request(name) for name in names_of(operation.index) or _indices(operation, context)])


def _open_delete_index(operation: DeleteIndex, order: WorkOrder) -> Workload:
    """Indices by name, or by pattern, resolved first: nodes refuse to delete by pattern."""
    names = names_of(operation.index) or _indices(operation, order.context)
    envelope = Envelope(operation)
    if any("*" in name for name in names):
        return scripted(lambda: _delete_matching(operation, envelope, names))
    missing = operation.only_if_exists
    return _each(
        [_delete(operation, envelope, f"/{quote(name, safe=',')}", missing=missing) for name in names]
    )


def _open_data_streams(operation: CreateDataStream | DeleteDataStream, order: WorkOrder) -> Workload:
    """Data streams, by name or all of the track's; plain indices where the node lacks data streams."""
    names = names_of(operation.data_stream) or order.context.data_streams
    if not names:
        raise _nothing(operation, "data-stream", "data streams")
    method = "DELETE" if isinstance(operation, DeleteDataStream) else "PUT"
    missing = isinstance(operation, DeleteDataStream) and operation.only_if_exists
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


def _open_create_template(operation: CreateTemplate, order: WorkOrder) -> Workload:
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


def _open_delete_template(operation: DeleteTemplate, order: WorkOrder) -> Workload:
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


def _kind_of(operation: CreateTemplate | DeleteTemplate) -> TemplateKind:
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
    operation: CreateTemplate | DeleteTemplate, kind: TemplateKind, context: WorkContext
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


DECLARED: Mapping[type[Operation], Callable[[Any, WorkOrder], Workload]] = {
    CreateIndex: _open_create_index,
    DeleteIndex: _open_delete_index,
    CreateDataStream: _open_data_streams,
    DeleteDataStream: _open_data_streams,
    CreateTemplate: _open_create_template,
    DeleteTemplate: _open_delete_template,
}
"""The opener of each type."""
