"""Failures add up by kind."""

from benchctl.load.recorder import Failure, FailureTally, merge_failures
from benchctl.results.samples import Outcome


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
