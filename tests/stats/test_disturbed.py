from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
import pytest

from benchctl.results.model import OtherLoad
from benchctl.results.samples import Outcome
from benchctl.stats.disturbed import Stall, busy_host, large_stalls, stalls
from benchctl.stats.summary import summarise
from benchctl.track.model import Task
from builders import make_driver, make_fork
from stats.made import samples, summary


def busy(es: Sequence[float | None], os: Sequence[float | None] = (), own: float = 1.0, **options: bool):
    """What is said of the CPU of others during forks of two variants, in four CPUs."""
    forks = {
        variant: [
            make_fork(
                variant, block, others=None if used is None else OtherLoad(4, used, {"cc1": used / 2}, own)
            )
            for block, used in enumerate(side)
        ]
        for variant, side in (("es", es), ("os", os))
    }
    return busy_host(forks, **options)


@pytest.mark.parametrize(
    ("es", "os", "own", "told"),
    [
        # On average more than a twentieth of what the nodes used; of one CPU where that is not known.
        ((0.06, 0.06), (0.06, 0.02), 1.0, ""),
        ((0.06, 0.06), (0.06, 0.06), 1.0, "0.06 of 4 CPUs, 6% of what the nodes used ("),
        ((0.06, 0.06), (0.06, 0.06), 2.0, ""),
        ((0.2, 0.0), (0.0, 0.0), 0.0, ""),
        ((0.5, 0.0), (0.0, 0.0), 0.0, "0.12 of 4 CPUs (cc1: 0.06)"),
        ((None, 2.0), (None,), 1.0, "2.00 of 4 CPUs, 200% of what the nodes used (cc1: 1.00)"),
        ((None,), (None,), 1.0, ""),
        # Or clearly more on one side.
        ((0.3, 0.33, 0.28), (0.1, 0.08, 0.1), 9.0, "0.30 of 4 CPUs during forks of es, 0.21 more than"),
        ((0.1, 0.08, 0.1), (0.3, 0.33, 0.28), 9.0, "during forks of os, 0.21 more than during those of es"),
        ((0.1, 0.08, 0.1), (0.14, 0.12, 0.13), 9.0, ""),
        ((0.1, 0.08, 0.1), (0.3, 0.0, 0.3), 9.0, ""),
        ((0.3,), (0.1,), 9.0, ""),
    ],
)
def test_a_host_that_is_busy_or_busier_on_one_side_is_found(
    es: Sequence[float | None], os: Sequence[float | None], own: float, told: str
):
    found = busy(es, os, own)
    assert (found is not None) == bool(told)
    assert found is None or (told in found.text and found.code == "busy-host")


def test_measured_together_it_is_the_levels_that_do_not_hold():
    found = busy((0.6, 0.7), (0.6, 0.7), together=True)
    assert found is not None
    assert found.code == "run"
    assert busy((0.01, 0.01), (0.01, 0.01), together=True) is None


@pytest.mark.parametrize(
    ("changes", "texts", "share"),
    [
        ({}, [], 0),
        ({"window_s": None, "stalled": 3, "stalled_s": 20.0, "stalled_share": 0.45}, [], 0),
        (
            {"stalled": 3, "stalled_s": 20.0, "stalled_share": 0.45},
            ["3 of 200 requests took 20.0 s, 45% of the measured time"],
            0.45,
        ),
        (
            {"stalled": 1, "stalled_s": 3600.0, "stalled_share": 0.999},
            ["1 of 200 requests took 3600.0 s, 100% of the measured time"],
            0.999,
        ),
        # A collection of garbage; some in a long task; and a second kind of request.
        ({"stalled": 1, "stalled_s": 0.3, "stalled_share": 0.4}, [], 0),
        ({"stalled": 2, "stalled_s": 2.0, "stalled_share": 0.045}, [], 0),
        ({"stalled": 5, "stalled_s": 20.0, "stalled_share": 0.45}, [], 0),
        # What benchctl itself did, or what was done to it, is told however short it was.
        (
            {"stopped_s": 1.0, "stalled": 1, "stalled_s": 1.1, "stalled_share": 0.025},
            ["benchctl itself did not run for 1.0 s, 2.3% of the measured time"],
            0,
        ),
        (
            {"stopped_s": 6.0, "stalled": 1, "stalled_s": 6.1, "stalled_share": 0.139, "lag_max_ns": 6e9},
            ["benchctl itself did not run for 6.0 s, 14% of the measured time"],
            6 / 44,
        ),
        ({"suspended_s": 3600.0}, ["the machine was suspended for 3,600 s"], 0),
    ],
)
def test_waits_that_are_reported(changes: dict[str, Any], texts: list[str], share: float):
    stalled = {name: changes.pop(name) for name in list(changes) if name.startswith("stalled")}
    found = summary(10.0, driver=make_driver(**{"window_s": 44.0, **changes}), **stalled)
    assert [stall.text for stall in stalls(found)] == texts
    assert sum(stall.share for stall in large_stalls(found)) == pytest.approx(share)


