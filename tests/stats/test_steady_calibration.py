"""Does the detector find a cut that is known? Courses are drawn from known processes, seeded.

What it can see is bounded by its penalty, 15 ln n (1 + phi) / (1 - phi), which buys that noise is hardly ever
taken for levels. `test_what_it_cannot_see` keeps the other side of that bargain in view: within one fork, a
change of that size is lost in such noise, and it is left to the drift over several forks.
"""

import math
from collections.abc import Callable

import numpy as np
import pytest
from scipy.signal import lfilter

from benchctl.results.figures import CourseKind
from benchctl.stats.steady import steadiness
from benchctl.stats.summary import summarise
from benchctl.track.model import Task
from builders import make_summary
from stats.made import samples

REPETITIONS = 50
MS = 1e6

# (kind, factor of the first level, where the cut lies as a share of the requests)
WARM_UP = ("warm-up", 2.0, (0.1, 0.65))
SMALL_WARM_UP = ("warm-up", 1.3, (0.1, 0.65))
SLOWDOWN = ("slowdown", 0.5, (0.1, 0.65))
LATE = ("no steady state", 2.0, (0.8, 0.95))
FLAT = ("flat", 1.0, (0.5, 0.5))

Process = tuple[CourseKind, float, tuple[float, float]]


def service_times(generator: np.random.Generator, size: int, sigma: float, phi: float):
    """AR(1) noise on a level of 1 ms, in ln of nanoseconds."""
    shocks = generator.normal(0, sigma * math.sqrt(1 - phi**2), size)
    shocks[0] /= math.sqrt(1 - phi**2)
    return math.log(MS) + lfilter([1.0], [1.0, -phi], shocks)


def rates(process: Process, size: int, sigma: float, phi: float) -> tuple[float, float]:
    """Shares of courses whose kind was right, and whose cut was within 10% of n."""
    kind, factor, (low, high) = process
    generator = np.random.default_rng(20240301)
    right = near = 0
    for _ in range(REPETITIONS):
        cut = int(size * generator.uniform(low, high))
        logs = service_times(generator, size, sigma, phi)
        logs[:cut] += math.log(factor)
        drawn = samples(np.exp(logs).astype(np.int64))
        found = summarise(drawn, schedule=0, task_index=0, task=Task("range", iterations=size)).course
        right += found.kind == kind
        near += abs(found.steady_from - (0 if kind == "flat" else cut)) <= 0.1 * size
    return right / REPETITIONS, near / REPETITIONS


@pytest.mark.parametrize(
    ("process", "size", "sigma", "phi"),
    [
        *((FLAT, size, sigma, phi) for size in (100, 1000) for sigma in (0.1, 0.3) for phi in (0.0, 0.7)),
        *((process, 100, 0.1, 0.0) for process in (WARM_UP, SLOWDOWN)),
        *((process, 300, 0.1, 0.3) for process in (WARM_UP, SLOWDOWN, LATE)),
        (SMALL_WARM_UP, 1000, 0.1, 0.3),
        *(
            pytest.param(process, 1000, sigma, 0.3, marks=pytest.mark.full)
            for process in (WARM_UP, SLOWDOWN, LATE)
            for sigma in (0.1, 0.3)
        ),
    ],
)
def test_a_known_cut_is_found(process: Process, size: int, sigma: float, phi: float):
    right, near = rates(process, size, sigma, phi)
    assert right >= 0.90
    assert near >= 0.90


def test_what_it_cannot_see():
    right, _ = rates(WARM_UP, 100, 0.3, 0.7)
    assert right < 0.5


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


def test_five_forks_show_what_none_shows_alone():
    """A third of the requests 40% slower, in such noise: few courses show it, five forks nearly always."""
    generator = np.random.default_rng(7)
    found = []
    for _ in range(REPETITIONS):
        forks = []
        for _ in range(FORKS):
            logs = service_times(generator, 100, 0.3, 0.0)
            logs[:33] += math.log(1.4)
            drawn = samples(np.exp(logs).astype(np.int64))
            forks.append(summarise(drawn, schedule=0, task_index=0, task=Task("range", iterations=100)))
        found.append((steadiness({0: forks})[0].trend, sum(fork.course.kind == "flat" for fork in forks)))
    assert np.mean([trend == "not warmed up" for trend, _ in found]) >= 0.90
    assert np.mean([flat for _, flat in found]) >= 3
