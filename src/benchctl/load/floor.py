"""The driver's own cost on this machine: its executor against a server that does nothing."""

import gc
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection

import numpy as np

from benchctl.child import follow_parent
from benchctl.errors import BenchctlError
from benchctl.load.executor import Job, Stage, TaskResult, end, run_step, spawn
from benchctl.load.transport import WireClient
from benchctl.load.work import WorkContext
from benchctl.results.figures import Calibration, DriverFigures, PacedLag
from benchctl.results.samples import Columns, Outcome, select
from benchctl.track.model import Task
from benchctl.track.operations.search import Search

CLIENTS = 8
# Requests a second, and for how many seconds: a p99 needs a hundred requests.
PACED = ((100.0, 1.0), (1000.0, 0.5))

_NS_PER_S = 1e9
_WARMUP_S = 0.1
_CLOSED_S = 0.4

# As long as a real one, so that sending it costs what it costs.
_OPERATION = Search(
    name="floor",
    body={"query": {"range": {"@timestamp": {"gte": "2023-01-01T00:00:00", "lt": "2023-01-03T00:00:00"}}}},
)


# The server. An answer is as long as a search's, and states in place of the total number of hits the
# nanoseconds between reading the request and writing the answer: what a driver measures beyond that is due to
# the driver and the kernel.

_BODY_BYTES = 1_500
_RECEIVE_BYTES = 65_536
_DIGITS = b"%12d"
_HEAD_END = b"\r\n\r\n"


@contextmanager
def floor_stub() -> Iterator[str]:
    """Run the built-in server in a process of its own, which ends with this one; yields its URL.

    Raises:
        BenchctlError: If the server does not start.
    """
    line, process = spawn(_serve)
    try:
        try:
            port = line.recv()
        except EOFError as err:
            raise BenchctlError("the built-in server for the calibration did not start") from err
        yield f"http://127.0.0.1:{port}"
    finally:
        end([(line, process)])


def _serve(line: Connection) -> None:
    """Serve on a free port of the loopback interface, until the line ends."""
    follow_parent()
    gc.disable()
    with socket.create_server(("127.0.0.1", 0), backlog=128) as listener, suppress(EOFError, OSError):
        threading.Thread(target=_accept, args=(listener,), daemon=True).start()
        line.send(listener.getsockname()[1])
        line.recv()


def _accept(listener: socket.socket) -> None:
    """Serve each connection in its own thread, forever."""
    while True:
        connection, _ = listener.accept()
        threading.Thread(target=_answer, args=(connection,), daemon=True).start()


def _response() -> tuple[bytes, bytes]:
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


def _answer(connection: socket.socket) -> None:
    """Answer one request after the other until the client closes; it never pipelines."""
    before, after = _response()
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


def measure_floor(base_url: str, *, stop: threading.Event, time_scale: float = 1.0) -> Calibration:
    """Measure the driver against the built-in server, for about three seconds times `time_scale`.

    Raises:
        BenchctlError: If a request fails or `stop` is set.
    """
    clock = time.monotonic()
    single, one_client = _run(_closed(1, time_scale), base_url, stop)
    _, many_clients = _run(_closed(CLIENTS, time_scale), base_url, stop)
    paced = []
    for rate_per_s, seconds in PACED:
        task = Task(_OPERATION.name, target_throughput=rate_per_s, time_period=seconds * time_scale)
        _, figures = _run(task, base_url, stop)
        paced.append(
            PacedLag(
                rate_per_s,
                lag_p50_ns=figures.lag_p50_ns or 0,
                lag_p99_ns=figures.lag_p99_ns or 0,
                lag_max_ns=figures.lag_max_ns or 0,
            )
        )
    columns = single.columns
    error_p50_ns, error_p99_ns = _error_ns(columns)
    return Calibration(
        error_p50_ns=error_p50_ns,
        error_p99_ns=error_p99_ns,
        cpu_ns_per_request=round(single.driver_cpu_s * _NS_PER_S / columns["start_ns"].size),
        one_client_per_s=one_client.offered_per_s or 0.0,
        clients=CLIENTS,
        clients_per_s=many_clients.offered_per_s or 0.0,
        paced=tuple(paced),
        seconds=time.monotonic() - clock,
    )


def _closed(clients: int, time_scale: float) -> Task:
    return Task(
        _OPERATION.name,
        clients=clients,
        warmup_time_period=_WARMUP_S * time_scale,
        time_period=_CLOSED_S * time_scale,
    )


def _run(task: Task, base_url: str, stop: threading.Event) -> tuple[TaskResult, DriverFigures]:
    stage = Stage(
        open_wire=lambda _client: WireClient(base_url),
        context=WorkContext("floor", seed=1),
        origin_ns=0,
        boot=0,
    )
    (result,) = run_step([Job(task, _OPERATION, schedule=0, position=0)], stage, stop=stop)
    if result.failures:
        failure = result.failures[0]
        raise BenchctlError(
            f"{failure.count:,} requests of the calibration failed ({failure.outcome.name.lower()}): "
            + ", ".join(failure.details)
        )
    # Statistics take a while to load, which whoever is not calibrated need not wait for.
    from benchctl.stats.summary import driver_figures  # noqa: PLC0415 - see above

    figures = driver_figures(result.samples, task, cpu_s=result.driver_cpu_s, wall_s=result.wall_s)
    if stop.is_set() or figures.lag_p50_ns is None:
        raise BenchctlError("the calibration was interrupted")
    return result, figures


def _error_ns(columns: Columns) -> tuple[int, int]:
    """p50 and p99 of the measured time beyond the service time that the server put into its answers."""
    mine = select(columns, (columns["outcome"] == Outcome.OK) & ~columns["warmup"])
    beyond_ns = mine["end_ns"] - mine["start_ns"] - mine["hits"]
    return round(np.quantile(beyond_ns, 0.5)), round(np.quantile(beyond_ns, 0.99))
