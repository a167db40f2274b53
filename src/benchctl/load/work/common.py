"""Shared work of operations: headers and deadlines, retries, assertions, refusals."""

import operator
import sys
from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from dataclasses import replace
from http import HTTPStatus
from itertools import count
from typing import Any
from urllib.parse import urlencode

import msgspec

from benchctl.errors import BenchctlError
from benchctl.load.forms import answerable, judge_of
from benchctl.load.request import UNDECODABLE, Answer, Judge, Request, accepting, shorten
from benchctl.load.workload import (
    Item,
    Program,
    Reply,
    Script,
    Workload,
    WorkOrder,
    ask,
    follow,
    scripted,
)
from benchctl.results.samples import Outcome
from benchctl.track.operations.common import Assertion, Cannot, Form, Operation, Retried, url_param

DEFAULT_TIMEOUT_S = 60.0
# Merging or restoring an index takes as long as it takes, and its time is what is measured.
LONG_TIMEOUT_S = 4 * 3600.0
JSON = "application/json"
NDJSON = "application/x-ndjson"


class Envelope:
    """Makes the requests of one operation, with its headers, deadline and retries.

    `timeout_s` applies when the operation sets no deadline; the operation's own headers override `headers`.
    """

    def __init__(
        self,
        operation: Operation,
        *,
        content_type: str = JSON,
        timeout_s: float = DEFAULT_TIMEOUT_S,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self._timeout_s = timeout_s if operation.deadline_s is None else operation.deadline_s
        self._accepted = operation.accepted
        self._retries = operation.retry_on_429
        chosen = {"Content-Type": content_type, "Accept": JSON, **(headers or {})}
        if operation.opaque_id is not None:
            chosen["X-Opaque-Id"] = operation.opaque_id
        # Header names are case-insensitive.
        own = {name.lower() for name in operation.headers}
        kept = {name: value for name, value in chosen.items() if name.lower() not in own}
        self._headers = tuple(f"{name}: {value}" for name, value in {**kept, **operation.headers}.items())

    def request(
        self,
        method: str,
        path: str,
        body: bytes = b"",
        *,
        judge: Judge | None = None,
        reads: Collection[str] = (),
        params: Mapping[str, str] | None = None,
        accepted: Collection[int] = (),
        searches: int = 0,
        weight: int = 1,
    ) -> Request:
        """Return one request.

        `path` is percent-encoded and may have a query, to which `params` are added. `judge` is by default
        that of the path, to which statuses of `accepted` are like 200; `reads` are further fields of the
        response that the operation needs. `searches` is by how much the node's own count of searches grows,
        `weight` the units of throughput.
        """
        if params:
            path = f"{path}{'&' if '?' in path else '?'}{urlencode(params)}"
        return Request(
            method=method,
            path=answerable(method, path, reads),
            body=body,
            headers=self._headers,
            timeout_s=self._timeout_s,
            judge=accepting(judge or judge_of(method, path), {*self._accepted, *accepted}),
            searches=searches,
            weight=weight,
            retries=self._retries,
        )


def with_body(request: Request, body: bytes, weight: int | None = None) -> Request:
    """Return the same request with another body and weight; spelt out, since it runs for every request."""
    return Request(
        request.method,
        request.path,
        body,
        request.headers,
        request.timeout_s,
        request.judge,
        request.searches,
        request.weight if weight is None else weight,
        request.retries,
    )


def own_query(operation: Operation, form: Form) -> dict[str, str]:
    """Return the query parameters that an operation's own keys amount to."""
    said = {name: getattr(operation, name) for name in (*form.query, *form.flags)}
    # 0 is a value, unlike other false ones.
    return {
        name: url_param(value)
        for name, value in said.items()
        if value or type(value) is int or name in form.flags
    }


Verdict = Callable[[Reply], Answer | None]
"""Good response -> the operation's answer; None: ask again."""

_STILL = Answer(Outcome.TIMEOUT, reason="still not done")


def poll(
    question: Request, verdict: Verdict, period_s: float, tries: int | None = None, late: Answer = _STILL
) -> Script:
    """Ask every `period_s` seconds until there is a verdict, the question fails, or no try is left."""
    for number in count(1):
        reply = yield from ask(question)
        if reply.answer.outcome is not Outcome.OK:
            return reply.answer
        try:
            found = verdict(reply)
        except UNDECODABLE as err:
            return Answer(Outcome.BAD_BODY, reason=shorten(f"it does not say how far it is: {err}"))
        if found is not None:
            return found
        if number == tries:
            break
        yield period_s
    return late


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

        def again() -> Script | None:
            first = inner()
            return None if first is None else _tries(operation, first, inner)

        return again

    return replace(workload, program=program)


def _tries(operation: Retried, work: Request | Script, inner: Program) -> Script:
    left = sys.maxsize if operation.retry_until_success else operation.retries
    while True:
        last: Reply | None = None

        def send(request: Request) -> Generator[Item, Reply | None, Reply]:
            nonlocal last
            last = yield from _send(request)
            return last

        answer = (yield from follow(work, send)) or (Answer(Outcome.OK) if last is None else last.answer)
        status = 0 if last is None else last.exchange.status
        if answer.outcome is Outcome.OK or not left or not _is_worth_it(operation, status, answer):
            return answer
        left -= 1
        yield operation.retry_wait_period
        following = inner()
        if following is None:
            return answer
        work = following


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
"""What is known of every answer, by Rally's names."""


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
                f"operation '{operation.name}' asserts something of '{assertion.property}'",
                hint=f"benchctl knows of an answer: {', '.join(_PROPERTIES)}",
            )

    def judged(judge: Judge) -> Judge:
        return lambda status, body: _checked(operation.assertions, judge(status, body))

    def script(work: Script) -> Script:
        answer = yield from work
        return None if answer is None else _checked(operation.assertions, answer)

    def program(client: int) -> Program:
        inner = workload.program(client)
        # The same request stays the same object: the wire need not load it again.
        before: tuple[Request, Request] | None = None

        def next_one() -> Request | Script | None:
            nonlocal before
            work = inner()
            if not isinstance(work, Request):
                return None if work is None else script(work)
            if before is None or before[0] is not work:
                before = (work, msgspec.structs.replace(work, judge=judged(work.judge)))
            return before[1]

        return next_one

    return replace(workload, program=program)


def _checked(assertions: Sequence[Assertion], answer: Answer) -> Answer:
    if answer.outcome is not Outcome.OK:
        return answer
    for one in assertions:
        found = _PROPERTIES[one.property](answer)
        if not _holds(found, one):
            reason = f"expected {one.property} {one.condition} {one.value}, and it is {found}"
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


def cannot(reason: str) -> Workload:
    """Return a workload that sends nothing, for the reason that tables show; the first refusal ends it."""
    return scripted(lambda: lacking(reason), endless=False)


def lacking(reason: str) -> Script:
    """Return an operation that sends nothing, for this reason."""
    yield from ()
    return Answer(Outcome.HTTP_ERROR, reason=reason, lacking=reason)
