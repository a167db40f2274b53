"""HTTP for everything that is not measured: every request ends in time, and no answer fills the memory."""

import contextlib
import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from pathlib import Path
from types import TracebackType
from typing import Any, Final, NamedTuple, Self
from urllib.parse import SplitResult, quote

import pycurl

from benchctl.endpoint import Signing, system_trust
from benchctl.errors import BenchctlError

Progress = Callable[[str, int, int], None]
"""Told (what, bytes done, bytes in total) while something long goes on; the total is 0 when unknown."""

TIMEOUT_S = 30
MOST_ANSWER_BYTES = 64 << 20
"""Of an answer that is kept in memory, unpacked: many times what an administrative request needs."""

# What has a meaning in a URL, what is encoded already included; spaces and umlauts are encoded.
_IN_URLS = "!#$%&'()*+,/:;=?@[]~"
_CONNECT_TIMEOUT_S = 15
_MOST_REDIRECTS = 10
# A download slower than this for TIMEOUT_S has stalled, whatever trickles in.
_STALLED_BYTES_PER_S = 100
_INTERRUPT_S = 3.0  # libcurl asks once a second whether to go on


class Trouble(Enum):
    """Why there was no whole answer."""

    UNRESOLVED = auto()
    REFUSED = auto()
    UNTRUSTED = auto()
    OTHER_NAME = auto()
    UNREADABLE_TRUST = auto()
    NO_TLS = auto()
    NO_HTTP = auto()
    TIMEOUT = auto()
    TOO_LARGE = auto()
    NO_JSON = auto()
    BROKEN = auto()
    OTHER = auto()


_E_TOO_LARGE = 100  # pycurl has no name for it

TROUBLES: Final = {
    pycurl.E_COULDNT_RESOLVE_HOST: Trouble.UNRESOLVED,
    pycurl.E_COULDNT_RESOLVE_PROXY: Trouble.UNRESOLVED,
    pycurl.E_COULDNT_CONNECT: Trouble.REFUSED,
    pycurl.E_PEER_FAILED_VERIFICATION: Trouble.UNTRUSTED,
    pycurl.E_SSL_CACERT_BADFILE: Trouble.UNREADABLE_TRUST,
    pycurl.E_SSL_CONNECT_ERROR: Trouble.NO_TLS,
    pycurl.E_UNSUPPORTED_PROTOCOL: Trouble.NO_HTTP,  # a status line of HTTP/0.9, or none at all
    pycurl.E_FTP_WEIRD_SERVER_REPLY: Trouble.NO_HTTP,  # its newer name lacks FTP
    pycurl.E_BAD_CONTENT_ENCODING: Trouble.NO_HTTP,
    pycurl.E_OPERATION_TIMEDOUT: Trouble.TIMEOUT,
    pycurl.E_GOT_NOTHING: Trouble.BROKEN,
    pycurl.E_SEND_ERROR: Trouble.BROKEN,
    pycurl.E_RECV_ERROR: Trouble.BROKEN,
    pycurl.E_PARTIAL_FILE: Trouble.BROKEN,
    pycurl.E_FILESIZE_EXCEEDED: Trouble.TOO_LARGE,
    pycurl.E_WRITE_ERROR: Trouble.TOO_LARGE,  # whoever takes the body takes no more
    _E_TOO_LARGE: Trouble.TOO_LARGE,  # headers that never end
}
"""What libcurl's failures mean; any other is a misuse of libcurl, or a bug."""

# What libcurl, and the TLS libraries below it, say of a certificate that is for another host.
_OTHER_NAME = ("subject name", "hostname mismatch", "ip address mismatch", "does not match")


class Answer(NamedTuple):
    """A whole answer.

    Attributes:
        status: of HTTP.
        headers: by name in lower case; several of one name are joined by commas.
        body: unpacked; empty where it was handed on.
        took_s: until its last byte.
    """

    status: int
    headers: Mapping[str, str]
    body: bytes
    took_s: float


