"""The order of forks and steps: random, the same again, and the same for all variants of a block."""

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from benchctl.results.plan import block_order, boots
from benchctl.track.model import Challenge, Task
from builders import make_plan

PLAN = make_plan(
    schedules=(Challenge("a", (Task("x"), Task("y"), Task("z"))), Challenge("b", (Task("x"),))),
    restart="challenge",
)


def test_restart_says_which_tasks_share_a_node():
    first, second = (((0, 0),), ((0, 1),), ((0, 2),)), (((1, 0),),)
    assert boots(PLAN) == (first, second)
    assert boots(msgspec.structs.replace(PLAN, restart="never")) == ((*first, *second),)
    by_task = boots(msgspec.structs.replace(PLAN, restart="task"))
    assert by_task == tuple((step,) for step in (*first, *second))


def test_tasks_of_a_parallel_element_share_a_node_whatever_the_policy():
    challenge = Challenge("c", (Task("a"), Task("b", group=1), Task("c", group=1)))
    plan = msgspec.structs.replace(PLAN, schedules=(challenge,), restart="task")
    assert boots(plan) == ((((0, 0),),), (((0, 1), (0, 2)),))


def test_steps_in_random_order_come_in_another_one_in_each_block_and_in_the_same_again():
    tasks = [Task("a"), Task("b", group=1), Task("c", group=1), *(Task(name) for name in "defg")]
    plan = msgspec.structs.replace(PLAN, schedules=(Challenge("c", tuple(tasks), order="random"),))
    orders = [boots(plan, block) for block in range(6)]
    assert len(set(orders)) > 1
    assert orders == [boots(plan, block) for block in range(6)]
    written = {((0, 0),), ((0, 1), (0, 2)), *(((0, place),) for place in range(3, 7))}
    assert [set(steps) for (steps,) in orders] == [written] * 6


@given(seed=st.integers(0, 2**63 - 1), block=st.integers(0, 1000))
def test_every_block_has_every_variant_once_in_an_order_that_repeats(seed: int, block: int):
    plan = msgspec.structs.replace(PLAN, seed=seed)
    order = block_order(plan, block)
    assert sorted(variant.name for variant in order) == ["es", "os"]
    assert block_order(plan, block) == order


def test_the_order_is_not_always_the_same():
    first = [block_order(PLAN, block)[0].name for block in range(40)]
    assert 8 < first.count("es") < 32
    other = msgspec.structs.replace(PLAN, seed=2)
    assert first != [block_order(other, block)[0].name for block in range(40)]
