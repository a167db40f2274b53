"""Assertions of a track: an answer that is not what the track's author expected has failed."""

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from benchctl.errors import BenchctlError
from benchctl.load.request import Answer, Judge, Request
from benchctl.load.workload import Program, Script, Workload
from benchctl.results.samples import Outcome
from benchctl.track.operations.common import Assertion, Operation

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
