"""An operation of several requests as one sample: when it began and ended, and what came of it."""

from benchctl.load.request import Answer, Exchange
from benchctl.load.workload import Reply
from benchctl.results.samples import Outcome

CANCELLED = Answer(Outcome.CANCELLED)


class Whole:
    """An operation of several requests, put together from their replies.

    Args:
        began_ns: when it began, for one that sends nothing.

    Attributes:
        answer: the first that was not well, else the last.
    """

    def __init__(self, began_ns: int) -> None:
        self.answer = Answer(Outcome.OK)
        self._began_ns = began_ns
        self._replies: list[Reply] = []
        # Whose status and body speak for the whole: the first that failed, else the last.
        self._decisive: Exchange | None = None

    def add(self, reply: Reply) -> None:
        """One more of its requests."""
        self._replies.append(reply)
        if self.answer.outcome is Outcome.OK:
            self.answer = reply.answer
            self._decisive = reply.exchange

    def conclude(self, answer: Answer | None) -> None:
        """What the script says of the whole; by default its first failure, or its last reply."""
        if answer is not None and self.answer.outcome is Outcome.OK:
            self.answer = answer

    def cancel(self) -> None:
        """It was ended from outside."""
        self.answer = CANCELLED

    def exchange(self, now_ns: int) -> Exchange:
        """All of it as if it were one request, from the first one's start to the last one's end.

        Args:
            now_ns: the end of one that sent nothing.
        """
        if self._decisive is None:
            return Exchange(self._began_ns, 0, 0, now_ns, 0, b"", 0)
        parts = [reply.exchange for reply in self._replies]
        return Exchange(
            start_ns=parts[0].start_ns,
            connect_ns=sum(part.connect_ns for part in parts),
            first_byte_ns=parts[0].first_byte_ns,
            end_ns=max(part.end_ns for part in parts),
            status=self._decisive.status,
            body=self._decisive.body,
            response_bytes=sum(part.response_bytes for part in parts),
        )
