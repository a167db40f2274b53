"""Requests and events of compilers on one clock."""

import numpy as np

from benchctl.evidence.files import JIT_DTYPES, stacked_columns
from benchctl.results.reading import TaskWindow
from benchctl.results.samples import Columns, Outcome, empty_columns
from benchctl.stats.task_shape import jit_course

S = 10**9
WINDOW = TaskWindow(begin_ns=0, measured_ns=20 * S, end_ns=60 * S)


def requests(rows: int) -> Columns:
    """One a second, of 1, 2, 3 ... ms."""
    columns = empty_columns(rows)
    columns["start_ns"] = np.arange(rows, dtype=np.int64) * S
    columns["end_ns"] = columns["start_ns"] + (np.arange(rows) + 1) * 10**6
    return columns


def events(*rows: tuple[int, str, int]) -> Columns:
    found = stacked_columns(
        [(at * S, what, 1, level, False, "a::b", "") for at, what, level in rows], JIT_DTYPES
    )
    return {"t_ns": found.pop("uptime_ns"), **found}


def test_seconds_count_from_the_measured_part_and_events_fall_into_cells():
    found = jit_course(
        "es",
        2,
        requests(60),
        events(
            (-1, "compiled", 4),
            (0, "compiled", 3),
            (30, "compiled", 4),
            (30, "deoptimised", 4),
            (61, "compiled", 1),
        ),
        WINDOW,
    )
    assert found.seconds.tolist() == list(range(-20, 40))
    assert found.service_ns[:3].tolist() == [1e6, 2e6, 3e6]
    assert (found.edges[0], found.edges[-1], found.requests) == (-20, 40, 1)
    assert [values.sum() for values in (found.c1, found.c2, found.deoptimised)] == [1, 1, 1]
    assert found.c1[0] == 1
    assert found.c2[30] == 1


def test_many_requests_become_medians_of_those_that_follow_each_other():
    found = jit_course("es", 0, requests(601), events(), WINDOW)
    assert (found.requests, found.seconds.size) == (3, 201)
    assert found.service_ns[:2].tolist() == [2e6, 5e6]


def test_requests_that_failed_are_not_drawn():
    rows = requests(3)
    rows["outcome"][1] = Outcome.TIMEOUT
    assert jit_course("es", 0, rows, events(), WINDOW).service_ns.tolist() == [1e6, 3e6]
