"""The wire client against a stub: clocks to the last byte, failures as results, no silent second attempt."""

import socket
import threading
import time

import pytest

from benchctl.load.request import Request, judge_plain
from benchctl.load.transport import WireClient
from benchctl.results.samples import Outcome
from load.stub_server import Reply, Serve
from waiting import eventually

MS = 1_000_000
_HEADERS = ("Accept: application/json", "Content-Type: application/json")


def request(timeout_s: float = 60.0, body: bytes = b'{"query":{"match_all":{}}}') -> Request:
    return Request("POST", "/big5/_search", body, _HEADERS, timeout_s, judge_plain)


SEARCH = request()


def test_the_connection_opens_without_a_search_and_is_kept(serve: Serve):
    server = serve()
    with WireClient(server.url) as wire:
        greeting = wire.connect()
        answers = [wire.send(SEARCH) for _ in range(3)]
    assert greeting.connect_ns > 0
    assert [answer.connect_ns for answer in answers] == [0, 0, 0]
    assert server.connections == 1
    assert [received.is_search for received in server.received] == [False, True, True, True]


def test_what_the_node_gets_is_the_request_and_no_more(serve: Serve):
    server = serve()
    with WireClient(server.url) as wire:
        wire.connect()
        wire.send(SEARCH)
    greeting, search = server.received
    assert (greeting.method, greeting.target) == ("GET", "/_cluster/health?local=true")
    assert (search.method, search.target, search.body) == ("POST", "/big5/_search", SEARCH.body)
    assert search.headers == {
        "host": server.url.removeprefix("http://"),
        "user-agent": "benchctl",
        "accept": "application/json",
        "content-type": "application/json",
        "content-length": str(len(SEARCH.body)),
    }


@pytest.mark.parametrize("method", ["HEAD", "PUT", "DELETE"])
def test_other_methods_pass_through_and_leave_no_trace(serve: Serve, method: str):
    server = serve(default=Reply(body=b""))
    with WireClient(server.url) as wire:
        wire.send(Request(method, "/big5/_search", b"", (), 5.0, judge_plain))
        wire.send(SEARCH)
        wire.connect()
    assert [received.method for received in server.received] == [method, "POST", "GET"]


def test_a_get_with_a_body_stays_a_get(serve: Serve):
    server = serve()
    with WireClient(server.url) as wire:
        wire.send(Request("GET", "/big5/_doc", b"{}", (), 5.0, judge_plain))
        wire.connect()
        wire.send(SEARCH)
    assert [(received.method, received.body) for received in server.received] == [
        ("GET", b"{}"),
        ("GET", b""),
        ("POST", SEARCH.body),
    ]


def test_clocks_are_those_of_the_node_and_in_order(serve: Serve):
    server = serve(Reply(delay_s=0.02))
    with WireClient(server.url) as wire:
        wire.connect()
        before_ns = time.monotonic_ns()
        answer = wire.send(SEARCH)
        after_ns = time.monotonic_ns()
    search = server.searches[0]
    assert before_ns <= answer.start_ns <= search.arrived_ns
    assert answer.first_byte_ns >= 20 * MS
    assert answer.start_ns + answer.first_byte_ns <= answer.end_ns <= after_ns
    # libcurl counts microseconds, from a moment after the driver's own start stamp.
    assert answer.end_ns - answer.start_ns >= 20 * MS
    assert answer.body == Reply().body
    assert answer.response_bytes == len(answer.body)


def test_the_clock_ends_at_the_last_byte_of_the_body(serve: Serve):
    server = serve(Reply(tail_delay_s=0.05))
    with WireClient(server.url) as wire:
        wire.connect()
        answer = wire.send(SEARCH)
    assert answer.first_byte_ns < 50 * MS <= answer.end_ns - answer.start_ns
    assert answer.response_bytes == len(Reply().body)


def test_large_bodies_pass_both_ways(serve: Serve):
    large = b'{"took":1,"hits":{"hits":["' + b"x" * 3_000_000 + b'"]}}'
    server = serve(Reply(body=large))
    with WireClient(server.url) as wire:
        assert wire.send(request(body=large)).body == large
        assert wire.send(SEARCH).body == Reply().body
    assert server.searches[0].body == large
    assert "expect" not in server.searches[0].headers


