"""A hostile node: no hang, no sample lost or counted twice, no answer taken for another's, memory flat."""

import gzip
import itertools
import socket
import threading
import time
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from benchctl.load.client import Client, NodeGone, Recorder, TaskAborted, Waiter
from benchctl.load.executor import TaskResult
from benchctl.load.transport import Exchange, Request, WireClient
from benchctl.load.work import Script
from benchctl.load.work.judges import (
    is_unsupported,
    judge_multi_search,
    judge_plain,
    judge_search,
)
from benchctl.results.samples import Outcome, RowOwner
from benchctl.track.model import Task
from benchctl.track.operations import Operation
from benchctl.track.operations.search import PaginatedSearch, RawRequest, Search
from benchctl.track.values import Choice
from load.hostile_acts import (
    BOMB,
    BROKEN,
    BUSY,
    CLOSED_WITH_ITS_END,
    DOOMING,
    FAILED,
    GARBAGE,
    GOOD,
    LARGE,
    QUICK,
    STALLED,
)
from load.hostile_server import PLAIN, Act, HostileServer, Then, found, head, whole
from load.storm import ask, ask_one, clients_alive, resident_bytes, send_faulty
from waiting import eventually

HANGING = STALLED[0]
FOREVER = 10**6
NO_PLACE = RowOwner(origin_ns=0, schedule=0, task=0, boot=0, client=0)


# Single faults


@pytest.mark.parametrize("act", [*QUICK, *STALLED], ids=lambda act: act.name)
def test_a_fault_is_one_sample_of_its_kind_and_the_next_request_gets_its_own_answer(act: Act):
    search = Search(name="x", request_timeout=0.1 if act in STALLED else 10.0)
    torn = True
    while torn:
        with HostileServer([PLAIN, act]) as server:
            # Apart enough for the wire to look at its connection before each.
            result = ask_one(server.url, search, iterations=4, target_throughput=500)
        columns = result.columns
        # A driver that was late itself did not look.
        rest_ns = columns["start_ns"][2] - columns["end_ns"][1]
        torn = server.torn > 0 or (act.outcome is Outcome.OK and rest_ns < 300_000)
    assert [Outcome(one).name for one in columns["outcome"]] == ["OK", act.outcome.name, "OK", "OK"]
    assert columns["hits"][[0, 2, 3]].tolist() == [0, 2000, 3000]
    # Once each: libcurl itself repeats nothing, and follows no redirection.
    assert [received.serial for received in server.received] == [0, 1000, 2000, 3000]
    assert server.strays == 0
    assert result.searches_sent == 4
    assert sum(failure.count for failure in result.failures) == (act.outcome is not Outcome.OK)
    if act.outcome is Outcome.OK:
        assert columns["hits"][1] == 1000
    else:
        assert result.failures[0].details


def test_a_connection_that_is_reset_before_it_is_used_is_lost_and_the_next_one_serves():
    with HostileServer([DOOMING]) as server:
        columns = ask_one(server.url, iterations=4).columns
    assert columns["outcome"][[0, 2, 3]].tolist() == [Outcome.OK] * 3
    # Whether the reset or the connection comes first is the kernel's affair.
    assert columns["outcome"][1] in {Outcome.REFUSED, Outcome.RESET}
    assert [received.serial for received in server.received] == [0, 1000, 2000]
    assert server.doomed == 1


def test_an_answer_that_nobody_asked_for_is_not_taken_for_that_of_the_next_request():
    with HostileServer() as server, WireClient(server.url) as wire:
        request = Request("POST", "/_search", b"{}", (), 10.0, judge_search)
        wire.connect()
        wire.send(request)
        server.push(whole(found(77)))
        assert eventually(lambda: wire._is_readable() and time.monotonic_ns() > wire._fresh_until_ns)
        exchange = wire.send(request)
    assert judge_search(exchange.status, exchange.body).hits == 1000
    assert exchange.connect_ns > 0


