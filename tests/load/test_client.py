"""One client on a clock of its own: every sample is what an obvious reading of the schedule says."""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchctl.load.client import (
    Client,
    NodeGone,
    Recorder,
    Tally,
    TaskAborted,
    Waiter,
    arrivals,
    cues,
    extent,
)
from benchctl.load.transport import Answer, Exchange, Request
from benchctl.load.work import Script
from benchctl.load.work.judges import judge_multi_search, judge_search
from benchctl.results.samples import Outcome, RowOwner
from benchctl.track.model import Task
from load.stub_server import SEARCH_BODY

MS = 1_000_000
START_NS = 5 * MS
REQUEST = Request("POST", "/big5/_search", b"{}", (), 1.0, judge_search, searches=1)
UNKNOWN = b'{"error": {"type": "parsing_exception", "reason": "Unknown aggregation type [x]"}}'


class FakeTimer:
    """A clock that only moves when somebody waits on it or a request takes time."""

    def __init__(self, halt_after_ns: int | None = None) -> None:
        self.now = 0
        self.halt_after_ns = halt_after_ns

    def now_ns(self) -> int:
        return self.now

    def wait_until(self, moment_ns: int) -> bool:
        self.now = max(self.now, moment_ns)
        return not self.halted()

    cue = Waiter.cue

    def halted(self) -> bool:
        return self.halt_after_ns is not None and self.now > self.halt_after_ns


@dataclass(frozen=True)
class Served:
    """How one request goes."""

    service_ns: int
    status: int = 200
    body: bytes = SEARCH_BODY
    failure: Outcome | None = None


class FakeWire:
    """Answers as told, the last one again and again, and moves the clock by the service time."""

    def __init__(self, timer: FakeTimer, served: list[Served]) -> None:
        self.timer = timer
        self.served = served
        self.sent: list[Request] = []
        self.interrupted = False

    def connect(self) -> Exchange:
        """Only a node that has lost all that it was asked is greeted again, and then it is gone."""
        return Exchange(0, 0, 0, 0, b"", 0, Outcome.REFUSED, "lost")

    def interrupt(self) -> None:
        raise NotImplementedError

    def close(self) -> None:
        raise NotImplementedError

    def send(self, request: Request) -> Exchange:
        one = self.served[min(len(self.sent), len(self.served) - 1)]
        self.sent.append(request)
        start_ns = self.timer.now
        self.timer.now += one.service_ns
        body = b"" if one.failure else one.body
        return Exchange(start_ns, 0, self.timer.now, one.status, body, len(body), one.failure, "lost")


@dataclass
class Run:
    """A client that has run, and what it ran on."""

    client: Client
    wire: FakeWire

    @property
    def rows(self) -> list[tuple[Any, ...]]:
        """(intended, start, end, outcome name, warm-up, part, attempt) of every sample."""
        columns = self.client.recorder.columns(RowOwner(origin_ns=0, schedule=0, task=0, boot=0, client=0))
        names = ("intended_ns", "start_ns", "end_ns", "outcome", "warmup", "part", "attempt")
        rows = zip(*(columns[name].tolist() for name in names), strict=True)
        return [(*row[:3], Outcome(row[3]).name, *row[4:]) for row in rows]


def run(task: Task, *served: Served, client: int = 0, seed: int = 1, work: Any = REQUEST, **job: Any) -> Run:
    ramp_up_ns, halt_after_ns = job.pop("ramp_up_ns", 0), job.pop("halt_after_ns", None)
    timer = FakeTimer(halt_after_ns)
    wire = FakeWire(timer, list(served))
    program = work if callable(work) else lambda: work
    one = Client(program, wire, timer, Recorder(), label=task.label, **job)
    made = Run(one, wire)
    bounds = extent(task)
    one.run(
        cues(task, bounds, client=client, seed=seed, start_ns=START_NS, timer=timer, ramp_up_ns=ramp_up_ns)
    )
    return made


