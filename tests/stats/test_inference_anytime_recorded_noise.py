"""The methods on noise of real hosts: A/A runs whose sides are swapped at random within blocks."""

import numpy as np
import pytest
from scipy.stats import ttest_ind, ttest_rel

from benchctl.results.plan import FIRST_LOOK
from benchctl.stats.inference import sequential_critical
from stats.processes import Table, Values
from stats.recorded_noise import recorded

SERIES = dict(recorded())


def drawn(series: Values, blocks: int, repetitions: int) -> Values:
    """Runs of so many blocks in a row of the recorded one, sides swapped; shape (repetitions, blocks, 2)."""
    generator = np.random.default_rng([17, blocks])
    begins = generator.integers(0, len(series) - blocks + 1, repetitions)
    found = series[begins[:, None] + np.arange(blocks)]
    swapped = generator.random((repetitions, blocks, 1)) < 0.5
    return np.where(swapped, found[..., ::-1], found)


def test_the_library_is_large_enough():
    runs = {name.split(",")[0] for name in SERIES}
    assert len(runs) >= 5
    assert min(len(series) for series in SERIES.values()) >= 12


@pytest.mark.parametrize("blocks", [5, 8, 12])
def test_pairs_and_welch_on_recorded_noise(calibration: Table, blocks: int):
    """Over all series: single ones have too few blocks for a rate of their own to be known."""
    rejected, welch, widths = [], [], []
    for series in SERIES.values():
        runs = drawn(series, blocks, calibration.repetitions)
        left, right = runs[..., 0], runs[..., 1]
        pairs, alone = ttest_rel(right, left, axis=1), ttest_ind(right, left, axis=1, equal_var=False)
        rejected.append((pairs.pvalue <= 0.05).mean())
        welch.append((alone.pvalue <= 0.05).mean())
        within, across = (np.diff(one.confidence_interval(0.95), axis=0).mean() for one in (pairs, alone))
        widths.append(within / across)
    name = "recorded noise"
    cell = f"{blocks} blocks, {len(SERIES)} series"
    calibration.check(f"{name}, pairs: p at most 0.05", cell, float(np.mean(rejected)), most=0.065)
    calibration.check(f"{name}, Welch: p at most 0.05", cell, float(np.mean(welch)), most=0.065)
    calibration.check(f"{name}: width of pairs over Welch's", cell, float(np.median(widths)), most=1.15)


def test_looking_after_every_block_of_recorded_noise(calibration: Table):
    found = []
    counts = range(FIRST_LOOK, 13)
    quantiles = [sequential_critical(0.95, n - 1, n) for n in counts]
    for series in SERIES.values():
        runs = drawn(series, 12, calibration.repetitions)
        differences = runs[..., 1] - runs[..., 0]
        looks = [
            np.abs(differences[:, :n].mean(axis=1))
            > quantile * differences[:, :n].std(axis=1, ddof=1) / np.sqrt(n)
            for n, quantile in zip(counts, quantiles, strict=True)
        ]
        found.append(np.any(looks, axis=0).mean())
    calibration.check(
        "recorded noise, every block: different at any look", "12 blocks", float(np.mean(found)), most=0.05
    )
