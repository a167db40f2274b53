"""A web server on loopback that hands out files as servers do: with ranges, without, changed, cut off."""

import contextlib
import ssl
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Literal


@dataclass
class Served:
    """A file on the server.

    Attributes:
        body: its bytes.
        ranges: what the server does when asked for some of them: send them, send all with status 200, or
            send others than asked for.
        version: its ETag; empty for none.
        cuts: after how many bytes the next answers end; the connection is closed without a word.
        statuses: of the next answers, instead of the file.
        length: whether the answer says how long it is.
        odd: status and header lines to answer with, whatever was asked.
    """

    body: bytes
    ranges: Literal["honoured", "ignored", "wrong"] = "honoured"
    version: str = '"1"'
    cuts: list[int] = field(default_factory=list)
    statuses: list[int] = field(default_factory=list)
    length: bool = True
    odd: tuple[int, Mapping[str, str]] | None = None


@dataclass
class FileServer:
    """Its files by path, its address, what it was asked for, (path, Range), and with what credentials."""

    files: dict[str, Served] = field(default_factory=dict)
    requests: list[tuple[str, str]] = field(default_factory=list)
    credentials: list[str | None] = field(default_factory=list)
    url: str = ""


def _instead(file: Served) -> tuple[int, Mapping[str, str]] | None:
    """Status and header lines of an answer without the file; None for the file."""
    return (file.statuses.pop(0), {}) if file.statuses else file.odd


def _handler(server: FileServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked = self.headers.get("Range", "")
            server.requests.append((self.path, asked))
            server.credentials.append(self.headers.get("Authorization"))
            file = server.files.get(self.path)
            instead = (404, {}) if file is None else _instead(file)
            if file is None or instead is not None:
                status, headers = instead or (404, {})
                self.send_response(status)
                for name, value in {"Content-Length": "0", **headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                return
            self._send(file, asked)

        do_HEAD = do_GET  # noqa: N815 - the name that the library wants; nobody asks for what is there

        def _send(self, file: Served, asked: str) -> None:
            start = int(asked.removeprefix("bytes=").rstrip("-") or 0) if asked else 0
            if not asked or file.ranges == "ignored":
                start = 0
                self.send_response(200)
            elif start >= len(file.body):
                self.send_response(416)
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            else:
                start = start // 2 if file.ranges == "wrong" else start
                self.send_response(206)
                self.send_header("Content-Range", f"bytes {start}-{len(file.body) - 1}/{len(file.body)}")
            body = file.body[start:]
            if file.version:
                self.send_header("ETag", file.version)
            if file.length:
                self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body[: file.cuts.pop(0)] if file.cuts else body)

        def log_message(self, *_: object) -> None:
            """Keep quiet."""

    return Handler


@contextlib.contextmanager
def serving_files(tls: ssl.SSLContext | None = None) -> Iterator[FileServer]:
    """A server that is up within the block; with a context, it speaks TLS only."""
    server = FileServer()
    with ThreadingHTTPServer(("127.0.0.1", 0), _handler(server)) as http:
        if tls is not None:
            http.socket = tls.wrap_socket(http.socket, server_side=True)
        http.handle_error = lambda *_: None  # type: ignore[method-assign] # a client that has had enough
        server.url = f"{'https' if tls else 'http'}://127.0.0.1:{http.server_port}"
        thread = threading.Thread(target=http.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield server
        finally:
            http.shutdown()
            thread.join()
