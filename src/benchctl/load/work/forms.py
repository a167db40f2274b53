"""Operations of a single request as rows of a table: method, path, body, query and judge."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any
from urllib.parse import quote

import msgspec

from benchctl.load.judge import accepting, judge_plain
from benchctl.load.request import Judge
from benchctl.load.work.envelope import DEFAULT_TIMEOUT_S, Envelope
from benchctl.load.workload import Repeated, Workload, WorkOrder
from benchctl.track.operations.common import Operation, url_param

_FIELD = re.compile(r"\{(\w+)\}")


def own_body(operation: Any) -> object:  # noqa: ANN401 - the classes share no base
    """The body that an operation brings along."""
    return operation.body


def said(*names: str) -> Callable[[Any], dict[str, str]]:
    """A query of those of an operation's fields that say something."""

    def params(operation: Any) -> dict[str, str]:  # noqa: ANN401 - the classes share no base
        return {name: url_param(value) for name in names if (value := getattr(operation, name))}

    return params


@dataclass(frozen=True)
class Form:
    """What the requests of one type of operation look like.

    Attributes:
        method: of HTTP.
        path: `{field}` stands for a field of the operation, `{index}` for its index or the track's.
        body: what is sent; None for nothing.
        params: of the query; the operation's own request parameters come before them. None for no others.
        judge: reads the answer.
        missing: whether a missing thing is no failure.
        timeout_s: when the operation does not say.
    """

    method: str
    path: str
    body: Callable[[Any], object] | None = None
    params: Callable[[Any], dict[str, str]] | None = None
    judge: Judge = judge_plain
    missing: bool = False
    timeout_s: float = DEFAULT_TIMEOUT_S

    def open(self, operation: Operation, order: WorkOrder) -> Workload:
        """The request of an operation; the same every time."""
        body = {} if self.body is None else self.body(operation)
        params = {} if self.params is None else self.params(operation)
        return Repeated(
            Envelope(operation, timeout_s=self.timeout_s).request(
                self.method,
                _FIELD.sub(lambda match: _field(operation, match[1], order), self.path),
                # No body and an empty one are the same to both engines, and fewer bytes.
                msgspec.json.encode(body) if body else b"",
                params={**params, **operation.url_params},
                judge=accepting(self.judge, {HTTPStatus.NOT_FOUND} if self.missing else ()),
            )
        )


def _field(operation: Operation, name: str, order: WorkOrder) -> str:
    if name == "index":
        return order.index(getattr(operation, "target", None))
    return quote(getattr(operation, name), safe=",*")