def test_a_node_that_closes_behind_every_answer_loses_one_request_until_it_is_known():
    with HostileServer(default=CLOSED_WITH_ITS_END) as server:
        columns = ask_one(server.url, iterations=30).columns
    # In a closed loop the first one may be sent before the wire has had reason to look.
    assert np.count_nonzero(columns["outcome"] != Outcome.OK) <= 1
    assert len(server.received) >= 29


def test_nonsense_however_often_is_not_a_node_that_is_gone():
    nonsense = [act for act in (*GARBAGE, *FAILED) if act.outcome is Outcome.BAD_BODY]
    with HostileServer(nonsense) as server:
        columns = ask_one(server.url, iterations=len(nonsense)).columns
    assert (columns["outcome"] == Outcome.BAD_BODY).all()
    assert len(server.received) == len(nonsense)


@pytest.mark.parametrize("act", BROKEN, ids=lambda act: act.name)
def test_answers_that_break_however_often_are_failures_of_a_node_that_is_there(act: Act):
    with HostileServer([PLAIN], default=act) as server:
        result = ask_one(server.url, iterations=10)
    assert result.columns["outcome"].tolist() == [Outcome.OK] + [Outcome.RESET] * 9
    assert [(failure.outcome, failure.count) for failure in result.failures] == [(Outcome.RESET, 9)]
    assert len(server.received) == 10


@pytest.mark.parametrize("greeting", [*BROKEN, GARBAGE[0]], ids=lambda act: act.name)
def test_a_node_that_breaks_three_connections_and_greets_nobody_is_gone(greeting: Act):
    with HostileServer(default=BROKEN[0], greetings=[PLAIN, *[greeting] * 3]) as server:
        with pytest.raises(NodeGone, match="the node is gone in task 'x'"):
            ask_one(server.url, iterations=10)
        assert len(server.received) == 3
    assert clients_alive() == []


def test_a_greeting_that_breaks_is_tried_again():
    with HostileServer(greetings=[BROKEN[0], BROKEN[4]]) as server:
        columns = ask_one(server.url, iterations=3).columns
    assert columns["outcome"].tolist() == [Outcome.OK] * 3


@pytest.mark.parametrize("greeting", [*BROKEN, GARBAGE[0]], ids=lambda act: act.name)
def test_a_node_that_cannot_be_greeted_is_gone_and_no_client_waits_for_the_others(greeting: Act):
    with HostileServer(greetings=[PLAIN, *[greeting] * 9]) as server:
        with pytest.raises(NodeGone, match="cannot connect"):
            ask_one(server.url, clients=3, iterations=10)
        assert server.received == []
    assert clients_alive() == []


def test_an_answer_before_the_whole_body_was_sent_is_the_answer():
    listener = socket.create_server(("127.0.0.1", 0))

    def refuse() -> None:
        connection, _ = listener.accept()
        with connection:
            connection.recv(1000)
            connection.sendall(whole(b"no", "connection: close", status="HTTP/1.1 413 Too Large"))
            # What is not read would turn the close into a reset.
            while connection.recv(2**20):
                pass

    thread = threading.Thread(target=refuse)
    thread.start()
    with listener, WireClient(f"http://127.0.0.1:{listener.getsockname()[1]}") as wire:
        exchange = wire.send(Request("POST", "/x", b"z" * 20_000_000, (), 10.0, judge_plain))
        thread.join()
    assert (exchange.status, exchange.failure) == (413, None)


def test_the_answer_to_head_has_no_body_however_long_it_would_be():
    act = Act("head only", lambda _serial: [head("content-length: 500")], Outcome.OK)
    with HostileServer(default=act) as server:
        result = ask_one(server.url, RawRequest(name="x", method="HEAD", path="/big5"), iterations=3)
    assert result.columns["outcome"].tolist() == [Outcome.OK] * 3
    assert server.connections == 1


