"""Scripts that run at the same time, over real connections: beside each other, and one after the other."""

import threading
from typing import Any

import pytest

from benchctl.load.executor import TaskResult
from benchctl.results.samples import Outcome
from benchctl.track.operations import Operation
from benchctl.track.operations.catalogue import decode_operation
from load.storm import ask_one
from load.stub_server import Reply, Serve, StubServer

SEARCH = {"operation-type": "search"}
STREAM = {"stream": [SEARCH]}
SLOW = Reply(delay_s=0.05)


def composite(*requests: Any, **raw: Any) -> Operation:
    return decode_operation({"name": "x", "operation-type": "composite", "requests": list(requests), **raw})


def run(server: StubServer, *requests: Any, iterations: int = 1, **raw: Any) -> TaskResult:
    return ask_one(server.url, composite(*requests, **raw), iterations=iterations)


def overlapping(result: TaskResult) -> int:
    """How many requests were on their way when the last of them was sent."""
    columns = result.columns
    parts = columns["part"] > 0
    return int((columns["end_ns"][parts] > columns["start_ns"][parts].max()).sum())


def test_streams_are_sent_at_the_same_time_over_connections_of_their_own(serve: Serve):
    server = serve(default=SLOW)
    result = run(server, STREAM, STREAM, STREAM)
    assert server.connections == 3
    assert overlapping(result) == 3
    assert sorted(result.columns["part"][:-1].tolist()) == [1, 2, 3]
    whole = result.columns["part"] == 0
    took_ns = (result.columns["end_ns"] - result.columns["start_ns"])[whole][0]
    assert 50e6 < took_ns < 130e6
    assert result.searches_sent == len(server.searches) == 3


def test_a_bound_on_connections_makes_streams_wait(serve: Serve):
    server = serve(default=SLOW)
    result = run(server, STREAM, STREAM, STREAM, **{"max-connections": 1})
    assert server.connections == 1
    assert overlapping(result) == 1
    assert result.columns["outcome"].tolist() == [Outcome.OK] * 4


def test_streams_within_streams_share_the_connections(serve: Serve):
    server = serve(default=SLOW)
    inner = {"stream": [STREAM, STREAM, SEARCH]}
    result = run(server, inner, inner, SEARCH, iterations=2)
    assert server.connections == 4
    parts = result.columns["part"].tolist()
    assert [sorted(parts[:7]), parts[7]] == [sorted(parts[8:-1]), parts[-1]] == [[*range(1, 8)], 0]


def test_a_failure_in_a_stream_is_that_of_the_whole_and_the_others_end_well(serve: Serve):
    server = serve(Reply(status=500, body=b"{}"))
    result = run(server, STREAM, {"stream": [SEARCH, SEARCH]}, SEARCH)
    whole = result.columns["outcome"][result.columns["part"] == 0]
    assert whole.tolist() == [Outcome.HTTP_ERROR]
    (failure,) = result.failures
    assert (failure.outcome, failure.count) == (Outcome.HTTP_ERROR, 1)


def test_rejections_in_streams_are_counted_and_sent_again(serve: Serve):
    server = serve(Reply(status=429, body=b"{}"))
    again = {"stream": [{**SEARCH, "retry-on-429": 1}]}
    result = run(server, again, again)
    assert len(server.searches) == result.searches_sent == 3
    (failure,) = result.failures
    assert (failure.outcome, failure.count) == (Outcome.REJECTED, 1)
    assert sorted(result.columns["attempt"].tolist()) == [0, 0, 0, 1]


@pytest.mark.parametrize("hanging", [1, 2])
def test_a_stop_ends_streams_that_hang(serve: Serve, hanging: int):
    server = serve(default=Reply(fault="hang"))
    stop = threading.Event()
    threading.Thread(target=lambda: (server.hanging.wait(), stop.set())).start()
    operation = composite(*[STREAM] * hanging, SEARCH)
    result = ask_one(server.url, operation, iterations=3, stop=stop)
    assert set(result.columns["outcome"].tolist()) == {Outcome.CANCELLED}


def test_the_whole_ends_with_the_last_stream_to_end_not_with_the_last_to_begin(serve: Serve):
    server = serve(Reply(delay_s=0.1))
    result = run(server, STREAM, STREAM)
    ends = result.columns["end_ns"].tolist()
    assert ends[-1] == max(ends[:-1])
    assert abs(ends[0] - ends[1]) > 50e6
