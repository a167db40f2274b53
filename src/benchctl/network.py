"""HTTP for everything that is not measured: every request ends in time, and no answer fills the memory."""

import contextlib
import http.client
import netrc
import os
import socket
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from enum import Enum, auto
from pathlib import Path
from typing import Any, NamedTuple, Self
from urllib.parse import SplitResult, unquote, urljoin
from urllib.request import getproxies, proxy_bypass

import urllib3
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.exceptions import (
    ConnectTimeoutError,
    DecodeError,
    InsecureRequestWarning,
    LocationValueError,
    NameResolutionError,
    NewConnectionError,
    ReadTimeoutError,
)
from urllib3.util import Url, parse_url

from benchctl.endpoint import Endpoint, Signing, tls_context
from benchctl.errors import BenchctlError

Progress = Callable[[str, int, int], None]
"""Called with (`bytes of FILE`, bytes done, bytes in total) during long work; the total is 0 when unknown."""

TIMEOUT_S = 30
MAX_ANSWER_BYTES = 64 << 20
"""Of an answer that is kept in memory, unpacked: many times what an administrative request needs."""

_CONNECT_TIMEOUT_S = 15
_MAX_REDIRECTS = 10
# A download slower than this for TIMEOUT_S has stalled, whatever trickles in.
_STALLED_BYTES_PER_S = 100
_INTERRUPT_S = 3.0
_PIECE_BYTES = 1 << 18
_PIECE_COST_BYTES = 64  # what a piece of a body counts beside its bytes: a server may send one at a time
_CONNECTIONS = 16


class Trouble(Enum):
    """Reason why a response is incomplete."""

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


# The first row that an exception or one of its causes fits decides.
_TROUBLES = (
    (NameResolutionError, Trouble.UNRESOLVED),
    (ssl.SSLCertVerificationError, Trouble.UNTRUSTED),
    (NewConnectionError, Trouble.REFUSED),
    ((ConnectTimeoutError, ReadTimeoutError, TimeoutError), Trouble.TIMEOUT),
    (http.client.LineTooLong, Trouble.TOO_LARGE),
    ((ConnectionError, ssl.SSLEOFError, http.client.IncompleteRead), Trouble.BROKEN),
    (ssl.SSLError, Trouble.NO_TLS),
    ((http.client.HTTPException, DecodeError), Trouble.NO_HTTP),
    (LocationValueError, Trouble.OTHER),
    ((OSError, urllib3.exceptions.ProtocolError), Trouble.BROKEN),
)
_OTHER_NAME = (62, 64)  # OpenSSL's codes of certificates that are for another host name or address