@pytest.mark.parametrize(
    "asked", [{"headers": {"accept-encoding": "gzip"}}, {"response_compression_enabled": True}]
)
def test_who_asks_for_packed_answers_has_them_unpacked(asked: dict[str, Any]):
    act = Act(
        "packed", lambda serial: [whole(gzip.compress(found(serial)), "content-encoding: gzip")], Outcome.OK
    )
    broken = Act(
        "badly", lambda _serial: [whole(b"no gzip at all", "content-encoding: gzip")], Outcome.BAD_BODY
    )
    with HostileServer([act, broken], default=act) as server:
        columns = ask_one(server.url, Search(name="x", **asked), iterations=3).columns
    assert columns["outcome"].tolist() == [Outcome.OK, Outcome.BAD_BODY, Outcome.OK]
    assert columns["hits"][[0, 2]].tolist() == [0, 2000]


@pytest.mark.parametrize("act", [*LARGE, BOMB], ids=lambda act: act.name)
def test_an_answer_without_end_is_a_failure_of_its_kind_and_leaves_the_memory(act: Act):
    before = resident_bytes()
    search = Search(name="x", response_compression_enabled=act is BOMB, request_timeout=20.0)
    with HostileServer([PLAIN, act]) as server:
        wire = partial(WireClient, server.url, most_bytes=8 << 20)
        result = ask_one(server.url, search, iterations=4, open_wire=lambda _client: wire())
    outcomes = [Outcome.OK, Outcome.BAD_BODY, Outcome.OK, Outcome.OK]
    assert result.columns["outcome"].tolist() == outcomes
    assert [(failure.outcome, failure.count, failure.details) for failure in result.failures] == [
        (Outcome.BAD_BODY, 1, ("the response is larger than 8 MiB, and was not read completely",))
    ]
    assert resident_bytes() - before < 64 << 20


def test_an_error_may_be_nested_as_deeply_as_it_likes():
    for depth in (10, 400, 900, 5_000, 100_000):
        error = b'{"error":' + b'{"caused_by":' * depth + b"{}" + b"}" * depth + b"}"
        assert is_unsupported(400, error) is None
        assert judge_search(400, error).outcome is Outcome.HTTP_ERROR


def test_a_batch_says_no_more_than_a_sample_can_hold():
    one = b'{"took":1,"status":200,"_shards":{"failed":32767},"hits":{"total":%d}}'
    answer = judge_multi_search(200, b'{"took":1,"responses":[%s,%s]}' % (one % 1, one % 2))
    assert (answer.outcome, answer.hits, answer.failed_shards) == (Outcome.PARTIAL, 3, 32767)
    answer = judge_multi_search(200, b'{"took":1,"responses":[%s,%s]}' % (one % (2**63 - 1), one % 1))
    assert answer.outcome is Outcome.BAD_BODY


# Storms


def test_a_storm_of_rejections_is_counted_attempt_by_attempt():
    with HostileServer(default=BUSY) as server:
        result = ask_one(server.url, Search(name="x", retry_on_429=2), clients=2, iterations=2)
    columns = result.columns
    assert columns["attempt"].tolist() == [0, 1, 2] * 4
    assert len(server.received) == result.searches_sent == 12
    assert [(failure.outcome, failure.count) for failure in result.failures] == [(Outcome.REJECTED, 12)]


def test_without_a_policy_a_rejection_is_not_sent_again():
    with HostileServer(default=BUSY) as server:
        result = ask_one(server.url, clients=4, iterations=50)
    assert len(server.received) == result.columns["client"].size == 200
    assert (result.columns["outcome"] == Outcome.REJECTED).all()


def test_a_stop_during_a_back_off_counts_the_rejection_once():
    stop = threading.Event()
    last = Act("busy, and stop", lambda _serial: (stop.set(), BUSY.steps(0))[1], Outcome.REJECTED)
    with HostileServer([BUSY] * 4 + [last], default=BUSY) as server:
        result = ask_one(server.url, Search(name="x", retry_on_429=100), iterations=3, stop=stop)
    assert [(failure.outcome, failure.count) for failure in result.failures] == [
        (Outcome.REJECTED, result.columns["client"].size)
    ]
    assert len(server.received) == result.columns["client"].size <= 6


