"""Which client works where, and when a parallel element is complete."""

from collections.abc import Iterable
from itertools import islice

from hypothesis import given
from hypothesis import strategies as st

from benchctl.load.client import arrivals
from benchctl.load.executor import Completion, Event, Job, Lane, deal, lanes_of
from benchctl.load.transport import Request
from benchctl.load.work import WorkContext
from benchctl.load.work.openers import open_workload
from benchctl.track.model import Task
from benchctl.track.operations.catalogue import decode_operation

SEARCH = decode_operation({"name": "x"})
BULK = decode_operation({"name": "b", "operation-type": "bulk", "bulk-size": 5})


def test_every_client_has_a_lane_of_its_own():
    lanes = lanes_of([Task("a", clients=2), Task("b")])
    assert [lane.posts for lane in lanes] == [((0, 0),), ((0, 1),), ((1, 0),)]
    assert [(lane.number, lane.of) for lane in lanes] == [(0, 3), (1, 3), (2, 3)]


def test_fewer_lanes_than_clients_work_for_several_in_turn():
    lanes = lanes_of([Task("a", clients=3, lanes=2), Task("b", clients=2, lanes=2)])
    assert [lane.posts for lane in lanes] == [((0, 0), (0, 2), (1, 1)), ((0, 1), (1, 0))]


@given(
    clients=st.lists(st.integers(1, 5), min_size=1, max_size=4),
    lanes=st.one_of(st.none(), st.integers(1, 30)),
    processes=st.integers(1, 4),
    reader=st.integers(0, 4),
    shared=st.booleans(),
)
def test_all_clients_work_exactly_once_wherever_they_are_dealt(
    clients: list[int], lanes: int | None, processes: int, reader: int, *, shared: bool
):
    reader = min(reader, processes)  # one of them, or one beyond
    tasks = [Task(str(place), clients=count, lanes=lanes) for place, count in enumerate(clients)]
    jobs = [Job(task, BULK if shared and task.operation == "0" else SEARCH, 0, 0) for task in tasks]
    dealt = deal(lanes_of(tasks), jobs, processes, reader)
    posts = sorted(post for lanes in dealt for lane in lanes for post in lane.posts)
    assert posts == [(place, number) for place, count in enumerate(clients) for number in range(count)]
    if shared:
        # A corpus that is read by two processes would be sent twice.
        readers = {place for place, lanes in enumerate(dealt) for lane in lanes if 0 in dict(lane.posts)}
        assert readers == {reader}


DRAWN = decode_operation(
    {
        "name": "drawn",
        "body": {"query": {"range": {"t": {"gte": "${lo}"}}}},
        "values": {"lo": {"kind": "integer", "min": 0, "max": 10**9}},
    }
)


def sent(lanes: Iterable[Lane], task: Task, seed: int) -> dict[int, tuple[list[int], list[bytes]]]:
    """Of each client of these lanes: when its requests are due, and their bodies."""
    # As in a process that knows nothing of others.
    workload = open_workload(DRAWN, WorkContext("big5", seed=seed), clients=task.clients, key=task.label)
    found = {}
    for lane in lanes:
        for _, client in lane.posts:
            program = workload.program(client)
            due = list(islice(arrivals(task, client=client, seed=seed), 20))
            bodies = [work.body for _ in due if isinstance(work := program(), Request)]
            assert len(bodies) == len(due)
            found[client] = due, bodies
    return found


@given(
    clients=st.integers(1, 12),
    processes=st.integers(1, 6),
    rate_per_s=st.floats(0.5, 5000),
    poisson=st.booleans(),
    seed=st.integers(0, 2**40),
)
def test_several_hosts_send_together_exactly_what_one_would(
    clients: int, processes: int, rate_per_s: float, seed: int, *, poisson: bool
):
    schedule = "poisson" if poisson else "deterministic"
    task = Task("drawn", clients=clients, iterations=20, target_throughput=rate_per_s, schedule=schedule)
    lanes = lanes_of([task])
    dealt = deal(lanes, [Job(task, DRAWN, 0, 0)], processes)
    parts = [sent(mine, task, seed) for mine in dealt]
    together = {client: one for part in parts for client, one in part.items()}
    assert sum(map(len, parts)) == clients
    assert together == sent(lanes, task, seed)
    assert len({body for _, bodies in together.values() for body in bodies}) > 1


def test_a_task_that_completes_its_group_ends_it_with_its_last_client():
    finished = []
    completion = Completion([Task("a", clients=2, completes=True), Task("b")], lambda: finished.append(True))
    completion(Event("done", 1))
    completion(Event("done", 0))
    assert not finished
    completion(Event("done", 0))
    assert finished == [True]
