"""Index builds above forks: where indices were built several times, the build is the unit of replication.

Which document lands in which segment, and so how the point tree is split, is drawn anew with every build.
Forks on the same build share that draw: more of them say how fast this build is, not how fast the engine is.
The design is the hierarchical one of Kalibera and Jones, "Rigorous benchmarking in reasonable time" (ISMM
2013): the mean over the means of the highest level, and the variance of these alone. With as many forks on
every build, Welch's t on these means is what it is on independent values.

Variants of one engine may share their indices, and so the builds: then what builds do cancels, and the
interval is too wide rather than too narrow. Pairs use what they share.
"""

from collections import Counter
from collections.abc import Mapping, Sequence

import msgspec
import numpy as np

from benchctl.results.model import ForkRecord
from benchctl.stats.arrays import Floats, Integers


class Nested(msgspec.Struct, frozen=True):
    """One side's forks by build.

    Attributes:
        means: of the natural logarithms of a build's forks, by number of build, shape (builds,). Every build
            counts alike, however many forks it has: where forks failed, the means differ in variance, but the
            variance between them still estimates that of their mean without bias.
        forks: of each build.
        between_sd: standard deviation of builds, natural log; 0 when forks explain all of it, None under two
            builds or when no build has two forks.
        within_sd: of forks on the same build; None when no build has two.
    """

    means: Floats
    forks: tuple[int, ...]
    between_sd: float | None
    within_sd: float | None

    @property
    def value(self) -> float | None:
        """Geometric mean over builds; None without any."""
        return float(np.exp(self.means.mean())) if self.forks else None


def several_builds(done: Mapping[str, Sequence[ForkRecord]]) -> bool:
    """Whether any fork ran on another build than the first one."""
    return any(fork.index_build > 0 for group in done.values() for fork in group)


def forks_by_build(forks: Sequence[ForkRecord]) -> tuple[int, ...]:
    """How many forks ran on each build that has any, by number of build."""
    counts = Counter(fork.index_build for fork in forks)
    return tuple(counts[build] for build in sorted(counts))


def build_means(values: Floats, builds: Sequence[int]) -> Floats:
    """The mean over the forks of each build, by number of build.

    Args:
        values: one row a fork, shape (n,) or (n, columns).
        builds: the number of each fork's build, n of them.

    Returns:
        Shape (builds,) or (builds, columns).
    """
    numbers = np.asarray(builds, dtype=np.int64)
    means = [values[numbers == build].mean(axis=0) for build in np.unique(numbers)]
    return np.asarray(means, dtype=np.float64).reshape(len(means), *values.shape[1:])


def nested(logs: Floats, builds: Sequence[int]) -> Nested:
    """Sort forks by build, and part their variance by the method of moments.

    Args:
        logs: ln of one value a fork, shape (n,).
        builds: the number of each fork's build, n of them.
    """
    numbers = np.asarray(builds, dtype=np.int64)
    means = build_means(logs, builds)
    counts = np.unique(numbers, return_counts=True)[1]
    between, within = _components(logs, numbers, means, counts)
    return Nested(means, tuple(int(count) for count in counts), between, within)


def _components(
    logs: Floats, numbers: Integers, means: Floats, counts: Integers
) -> tuple[float | None, float | None]:
    """SD between and within: one-way random effects, unbalanced.

    Searle, Casella and McCulloch, "Variance Components" (1992): the analysis-of-variance estimators.
    """
    builds, forks = counts.size, logs.size
    if forks <= builds:
        return None, None
    residuals = logs - means[np.searchsorted(np.unique(numbers), numbers)]
    within = float((residuals**2).sum()) / (forks - builds)
    if builds == 1:
        return None, float(np.sqrt(within))
    spread = float((counts * (means - logs.mean()) ** 2).sum()) / (builds - 1)
    typical = (forks - float((counts**2).sum()) / forks) / (builds - 1)  # forks a build, when they are even
    return float(np.sqrt(max(0.0, (spread - within) / typical))), float(np.sqrt(within))
