"""A web server on loopback that hands out files as servers do: with ranges, without, changed, cut off."""

import contextlib
import ssl
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from loopback import Handler, serving


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


def _handler(server: FileServer) -> type[Handler]:
    class Files(Handler):
        def respond(self) -> None:
            asked = self.headers.get("Range", "")
            server.requests.append((self.path, asked))
            server.credentials.append(self.headers.get("Authorization"))
            file = server.files.get(self.path)
            instead = (404, {}) if file is None else _instead(file)
            if file is None or instead is not None:
                status, headers = instead or (404, {})
                self.answer(status, b"", headers)
                return
            self._send(file, asked)

        def _send(self, file: Served, asked: str) -> None:
            start = int(asked.removeprefix("bytes=").rstrip("-") or 0) if asked else 0
            if not asked or file.ranges == "ignored":
                start = 0
                self.send_response(200)
            elif start >= len(file.body):
                self.answer(416, b"")
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

    return Files


@contextlib.contextmanager
def serving_files(tls: ssl.SSLContext | None = None) -> Iterator[FileServer]:
    """A server that is up within the block; with a context, it speaks TLS only."""
    server = FileServer()
    with serving(_handler(server), tls=tls) as port:
        server.url = f"{'https' if tls else 'http'}://127.0.0.1:{port}"
        yield server
