"""The wire client against a stub: clocks, faults, TLS, credentials, and several hosts in turn."""

import os
import socket
import ssl
import time
import warnings
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import pytest

from authority import certificate_file, server_context
from aws_signature import refusal, signature
from benchctl.endpoint import Auth, Endpoint, Signing
from benchctl.engine.client import SearchClient
from benchctl.load.transport import Request, WireClient, open_client
from benchctl.load.work.judges import judge_plain
from benchctl.results.samples import Outcome
from load.stub_server import Reply, Serve, StubServer
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
    assert answer.end_ns <= after_ns
    # libcurl counts microseconds, from a moment after the driver's own start stamp.
    assert answer.end_ns - answer.start_ns >= 20 * MS
    assert answer.body == Reply().body
    assert answer.response_bytes == len(answer.body)


def test_the_clock_ends_at_the_last_byte_of_the_body(serve: Serve):
    server = serve(Reply(tail_delay_s=0.05))
    with WireClient(server.url) as wire:
        wire.connect()
        answer = wire.send(SEARCH)
    assert answer.end_ns - answer.start_ns >= 50 * MS
    assert answer.response_bytes == len(Reply().body)


def test_large_bodies_pass_both_ways(serve: Serve):
    large = b'{"took":1,"hits":{"hits":["' + b"x" * 3_000_000 + b'"]}}'
    server = serve(Reply(body=large))
    with WireClient(server.url) as wire:
        assert wire.send(request(body=large)).body == large
        assert wire.send(SEARCH).body == Reply().body
    assert server.searches[0].body == large
    assert "expect" not in server.searches[0].headers


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


def test_closing_twice_is_harmless(serve: Serve):
    wire = WireClient(serve().url)
    wire.connect()
    wire.close()
    wire.close()


ASK = Request("POST", "/big5/_search", b"{}", ("Content-Type: application/json",), 60.0, judge_plain)


@pytest.fixture
def ca(tmp_path: Path) -> Path:
    return certificate_file(tmp_path)


def test_a_cluster_behind_tls_is_measured_over_one_kept_connection(serve: Serve, ca: Path):
    server = serve(tls=server_context())
    with WireClient(Endpoint((server.url,), ca=ca)) as wire:
        greeting = wire.connect()
        answers = [wire.send(ASK) for _ in range(3)]
    assert (greeting.failure, greeting.status) == (None, 200)
    assert [(answer.failure, answer.connect_ns) for answer in answers] == [(None, 0)] * 3
    assert server.connections == 1


def test_connecting_takes_as_long_as_the_handshake(serve: Serve, ca: Path):
    server = serve(tls=server_context())
    with WireClient(Endpoint((server.url,), ca=ca)) as wire:
        greeting = wire.connect()
        # A signature takes longer than a handshake of TCP on loopback.
        assert greeting.connect_ns >= 200_000
        assert greeting.connect_ns <= greeting.end_ns - greeting.start_ns


@pytest.mark.parametrize(
    ("names", "told"),
    [(("127.0.0.1",), False), (("elsewhere.example",), True)],
    ids=["stranger", "other name"],
)
def test_a_certificate_that_is_not_trusted_is_no_connection(
    serve: Serve, ca: Path, names: tuple[str, ...], *, told: bool
):
    server = serve(tls=server_context(*names))
    with WireClient(Endpoint((server.url,), ca=ca if told else None)) as wire:
        answer = wire.connect()
    assert answer.failure is Outcome.REFUSED
    assert answer.detail
    assert server.received == []


def test_an_unchecked_certificate_is_a_connection(serve: Serve):
    server = serve(tls=server_context("elsewhere.example"))
    with WireClient(Endpoint((server.url,), verify=False)) as wire:
        assert wire.send(ASK).status == 200


def test_plain_http_to_a_port_that_speaks_tls_is_a_failure_and_no_hang(serve: Serve):
    server = serve(tls=server_context())
    with WireClient(server.url.replace("https:", "http:")) as wire:
        assert wire.connect().failure in {Outcome.RESET, Outcome.BAD_BODY}


def test_a_name_that_nobody_knows_is_a_refusal():
    with WireClient("http://nowhere.invalid:9200") as wire:
        answer = wire.connect()
    assert answer.failure is Outcome.REFUSED
    assert "nowhere.invalid" in answer.detail


