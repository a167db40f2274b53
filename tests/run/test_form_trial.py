"""`--test-mode`: tasks become short, whatever they are, and the reader is told."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from asked import asked
from benchctl.run.form import in_test_mode
from benchctl.run.plan import plan_run
from benchctl.track.model import Challenge, Task


def trial(*tasks: Task) -> tuple[Task, ...]:
    plan, _ = plan_run(OPTIONS)
    challenge = Challenge("c", tasks)
    changed = in_test_mode(
        msgspec.structs.replace(plan, schedules=(challenge,), warmup_challenges=(challenge,))
    )
    assert changed.schedules == changed.warmup_challenges
    return changed.schedules[0].schedule


OPTIONS = asked(challenges=("big5",), warmup_challenges=("warmup",), params={"iterations": 300})


def test_the_whole_of_big5_becomes_four_requests_a_task():
    plan = in_test_mode(plan_run(OPTIONS)[0])
    assert len(plan.schedules[0].schedule) == 37
    assert {
        (one.warmup_iterations, one.iterations, one.rate_per_s) for one in plan.schedules[0].schedule
    } == {(1, 3, None)}
    assert {one.iterations for one in plan.warmup_challenges[0].schedule} == {3}


def test_the_pollution_becomes_short_too():
    plan, _ = plan_run(OPTIONS)
    short = in_test_mode(
        msgspec.structs.replace(plan, pollution=Challenge("polluted", (Task("a", iterations=50),)))
    )
    assert short.pollution == Challenge("polluted", (Task("a", iterations=3),))


@pytest.mark.parametrize(
    ("task", "short"),
    [
        (Task("a"), Task("a")),
        (Task("a", iterations=2, warmup_iterations=0), Task("a", iterations=2, warmup_iterations=0)),
        (Task("a", clients=8, iterations=50), Task("a", clients=8, iterations=3)),
        (
            Task("a", time_period=600, warmup_time_period=60, ramp_up_time_period=60, target_interval=10),
            Task("a", time_period=2.0),
        ),
        (Task("a", time_period=1), Task("a", time_period=1)),
        (Task("a", schedule="poisson", target_throughput=5), Task("a")),
        (Task("a", schedule="unthrottled"), Task("a", schedule="unthrottled")),
    ],
)
def test_a_task_becomes_short(task: Task, short: Task):
    assert trial(task) == (short,)


counts = st.none() | st.integers(0, 10**6)


@given(
    st.builds(Task, st.just("a"), iterations=counts, warmup_iterations=counts, group=st.none() | st.just(1))
)
def test_no_task_gets_more_than_it_had(task: Task):
    (short,) = trial(task)
    for name in ("iterations", "warmup_iterations"):
        before, after = getattr(task, name), getattr(short, name)
        assert after == before or after < before
    assert (short.clients, short.group) == (task.clients, task.group)
