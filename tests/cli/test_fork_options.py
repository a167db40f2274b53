"""How many forks are run, and when fewer are enough."""

import pytest

from benchctl.cli.fork_options import DEFAULT_FORKS, MOST_FORKS, ForkOptions
from benchctl.results.plan import StopSpec


@pytest.mark.parametrize(
    ("options", "count", "stop"),
    [
        (ForkOptions(None, None, None), DEFAULT_FORKS, None),
        (ForkOptions(7, None, None), 7, None),
        (ForkOptions(None, 0.05, None), MOST_FORKS, StopSpec(precision=0.05)),
        (ForkOptions(None, None, 1800.0), MOST_FORKS, StopSpec(budget_s=1800.0)),
        (ForkOptions(12, 0.05, 1800.0), 12, StopSpec(precision=0.05, budget_s=1800.0)),
    ],
)
def test_a_rule_makes_room_for_more_forks(options: ForkOptions, count: int, stop: StopSpec | None):
    assert options.count == count
    assert options.stop == stop