def test_credentials_go_with_every_request_and_into_no_message(serve: Serve):
    server = serve(Reply(fault="reset"))
    endpoint = Endpoint((server.url,), Auth.basic("elastic", "hunter2"))
    with WireClient(endpoint) as wire:
        wire.connect()
        failed = wire.send(ASK)
        wire.send(ASK)
    told = [received.headers.get("authorization") for received in server.received]
    assert told == ["Basic ZWxhc3RpYzpodW50ZXIy"] * 3
    assert "ZWxhc3RpYzpodW50ZXIy" not in f"{failed!r} {wire!r} {vars(wire).get('_endpoint')!r}"


def test_a_proxy_is_used_when_asked_for_and_never_because_of_the_environment(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
):
    proxy = serve()
    endpoint = Endpoint(("http://es.example:9200/team-a",), proxy=proxy.url)
    with WireClient(endpoint) as wire, SearchClient("opensearch", endpoint) as client:
        assert wire.send(ASK).status == 200
        client.request("POST", "/logs/_refresh")
    assert [got.target for got in proxy.received] == [
        f"http://es.example:9200/team-a{ASK.path}",
        "http://es.example:9200/team-a/logs/_refresh",
    ]
    server = serve()
    for name in ("http_proxy", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    with WireClient(server.url) as wire, SearchClient("opensearch", Endpoint((server.url,))) as client:
        assert wire.send(ASK).status == 200
        client.request("POST", "/logs/_refresh")
    assert [got.target for got in server.received] == [ASK.path, "/logs/_refresh"]


def test_the_rules_of_signing_are_those_of_awss_published_example():
    """`get-vanilla` of the test suite of Signature Version 4."""
    told = {
        "host": "example.amazonaws.com",
        "x-amz-date": "20150830T123600Z",
        "authorization": "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, "
        "SignedHeaders=host;x-amz-date, Signature=",
    }
    found = signature("GET", "/", told, b"", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY")
    assert found == "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"


ASKED = [
    ASK,
    Request(
        "POST", "/logs-*,b/_search?request_cache=false&a=b%20c&Z=1&x=y,z&flag", b"{}", (), 9.0, judge_plain
    ),
    Request("GET", "/%3Clogs-%7Bnow%2Fd%7D%3E/_search?q=a%2Bb", b"", (), 9.0, judge_plain),
    Request("GET", "/a%2Ab/_count", b'{"query":{}}', ("X-Opaque-Id: one  two",), 9.0, judge_plain),
    Request("HEAD", "/big5", b"", (), 9.0, judge_plain),
    Request("PUT", "/_x/a:b@c;d!e'(f)$g&h", b"{}", (), 9.0, judge_plain),
    Request(
        "POST",
        "/_bulk",
        b'{"index":{}}\n' * 100_000,
        ("Content-Type: application/x-ndjson",),
        9.0,
        judge_plain,
    ),
    Request("GET", "/_cluster/health", b"", (), 9.0, judge_plain),
]


@pytest.mark.parametrize("token", ["", "IQoJb3/JpZ2lu+=="])
def test_every_request_is_signed_as_aws_verifies_it(serve: Serve, token: str):
    server = serve()
    auth = Auth.aws("AKIDEXAMPLE", "wJalr/EXAMPLE+KEY", "eu-central-1", "aoss", token)
    endpoint = Endpoint((server.url,), auth)
    with WireClient(endpoint) as wire:
        wire.connect()
        for request in (*ASKED, *reversed(ASKED)):
            exchange = wire.send(request)
            assert exchange.failure is None
        shown = f"{exchange!r} {endpoint!r} {endpoint.auth!r}"
    with SearchClient("opensearch", endpoint) as client:
        client.request("GET", "/_nodes/stats/jvm,process", params={"filter_path": "nodes.*.jvm"})
        client.request("POST", "/logs-*/_refresh", body={"a": 1})
    assert len(server.received) == 2 * len(ASKED) + 3
    for got in server.received:
        assert refusal(got.method, got.target, got.headers, got.body, "wJalr/EXAMPLE+KEY") == ""
        assert refusal(got.method, got.target, got.headers, got.body, "another key")
        assert "/eu-central-1/aoss/aws4_request" in got.headers["authorization"]
        assert got.headers.get("x-amz-security-token", "") == token
    assert "EXAMPLE" not in shown
    assert not token or token not in shown


def test_a_signature_is_renewed_while_aws_still_accepts_it(serve: Serve, monkeypatch: pytest.MonkeyPatch):
    server = serve()
    auth = Auth.aws("AKIDEXAMPLE", "secret", "eu-central-1")
    with WireClient(Endpoint((server.url,), auth)) as wire:
        wire.send(ASK)
        signed = []
        sign = Signing.headers
        monkeypatch.setattr(Signing, "headers", lambda *sent: signed.append(sent[1:3]) or sign(*sent))
        wire.send(ASK)
        assert signed == []
        monkeypatch.setattr(wire, "_resign_ns", time.monotonic_ns())
        wire.send(ASK)
    assert signed == [(ASK.method, server.url + ASK.path)]


def test_a_name_with_two_addresses_keeps_the_one_that_answers(serve: Serve):
    """`localhost` may be an IPv6 address, too, where nobody listens."""
    server = serve()
    with WireClient(server.url.replace("127.0.0.1", "localhost")) as wire:
        assert wire.connect().failure is None
        assert [wire.send(ASK).connect_ns for _ in range(2)] == [0, 0]
        assert len(wire._sockets) == 1
        server.die()
        assert wire.send(ASK).failure in {Outcome.RESET, Outcome.REFUSED}
        # Where its end was seen before the request, libcurl keeps the old connection, never to use it again.
        assert wire._sockets == [] or wire._is_readable()


class Address(NamedTuple):
    """What libcurl tells of an address that it is about to try."""

    family: int = socket.AF_INET
    socktype: int = socket.SOCK_STREAM
    protocol: int = socket.IPPROTO_TCP


def test_of_two_connections_that_race_the_one_that_is_closed_is_forgotten():
    with WireClient("http://127.0.0.1:1") as wire:
        racing = [wire._open_socket(0, Address()) for _ in range(2)]
        winner, loser = (os.dup(one.fileno()) for one in racing)
        wire._close_socket(loser)
        assert wire._sockets == racing[:1]
        wire._close_socket(winner)
        assert wire._sockets == []


def endpoint_of(servers: list[StubServer]) -> Endpoint:
    return Endpoint(tuple(server.url for server in servers))


def test_one_host_needs_no_turns(serve: Serve):
    server = serve()
    with open_client(server.url, 3) as wire:
        assert isinstance(wire, WireClient)
        assert wire.connect().status == 200


@pytest.mark.parametrize("client", [0, 1, 2, 3, 7])
def test_hosts_take_turns_from_the_clients_own_first(serve: Serve, client: int):
    servers = [serve() for _ in range(3)]
    with open_client(endpoint_of(servers), client) as wire:
        wire.connect()
        assert [server.connections for server in servers] == [1, 1, 1]
        order = []
        for _ in range(7):
            before = [len(server.searches) for server in servers]
            assert wire.send(ASK).connect_ns == 0
            order += [n for n, server in enumerate(servers) if len(server.searches) > before[n]]
    assert order == [(client + step) % 3 for step in range(7)]
    assert [server.connections for server in servers] == [1, 1, 1]


def test_a_host_that_is_down_is_told_at_the_start_and_fails_only_its_own_turns(serve: Serve):
    servers = [serve() for _ in range(3)]
    servers[1].die()
    with open_client(endpoint_of(servers)) as wire:
        assert wire.connect().failure is Outcome.REFUSED
        outcomes = Counter(wire.send(ASK).failure for _ in range(6))
    assert outcomes == {None: 4, Outcome.REFUSED: 2}


def test_an_interrupt_reaches_all_hosts(serve: Serve):
    servers = [serve() for _ in range(2)]
    with open_client(endpoint_of(servers)) as wire:
        wire.connect()
        assert not wire.interrupted
        wire.interrupt()
        assert wire.interrupted
        assert all(wire.send(ASK).failure is not None for _ in range(2))


def test_old_protocols_of_tls_are_refused(serve: Serve, ca: Path):
    context = server_context()
    with warnings.catch_warnings(action="ignore", category=DeprecationWarning):
        context.maximum_version = ssl.TLSVersion.TLSv1_1
    with WireClient(Endpoint((serve(tls=context).url,), ca=ca)) as wire:
        assert wire.connect().failure is Outcome.REFUSED
