"""Runs operations against a real node as a client of a task does, and checks what the node counts."""

from collections.abc import Iterator, Mapping
from typing import Any

from benchctl.engine.node import Node
from benchctl.load.client import first_failure
from benchctl.load.transport import Answer, Exchange, Request, WireClient
from benchctl.load.work import (
    Driven,
    Reply,
    Script,
    Together,
    WorkContext,
)
from benchctl.load.work.judges import is_unsupported
from benchctl.load.work.openers import open_workload
from benchctl.results.plan import EngineName
from benchctl.results.samples import Outcome
from benchctl.track.model import Template
from benchctl.track.operations.catalogue import decode_operation

DOCUMENTS = 40
INDEX = "shelf"
BODY: Mapping[str, Any] = {
    "settings": {"index": {"number_of_shards": 1, "number_of_replicas": 0}},
    "mappings": {"properties": {"n": {"type": "long"}, "k": {"type": "keyword"}, "in": {"type": "nested"}}},
}
# Time is what `n` counts here.
STREAM = {
    "index_patterns": ["shelves-*"],
    "data_stream": {"timestamp_field": {"name": "n"}},
    "template": {"mappings": {"properties": {"n": {"type": "date"}}}},
}
TEMPLATES = (
    Template("streams", "composable", STREAM),
    Template("trays", "composable", {"index_patterns": ["trays-*"], "template": {}}, "trays-*"),
    Template("part", "component", {"template": {}}),
    Template("old", "index", {"index_patterns": ["old-*"]}, "old-*"),
)
OK, UNSUPPORTED = "ok", "unsupported"


def documents() -> Iterator[bytes]:
    """A corpus."""
    for number in range(DOCUMENTS):
        yield b'{"n":%d,"k":"k%d","in":{"n":%d}}\n' % (number, number % 7, number)


class Driver:
    """Runs operations over the measured wire client, as a client of a task does, without its clocks."""

    def __init__(self, node: Node, wire: WireClient, engine: EngineName) -> None:
        self.node = node
        self.wire = wire
        self.context = WorkContext(
            INDEX,
            BODY,
            7,
            documents,
            DOCUMENTS,
            engine,
            {INDEX: BODY},
            data_streams=("shelves-x",),
            templates=TEMPLATES,
            version=node.version,
        )
        self.replies: list[Reply] = []
        self.searches = 0
        self.types: set[str] = set()

    def run(self, kind: str, expected: str = OK, **raw: Any) -> Answer:
        """Run an operation once, or a corpus to its end; check how it ends and what the node counts."""
        keys = {name.replace("__", "\0").replace("_", "-").replace("\0", "_"): raw[name] for name in raw}
        operation = decode_operation({"name": kind, "operation-type": kind, **keys})
        self._note(keys | {"operation-type": kind})
        self.replies, self.searches = [], 0
        before = self.node.client.node_search_count()
        workload = open_workload(operation, self.context, clients=1, key=kind)
        program = workload.program(0)
        answer = Answer(Outcome.OK)
        while (made := program()) is not None:
            answer = self._ask(made).answer if isinstance(made, Request) else self._follow(made)
            if workload.endless or expected == UNSUPPORTED:  # the first refusal ends a task, too
                break
        workload.close()
        last = self.replies[-1].exchange if self.replies else None
        if expected == UNSUPPORTED:
            lacks = answer.lacking or (last is not None and is_unsupported(last.status, last.body))
            assert lacks, (kind, last)
            return answer
        assert answer.outcome is Outcome.OK, (kind, answer)
        assert all(reply.answer.outcome is Outcome.OK for reply in self.replies), (kind, self.replies)
        assert self.node.client.node_search_count() - before == self.searches, kind
        return answer

    def _note(self, raw: Mapping[str, Any]) -> None:
        """Which types were asked, those within a composite included."""
        if "operation-type" in raw:
            self.types.add(raw["operation-type"])
        for step in [*raw.get("requests", ()), *raw.get("stream", ())]:
            self._note(step)

    def _ask(self, request: Request) -> Reply:
        exchange = self.wire.send(request)
        assert exchange.failure is None, exchange
        self.searches += request.searches
        reply = Reply(exchange, request.judge(exchange.status, exchange.body))
        self.replies.append(reply)
        return reply

    def _follow(self, script: Script) -> Answer:
        reply: Reply | None = None
        try:
            while True:
                item = script.send(reply)
                if isinstance(item, Together):
                    # One after the other: that they run beside each other is for the unit tests.
                    answers = [self._follow(one) for one in item.scripts]
                    reply = Reply(Exchange(0, 0, 0, 0, b"", 0), first_failure(answers))
                elif isinstance(item, Driven):
                    item.run(self._ask, lambda: False)
                else:
                    reply = self._ask(item) if isinstance(item, Request) else None
        except StopIteration as end:
            return end.value or self.replies[-1].answer

    @property
    def last(self) -> bytes:
        return self.replies[-1].exchange.body
