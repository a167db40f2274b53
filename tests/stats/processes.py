"""Processes with known truth that forks are drawn from, and the table of what was measured on them."""

import math
from collections import defaultdict
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import numpy as np
import numpy.typing as npt
from scipy.signal import lfilter
from scipy.stats import ttest_ind

Values = npt.NDArray[np.float64]

MOST_FORKS = 10
SLOW = math.log(1.18)
SIGMAS = (0.1, 0.3)
PHIS = (0.0, 0.3, 0.7)
_SEED = 20240301

# Repetitions that are drawn at once: few enough that their samples stay in the cache.
_BATCH = 20


def noise(generator: np.random.Generator, shape: tuple[int, ...], phi: float) -> Values:
    """Stationary AR(1) of unit variance along the last axis."""
    shocks = generator.standard_normal(shape)
    shocks[..., 1:] *= math.sqrt(1 - phi**2)
    return np.asarray(lfilter([1.0], [1.0, -phi], shocks, axis=-1))


@cache
def noise_means(repetitions: int, phi: float, samples: int) -> dict[float, Values]:
    """Sigma -> ln of the mean of a fork's noise, shape (repetitions, 2 sides, forks); samples are not kept.

    A fork's level is a factor on all of its samples, so it is added to this without drawing them again.
    """
    found: dict[float, list[Values]] = {sigma: [] for sigma in SIGMAS}
    for batch in range(0, repetitions, _BATCH):
        generator = np.random.default_rng([_SEED, samples, round(10 * phi), batch])
        size = min(_BATCH, repetitions - batch)
        tenth = np.exp(0.1 * noise(generator, (size, 2, MOST_FORKS, samples), phi))
        found[0.1].append(np.log(tenth.mean(axis=-1)))
        found[0.3].append(np.log((tenth**3).mean(axis=-1)))
    return {sigma: np.concatenate(parts) for sigma, parts in found.items()}


def fork_levels(
    generator: np.random.Generator, shape: tuple[int, ...], fork_sd: float, slow_share: float = 0.0
) -> Values:
    """ln of the level of every fork; a share of them lands in a state that is 18% slower."""
    levels = generator.normal(0, fork_sd, shape)
    return np.asarray(levels + SLOW * (generator.random(shape) < slow_share))


def welch(left: Values, right: Values, truth: float = 0.0) -> tuple[float, float]:
    """(share of p at most 0.05, share of 95% intervals that hold the truth); one comparison a row."""
    found = ttest_ind(right, left, axis=1, equal_var=False)
    interval = found.confidence_interval(0.95)
    covered = (interval.low <= truth) & (truth <= interval.high)
    return float((found.pvalue <= 0.05).mean()), float(covered.mean())


ENOUGH_REPETITIONS = 2000
"""The bounds leave room for the luck of that many."""


@dataclass
class Table:
    """What was measured, check by check and cell by cell, against what is accepted."""

    repetitions: int
    cells: dict[tuple[str, str], list[tuple[str, float, bool]]] = field(
        default_factory=lambda: defaultdict(list)
    )

    @property
    def calls(self) -> int:
        """Repetitions where every one is a call of what is tested, which cannot take an array of runs."""
        return max(self.repetitions // 4, 100)

    def check(
        self, name: str, cell: str, value: float, *, least: float | None = None, most: float | None = None
    ) -> None:
        """Record a share of repetitions; fail unless it is accepted. Without bounds it is only reported."""
        holds = (least is None or value >= least - self._luck(least)) and (
            most is None or value <= most + self._luck(most)
        )
        self.cells[name, _accepted(least, most)].append((cell, float(value), bool(holds)))
        assert holds, f"{name}, {cell}: {value:.4f}, accepted is {_accepted(least, most)}"

    def _luck(self, share: float) -> float:
        """Return how far few repetitions may lie beyond a bound by chance: three standard errors."""
        if self.repetitions >= ENOUGH_REPETITIONS:
            return 0.0
        return 3 * math.sqrt(max(share * (1 - share), 0.0) / self.calls)

    def write(self, path: Path) -> None:
        """As Markdown: a line a check, then all cells."""
        lines = [
            f"{self.repetitions:,} repetitions a cell.",
            "",
            "| check | cells | measured (least to most) | accepted | |",
            "|---|---:|---|---|---|",
        ]
        for (name, accepted), cells in self.cells.items():
            values = [value for _, value, _ in cells]
            low, high = f"{min(values):.4f}", f"{max(values):.4f}"
            measured = low if low == high else f"{low} to {high}"
            verdict = "holds" if all(holds for _, _, holds in cells) else "FAILS"
            verdict = "reported" if accepted == "-" else verdict
            lines.append(f"| {name} | {len(cells)} | {measured} | {accepted} | {verdict} |")
        lines += ["", "| check | cell | measured |", "|---|---|---:|"]
        lines += [
            f"| {name} | {cell} | {value:.4f} |"
            for (name, _), cells in self.cells.items()
            for cell, value, _ in cells
        ]
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _accepted(least: float | None, most: float | None) -> str:
    bounds = [f"at least {least:.4g}"] if least is not None else []
    bounds += [f"at most {most:.4g}"] if most is not None else []
    return ", ".join(bounds) or "-"
