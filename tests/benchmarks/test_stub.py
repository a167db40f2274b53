"""The stub of the benchmarks: what it answers, and that its record is the truth."""

import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from benchmarks.stub_build import StubOptions, Truth, running_stub, true_latency_ns

MS = 1_000_000


@contextmanager
def connected(url: str) -> Iterator[socket.socket]:
    host, port = url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=10) as connection:
        yield connection


def request(path: str, body: bytes = b"") -> bytes:
    return f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body


def answer(connection: socket.socket) -> bytes:
    """The body of one answer."""
    data = b""
    while b"\r\n\r\n" not in data:
        data += connection.recv(65536)
    head, _, body = data.partition(b"\r\n\r\n")
    length = int(head.partition(b"content-length: ")[2].split(b"\r\n")[0])
    while len(body) < length:
        body += connection.recv(length - len(body))
    return body


def test_search_answers_are_valid_and_have_the_length_asked_for():
    with running_stub(StubOptions(body_bytes=3000)) as stub, connected(stub.url) as connection:
        connection.sendall(request("/big5/_search", b"{}"))
        body = answer(connection)
    assert len(body) == 3000
    assert json.loads(body)["hits"]["total"] == {"value": 10000, "relation": "gte"}


def test_other_paths_are_healthy_and_leave_no_record():
    with running_stub(StubOptions()) as stub, connected(stub.url) as connection:
        connection.sendall(request("/_cluster/health"))
        assert json.loads(answer(connection)) == {"status": "green"}
    assert stub.truth.arrived_ns.size == 0


def test_a_large_bulk_body_is_read_in_full_before_the_answer_and_the_connection_goes_on():
    with running_stub(StubOptions()) as stub, connected(stub.url) as connection:
        for _ in range(2):
            connection.sendall(request("/big5/_bulk", b"x" * 8_000_000))
            assert json.loads(answer(connection))["errors"] is False
    assert stub.truth.arrived_ns.size == 2


def test_a_request_may_come_in_pieces_and_the_next_one_behind_it():
    whole = request("/big5/_search", b'{"size": 1}') + request("/big5/_search")
    with running_stub(StubOptions()) as stub, connected(stub.url) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for byte in whole[:-1]:
            connection.send(bytes([byte]))
        answer(connection)
        connection.sendall(whole[-1:])
        answer(connection)
    assert stub.truth.arrived_ns.size == 2


def test_no_answer_is_early_and_delays_of_several_connections_overlap():
    options = StubOptions(delay_ns=50 * MS)
    with running_stub(options) as stub, connected(stub.url) as one, connected(stub.url) as other:
        for connection in (one, other):
            connection.sendall(request("/big5/_search"))
        for connection in (one, other):
            answer(connection)
    truth = stub.truth
    assert (truth.sent_ns - truth.arrived_ns >= 50 * MS).all()
    assert truth.arrived_ns[1] < truth.sent_ns[0]


def test_the_first_searches_are_slow_where_that_is_asked_for():
    with running_stub(StubOptions(slow_first=1, slow_ns=30 * MS)) as stub, connected(stub.url) as connection:
        for _ in range(2):
            connection.sendall(request("/big5/_search"))
            answer(connection)
    took_ns = stub.truth.sent_ns - stub.truth.arrived_ns
    assert took_ns[0] >= 30 * MS > took_ns[1]


def test_nothing_is_answered_in_a_stall():
    options = StubOptions(delay_ns=MS, stall_at_ns=5 * MS, stall_ns=100 * MS)
    with running_stub(options) as stub, connected(stub.url) as connection:
        for _ in range(20):
            connection.sendall(request("/big5/_search"))
            answer(connection)
    begin, end = stub.truth.stall_ns
    assert end - begin >= 100 * MS
    assert not ((stub.truth.sent_ns > begin) & (stub.truth.sent_ns < end)).any()


def test_true_latencies_queue_behind_a_stall_and_drain():
    truth = Truth(np.array([]), np.array([]), (15, 45))
    due_ns = np.array([0, 10, 14, 20, 30, 100])
    assert true_latency_ns(due_ns, 2, truth).tolist() == [2, 2, 31, 27, 19, 2]
