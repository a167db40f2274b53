"""How often settled tasks are marked, and drifts found? Forks are drawn from known processes, seeded."""

import math
from collections.abc import Callable

import numpy as np
import pytest

from benchctl.stats.doubts import steadiness
from benchctl.stats.summary import summarise
from benchctl.track.model import Task
from builders import make_summary
from stats.made import samples

RUNS = 200
TASKS, FORKS = 10, 5
VARIANTS = ("es", "os")


def marked_runs(
    draw: Callable[[tuple[int, ...]], np.ndarray], drift: float = 0.0, cold: int = 0
) -> np.ndarray:
    """Whether each task of each variant is marked, shape (runs, cells); `cold` of the cells drift."""
    drifts = draw((RUNS, TASKS * len(VARIANTS), FORKS))
    drifts[:, :cold] += drift
    marks = []
    for run in drifts:
        cells = {
            cell: [make_summary("range", 1.0, drift=float(drift)) for drift in own]
            for cell, own in enumerate(run)
        }
        marks.append([one.trend is not None for one in steadiness(cells).values()])
    return np.asarray(marks)


@pytest.mark.parametrize("process", ["normal", "heavy tails", "skewed", "blocks in common"])
def test_a_run_of_settled_tasks_rarely_has_a_mark(process: str):
    """Promised is .065 at most; ten tasks of two variants, five forks, SD of a fork's drift 5%."""
    generator = np.random.default_rng(20240301)

    def draw(shape: tuple[int, ...]) -> np.ndarray:
        match process:
            case "heavy tails":
                noise = generator.standard_t(3, shape) / math.sqrt(3)
            case "skewed":
                noise = generator.exponential(1, shape) - 1
            case "blocks in common":
                noise = 0.6 * generator.normal(0, 1, shape) + 0.8 * generator.normal(
                    0, 1, (shape[0], 1, shape[2])
                )
            case _:
                noise = generator.normal(0, 1, shape)
        return 0.05 * noise

    assert np.mean(marked_runs(draw).any(axis=1)) <= 0.065


def test_a_row_that_drifts_is_marked_and_its_neighbours_are_not():
    """Power among 20 rows, five forks of SD 5%: half at a drift of 15%, nine in ten at 25%."""
    generator = np.random.default_rng(7)
    for percent, least, most in ((5, 0.0, 0.1), (15, 0.35, 0.65), (25, 0.85, 1.0)):
        marks = marked_runs(lambda shape: generator.normal(0, 0.05, shape), math.log1p(percent / 100), cold=1)
        assert least <= marks[:, 0].mean() <= most
        assert marks[:, 1:].any(axis=1).mean() <= 0.065


def test_five_forks_show_a_third_that_is_slower():
    """A third of the requests 40% slower, in noise of 30%."""
    generator = np.random.default_rng(7)
    trends = []
    for _ in range(50):
        forks = []
        for _ in range(FORKS):
            logs = generator.normal(math.log(1e6), 0.3, 100)
            logs[:33] += math.log(1.4)
            drawn = samples(np.exp(logs).astype(np.int64))
            forks.append(summarise(drawn, schedule=0, task_index=0, task=Task("range", iterations=100)))
        trends.append(steadiness({0: forks})[0].trend)
    assert trends.count("not warmed up") >= 45
