import math

import pytest

from benchctl.errors import UsageError
from benchctl.stats.metrics import (
    THROUGHPUT,
    block_values,
    collect,
    fork_values,
)
from benchctl.track.model import Task
from stats.made import fork, summary


def test_pairs_are_the_blocks_that_both_finished():
    left = [(0, summary(10.0)), (1, summary(20.0)), (3, summary(40.0))]
    right = [(1, summary(50.0)), (2, summary(60.0)), (3, summary(100.0))]
    assert block_values(THROUGHPUT, left, right) == ([50.0, 25.0], [20.0, 10.0])


def test_a_fork_of_another_schedule_is_refused():
    with pytest.raises(UsageError, match="fork 2 of 'os' ran 'term' where the plan has 'range'"):
        collect({"os": [fork("os", 2, summary(1.0, "term"))]}, (0, 0), Task("range"))


def test_a_fork_without_the_task_has_no_value():
    found = collect({"os": [fork("os", 0)]}, (0, 0), Task("range"))
    assert math.isnan(fork_values(THROUGHPUT, found["os"])[0])
