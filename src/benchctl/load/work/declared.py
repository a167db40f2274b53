"""What a track declares is made and removed: a request for each index, data stream and template."""

from collections.abc import Iterable, Iterator, Mapping
from http import HTTPStatus
from typing import Any
from urllib.parse import quote

import msgspec

from benchctl.errors import BenchctlError
from benchctl.load.judge import UNDECODABLE, accepting, is_unsupported, judge_plain, shorten
from benchctl.load.request import Answer, Judge, Request
from benchctl.load.work.envelope import Envelope
from benchctl.load.workload import (
    Numbered,
    Opener,
    Repeated,
    Reply,
    Script,
    WorkContext,
    Workload,
    WorkOrder,
    ask,
)
from benchctl.results.samples import Outcome
from benchctl.track.model import DATA_STREAM, DATA_STREAMS, Template, TemplateKind, as_plain_template
from benchctl.track.operations.admin import (
    CreateComponentTemplate,
    CreateComposableTemplate,
    CreateDataStream,
    CreateIndex,
    CreateIndexTemplate,
    CreateTemplate,
    DeleteComponentTemplate,
    DeleteComposableTemplate,
    DeleteDataStream,
    DeleteIndex,
    DeleteIndexTemplate,
    DeleteTemplate,
    names_of,
)
from benchctl.track.operations.common import Operation

_KINDS: Mapping[type[Operation], tuple[TemplateKind, str]] = {
    CreateIndexTemplate: ("index", "_template"),
    DeleteIndexTemplate: ("index", "_template"),
    CreateComposableTemplate: ("composable", "_index_template"),
    DeleteComposableTemplate: ("composable", "_index_template"),
    CreateComponentTemplate: ("component", "_component_template"),
    DeleteComponentTemplate: ("component", "_component_template"),
}
"""Operation type -> kind of template, and the path where those live."""

_decode_names = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


def open_create_index(operation: CreateIndex, order: WorkOrder) -> Workload:
    """Indices, with the bodies that the track declares for them unless the operation has one."""
    context = order.context
    envelope = Envelope(operation)

    def request(name: str) -> Request:
        body = context.indices.get(name, context.index_body) if operation.body is None else operation.body
        return envelope.request(
            "PUT",
            f"/{quote(name, safe='')}",
            _encoded(_with_settings(body, operation.settings)),
            params=operation.url_params,
            judge=judge_plain,
        )

    return _each(map(request, names_of(operation.index) or _indices(operation, context)), order)


def open_delete_index(operation: DeleteIndex, order: WorkOrder) -> Workload:
    """Indices by name, or by patterns, which are looked up first: nodes refuse to delete by pattern."""
    names = names_of(operation.index) or _indices(operation, order.context)
    envelope = Envelope(operation)
    if any("*" in name for name in names):
        return Numbered(lambda _number: _delete_matching(operation, envelope, names), order.clients)
    missing = operation.only_if_exists
    return _each(
        (_delete(operation, envelope, f"/{quote(name, safe=',')}", missing) for name in names), order
    )


def open_data_streams(operation: CreateDataStream | DeleteDataStream, order: WorkOrder) -> Workload:
    """Data streams, by name or all of the track's; plain indices of their names where a node has none."""
    names = names_of(operation.data_stream) or order.context.data_streams
    if not names:
        raise _nothing(operation, "data-stream", "data streams")
    method = "DELETE" if isinstance(operation, DeleteDataStream) else "PUT"
    missing = isinstance(operation, DeleteDataStream) and operation.only_if_exists
    judge = accepting(judge_plain, {HTTPStatus.NOT_FOUND} if missing else ())
    envelope = Envelope(operation)

    def request(path: str, judge: Judge) -> Request:
        return envelope.request(method, path, params=operation.url_params, judge=judge)

    pairs = [
        (
            request(f"/_data_stream/{quote(name, safe=',*')}", _unless_lacking(judge)),
            request(f"/{quote(name, safe=',*')}", judge),
        )
        for name in names
    ]

    def script(_number: int) -> Script:
        for asked, plain in pairs:
            reply = yield from ask(asked)
            if _lacks(reply):
                reply = yield from ask(plain)
            if reply.answer.outcome is not Outcome.OK:
                return reply.answer
        return Answer(Outcome.OK)

    return Numbered(script, order.clients)


def open_create_template(operation: CreateTemplate, order: WorkOrder) -> Workload:
    """Templates, by name or all of their kind that the track declares."""
    kind, path = _KINDS[type(operation)]
    if operation.body is not None and operation.template is not None:
        found = {operation.template: operation.body}
    else:
        declared = _templates(operation, kind, operation.template, order.context)
        found = {template.name: template.body for template in declared}
    # Settings of the newer kinds stand one level deeper.
    settle = _with_settings if kind == "index" else _with_inner_settings
    envelope = Envelope(operation)

    def request(name: str, body: Mapping[str, Any]) -> Request:
        return envelope.request(
            "PUT",
            f"/{path}/{quote(name, safe='')}",
            _encoded(settle(body, operation.settings)),
            params=operation.url_params,
            judge=judge_plain,
        )

    made = [request(name, body) for name, body in found.items()]
    if not any(DATA_STREAM in body for body in found.values()):
        return _each(made, order)
    plain = [request(name, as_plain_template(body, order.context.templates)) for name, body in found.items()]
    question = envelope.request("GET", DATA_STREAMS, judge=_unless_lacking(judge_plain))

    def script(_number: int) -> Script:
        reply = yield from ask(question)
        if reply.answer.outcome is not Outcome.OK:
            return reply.answer
        return (yield from _send_all(plain if _lacks(reply) else made)) or Answer(Outcome.OK)

    return Numbered(script, order.clients)


