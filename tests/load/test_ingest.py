"""Filling an index: all is sent once, the first refusal ends it, and nobody waits for a hanging node."""

import json
import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from benchctl.corpus.bulk import merged
from benchctl.errors import BenchctlError
from benchctl.load.ingest import BODIES_AHEAD, Checkpoints, Cuts, Ingested, ingest
from benchctl.results.plan import EngineName
from loopback import KeepingHandler, LoopbackServer
from waiting import eventually

GOOD = json.dumps({"took": 1, "errors": False, "items": [{"index": {"status": 201}}]}).encode()
REFUSED = json.dumps(
    {
        "errors": True,
        "items": [{"index": {"status": 201}}, {"index": {"status": 429, "error": {"type": "full"}}}],
    }
).encode()


class BulkServer(LoopbackServer):
    """Answers every bulk request alike and keeps the bodies; those to be held are answered when released."""

    def __init__(self, status: int, answer: bytes) -> None:
        super().__init__(("127.0.0.1", 0), BulkHandler)
        self.status = status
        self.answer = answer
        self.bodies: list[bytes] = []
        self.paths: list[str] = []
        self.answered = 0
        self.held = b"none of them"
        self.refused = b"none of them"
        self.released = threading.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class BulkHandler(KeepingHandler):
    server: BulkServer

    def respond(self) -> None:
        body = self.sent()
        self.server.bodies.append(body)
        self.server.paths.append(self.path.partition("?")[0])
        if body == self.server.held:
            self.server.released.wait()
        answer = REFUSED if body == self.server.refused else self.server.answer
        self.server.answered += 1
        headers = {"Content-Type": "application/json", "X-Elastic-Product": "Elasticsearch"}
        self.answer(self.server.status, answer, headers)


@pytest.fixture
def bulk_server(request: pytest.FixtureRequest) -> Iterator[BulkServer]:
    status, answer = getattr(request, "param", (200, GOOD))
    with BulkServer(status, answer) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server
        server.released.set()
        server.shutdown()
        thread.join()


def bodies(count: int) -> Iterator[tuple[int, bytes]]:
    for number in range(count):
        yield 10, f"body {number}\n".encode()


def test_every_body_is_sent_once_and_counted(bulk_server: BulkServer):
    told: list[int] = []
    done = ingest([("i", bodies(50))], endpoint=bulk_server.url, clients=3, on_progress=told.append)
    assert sorted(bulk_server.bodies) == sorted(body for _, body in bodies(50))
    assert done.documents == 500
    assert done.body_bytes == sum(len(body) for _, body in bodies(50))
    assert told == list(range(10, 501, 10))
    assert done.took_s == pytest.approx(0.05)
    assert 0 < done.answered_s < 3 * (done.seconds + 0.01)
    assert 0 < done.client_s < done.seconds


@pytest.mark.parametrize(
    ("bulk_server", "said"),
    [((200, REFUSED), "1 documents were refused.*full"), ((503, b"busy"), "HTTP 503.*busy")],
    indirect=["bulk_server"],
)
def test_the_first_refusal_ends_it(bulk_server: BulkServer, said: str):
    with pytest.raises(BenchctlError, match=said):
        ingest([("i", bodies(5000))], endpoint=bulk_server.url, clients=2, on_progress=lambda _: None)
    assert len(bulk_server.bodies) < 5000


ROWS = b'{"index":{}}\n{"n":1}\n{"index":{"_id":"7"}}\n{"n":2.5}\n'
HELPED = (200, b'{"took":40,"errors":false,"items":[{"index":{"status":201}},{"index":{"status":201}}]}')
REFUSED_ROW = b'{"took":4,"errors":true,"items":[{"index":{"status":429,"error":{"type":"full"}}}]}'
engines = pytest.mark.parametrize("engine", ["elasticsearch", "opensearch"])


