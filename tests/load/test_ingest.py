"""Filling an index: all is sent once, the first refusal ends it, and nobody waits for a hanging node."""

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from benchctl.errors import BenchctlError
from benchctl.load.ingest import ingest
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
    with pytest.raises(
        BenchctlError, match=r"a bulk request of the ingest got no complete response \(refused\)"
    ):
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


def interrupted_after(count: int, condition: Callable[[], bool]) -> Iterator[tuple[int, bytes]]:
    """Some bodies, then Ctrl-C as soon as the condition holds."""
    yield from bodies(count)
    assert eventually(condition)
    raise KeyboardInterrupt


def test_streams_follow_each_other(bulk_server: BulkServer):
    done = ingest(
        [("a", bodies(3)), ("", bodies(3))],
        endpoint=bulk_server.url,
        clients=1,
        on_progress=lambda _: None,
    )
    assert bulk_server.paths == ["/a/_bulk"] * 3 + ["/_bulk"] * 3
    assert done.documents == 60


def test_bodies_that_wait_when_it_is_interrupted_are_not_sent(bulk_server: BulkServer):
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
        )
    assert bulk_server.bodies == [b"body 0\n"]
