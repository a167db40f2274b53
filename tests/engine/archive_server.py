"""A web server on loopback that hands out archives, well and badly; and archives to hand out."""

import contextlib
import hashlib
import io
import threading
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field

from benchctl.engine.maven import REPOSITORY_VARIABLE
from loopback import Handler
from loopback import serving as serving_by


@dataclass
class Reply:
    """What the server answers: `length` overrides the honest Content-Length, `stall` never answers."""

    body: bytes = b""
    status: int = 200
    length: int | None = None
    stall: bool = False


@dataclass
class Server:
    """A web server on loopback with a folder of replies; what is not in it is 404."""

    replies: dict[str, Reply] = field(default_factory=dict)
    requests: list[str] = field(default_factory=list)
    released: threading.Event = field(default_factory=threading.Event)
    url: str = ""

    def serve(self, engine: str, version: str, body: bytes, **checksums: str) -> str:
        """Put a version into the Maven layout, and say where its zip is."""
        path = f"/org/{engine}/distribution/integ-test-zip/{engine}/{version}/{engine}-{version}.zip"
        self.replies[path] = Reply(body)
        for kind, text in checksums.items():
            self.replies[f"{path}.{kind}"] = Reply(text.encode())
        return path

    def list_versions(self, engine: str, *versions: str) -> None:
        """Put the listing into the Maven layout."""
        listed = "".join(f"<version>{version}</version>" for version in versions)
        text = f"<metadata><versioning><versions>{listed}</versions></versioning></metadata>"
        path = f"/org/{engine}/distribution/integ-test-zip/{engine}/maven-metadata.xml"
        self.replies[path] = Reply(text.encode())

    @property
    def environ(self) -> dict[str, str]:
        """The configuration that points to this server."""
        return {REPOSITORY_VARIABLE: self.url}


def handler(server: Server) -> type[Handler]:
    class Archives(Handler):
        def respond(self) -> None:
            server.requests.append(f"{self.command} {self.path}")
            reply = server.replies.get(self.path, Reply(b"<html>not here</html>", 404))
            if reply.stall:
                server.released.wait()
            self.send_response(reply.status)
            self.send_header("Content-Length", str(len(reply.body) if reply.length is None else reply.length))
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(reply.body)

    return Archives


@contextlib.contextmanager
def serving() -> Iterator[Server]:
    server = Server()
    with serving_by(handler(server)) as port:
        server.url = f"http://127.0.0.1:{port}"
        try:
            yield server
        finally:
            server.released.set()


def zipped(content: bytes = b"content" * 5000) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as packed:
        packed.writestr("elasticsearch/lib/file", content)
    return buffer.getvalue()


def sha(kind: str, body: bytes) -> str:
    return hashlib.new(kind, body).hexdigest()