@pytest.mark.parametrize("status", [400, 404, 429, 500, 503])
def test_an_http_error_is_an_exchange(serve: Serve, status: int):
    server = serve(Reply(status=status, body=b"no"))
    with WireClient(server.url) as wire:
        answer = wire.send(SEARCH)
        assert (answer.status, answer.body, answer.failure) == (status, b"no", None)
        assert wire.send(SEARCH).status == 200
    assert server.connections == 1


def test_nothing_listens(serve: Serve):
    server = serve()
    server.die()
    with WireClient(server.url) as wire:
        answer = wire.connect()
        assert (answer.failure, answer.status, answer.body) == (Outcome.REFUSED, 0, b"")
        assert wire.send(SEARCH).failure is Outcome.REFUSED


@pytest.mark.parametrize("requests_before", [0, 1])
def test_a_reset_is_a_failure_and_is_not_sent_again(serve: Serve, requests_before: int):
    server = serve(Reply(fault="reset"))
    with WireClient(server.url) as wire:
        for _ in range(requests_before):
            wire.connect()
        assert wire.send(SEARCH).failure is Outcome.RESET
        assert len(server.searches) == 1
        answer = wire.send(SEARCH)
        assert (answer.failure, answer.connect_ns > 0) == (None, True)
        assert wire.send(SEARCH).connect_ns == 0
    assert len(server.searches) == 3
    assert server.connections == 2


def test_a_body_that_breaks_off_is_a_reset_with_what_came(serve: Serve):
    server = serve(Reply(fault="partial"))
    with WireClient(server.url) as wire:
        answer = wire.send(SEARCH)
        assert (answer.failure, answer.status) == (Outcome.RESET, 200)
        assert Reply().body.startswith(answer.body)
        assert wire.send(SEARCH).failure is None


def test_a_hanging_node_times_out(serve: Serve):
    server = serve(Reply(fault="hang"))
    with WireClient(server.url) as wire:
        answer = wire.send(request(timeout_s=0.1))
        assert answer.failure is Outcome.TIMEOUT
        assert answer.end_ns - answer.start_ns >= 100 * MS
        assert wire.send(SEARCH).failure is None


def test_what_is_not_http_is_a_bad_body(serve: Serve):
    server = serve(Reply(fault="garbage"))
    with WireClient(server.url) as wire:
        assert wire.send(SEARCH).failure is Outcome.BAD_BODY
        assert wire.send(SEARCH).failure is None


def test_an_announced_close_is_not_a_failure(serve: Serve):
    server = serve(Reply(close=True))
    with WireClient(server.url) as wire:
        answers = [wire.send(SEARCH) for _ in range(3)]
    assert [answer.failure for answer in answers] == [None, None, None]
    assert [answer.connect_ns > 0 for answer in answers] == [True, True, False]


def test_a_connection_that_died_while_idle_is_replaced(serve: Serve):
    server = serve()
    with WireClient(server.url) as wire:
        wire.connect()
        (held,) = server._open
        held.shutdown(socket.SHUT_RDWR)
        assert eventually(lambda: not server._open)
        assert eventually(lambda: time.monotonic_ns() > wire._fresh_until_ns)
        answer = wire.send(SEARCH)
        assert (answer.failure, answer.connect_ns > 0) == (None, True)
    assert len(server.searches) == 1


def test_a_request_in_flight_can_be_interrupted_from_another_thread(serve: Serve):
    server = serve(Reply(fault="hang"))
    found = []
    with WireClient(server.url) as wire:
        thread = threading.Thread(target=lambda: found.append(wire.send(SEARCH)))
        thread.start()
        assert server.hanging.wait(10)
        wire.interrupt()
        thread.join(10)
        assert not thread.is_alive()
        assert wire.interrupted
    assert found[0].failure is not None


def test_proxies_of_the_environment_are_ignored(serve: Serve, monkeypatch: pytest.MonkeyPatch):
    closed = serve()
    closed.die()
    monkeypatch.setenv("http_proxy", closed.url)
    monkeypatch.setenv("all_proxy", closed.url)
    with WireClient(serve().url) as wire:
        assert wire.send(SEARCH).status == 200


def test_closing_twice_is_harmless(serve: Serve):
    wire = WireClient(serve().url)
    wire.connect()
    wire.close()
    wire.close()