def obvious(
    task: Task, served: list[Served], client: int, seed: int, ramp_up_ns: int
) -> Iterator[tuple[Any, ...]]:
    """What the samples must be, read off the schedule one request at a time."""
    period_ns = None
    warmup_ns = 0
    if task.time_period is not None:
        warmup_ns = round((task.warmup_time_period or 0) * 1e9)
        period_ns = warmup_ns + round(task.time_period * 1e9)
    due = list(_due(task, client, seed, ramp_up_ns, period_ns)) if task.rate_per_s else None
    now_ns = START_NS + ramp_up_ns
    number = 0
    while True:
        if due is not None:
            if number == len(due):
                return
            intended_ns = START_NS + due[number]
            now_ns = max(now_ns, intended_ns)
            is_warmup = due[number] < warmup_ns
        else:
            if period_ns is not None and now_ns - START_NS >= period_ns:
                return
            intended_ns = now_ns
            is_warmup = now_ns - START_NS < warmup_ns
        if period_ns is None:
            is_warmup = number < (task.warmup_iterations or 0)
            if number == (task.warmup_iterations or 0) + (task.iterations or 1):
                return
        one = served[min(number, len(served) - 1)]
        end_ns = now_ns + one.service_ns
        outcome = "OK" if one.status == 200 else "HTTP_ERROR"
        yield (intended_ns, now_ns, end_ns, outcome, is_warmup, 0, 0)
        now_ns = end_ns
        number += 1


def _due(task: Task, client: int, seed: int, ramp_up_ns: int, period_ns: int | None) -> Iterator[int]:
    if task.schedule == "poisson":
        found = arrivals(task, client=client, seed=seed)
        yield from (offset for offset in found if offset >= ramp_up_ns)
        return
    taken = 0
    number = client
    most = (task.warmup_iterations or 0) + (task.iterations or 1)
    while True:
        offset = round(number * 1e9 / (task.rate_per_s or 1))
        number += task.clients
        if period_ns is not None and offset >= period_ns:
            return
        if period_ns is None and taken == most:
            return
        if offset >= ramp_up_ns:
            taken += 1
            yield offset


@st.composite
def tasks(draw: st.DrawFn) -> Task:
    keys: dict[str, Any] = {"clients": draw(st.integers(1, 4))}
    if draw(st.booleans()):
        keys["iterations"] = draw(st.integers(1, 30))
        keys["warmup_iterations"] = draw(st.one_of(st.none(), st.integers(0, 10)))
    else:
        keys["time_period"] = draw(st.floats(0.001, 0.05))
        keys["warmup_time_period"] = draw(st.one_of(st.none(), st.floats(0, 0.02)))
    if draw(st.booleans()):
        keys["target_throughput"] = draw(st.floats(20, 2000))
        keys["schedule"] = draw(st.sampled_from(["deterministic", "poisson"]))
    return Task("range", **keys)


@given(
    task=tasks(),
    served=st.lists(
        st.builds(Served, st.integers(10_000, 20 * MS), st.sampled_from([200, 200, 200, 500])), min_size=1
    ),
    client=st.integers(0, 3),
    seed=st.integers(0, 5),
    share=st.floats(0, 1),
)
def test_every_sample_is_what_the_schedule_says(
    task: Task, served: list[Served], client: int, seed: int, share: float
):
    number = client % task.clients
    ramp_up_ns = round((task.warmup_time_period or 0) * 1e9 * share)
    found = run(task, *served, client=number, seed=seed, ramp_up_ns=ramp_up_ns).rows
    assert found == list(obvious(task, served, number, seed, ramp_up_ns))


@given(
    served=st.lists(st.builds(Served, st.integers(1, 3 * MS)), min_size=1), halt_ns=st.integers(0, 60 * MS)
)
def test_a_halted_client_sends_nothing_more_and_keeps_all_it_sent(served: list[Served], halt_ns: int):
    made = run(Task("range", iterations=50), *served, halt_after_ns=halt_ns)
    assert len(made.rows) == len(made.wire.sent)
    assert all(row[1] <= max(halt_ns, START_NS) for row in made.rows)


