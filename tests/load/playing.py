"""Plays scripts by hand: every request is answered by a function, pauses cost no time."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from benchctl.load.client import first_failure
from benchctl.load.transport import Answer, Exchange, Request
from benchctl.load.work import (
    Reply,
    Script,
    Together,
    WorkContext,
    Workload,
)
from benchctl.load.work.openers import open_workload
from benchctl.results.samples import Outcome
from benchctl.track.operations.catalogue import decode_operation

CONTEXT = WorkContext("big5", seed=7)

Node = Callable[[Request], tuple[int, Any]]
"""Answers a request with status and body, which is encoded unless it is bytes."""


@dataclass
class Played:
    """What a script did.

    Attributes:
        requests: in order.
        pauses: seconds, in order.
        answer: of the whole; None where the script leaves it to its last reply.
    """

    requests: list[Request]
    pauses: list[float]
    answer: Answer | None

    @property
    def bodies(self) -> list[Any]:
        """Decoded; None for empty ones."""
        return [msgspec.json.decode(request.body) if request.body else None for request in self.requests]

    @property
    def lines(self) -> list[str]:
        """Method and path."""
        return [f"{request.method} {request.path}" for request in self.requests]


def workload(context: WorkContext = CONTEXT, clients: int = 1, **raw: Any) -> Workload:
    """An operation's; keys of the track with underscores for dashes, and two for one, except in values."""
    keys = {name.replace("__", "\0").replace("_", "-").replace("\0", "_"): raw[name] for name in raw}
    return open_workload(decode_operation({"name": "x", **keys}), context, clients=clients, key="task")


def request_of(context: WorkContext = CONTEXT, **raw: Any) -> Request:
    """The request of an operation that has a single one."""
    made = workload(context, **raw).program(0)()
    assert isinstance(made, Request)
    return made


def play_operation(node: Node, context: WorkContext = CONTEXT, **raw: Any) -> Played:
    """Play the script of an operation's first client."""
    return play(scripted(workload(context, **raw).program(0)()), node)


def scripted(made: Request | Script | None) -> Script:
    """What a program made, which has to be a script."""
    assert made is not None
    assert not isinstance(made, Request)
    return made


def play(script: Script, node: Node) -> Played:
    """Play a script to its end."""
    played = Played([], [], None)
    reply: Reply | None = None
    try:
        while True:
            item = script.send(reply)
            if isinstance(item, Together):
                parts = [play(script, node) for script in item.scripts]
                played.requests += [request for part in parts for request in part.requests]
                played.pauses += [pause for part in parts for pause in part.pauses]
                answers = [part.answer or Answer(Outcome.OK) for part in parts]
                reply = Reply(Exchange(0, 0, 1, 0, b"", 0), first_failure(answers))
                continue
            if not isinstance(item, Request):
                played.pauses.append(item)
                reply = None
                continue
            played.requests.append(item)
            status, body = node(item)
            raw = body if isinstance(body, bytes) else msgspec.json.encode(body)
            exchange = Exchange(0, 0, 1, status, raw, len(raw))
            reply = Reply(exchange, item.judge(status, raw))
    except StopIteration as end:
        played.answer = end.value
    return played


def found(hits: list[Mapping[str, Any]], total: int, **more: Any) -> dict[str, Any]:
    """A search's answer."""
    return {
        "took": 2,
        "timed_out": False,
        "_shards": {"total": 1, "successful": 1, "skipped": 0, "failed": 0},
        "hits": {"total": {"value": total, "relation": "eq"}, "max_score": None, "hits": hits},
        **more,
    }


def outcome(played: Played) -> Outcome:
    """How the whole ended."""
    assert played.answer is not None
    return played.answer.outcome
