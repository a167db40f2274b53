"""Turns of the nodes of a block: one is asked at a time, at the rates and times of a node that is alone."""

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import groupby, pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchctl.endpoint import Endpoint
from benchctl.load.executor import Job, Stage, TaskResult, lanes_of, run_step
from benchctl.load.transport import open_client
from benchctl.load.turns import (
    LEAST_REQUESTS,
    TURN_NS,
    Member,
    OwnClock,
    Turn,
    Turns,
    Turnstile,
    TurnWaiter,
    spans_on_own_clock,
)
from benchctl.load.work import WorkContext
from benchctl.results.samples import Columns, Outcome, concatenate, empty_columns
from benchctl.stats.summary import driver_figures, summarise
from benchctl.track.model import Task
from benchctl.track.operations.search import Search
from load.stub_server import Reply, Serve, StubServer

MS = 1_000_000
MANY_CPUS = 64


def block(
    servers: Sequence[StubServer], cpus: int = MANY_CPUS, marks: list[int] | None = None, **task: object
) -> list[TaskResult]:
    """Measure a task on several stubs in turns."""
    halted = threading.Event()
    stile = Turnstile(len(servers), "seed", halted)

    def one(number: int) -> TaskResult:
        member = Member(stile, number, len(servers), cpus)
        job = Job(Task("range", **task), Search(name="range"), 0, 0)  # type: ignore[arg-type]
        stage = Stage(
            partial(open_client, Endpoint.of(servers[number].url)), WorkContext("big5"), origin_ns=0, boot=0
        )
        mark = (lambda: None) if marks is None else partial(marks.append, number)
        try:
            with member.step([job.task], len(lanes_of([job.task])), measured=True, mark=mark) as turns:
                (result,) = run_step([job], Stage(**{**vars(stage), "turns": turns}), stop=threading.Event())
            return result
        finally:
            member.leave()

    with ThreadPoolExecutor(len(servers)) as pool:
        return list(pool.map(one, range(len(servers))))


def raw(result: TaskResult) -> Columns:
    """Samples by the clock that goes on."""
    assert isinstance(result.samples, OwnClock)
    return concatenate(list(result.samples.samples))


def in_time(results: Sequence[TaskResult]) -> list[tuple[int, int, int]]:
    """(start, end, member) of every measured request, by start."""
    return sorted(
        (start, end, number)
        for number, result in enumerate(results)
        for start, end, turn in zip(
            *(raw(result)[name].tolist() for name in ("start_ns", "end_ns", "turn")), strict=True
        )
        if turn
    )


@pytest.mark.parametrize("clients", [1, 3])
def test_only_one_node_is_asked_at_a_time_in_turns_of_a_tenth_of_a_second(serve: Serve, clients: int):
    servers = [serve(default=Reply(delay_s=0.004)), serve(default=Reply(delay_s=0.002))]
    results = block(servers, clients=clients, warmup_iterations=3, iterations=1, least_time=0.5)
    requests = in_time(results)
    for (_, ended, before), (begun, _, after) in pairwise(requests):
        assert before == after or begun >= ended
    runs = [(member, list(of)) for member, of in groupby(requests, key=lambda request: request[2])]
    assert {member for member, _ in runs} == {0, 1}
    # Of each pair of turns, both have one.
    assert all(len({member for member, _ in runs[k : k + 2]}) == 2 for k in range(0, len(runs) - 2, 2))
    for result in results:
        columns = raw(result)
        assert columns["warmup"][columns["turn"] == 0].sum() == 3 * clients
        for client in range(clients):
            mine = columns["client"] == client
            for turn in range(1, len(result.turns)):
                within = columns["warmup"][mine & (columns["turn"] == turn)].tolist()
                assert within == [True] + [False] * (len(within) - 1)
                assert len(within) >= LEAST_REQUESTS
        assert all(turn.end_ns - turn.begin_ns >= TURN_NS for turn in result.turns[:-1])
        assert 0.5 <= result.wall_s < 1.5


def test_a_slow_node_has_six_requests_a_turn(serve: Serve):
    servers = [serve(default=Reply(delay_s=0.03)), serve(default=Reply(delay_s=0.03))]
    for result in block(servers, iterations=18):
        columns = raw(result)
        turns, counts = np.unique(columns["turn"], return_counts=True)
        assert (turns.tolist(), counts.tolist()) == ([1, 2, 3], [6, 6, 6])


