"""What a task of a schedule says of itself."""

import pytest

from benchctl.track.model import Task


@pytest.mark.parametrize(
    ("task", "seconds"),
    [
        (Task("x"), None),
        (Task("x", iterations=10, warmup_iterations=5), None),
        (Task("x", time_period=30.0), 30.0),
        (Task("x", time_period=30.0, warmup_time_period=10.0, target_throughput=1.0), 40.0),
        (Task("x", target_interval=2.0), 2.0),
        (Task("x", iterations=10, warmup_iterations=5, clients=2, target_throughput=4.0), 7.5),
        (Task("x", iterations=10, warmup_time_period=3.0, target_throughput=100.0, per_request=50.0), 8.0),
    ],
)
def test_a_task_lasts_as_long_as_its_periods_or_its_rate_want_else_it_is_up_to_the_node(
    task: Task, seconds: float | None
):
    assert task.planned_s == seconds