class InterruptedBetween:
    """A wire that answers well, and is interrupted when it has."""

    def __init__(self) -> None:
        self.interrupted = False

    def connect(self) -> Exchange:
        raise NotImplementedError

    def send(self, _request: Request) -> Exchange:
        self.interrupted = True
        return Exchange(1, 0, 2, 200, found(5), 1)

    def interrupt(self) -> None:
        raise NotImplementedError

    def close(self) -> None:
        raise NotImplementedError


@pytest.mark.parametrize(("pages", "whole_is"), [(2, Outcome.CANCELLED), (1, Outcome.CANCELLED)])
def test_an_operation_cut_off_between_its_requests_is_cancelled(pages: int, whole_is: Outcome):
    def script() -> Script:
        for _ in range(pages):
            yield Request("POST", "/_search", b"", (), 1.0, judge_search)
        return None

    client = Client(script, InterruptedBetween(), Waiter(threading.Event()), Recorder())
    client.run([(None, False, 0)] * 3)
    assert client.recorder.columns(NO_PLACE)["outcome"].tolist() == [Outcome.OK, whole_is]
    assert client.tally.failures == ()


@pytest.mark.parametrize("act", [STALLED[0], STALLED[3], STALLED[-1]], ids=lambda act: act.name)
def test_what_a_stop_cuts_off_is_cancelled_and_no_failure_of_the_node(act: Act):
    stop = threading.Event()
    stalled = Act(act.name, lambda serial: (stop.set(), act.steps(serial))[1], act.outcome)
    with HostileServer([PLAIN, PLAIN, stalled], default=HANGING) as server:
        result = ask_one(
            server.url, Search(name="x", request_timeout=60.0), clients=2, iterations=9, stop=stop
        )
        sent = len(server.received)
    outcomes = result.columns["outcome"]
    assert sent == result.searches_sent == outcomes.size
    assert np.count_nonzero(outcomes == Outcome.CANCELLED) in {1, 2}
    assert np.isin(outcomes, [Outcome.OK, Outcome.CANCELLED]).all()
    assert result.failures == ()


def test_the_end_of_a_group_cuts_off_what_stalls():
    def steps(serial: int) -> list[bytes | Then]:
        return [Then.HANG] if serial < 2000 else [whole(found(serial))]

    with HostileServer(default=Act("the first task stalls", steps, Outcome.TIMEOUT)) as server:
        jobs = [
            (
                Task(name, group=0, iterations=3, completes=completes, target_throughput=rate),
                Search(name=name, body={"number": number}),
            )
            # The quick one leaves the other one the time to begin.
            for number, name, completes, rate in [(1, "stalled", False, None), (2, "quick", True, 10.0)]
        ]
        stalled, quick = ask(server.url, *jobs)
        sent = len(server.received)
    assert stalled.columns["outcome"].tolist() == [Outcome.CANCELLED]
    assert quick.columns["outcome"].tolist() == [Outcome.OK] * 3
    assert sent == stalled.searches_sent + quick.searches_sent == 4


# Random schedules on a random node

TIMEOUT_S = 0.2
# More than any task here can ask for.
EACH = 20_000
NUMBERS = {base: Choice(items=tuple(range(base, base + EACH))) for base in (0, EACH)}


@dataclass(frozen=True)
class Asked:
    """A task whose requests carry numbers from `base` on."""

    task: Task
    base: int
    retries: int
    paged: bool

    @property
    def job(self) -> tuple[Task, Operation]:
        keys: dict[str, Any] = {
            "name": self.task.operation,
            "body": {"number": "${n}"},
            "values": {"n": NUMBERS[self.base]},
            "request_timeout": TIMEOUT_S,
            "retry_on_429": self.retries,
        }
        if self.paged:
            return self.task, PaginatedSearch(**keys | {"body": {**keys["body"], "sort": ["x"]}})
        return self.task, Search(**keys)