def test_a_rejected_request_is_sent_again_after_a_growing_pause():
    request = Request("POST", "/x", b"", (), 1.0, judge_search, searches=1, retries=3)
    busy = Served(MS, 429, b"{}")
    made = run(Task("range", target_throughput=1.0), busy, busy, Served(MS), work=request)
    assert [(row[3], row[6]) for row in made.rows] == [("REJECTED", 0), ("REJECTED", 1), ("OK", 2)]
    starts = [row[1] for row in made.rows]
    assert [b - a for a, b in itertools.pairwise(starts)] == [51 * MS, 101 * MS]
    # The latency of the success counts from when it was first wanted.
    assert {row[0] for row in made.rows} == {START_NS}
    assert made.client.tally.searches_sent == 3


def test_a_batch_that_was_rejected_within_an_answer_of_200_is_sent_again_however_quick_it_was():
    request = Request("POST", "/_msearch", b"", (), 1.0, judge_multi_search, searches=1, retries=1)
    busy = Served(MS // 2, 200, b'{"took": 1, "responses": [{"status": 429, "error": "busy"}]}')
    done = Served(MS // 2, 200, b'{"took": 1, "responses": [%b]}' % SEARCH_BODY)
    made = run(Task("range", iterations=2), busy, done, work=request)
    assert [(row[3], row[6]) for row in made.rows] == [("REJECTED", 0), ("OK", 1), ("OK", 0)]


def took(*tooks_ms: int) -> Served:
    """A quick batch whose searches took so long."""
    found = b",".join(SEARCH_BODY.replace(b'"took":3', b'"took":%d' % one) for one in tooks_ms)
    return Served(MS // 2, 200, b'{"took": 30, "responses": [%b]}' % found)


@pytest.mark.parametrize("rate", [None, 100.0])
def test_every_search_of_a_measured_batch_keeps_its_own_time_and_they_their_sum(rate: float | None):
    request = Request("POST", "/_msearch", b"two lines", (), 1.0, judge_multi_search, searches=2)
    task = Task("range", warmup_iterations=1, iterations=3, target_throughput=rate)
    failed = Served(MS // 2, 200, b'{"took": 1, "responses": [{"status": 400, "error": "no"}]}')
    made = run(task, took(900, 900), took(10, 20), failed, took(10, 25), work=request)
    assert made.client.tally.tooks == [{30: 1, 35: 1}, {10: 2}, {20: 1, 25: 1}]
    assert [failure.outcome for failure in made.client.tally.failures] == [Outcome.HTTP_ERROR]


def profiled(_status: int, _body: bytes) -> Answer:
    return Answer(Outcome.OK, 7, profile_ns={"query": 1, "aggs": 320, "aggs.a": 20, "aggs.b": 300})


def twice_profiled() -> Script:
    yield msgspec.structs.replace(REQUEST, judge=profiled)
    yield msgspec.structs.replace(REQUEST, judge=profiled)
    return Answer(Outcome.OK, 7)


@pytest.mark.parametrize("rate", [None, 100.0])
def test_profiles_of_measured_searches_add_up_those_of_parts_included(rate: float | None):
    request = msgspec.structs.replace(REQUEST, judge=profiled)
    for work, times in ((request, 2), (twice_profiled, 4)):
        task = Task("range", warmup_iterations=1, iterations=2, target_throughput=rate)
        made = run(task, *[Served(MS // 2) for _ in range(6)], work=work)
        found = {"query": times, "aggs": 320 * times, "aggs.a": 20 * times, "aggs.b": 300 * times}
        assert made.client.tally.profile_ns == found


def of_recall(_status: int, body: bytes) -> Answer:
    return Answer(Outcome.OK, 7, recall=0.5 if body == SEARCH_BODY else None)


@pytest.mark.parametrize("rate", [None, 100.0])
def test_recall_is_that_of_measured_searches_that_have_one(rate: float | None):
    request = msgspec.structs.replace(REQUEST, judge=of_recall)
    task = Task("range", warmup_iterations=1, iterations=3, target_throughput=rate)
    served = [Served(MS // 2), Served(MS // 2), Served(MS // 2, body=b"{}"), Served(MS // 2)]
    made = run(task, *served, work=request)
    assert made.client.tally.recall == (1.0, 2)
    whole = Tally(recall=(1.0, 1))
    whole.add(made.client.tally)
    assert whole.recall == (2.0, 3)


def in_a_row() -> Script:
    yield REQUEST
    yield REQUEST
    return Answer(Outcome.OK, 7, tooks_ms=(3, 4))


def test_so_does_every_search_of_an_operation_that_sends_them_in_a_row():
    made = run(
        Task("range", warmup_iterations=1, iterations=2), *[Served(MS) for _ in range(6)], work=in_a_row
    )
    assert made.client.tally.tooks == [{7: 2}, {3: 2}, {4: 2}]


def scroll() -> Script:
    first = yield REQUEST
    assert first is not None
    assert first.answer.hits == 10000
    assert (yield 0.004) is None
    yield REQUEST
    return Answer(Outcome.OK, hits=77)


def test_an_operation_of_several_requests_is_one_sample_and_each_of_them():
    made = run(Task("range", iterations=2), Served(2 * MS), Served(3 * MS), work=scroll)
    first = [(row[1] - START_NS, row[2] - START_NS, row[5]) for row in made.rows[:3]]
    assert first == [(0, 2 * MS, 1), (6 * MS, 9 * MS, 2), (0, 9 * MS, 0)]
    assert [row[5] for row in made.rows] == [1, 2, 0, 1, 2, 0]
    columns = made.client.recorder.columns(RowOwner(origin_ns=0, schedule=0, task=0, boot=0, client=0))
    assert columns["hits"][2] == 77
    assert columns["response_bytes"][2] == 2 * len(SEARCH_BODY)


def test_the_first_failure_of_a_script_is_that_of_the_whole_whatever_it_says():
    made = run(Task("range"), Served(MS, 500, b"{}"), Served(MS), work=careless)
    assert [row[3] for row in made.rows] == ["HTTP_ERROR", "OK", "HTTP_ERROR"]
    assert [failure.count for failure in made.client.tally.failures] == [1]


def careless() -> Script:
    yield REQUEST
    yield REQUEST
    return Answer(Outcome.OK)


def test_work_that_runs_out_ends_the_task():
    work = iter([REQUEST, REQUEST])
    made = run(Task("range", iterations=9), Served(MS), work=lambda: next(work, None))
    assert len(made.rows) == 2


def test_an_operation_that_the_node_lacks_ends_at_once():
    made = run(Task("range", iterations=9), Served(MS, 400, UNKNOWN))
    assert made.client.tally.unsupported is not None
    assert len(made.rows) == 1


def test_an_operation_that_worked_once_is_not_unsupported():
    made = run(Task("range", iterations=9), Served(MS), Served(MS, 400, UNKNOWN))
    assert made.client.tally.unsupported is None
    assert len(made.rows) == 9


def test_a_lost_node_is_given_up_after_three_in_a_row():
    lost = Served(MS, 0, failure=Outcome.RESET)
    with pytest.raises(NodeGone, match="lost"):
        run(Task("range", iterations=9), lost, lost, Served(MS), lost)
    assert len(run(Task("range", iterations=4), lost, lost, Served(MS)).rows) == 4


def test_the_first_failure_aborts_where_that_is_the_policy():
    with pytest.raises(TaskAborted, match="http_error"):
        run(Task("range", iterations=9), Served(MS), Served(MS, 500, b"{}"), abort_on_failure=True)


def test_unmeasured_work_is_all_warmup():
    assert all(row[4] for row in run(Task("range", iterations=3), Served(MS), measured=False).rows)
