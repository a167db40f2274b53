"""The one measured wire client: libcurl over one kept-alive connection, timed by libcurl's own clocks."""

import os
import select
import socket
import time
from types import TracebackType
from typing import Any, Self

import msgspec
import pycurl

from benchctl.load.operations import Request
from benchctl.results.samples import Outcome

_CONNECT_TIMEOUT_MS = 10_000
# Most answers fit, so Python is called once for a body, not once for every 16 kB of it.
_BUFFER_BYTES = 256 * 1024
_A_DAY_S = 86_400
_NS_PER_US = 1_000

# What libcurl's failures mean for a request. Anything else is a misuse of libcurl, and a bug.
_FAILURES = {
    pycurl.E_COULDNT_CONNECT: Outcome.REFUSED,
    pycurl.E_OPERATION_TIMEDOUT: Outcome.TIMEOUT,
    pycurl.E_SEND_ERROR: Outcome.RESET,
    pycurl.E_RECV_ERROR: Outcome.RESET,
    pycurl.E_GOT_NOTHING: Outcome.RESET,
    pycurl.E_PARTIAL_FILE: Outcome.RESET,
    pycurl.E_UNSUPPORTED_PROTOCOL: Outcome.BAD_BODY,  # a status line of HTTP/0.9, or none at all
    pycurl.E_FTP_WEIRD_SERVER_REPLY: Outcome.BAD_BODY,  # its newer name lacks FTP
    pycurl.E_BAD_CONTENT_ENCODING: Outcome.BAD_BODY,
}

# Opens the connection and warms nothing that a search uses; engines count it apart from searches.
_GREETING = Request("GET", "/_cluster/health?local=true", b"", (), 10.0)


class Exchange(msgspec.Struct, frozen=True, gc=False):
    """One request on the wire, whatever came of it.

    Attributes:
        start_ns: just before it was handed to libcurl, on the monotonic clock.
        connect_ns: time to connect; 0 on the kept-alive connection.
        first_byte_ns: from start to the first byte of the response; 0 when there was none.
        end_ns: the last byte of the body, or the failure.
        status: HTTP status; 0 when there was no response.
        body: the body, as far as it came.
        response_bytes: its length.
        failure: what went wrong on the wire; None when a whole response came, errors by HTTP included.
        detail: libcurl's words about the failure.
    """

    start_ns: int
    connect_ns: int
    first_byte_ns: int
    end_ns: int
    status: int
    body: bytes
    response_bytes: int
    failure: Outcome | None = None
    detail: str = ""


