"""Series of a made-up suite whose truth is known, for measuring the detector: seeded, on the log scale."""

import math
from dataclasses import dataclass

import numpy as np

from benchctl.results.model import DEFAULT_FORKS
from benchctl.results.nightly.model import Series, SeriesKey
from benchctl.stats.arrays import Floats

METRIC = "service-time"


@dataclass(frozen=True)
class Process:
    """How nights come about. SDs, steps and drifts are in natural logarithms; figures are times.

    Attributes:
        series: watched series.
        nights: of the suite.
        forks: of every night.
        night_sd: from night to night, of every series by itself.
        fork_sd: from fork to fork within a night.
        step: by which the engine gets slower (above 0) or faster; 0 for never.
        step_night: number of the first night that shows it.
        step_ends: number of the first night that does not any more; None for never.
        drift: by which the engine gets slower every night from `step_night` on.
        host_step: by which the host gets slower for engine and canary alike, from `host_night` on.
        host_night: number of the first night that shows it.
        canaries: series of the canary, of the same tasks; 0 for a suite without one.
        slow_share: share of forks that land in a slow state.
        slow_by: how much slower that is.
        missing: share of nights that are not there.
        baseline_log: of every series at first.
    """

    series: int = 80
    nights: int = 90
    forks: int = DEFAULT_FORKS
    night_sd: float = 0.02
    fork_sd: float = 0.05
    step: float = 0.0
    step_night: int = 61
    step_ends: int | None = None
    drift: float = 0.0
    host_step: float = 0.0
    host_night: int = 61
    canaries: int = 0
    slow_share: float = 0.0
    slow_by: float = math.log(1.18)
    missing: float = 0.0
    baseline_log: float = math.log(10.0)

    def engine(self, night: int) -> float:
        """How much slower the engine is in a night than in the first, in natural logarithms."""
        if night < self.step_night or (self.step_ends is not None and night >= self.step_ends):
            return 0.0
        return self.step + self.drift * (night - self.step_night + 1)

    def host(self, night: int) -> float:
        """How much slower the host is in a night than in the first."""
        return self.host_step if night >= self.host_night else 0.0

    def forks_of(self, level: Floats, forks: int, rng: np.random.Generator) -> Floats:
        """Draw forks at these levels, in natural logarithms; shape of the levels and the forks."""
        drawn = level[..., None] + rng.normal(0.0, self.fork_sd, (*level.shape, forks))
        if self.slow_share:
            drawn += self.slow_by * (rng.random(drawn.shape) < self.slow_share)
        return drawn


@dataclass(frozen=True, eq=False)
class World:
    """What a process gave.

    Attributes:
        process: of it.
        watched, canaries: series, sorted by night and fork.
    """

    process: Process
    watched: tuple[Series, ...]
    canaries: tuple[Series, ...]


def generate(process: Process, rng: np.random.Generator) -> World:
    """Draw a suite: forks of every series in every night that is there."""
    numbers = np.arange(1, process.nights + 1)
    there = numbers[rng.random(process.nights) >= process.missing]
    host = np.array([process.host(int(night)) for night in there])
    engine = np.array([process.engine(int(night)) for night in there])
    watched = _draw(process, "watched", process.series, host + engine, there, rng)
    canaries = _draw(process, "canary", process.canaries, host, there, rng)
    return World(process, watched, canaries)


def _draw(
    process: Process,
    variant: str,
    count: int,
    truth: Floats,
    numbers: np.ndarray[tuple[int], np.dtype[np.int64]],
    rng: np.random.Generator,
) -> tuple[Series, ...]:
    levels = process.baseline_log + truth + rng.normal(0.0, process.night_sd, (count, numbers.size))
    values = np.exp(process.forks_of(levels, process.forks, rng)).reshape(count, numbers.size * process.forks)
    nights = np.repeat(numbers, process.forks)
    forks = np.tile(np.arange(1, process.forks + 1), numbers.size)
    return tuple(
        Series(
            key=SeriesKey(variant=variant, challenge="simulated", task=f"task {place + 1}", metric=METRIC),
            unit="ms",
            higher_is_better=False,
            nights=nights,
            forks=forks,
            values=row,
        )
        for place, row in enumerate(values)
    )