class Unanswered(Exception):  # noqa: N818 - it says what happened
    """There was no whole answer.

    Attributes:
        trouble: why.
        text: what happened; libcurl's words may name the address.
        partial: what came of it.
    """

    def __init__(self, trouble: Trouble, text: str, partial: Answer | None = None) -> None:
        super().__init__(text)
        self.trouble = trouble
        self.text = text
        self.partial = partial


Receive = Callable[[int, Mapping[str, str], bytes], None]
"""Takes a piece of a body as it comes: status, headers, bytes; what it raises ends the request."""


@dataclass
class _Transfer:
    """What has come of one answer.

    libcurl's callbacks can raise nothing: what has to end the transfer is kept here.
    """

    most_bytes: int
    receive: Receive | None
    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    body: bytearray = field(default_factory=bytearray)
    came: int = 0
    too_large: bool = False
    cancelled: bool = False
    done: threading.Event = field(default_factory=threading.Event)
    failure: BaseException | None = None

    def take_header(self, line: bytes) -> None:
        if line.startswith(b"HTTP/"):
            # Not the first one after a "100 Continue" or a redirection.
            code = line.split(maxsplit=2)[1:2]
            self.status, self.headers = int(code[0]) if code and code[0].isdigit() else 0, {}
            return
        name, colon, value = line.decode("latin-1").partition(":")
        if colon:
            name, value = name.strip().lower(), value.strip()
            self.headers[name] = f"{self.headers[name]}, {value}" if name in self.headers else value

    def take_body(self, piece: bytes) -> int:
        """How much of it was taken; less than all ends the transfer."""
        self.came += len(piece)
        if self.receive is None:
            self.body += piece[: self.most_bytes - len(self.body)]
            self.too_large = self.came > self.most_bytes
            return 0 if self.too_large else len(piece)
        try:
            self.receive(self.status, self.headers, piece)
        except BaseException as err:  # noqa: BLE001 - whoever asked raises it
            self.failure = err
            return 0
        return len(piece)


