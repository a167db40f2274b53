"""Operations that are tried again: how often, after which pauses, and what is worth another try."""

import sys
from collections.abc import Generator
from http import HTTPStatus

import msgspec

from benchctl.load.request import Answer, Request
from benchctl.load.workload import Item, Program, Reply, Script, Workload
from benchctl.results.samples import Outcome
from benchctl.track.operations.common import Retried

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
