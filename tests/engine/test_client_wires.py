"""Both engines' clients as wires: any answer comes through, and what is none is said to be none."""

import logging
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import psutil
import pytest

from authority import certificate_file, server_context
from benchctl.endpoint import Auth, Endpoint
from benchctl.engine.client import NodeRequestError, SearchClient
from benchctl.network import Trouble
from benchctl.results.plan import EngineName
from engine.fake_node import FakeNode, fake_node
from load.hostile_acts import BOMB, BROKEN, HEADS, LARGE, SLOW
from load.hostile_server import PLAIN, Act, HostileServer
from waiting import eventually

ENGINES: tuple[EngineName, ...] = get_args(EngineName)
PATIENCE_S = 10.0


@pytest.fixture(params=ENGINES)
def wire(request: pytest.FixtureRequest, node: FakeNode) -> Iterator[SearchClient]:
    with SearchClient(request.param, f"http://127.0.0.1:{node.port}") as opened:
        yield opened


def test_a_request_arrives_as_it_was_sent(wire: SearchClient, node: FakeNode):
    node.answers["PUT", "/big5/_settings"] = (200, {"acknowledged": True})
    status, answer = wire.send("PUT", "/big5/_settings", {"flat": "a b"}, {"x": 1}, PATIENCE_S)
    assert (status, answer) == (200, {"acknowledged": True})
    assert node.seen == [("PUT", "/big5/_settings", {"flat": "a b"}, {"x": 1})]


@pytest.mark.parametrize("status", [400, 404, 429, 502, 503, 504])
def test_refusals_are_answers_and_nothing_is_retried(wire: SearchClient, node: FakeNode, status: int):
    node.answers["POST", "/big5/_search"] = (status, {"error": "busy"})
    assert wire.send("POST", "/big5/_search", {}, {}, PATIENCE_S) == (status, {"error": "busy"})
    assert len(node.seen) == 1


def test_an_answer_that_is_no_json_is_told_with_its_status(wire: SearchClient, node: FakeNode):
    node.answers["POST", "/big5/_search"] = (200, b"{half")
    with pytest.raises(NodeRequestError) as caught:
        wire.send("POST", "/big5/_search", {}, {}, PATIENCE_S)
    assert (caught.value.status, caught.value.trouble) == (200, Trouble.NO_JSON)


def test_an_answer_that_is_nested_beyond_reason_is_told(wire: SearchClient, node: FakeNode):
    node.answers["GET", "/big5/_mapping"] = (200, b"[" * 100_000 + b"]" * 100_000)
    with pytest.raises(NodeRequestError, match=r"GET /big5/_mapping .*: its JSON is nested too deeply"):
        wire.send("GET", "/big5/_mapping", {}, None, PATIENCE_S)


def test_warnings_of_the_node_go_to_the_log(
    wire: SearchClient, node: FakeNode, caplog: pytest.LogCaptureFixture
):
    node.headers["Warning"] = '299 Engine-1 "that setting is deprecated"'
    node.answers["PUT", "/big5"] = (200, {"acknowledged": True})
    with caplog.at_level(logging.INFO, logger="benchctl.engine.client"):
        wire.send("PUT", "/big5", {}, {}, PATIENCE_S)
    assert "that setting is deprecated" in caplog.text


@pytest.mark.parametrize("engine", ENGINES)
def test_credentials_and_trust_reach_the_node(engine: EngineName, tmp_path: Path):
    with fake_node(server_context()) as shielded:
        shielded.answers["GET", "/x"] = (200, {})
        endpoint = Endpoint(
            (f"https://127.0.0.1:{shielded.port}",), Auth.bearer("t0ken"), certificate_file(tmp_path)
        )
        with SearchClient(engine, endpoint) as wire:
            assert wire.send("GET", "/x", {}, None, PATIENCE_S) == (200, {})
    headers = {name.lower(): value for name, value in shielded.told[0].items()}
    assert headers["authorization"] == "Bearer t0ken"


