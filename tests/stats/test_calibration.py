"""Do the statistics keep their promises? Forks are drawn from known processes, 2,000 times a cell, seeded."""

import math
from collections.abc import Sequence

import numpy as np
import pytest
from scipy.signal import lfilter
from scipy.stats import ttest_ind

from benchctl.stats.compare import compare
from benchctl.stats.estimate import Values, spread
from benchctl.stats.multiplicity import adjusted_p

REPETITIONS = 2000
MARGIN = 0.05


def noise(generator: np.random.Generator, shape: tuple[int, ...], sigma: float, phi: float):
    """Stationary AR(1) along the last axis."""
    shocks = generator.normal(0, sigma * math.sqrt(1 - phi**2), shape)
    shocks[..., 0] /= math.sqrt(1 - phi**2)
    return lfilter([1.0], [1.0, -phi], shocks, axis=-1)


def fork_logs(
    generator: np.random.Generator,
    forks: int,
    *,
    fork_sd: float,
    sigma: float = 0.1,
    phi: float = 0.0,
    samples: int = 100,
    slow_share: float = 0.0,
):
    """ln of the mean service time of every fork, shape (REPETITIONS, forks)."""
    levels = generator.normal(0, fork_sd, (REPETITIONS, forks, 1))
    levels += math.log(1.18) * (generator.random(levels.shape) < slow_share)
    drawn = levels + noise(generator, (REPETITIONS, forks, samples), sigma, phi)
    return np.log(np.exp(drawn).mean(axis=-1))


def rejections_and_coverage(left: Values, right: Values):
    found = ttest_ind(right, left, axis=1, equal_var=False)
    interval = found.confidence_interval(0.95)
    return (found.pvalue <= 0.05).mean(), ((interval.low <= 0) & (interval.high >= 0)).mean()


def agrees_with_spread(left: Values, right: Values):
    """The vectorised test of this file is the test that benchctl runs."""
    vectorised = ttest_ind(right, left, axis=1, equal_var=False)
    for place in range(20):
        found = spread(left[place], right[place], paired=False)
        assert found.p == pytest.approx(vectorised.pvalue[place])
        low, high = (vectorised.confidence_interval(0.9)[side][place] for side in (0, 1))
        assert found.interval90 == pytest.approx((low, high))


@pytest.mark.parametrize("forks", [3, 5, 10])
@pytest.mark.parametrize(
    ("fork_sd", "sigma", "phi"), [(0.01, 0.3, 0.7), (0.02, 0.1, 0.0), (0.02, 0.3, 0.3), (0.05, 0.3, 0.7)]
)
def test_equal_variants_are_found_different_as_often_as_promised(
    forks: int, fork_sd: float, sigma: float, phi: float
):
    generator = np.random.default_rng(20240301 + forks)
    left, right = (fork_logs(generator, forks, fork_sd=fork_sd, sigma=sigma, phi=phi) for _ in range(2))
    agrees_with_spread(left, right)
    rejected, covered = rejections_and_coverage(left, right)
    assert 0.025 <= rejected <= 0.065
    assert covered >= 0.935


@pytest.mark.parametrize("forks", [3, 5, 10])
def test_unequal_variances(forks: int):
    generator = np.random.default_rng(7 + forks)
    left = fork_logs(generator, forks, fork_sd=0.01)
    right = fork_logs(generator, forks, fork_sd=0.05)
    rejected, _ = rejections_and_coverage(left, right)
    assert rejected <= 0.065


@pytest.mark.parametrize("forks", [3, 5, 10])
@pytest.mark.parametrize("slow_share", [0.1, 0.3])
def test_two_states_on_both_sides(forks: int, slow_share: float):
    generator = np.random.default_rng(11 + forks)
    left, right = (fork_logs(generator, forks, fork_sd=0.02, slow_share=slow_share) for _ in range(2))
    rejected, covered = rejections_and_coverage(left, right)
    assert rejected <= 0.065
    assert covered >= 0.935


def test_pooling_requests_would_mislead():
    """The negative control: the mistake that forks exist to avoid."""
    generator = np.random.default_rng(5)
    rejected = []
    for _ in range(REPETITIONS):
        levels = generator.normal(0, 0.02, (2, 5, 1))
        drawn = levels + noise(generator, (2, 5, 1000), 0.3, 0.3)
        left, right = drawn.reshape(2, -1)
        rejected.append(ttest_ind(left, right, equal_var=False).pvalue <= 0.05)
    assert np.mean(rejected) > 0.20


def family_p(generator: np.random.Generator, effects: Sequence[float]):
    """p-values of shape (REPETITIONS, tasks), five forks a side with an SD of 2 %."""
    shape = (REPETITIONS, len(effects), 5)
    left = generator.normal(0, 0.02, shape)
    right = generator.normal(0, 0.02, shape) + np.asarray(effects)[:, None]
    return ttest_ind(right, left, axis=-1, equal_var=False).pvalue


def test_forty_equal_tasks_rarely_give_any_finding():
    p_values = family_p(np.random.default_rng(17), [0.0] * 40)
    found = [min(adjusted_p(row, "benjamini-hochberg")) <= 0.05 for row in p_values.tolist()]
    assert np.mean(found) <= 0.065


def test_share_of_false_findings_beside_real_ones():
    p_values = family_p(np.random.default_rng(19), [0.06] * 10 + [0.0] * 30)
    shares = []
    for row in p_values.tolist():
        found = np.asarray(adjusted_p(row, "benjamini-hochberg")) <= 0.05
        shares.append(found[10:].sum() / max(1, found.sum()))
    assert np.mean(shares) <= 0.06


@pytest.mark.parametrize("forks", [3, 5, 10])
def test_equivalence_at_exactly_the_margin_is_rarely_claimed(forks: int):
    generator = np.random.default_rng(23 + forks)
    left = generator.normal(0, 0.01, (REPETITIONS, forks))
    right = generator.normal(math.log1p(MARGIN), 0.01, (REPETITIONS, forks))
    interval = ttest_ind(right, left, axis=1, equal_var=False).confidence_interval(0.90)
    limit = math.log1p(MARGIN)
    equivalent = (interval.low > -limit) & (interval.high < limit)
    assert equivalent.mean() <= 0.065
    for place in range(20):
        found = compare(
            np.exp(left[place]).tolist(), np.exp(right[place]).tolist(), higher_is_better=False, margin=MARGIN
        )
        assert (found.verdict == "equivalent") == equivalent[place]


@pytest.mark.parametrize(("effect", "forks", "least"), [(0.05, 5, 0.90), (0.10, 3, 0.97), (0.03, 10, 0.85)])
def test_real_effects_are_found(effect: float, forks: int, least: float):
    """Effects are on the log scale. The second has a power of 0.9705: the error of the draw counts."""
    generator = np.random.default_rng(29)
    left = generator.normal(0, 0.02, (REPETITIONS, forks))
    right = generator.normal(effect, 0.02, (REPETITIONS, forks))
    rejected, _ = rejections_and_coverage(left, right)
    assert rejected >= least - 2 * math.sqrt(least * (1 - least) / REPETITIONS)
