"""Do sweeps keep their promises? Lines with a known interaction are drawn again and again."""

import math

import numpy as np
import pytest

from benchctl.stats.analysis import SweepAxis, SweepCurve
from benchctl.sweep.curve import ByBlock, judged_curves, sweep_curve
from stats.processes import Table

NAMES = ("es", "os")


def by_block(logs: np.ndarray) -> list[ByBlock]:
    return [dict(enumerate(point)) for point in np.exp(logs).T.tolist()]


def drawn(
    generator: np.random.Generator,
    truths: dict[str, np.ndarray],
    blocks: int,
    *,
    drift: float,
    node: float,
    fork_sd: float,
) -> dict[str, list[ByBlock]]:
    """Forks with the host's drift, shared by a block, and the luck of a node that serves all points."""
    host = generator.normal(0, drift, (blocks, 1))
    return {
        name: by_block(
            truth
            + host
            + generator.normal(0, node, (blocks, 1))
            + generator.normal(0, fork_sd, (blocks, truth.size))
        )
        for name, truth in truths.items()
    }


HISTORIES = SweepAxis("history", ("fresh", "scheduled", "polluted"))
TASKS, BLOCKS = 10, 8


def at_histories(
    generator: np.random.Generator, effects: tuple[float, ...], *, looks: int | None = 1
) -> list[SweepCurve]:
    """Curves of tasks, judged: es and os change alike, but for what os has more on polluted nodes."""
    curves = []
    for effect in effects:
        truths = {"es": np.array([0.0, 0.2, 0.4]), "os": np.array([0.1, 0.3, 0.5 + effect])}
        values = drawn(generator, truths, BLOCKS, drift=0.1, node=0.0, fork_sd=0.03)
        curves.append(sweep_curve(values, HISTORIES, task="t", metric="service_time_p90", looks=looks))
    return list(judged_curves(curves))


@pytest.mark.parametrize("looks", [1, None])
def test_without_an_interaction_none_is_found_and_intervals_hold_the_truth(
    calibration: Table, looks: int | None
):
    generator = np.random.default_rng((41, looks is None))
    any_found, covered = [], []
    for _ in range(calibration.calls):
        curves = at_histories(generator, (0.0,) * TASKS, looks=looks)
        found = [one for curve in curves for one in curve.pairs[0].interactions]
        any_found.append(any(one.verdict in {"faster", "slower", "different"} for one in found))
        covered += [one.low_percent <= 0 <= one.high_percent for one in found]
    cell = f"{TASKS} tasks, {BLOCKS} blocks{', any look' * (looks is None)}"
    calibration.check("histories: any interaction without one", cell, float(np.mean(any_found)), most=0.065)
    calibration.check("histories: coverage of the interaction", cell, float(np.mean(covered)), least=0.935)


def test_a_true_interaction_is_found(calibration: Table):
    """Power: four margins, on one of ten tasks."""
    generator = np.random.default_rng(42)
    effects = (math.log1p(4 * 0.05), *[0.0] * (TASKS - 1))
    found = [
        at_histories(generator, effects)[0].pairs[0].interactions[1].verdict == "slower"
        for _ in range(calibration.calls)
    ]
    calibration.check("histories: interaction noticed", f"{BLOCKS} blocks", float(np.mean(found)), least=0.9)


CANDIDATES = SweepAxis("candidates", ("10", "20", "50", "100", "200"), (10.0, 20.0, 50.0, 100.0, 200.0))
NEEDS = {"equal": 1.0, "a quarter more": 1.25}


def at_recalls(
    generator: np.random.Generator, blocks: int, candidates: float, *, looks: int | None = 1
) -> SweepCurve:
    """Curves that are alike, but for how many candidates the same recall takes os; builds differ in it."""
    x = np.log(CANDIDATES.numbers)
    speeds = drawn(generator, dict.fromkeys(NAMES, 8 - 0.6 * x), blocks, drift=0.1, node=0.02, fork_sd=0.02)
    recalls = {}
    for name, needs in zip(NAMES, (1.0, candidates), strict=True):
        # The luck of a graph is at all points of it, that of searches at each.
        luck = generator.normal(0, 0.05, (blocks, 1)) + generator.normal(0, 0.02, (blocks, x.size))
        misses = np.exp(0.5 + math.log(needs) - x + luck)
        recalls[name] = [dict(enumerate(point)) for point in (1 - misses).T.tolist()]
    curve = sweep_curve(speeds, CANDIDATES, task="t", metric="throughput", recalls=recalls, looks=looks)
    return next(judged_curves([curve]))


@pytest.mark.parametrize("blocks", [3, 6])
@pytest.mark.parametrize("needs", NEEDS)
def test_intervals_at_equal_recall_hold_the_truth(calibration: Table, blocks: int, needs: str):
    """Of os / es, x^-.6 of the candidates: points that lie around the recall unequally do not bias it."""
    generator = np.random.default_rng((43, blocks, len(needs)))
    truth = 100 * math.expm1(-0.6 * math.log(NEEDS[needs]))
    covered, decided = [], []
    for _ in range(calibration.calls):
        curve = at_recalls(generator, blocks, NEEDS[needs])
        found = [one for level in curve.at_recall[:2] for one in level.comparisons]
        covered += [one.low_percent <= truth <= one.high_percent for one in found]
        decided.append(any(one.verdict in {"faster", "slower", "different"} for one in found))
    cell = f"{needs}, {blocks} blocks"
    calibration.check("recall: coverage at equal recall", cell, float(np.mean(covered)), least=0.94)
    if needs == "equal":
        calibration.check("recall: any difference without one", cell, float(np.mean(decided)), most=0.065)
    elif blocks > 3:
        calibration.check("recall: difference noticed", cell, float(np.mean(decided)), least=0.8)
