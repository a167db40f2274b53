"""Names of tasks find one task, or say how each of several is named."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchctl.errors import UsageError
from benchctl.results.plan import Place, Plan, cpu_list, parse_cpus, task_named
from benchctl.track.model import Challenge, Task
from builders import make_plan


def plan(*challenges: tuple[str, ...]) -> Plan:
    """Challenges, each a name with the labels of its tasks behind it."""
    return make_plan(
        schedules=tuple(Challenge(name, tuple(map(Task, labels))) for name, *labels in challenges)
    )


PLAN = plan(
    ("debug", "sort", "range"), ("settled", "range"), ("settled", "range"), ("twice", "a", "a/b", "a")
)


@pytest.mark.parametrize(
    ("name", "place"),
    [
        ("sort", (0, 0)),
        ("debug/range", (0, 1)),
        ("debug#1/range#1", (0, 1)),
        ("settled#2/range", (2, 0)),
        ("a/b", (3, 1)),
        ("twice/a/b", (3, 1)),
        ("a#2", (3, 2)),
        ("twice/a#1", (3, 0)),
    ],
)
def test_a_name_means_one_task(name: str, place: Place):
    assert task_named(PLAN, name) == place


@pytest.mark.parametrize(
    ("name", "count", "ways"),
    [
        ("range", 3, "debug/range, settled#1/range, settled#2/range"),
        ("settled/range", 2, "settled#1/range, settled#2/range"),
        ("twice/a", 2, "twice/a#1, twice/a#2"),
    ],
)
def test_a_name_of_several_tasks_is_refused_with_a_name_of_each(name: str, count: int, ways: str):
    with pytest.raises(UsageError, match=f"'{name}' is {count} tasks") as raised:
        task_named(PLAN, name)
    assert raised.value.hint == f"specify one: {ways}"


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("rnge", "did you mean 'range'?"),
        ("debgu/range", "did you mean 'debug/range'?"),
        ("settled#3/range", "did you mean 'settled#2/range'?"),
        ("xyz", "known: sort, range, a, a/b"),
        ("", "known: "),
    ],
)
def test_a_name_of_no_task_is_refused_with_what_there_is(name: str, hint: str):
    with pytest.raises(UsageError, match=f"unknown task '{name}'") as raised:
        task_named(PLAN, name)
    assert raised.value.hint.startswith(hint)


SCHEDULES = st.lists(
    st.tuples(st.sampled_from("ab"), st.lists(st.sampled_from(["p", "q", "p/q"]), min_size=1, max_size=4)),
    min_size=1,
    max_size=4,
)


@given(SCHEDULES)
def test_every_way_that_a_refusal_offers_means_another_task(schedules: list[tuple[str, list[str]]]):
    made = plan(*((name, *labels) for name, labels in schedules))
    wanted = [
        (schedule, task)
        for schedule, (_, labels) in enumerate(schedules)
        for task, label in enumerate(labels)
        if label == "p"
    ]
    if len(wanted) > 1:
        with pytest.raises(UsageError, match=f"is {len(wanted)} tasks") as raised:
            task_named(made, "p")
        ways = raised.value.hint.removeprefix("specify one: ").split(", ")
        assert [task_named(made, way) for way in ways] == wanted
    elif wanted:
        assert task_named(made, "p") == wanted[0]


@given(st.sets(st.integers(0, 300), min_size=1))
def test_what_is_written_is_read_back(cpus: set[int]):
    assert parse_cpus(cpu_list(cpus)) == tuple(sorted(cpus))


@pytest.mark.parametrize(
    ("cpus", "text"), [((3,), "3"), ((0, 1, 2), "0-2"), ((5, 0, 1, 5), "0-1,5"), ((0, 2, 4), "0,2,4")]
)
def test_neighbours_are_a_range(cpus: tuple[int, ...], text: str):
    assert cpu_list(cpus) == text


@pytest.mark.parametrize("text", ["", "a", "1-", "-1", "2-1", "1,,2", "0x1", "0-99999999", "1;2"])
def test_anything_else_is_refused(text: str):
    with pytest.raises(ValueError, match="range of CPUs"):
        parse_cpus(text)