def open_delete_template(operation: DeleteTemplate, order: WorkOrder) -> Workload:
    """Templates, by name or all of their kind that the track declares, with the indices that they are for."""
    kind, path = _KINDS[type(operation)]
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
        _delete(operation, envelope, f"/{path}/{quote(name, safe='*')}", operation.only_if_exists)
        for name in names
    ]
    matching = [pattern for pattern in patterns if pattern]
    if not matching:
        return _each(requests, order)

    def script(_number: int) -> Script:
        failed = yield from _send_all(requests)
        if failed is not None:
            return failed
        return (yield from _delete_matching(operation, envelope, matching))

    return Numbered(script, order.clients)


def _unless_lacking(judge: Judge) -> Judge:
    """That a node has no data streams is an answer like others: what stands in for them comes next."""

    def judged(status: int, body: bytes) -> Answer:
        return Answer(Outcome.OK) if is_unsupported(status, body) else judge(status, body)

    return judged


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
    found = [
        template
        for template in context.templates
        if template.kind == kind and name in (None, template.name)
    ]  # fmt: skip
    if not found:
        raise _nothing(operation, "template", f"{kind} templates" if name is None else f"template '{name}'")
    return found


def _nothing(operation: Operation, key: str, what: str) -> BenchctlError:
    return BenchctlError(
        f"operation '{operation.name}': the track declares no {what}",
        hint=f"declare them in the track, or say what is meant by the operation's '{key}'",
    )


def _delete(operation: Operation, envelope: Envelope, path: str, missing: bool) -> Request:  # noqa: FBT001 - of its key
    return envelope.request(
        "DELETE",
        path,
        params=operation.url_params,
        judge=accepting(judge_plain, {HTTPStatus.NOT_FOUND} if missing else ()),
    )


def _delete_matching(operation: Operation, envelope: Envelope, patterns: Iterable[str]) -> Script:
    """Look up the indices of patterns, and delete each."""
    listed = quote(",".join(patterns), safe=",*-")
    question = envelope.request(
        "GET",
        f"/{listed}/_alias",
        params={"ignore_unavailable": "true"},
        judge=accepting(judge_plain, {HTTPStatus.NOT_FOUND}),
    )
    reply = yield from ask(question)
    if reply.answer.outcome is not Outcome.OK or reply.exchange.status == HTTPStatus.NOT_FOUND:
        return reply.answer
    try:
        names = list(_decode_names(reply.exchange.body))
    except UNDECODABLE as err:
        return Answer(Outcome.BAD_BODY, reason=shorten(f"not a list of indices: {err}"))
    # Another one may have deleted it in between.
    requests = [_delete(operation, envelope, f"/{quote(name, safe='')}", missing=True) for name in names]
    return (yield from _send_all(requests)) or reply.answer


def _send_all(requests: Iterable[Request]) -> Script:
    """Send one after the other; the answer of the first that fails, or None."""
    for request in requests:
        reply = yield from ask(request)
        if reply.answer.outcome is not Outcome.OK:
            return reply.answer
    return None


def _each(requests: Iterable[Request], order: WorkOrder) -> Workload:
    """A request for each thing; a single one is the same object every time."""
    made = list(requests)
    if len(made) == 1:
        return Repeated(made[0])

    def script(_number: int) -> Script:
        return (yield from _send_all(made)) or Answer(Outcome.OK)

    return Numbered(script, order.clients)


def _encoded(body: Mapping[str, Any]) -> bytes:
    # No body and an empty one are the same to both engines, and fewer bytes.
    return msgspec.json.encode(body) if body else b""


def _with_settings(body: Mapping[str, Any], settings: Mapping[str, Any]) -> Mapping[str, Any]:
    if not settings:
        return body
    return {**body, "settings": _flat(body.get("settings") or {}) | _flat(settings)}


def _with_inner_settings(body: Mapping[str, Any], settings: Mapping[str, Any]) -> Mapping[str, Any]:
    if not settings:
        return body
    return {**body, "template": _with_settings(body.get("template") or {}, settings)}


def _flat(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings of an index by their whole names, however they are nested: one can be laid over another."""
    return {
        name if name.startswith("index.") else f"index.{name}": value for name, value in _dotted(settings, "")
    }


def _dotted(settings: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, Any]]:
    for name, value in settings.items():
        if isinstance(value, Mapping):
            yield from _dotted(value, f"{prefix}{name}.")
        else:
            yield prefix + name, value


DECLARED: Mapping[type[Operation], Opener] = {
    CreateIndex: open_create_index,
    DeleteIndex: open_delete_index,
    CreateDataStream: open_data_streams,
    DeleteDataStream: open_data_streams,
    CreateIndexTemplate: open_create_template,
    CreateComposableTemplate: open_create_template,
    CreateComponentTemplate: open_create_template,
    DeleteIndexTemplate: open_delete_template,
    DeleteComposableTemplate: open_delete_template,
    DeleteComponentTemplate: open_delete_template,
}
"""What makes the work of each type."""