@engines
@pytest.mark.parametrize("bulk_server", [HELPED], indirect=True)
def test_bulk_helpers_send_the_same_documents_with_times_of_their_own(
    engine: EngineName, bulk_server: BulkServer
):
    streams = [("a b", iter(8 * [(2, ROWS)])), ("", iter(2 * [(2, ROWS)]))]
    done = ingest(streams, endpoint=bulk_server.url, clients=2, helper=engine, on_progress=lambda _: None)
    assert sorted(bulk_server.paths) == [*2 * ["/_bulk"], *8 * ["/a%20b/_bulk"]]
    assert {tuple(map(json.loads, body.splitlines())) == ROW_OBJECTS for body in bulk_server.bodies} == {True}
    assert (done.documents, done.took_s) == (20, pytest.approx(0.4))
    assert 0 < done.client_s < 2 * done.seconds
    assert 0 < done.answered_s < 2 * done.seconds


ROW_OBJECTS = tuple(map(json.loads, ROWS.splitlines()))


@engines
@pytest.mark.parametrize("bulk_server", [(200, REFUSED_ROW), (503, b'{"error": "full"}')], indirect=True)
def test_what_a_bulk_helper_is_refused_ends_it(engine: EngineName, bulk_server: BulkServer):
    with pytest.raises(BenchctlError, match=r"a bulk request of the ingest failed: .*"):
        ingest(
            [("i", iter(90 * [(2, ROWS)]))],
            endpoint=bulk_server.url,
            clients=1,
            helper=engine,
            on_progress=lambda _: None,
        )
    assert len(bulk_server.bodies) == 1


def test_a_node_that_is_gone_is_an_error():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    with pytest.raises(BenchctlError, match=r"a bulk request of the ingest got no whole answer \(refused\)"):
        ingest([("i", bodies(5))], endpoint=url, clients=2, on_progress=lambda _: None)


@pytest.mark.parametrize("helper", [None, "elasticsearch", "opensearch"])
def test_an_interrupt_does_not_wait_for_a_node_that_hangs(helper: EngineName | None):
    with socket.create_server(("127.0.0.1", 0)) as listener, ExitStack() as still_open:

        def interrupted() -> Iterator[tuple[int, bytes]]:
            yield 2, ROWS
            connection, _ = listener.accept()
            still_open.enter_context(connection)
            connection.recv(1)
            raise KeyboardInterrupt

        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        begun = time.monotonic()
        with pytest.raises(KeyboardInterrupt):
            ingest([("i", interrupted())], endpoint=url, clients=2, helper=helper, on_progress=lambda _: None)
    assert time.monotonic() - begun < 20


class Shelf:
    """Keeps what is put by, and how many bodies the server had answered by then."""

    def __init__(self, server: BulkServer | None = None) -> None:
        self._server = server
        self.kept: list[Ingested] = []
        self.answered: list[int] = []

    def __call__(self, done: Ingested) -> None:
        self.kept.append(done)
        if self._server is not None:
            self.answered.append(self._server.answered)

    def checkpoints(self, **changes: Any) -> Checkpoints:
        usual = {"missing": [(0, 10_000)], "every_bytes": 10**9, "after_s": 0.0}
        return Checkpoints(self, **{**usual, **changes})


def interrupted_after(
    count: int, condition: Callable[[], bool] = lambda: True
) -> Iterator[tuple[int, bytes]]:
    """Some bodies, then Ctrl-C as soon as the condition holds."""
    yield from bodies(count)
    assert eventually(condition)
    raise KeyboardInterrupt


def test_a_checkpoint_holds_all_that_was_sent_before_it_and_nothing_is_in_flight(bulk_server: BulkServer):
    shelf = Shelf(bulk_server)
    size = len(b"body 0\n")
    done = ingest(
        [("i", bodies(10))],
        endpoint=bulk_server.url,
        clients=3,
        on_progress=lambda _: None,
        checkpoints=shelf.checkpoints(every_bytes=4 * size),
    )
    assert [kept.ranges for kept in shelf.kept] == [((0, 40),), ((0, 80),)]
    assert [kept.documents for kept in shelf.kept] == [40, 80]
    assert [kept.body_bytes for kept in shelf.kept] == [4 * size, 8 * size]
    assert shelf.answered == [4, 8]
    assert done.ranges == ((0, 100),)


