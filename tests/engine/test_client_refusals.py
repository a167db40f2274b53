"""What users are told when a cluster cannot be used, with the client libraries' real words."""

import re
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from authority import certificate_file, server_context
from benchctl.endpoint import Auth, Endpoint
from benchctl.engine.client import NodeRequestError, loopback
from benchctl.engine.target import Address, explained, identify
from benchctl.errors import BenchctlError, ExitCode
from benchctl.network import Trouble
from engine.fake_node import FakeNode, closed_port, fake_node
from load.hostile_acts import LARGE
from load.hostile_server import HostileServer

NODES = ("GET", "/_nodes/jvm,plugins")


def refusal(endpoint: Endpoint) -> BenchctlError:
    with pytest.raises(BenchctlError) as caught:
        identify(Address("prod", endpoint))
    assert "object at 0x" not in str(caught.value)
    return caught.value


def http_answer(status: int, body: str, header: str = "Content-Type: text/html") -> bytes:
    kind = "Content-Type: application/json" if body.startswith("{") else header
    return f"HTTP/1.1 {status} x\r\n{kind}\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode()


@contextmanager
def answering(answer: bytes) -> Iterator[int]:
    """Something that answers every connection with the same bytes."""

    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            self.request.recv(65536)
            self.request.sendall(answer)

    with socketserver.TCPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield server.server_address[1]
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture
def shielded() -> Iterator[FakeNode]:
    with fake_node(server_context()) as started:
        yield started


def test_credentials_that_are_missing_or_wrong_name_their_variables(node: FakeNode):
    node.answers[NODES] = (401, {"error": {"type": "security_exception", "reason": "missing"}})
    bare = refusal(loopback(node.port))
    assert bare.message == f"prod at http://127.0.0.1:{node.port} asks for credentials (HTTP 401)"
    assert "BENCHCTL_PROD_USER and BENCHCTL_PROD_PASSWORD" in bare.hint
    assert "--targets FILE" in bare.hint
    wrong = refusal(Endpoint(loopback(node.port).hosts, Auth.api_key("hunter2")))
    assert "does not accept the api key (HTTP 401)" in wrong.message
    assert "hunter2" not in str(wrong)


def test_a_lack_of_privileges_names_them(node: FakeNode):
    reason = "action [cluster:monitor/nodes/info] is unauthorized for user [me]"
    node.answers[NODES] = (403, {"error": {"type": "security_exception", "reason": reason}})
    told = refusal(loopback(node.port))
    assert reason in told.message
    assert "'monitor'" in told.hint


def test_other_refusals_keep_the_nodes_words(node: FakeNode):
    node.answers[NODES] = (503, {"error": "not ready"})
    assert "not ready" in refusal(loopback(node.port)).message


def test_something_else_that_answers_is_told(node: FakeNode):
    node.answers[NODES] = (200, {"hello": "world"})
    assert "neither Elasticsearch nor OpenSearch" in refusal(loopback(node.port)).message


PAGE = "<html><body><h1>Welcome</h1></body></html>"


@pytest.mark.parametrize(
    ("answer", "text", "hint"),
    [
        (http_answer(200, PAGE), "does not respond with JSON (HTTP 200)", "those of Elastic"),
        (http_answer(502, PAGE), "does not respond with JSON (HTTP 502)", "those of Elastic"),
        (
            http_answer(200, '{"half'),
            "does not respond with JSON (HTTP 200): GET /_nodes",
            "those of Elastic",
        ),
        (b"\x00\x1b[31mgarbage\n" * 99, "does not speak HTTP", "those of Elastic"),
        (b"SSH-2.0-OpenSSH_9\r\n", "does not speak HTTP", "those of Elastic"),
        (b"", "breaks the connection", "if it speaks TLS, write https://"),
    ],
)
def test_what_is_no_engine_is_told_without_its_words(answer: bytes, text: str, hint: str):
    with answering(answer) as port:
        told = refusal(loopback(port))
        assert told.message.startswith(f"prod at http://127.0.0.1:{port}")
    assert text in told.message
    assert hint in told.hint
    assert len(told.message) < 120
    assert re.search(r"<|\('|Error|\x1b", str(told)) is None


def test_a_stranger_names_the_option_for_its_authority(shielded: FakeNode):
    told = refusal(Endpoint((f"https://127.0.0.1:{shielded.port}",)))
    assert "has a certificate that is not trusted" in told.message
    assert told.hint == "name the authority that signed it with `ca: PATH` of prod in --targets FILE (PEM)"


def test_another_name_is_told_from_a_stranger(tmp_path: Path):
    with fake_node(server_context("elsewhere.example")) as started:
        told = refusal(Endpoint((f"https://127.0.0.1:{started.port}",), ca=certificate_file(tmp_path)))
    assert told.message == f"prod at https://127.0.0.1:{started.port} has a certificate for another name"
    assert told.hint == "use the name that the certificate was made for"
    assert told.exit_code is ExitCode.FAILED
    # Not even the request was sent, and so no credentials.
    assert started.told == []


def test_an_answer_without_end_names_the_target_the_path_and_the_size():
    with HostileServer(default=LARGE[0]) as server:
        told = refusal(Endpoint((server.url,)))
    assert told.message == (
        f"prod at {server.url} gives a response that no search engine would: "
        "GET /_nodes/jvm,plugins: its response is larger than 64 MiB"
    )
    assert "check the address" in told.hint


def test_the_wrong_scheme_names_the_right_one(node: FakeNode, shielded: FakeNode):
    encrypted = refusal(Endpoint((f"https://127.0.0.1:{node.port}",)))
    assert encrypted.message.endswith("does not speak TLS")
    assert f"http://127.0.0.1:{node.port}" in encrypted.hint
    plain = refusal(loopback(shielded.port))
    assert "breaks the connection" in plain.message
    assert f"https://127.0.0.1:{shielded.port}" in plain.hint


def test_nobody_there_and_no_such_name():
    with closed_port() as port:
        assert refusal(loopback(port)).message.endswith(" refuses the connection")
    assert "has a name that cannot be resolved" in refusal(Endpoint(("http://nowhere.invalid:9200",))).message


def test_a_silent_cluster_is_told():
    with pytest.raises(BenchctlError, match="does not respond in time"), explained("prod", loopback(1)):
        raise NodeRequestError("GET /", 0, "no answer within 30 s", trouble=Trouble.TIMEOUT)


def test_other_errors_get_the_targets_name_once():
    with (
        pytest.raises(BenchctlError, match=r"^prod at http://127.0.0.1:1: full$"),
        explained("prod", loopback(1)),
    ):
        raise BenchctlError("full")
    with pytest.raises(BenchctlError, match=r"^prod is full$"), explained("prod", loopback(1)):
        raise BenchctlError("prod is full")
