"""Administrative operations of several requests: polling, creating and deleting what a track declares."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from http import HTTPStatus
from typing import Any
from urllib.parse import quote

import msgspec

from benchctl.errors import BenchctlError
from benchctl.load.transport import Answer, Judge, Request
from benchctl.load.work import (
    LONG_TIMEOUT_S,
    Envelope,
    Reply,
    Script,
    Verdict,
    WorkContext,
    Workload,
    WorkOrder,
    ask,
    own_query,
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
from benchctl.results.plan import EngineName
from benchctl.results.samples import Outcome
from benchctl.track.model import DATA_STREAM, DATA_STREAMS, Template, TemplateKind, as_plain_template
from benchctl.track.operations import Condition, Criterion, Operation, Progress, is_number, url_param
from benchctl.track.operations.admin import (
    CreateDataStream,
    CreateIndex,
    CreateTemplate,
    DeleteDataStream,
    DeleteIndex,
    DeleteTemplate,
    Downsample,
    ForceMerge,
    RunUntil,
    WaitForTransform,
    names_of,
)
from benchctl.track.operations.search import Sleep

_OK = Answer(Outcome.OK)


class _Task(msgspec.Struct):
    task: str


class _TaskState(msgspec.Struct):
    completed: bool
    error: msgspec.Raw = msgspec.Raw()
    response: "_TaskResponse | None" = None


class _Shards(msgspec.Struct):
    failed: int = 0


class _TaskResponse(msgspec.Struct):
    shards: _Shards = msgspec.field(name="_shards", default_factory=_Shards)


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


def open_polled_force_merge(operation: ForceMerge, order: WorkOrder) -> Workload:
    """Open a force merge in the background, polled until it is done."""
    envelope = Envelope(operation)
    start = envelope.request(
        "POST",
        f"/{order.index(operation.target)}/_forcemerge",
        params={
            **operation.url_params,
            **own_query(operation, ForceMerge.wire),
            "wait_for_completion": "false",
        },
    )

    def script() -> Script:
        started = yield from ask(start)
        if started.answer.outcome is not Outcome.OK:
            return started.answer
        try:
            task = msgspec.json.decode(started.exchange.body, type=_Task).task
        except UNDECODABLE as err:
            return Answer(Outcome.BAD_BODY, reason=shorten(f"the merge has no task to ask after: {err}"))
        question = envelope.request("GET", f"/_tasks/{quote(task, safe=':')}")
        return (yield from poll(question, _merge_verdict, operation.poll_period))

    return scripted(script)


def _merge_verdict(reply: Reply) -> Answer | None:
    state = msgspec.json.decode(reply.exchange.body, type=_TaskState)
    if not state.completed:
        return None
    if error := bytes(state.error).decode(errors="replace"):
        return Answer(Outcome.HTTP_ERROR, reason=shorten(f"the merge failed: {error}"))
    failed = state.response.shards.failed if state.response is not None else 0
    if failed:
        return Answer(Outcome.PARTIAL, failed_shards=failed, reason=f"{failed} shards failed")
    return _OK


def _snapshots(reply: Reply) -> list[_SnapshotState]:
    return msgspec.json.decode(reply.exchange.body, type=_SnapshotStates).snapshots


def _snapshot_verdict(reply: Reply) -> Answer | None:
    states = {
        snapshot.state
        for snapshot in msgspec.json.decode(reply.exchange.body, type=_SnapshotStates).snapshots
    }
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


def _kind_of(operation: CreateTemplate | DeleteTemplate) -> TemplateKind:
    """The kind of templates that an operation's name names."""
    return next(kind for kind in _PATHS if f"-{kind}-" in operation.type_name)


def _open_create_index(operation: CreateIndex, order: WorkOrder) -> Workload:
    """Indices, with the bodies that the track declares unless the operation has one."""
    context = order.context
    envelope = Envelope(operation)

    def request(name: str) -> Request:
        body = context.indices.get(name, context.index_body) if operation.body is None else operation.body
        return envelope.request(
            "PUT",
            f"/{quote(name, safe='')}",
            _encoded(_with_mark(_with_settings(body, operation.settings), context.mark)),
            params=operation.url_params,
        )

    return _each([request(name) for name in names_of(operation.index) or _indices(operation, context)])


def _open_delete_index(operation: DeleteIndex, order: WorkOrder) -> Workload:
    """Indices by name, or by pattern, resolved first: nodes refuse to delete by pattern."""
    names = names_of(operation.index) or _indices(operation, order.context)
    envelope = Envelope(operation)
    if any("*" in name for name in names):
        return scripted(lambda: _delete_matching(operation, envelope, names))
    missing = operation.only_if_exists
    return _each([_delete(operation, envelope, f"/{quote(name, safe=',')}", missing) for name in names])


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

    pairs = [
        (
            request(f"/_data_stream/{quote(name, safe=',*')}", _judge_unless_lacking),
            request(f"/{quote(name, safe=',*')}"),
        )
        for name in names
    ]

    def script() -> Script:
        for request, plain in pairs:
            reply = yield from ask(request)
            if _lacks(reply):
                reply = yield from ask(plain)
            if reply.answer.outcome is not Outcome.OK:
                return reply.answer
        return Answer(Outcome.OK)

    return scripted(script)