def test_the_documents_of_a_second_go_have_the_numbers_that_were_missing(bulk_server: BulkServer):
    shelf = Shelf()
    missing = [(5, 20), (40, 55), (90, 110)]
    done = ingest(
        [("i", bodies(5))],
        endpoint=bulk_server.url,
        clients=2,
        on_progress=lambda _: None,
        checkpoints=shelf.checkpoints(missing=missing),
    )
    assert done.ranges == tuple(missing)
    assert shelf.kept == []


def test_streams_follow_each_other_without_a_stop_and_checkpoints_go_across_them(bulk_server: BulkServer):
    shelf = Shelf(bulk_server)
    size = len(b"body 0\n")
    done = ingest(
        [("a", bodies(3)), ("", bodies(3))],
        endpoint=bulk_server.url,
        clients=1,
        on_progress=lambda _: None,
        checkpoints=shelf.checkpoints(missing=[(0, 30), (50, 80)], every_bytes=4 * size),
    )
    assert bulk_server.paths == ["/a/_bulk"] * 3 + ["/_bulk"] * 3
    assert [kept.ranges for kept in shelf.kept] == [((0, 30), (50, 60))]
    assert done.ranges == ((0, 30), (50, 80))


def test_nothing_is_put_by_where_nothing_was_acknowledged(bulk_server: BulkServer):
    shelf = Shelf()
    with pytest.raises(KeyboardInterrupt):
        ingest(
            [("i", interrupted_after(0))],
            endpoint=bulk_server.url,
            clients=1,
            on_progress=lambda _: None,
            checkpoints=shelf.checkpoints(),
        )
    assert shelf.kept == []


def test_the_time_of_checkpoints_is_not_the_ingest_s(bulk_server: BulkServer):
    begun = time.monotonic()
    done = ingest(
        [("i", bodies(3))],
        endpoint=bulk_server.url,
        clients=1,
        on_progress=lambda _: None,
        checkpoints=Checkpoints(lambda _: threading.Event().wait(0.1) and None, [(0, 30)], 1, 0.0),
    )
    assert 0.3 <= done.checkpoint_s < time.monotonic() - begun
    assert done.seconds <= time.monotonic() - begun - done.checkpoint_s


def test_an_interrupt_waits_for_what_is_in_flight_and_puts_it_by(bulk_server: BulkServer):
    shelf = Shelf()
    bulk_server.held = b"body 3\n"

    def all_there() -> bool:
        threading.Timer(0.1, bulk_server.released.set).start()
        return len(bulk_server.bodies) == 8

    with pytest.raises(KeyboardInterrupt):
        ingest(
            [("i", interrupted_after(8, all_there))],
            endpoint=bulk_server.url,
            clients=2,
            on_progress=lambda _: None,
            checkpoints=shelf.checkpoints(),
        )
    (kept,) = shelf.kept
    assert kept.ranges == ((0, 80),)


def test_bodies_that_wait_when_it_is_interrupted_are_not_sent(bulk_server: BulkServer):
    shelf = Shelf()
    bulk_server.held = b"body 0\n"

    def one_there() -> bool:
        threading.Timer(0.1, bulk_server.released.set).start()
        return len(bulk_server.bodies) == 1

    with pytest.raises(KeyboardInterrupt):
        ingest(
            [("i", interrupted_after(4, one_there))],
            endpoint=bulk_server.url,
            clients=1,
            on_progress=lambda _: None,
            checkpoints=shelf.checkpoints(),
        )
    assert bulk_server.bodies == [b"body 0\n"]
    (kept,) = shelf.kept
    assert kept.ranges == ((0, 10),)