class WireClient:
    """One connection to one node, for one thread at a time; a context manager.

    libcurl silently repeats a request when a kept-alive connection breaks before the first byte of the
    answer. A benchmark must not: the node may have worked on both, and the sample would hide the failure. So
    a connection that died while idle is replaced before a request, and none is opened in the middle of one.

    Args:
        base_url: scheme, host and port, without a final slash.
    """

    def __init__(self, base_url: str) -> None:
        self._base_url = base_url
        self._chunks: list[bytes] = []
        self._loaded: Request | None = None
        self._socket: socket.socket | None = None
        self._may_open = True
        self._interrupted = False
        self._curl = self._new_handle()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def interrupted(self) -> bool:
        """Whether `interrupt` was called: a failure after that is not the node's."""
        return self._interrupted

    def connect(self) -> Exchange:
        """Open the connection by a request that is not a search, so that no measured one pays for it."""
        return self.send(_GREETING)

    def send(self, request: Request) -> Exchange:
        """Send a request and wait for the whole answer; failures are part of the result, not exceptions."""
        if request is not self._loaded:
            self._load(request)
        curl = self._curl
        chunks = self._chunks
        chunks.clear()
        self._may_open = self._is_unconnected()
        failure, detail = None, ""
        start_ns = time.monotonic_ns()
        try:
            curl.perform()
        except pycurl.error as err:
            failure, detail = self._explain(err)
        getinfo = curl.getinfo
        body = chunks[0] if len(chunks) == 1 else b"".join(chunks)
        return Exchange(
            start_ns,
            getinfo(pycurl.CONNECT_TIME_T) * _NS_PER_US if getinfo(pycurl.NUM_CONNECTS) else 0,
            getinfo(pycurl.STARTTRANSFER_TIME_T) * _NS_PER_US,
            start_ns + getinfo(pycurl.TOTAL_TIME_T) * _NS_PER_US,
            getinfo(pycurl.RESPONSE_CODE),
            body,
            len(body),
            failure,
            detail,
        )

    def interrupt(self) -> None:
        """End a request in flight from another thread; the client is of no use afterwards."""
        self._interrupted = True
        current = self._socket
        if current is not None:
            try:
                current.shutdown(socket.SHUT_RDWR)
            except OSError:
                # It was closed meanwhile: there is nothing left to end.
                return

    def close(self) -> None:
        """Close the connection; harmless when repeated."""
        self._curl.close()
        self._forget_socket()

    def _new_handle(self) -> Any:  # noqa: ANN401 - pycurl has no types
        curl = pycurl.Curl()
        curl.setopt(pycurl.HTTP_VERSION, pycurl.CURL_HTTP_VERSION_1_1)
        curl.setopt(pycurl.NOPROXY, "*")
        curl.setopt(pycurl.NOSIGNAL, 1)
        curl.setopt(pycurl.TCP_NODELAY, 1)
        curl.setopt(pycurl.USERAGENT, "benchctl")
        curl.setopt(pycurl.CONNECTTIMEOUT_MS, _CONNECT_TIMEOUT_MS)
        curl.setopt(pycurl.BUFFERSIZE, _BUFFER_BYTES)
        # A slow schedule must not make libcurl think its idle connection too old.
        curl.setopt(pycurl.MAXAGE_CONN, _A_DAY_S)
        curl.setopt(pycurl.WRITEFUNCTION, self._chunks.append)
        curl.setopt(pycurl.OPENSOCKETFUNCTION, self._open_socket)
        curl.setopt(pycurl.CLOSESOCKETFUNCTION, self._close_socket)
        return curl

    def _load(self, request: Request) -> None:
        """Set what differs between requests; a task's request is loaded once and sent many times."""
        curl = self._curl
        curl.setopt(pycurl.URL, self._base_url + request.path)
        # A body of more than 1 MB would otherwise wait for the node's "100 Continue".
        curl.setopt(pycurl.HTTPHEADER, [*request.headers, "Expect:"])
        curl.setopt(pycurl.TIMEOUT_MS, max(round(request.timeout_s * 1000), 1))
        if request.body or request.method == "POST":
            curl.setopt(pycurl.POST, 1)
            curl.setopt(pycurl.POSTFIELDS, request.body)
        else:
            curl.setopt(pycurl.HTTPGET, 1)
        if request.method in ("GET", "POST"):
            curl.unsetopt(pycurl.CUSTOMREQUEST)
        else:
            curl.setopt(pycurl.CUSTOMREQUEST, request.method)
        self._loaded = request

    def _explain(self, err: pycurl.error) -> tuple[Outcome, str]:
        code, detail = err.args
        if code == pycurl.E_COULDNT_CONNECT and not self._may_open:
            return Outcome.RESET, "the connection broke before the answer began"
        failure = _FAILURES.get(code)
        if failure is None:
            raise err
        return failure, detail

    def _is_unconnected(self) -> bool:
        """Whether the next request needs a new connection; an idle one with something to read is closed."""
        current = self._socket
        if current is None:
            return True
        poller = select.poll()
        poller.register(current, select.POLLIN)
        return bool(poller.poll(0))

    def _open_socket(self, _purpose: int, address: Any) -> Any:  # noqa: ANN401 - pycurl has no types
        if not self._may_open or self._interrupted:
            return pycurl.SOCKET_BAD
        # libcurl works on a duplicate of the descriptor; ours is for `interrupt` and for looking at it idle.
        self._forget_socket()
        self._socket = socket.socket(address.family, address.socktype, address.protocol)
        return self._socket

    def _close_socket(self, descriptor: int) -> int:
        os.close(descriptor)
        self._forget_socket()
        return 0

    def _forget_socket(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None
