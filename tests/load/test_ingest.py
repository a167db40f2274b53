"""Filling an index: all is sent once, the first refusal ends it, and nobody waits for a hanging node."""

import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from benchctl.errors import BenchctlError
from benchctl.load.ingest import ingest

GOOD = json.dumps({"took": 1, "errors": False, "items": []}).encode()
REFUSED = json.dumps(
    {
        "errors": True,
        "items": [{"index": {"status": 201}}, {"index": {"status": 429, "error": {"type": "full"}}}],
    }
).encode()


class BulkServer(ThreadingHTTPServer):
    """Answers every bulk request alike and keeps the bodies."""

    def __init__(self, status: int, answer: bytes) -> None:
        super().__init__(("127.0.0.1", 0), BulkHandler)
        self.status = status
        self.answer = answer
        self.bodies: list[bytes] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class BulkHandler(BaseHTTPRequestHandler):
    server: BulkServer
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        self.server.bodies.append(self.rfile.read(int(self.headers["Content-Length"])))
        self.send_response(self.server.status)
        self.send_header("Content-Length", str(len(self.server.answer)))
        self.end_headers()
        self.wfile.write(self.server.answer)

    def log_message(self, *_args: object) -> None:
        """Tests are quiet."""


@pytest.fixture
def bulk_server(request: pytest.FixtureRequest) -> Iterator[BulkServer]:
    status, answer = getattr(request, "param", (200, GOOD))
    with BulkServer(status, answer) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def bodies(count: int) -> Iterator[tuple[int, bytes]]:
    for number in range(count):
        yield 10, f"body {number}\n".encode()


def test_every_body_is_sent_once_and_counted(bulk_server: BulkServer):
    told: list[int] = []
    done = ingest(bodies(50), endpoint=bulk_server.url, index_name="i", clients=3, on_progress=told.append)
    assert sorted(bulk_server.bodies) == sorted(body for _, body in bodies(50))
    assert done.documents == 500
    assert done.body_bytes == sum(len(body) for _, body in bodies(50))
    assert told == list(range(10, 501, 10))


@pytest.mark.parametrize(
    ("bulk_server", "said"),
    [((200, REFUSED), "1 documents were refused.*full"), ((503, b"busy"), "HTTP 503.*busy")],
    indirect=["bulk_server"],
)
def test_the_first_refusal_ends_it(bulk_server: BulkServer, said: str):
    with pytest.raises(BenchctlError, match=said):
        ingest(bodies(5000), endpoint=bulk_server.url, index_name="i", clients=2, on_progress=lambda _: None)
    assert len(bulk_server.bodies) < 5000


def test_a_node_that_is_gone_is_an_error():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    with pytest.raises(BenchctlError, match="went away"):
        ingest(bodies(5), endpoint=url, index_name="i", clients=2, on_progress=lambda _: None)


def test_an_interrupt_does_not_wait_for_a_node_that_hangs():
    with socket.create_server(("127.0.0.1", 0)) as listener, ExitStack() as still_open:

        def interrupted() -> Iterator[tuple[int, bytes]]:
            yield 1, b"x\n"
            connection, _ = listener.accept()
            still_open.enter_context(connection)
            connection.recv(1)
            raise KeyboardInterrupt

        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        begun = time.monotonic()
        with pytest.raises(KeyboardInterrupt):
            ingest(interrupted(), endpoint=url, index_name="i", clients=2, on_progress=lambda _: None)
    assert time.monotonic() - begun < 20