@dataclass(frozen=True)
class Scene:
    """What is asked, and what becomes of it."""

    tasks: tuple[Asked, ...]
    script: tuple[Act, ...]
    stop_after: int | None
    abort: bool


@st.composite
def scenes(draw: st.DrawFn) -> Scene:
    count = draw(st.integers(1, 2))
    tasks = []
    for place in range(count):
        keys: dict[str, Any] = {"clients": draw(st.integers(1, 3))}
        if draw(st.booleans()):
            keys["iterations"] = draw(st.integers(1, 8))
            keys["warmup_iterations"] = draw(st.integers(0, 2))
        else:
            keys["time_period"] = draw(st.floats(0.01, 0.15))
            keys["warmup_time_period"] = draw(st.floats(0, 0.05))
        if draw(st.booleans()):
            keys["target_throughput"] = draw(st.sampled_from([50.0, 200.0, 1000.0]))
            keys["schedule"] = draw(st.sampled_from(["deterministic", "poisson"]))
        if count > 1:
            keys |= {"group": 0, "completes": place == 0 and draw(st.booleans())}
        task = Task(f"number {place}", **keys)
        tasks.append(Asked(task, place * EACH, draw(st.integers(0, 2)), draw(st.booleans())))
    kinds = st.one_of(
        *(st.sampled_from(acts) for acts in (GOOD, GOOD, FAILED, BROKEN, GARBAGE)), st.just(DOOMING)
    )
    script = draw(st.lists(kinds, max_size=30))
    if draw(st.booleans()):
        script.insert(draw(st.integers(0, len(script))), draw(st.sampled_from(STALLED)))
    stop_after = draw(st.none() | st.integers(1, 20))
    return Scene(tuple(tasks), tuple(script), stop_after, draw(st.integers(0, 5)) == 0)


def stopping(script: tuple[Act, ...], after: int | None, stop: threading.Event) -> list[Act]:
    """The script, with a stop while one of its requests waits for its answer; sometimes for ever."""
    acts = [*script, PLAIN, HANGING]
    if after is not None and after <= len(acts):
        act = acts[after - 1]
        acts[after - 1] = Act(act.name, lambda serial: (stop.set(), act.steps(serial))[1], act.outcome)
    return acts if after is not None else list(script)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(scene=scenes())
def test_whatever_happens_every_request_is_one_sample_and_every_answer_its_own(scene: Scene):
    stop = threading.Event()
    began = time.monotonic()
    with HostileServer(stopping(scene.script, scene.stop_after, stop)) as server:
        try:
            jobs = [asked.job for asked in scene.tasks]
            results = ask(server.url, *jobs, stop=stop, abort_on_failure=scene.abort)
        except NodeGone:
            assert server.doomed + sum(one.act.outcome is Outcome.RESET for one in server.received) >= 3
            results = None
        except TaskAborted:
            assert scene.abort
            results = None
    assert time.monotonic() - began < 20
    assert clients_alive() == []
    if results is None:
        return
    ended_early = stop.is_set() or any(asked.task.completes for asked in scene.tasks)
    received = {one.serial: one.act for one in server.received}
    assert len(received) == len(server.received)
    sent: dict[int, Outcome] = {}
    for result, asked in zip(results, scene.tasks, strict=True):
        sent |= check_task(result, asked, received, ended_early=ended_early)
    # None of the requests that the node had is missing; those it never had broke on their way.
    assert received.keys() <= sent.keys()
    unheard = sum(
        sent[serial] in {Outcome.REFUSED, Outcome.RESET} for serial in sent.keys() - received.keys()
    )
    closed_unseen = sum(act is CLOSED_WITH_ITS_END for act in received.values())
    assert ended_early or unheard <= server.doomed + closed_unseen


