"""A search engine's stand-in on raw sockets: canned answers, known service times, faults on request.

As a program it serves alone in its process, for the benchmark of the driver, and writes the service time
that it really took, in nanoseconds, where an engine writes the number of hits.
"""

import argparse
import socket
import ssl
import struct
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal, Self

Fault = Literal["", "reset", "hang", "partial", "garbage"]
Serve = Callable[..., "StubServer"]

SEARCH_BODY = (
    b'{"took":3,"timed_out":false,"_shards":{"total":1,"successful":1,"skipped":0,"failed":0},'
    b'"hits":{"total":{"value":10000,"relation":"gte"},"max_score":null,"hits":[]}}'
)
_TIMED_BODY = (
    b'{"took":0,"timed_out":false,"_shards":{"failed":0},'
    b'"hits":{"total":{"value":%12d,"relation":"eq"},"hits":[%s]}}'
)
_SEND_RESET_ON_CLOSE = struct.pack("ii", 1, 0)


@dataclass(frozen=True)
class Reply:
    """How one search is answered.

    Attributes:
        status: HTTP status.
        body: the body.
        delay_s: before the first byte.
        tail_delay_s: between the first half of the body and the second.
        fault: reset or hang instead of an answer; partial closes in the middle of the body; garbage is not
            HTTP.
        close: say `Connection: close` and do it.
    """

    status: int = 200
    body: bytes = SEARCH_BODY
    delay_s: float = 0.0
    tail_delay_s: float = 0.0
    fault: Fault = ""
    close: bool = False


@dataclass(frozen=True)
class Received:
    """One request as it came in."""

    connection: int
    method: str
    target: str
    headers: dict[str, str]
    body: bytes
    arrived_ns: int

    @property
    def is_search(self) -> bool:
        return "/_search" in self.target


class Listening:
    """Listens on a free port of the loopback; a context manager that ends all that it began."""

    def __init__(self, address: str = "127.0.0.1") -> None:
        self.connections = 0
        self.hanging = threading.Event()  # set when the first request is left without an answer
        self._closing = threading.Event()
        self._lock = threading.Lock()
        self._open: set[socket.socket] = set()
        self._threads: list[threading.Thread] = []
        self._listener = socket.create_server((address, 0), backlog=128)
        self.port = self._listener.getsockname()[1]

    def __enter__(self) -> Self:
        self._start(self._accept)
        return self

    def __exit__(self, *_: object) -> None:
        self.die()
        for thread in self._threads:
            thread.join()

    def die(self) -> None:
        """Refuse new connections and end the open ones."""
        self._closing.set()
        try:
            self._listener.shutdown(socket.SHUT_RDWR)
        except OSError:
            return
        self._listener.close()
        with self._lock:
            for connection in self._open:
                with suppress(OSError):  # the client may have gone first
                    self._cut(connection)

    def _cut(self, connection: socket.socket) -> None:
        connection.shutdown(socket.SHUT_RDWR)

    def _start(self, target: Callable[..., None], *args: object) -> None:
        thread = threading.Thread(target=target, args=args)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while not self._closing.is_set():
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with self._lock:
                self.connections += 1
                is_admitted = self._admit()
                if is_admitted:
                    self._open.add(connection)
                number = self.connections
            if is_admitted:
                self._start(self._serve, connection, number)
            else:
                end(connection, resets=True)

    def _admit(self) -> bool:
        return True

    def _serve(self, connection: socket.socket, number: int) -> None:
        raise NotImplementedError


def end(connection: socket.socket, *, resets: bool = False) -> None:
    """Close a connection, or reset it."""
    with suppress(OSError):
        if resets:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _SEND_RESET_ON_CLOSE)
        connection.close()


