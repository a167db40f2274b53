"""What operations share as work: addresses, retries, assertions, refusals."""

import operator
import sys
from collections.abc import Callable, Generator, Mapping, Sequence
from http import HTTPStatus
from typing import Any
from urllib.parse import urlencode

import msgspec

from benchctl.errors import BenchctlError
from benchctl.load.request import Answer, Judge, Request, accepting
from benchctl.load.workload import Item, Numbered, Program, Reply, Script, Workload, WorkOrder
from benchctl.results.samples import Outcome
from benchctl.track.operations.common import Assertion, Cannot, Form, Operation, Retried, url_param

DEFAULT_TIMEOUT_S = 60.0
# Merging or restoring an index takes as long as it takes, and its time is what is measured.
LONG_TIMEOUT_S = 4 * 3600.0
JSON = "application/json"
NDJSON = "application/x-ndjson"


class Envelope:
    """Makes the requests of one operation.

    Args:
        operation: whose headers, deadline and retries they get.
        content_type: of their bodies.
        timeout_s: when the operation does not say.
        headers: further ones; the operation's own come before them.
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
        # Names of headers are the same in any case.
        own = {name.lower() for name in operation.headers}
        kept = {name: value for name, value in chosen.items() if name.lower() not in own}
        self._headers = tuple(f"{name}: {value}" for name, value in {**kept, **operation.headers}.items())

    def request(
        self,
        method: str,
        path: str,
        body: bytes = b"",
        *,
        judge: Judge,
        params: Mapping[str, str] | None = None,
        searches: int = 0,
        weight: int = 1,
    ) -> Request:
        """One request.

        Args:
            method: of HTTP.
            path: percent-encoded; it may have a query already.
            body: encoded.
            judge: reads its answer.
            params: more of the query, not yet encoded.
            searches: by how much the node's own count of searches grows.
            weight: units of throughput that it is worth.
        """
        if params:
            path = f"{path}{'&' if '?' in path else '?'}{urlencode(params)}"
        return Request(
            method=method,
            path=path,
            body=body,
            headers=self._headers,
            timeout_s=self._timeout_s,
            judge=accepting(judge, self._accepted),
            searches=searches,
            weight=weight,
            retries=self._retries,
        )


def with_body(request: Request, body: bytes) -> Request:
    """The same request with another body; spelt out, since it is made for every single one that is sent."""
    return Request(
        request.method,
        request.path,
        body,
        request.headers,
        request.timeout_s,
        request.judge,
        request.searches,
        request.weight,
        request.retries,
    )


def own_query(operation: Operation, form: Form) -> dict[str, str]:
    """What an operation's own keys say in the query of its request."""
    said = {name: getattr(operation, name) for name in (*form.query, *form.flags)}
    # A number says something even where it is 0.
    return {
        name: url_param(value)
        for name, value in said.items()
        if value or type(value) is int or name in form.flags
    }


# Operations that are tried again: how often, after which pauses, and what is worth another try.

# An answer came and it was not the wanted one. What a node refuses, it refuses again.
_WRONG = frozenset({Outcome.BAD_BODY, Outcome.PARTIAL})


def with_retries(operation: Retried, workload: Workload) -> Workload:
    """The same work, done again as the operation says; as it is when the operation says nothing."""
    if not operation.retry_until_success and not operation.retries:
        return workload
    return _Again(operation, workload)


class _Again:
    """Work whose operations are scripts of several tries.

    Every request that got an answer is kept as a success: only the operation as a whole says how it ended.
    """

    def __init__(self, operation: Retried, workload: Workload) -> None:
        self.endless = workload.endless
        self.connections = workload.connections
        self._operation = operation
        self._workload = workload

    def program(self, client: int) -> Program:
        """What one client asks."""
        inner = self._workload.program(client)

        def again() -> Script | None:
            first = inner()
            return None if first is None else self._tries(first, inner)

        return again

    def close(self) -> None:
        """Let go of what the work holds."""
        self._workload.close()

    def _tries(self, made: Request | Script, inner: Program) -> Script:
        operation = self._operation
        left = sys.maxsize if operation.retry_until_success else operation.retries
        while True:
            status, answer = yield from _leniently(made)
            if answer.outcome is Outcome.OK or not left or not self._is_worth_it(status, answer):
                return answer
            left -= 1
            yield operation.retry_wait_period
            following = inner()
            if following is None:
                return answer
            made = following

    def _is_worth_it(self, status: int, answer: Answer) -> bool:
        if answer.outcome is Outcome.TIMEOUT or status == HTTPStatus.REQUEST_TIMEOUT:
            return self._operation.retry_on_timeout or self._operation.retry_until_success
        wanted = self._operation.retry_on_error or self._operation.retry_until_success
        return wanted and answer.outcome in _WRONG