@pytest.mark.parametrize("clients", [1, 4])
def test_throughput_is_what_the_stub_saw_in_turns(serve: Serve, clients: int):
    servers = [serve(default=Reply(delay_s=0.008)), serve(default=Reply(delay_s=0.004))]
    results = block(servers, clients=clients, iterations=1, least_time=0.8)
    for server, result in zip(servers, results, strict=True):
        summary = summarise(result.samples, schedule=0, task_index=0, task=Task("range", clients=clients))
        cycles, spent_ns = 0, 0
        for turn in result.turns:
            for connection in range(1, clients + 1):
                arrived = [
                    received.arrived_ns
                    for received in server.searches
                    if received.connection == connection
                    and turn.begin_ns <= received.arrived_ns <= turn.end_ns
                ]
                cycles += len(arrived) - 1
                spent_ns += arrived[-1] - arrived[0]
        assert cycles == summary.samples
        assert summary.throughput_per_s == pytest.approx(clients * cycles / (spent_ns / 1e9), rel=0.25)


@pytest.mark.parametrize("schedule", ["deterministic", "poisson"])
def test_the_clock_of_arrivals_stands_still_while_the_other_is_asked(serve: Serve, schedule: str):
    servers = [serve(default=Reply(delay_s=0.002)) for _ in range(2)]
    task = Task("range", clients=3, target_throughput=60, time_period=2.5, schedule=schedule)  # type: ignore[arg-type]
    results = block(servers, clients=3, target_throughput=60, time_period=2.5, schedule=schedule)
    alone = None
    for result in results:
        columns = result.columns
        due = np.sort(columns["intended_ns"]) - result.start_ns
        # The same arrivals as of a node that is alone, on the node's own clock.
        assert alone is None or np.abs(due - alone).max() < MS
        alone = due
        if schedule == "deterministic":
            assert np.abs(due - np.arange(150) * NS_PER_ARRIVAL).max() < MS
        latency = columns["end_ns"] - columns["intended_ns"]
        assert np.median(latency) < 8 * MS
        assert (columns["start_ns"] >= columns["intended_ns"]).all()
        assert len(result.turns) >= 2
        summary = summarise(result.samples, schedule=0, task_index=0, task=task)
        assert summary.throughput_per_s == pytest.approx(due.size / 2.5, rel=0.1)
        driver = driver_figures(result.samples, task, cpu_s=result.driver_cpu_s, wall_s=result.wall_s)
        assert driver.offered_per_s == pytest.approx(60, rel=0.2 if schedule == "poisson" else 0.06)
        assert driver.possible_per_s == pytest.approx(driver.offered_per_s, rel=0.06)
    requests = in_time(results)
    assert all(before[2] == after[2] or after[0] >= before[1] for before, after in pairwise(requests))


NS_PER_ARRIVAL = 10**9 / 60


def test_warm_ups_take_turns_where_cpus_are_few(serve: Serve):
    servers = [serve(default=Reply(delay_s=0.005)) for _ in range(2)]
    results = block(servers, cpus=1, warmup_iterations=30, iterations=10)
    spans = sorted(
        (start, end, number)
        for number, result in enumerate(results)
        for start, end in zip(raw(result)["start_ns"].tolist(), raw(result)["end_ns"].tolist(), strict=True)
    )
    assert all(a[2] == b[2] or b[0] >= a[1] for a, b in pairwise(spans))
    assert all((raw(result)["turn"] > 0).sum() == 10 for result in results)
    together = block(servers, warmup_iterations=30, iterations=10)
    warm = [raw(result)["start_ns"][raw(result)["turn"] == 0] for result in together]
    assert max(warm[0].min(), warm[1].min()) < min(warm[0].max(), warm[1].max())


def test_tasks_of_few_requests_run_one_after_the_other_without_turns(serve: Serve):
    servers = [serve(default=Reply(delay_s=0.02)) for _ in range(2)]
    first, second = block(servers, iterations=5)
    assert first.turns == second.turns == ()
    spans = sorted(
        (int(r.columns["start_ns"].min()), int(r.columns["end_ns"].max())) for r in (first, second)
    )
    assert spans[0][1] <= spans[1][0]
    assert not first.columns["warmup"].any()


def test_marks_are_at_both_ends_of_every_turn(serve: Serve):
    marks: list[int] = []
    results = block([serve(), serve()], marks=marks, iterations=1, least_time=0.3)
    assert len(marks) == 2 * sum(len(result.turns) for result in results)
    assert all(marks[k] == marks[k + 1] for k in range(0, len(marks), 2))


