"""Requests, and the measured wire client: libcurl over kept-alive connections, timed by its own clocks."""

import contextlib
import itertools
import os
import select
import socket
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Self

import msgspec
import pycurl

from benchctl.endpoint import Endpoint, system_trust
from benchctl.results.samples import Outcome


class Answer(msgspec.Struct, frozen=True, gc=False):
    """The meaning of a response."""

    outcome: Outcome
    took_ms: int = -1  # the engine's own time; -1 unknown
    hits: int = -1  # total hits; -1 when the engine was told not to count, or did not say
    hits_exact: bool = False  # whether it counted them all
    failed_shards: int = 0
    reason: str = ""  # the engine's words about a failure, shortened; else empty
    # Why the operation cannot be sent at all, where the driver knows that without the node; else empty.
    lacking: str = ""
    weight: int = 1  # units of throughput of an operation of several requests, known only at its end
    unit: str = ""  # of the weight, where the operation says so; else empty
    # The engine's own time of every search of a batch or composite, in order; else empty.
    tooks_ms: tuple[int, ...] = ()
    # Of a profiled search, nanoseconds over all shards: its `query`, its `aggs`, and each of these as
    # `aggs.NAME`; else None.
    profile_ns: Mapping[str, int] | None = None
    recall: float | None = None  # of nearest vectors; None where unknown


Judge = Callable[[int, bytes], Answer]
"""Reads an answer: HTTP status and whole body."""


class Request(msgspec.Struct, frozen=True, gc=False, eq=False):
    """A request, ready for the wire."""

    method: str
    path: str  # path and query, percent-encoded
    body: bytes  # encoded; empty for none
    headers: tuple[str, ...]  # whole header lines
    timeout_s: float  # seconds until it counts as timed out
    judge: Judge
    searches: int = 0  # by how much the node's own count of searches grows
    weight: int = 1  # units of throughput
    retries: int = 0  # how often it is resent when the node rejects it with 429


class Exchange(msgspec.Struct, frozen=True, gc=False):
    """A request on the wire, whatever came of it."""

    start_ns: int  # just before it was handed to libcurl, on the monotonic clock
    connect_ns: int  # time to connect; 0 on the kept-alive connection
    end_ns: int  # the last byte of the body, or the failure
    status: int  # HTTP status; 0 when there was no response
    body: bytes  # as far as it came
    response_bytes: int
    # What went wrong on the wire; None for a complete response, HTTP errors included.
    failure: Outcome | None = None
    detail: str = ""  # libcurl's words about the failure


MOST_ANSWER_BYTES = 256 << 20
"""Limit of a measured answer, decompressed; a larger one is a failure, and would exhaust the run's memory."""

_CONNECT_TIMEOUT_MS = 10_000
# Overhead of a chunk of a body; a node may send it byte by byte.
_PIECE_BYTES = 64
# Most answers fit, so Python is called once for a body, not once for every 16 kB of it.
_BUFFER_BYTES = 256 * 1024
_A_DAY_S = 86_400
_NS_PER_US = 1_000
# A connection that has just delivered a complete answer is assumed to be open.
_FRESH_NS = 300_000
# AWS accepts a signature for five minutes.
_SIGNED_NS = 60_000_000_000
_TOTAL_TIME = pycurl.TOTAL_TIME_T
_STATUS = pycurl.RESPONSE_CODE

_E_TOO_LARGE = 100  # pycurl has no name for it
# What libcurl's failures mean; any other is a misuse of libcurl, or a bug.
_FAILURES = {
    pycurl.E_COULDNT_RESOLVE_HOST: Outcome.REFUSED,
    pycurl.E_COULDNT_CONNECT: Outcome.REFUSED,
    pycurl.E_PEER_FAILED_VERIFICATION: Outcome.REFUSED,
    pycurl.E_SSL_CACERT_BADFILE: Outcome.REFUSED,
    pycurl.E_SSL_CONNECT_ERROR: Outcome.REFUSED,
    pycurl.E_OPERATION_TIMEDOUT: Outcome.TIMEOUT,
    pycurl.E_GOT_NOTHING: Outcome.RESET,
    pycurl.E_SEND_ERROR: Outcome.RESET,
    pycurl.E_RECV_ERROR: Outcome.RESET,
    pycurl.E_PARTIAL_FILE: Outcome.RESET,
    pycurl.E_UNSUPPORTED_PROTOCOL: Outcome.BAD_BODY,  # a status line of HTTP/0.9, or none at all
    pycurl.E_FTP_WEIRD_SERVER_REPLY: Outcome.BAD_BODY,  # its newer name lacks FTP
    pycurl.E_BAD_CONTENT_ENCODING: Outcome.BAD_BODY,
    pycurl.E_FILESIZE_EXCEEDED: Outcome.BAD_BODY,
    pycurl.E_WRITE_ERROR: Outcome.BAD_BODY,  # the body was not taken to its end
    _E_TOO_LARGE: Outcome.BAD_BODY,  # headers that never end
}

