"""Which client works where, and when a parallel element is complete."""

from hypothesis import given
from hypothesis import strategies as st

from benchctl.load.executor import deal
from benchctl.load.task_clients import Completion, Job, lanes_of
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
    shared=st.booleans(),
)
def test_all_clients_work_exactly_once_wherever_they_are_dealt(
    clients: list[int], lanes: int | None, processes: int, *, shared: bool
):
    tasks = [Task(str(place), clients=count, lanes=lanes) for place, count in enumerate(clients)]
    jobs = [Job(task, BULK if shared and task.operation == "0" else SEARCH, 0, 0) for task in tasks]
    dealt = deal(lanes_of(tasks), jobs, processes)
    posts = sorted(post for lanes in dealt for lane in lanes for post in lane.posts)
    assert posts == [(place, number) for place, count in enumerate(clients) for number in range(count)]
    if shared:
        # A corpus that is read by two processes would be sent twice.
        assert not [lane for lanes in dealt[1:] for lane in lanes if any(task == 0 for task, _ in lane.posts)]


def test_a_task_that_completes_its_group_ends_it_with_its_last_client():
    finished = []
    completion = Completion([Task("a", clients=2, completes=True), Task("b")], lambda: finished.append(True))
    completion.client_done(1)
    completion.client_done(0)
    assert not finished
    completion.client_done(0)
    assert finished == [True]
