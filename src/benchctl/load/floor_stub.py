"""A server that only answers searches, as a program: the driver's floor is measured against it.

Run as `python -m benchctl.load.floor_stub`. The first line of its standard output is its port on the loopback
interface; it ends when its standard input does, however its parent ends.

An answer is as long as a search's. In place of the total number of hits it states the nanoseconds between
reading the request and writing the answer: whatever a driver measures beyond that is due to the driver and
the kernel.
"""

import os
import signal
import socket
import sys
import threading
import time

_BODY_BYTES = 1_500
_RECEIVE_BYTES = 65_536
_DIGITS = b"%12d"
_HEAD_END = b"\r\n\r\n"


def answer() -> tuple[bytes, bytes]:
    """Return an HTTP response in two parts: before and after the twelve characters of its service time."""
    before = b'{"took":0,"timed_out":false,"_shards":{"failed":0},"hits":{"total":{"value":'
    after = b',"relation":"eq"},"hits":["'
    end = b'"]}}'
    padding = b"x" * (_BODY_BYTES - len(before) - len(_DIGITS % 0) - len(after) - len(end))
    head = (
        b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nx-elastic-product: Elasticsearch\r\n"
        b"content-length: %d" % _BODY_BYTES
    )
    return head + _HEAD_END + before, after + padding + end


def request_bytes(data: bytes) -> int:
    """Length of the request that `data` begins with; more than `data` has while its head is incomplete."""
    head_bytes = data.find(_HEAD_END)
    if head_bytes < 0:
        return len(data) + 1
    _, header, after = data[:head_bytes].lower().partition(b"content-length:")
    return head_bytes + len(_HEAD_END) + (int(after.split(b"\r\n", 1)[0]) if header else 0)


def serve(connection: socket.socket) -> None:
    """Answer one request after the other until the client closes; it never pipelines."""
    before, after = answer()
    clock = time.monotonic_ns
    with connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            while data := connection.recv(_RECEIVE_BYTES):
                arrived_ns = clock()
                while len(data) < request_bytes(data):
                    more = connection.recv(_RECEIVE_BYTES)
                    if not more:
                        return
                    data += more
                    arrived_ns = clock()
                connection.sendall(b"%s%12d%s" % (before, clock() - arrived_ns, after))
        except ConnectionError:
            return


def accept(listener: socket.socket) -> None:
    """Serve each connection in its own thread, forever."""
    while True:
        connection, _ = listener.accept()
        threading.Thread(target=serve, args=(connection,), daemon=True).start()


def main() -> None:
    """Serve until standard input ends; interrupts are left to the parent."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with socket.create_server(("127.0.0.1", 0), backlog=128) as listener:
        threading.Thread(target=accept, args=(listener,), daemon=True).start()
        sys.stdout.write(f"{listener.getsockname()[1]}\n")
        sys.stdout.flush()
        while os.read(0, _RECEIVE_BYTES):
            pass


if __name__ == "__main__":
    main()
