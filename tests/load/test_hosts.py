"""The wire client on the way to clusters: TLS, credentials, several hosts in turn."""

import os
import socket
import ssl
import warnings
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import pytest

from authority import certificate_file, server_context
from aws_signature import refusal, signature
from benchctl.endpoint import Auth, Endpoint
from benchctl.engine.client import connect
from benchctl.errors import BenchctlError
from benchctl.load.request import Request, judge_plain
from benchctl.load.transport import RoundRobinClient, WireClient, open_client
from benchctl.results.samples import Outcome
from load.stub_server import Reply, Serve, StubServer

SEARCH = Request("POST", "/big5/_search", b"{}", ("Content-Type: application/json",), 60.0, judge_plain)


@pytest.fixture
def ca(tmp_path: Path) -> Path:
    return certificate_file(tmp_path)


def test_a_cluster_behind_tls_is_measured_over_one_kept_connection(serve: Serve, ca: Path):
    server = serve(tls=server_context())
    with WireClient(Endpoint((server.url,), ca=ca)) as wire:
        greeting = wire.connect()
        answers = [wire.send(SEARCH) for _ in range(3)]
    assert (greeting.failure, greeting.status) == (None, 200)
    assert [(answer.failure, answer.connect_ns) for answer in answers] == [(None, 0)] * 3
    assert server.connections == 1


def test_connecting_takes_as_long_as_the_handshake(serve: Serve, ca: Path):
    server = serve(tls=server_context())
    with WireClient(Endpoint((server.url,), ca=ca)) as wire:
        greeting = wire.connect()
        # A signature takes longer than a handshake of TCP on loopback.
        assert greeting.connect_ns >= 200_000
        assert greeting.connect_ns <= greeting.first_byte_ns


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
        assert wire.send(SEARCH).status == 200


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
        failed = wire.send(SEARCH)
        wire.send(SEARCH)
    told = [received.headers.get("authorization") for received in server.received]
    assert told == ["Basic ZWxhc3RpYzpodW50ZXIy"] * 3
    assert "ZWxhc3RpYzpodW50ZXIy" not in f"{failed!r} {wire!r} {vars(wire).get('_endpoint')!r}"


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
    SEARCH,
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
    with connect("opensearch", endpoint) as client:
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


def test_a_libcurl_that_cannot_sign_says_so(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delattr("pycurl.AWS_SIGV4")
    with pytest.raises(BenchctlError, match="cannot sign requests as AWS") as caught:
        WireClient(Endpoint(("http://127.0.0.1:9",), Auth.aws("AKID", "secret", "eu-central-1")))
    assert "pip install --upgrade pycurl" in caught.value.hint


def test_a_name_with_two_addresses_keeps_the_one_that_answers(serve: Serve):
    """`localhost` may be an IPv6 address, too, where nobody listens."""
    server = serve()
    with WireClient(server.url.replace("127.0.0.1", "localhost")) as wire:
        assert wire.connect().failure is None
        assert [wire.send(SEARCH).connect_ns for _ in range(2)] == [0, 0]
        assert len(wire._sockets) == 1
        server.die()
        assert wire.send(SEARCH).failure in {Outcome.RESET, Outcome.REFUSED}
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
            assert wire.send(SEARCH).connect_ns == 0
            order += [n for n, server in enumerate(servers) if len(server.searches) > before[n]]
    assert order == [(client + step) % 3 for step in range(7)]
    assert [server.connections for server in servers] == [1, 1, 1]


def test_a_host_that_is_down_is_told_at_the_start_and_fails_only_its_own_turns(serve: Serve):
    servers = [serve() for _ in range(3)]
    servers[1].die()
    with open_client(endpoint_of(servers)) as wire:
        assert wire.connect().failure is Outcome.REFUSED
        outcomes = Counter(wire.send(SEARCH).failure for _ in range(6))
    assert outcomes == {None: 4, Outcome.REFUSED: 2}


def test_an_interrupt_reaches_all_hosts(serve: Serve):
    servers = [serve() for _ in range(2)]
    with open_client(endpoint_of(servers)) as wire:
        wire.connect()
        assert not wire.interrupted
        wire.interrupt()
        assert wire.interrupted
        assert all(wire.send(SEARCH).failure is not None for _ in range(2))


def test_closing_twice_is_harmless(serve: Serve):
    wire = RoundRobinClient(endpoint_of([serve(), serve()]), 0)
    wire.connect()
    wire.close()
    wire.close()


def test_old_protocols_of_tls_are_refused(serve: Serve, ca: Path):
    context = server_context()
    with warnings.catch_warnings(action="ignore", category=DeprecationWarning):
        context.maximum_version = ssl.TLSVersion.TLSv1_1
    with WireClient(Endpoint((serve(tls=context).url,), ca=ca)) as wire:
        assert wire.connect().failure is Outcome.REFUSED


def test_of_nodes_that_benchctl_watches_one_may_be_down(serve: Serve):
    gone = "http://127.0.0.1:1"
    hosts = (serve().url, gone)
    with open_client(Endpoint(hosts)) as wire:
        assert wire.connect().failure is Outcome.REFUSED
    with open_client(Endpoint(hosts, lossy=True), 1) as wire:
        assert wire.connect().failure is None
        assert [wire.send(SEARCH).failure for _ in range(4)] == [Outcome.REFUSED, None] * 2
    with open_client(Endpoint((gone, gone), lossy=True)) as wire:
        assert wire.connect().failure is Outcome.REFUSED
