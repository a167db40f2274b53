"""How many forks are run, and when fewer are enough."""

import pytest

from benchctl.cli.run_options import ForkOptions
from benchctl.results.model import DEFAULT_FORKS, MOST_FORKS
from benchctl.results.plan import StopSpec


@pytest.mark.parametrize(
    ("options", "count", "stop"),
    [
        (ForkOptions(None, None, None, decided=False, margin=None), DEFAULT_FORKS, None),
        (ForkOptions(7, None, None, decided=False, margin=None), 7, None),
        (ForkOptions(None, 0.05, None, decided=False, margin=None), MOST_FORKS, StopSpec(precision=0.05)),
        (ForkOptions(None, None, 1800.0, decided=False, margin=None), MOST_FORKS, StopSpec(budget_s=1800.0)),
        (
            ForkOptions(12, 0.05, 1800.0, decided=False, margin=None),
            12,
            StopSpec(precision=0.05, budget_s=1800.0),
        ),
        (
            ForkOptions(None, None, None, decided=True, margin=0.1),
            MOST_FORKS,
            StopSpec(least_forks=5, decided=True, margin=0.1),
        ),
        (
            ForkOptions(12, None, None, decided=True, margin=None),
            12,
            StopSpec(least_forks=5, decided=True),
        ),
    ],
)
def test_a_rule_makes_room_for_more_forks(options: ForkOptions, count: int, stop: StopSpec | None):
    assert options.count == count
    assert options.stop == stop