class Answer(NamedTuple):
    """A whole answer; its headers have names in any case, its body is empty where it was handed on."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Unanswered(Exception):  # noqa: N818 - it says what happened
    """There was no whole answer; `partial` is what came of it, if its head did."""

    def __init__(self, trouble: Trouble, text: str, partial: Answer | None = None) -> None:
        super().__init__(text)
        self.trouble = trouble
        self.text = text
        self.partial = partial


Receive = Callable[[int, Mapping[str, str], bytes], None]
"""Takes a piece of a body as it comes: status, headers, bytes; what it raises ends the request."""


class _Exchange(threading.Thread):
    """A request at work in another thread: neither a look-up of a name nor a read could be ended here."""

    def __init__(self, work: Callable[["_Exchange"], None]) -> None:
        super().__init__(name="http", daemon=True)
        self._work = work
        self._sockets: list[socket.socket] = []
        self.response: urllib3.BaseHTTPResponse | None = None
        self.body = bytearray()
        self.received_bytes = 0
        self.cancelled = False
        self.done = threading.Event()
        self.failure: BaseException | None = None

    def run(self) -> None:
        try:
            self._work(self)
        except BaseException as err:  # noqa: BLE001 - whoever asked raises it
            self.failure = err
        finally:
            if self.response is not None and (self.failure is not None or self.cancelled):
                self.response.close()
            while self._sockets:
                self._sockets.pop().close()
            self.done.set()

    def hold(self, connection: socket.socket) -> None:
        """Remember a connection in use, by a descriptor that stays whatever becomes of its own."""
        self._sockets.append(socket.socket(fileno=os.dup(connection.fileno())))
        if self.cancelled:
            self.end()

    def end(self) -> None:
        """End the request from another thread."""
        self.cancelled = True
        for connection in tuple(self._sockets):
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    @property
    def answer(self) -> Answer | None:
        """Received part of the response; None before the end of its head."""
        if self.response is None:
            return None
        return Answer(self.response.status, self.response.headers, bytes(self.body))


class _Held:
    """A connection that the exchange which uses it can end."""

    sock: socket.socket | None

    def _new_conn(self) -> socket.socket:
        connection: socket.socket = super()._new_conn()  # type: ignore[misc]
        _hold(connection)
        return connection

    def request(self, *args: Any, **kwargs: Any) -> None:
        if self.sock is not None:
            _hold(self.sock)
        super().request(*args, **kwargs)  # type: ignore[misc]


def _hold(connection: socket.socket) -> None:
    exchange = threading.current_thread()
    if isinstance(exchange, _Exchange):
        exchange.hold(connection)


class _HeldConnection(_Held, HTTPConnection):
    pass


class _HeldTlsConnection(_Held, HTTPSConnection):
    pass


class _Pool(urllib3.HTTPConnectionPool):
    ConnectionCls = _HeldConnection


class _TlsPool(urllib3.HTTPSConnectionPool):
    ConnectionCls = _HeldTlsConnection


class Courier:
    """Sends requests over kept-alive connections, from any number of threads; a context manager.

    Nothing is sent twice. A deadline holds from the look-up of the name to the last byte.

    Args:
        ca: certificates to trust instead of the system's, PEM.
        verify: whether certificates are checked.
        signing: what requests are signed with.
        outside: go through the proxies that the environment names.
        proxy: URL of the proxy to go through.
        follows: go where redirections lead. Credentials of the address stay with its host, `~/.netrc` has
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
        proxy: str | None = None,
    ) -> None:
        self._ca = ca
        self._verify = verify
        self._signing = signing
        self._outside = outside
        self._follows = follows
        self._proxy = proxy or ""
        self._managers: dict[str, urllib3.PoolManager] = {}
        self._exchanges: set[_Exchange] = set()
        if not verify:
            urllib3.disable_warnings(InsecureRequestWarning)

    @classmethod
    def to(cls, endpoint: Endpoint) -> Self:
        """Return a courier to a cluster: with its certificates, signatures and proxy."""
        return cls(ca=endpoint.ca, verify=endpoint.verify, signing=endpoint.signing, proxy=endpoint.proxy)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def ask(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        body: bytes = b"",
        deadline_s: float | None,
        max_bytes: int = MAX_ANSWER_BYTES,
        receive: Receive | None = None,
    ) -> Answer:
        """Send one request and wait for its answer, whatever its status.

        Args:
            method: of HTTP.
            url: absolute.
            headers: also for hosts that the request is redirected to.
            body: what is sent; empty for none.
            deadline_s: for all of it. None: as long as the answer does not stall for TIMEOUT_S.
            max_bytes: of its body, unpacked.
            receive: takes the body piece by piece, as it is sent, in another thread, instead of `max_bytes`
                of memory.

        Raises:
            Unanswered: If there is no whole answer, or a larger one.
        """
        limit_s = TIMEOUT_S if deadline_s is None else deadline_s

        def work(exchange: _Exchange) -> None:
            exchange.response = self._open(method, url, headers or {}, body, limit_s)
            _read(exchange, max_bytes, receive)

        exchange = _Exchange(work)
        self._exchanges.add(exchange)
        exchange.start()
        timed_out, before_bytes = False, 0
        try:
            while not timed_out and not exchange.done.wait(limit_s):
                came_bytes = exchange.received_bytes - before_bytes
                timed_out = deadline_s is not None or came_bytes <= _STALLED_BYTES_PER_S * limit_s
                before_bytes = exchange.received_bytes
        finally:
            self._exchanges.discard(exchange)
            if not exchange.done.is_set():
                exchange.end()
                exchange.done.wait(_INTERRUPT_S)
        failure = exchange.failure
        if timed_out or (isinstance(failure, Unanswered) and failure.trouble is Trouble.TIMEOUT):
            came = exchange.received_bytes
            whole, part = ("whole ", f", only {came:,} bytes of it") if came else ("", "")
            text = f"no {whole}response within {limit_s:g} s{part}"
            raise Unanswered(Trouble.TIMEOUT, text, exchange.answer) from failure
        if isinstance(failure, Unanswered):
            failure.partial = exchange.answer
        if failure is not None or exchange.answer is None:
            raise failure or RuntimeError("a request ended without a response")
        return exchange.answer

    def interrupt(self) -> None:
        """End the requests in flight from another thread."""
        for exchange in tuple(self._exchanges):
            exchange.end()

    def close(self) -> None:
        """Close the connections; harmless when repeated."""
        while self._managers:
            self._managers.popitem()[1].clear()

    def _open(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes, limit_s: float
    ) -> urllib3.BaseHTTPResponse:
        """Send the request, and again to where it is redirected; return the head of the last answer."""
        with _failures():
            target = _parsed(url)
            auth = self._auth(target)
            for _ in range(_MAX_REDIRECTS + 1):
                sent = urllib3.HTTPHeaderDict({"user-agent": "benchctl"})
                sent.update(headers)
                if auth is not None:
                    sent.update(urllib3.make_headers(basic_auth=auth))
                if self._signing is not None:
                    sent.update(self._signing.headers(method, target.url, sent, body))
                response = self._manager(target).urlopen(
                    method,
                    target.url,
                    body=body or None,
                    headers=sent,
                    redirect=False,
                    retries=False,
                    preload_content=False,
                    timeout=urllib3.Timeout(connect=min(_CONNECT_TIMEOUT_S, limit_s), read=limit_s),
                )
                location = response.get_redirect_location() if self._follows else None
                if not location:
                    return response
                response.close()
                origin, target = target, _parsed(urljoin(target.url, location))
                if origin.scheme == "https" != target.scheme:
                    raise Unanswered(Trouble.OTHER, "its server redirects from https to http")
                if (origin.scheme, origin.netloc) != (target.scheme, target.netloc):
                    auth = self._auth(target)
        raise Unanswered(Trouble.OTHER, f"its server redirects more than {_MAX_REDIRECTS} times")

    def _auth(self, target: Url) -> str | None:
        """Return user and password for a host: those of its address, else those of `~/.netrc`."""
        if target.auth is not None or not self._follows:
            return target.auth and unquote(target.auth)
        with contextlib.suppress(OSError, ValueError, netrc.NetrcParseError):
            if entry := netrc.netrc(Path("~/.netrc").expanduser()).authenticators(str(target.host)):
                return f"{entry[0]}:{entry[2]}"
        return None

    def _manager(self, target: Url) -> urllib3.PoolManager:
        """Return the pools for a host, or for the proxy on the way to it."""
        proxy = self._proxy
        if self._outside and target.host is not None and not proxy_bypass(target.host):
            proxies = getproxies()
            proxy = proxies.get(str(target.scheme)) or proxies.get("all") or ""
            proxy = proxy if "://" in proxy or not proxy else f"http://{proxy}"
        manager = self._managers.get(proxy)
        if manager is None:
            try:
                context = tls_context(self._ca, verify=self._verify)
            except OSError as err:
                text = f"no certificates can be read from {self._ca}"
                raise Unanswered(Trouble.UNREADABLE_TRUST, text) from err
            options: dict[str, Any] = {"ssl_context": context, "maxsize": _CONNECTIONS}
            if proxy:
                auth = parse_url(proxy).auth
                credentials = urllib3.make_headers(proxy_basic_auth=unquote(auth)) if auth else None
                manager = urllib3.ProxyManager(proxy, proxy_headers=credentials, **options)
            else:
                manager = urllib3.PoolManager(**options)
            manager.pool_classes_by_scheme = {"http": _Pool, "https": _TlsPool}
            self._managers[proxy] = manager
        return manager


