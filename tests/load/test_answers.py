"""Servers that answer a measured search with something else than before, and leave every total as it was."""

import itertools
import re
import threading
from collections.abc import Callable
from typing import Any

import pytest

from benchctl.load.client import Sampler
from benchctl.load.executor import TaskResult, WorkerPool
from benchctl.load.transport import Request
from benchctl.load.work.judges import judge_search
from benchctl.results.answers import AnswerSample, Exchanged, sample_answers
from benchctl.results.samples import SampleSpool
from benchctl.track.model import Task
from benchctl.track.operations.search import Search
from benchctl.track.values import Choice
from load.storm import ask
from load.stub_server import Received, Reply, StubServer

WORDS = ("ant", "bee", "cow")
VARYING = Search(name="words", body={"query": {"term": {"w": "${w}"}}}, values={"w": Choice(items=WORDS)})
CONSTANT = Search(name="one", body={"query": {"term": {"w": "ant"}}})
MANY = {"clients": 8, "iterations": 30, "warmup_iterations": 5}
_HIT = b'{"_index":"big5","_id":"%s-%d","_score":1.0}'

Fault = Callable[[bytes, int], tuple[bytes, int]]
"""The word that is asked for and the number of the search -> the word that is answered for, and its hits."""


def honest(word: bytes, _number: int) -> tuple[bytes, int]:
    return word, 3


def swapping(word: bytes, number: int) -> tuple[bytes, int]:
    """Two words change places in every second search, as answers of two clients do in a proxy."""
    other = {b"ant": b"bee", b"bee": b"ant"}.get(word, word)
    return (other if number % 2 else word), 3


def losing(word: bytes, number: int) -> tuple[bytes, int]:
    """Every second search returns a hit less."""
    return word, 2 if number % 2 else 3


class Words(StubServer):
    """Finds three documents of every word, or what the fault makes of it; the total is always three."""

    def __init__(self, fault: Fault) -> None:
        super().__init__()
        self._fault = fault
        self._numbers: dict[bytes, itertools.count[int]] = {}

    def _reply(self, request: Received) -> Reply:
        found = re.search(rb'"w":"(\w+)"', request.body)
        if found is None:
            return super()._reply(request)
        number = next(self._numbers.setdefault(found[1], itertools.count()))
        word, hits = self._fault(found[1], number)
        listed = b",".join(_HIT % (word, place) for place in range(hits))
        return Reply(
            body=b'{"took":1,"timed_out":false,"_shards":{"total":1,"failed":0},"hits":{"total":{"value":3,'
            b'"relation":"eq"},"max_score":1.0,"hits":[%s]}}' % listed
        )


def checked(result: TaskResult, operation: Search) -> AnswerSample:
    sample = sample_answers(result.sample, constant=operation.constant, by_id=True)
    assert sample is not None
    return sample


@pytest.mark.parametrize(
    ("operation", "fault", "example"),
    [
        (VARYING, honest, ""),
        (VARYING, swapping, "ids of the hits"),
        (VARYING, losing, "hits returned"),
        (CONSTANT, honest, ""),
        (CONSTANT, losing, "hits returned"),
    ],
)
def test_what_a_measured_search_returns_is_held_against_what_it_returned_before(
    operation: Search, fault: Fault, example: str, run: Callable[..., TaskResult]
):
    with Words(fault) as server:
        result = run(server, ask=operation, **MANY)
    sample = checked(result, operation)
    assert sample.checked == 8 * 30
    assert sample.repeated == 8 * 30 - (3 if operation.values else 1)
    assert (sample.changed > 0) is bool(example)
    assert example in sample.example
    assert (sample.first is not None) is operation.constant
    # By the totals alone nothing is wrong.
    assert set(result.columns["hits"].tolist()) == {3}


def test_what_processes_send_is_one_sample(tmp_path: Any):
    with Words(swapping) as server, WorkerPool(2) as pool, SampleSpool(tmp_path / "samples") as spool:
        (result,) = ask(server.url, (Task("words", **MANY), VARYING), workers=pool, spool=spool)
    assert result.processes == 2
    sample = checked(result, VARYING)
    assert (sample.checked, sample.changed > 0) == (240, True)


def offered(sizes: list[int], *, clients: int = 1, path: str = "/big5/_search") -> list[int]:
    """The places of those that are kept, of answers of these sizes."""
    sample: list[Exchanged] = []
    sampler = Sampler(sample, clients)
    for place, size in enumerate(sizes):
        sampler.offer(Request("POST", path, b"%d" % place, (), 1.0, judge_search, searches=1), bytes(size))
    return [int(one.asked) for one in sample]


@pytest.mark.parametrize(
    ("count", "size", "clients", "kept"),
    [
        (64, 10, 1, range(64)),
        (65, 10, 1, range(0, 65, 3)),
        (5000, 10, 1, range(0, 5000, 81)),
        # 4 MiB for all clients of a task.
        (1000, 1 << 20, 1, range(0, 1000, 729)),
        (9, 1 << 20, 4, range(0, 9, 9)),
        (9, 1 << 20, 8, range(0)),
    ],
)
def test_a_sample_is_even_and_limited(count: int, size: int, clients: int, kept: range):
    assert offered([size] * count, clients=clients) == list(kept)


def test_a_page_of_a_scroll_is_not_sampled():
    assert offered([10] * 3, path="/_search/scroll") == []
    assert offered([10] * 3, path="/big5/_search?scroll=1m") == [0, 1, 2]


def test_a_stopped_task_has_the_sample_of_what_it_did(run: Callable[..., TaskResult]):
    stop = threading.Event()
    with Words(honest) as server:
        result = run(server, ask=CONSTANT, iterations=1_000_000, stop=stop, on_progress=lambda _: stop.set())
    assert 0 < checked(result, CONSTANT).checked <= 64