Draw = Callable[[np.random.Generator, int], npt.NDArray[np.float64]]


def lognormal(sigma: float, median_s: float = 0.003) -> Draw:
    return lambda generator, size: median_s * np.exp(sigma * generator.standard_normal(size))


def heavy(generator: np.random.Generator, size: int):
    """A third finite moment, and no fourth."""
    return 0.003 * (1 + generator.pareto(3.5, size))


def bimodal(share: float, factor: float) -> Draw:
    return lambda generator, size: (
        lognormal(0.1)(generator, size) * np.where(generator.random(size) < share, factor, 1.0)
    )


def collecting(generator: np.random.Generator, size: int):
    """A pause of some 40 ms about every second."""
    times = lognormal(0.15)(generator, size)
    pauses = np.flatnonzero(np.diff(np.cumsum(times) // 1.0)) + 1
    times[pauses] += 0.04 * np.exp(0.3 * generator.standard_normal(pauses.size))
    return times


def warming_up(generator: np.random.Generator, size: int):
    """Thirty times slower at first."""
    return lognormal(0.3)(generator, size) * (1 + 30 * np.exp(-np.arange(size) / (0.05 * size)))


@pytest.mark.parametrize("size", [100, 2000])
@pytest.mark.parametrize(
    "draw",
    [
        *map(lognormal, (0.1, 0.3, 0.6, 1.0)),
        heavy,
        bimodal(0.5, 3.0),
        bimodal(0.1, 8.0),
        bimodal(0.1, 30.0),
        collecting,
        warming_up,
    ],
)
def test_ordinary_processes_hardly_ever_stall(draw: Draw, size: int):
    generator = np.random.default_rng(20240301)
    found = [stall_of(draw(generator, size)) for _ in range(20)]
    assert np.mean([bool(stalls) for stalls in found]) <= 0.05


@pytest.mark.parametrize(
    ("sigma", "every", "wait_s"), [(0.2, 500, 2.0), (0.6, 500, 2.0), (0.3, 100, 0.15), (0.3, 2999, 1.0)]
)
def test_what_every_few_hundred_requests_wait_is_added_up(sigma: float, every: int, wait_s: float):
    """One of these waits alone is a small part of the time."""
    generator = np.random.default_rng(20240301)
    for _ in range(10):
        times = lognormal(sigma)(generator, 3000)
        times[every - 1 :: every] += wait_s
        count = 3000 // every
        (stall,) = stall_of(times)
        assert stall.text.startswith(f"{count:,} of 3,000 requests took ")
        assert stall.share == pytest.approx(times[every - 1 :: every].sum() / times.sum(), rel=1e-6)


def test_requests_that_fail_after_a_long_time_stall_too():
    times = np.full(100, 10_000_000, np.int64)
    times[[40, 41]] = 3_000_000_000
    outcomes = np.where(times > 10_000_000, Outcome.TIMEOUT, Outcome.OK)
    drawn = samples(times, outcome=outcomes)
    found = summarise(drawn, schedule=0, task_index=0, task=Task("range", iterations=100))
    assert (found.stalled, found.stalled_s, found.samples) == (2, 6.0, 98)


def test_first_requests_of_clients_are_slow_by_nature():
    """So is what follows a request that took as long."""
    times = np.full(100, 10_000_000, np.int64)
    times[[0, 1, 50]] = 3_000_000_000
    drawn = samples(times, client=[0] * 50 + [1] * 50)
    found = summarise(drawn, schedule=0, task_index=0, task=Task("range", iterations=100))
    assert (found.stalled, found.stalled_share) == (0, 0.0)


def stall_of(times_s: npt.NDArray[np.float64]) -> list[Stall]:
    """Large stalls of a task of these service times."""
    drawn = samples((times_s * 1e9).astype(np.int64))
    found = summarise(drawn, schedule=0, task_index=0, task=Task("range", iterations=times_s.size))
    driver = make_driver(window_s=float(times_s.sum()))
    return large_stalls(msgspec.structs.replace(found, driver=driver))
