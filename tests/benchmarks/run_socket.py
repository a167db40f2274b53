"""A raw socket as a contestant: the least that Python can do."""

import socket
import time
from urllib.parse import urlsplit

from jobs import Done, Job
from loops import HEADERS, QUERY_BYTES, Send, closed_loops, do_job, timed_loop


def socket_search(job: Job) -> Done:
    """A raw socket: the same bytes, answers read to their known length."""

    def prepared() -> Send:
        connection, request = _connect(job)
        connection.sendall(request)
        answer = connection.recv(1 << 16)
        head, _, _ = answer.partition(b"\r\n\r\n")
        length = len(head) + 4 + int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0])
        _receive(connection, length - len(answer))
        sendall, recv = connection.sendall, connection.recv

        def send() -> None:
            sendall(request)
            left = length
            while left:
                left -= len(recv(left))

        return send

    if not job.timed:
        return closed_loops(job, prepared)
    send = prepared()

    def send_timed() -> tuple[int, int]:
        start_ns = time.monotonic_ns()
        send()
        return start_ns, time.monotonic_ns()

    return timed_loop(job, send_timed)


def _connect(job: Job) -> tuple[socket.socket, bytes]:
    host, _, port = urlsplit(job.url).netloc.partition(":")
    connection = socket.create_connection((host, int(port)))
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    head = "\r\n".join(
        [
            f"POST /{job.index}/_search HTTP/1.1",
            f"Host: {host}:{port}",
            *HEADERS,
            f"Content-Length: {len(QUERY_BYTES)}",
        ]
    )
    return connection, head.encode() + b"\r\n\r\n" + QUERY_BYTES


def _receive(connection: socket.socket, left: int) -> None:
    while left:
        left -= len(connection.recv(left))


if __name__ == "__main__":
    do_job({"search": socket_search})
