"""A node's stand-in on loopback: answers as it was told and notes what it was asked."""

import json
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from loopback import KeepingHandler, serving

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


@contextmanager
def fake_node(tls: ssl.SSLContext | None = None) -> Iterator[FakeNode]:
    """A fake node that is up within the block; with a context, it speaks TLS only."""

    class Node(KeepingHandler):
        def respond(self) -> None:
            parts = urlsplit(self.path)
            sent = self.sent()
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
            self.answer(status, data, {"Content-Type": "application/json", **fake.headers})

    with serving(Node, tls=tls) as port:
        fake = FakeNode(port)
        try:
            yield fake
        finally:
            fake.hold.set()


@contextmanager
def closed_port() -> Iterator[int]:
    """A port that is bound but refuses connections, so that nobody else can take it meanwhile."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler, bind_and_activate=False)
    server.server_bind()
    try:
        yield server.server_address[1]
    finally:
        server.server_close()