def test_a_node_that_dies_lets_the_other_go_on(serve: Serve):
    whole, dying = serve(default=Reply(delay_s=0.002)), serve(default=Reply(delay_s=0.002))
    timer = threading.Timer(0.4, dying.die)
    timer.start()
    stile_results: list[object] = []
    with pytest.raises(Exception, match="gone"):
        stile_results += block([whole, dying], iterations=1, least_time=0.8)
    timer.join()
    assert len(whole.searches) > 0


def test_whoever_waits_is_interrupted():
    halted = threading.Event()
    stile = Turnstile(2, "", halted)
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(stile.meet, 0)
        halted.set()
        with pytest.raises(KeyboardInterrupt):
            waiting.result()


def test_members_meet_when_the_last_one_comes_or_leaves():
    stile = Turnstile(3, "", threading.Event())
    with ThreadPoolExecutor(2) as pool:
        waiting = [pool.submit(stile.meet, 0), pool.submit(stile.meet, 1)]
        assert not any(one.done() for one in waiting)
        stile.leave(2)
        for one in waiting:
            one.result(timeout=10)


lengths = st.lists(st.tuples(st.integers(1, 50), st.integers(0, 50)), min_size=1, max_size=8)


@given(lengths, st.integers(0, 100))
def test_the_own_clock_joins_turns_without_a_gap(parts: list[tuple[int, int]], begin: int):
    turns: list[Turn] = []
    now, rested = begin, 0
    for length, rest in parts:
        turns.append(Turn(now, now + length, rested, 0))
        now, rested = now + length + rest, rested + rest
    chunk = empty_columns(len(turns))
    for number, turn in enumerate(turns):
        chunk["start_ns"][number] = chunk["intended_ns"][number] = turn.begin_ns
        chunk["end_ns"][number] = turn.end_ns
    (own,) = OwnClock([chunk], turns)
    assert own["start_ns"][0] == begin
    assert own["start_ns"][1:].tolist() == own["end_ns"][:-1].tolist()
    assert (own["end_ns"] - own["start_ns"]).tolist() == [length for length, _ in parts]
    assert own["intended_ns"].tolist() == own["start_ns"].tolist()
    whole = spans_on_own_clock([(begin, now)], turns)
    assert sum(high - low for low, high in whole) == sum(length for length, _ in parts)


cycles = st.lists(st.lists(st.integers(1, 1000), min_size=2, max_size=9), min_size=1, max_size=6)


@given(cycles, st.lists(st.integers(0, 10_000), min_size=6, max_size=6), st.integers(0, 1))
def test_throughput_in_turns_is_requests_over_the_time_of_their_cycles(
    turns: list[list[int]], rests: list[int], fails: int
):
    rows = [(turn, number == 0, took) for turn, own in enumerate(turns, 1) for number, took in enumerate(own)]
    columns = empty_columns(len(rows))
    now = 0
    for place, (turn, first, took) in enumerate(rows):
        now += rests[turn - 1] if first else 0
        columns["start_ns"][place] = columns["intended_ns"][place] = now
        now += took * MS
        columns["end_ns"][place] = now
        columns["turn"][place], columns["warmup"][place], columns["weight"][place] = turn, first, 1
    if fails:
        columns["outcome"][1] = Outcome.HTTP_ERROR
    counted = [took for own in turns for took in own[1:]]
    expected = (len(counted) - fails) / (sum(counted) / 1e3)
    summary = summarise([columns], schedule=0, task_index=0, task=Task("range"))
    assert summary.samples == len(counted) - fails
    if summary.samples:
        assert summary.throughput_per_s == pytest.approx(expected)


def test_a_client_that_is_called_off_while_it_rests_rests_once():
    stile, halt = Turnstile(2, "seed", threading.Event()), threading.Event()
    turns = Turns(stile, 2)
    seat = turns.seat()
    halt.set()
    assert not stile.rest(turns, seat, halt)
    assert not stile.rest(turns, seat, halt)
    assert turns.working == 1


@pytest.mark.parametrize("measures_first", [False, True])
def test_the_first_request_of_a_turn_counts_where_clients_share_them(*, measures_first: bool):
    turns = Turns(Turnstile(1, "seed", threading.Event()), 1)
    seat = turns.seat()
    turns.begin_turn()
    seat.begin(1)
    waiter = TurnWaiter(threading.Event(), seat, measures_first=measures_first)
    marks = [waiter.cue(None, warmup=False) for _ in range(2)]
    assert [cue[1] for cue in marks if cue is not None] == [not measures_first, False]