def check_task(
    result: TaskResult, asked: Asked, received: dict[int, Act], *, ended_early: bool
) -> dict[int, Outcome]:
    """Check every row of a task against what the node did; returns the serials of its requests."""
    columns, paged = result.columns, asked.paged
    values = zip(*(column.tolist() for column in columns.values()), strict=True)
    rows = [dict(zip(columns, row, strict=True)) for row in values]
    requests = [row for row in rows if (row["part"] > 0) == paged]
    sent: dict[int, Outcome] = {}
    turn: dict[int, int] = {}
    for row in requests:
        client = row["client"]
        if row["attempt"] == 0:
            turn[client] = turn.get(client, -1) + 1
        number = asked.base + (client + turn[client] * asked.task.clients) % EACH
        serial = number * 1000 + row["attempt"]
        check_row(row, serial, received.get(serial), ended_early=ended_early)
        sent[serial] = Outcome(row["outcome"])
    assert len(sent) == len(requests)
    assert len(sent.keys() & received.keys()) <= result.searches_sent <= len(sent)
    check_operations(result, rows, requests, paged=paged)
    return sent


def check_row(row: dict[str, Any], serial: int, act: Act | None, *, ended_early: bool) -> None:
    """Check a request's row against what became of the request; None: the node never had it."""
    outcome = Outcome(row["outcome"])
    if outcome is Outcome.CANCELLED:
        assert ended_early
    elif act is None:
        assert outcome in {Outcome.REFUSED, Outcome.RESET, Outcome.TIMEOUT}
    elif row["end_ns"] - row["start_ns"] < TIMEOUT_S * 1e9:
        assert outcome is act.outcome
    else:
        assert outcome in {act.outcome, Outcome.TIMEOUT}
    if outcome is Outcome.OK:
        assert row["hits"] == serial
    assert row["intended_ns"] <= row["start_ns"] <= row["end_ns"]


def check_operations(
    result: TaskResult, rows: list[dict[str, Any]], requests: list[dict[str, Any]], *, paged: bool
) -> None:
    """Every operation is a success, a failure or cancelled, and counted once."""
    operations = [row for row in rows if row["part"] == 0]
    bad = [row for row in operations if Outcome(row["outcome"]) not in {Outcome.OK, Outcome.CANCELLED}]
    if not paged:
        assert sum(failure.count for failure in result.failures) == len(bad)
        return
    # Each has one page here; its attempts are those of the page.
    assert len(operations) == sum(row["attempt"] == 0 for row in requests)
    after = [row["attempt"] for row in requests[1:]] + [0] * bool(requests)
    last = [row for row, attempt in zip(requests, after, strict=True) if attempt == 0]
    for operation, request in zip(operations, last, strict=True):
        assert operation["outcome"] in {request["outcome"], Outcome.CANCELLED}
        if operation["outcome"] == Outcome.OK:
            assert operation["hits"] == request["hits"]
    again = sum(row["attempt"] > 0 for row in requests)
    assert sum(failure.count for failure in result.failures) == len(bad) + again


# Memory and what else could pile up


def test_memory_is_flat_however_much_goes_wrong(tmp_path: Path):
    broken = [*FAILED[:8], BROKEN[0], PLAIN, *GARBAGE, BROKEN[3], PLAIN, BROKEN[5], BROKEN[6]]
    huge = Act("huge", lambda _serial: [whole(b"x" * 50_000_000)], Outcome.BAD_BODY)
    acts = itertools.islice(itertools.cycle(broken), 900)
    ours, theirs = get_context("spawn").Pipe()
    with HostileServer(acts, default=huge) as server:
        child = get_context("spawn").Process(target=send_faulty, args=(theirs, tmp_path / "rows", server.url))
        child.start()
        theirs.close()
        try:
            storm, connections, bodies, descriptors = ours.recv()
        finally:
            child.join()
    assert storm < 2 * 2**20
    assert connections < 2 * 2**20
    # Of 8 bodies of 50 MB; the allocator may keep as much as it is used to trim at.
    assert bodies < 64 * 2**20
    assert descriptors == 0
