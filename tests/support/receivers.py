"""Who is told about nights: a web server and a mail server that keep what they get, on loopback."""

import base64
import contextlib
import socketserver
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
        with _served(server):
            try:
                yield web
            finally:
                web.released.set()


@dataclass
class Mailbox:
    """A mail server: takes mail for everybody but `refused`, after a password if it has one."""

    port: int = 0
    user: str = ""
    password: str = ""
    refused: tuple[str, ...] = ()
    greeting: str = "220 mail"
    answers: dict[str, str] = field(default_factory=dict)
    tls: str = "none"
    mails: list[str] = field(default_factory=list)
    recipients: list[str] = field(default_factory=list)
    encrypted: list[bool] = field(default_factory=list)


class _Session:
    """One conversation, line by line."""

    def __init__(self, handler: socketserver.StreamRequestHandler, box: Mailbox) -> None:
        self.box = box
        self.connection, self.rfile = handler.connection, handler.rfile
        self.secure = box.tls == "tls"
        self.to: list[str] = []

    def say(self, text: str) -> None:
        self.connection.sendall(text.encode() + b"\r\n")

    def run(self) -> None:
        try:
            self._talk()
        finally:
            self.rfile.close()
            self.connection.close()

    def _talk(self) -> None:
        self.say(self.box.greeting)
        while line := self.rfile.readline():
            words = line.decode().split()
            verb = words[0].upper()
            if verb in self.box.answers:
                self.say(self.box.answers[verb].replace("{line}", line.decode().strip()))
            elif verb == "QUIT":
                self.say("221 bye")
                return
            else:
                getattr(self, f"on_{verb.lower()}")(words)

    def on_ehlo(self, _: list[str]) -> None:
        offers = ["250-mail"]
        offers += ["250-STARTTLS"] if self.box.tls == "starttls" and not self.secure else []
        self.say("\r\n".join([*offers, "250 AUTH PLAIN"]))

    def on_starttls(self, _: list[str]) -> None:
        self.say("220 go")
        self.connection = server_context().wrap_socket(self.connection, server_side=True)
        self.rfile = self.connection.makefile("rb")
        self.secure = True

    def on_auth(self, words: list[str]) -> None:
        _, user, password = base64.b64decode(words[2]).decode().split("\0")
        good = (user, password) == (self.box.user, self.box.password)
        self.say("235 in" if good else f"535 no such user or password: {words[2]} {user} {password}")

    def on_mail(self, _: list[str]) -> None:
        self.to = []
        self.say("250 ok")

    def on_rcpt(self, words: list[str]) -> None:
        address = words[1].partition("<")[2].rstrip(">")
        if address in self.box.refused:
            self.say("550 nobody of that name")
        else:
            self.to.append(address)
            self.say("250 ok")

    def on_rset(self, _: list[str]) -> None:
        self.say("250 ok")

    def on_data(self, _: list[str]) -> None:
        self.say("354 go")
        lines = []
        while (line := self.rfile.readline().decode()) != ".\r\n":
            lines.append(line)
        self.box.mails.append("".join(lines))
        self.box.recipients += self.to
        self.box.encrypted.append(self.secure)
        self.say("250 taken")


@contextlib.contextmanager
def mail_server(*, tls: str = "none") -> Iterator[Mailbox]:
    box = Mailbox(tls=tls)

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            # A client that does not trust us leaves in the middle.
            with contextlib.suppress(OSError):
                _Session(self, box).run()

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        if tls == "tls":
            server.socket = server_context().wrap_socket(
                server.socket, server_side=True, do_handshake_on_connect=False
            )
        box.port = server.server_address[1]
        with _served(server):
            yield box


@contextlib.contextmanager
def _served(server: socketserver.BaseServer) -> Iterator[None]:
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        thread.join()
