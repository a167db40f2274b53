"""A node's stand-in on loopback: answers as it was told and notes what it was asked."""

import json
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit

Answers = dict[tuple[str, str], tuple[int, Any]]


class FakeNode:
    """A server on loopback that gives the answers it was told and refuses everything else.

    Attributes:
        answers: (method, path) -> status and body; bytes are sent as they are, functions are asked each time.
        seen: method, path, parameters and decoded body of every request.
        told: the headers of every request.
        guard: says why a request is refused with status 403, given method, target, headers with small names,
            and body; empty for those that are answered.
    """

    def __init__(self, port: int) -> None:
        self.port = port
        self.answers: Answers = {}
        self.headers: dict[str, str] = {}
        self.seen: list[tuple[str, str, dict[str, str], Any]] = []
        self.told: list[dict[str, str]] = []
        self.guard: Callable[[str, str, dict[str, str], bytes], str] = lambda *_: ""
        self.hold = threading.Event()
        self.hold.set()


class LoopbackServer(ThreadingHTTPServer):
    def handle_error(self, *_: object) -> None:
        """A client that gave up and went is what some tests are about."""


@contextmanager
def fake_node(tls: ssl.SSLContext | None = None) -> Iterator[FakeNode]:
    """A fake node that is up within the block; with a context, it speaks TLS only."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True  # a body after its head would wait 40 ms for the client

        def _answer(self) -> None:
            parts = urlsplit(self.path)
            sent = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            body = json.loads(sent) if sent else None
            fake.told.append(dict(self.headers))
            fake.seen.append((self.command, parts.path, dict(parse_qsl(parts.query)), body))
            fake.hold.wait()
            status, answer = fake.answers.get((self.command, parts.path), (500, {"error": "not expected"}))
            headers = {name.lower(): value for name, value in self.headers.items()}
            if refused := fake.guard(self.command, self.path, headers, sent):
                status, answer = 403, {"message": refused}
            answer = answer() if callable(answer) else answer
            data = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            for name, value in {"Content-Type": "application/json", **fake.headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_POST = do_PUT = do_DELETE = _answer  # noqa: N815 - the base class finds these by name

        def log_message(self, *_: object) -> None:
            return

    server = LoopbackServer(("127.0.0.1", 0), Handler)
    if tls is not None:
        # The handshake is the first thing that a connection's own thread reads.
        server.socket = tls.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    fake = FakeNode(server.server_address[1])
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield fake
    finally:
        fake.hold.set()
        server.shutdown()
        thread.join()
        server.server_close()


@contextmanager
def closed_port() -> Iterator[int]:
    """A port that is bound but refuses connections, so that nobody else can take it meanwhile."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler, bind_and_activate=False)
    server.server_bind()
    try:
        yield server.server_address[1]
    finally:
        server.server_close()