class Courier:
    """Sends requests over kept-alive connections, from any number of threads; a context manager.

    libcurl bounds them: its deadline holds for all of a request, from the look-up of the name to the last
    byte, whatever comes in between, and it gives up on heads without end.

    Args:
        ca: certificates to trust instead of the system's, PEM.
        verify: whether certificates are checked.
        signing: what requests are signed with.
        outside: go through the proxies that the environment names.
        follows: go where redirections lead. Credentials of the address stay with its host, `~/.netrc` says
            those of others, and what was asked over TLS goes on over TLS.
    """

    def __init__(
        self,
        *,
        ca: Path | str | None = None,
        verify: bool = True,
        signing: Signing | None = None,
        outside: bool = False,
        follows: bool = False,
    ) -> None:
        self._ca = ca
        self._verify = verify
        self._signing = signing
        self._outside = outside
        self._follows = follows
        self._idle: deque[Any] = deque()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def ask(
        self,
        method: str,
        url: str,
        *,
        headers: Iterable[str] = (),
        body: bytes = b"",
        deadline_s: float | None,
        most_bytes: int = MOST_ANSWER_BYTES,
        receive: Receive | None = None,
    ) -> Answer:
        """Send one request and wait for its answer, whatever its status.

        Args:
            method: of HTTP.
            url: absolute.
            headers: whole lines.
            body: what is sent; empty for none.
            deadline_s: for all of it. None: as long as the answer does not stall for TIMEOUT_S.
            most_bytes: of its body, unpacked.
            receive: takes the body piece by piece, in another thread, instead of `most_bytes` of memory.

        Raises:
            Unanswered: there is no whole answer, or a larger one.
        """
        if not url.lower().startswith(("http://", "https://")):
            raise Unanswered(Trouble.OTHER, "it is not an http or https address")
        try:
            curl = self._idle.pop()
        except IndexError:
            curl = pycurl.Curl()
        transfer = _Transfer(most_bytes, receive)
        kept = False
        try:
            self._prepare(curl, url, transfer)
            if self._signing is not None:
                set_signing(curl, self._signing)
                headers = (*headers, self._signing.digest_line(body))
            _load(curl, method, headers, body)
            if deadline_s is None:
                curl.setopt(pycurl.LOW_SPEED_LIMIT, _STALLED_BYTES_PER_S)
                curl.setopt(pycurl.LOW_SPEED_TIME, TIMEOUT_S)
            else:
                curl.setopt(pycurl.TIMEOUT_MS, max(round(deadline_s * 1000), 1))
            failure = _perform(curl, transfer)
            if transfer.failure is not None:
                raise transfer.failure
            took_s = curl.getinfo(pycurl.TOTAL_TIME)
            answer = Answer(transfer.status, transfer.headers, bytes(transfer.body), took_s)
            if failure is not None:
                limit_s = TIMEOUT_S if deadline_s is None else deadline_s
                raise Unanswered(*_explain(failure, transfer, limit_s), answer) from failure
            kept = True
            return answer
        finally:
            if kept:
                self._idle.append(curl)
            elif transfer.done.is_set():
                curl.close()

    def close(self) -> None:
        """Close the connections; harmless when repeated."""
        while self._idle:
            self._idle.pop().close()

    def _prepare(self, curl: Any, url: str, transfer: _Transfer) -> None:
        curl.reset()  # its connections stay
        curl.setopt(pycurl.URL, quote(url, safe=_IN_URLS))
        curl.setopt(pycurl.HTTP_VERSION, pycurl.CURL_HTTP_VERSION_1_1)
        curl.setopt(pycurl.NOSIGNAL, 1)
        curl.setopt(pycurl.CONNECTTIMEOUT, _CONNECT_TIMEOUT_S)
        curl.setopt(pycurl.NOPROGRESS, 0)
        curl.setopt(pycurl.XFERINFOFUNCTION, lambda *_: transfer.cancelled)
        curl.setopt(pycurl.HEADERFUNCTION, transfer.take_header)
        curl.setopt(pycurl.WRITEFUNCTION, transfer.take_body)
        curl.setopt(pycurl.PROTOCOLS, pycurl.PROTO_HTTP | pycurl.PROTO_HTTPS)
        if not self._outside:
            curl.setopt(pycurl.NOPROXY, "*")
        if self._follows:
            plain = 0 if url.lower().startswith("https:") else pycurl.PROTO_HTTP
            curl.setopt(pycurl.REDIR_PROTOCOLS, plain | pycurl.PROTO_HTTPS)
            curl.setopt(pycurl.FOLLOWLOCATION, 1)
            curl.setopt(pycurl.MAXREDIRS, _MOST_REDIRECTS)
            curl.setopt(pycurl.NETRC, pycurl.NETRC_OPTIONAL)
        set_trust(curl, self._ca, verify=self._verify)


def set_trust(curl: Any, ca: Path | str | None, *, verify: bool = True) -> None:
    """Tell libcurl whose certificates are believed: these, else the system's."""
    if not verify:
        curl.setopt(pycurl.SSL_VERIFYPEER, 0)
        curl.setopt(pycurl.SSL_VERIFYHOST, 0)
    elif ca is not None:
        curl.setopt(pycurl.CAINFO, str(ca))
        curl.unsetopt(pycurl.CAPATH)
    else:
        trust = system_trust()
        for option, value in ((pycurl.CAINFO, trust.file), (pycurl.CAPATH, trust.folder)):
            if value is not None:
                curl.setopt(option, value)


def set_signing(curl: Any, signing: Signing) -> None:
    """Tell libcurl to sign every request as AWS asks for; it takes the time of each anew.

    Raises:
        BenchctlError: this libcurl cannot.
    """
    option = getattr(pycurl, "AWS_SIGV4", None)
    if option is None:
        raise BenchctlError(
            f"{pycurl.version.partition(' Open')[0]} cannot sign requests as AWS asks for",
            hint="pip install --upgrade pycurl: its own builds can; one of a distribution needs libcurl 7.75",
        )
    curl.setopt(option, f"aws:amz:{signing.region}:{signing.service}")
    curl.setopt(pycurl.USERNAME, signing.key_id)
    curl.setopt(pycurl.PASSWORD, signing.secret)