# Opens the connection and warms nothing that a search uses; engines count it apart from searches.
_GREETING = Request(
    "GET", "/_cluster/health?local=true", b"", (), 10.0, lambda _status, _body: Answer(Outcome.OK)
)


class _Closing:
    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections; idempotent."""
        raise NotImplementedError


class WireClient(_Closing):
    """A connection to one host, for one thread at a time; a context manager.

    libcurl silently repeats a request when a kept-alive connection breaks before the first byte of the
    answer. A benchmark must not: the node may have worked on both, and the sample would hide the failure. So
    a connection that died while idle is replaced before a request, and none is opened in the middle of one.

    Args:
        endpoint: the cluster, or its URL.
        host: which of its hosts, from 0.
        most_bytes: limit of an answer in memory.
    """

    def __init__(
        self, endpoint: Endpoint | str, host: int = 0, *, most_bytes: int = MOST_ANSWER_BYTES
    ) -> None:
        endpoint = Endpoint.of(endpoint)
        self._base_url = endpoint.hosts[host]
        # A body of more than 1 MB would otherwise wait for the node's "100 Continue".
        self._headers = (*endpoint.headers, "Expect:")
        self._signing = endpoint.signing
        self._resign_ns = sys.maxsize
        self._chunks: list[bytes] = []
        self._most_bytes = most_bytes
        self._left_bytes = most_bytes
        self._loaded: Request | None = None
        # The open one; several only while libcurl tries the addresses of a name.
        self._sockets: list[socket.socket] = []
        self._may_open = True
        self._opened = False
        self._fresh_ns = _FRESH_NS
        self._fresh_until_ns = 0
        self._interrupted = False
        self._curl = self._new_handle(endpoint)

    @property
    def interrupted(self) -> bool:
        """Return whether `interrupt` was called: a failure after that is not the cluster's."""
        return self._interrupted

    def connect(self) -> Exchange:
        """Open the connection with a request that is not a search, so that no measured one pays for it."""
        return self.send(_GREETING)

    def send(self, request: Request) -> Exchange:
        """Send a request and wait for the whole answer; failures are part of the result, not exceptions."""
        if request is not self._loaded or time.monotonic_ns() > self._resign_ns:
            self._load(request)
        curl = self._curl
        chunks = self._chunks
        chunks.clear()
        self._left_bytes = self._most_bytes
        now_ns = time.monotonic_ns()
        # The check is a system call, which releases the interpreter lock and contends for it again.
        stale = bool(self._sockets) and now_ns > self._fresh_until_ns and self._is_readable()
        self._may_open = stale or not self._sockets
        if stale:
            # libcurl would reuse it, and take stray data for the answer.
            curl.setopt(pycurl.FRESH_CONNECT, 1)
        failure, detail = None, ""
        start_ns = time.monotonic_ns()
        try:
            curl.perform()
        except pycurl.error as err:
            failure, detail = self._explain(err)
        if stale:
            curl.setopt(pycurl.FRESH_CONNECT, 0)
        getinfo = curl.getinfo
        end_ns = start_ns + getinfo(_TOTAL_TIME) * _NS_PER_US
        self._fresh_until_ns = end_ns + self._fresh_ns if failure is None else 0
        if len(chunks) == 1:
            body = chunks[0]
        else:
            body = b"".join(chunks)
            # A large body is not held twice until the next request.
            chunks.clear()
        connect_ns = 0
        if self._opened:
            connect_ns = self._connect_ns() if getinfo(pycurl.NUM_CONNECTS) else 0
            self._opened = False
        return Exchange(
            start_ns,
            connect_ns,
            end_ns,
            getinfo(_STATUS),
            body,
            len(body),
            failure,
            detail,
        )

    def interrupt(self) -> None:
        """End a request in flight from another thread; the client is of no use afterwards."""
        self._interrupted = True
        for current in tuple(self._sockets):
            # It may have been closed meanwhile: then there is nothing left to end.
            with contextlib.suppress(OSError):
                current.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Close the connection; idempotent."""
        self._curl.close()
        while self._sockets:
            self._sockets.pop().close()

    def _new_handle(self, endpoint: Endpoint) -> Any:
        curl = pycurl.Curl()
        curl.setopt(pycurl.HTTP_VERSION, pycurl.CURL_HTTP_VERSION_1_1)
        # An empty list, so that the environment has no say.
        curl.setopt(pycurl.NOPROXY, "*" if endpoint.proxy is None else "")
        curl.setopt(pycurl.PROXY, endpoint.proxy or "")
        curl.setopt(pycurl.NOSIGNAL, 1)
        curl.setopt(pycurl.TCP_NODELAY, 1)
        curl.setopt(pycurl.USERAGENT, "benchctl")
        curl.setopt(pycurl.CONNECTTIMEOUT_MS, _CONNECT_TIMEOUT_MS)
        curl.setopt(pycurl.BUFFERSIZE, _BUFFER_BYTES)
        curl.setopt(pycurl.MAXCONNECTS, 1)
        # A slow schedule must not make libcurl think its idle connection too old.
        curl.setopt(pycurl.MAXAGE_CONN, _A_DAY_S)
        # Where a connection must be replaced, it leads to the same address, and no request waits for a name.
        curl.setopt(pycurl.DNS_CACHE_TIMEOUT, _A_DAY_S)
        curl.setopt(pycurl.MAXFILESIZE_LARGE, self._most_bytes)
        curl.setopt(pycurl.OPENSOCKETFUNCTION, self._open_socket)
        curl.setopt(pycurl.CLOSESOCKETFUNCTION, self._close_socket)
        if self._base_url.startswith("https:"):
            _set_trust(curl, endpoint)
        return curl

    def _load(self, request: Request) -> None:
        """Set what differs between requests; a task's request is loaded once and sent many times."""
        curl = self._curl
        url = self._base_url + request.path
        curl.setopt(pycurl.URL, url)
        if self._signing is not None:
            # Before the clock starts, and for as many requests as it is good for.
            sent = dict(line.split(": ", 1) for line in self._headers if line.startswith("x-amz-"))
            signed = self._signing.headers(request.method, url, sent, request.body)
            self._load_headers((*request.headers, *(f"{name}: {value}" for name, value in signed.items())))
            self._resign_ns = time.monotonic_ns() + _SIGNED_NS
        elif self._loaded is None or request.headers is not self._loaded.headers:
            self._load_headers(request.headers)
        curl.setopt(pycurl.TIMEOUT_MS, max(round(request.timeout_s * 1000), 1))
        if request.body or request.method == "POST":
            curl.setopt(pycurl.POST, 1)
            curl.setopt(pycurl.POSTFIELDS, request.body)
        else:
            curl.setopt(pycurl.HTTPGET, 1)
        # Where there is a body, libcurl would make a POST of a GET.
        if request.method == "POST" or (request.method == "GET" and not request.body):
            curl.unsetopt(pycurl.CUSTOMREQUEST)
        else:
            curl.setopt(pycurl.CUSTOMREQUEST, request.method)
        if request.method == "HEAD":
            # Its answer says how long a body would be that never comes. POST and HTTPGET take this back.
            curl.setopt(pycurl.NOBODY, 1)
        self._loaded = request

    def _load_headers(self, headers: tuple[str, ...]) -> None:
        self._curl.setopt(pycurl.HTTPHEADER, [*headers, *self._headers])
        # Who asks for packed answers has them unpacked; libcurl would not do it because of a header alone.
        fields = (line.partition(":") for line in headers)
        packed = [value.strip() for name, _, value in fields if name.lower() == "accept-encoding"]
        if packed:
            self._curl.setopt(pycurl.ACCEPT_ENCODING, packed[0])
            self._curl.setopt(pycurl.WRITEFUNCTION, self._take)
        else:
            self._curl.unsetopt(pycurl.ACCEPT_ENCODING)
            # libcurl itself counts what is not unpacked, and no Python runs for it.
            self._curl.setopt(pycurl.WRITEFUNCTION, self._chunks.append)

    def _take(self, chunk: bytes) -> int | None:
        """Keep a chunk of a body; 0 makes libcurl give up."""
        self._left_bytes -= len(chunk) + _PIECE_BYTES
        if self._left_bytes < 0:
            self._chunks.clear()
            return 0
        self._chunks.append(chunk)
        return None

    def _explain(self, err: pycurl.error) -> tuple[Outcome, str]:
        code, detail = err.args
        if code == pycurl.E_COULDNT_CONNECT and not self._may_open:
            # This node may close behind an answer without a word: from now on every request looks first.
            self._fresh_ns = 0
            return Outcome.RESET, "the connection broke before the response began"
        # Received, but no valid chunks or headers; TLS leaves no such sign.
        malformed = self._base_url.startswith("http:") and self._curl.getinfo(pycurl.OS_ERRNO) == 0
        if code == pycurl.E_RECV_ERROR and malformed:
            return Outcome.BAD_BODY, detail
        if code in {pycurl.E_WRITE_ERROR, pycurl.E_FILESIZE_EXCEEDED}:
            detail = (
                f"the response is larger than {self._most_bytes >> 20:,} MiB, and was not read completely"
            )
        outcome = _FAILURES.get(code)
        if outcome is None:
            raise err
        return outcome, detail

    def _connect_ns(self) -> int:
        """Time until the connection is usable, TLS included."""
        getinfo = self._curl.getinfo
        usable_us: int = max(getinfo(pycurl.CONNECT_TIME_T), getinfo(pycurl.APPCONNECT_TIME_T))
        return usable_us * _NS_PER_US

    def _is_readable(self) -> bool:
        """Return whether an idle connection has data to read: its end, or something unsolicited."""
        poller = select.poll()
        poller.register(self._sockets[-1], select.POLLIN)
        return bool(poller.poll(0))

    def _open_socket(self, _purpose: int, address: Any) -> Any:
        if not self._may_open or self._interrupted:
            return pycurl.SOCKET_BAD
        # libcurl works on a duplicate of the descriptor; ours is for `interrupt` and for looking at it idle.
        ours = socket.socket(address.family, address.socktype, address.protocol)
        self._sockets.append(ours)
        self._opened = True
        return ours

    def _close_socket(self, descriptor: int) -> int:
        inode = os.fstat(descriptor).st_ino
        os.close(descriptor)
        for ours in [opened for opened in self._sockets if os.fstat(opened.fileno()).st_ino == inode]:
            self._sockets.remove(ours)
            ours.close()
        return 0