def _open_create_template(operation: CreateTemplate, order: WorkOrder) -> Workload:
    """Templates, by name or all of their kind that the track declares."""
    kind = _kind_of(operation)
    if operation.body is not None and operation.template is not None:
        templates = {operation.template: operation.body}
    else:
        declared = _templates(operation, kind, operation.template, order.context)
        templates = {template.name: template.body for template in declared}
    # The newer kinds nest settings one level deeper.
    settle = _with_settings if kind == "index" else _with_inner_settings
    envelope = Envelope(operation)

    def request(name: str, body: Mapping[str, Any]) -> Request:
        return envelope.request(
            "PUT",
            f"/{_PATHS[kind]}/{quote(name, safe='')}",
            _encoded(settle(body, operation.settings)),
            params=operation.url_params,
        )

    requests = [request(name, body) for name, body in templates.items()]
    if not any(DATA_STREAM in body for body in templates.values()):
        return _each(requests)
    plain = [
        request(name, as_plain_template(body, order.context.templates)) for name, body in templates.items()
    ]
    question = envelope.request("GET", DATA_STREAMS, judge=_judge_unless_lacking)

    def script() -> Script:
        reply = yield from ask(question)
        if reply.answer.outcome is not Outcome.OK:
            return reply.answer
        return (yield from _send_all(plain if _lacks(reply) else requests)) or Answer(Outcome.OK)

    return scripted(script)


def _open_delete_template(operation: DeleteTemplate, order: WorkOrder) -> Workload:
    """Templates, by name or all of their kind, with their matching indices where asked for."""
    kind = _kind_of(operation)
    if operation.template is not None:
        names = [operation.template]
        patterns = [operation.index_pattern] if operation.delete_matching_indices else []
    else:
        declared = _templates(operation, kind, None, order.context)
        names = [template.name for template in declared]
        patterns = [
            template.index_pattern
            for template in declared
            if template.delete_matching_indices and operation.delete_matching_indices is not False
        ]
    envelope = Envelope(operation)
    requests = [
        _delete(operation, envelope, f"/{_PATHS[kind]}/{quote(name, safe='*')}", operation.only_if_exists)
        for name in names
    ]
    matching = [pattern for pattern in patterns if pattern]
    if not matching:
        return _each(requests)

    def script() -> Script:
        failed = yield from _send_all(requests)
        if failed is not None:
            return failed
        return (yield from _delete_matching(operation, envelope, matching))

    return scripted(script)


def _judge_unless_lacking(status: int, body: bytes) -> Answer:
    """Accept that a node has no data streams: a substitute request follows."""
    return Answer(Outcome.OK) if is_unsupported(status, body) else judge_plain(status, body)


def _lacks(reply: Reply) -> bool:
    return is_unsupported(reply.exchange.status, reply.exchange.body) is not None


def _indices(operation: Operation, context: WorkContext) -> tuple[str, ...]:
    if context.indices:
        return tuple(context.indices)
    if context.index_name and not context.data_streams:
        return (context.index_name,)
    raise _nothing(operation, "index", "indices")


def _templates(
    operation: Operation, kind: TemplateKind, name: str | None, context: WorkContext
) -> list[Template]:
    templates = [
        template
        for template in context.templates
        if template.kind == kind and name in (None, template.name)
    ]  # fmt: skip
    if not templates:
        raise _nothing(operation, "template", f"{kind} templates" if name is None else f"template '{name}'")
    return templates


def _nothing(operation: Operation, key: str, what: str) -> BenchctlError:
    return BenchctlError(
        f"operation '{operation.name}': the track declares no {what}",
        hint=f"declare them in the track, or name them by the operation's '{key}'",
    )


def _delete(operation: Operation, envelope: Envelope, path: str, missing: bool) -> Request:  # noqa: FBT001 - of its key
    return envelope.request(
        "DELETE",
        path,
        params=operation.url_params,
        accepted={HTTPStatus.NOT_FOUND} if missing else (),
    )


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
    return (yield from _send_all(requests)) or reply.answer


def _send_all(requests: Iterable[Request]) -> Script:
    """Send one after the other; the first failed answer, or None."""
    for request in requests:
        reply = yield from ask(request)
        if reply.answer.outcome is not Outcome.OK:
            return reply.answer
    return None


def _each(requests: Sequence[Request]) -> Workload:
    """Requests, one per name; a single one is the same object every time."""
    if len(requests) == 1:
        return repeated(requests[0])

    def script() -> Script:
        return (yield from _send_all(requests)) or _OK

    return scripted(script)


def _encoded(body: Mapping[str, Any]) -> bytes:
    # No body and an empty one are the same to both engines, and fewer bytes.
    return msgspec.json.encode(body) if body else b""