def _load(curl: Any, method: str, headers: Iterable[str], body: bytes) -> None:
    lines = ["Expect:", *headers]
    if not any(line.lower().startswith("content-type:") for line in lines):
        lines.append("Content-Type:")  # libcurl would say that it is a form
    curl.setopt(pycurl.HTTPHEADER, lines)
    if method == "HEAD":
        curl.setopt(pycurl.NOBODY, 1)
    elif body or method == "POST":
        curl.setopt(pycurl.POSTFIELDS, body)
    if method not in {"GET", "HEAD"}:
        # libcurl repeats what a kept connection loses; the node may have begun to work on it.
        curl.setopt(pycurl.FRESH_CONNECT, 1)
    if method not in {"GET", "HEAD", "POST"} or (method == "GET" and body):
        curl.setopt(pycurl.CUSTOMREQUEST, method)


def _perform(curl: Any, transfer: _Transfer) -> pycurl.error | None:
    """Let libcurl do it in another thread: in C no Ctrl-C would be heard before its end."""
    failures: list[pycurl.error] = []

    def work() -> None:
        try:
            curl.perform()
        except pycurl.error as err:
            failures.append(err)
        finally:
            transfer.done.set()

    threading.Thread(target=work, name="http", daemon=True).start()
    try:
        # Not the thread itself: a join that is interrupted takes it for ended.
        transfer.done.wait()
    except BaseException:
        transfer.cancelled = True
        transfer.done.wait(_INTERRUPT_S)
        raise
    return failures[0] if failures else None


def _explain(err: pycurl.error, transfer: _Transfer, limit_s: float) -> tuple[Trouble, str]:
    code, detail = err.args
    if transfer.too_large:
        return Trouble.TOO_LARGE, f"its answer is larger than {transfer.most_bytes / 2**20:,.4g} MiB"
    if code == _E_TOO_LARGE or "Too large response headers" in detail:
        return Trouble.TOO_LARGE, "its head has no end"
    if code == pycurl.E_URL_MALFORMAT:
        return Trouble.OTHER, "its address, or the one that its server leads to, is not a URL"
    if code == pycurl.E_UNSUPPORTED_PROTOCOL and "redirect" in detail:
        return Trouble.OTHER, "its server leads away from https"
    trouble = TROUBLES.get(code, Trouble.OTHER)
    if trouble is Trouble.TIMEOUT:
        whole, came = ("whole ", f", only {transfer.came:,} bytes of it") if transfer.came else ("", "")
        return trouble, f"no {whole}answer within {limit_s:g} s{came}"
    if trouble is Trouble.UNTRUSTED and any(words in detail.lower() for words in _OTHER_NAME):
        trouble = Trouble.OTHER_NAME
    return trouble, detail or f"libcurl gives up with error {code}"


def outside() -> Courier:
    """For files on the web: through proxies, REQUESTS_CA_BUNDLE trusted, to wherever servers lead."""
    return Courier(ca=os.environ.get("REQUESTS_CA_BUNDLE") or None, outside=True, follows=True)


@contextlib.contextmanager
def network_errors(doing: str, *, hint: str) -> Iterator[None]:
    """Turn what the network does inside the block into a BenchctlError.

    Args:
        doing: what is being done, for "cannot ...".
        hint: what to do about it.
    """
    try:
        yield
    except Unanswered as err:
        reason = err.text
        if err.trouble in {Trouble.REFUSED, Trouble.UNRESOLVED}:
            reason = "no connection"
        elif err.trouble is Trouble.BROKEN:
            reason = "the connection ended before everything had come"
        elif err.trouble is Trouble.OTHER_NAME:
            reason = "the certificate of its host is for another name"
        elif err.trouble in {Trouble.UNTRUSTED, Trouble.UNREADABLE_TRUST}:
            reason = "the certificate of its host is not trusted"
            hint = "name the certificates to trust, such as those of a proxy, in REQUESTS_CA_BUNDLE"
        raise BenchctlError(f"cannot {doing}: {reason}", hint=hint) from err


def shown(parts: SplitResult) -> str:
    """A URL for messages: without credentials and query."""
    return parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment="").geturl()
