"""Failures add up by kind, and only the driver's own lateness counts as lag."""

import numpy as np

from benchctl.load.tally import Failure, FailureTally, driver_lag_ns, merge_failures
from benchctl.results.samples import Outcome, empty_columns


def test_failures_are_counted_by_outcome_with_the_first_few_reasons():
    tally = FailureTally()
    for number in range(9):
        tally.add(Outcome.RESET, f"reason {number // 2}")
    tally.add(Outcome.HTTP_ERROR, "")
    assert tally.failures() == (
        Failure(Outcome.HTTP_ERROR, 1, ()),
        Failure(Outcome.RESET, 9, ("reason 0", "reason 1", "reason 2")),
    )


def test_failures_of_clients_are_added_up():
    one = (Failure(Outcome.RESET, 2, ("a", "b")),)
    two = (Failure(Outcome.TIMEOUT, 1, ("t",)), Failure(Outcome.RESET, 3, ("b", "c", "d")))
    assert merge_failures([one, two]) == (
        Failure(Outcome.TIMEOUT, 1, ("t",)),
        Failure(Outcome.RESET, 5, ("a", "b", "c")),
    )


def samples(intended: list[int], start: list[int], end: list[int]):
    columns = empty_columns(len(start))
    columns["intended_ns"][:] = intended
    columns["start_ns"][:] = start
    columns["end_ns"][:] = end
    return columns


def test_waiting_behind_a_slow_answer_is_not_lag():
    columns = samples(intended=[0, 10, 20], start=[1, 53, 60], end=[50, 58, 65])
    assert driver_lag_ns(columns, open_loop=True).tolist() == [1, 3, 2]


def test_in_a_closed_loop_lag_is_the_time_between_requests():
    columns = samples(intended=[5, 20, 40], start=[5, 20, 40], end=[15, 33, 50])
    assert driver_lag_ns(columns, open_loop=False).tolist() == [5, 7]


def test_no_samples_have_no_lag():
    for open_loop in (True, False):
        assert driver_lag_ns(empty_columns(0), open_loop=open_loop).dtype == np.int64
        assert driver_lag_ns(empty_columns(0), open_loop=open_loop).size == 0