class StubServer(Listening):
    """Answers searches by a script.

    Args:
        script: replies to the first searches, in order of arrival.
        default: the reply to every search after those.
        tls: what it shows to its clients; None speaks plain HTTP.
        address: where it listens.
    """

    def __init__(
        self,
        script: Iterable[Reply] = (),
        default: Reply | None = None,
        tls: ssl.SSLContext | None = None,
        address: str = "127.0.0.1",
    ) -> None:
        super().__init__(address)
        self._address = address
        self._tls = tls
        self.received: list[Received] = []
        self._script = deque(script)
        self._default = default or Reply()

    @property
    def url(self) -> str:
        return f"{'http' if self._tls is None else 'https'}://{self._address}:{self.port}"

    @property
    def searches(self) -> list[Received]:
        return [request for request in self.received if request.is_search]

    def _cut(self, connection: socket.socket) -> None:
        """Reset it, as a killed process does."""
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _SEND_RESET_ON_CLOSE)
        super()._cut(connection)

    def _serve(self, connection: socket.socket, number: int) -> None:
        try:
            connection = self._shielded(connection)
            while (request := _read(connection, number)) is not None:
                if not self._answer(connection, request):
                    return
        except OSError:
            return
        finally:
            with self._lock:
                self._open.discard(connection)
            connection.close()

    def _shielded(self, connection: socket.socket) -> socket.socket:
        if self._tls is None:
            return connection
        with self._lock:
            self._open.discard(connection)
        # The handshake takes the descriptor over.
        shielded = self._tls.wrap_socket(connection, server_side=True, do_handshake_on_connect=False)
        try:
            shielded.do_handshake()
        except OSError:
            shielded.close()
            raise
        with self._lock:
            self._open.add(shielded)
        return shielded

    def _answer(self, connection: socket.socket, request: Received) -> bool:
        with self._lock:
            self.received.append(request)
            reply = self._reply(request)
        kept = reply.fault == "" and not reply.close
        if reply.fault == "hang":
            self.hanging.set()
            self._closing.wait()
        elif reply.fault == "reset":
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _SEND_RESET_ON_CLOSE)
        elif reply.fault == "garbage":
            connection.sendall(b"\x15\x03\x03\x00\x02\x02\x50")
        else:
            self._pause(reply.delay_s)
            self._send(connection, reply)
        return kept

    def _reply(self, request: Received) -> Reply:
        if not request.is_search:
            # Health, a count, a refresh: each finds its own in it.
            return Reply(body=b'{"status":"green","count":5,"_shards":{"total":1,"failed":0}}')
        return self._script.popleft() if self._script else self._default

    def _send(self, connection: socket.socket, reply: Reply) -> None:
        half = len(reply.body) // 2
        connection.sendall(_head(reply) + reply.body[:half])
        if reply.fault == "partial":
            return
        self._pause(reply.tail_delay_s)
        connection.sendall(reply.body[half:])

    def _pause(self, delay_s: float) -> None:
        if delay_s:
            self._closing.wait(delay_s)


def _head(reply: Reply) -> bytes:
    lines = [
        f"HTTP/1.1 {reply.status} Whatever",
        "content-type: application/json",
        "x-elastic-product: Elasticsearch",
        f"content-length: {len(reply.body)}",
        *(["connection: close"] if reply.close else []),
    ]
    return "\r\n".join([*lines, "", ""]).encode()


def _read(connection: socket.socket, number: int) -> Received | None:
    data = b""
    while b"\r\n\r\n" not in data:
        received = connection.recv(65536)
        if not received:
            return None
        data += received
    head, _, body = data.partition(b"\r\n\r\n")
    first, *rest = head.decode().split("\r\n")
    method, target, _ = first.split(" ")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in rest)}
    while len(body) < int(headers.get("content-length", "0")):
        body += connection.recv(65536)
    return Received(number, method, target, headers, body, time.monotonic_ns())


def _serve_timed(connection: socket.socket, service_ns: int, padding: bytes) -> None:
    """Answer every request after spinning for the service time; the body says how long it really was."""
    body = _TIMED_BODY % (0, padding)
    before, _, after = (_head(Reply(body=body)) + body).partition(b"%12d" % 0)
    while _skip_request(connection):
        arrived_ns = time.monotonic_ns()
        while (took_ns := time.monotonic_ns() - arrived_ns) < service_ns:
            pass
        connection.sendall(b"%s%12d%s" % (before, took_ns, after))


def _skip_request(connection: socket.socket) -> bool:
    """Read one request as cheaply as possible; False when there is none any more."""
    data = connection.recv(65536)
    # A client may send head and body apart.
    while data and len(data) < _request_length(data):
        data += connection.recv(65536)
    return bool(data)


def _request_length(data: bytes) -> int:
    head, _, _ = data.partition(b"\r\n\r\n")
    if len(head) == len(data):
        return len(data) + 1
    _, _, after = head.lower().partition(b"content-length:")
    return len(head) + 4 + int(after.split(b"\r\n", 1)[0] or 0)


def main() -> None:
    """Serve until killed; the first line of standard output is the port."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--service-us", type=int, default=0)
    parser.add_argument("--padding-bytes", type=int, default=0)
    options = parser.parse_args()
    padding = b'"%s"' % (b"x" * options.padding_bytes)
    listener = socket.create_server(("127.0.0.1", 0), backlog=128)
    print(listener.getsockname()[1], flush=True)  # noqa: T201 - the caller reads it
    while True:
        connection, _ = listener.accept()
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        args = (connection, options.service_us * 1000, padding)
        threading.Thread(target=_serve_timed, args=args, daemon=True).start()


if __name__ == "__main__":
    main()
