"""Threads that send bulk bodies, a connection each: one body after the other, stopped at once or in peace."""

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from queue import Queue
from types import TracebackType
from typing import Self
from urllib.parse import quote

from benchctl.corpus.ranges import Range
from benchctl.errors import BenchctlError
from benchctl.load.judge import judge_bulk
from benchctl.load.request import Request
from benchctl.load.transport import MeasuredClient
from benchctl.results.samples import Outcome

# Bodies framed ahead of the senders: enough to hide the reader, few enough to bound memory.
BODIES_AHEAD = 4
BULK_TIMEOUT_S = 300.0
# An answer names every document, a fifth as many bytes again; only those that were refused matter here.
_ANSWERED = "took,errors,items.*.error"


@dataclass(frozen=True)
class Body:
    """Documents to send.

    Attributes:
        target: the index or data stream that they go to; empty when their own lines say so.
        documents: how many.
        payload: what is sent.
        ranges: their numbers, where somebody wants to know them.
    """

    target: str
    documents: int
    payload: bytes
    ranges: tuple[Range, ...] = ()


class Senders:
    """As many threads as there are connections; a context manager that leaves none of them behind.

    Args:
        wires: one for each thread, which closes it.
        on_acknowledged: told of every body that the node took, in any order, by its sender.
    """

    def __init__(self, wires: Sequence[MeasuredClient], on_acknowledged: Callable[[Body], None]) -> None:
        self._wires = wires
        self._on_acknowledged = on_acknowledged
        self._waiting: Queue[Body | None] = Queue(maxsize=len(wires) + BODIES_AHEAD)
        self._threads = [threading.Thread(target=self._send_all, args=(wire,), daemon=True) for wire in wires]
        # Guards the three below, and tells of changes to them.
        self._changed = threading.Condition()
        self._failure: BaseException | None = None
        self._unanswered = 0
        self._in_flight = 0

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._in_flight:
            # Whoever pressed Ctrl-C does not wait for the answer of a node that hangs.
            for wire in self._wires:
                wire.interrupt()
        for _ in self._threads:
            self._waiting.put(None)
        for thread in self._threads:
            thread.join()

    def put(self, body: Body) -> None:
        """Give the next body to the next free sender, as soon as there is room for it.

        Raises:
            BaseException: what an earlier body failed of.
        """
        with self._changed:
            self._raise_failure()
            self._unanswered += 1
        self._waiting.put(body)

    def wait_answered(self) -> None:
        """Wait until every body that was put is answered.

        Raises:
            BaseException: what one of them failed of.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._unanswered == 0 or self._failure is not None)
            self._raise_failure()

    def stop(self, reason: BaseException) -> None:
        """Send nothing more; what is in flight goes on."""
        with self._changed:
            self._failure = self._failure or reason

    def wait_stopped(self, timeout_s: float) -> bool:
        """After `stop`, wait until nothing is in flight; False when that takes longer.

        Bodies that wait are not counted: an interrupt may have come between counting and queueing one.
        """
        with self._changed:
            return self._changed.wait_for(lambda: self._in_flight == 0, timeout_s)

    def _raise_failure(self) -> None:
        if self._failure is not None:
            raise self._failure

    def _send_all(self, client: MeasuredClient) -> None:
        """Take bodies until the end mark; after a failure keep taking, so that the reader never blocks."""
        with client:
            while (body := self._waiting.get()) is not None:
                if not self._begin():
                    continue
                failure: Exception | None = None
                try:
                    _send(client, body)
                    self._on_acknowledged(body)
                except Exception as err:  # noqa: BLE001 - whatever it is, the caller raises it
                    failure = err
                self._end(failure)

    def _begin(self) -> bool:
        with self._changed:
            if self._failure is None:
                self._in_flight += 1
            return self._failure is None

    def _end(self, failure: Exception | None) -> None:
        with self._changed:
            self._failure = self._failure or failure
            self._in_flight -= 1
            self._unanswered -= 1
            self._changed.notify_all()


def _send(client: MeasuredClient, body: Body) -> None:
    target = f"/{quote(body.target)}" if body.target else ""
    request = Request(
        method="POST",
        path=f"{target}/_bulk?filter_path={_ANSWERED}",
        body=body.payload,
        headers=("Content-Type: application/x-ndjson",),
        timeout_s=BULK_TIMEOUT_S,
        judge=judge_bulk,
    )
    exchange = client.send(request)
    if exchange.failure is not None:
        raise BenchctlError(
            f"a bulk request of the ingest got no whole answer "
            f"({exchange.failure.name.lower()}): {exchange.detail}",
            hint="the node's log says why",
        )
    answer = request.judge(exchange.status, exchange.body)
    if answer.outcome is not Outcome.OK:
        raise BenchctlError(f"the node refused a bulk request: {answer.reason}")
