"""A web server on loopback that keeps what is posted to it."""

import contextlib
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from authority import server_context


@dataclass
class Posted:
    path: str
    headers: dict[str, str]
    body: bytes


@dataclass
class Web:
    """A web server: answers with `status` and `answer`, stalls until it is released when it is told to."""

    url: str = ""
    status: int = 204
    answer: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    stalls: bool = False
    trickles: bool = False
    posted: list[Posted] = field(default_factory=list)
    released: threading.Event = field(default_factory=threading.Event)


def _web_handler(web: Web) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            web.posted.append(Posted(self.path, dict(self.headers), body))
            if web.stalls:
                web.released.wait()
                return
            self.send_response(web.status)
            for name, value in web.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(web.answer) + (10_000 if web.trickles else 0)))
            self.end_headers()
            self.wfile.write(web.answer)
            while web.trickles and not web.released.wait(0.05):
                with contextlib.suppress(OSError):
                    self.wfile.write(b".")

        def log_message(self, *_: object) -> None:
            """Keep quiet."""

    return Handler


@contextlib.contextmanager
def web_server(*names: str, tls: bool = False) -> Iterator[Web]:
    web = Web()
    with ThreadingHTTPServer(("127.0.0.1", 0), _web_handler(web)) as server:
        if tls:
            server.socket = server_context(*names).wrap_socket(server.socket, server_side=True)
            server.handle_error = lambda *_: None  # type: ignore[method-assign] # a client that trusts us not
        web.url = f"{'https' if tls else 'http'}://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield web
        finally:
            web.released.set()
            server.shutdown()
            thread.join()