def _set_trust(curl: Any, endpoint: Endpoint) -> None:
    if not endpoint.verify:
        curl.setopt(pycurl.SSL_VERIFYPEER, 0)
        curl.setopt(pycurl.SSL_VERIFYHOST, 0)
    elif endpoint.ca is not None:
        curl.setopt(pycurl.CAINFO, str(endpoint.ca))
        curl.unsetopt(pycurl.CAPATH)
    else:
        trust = system_trust()
        for option, value in ((pycurl.CAINFO, trust.file), (pycurl.CAPATH, trust.folder)):
            if value is not None:
                curl.setopt(option, value)


class SeveralWires(_Closing):
    """Several connections as one."""

    def __init__(self, wires: Sequence[Any]) -> None:
        self._wires = tuple(wires)

    @property
    def interrupted(self) -> bool:
        """Return whether `interrupt` was called: a failure after that is not the cluster's."""
        return any(wire.interrupted for wire in self._wires)

    def interrupt(self) -> None:
        """End the requests in flight from another thread; the connections are of no use afterwards."""
        for wire in self._wires:
            wire.interrupt()

    def close(self) -> None:
        """Close the connections; idempotent."""
        for wire in self._wires:
            wire.close()


class RoundRobinClient(SeveralWires):
    """A connection to every host of a cluster, used in turn; a context manager.

    `first` is the host of the first request, so that clients do not all begin with the same.
    """

    def __init__(self, endpoint: Endpoint, first: int) -> None:
        count = len(endpoint.hosts)
        super().__init__([WireClient(endpoint, (first + step) % count) for step in range(count)])
        self._turns: Iterator[WireClient] = itertools.cycle(self._wires)

    def connect(self) -> Exchange:
        """Open all connections; returns the first failure, or the last success."""
        for wire in self._wires:
            greeting: Exchange = wire.connect()
            if greeting.failure is not None:
                break
        return greeting

    def send(self, request: Request) -> Exchange:
        """Send a request to the next host, whatever became of the previous one."""
        return next(self._turns).send(request)


MeasuredClient = WireClient | RoundRobinClient


def open_client(endpoint: Endpoint | str, client: int = 0) -> MeasuredClient:
    """Return a client's connections to a cluster; nothing is sent yet.

    With several hosts, client i (from 0) begins with host i modulo their number.
    """
    endpoint = Endpoint.of(endpoint)
    if len(endpoint.hosts) == 1:
        return WireClient(endpoint)
    return RoundRobinClient(endpoint, client % len(endpoint.hosts))
