"""The built-in server answers like an engine and ends with its parent; the driver measures itself on it."""

import http.client
import multiprocessing
import socket
import threading

import msgspec
import numpy as np
import pytest

from benchctl.errors import BenchctlError
from benchctl.load import floor
from benchctl.load.floor import CLIENTS, PACED, floor_stub, measure_floor
from benchctl.results.samples import Outcome, empty_columns
from load.stub_server import Reply, Serve


def test_answers_are_as_long_as_a_search_s_and_hold_their_own_service_time():
    with floor_stub() as url:
        connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=10)
        for body in (b"", b"{}", b"x" * 300_000):
            connection.request("POST", "/floor/_search", body)
            answer = connection.getresponse()
            assert answer.status == 200
            text = answer.read()
            assert len(text) == 1_500
            took_ns = msgspec.json.decode(text)["hits"]["total"]["value"]
            assert 0 <= took_ns < 10_000_000_000
        connection.close()


def test_requests_that_come_in_pieces_are_answered_once_they_are_whole():
    with floor_stub() as url, socket.create_connection(("127.0.0.1", int(url.rpartition(":")[2]))) as wire:
        wire.settimeout(10)
        for piece in (b"POST / HTTP/1.1\r\nContent-", b"Length: 4\r\n\r\n", b"ab"):
            wire.sendall(piece)
        wire.settimeout(0.05)
        with pytest.raises(TimeoutError):
            wire.recv(1)
        wire.settimeout(10)
        wire.sendall(b"cd")
        assert wire.recv(15) == b"HTTP/1.1 200 OK"


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"GET / HTTP/1.1\r\n\r\n", 18),
        (b"GET / HTTP/1.1\r\n\r\nnext", 18),
        (b"POST / HTTP/1.1\r\ncontent-length: 5\r\n\r\nab", 43),
        (b"POST / HTTP/1.1\r\nContent-Length: 12\r\nA: b\r\n\r\n", 57),
        (b"POST / HT", 10),
        (b"", 1),
    ],
)
def test_the_length_of_a_request_is_in_its_head(data: bytes, expected: int):
    assert floor.request_bytes(data) == expected


def test_the_server_ends_with_what_it_was_started_for():
    with floor_stub() as url:
        (process,) = multiprocessing.active_children()
    assert not process.is_alive()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", int(url.rpartition(":")[2])))


def test_a_calibration_holds_this_machine_s_floor():
    with floor_stub() as url:
        found = measure_floor(url, stop=threading.Event(), time_scale=0.2)
    assert 0 < found.error_p50_ns <= found.error_p99_ns
    assert 0 < found.cpu_ns_per_request < 10_000_000
    assert found.one_client_per_s > 10
    assert (found.clients, found.clients_per_s > 10) == (CLIENTS, True)
    assert [paced.rate_per_s for paced in found.paced] == [rate for rate, _ in PACED]
    for paced in found.paced:
        assert 0 <= paced.lag_p50_ns <= paced.lag_p99_ns
        assert paced.lag_max_ns > 0
    assert found.seconds < 60


def test_a_server_that_fails_is_no_floor(serve: Serve):
    server = serve(default=Reply(status=500, body=b'{"error":"broken"}'))
    with pytest.raises(BenchctlError, match=r"requests of the calibration failed \(http_error\)"):
        measure_floor(server.url, stop=threading.Event(), time_scale=0.05)


def test_the_error_is_what_was_measured_beyond_the_server_s_own_time_without_warm_up():
    columns = empty_columns(100)
    columns["hits"][:] = 2_000_000
    columns["end_ns"][:] = 2_000_000 + np.arange(100) * 1_000
    columns["end_ns"][:3] = 90_000_000
    columns["warmup"][:2] = True
    columns["outcome"][2] = Outcome.RESET
    assert floor._error_ns(columns) == (51_000, 98_040)


class StopsLater(threading.Event):
    """Set from the fourth time on that somebody looks."""

    def __init__(self) -> None:
        super().__init__()
        self.looks = 0

    def is_set(self) -> bool:
        self.looks += 1
        return self.looks > 3


def test_a_calibration_that_is_stopped_half_way_is_none():
    with floor_stub() as url, pytest.raises(BenchctlError, match="was interrupted"):
        floor._run(floor._closed(1, 1.0), url, StopsLater())
