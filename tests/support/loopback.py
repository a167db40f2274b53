"""Web servers on loopback, one thread a connection."""

import ssl
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Handler(BaseHTTPRequestHandler):
    """Closes the connection after each answer."""

    def respond(self) -> None:
        """Answer a request of any method."""
        raise NotImplementedError

    def _any(self) -> None:
        self.respond()

    do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = _any  # noqa: N815 - the base class finds these by name

    def sent(self) -> bytes:
        """The body of the request."""
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def answer(self, status: int, body: bytes, headers: Mapping[str, str] = {}) -> None:
        """Send an answer whole."""
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Keep quiet."""


class KeepingHandler(Handler):
    """Keeps the connection."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # a body after its head would wait 40 ms for the client


class LoopbackServer(ThreadingHTTPServer):
    def handle_error(self, *_: object) -> None:
        """A client that gave up and went is what some tests are about."""


@contextmanager
def serving(handler: type[Handler], port: int = 0, tls: ssl.SSLContext | None = None) -> Iterator[int]:
    """The port of a server that is up within the block; with a context, it speaks TLS only."""
    with LoopbackServer(("127.0.0.1", port), handler) as server:
        if tls is not None:
            # The handshake is the first thing that a connection's own thread reads.
            server.socket = tls.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield server.server_address[1]
        finally:
            server.shutdown()
            thread.join()
