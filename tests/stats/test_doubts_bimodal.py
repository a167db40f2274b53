import math
from collections.abc import Callable

import numpy as np
import pytest

from benchctl.results.figures import TaskSummary
from benchctl.stats.doubts import separate_groups, within_fork_error


def test_two_states_are_seen():
    assert separate_groups([3.4, 5.0, 5.3, 3.3, 3.5], 0.01) == pytest.approx(100 * (5.0 / 3.5 - 1))


def test_a_gap_that_noise_explains_is_none():
    assert separate_groups([3.4, 5.0, 5.3, 3.3, 3.5], 0.2) is None


def test_small_gaps_do_not_matter_however_precise():
    assert separate_groups([1.0, 1.04, 1.08, 1.12], 1e-6) is None


@pytest.mark.parametrize("forks", [3, 5, 6, 9, 12, 20, 40])
def test_forks_of_one_spread_are_rarely_groups(forks: int):
    values = np.exp(np.random.default_rng(forks).normal(0, 0.3, (4000, forks)))
    found = np.mean([separate_groups(one, 0.001) is not None for one in values])
    assert 0.02 < found < 0.065


def test_a_slow_state_is_seen_among_six_forks():
    generator = np.random.default_rng(3)
    logs = generator.normal(0, 0.02, (1000, 6)) + 0.165 * (np.arange(6) < 2)
    assert np.mean([separate_groups(one, 0.001) is not None for one in np.exp(logs)]) > 0.7


def test_two_forks_are_no_groups():
    assert separate_groups([1.0, 2.0], 0.001) is None


def test_error_within_forks_uses_effective_samples(summary: Callable[..., TaskSummary]):
    summaries = [summary(10.0, sd_ns=1e6, effective_samples=100.0)] * 2
    assert within_fork_error(summaries) == pytest.approx(0.01)


def test_without_spread_inside_forks_nothing_can_be_called_a_group(summary: Callable[..., TaskSummary]):
    assert within_fork_error([summary(10.0, sd_ns=None)]) == math.inf
    assert separate_groups([1.0, 5.0, 5.1], math.inf) is None


@pytest.mark.filterwarnings("error")
def test_what_cannot_be_a_figure_is_no_group():
    assert separate_groups([-1.0, 0.0, math.nan, 2.0, 3.0], 0.001) is None
    assert separate_groups([-1.0, 2.0, 2.0, 3.0], 0.001) == pytest.approx(50)
