import math

import pytest

from benchctl.errors import UsageError
from benchctl.stats.metrics import THROUGHPUT, collect, fork_values
from benchctl.track.model import Task
from stats.made import fork, summary


def test_a_fork_of_another_schedule_is_refused():
    with pytest.raises(UsageError, match="fork 2 of 'os' ran 'term' where the plan has 'range'"):
        collect({"os": [fork("os", 2, summary(1.0, "term"))]}, (0, 0), Task("range"))


def test_a_fork_without_the_task_has_no_value():
    found = collect({"os": [fork("os", 0)]}, (0, 0), Task("range"))
    assert math.isnan(fork_values(THROUGHPUT, found["os"])[0])