def _read(exchange: _Exchange, max_bytes: int, receive: Receive | None) -> None:
    """Read the body of an answer to its end."""
    response, cost_bytes = exchange.response, 0
    assert response is not None  # noqa: S101 - its head is there
    if response.status < http.HTTPStatus.OK:
        raise Unanswered(Trouble.BROKEN, f"HTTP {response.status} is not a final response")
    while not exchange.cancelled:
        with _failures():
            piece = response.read1(_PIECE_BYTES, decode_content=receive is None)
        if not piece:
            return
        exchange.received_bytes += len(piece)
        if receive is not None:
            receive(response.status, response.headers, piece)
            continue
        exchange.body += piece[: max_bytes - len(exchange.body)]
        cost_bytes += len(piece) + _PIECE_COST_BYTES
        if cost_bytes > max_bytes:
            raise Unanswered(Trouble.TOO_LARGE, f"its response is larger than {max_bytes / 2**20:,.4g} MiB")


def _parsed(url: str) -> Url:
    """Return a URL with everything encoded that must be."""
    parsed = parse_url(url)
    if parsed.scheme not in {"http", "https"} or not parsed.host:
        raise Unanswered(Trouble.OTHER, "it is not an http or https address")
    return parsed


@contextlib.contextmanager
def _failures() -> Iterator[None]:
    """Turn what urllib3 and the layers below it raise into Unanswered."""
    try:
        yield
    except (urllib3.exceptions.HTTPError, http.client.HTTPException, OSError, ValueError) as err:
        causes = list(_causes(err))
        trouble = next(
            (trouble for kind, trouble in _TROUBLES if any(isinstance(cause, kind) for cause in causes)),
            Trouble.OTHER,
        )
        text = str(causes[-1]) or type(causes[-1]).__name__
        if trouble is Trouble.OTHER:
            text = "its address, or the one that its server redirects to, is not a URL"
        certificate = next(
            (cause for cause in causes if isinstance(cause, ssl.SSLCertVerificationError)), None
        )
        if certificate is not None:
            text = f"its certificate is not trusted: {certificate.verify_message}"
            if certificate.verify_code in _OTHER_NAME:
                trouble = Trouble.OTHER_NAME
        if trouble is Trouble.TOO_LARGE or any(type(cause) is http.client.HTTPException for cause in causes):
            trouble, text = Trouble.TOO_LARGE, "its response headers are incomplete"
        raise Unanswered(trouble, text) from err