@pytest.mark.parametrize("engine", ENGINES)
def test_strangers_are_believed_only_on_request(engine: EngineName):
    with fake_node(server_context("elsewhere.example")) as shielded:
        shielded.answers["GET", "/x"] = (200, {})
        hosts = (f"https://127.0.0.1:{shielded.port}",)
        with SearchClient(engine, Endpoint(hosts, verify=False)) as wire:
            assert wire.send("GET", "/x", {}, None, PATIENCE_S) == (200, {})
        with (
            SearchClient(engine, Endpoint(hosts)) as wire,
            pytest.raises(NodeRequestError, match=r"(?i)certificate"),
        ):
            wire.send("GET", "/x", {}, None, PATIENCE_S)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("act", [*LARGE, BOMB, *HEADS, *SLOW, *BROKEN], ids=lambda act: act.name)
def test_no_answer_takes_all_memory_or_all_time(engine: EngineName, act: Act):
    us = psutil.Process()
    before, began = us.memory_info().rss, time.monotonic()
    slow = act in (*SLOW, HEADS[0])
    with (
        HostileServer(default=act) as server,
        SearchClient(engine, server.url, max_bytes=1 << 20) as wire,
        pytest.raises(NodeRequestError, match="GET /_nodes/jvm got no response: ") as caught,
    ):
        wire.send("GET", "/_nodes/jvm", {"x": "y"}, None, 0.3 if slow else PATIENCE_S)
    assert us.memory_info().rss - before < 48 << 20
    assert time.monotonic() - began < (PATIENCE_S / 2 if slow else PATIENCE_S)
    if act in LARGE:
        assert (caught.value.trouble, caught.value.reason) == (
            Trouble.TOO_LARGE,
            "its response is larger than 1 MiB",
        )
    if act in HEADS and not slow:
        assert (caught.value.trouble, caught.value.reason) == (
            Trouble.TOO_LARGE,
            "its response headers are incomplete",
        )
    if slow:
        assert caught.value.trouble is Trouble.TIMEOUT
        assert "response within 0.3 s" in caught.value.reason


@pytest.mark.parametrize("engine", ENGINES)
def test_an_answer_that_breaks_off_leaves_the_wire_usable(engine: EngineName):
    script = [act for broken in BROKEN for act in (PLAIN, broken)]
    with HostileServer(script) as server, SearchClient(engine, server.url) as wire:
        for act in [*script, PLAIN]:
            if act is PLAIN:
                assert wire.send("GET", "/x", {}, None, PATIENCE_S)[0] == 200
                continue
            with pytest.raises(NodeRequestError):
                wire.send("POST", "/x", {}, {}, PATIENCE_S)
        # Once each: what may change something is not sent again behind the caller's back.
        assert len(server.received) == len(script) + 1


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_credentials_do_not_follow_a_redirection(engine: EngineName, node: FakeNode, status: int):
    with fake_node() as other:
        node.answers["GET", "/x"] = (status, {})
        node.headers["Location"] = f"http://127.0.0.1:{other.port}/x"
        endpoint = Endpoint((f"http://127.0.0.1:{node.port}",), Auth.basic("me", "hunter2"))
        with SearchClient(engine, endpoint) as wire:
            assert wire.send("GET", "/x", {}, None, PATIENCE_S)[0] == status
        assert (len(node.told), other.told) == (1, [])


def test_ctrl_c_is_heard_while_a_node_is_silent(node: FakeNode):
    node.hold.clear()

    def interrupt() -> None:
        assert eventually(lambda: bool(node.seen))
        signal.pthread_kill(us, signal.SIGINT)

    us = threading.main_thread().ident
    assert us is not None
    thread = threading.Thread(target=interrupt)
    thread.start()
    began = time.monotonic()
    with SearchClient("elasticsearch", f"http://127.0.0.1:{node.port}") as wire:
        with pytest.raises(KeyboardInterrupt):
            wire.send("POST", "/big5/_forcemerge", {}, None, 3600.0)
        assert time.monotonic() - began < PATIENCE_S
        assert eventually(lambda: all(one.name != "http" for one in threading.enumerate()))
    thread.join()
    node.hold.set()