def _with_settings(body: Mapping[str, Any], settings: Mapping[str, Any]) -> Mapping[str, Any]:
    if not settings:
        return body
    return {**body, "settings": _flat(body.get("settings") or {}) | _flat(settings)}


def _with_mark(body: Mapping[str, Any], mark: Mapping[str, str]) -> Mapping[str, Any]:
    if not mark:
        return body
    mappings = body.get("mappings") or {}
    return {**body, "mappings": {**mappings, "_meta": {**mappings.get("_meta", {}), **mark}}}


def _with_inner_settings(body: Mapping[str, Any], settings: Mapping[str, Any]) -> Mapping[str, Any]:
    if not settings:
        return body
    return {**body, "template": _with_settings(body.get("template") or {}, settings)}


def _flat(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Index settings by their full names, so that one set can override another."""
    return {
        name if name.startswith("index.") else f"index.{name}": value for name, value in _dotted(settings, "")
    }


def _dotted(settings: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, Any]]:
    for name, value in settings.items():
        if isinstance(value, Mapping):
            yield from _dotted(value, f"{prefix}{name}.")
        else:
            yield prefix + name, value


_TRANSFORMS: Mapping[EngineName, str] = {
    "elasticsearch": "/_transform",
    "opensearch": "/_plugins/_transform",
}


def open_wait_for_transform(operation: WaitForTransform, order: WorkOrder) -> Workload:
    """Open the wait until a transform has stopped."""
    envelope = Envelope(operation)
    path = f"{_TRANSFORMS[order.context.engine]}/{quote(operation.transform_id, safe='')}"
    return scripted(lambda: _stop(operation, envelope, path, order))


def _stop(operation: WaitForTransform, envelope: Envelope, path: str, order: WorkOrder) -> Script:
    """Stop at the next checkpoint, and poll until it has stopped or the time is up."""
    engine = order.context.engine
    own = {
        "wait_for_completion": "false",
        **({"force": "true"} if operation.force else {}),
        **({} if operation.timeout is None else {"timeout": operation.timeout}),
        "wait_for_checkpoint": url_param(operation.wait_for_checkpoint),
    }
    # OpenSearch's transforms know none of these.
    params = {**(own if engine == "elasticsearch" else {}), **operation.url_params}
    stopped = yield from ask(envelope.request("POST", f"{path}/_stop", params=params))
    if stopped.answer.outcome is not Outcome.OK or not operation.wait_for_completion:
        return stopped.answer

    def verdict(reply: Reply) -> Answer | None:
        state, reason = _state(msgspec.json.decode(reply.exchange.body), operation.transform_id, engine)
        if not state:
            return Answer(Outcome.BAD_BODY, reason="no transform state in the response")
        if state == "failed":
            return Answer(Outcome.PARTIAL, reason=shorten(f"the transform failed: {reason}"))
        if state in {"stopped", "finished"}:
            return _OK
        if reply.exchange.end_ns - stopped.exchange.start_ns <= operation.transform_timeout * 1e9:
            return None
        return Answer(
            Outcome.TIMEOUT, reason=f"the transform continues after {operation.transform_timeout:g} s"
        )

    stats = "_stats" if engine == "elasticsearch" else "_explain"
    return (yield from poll(envelope.request("GET", f"{path}/{stats}"), verdict, operation.poll_interval))


def _state(found: Any, name: str, engine: EngineName) -> tuple[str, str]:
    """A transform's state and the reason for it, in either engine's format."""
    if engine == "elasticsearch":
        first = at_path(found, "transforms.0")
        return str(at_path(first, "state") or ""), str(at_path(first, "reason"))
    about = found.get(name) if isinstance(found, dict) else None
    state = at_path(about, "transform_metadata.status")
    return str(state or ""), str(at_path(about, "transform_metadata.failure_reason"))


def open_downsample(operation: Downsample, order: WorkOrder) -> Workload:
    """Open the making of a coarser index, in one synchronous request."""
    source = operation.source_index or order.context.index_name
    target = operation.target_index or f"{source}-{operation.fixed_interval}"
    body = {"fixed_interval": operation.fixed_interval}
    if operation.sampling_method is not None:
        body["sampling_method"] = operation.sampling_method
    return repeated(
        Envelope(operation, timeout_s=LONG_TIMEOUT_S).request(
            "POST",
            f"/{quote(source, safe='')}/_downsample/{quote(target, safe='')}",
            msgspec.json.encode(body),
            params=operation.url_params,
        )
    )


DECLARED: Mapping[type[Operation], Callable[[Any, WorkOrder], Workload]] = {
    CreateIndex: _open_create_index,
    DeleteIndex: _open_delete_index,
    CreateDataStream: _open_data_streams,
    DeleteDataStream: _open_data_streams,
    CreateTemplate: _open_create_template,
    DeleteTemplate: _open_delete_template,
}
"""The opener of each type."""
