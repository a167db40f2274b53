"""Requests through the official clients: the same requests, the same outcomes, and an end to every one."""

import threading
from collections.abc import Iterator

import msgspec
import pytest

from benchctl.endpoint import Endpoint
from benchctl.load.client_transport import UNKNOWN_BYTES, LibraryOpener, LibraryWire
from benchctl.load.executor import Stage, TaskResult, run_step
from benchctl.load.request import Request, judge_search
from benchctl.load.task_clients import Job
from benchctl.load.workload import WorkContext
from benchctl.results.plan import EngineName
from benchctl.results.samples import Outcome
from benchctl.track.model import Task
from load.conftest import SEARCH
from load.stub_server import Reply, Serve, StubServer

JSON = ("Content-Type: application/json", "Accept: application/json")
ASK = Request("POST", "/big5/_search?x=1", b'{"query":{"match_all":{}}}', JSON, 5.0, judge_search, searches=1)


@pytest.fixture(params=["elasticsearch", "opensearch"])
def engine(request: pytest.FixtureRequest) -> EngineName:
    return request.param


@pytest.fixture
def wire(engine: EngineName, server: StubServer) -> Iterator[LibraryWire]:
    made = LibraryWire(engine, Endpoint.of(server.url))
    made.connect()
    yield made
    made.close()


@pytest.fixture
def server(serve: Serve) -> StubServer:
    return serve()


def run(
    engine: EngineName, server: StubServer, task: Task, stop: threading.Event | None = None
) -> TaskResult:
    stage = Stage(LibraryOpener(engine, Endpoint.of(server.url)), WorkContext("big5"), origin_ns=0, boot=0)
    return run_step([Job(task, SEARCH, 0, 0)], stage, stop=stop or threading.Event())[0]


def test_the_node_gets_the_same_request(wire: LibraryWire, server: StubServer):
    exchange = wire.send(ASK)
    (got,) = server.searches
    assert (got.method, got.target) == ("POST", "/big5/_search?x=1")
    assert msgspec.json.decode(got.body) == msgspec.json.decode(ASK.body)
    assert exchange.status == 200
    assert judge_search(exchange.status, exchange.body).hits == 10000
    assert exchange.end_ns - exchange.start_ns > 0
    assert exchange.response_bytes == UNKNOWN_BYTES


def test_a_text_that_is_no_json_goes_as_it_is(wire: LibraryWire, server: StubServer):
    wire.send(msgspec.structs.replace(ASK, body=b"no json"))
    assert server.searches[0].body == b"no json"


@pytest.mark.parametrize(
    ("reply", "outcome"),
    [
        (Reply(status=500, body=b'{"error":{"type":"t","reason":"r"},"status":500}'), Outcome.HTTP_ERROR),
        (Reply(status=429, body=b'{"error":{"type":"t","reason":"r"},"status":429}'), Outcome.REJECTED),
        (Reply(fault="reset"), Outcome.RESET),
        (Reply(body=b'{"took": '), Outcome.BAD_BODY),
    ],
)
def test_failures_are_what_they_are_on_the_other_transport(
    engine: EngineName, serve: Serve, reply: Reply, outcome: Outcome
):
    server = serve(reply)
    result = run(engine, server, Task("range", iterations=3))
    assert result.columns["outcome"].tolist() == [outcome, Outcome.OK, Outcome.OK]
    # Nothing is sent again behind our back.
    assert len(server.searches) == result.searches_sent == 3


def test_a_slow_answer_times_out(engine: EngineName, serve: Serve):
    server = serve(Reply(delay_s=2.0))
    wire = LibraryWire(engine, Endpoint.of(server.url))
    exchange = wire.send(msgspec.structs.replace(ASK, timeout_s=0.1))
    assert exchange.failure is Outcome.TIMEOUT
    wire.close()


def test_a_dead_node_refuses(engine: EngineName, serve: Serve):
    server = serve()
    server.die()
    assert LibraryWire(engine, Endpoint.of(server.url)).connect().failure is Outcome.REFUSED


def test_a_stop_ends_a_request_in_flight(engine: EngineName, serve: Serve):
    server, stop = serve(Reply(), default=Reply(fault="hang")), threading.Event()
    threading.Thread(target=lambda: (server.hanging.wait(), stop.set())).start()
    result = run(engine, server, Task("range", iterations=5), stop)
    assert result.columns["outcome"].tolist() == [Outcome.OK, Outcome.CANCELLED]


def test_each_client_has_its_own_connection(engine: EngineName, serve: Serve):
    server = serve()
    run(engine, server, Task("range", clients=3, iterations=4))
    assert server.connections == 3
    assert len(server.searches) == 12