def _leniently(
    made: Request | Script,
) -> Generator[Item, Reply | None, tuple[int, Answer]]:
    """Do an operation, and say how it ended, with the status of its last request."""
    if isinstance(made, Request):
        reply = yield from _send(made)
        return reply.exchange.status, reply.answer
    status, last = 0, Answer(Outcome.OK)
    reply_to: Reply | None = None
    while True:
        try:
            item = made.send(reply_to)
        except StopIteration as end:
            return status, end.value or last
        if isinstance(item, Request):
            reply_to = yield from _send(item)
            status, last = reply_to.exchange.status, reply_to.answer
        else:
            reply_to = yield item


def _send(request: Request) -> Generator[Item, Reply | None, Reply]:
    """Send a request that is kept as a success whatever is answered, and judge it all the same."""
    reply = yield msgspec.structs.replace(request, judge=_any_answer)
    if reply is None:
        raise TypeError("a request of a script was not replied to")
    if reply.exchange.failure is not None:
        return reply
    return Reply(reply.exchange, request.judge(reply.exchange.status, reply.exchange.body))


def _any_answer(_status: int, _body: bytes) -> Answer:
    return Answer(Outcome.OK)


# Assertions of a track: an answer that is not what the track's author expected has failed.

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
    """The same work, whose answers have to be as the operation says; as it is when it says nothing.

    Raises:
        BenchctlError: an assertion is about something that is not known of answers.
    """
    if not operation.assertions:
        return workload
    for assertion in operation.assertions:
        if assertion.property not in _PROPERTIES:
            raise BenchctlError(
                f"operation '{operation.name}' asserts something of '{assertion.property}'",
                hint=f"benchctl knows of an answer: {', '.join(_PROPERTIES)}",
            )
    return _Asserted(operation.assertions, workload)


class _Asserted:
    """Work whose answers are looked at once more."""

    def __init__(self, assertions: Sequence[Assertion], workload: Workload) -> None:
        self.endless = workload.endless
        self.connections = workload.connections
        self._assertions = assertions
        self._workload = workload

    def program(self, client: int) -> Program:
        """What one client asks."""
        inner = self._workload.program(client)
        # A request that is the same every time stays so: the wire need not load it again.
        known: dict[int, tuple[Request, Request]] = {}

        def next_one() -> Request | Script | None:
            made = inner()
            if made is None:
                return None
            if not isinstance(made, Request):
                return self._script(made)
            before = known.get(id(made))
            if before is None or before[0] is not made:
                known.clear()
                before = (made, msgspec.structs.replace(made, judge=self._judge(made.judge)))
                known[id(made)] = before
            return before[1]

        return next_one

    def close(self) -> None:
        """Let go of what the work holds."""
        self._workload.close()

    def _script(self, made: Script) -> Script:
        answer = yield from made
        return None if answer is None else self._checked(answer)

    def _judge(self, judge: Judge) -> Judge:
        return lambda status, body: self._checked(judge(status, body))

    def _checked(self, answer: Answer) -> Answer:
        if answer.outcome is not Outcome.OK:
            return answer
        for one in self._assertions:
            found = _PROPERTIES[one.property](answer)
            if not _holds(found, one):
                reason = f"expected {one.property} {one.condition} {one.value}, and it is {found}"
                return msgspec.structs.replace(answer, outcome=Outcome.BAD_BODY, reason=reason)
        return answer


def _holds(found: object, assertion: Assertion) -> bool:
    try:
        return _COMPARE[assertion.condition](found, assertion.value)
    except TypeError:
        # What is not known is neither more nor less than anything.
        return False


# Operations that benchctl cannot ask whatever the node is: their tasks are unsupported, and say why.


def open_cannot(operation: Cannot, order: WorkOrder) -> Workload:
    """What its type says."""
    return cannot(operation.reason, order)


def cannot(reason: str, order: WorkOrder) -> Workload:
    """Work of which nothing is sent.

    Args:
        reason: why not, as tables show it.
        order: for whom.
    """
    return Numbered(lambda _number: lacking(reason), order.clients)


def lacking(reason: str) -> Script:
    """One operation of which nothing is sent, for a reason."""
    yield from ()
    return Answer(Outcome.HTTP_ERROR, reason=reason, lacking=reason)
