"""What a plug-in's parameter source gives becomes a request of one of benchctl's own operation types."""

import math
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

import msgspec
import numpy as np

from benchctl.load.judge import judge_bulk
from benchctl.load.request import Answer, Request
from benchctl.load.work.envelope import NDJSON, Envelope, with_body
from benchctl.load.workload import OpenWorkload, Program, Script, WorkOrder, ask
from benchctl.plugin.session import PluginError
from benchctl.results.samples import Outcome
from benchctl.track.document import encoded_names
from benchctl.track.operations.catalogue import OPERATION_TYPES, decode_operation
from benchctl.track.operations.common import Operation, url_param
from benchctl.track.operations.search import Bulk

Made = Request | Script | None

# What they hold is of the plug-in's making; these name the operation.
_OURS = frozenset({"name", "operation-type"})
# Types whose requests differ by nothing but their body when that does.
_BODY_AS_IT_IS = frozenset({"search"})
_LISTS = frozenset({"index", "data-stream"})
_TEMPLATES = ("index", "composable", "component")


class OwnOperations:
    """Makes the requests of an operation type of benchctl's own out of dictionaries, for one client.

    As in Rally, keys that the type does not know mean nothing, and None is as good as absent. A dictionary
    that says the same as the one before is the same request, which the wire need not load again; one that
    differs in its body only is the same request with that body.

    Args:
        kind: the operation type.
        name: of the operation.
        order: for whom.
        client: which client.
        open_workload: opens the operations.

    Raises:
        PluginError: benchctl has no such type.
    """

    def __init__(
        self, kind: str, name: str, order: WorkOrder, client: int, open_workload: OpenWorkload
    ) -> None:
        if kind not in OPERATION_TYPES:
            raise PluginError(f"no runner is available for operation type '{kind}'")
        self._kind = kind
        self._name = name
        self._order = order
        self._client = client
        self._open = open_workload
        self._before = b""
        self._content = b""
        self._program: Program | None = None
        self._template: Request | None = None

    def make(self, params: Mapping[str, Any]) -> Made:
        """The next request, or script, of what a source gave.

        Raises:
            PluginError: it gave what the type cannot do.
        """
        if self._kind == "bulk" and params.get("body") is not None:
            return self._bulk(params)
        body = params.get("body")
        rest = {key: value for key, value in params.items() if key != "body"}
        said, content = _encoded(rest), _encoded(body)
        if said == self._before and self._program is not None:
            if content == self._content:
                return self._program()
            if self._template is not None and isinstance(body, dict):
                return with_body(self._template, content)
        # Decoded again, they are plain JSON, and the plug-in may go on changing its own.
        given = msgspec.json.decode(said) | ({} if body is None else {"body": msgspec.json.decode(content)})
        self._program = self._begun(given)
        self._before, self._content, self._template = said, content, None
        made = self._program()
        if isinstance(made, Request) and made.body == content and self._kind in _BODY_AS_IT_IS:
            self._template = made
        return made

    def _begun(self, params: Mapping[str, Any]) -> Program:
        """What asks for what a source gave: one operation, or in turn each of those that it lists."""
        parts = _listed(params, self._kind)
        if parts is None:
            return self._open(self._operation(params), self._order).program(self._client)
        programs = [self._open(self._operation(one), self._order).program(self._client) for one in parts]
        return lambda: _in_turn(programs)

    def _operation(self, params: Mapping[str, Any]) -> Operation:
        return own_operation(self._kind, self._name, params)

    def _bulk(self, params: Mapping[str, Any]) -> Request:
        """A body that the source has made itself."""
        body, documents = bulk_body(params["body"])
        rest = {key: value for key, value in params.items() if key not in {"body", "bulk-size"}}
        encoded = _encoded(rest)
        if encoded != self._before or self._template is None:
            self._template = self._bulk_template(msgspec.json.decode(encoded))
            self._before = encoded
        template = self._template
        size = params.get("bulk-size")
        lines_each = 2 if params.get("action-metadata-present", True) else 1
        return Request(
            template.method,
            template.path,
            body,
            template.headers,
            template.timeout_s,
            template.judge,
            template.searches,
            int(size) if isinstance(size, int | float) and size > 0 else max(documents // lines_each, 1),
            template.retries,
        )

    def _bulk_template(self, params: Mapping[str, Any]) -> Request:
        operation = self._operation({**params, "bulk-size": 1})
        if not isinstance(operation, Bulk):
            raise TypeError(f"{self._kind} is no bulk operation")
        # Where actions are present, they say themselves where documents go, as in Rally.
        index = None if params.get("action-metadata-present", True) else operation.index
        own = {name: getattr(operation, name) for name in ("pipeline", "refresh", "timeout")}
        return Envelope(operation, content_type=NDJSON).request(
            "POST",
            f"/{self._order.index(index)}/_bulk" if index else "/_bulk",
            params={
                **{name: url_param(value) for name, value in own.items() if value is not None},
                **operation.url_params,
            },
            judge=judge_bulk,
        )


def own_operation(kind: str, name: str, params: Mapping[str, Any]) -> Operation:
    """An operation of one of benchctl's types out of what a source gave.

    Raises:
        PluginError: it gave what the type cannot have.
    """
    try:
        return decode_operation({**_kept(params, kind), "name": name, "operation-type": kind})
    except msgspec.ValidationError as err:
        raise PluginError(
            f"the parameter source of operation '{name}' gave what no {kind} operation can have: {err}"
        ) from err


_MATCHING = ("template", "delete-matching-indices", "index-pattern")
_LISTED = {
    "create-index": ("indices", ("index", "body")),
    "delete-index": ("indices", ("index",)),
    **dict.fromkeys(("create-data-stream", "delete-data-stream"), ("data-streams", ("data-stream",))),
    **{f"create-{kind}-template": ("templates", ("template", "body")) for kind in _TEMPLATES},
    **{f"delete-{kind}-template": ("templates", _MATCHING) for kind in _TEMPLATES},
}
"""Operation type -> what Rally's own sources list for it, and the keys that each entry stands for."""


def _listed(params: Mapping[str, Any], kind: str) -> list[dict[str, Any]] | None:
    """Parameters of each of the things that Rally does in one operation; None where nothing is listed."""
    key, names = _LISTED.get(kind, ("", ()))
    if not isinstance(params.get(key), list):
        return None
    rest = {name: value for name, value in params.items() if name != key}
    entries = [one if isinstance(one, list) else [one] for one in params[key]]
    return [{**rest, **dict(zip(names, one, strict=False))} for one in entries]


def _in_turn(programs: Iterable[Program]) -> Script:
    """Operations one after the other, as one; it ends with the first that fails."""
    answer = Answer(Outcome.OK)
    for program in programs:
        made = program()
        if isinstance(made, Request):
            answer = (yield from ask(made)).answer
        elif made is not None:
            answer = (yield from made) or answer
        if answer.outcome is not Outcome.OK:
            break
    return answer


def _kept(params: Mapping[str, Any], kind: str) -> dict[str, Any]:
    """What of the parameters means something to a type, in the form that tracks give it in."""
    known = _known_keys(kind)
    kept = {
        key: ",".join(map(str, value)) if key in _LISTS and isinstance(value, list) else value
        for key, value in params.items()
        if key in known and value is not None and value != ""
    }
    if isinstance(kept.get("requests"), list):
        kept["requests"] = [_kept_step(step) for step in kept["requests"]]
    return kept


def _kept_step(step: Any) -> Any:  # noqa: ANN401 - any JSON
    """A part of a composite: a stream of such parts, or an operation."""
    if not isinstance(step, dict):
        return step
    if isinstance(step.get("stream"), list):
        return {"stream": [_kept_step(inner) for inner in step["stream"]]}
    kind = step.get("operation-type")
    if kind not in OPERATION_TYPES:
        return step
    return {**_kept(step, kind), **{key: step[key] for key in _OURS if key in step}}


@cache
def _known_keys(kind: str) -> frozenset[str]:
    return frozenset(encoded_names(OPERATION_TYPES[kind])) - _OURS


def bulk_body(body: object) -> tuple[bytes, int]:
    """A body as it goes out, and how many lines it has."""
    if isinstance(body, bytes | str):
        raw = body.encode() if isinstance(body, str) else body
        whole = raw if raw.endswith(b"\n") else raw + b"\n"
        return whole, whole.count(b"\n")
    if not isinstance(body, Iterable) or isinstance(body, Mapping):
        raise PluginError(f"a bulk body of {type(body).__name__}: text, bytes or a list of lines is needed")
    lines = [_line(one) for one in body]
    return b"\n".join(lines) + b"\n", len(lines)


def _line(line: object) -> bytes:
    if isinstance(line, str):
        return line.rstrip("\n").encode()
    return line.rstrip(b"\n") if isinstance(line, bytes) else _encoded(line)


def _encoded(value: object) -> bytes:
    try:
        encoded = msgspec.json.encode(value, enc_hook=_plain)
    except (TypeError, ValueError, RecursionError) as err:
        raise PluginError(f"a parameter source gave what is no JSON: {err}") from err
    # What is not finite is written as null, and would ask something else.
    if b"null" in encoded and not _is_finite(value):
        raise PluginError("a parameter source gave what is no JSON: a number that is not finite")
    return encoded


def _is_finite(value: object) -> bool:
    """Whether all numbers in it are."""
    if isinstance(value, float | np.floating):
        return math.isfinite(value)
    if isinstance(value, np.ndarray):
        return value.dtype.kind != "f" or bool(np.isfinite(value).all())
    if isinstance(value, Mapping):
        return all(map(_is_finite, value.values()))
    return not isinstance(value, list | tuple | set | frozenset) or all(map(_is_finite, value))


def _plain(value: object) -> object:
    """Plug-ins compute with numpy."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        return value.tolist()
    raise TypeError(f"an object of type {type(value).__name__}")