def _causes(err: BaseException) -> Iterator[BaseException]:
    """Iterate over an exception and what it wraps, outermost first."""
    yield err
    for inner in (*err.args, err.__cause__):
        if isinstance(inner, BaseException):
            yield from _causes(inner)


def outside() -> Courier:
    """Return a courier for files on the web: through proxies, to wherever servers lead.

    REQUESTS_CA_BUNDLE or CURL_CA_BUNDLE can name the certificates to trust instead of the system's.
    """
    named = os.environ.get("REQUESTS_CA_BUNDLE") or os.environ.get("CURL_CA_BUNDLE")
    return Courier(ca=named or None, outside=True, follows=True)


@contextlib.contextmanager
def network_errors(doing: str, *, hint: str) -> Iterator[None]:
    """Turn what the network does inside the block into a BenchctlError.

    `doing` is what is being done, for "cannot ...".
    """
    try:
        yield
    except Unanswered as err:
        reason = err.text
        if err.trouble in {Trouble.REFUSED, Trouble.UNRESOLVED}:
            reason = "no connection"
        elif err.trouble is Trouble.BROKEN:
            reason = "the connection ended before the response was complete"
        elif err.trouble is Trouble.OTHER_NAME:
            reason = "the certificate of its host is for another name"
        elif err.trouble in {Trouble.UNTRUSTED, Trouble.UNREADABLE_TRUST}:
            reason = "the certificate of its host is not trusted"
            hint = (
                "add the certificates, such as those of a proxy, to the system's, or set REQUESTS_CA_BUNDLE"
            )
        raise BenchctlError(f"cannot {doing}: {reason}", hint=hint) from err


def shown(parts: SplitResult) -> str:
    """Return a URL for messages: without credentials and query."""
    return parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment="").geturl()