def test_an_interrupt_while_all_senders_are_busy_loses_nothing(bulk_server: BulkServer):
    shelf = Shelf()
    bulk_server.held = b"body 0\n"
    full = 1 + BODIES_AHEAD + 1 + 1  # in flight, queued for one client, and the one that waits for room
    framed: list[int] = []

    def press_ctrl_c() -> None:
        assert eventually(lambda: len(framed) == full)
        threading.Timer(0.1, bulk_server.released.set).start()
        os.kill(os.getpid(), signal.SIGINT)

    def endless() -> Iterator[tuple[int, bytes]]:
        for number, body in enumerate(bodies(1000)):
            framed.append(number)
            yield body

    helper = threading.Thread(target=press_ctrl_c)
    helper.start()
    with pytest.raises(KeyboardInterrupt):
        ingest(
            [("i", endless())],
            endpoint=bulk_server.url,
            clients=1,
            on_progress=lambda _: None,
            checkpoints=shelf.checkpoints(),
        )
    helper.join()
    (kept,) = shelf.kept
    assert kept.ranges == ((0, 10),)
    assert len(framed) == full


def test_what_is_in_flight_in_a_node_that_hangs_is_not_waited_for_longer_than_said(bulk_server: BulkServer):
    shelf = Shelf()
    bulk_server.held = b"body 1\n"
    begun = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        ingest(
            [("i", interrupted_after(2, lambda: len(bulk_server.bodies) == 2))],
            endpoint=bulk_server.url,
            clients=2,
            on_progress=lambda _: None,
            checkpoints=shelf.checkpoints(patience_s=0.2),
        )
    assert 0.2 <= time.monotonic() - begun < 20
    # Nobody knows whether its documents are in the index.
    assert shelf.kept == []


def test_what_is_stopped_early_is_neither_waited_for_nor_put_by(bulk_server: BulkServer):
    shelf = Shelf()
    bulk_server.held = b"body 0\n"
    begun = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        ingest(
            [("i", interrupted_after(1, lambda: len(bulk_server.bodies) == 1))],
            endpoint=bulk_server.url,
            clients=1,
            on_progress=lambda _: None,
            checkpoints=shelf.checkpoints(after_s=60.0, patience_s=60.0),
        )
    assert time.monotonic() - begun < 20
    assert shelf.kept == []


def test_documents_that_were_refused_are_not_put_by(bulk_server: BulkServer):
    shelf = Shelf()
    bulk_server.refused = b"body 4\n"
    with pytest.raises(BenchctlError, match="were refused"):
        ingest(
            [("i", bodies(5000))],
            endpoint=bulk_server.url,
            clients=2,
            on_progress=lambda _: None,
            checkpoints=shelf.checkpoints(missing=[(0, 50_000)]),
        )
    (kept,) = shelf.kept
    answered = {10 * int(body.split()[1]) for body in bulk_server.bodies} - {40}
    assert kept.ranges == merged((first, first + 10) for first in answered)
    assert kept.ranges[0] == (0, 40)


def test_an_interrupt_of_a_checkpoint_puts_by_the_same_again(bulk_server: BulkServer):
    kept: list[Ingested] = []

    def save(done: Ingested) -> None:
        kept.append(done)
        if len(kept) == 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ingest(
            [("i", bodies(10))],
            endpoint=bulk_server.url,
            clients=2,
            on_progress=lambda _: None,
            checkpoints=Checkpoints(save, [(0, 100)], every_bytes=3 * len(b"body 0\n"), after_s=0.0),
        )
    assert [done.ranges for done in kept] == [((0, 30),), ((0, 30),)]


def test_between_always_the_same_bodies_something_is_done_with_nothing_in_flight(bulk_server: BulkServer):
    seen: list[int] = []
    cuts = Cuts(lambda: seen.append(bulk_server.answered), documents=5, body_bytes=10)
    bodies = [(2, b"a"), (2, b"b"), (2, b"c"), (1, b"0123456789"), (1, b"d")]
    ingest([("i", iter(bodies))], endpoint=bulk_server.url, clients=1, on_progress=lambda _: None, cuts=cuts)
    assert seen == [3, 4]
    assert bulk_server.bodies == [body for _, body in bodies]
