"""Promises across runs: simulated runs that differ as forks do, and recorded A/A runs split by time."""

import numpy as np
import pytest

from benchctl.results.model import ForkRecord
from benchctl.stats.analyse import analyse
from benchctl.stats.decisions import gate
from benchctl.track.model import Task
from builders import make_fork, make_summary
from comparing import compare
from stats.made import plan as plan_of
from stats.processes import Table, Values
from stats.recorded_noise import recorded

FORKS = 6
SD = 0.02
FOUND = ("faster", "slower", "different")


def drawn(generator: np.random.Generator, runs: int, *, paired: bool) -> tuple[Values, Values]:
    """Times in ms of two equal variants: forks vary by 2%, and so do runs, in pairs by variant as well."""
    level = generator.normal(0, SD, (2, runs, 1))
    if paired:
        level += generator.normal(0, SD, (1, runs, 1))
    forks = level + generator.normal(0, SD, (2, runs, FORKS))
    return tuple(10 * np.exp(side.ravel()) for side in forks)


@pytest.mark.parametrize("paired", [False, True])
@pytest.mark.parametrize("runs", [1, 2, 3, 5])
def test_equal_variants_across_runs(calibration: Table, runs: int, *, paired: bool):
    generator = np.random.default_rng([runs, paired])
    units = tuple(np.repeat(np.arange(runs), FORKS).tolist())
    found = 0
    for _ in range(calibration.repetitions):
        left, right = drawn(generator, runs, paired=paired)
        one = compare(
            left,
            right,
            higher_is_better=False,
            margin=0.03,
            paired=paired,
            replicate="run",
            units=(units, units),
        )
        found += one.verdict in FOUND
        assert (one.verdict == "insufficient") == (runs < 3)
    cell = f"{runs} runs, {'paired' if paired else 'Welch'}"
    share = found / calibration.repetitions
    calibration.check("runs, no difference: any found", cell, share, most=0.065 if runs > 2 else 0.0)


def test_forks_of_two_runs_would_mislead(calibration: Table):
    """The negative control."""
    generator = np.random.default_rng(23)
    verdicts = [
        compare(*drawn(generator, 1, paired=False), higher_is_better=False, margin=0.03).verdict
        for _ in range(calibration.repetitions)
    ]
    share = float(np.mean([verdict in FOUND for verdict in verdicts]))
    calibration.check("forks of two runs, a negative control", "6 forks", share, least=0.2)


def forks_of(label: str, times: Values, run: int) -> list[ForkRecord]:
    return [
        make_fork(label, 100 * run + block, make_summary("range", float(np.exp(time))), index_build=run)
        for block, time in enumerate(times)
    ]


@pytest.mark.parametrize("name", dict(recorded()))
def test_a_recorded_run_against_itself_split_by_time_is_never_decided(name: str):
    series = dict(recorded())[name]
    half = len(series) // 2
    begin, end = series[:half], series[half:]
    plan = plan_of(Task("range"))
    apart = {"es": forks_of("es", begin[:, 0], 0), "os": forks_of("os", end[:, 1], 1)}
    together = {
        label: [*forks_of(label, begin[:, side], 0), *forks_of(label, end[:, side], 1)]
        for side, label in enumerate(("es", "os"))
    }
    for forks in (apart, together):
        assert gate(analyse(forks, plan, runs=("a", "b"), method="holm")).outcome == "inconclusive"
