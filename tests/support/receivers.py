"""A web server on loopback that keeps what is posted to it."""

import contextlib
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field

from authority import server_context
from loopback import Handler, serving


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


def _web_handler(web: Web) -> type[Handler]:
    class Receiver(Handler):
        def respond(self) -> None:
            web.posted.append(Posted(self.path, dict(self.headers), self.sent()))
            if web.stalls:
                web.released.wait()
                return
            length = len(web.answer) + (10_000 if web.trickles else 0)
            self.answer(web.status, web.answer, {**web.headers, "Content-Length": str(length)})
            while web.trickles and not web.released.wait(0.05):
                with contextlib.suppress(OSError):
                    self.wfile.write(b".")

    return Receiver


@contextlib.contextmanager
def web_server(*names: str, tls: bool = False) -> Iterator[Web]:
    web = Web()
    with serving(_web_handler(web), tls=server_context(*names) if tls else None) as port:
        web.url = f"{'https' if tls else 'http'}://127.0.0.1:{port}"
        try:
            yield web
        finally:
            web.released.set()
