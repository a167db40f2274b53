"""Two variants in one task and metric: compared over forks or builds, and with the host's speed taken out."""

import math
from collections.abc import Iterable, Mapping, Sequence

import msgspec
import numpy as np
from scipy.special import stdtrit

from benchctl.results.model import ForkRecord
from benchctl.stats import caveat
from benchctl.stats.arrays import Floats
from benchctl.stats.caveat import Caveat
from benchctl.stats.compare import Comparison, Series, as_percent, build_means, compare
from benchctl.stats.inference import cv_of
from benchctl.stats.metrics import ForkSummaries, Metric, fork_values

KERNELS = ("cpu", "memory")

# Residual degrees of freedom that so many kernels must leave: five forks a side for both, three for one.
_LEAST_DF = {2: 6, 1: 3}
_NO_SPREAD = 1e-12
_NO_VARIATION = 1e-9
# Relative: a kernel that is a combination of other columns within this has nothing of its own to say.
_COLLINEAR = 1e-6
_CONFIDENCE = 0.95


class Adjustment(msgspec.Struct, frozen=True):
    """An effect with the host probe held equal; natural logarithms."""

    effect: float | None = None  # contender - baseline; None when there is none
    # `low`, `high`: its 95 % t interval.
    low: float | None = None
    high: float | None = None
    kernels: tuple[str, ...] = ()  # of the probe that it was adjusted for
    reason: str = ""  # why there is none; empty otherwise


class _Fit(msgspec.Struct, frozen=True):
    """A least-squares fit: coefficients of the design, their standard errors, residuals, and what is left."""

    coefficients: Floats
    errors: Floats
    residuals: Floats
    df: int
    kernels: tuple[str, ...]


def host_probes(forks: Sequence[ForkRecord]) -> Floats:
    """Natural logarithm of each fork's mean probe, before and after, by CPU and memory kernel.

    Shape (n, 2); NaN where a fork was not probed.
    """
    rows = [
        (
            _log_mean([probe.cpu_ns for probe in fork.probes]),
            _log_mean([probe.memory_ns for probe in fork.probes]),
        )
        for fork in forks
    ]
    return np.asarray(rows, dtype=np.float64).reshape(len(rows), len(KERNELS))


def adjusted_effect(
    baseline: Floats, contender: Floats, baseline_probes: Floats, contender_probes: Floats, *, paired: bool
) -> Adjustment:
    """Adjust the difference of two variants; in pairs, differences are regressed on the probes' differences.

    Args:
        baseline: ln of one value a fork (or means over the forks of a build), shape (n,); all finite.
        contender: the same, shape (m,); (n,) and in the order of the pairs when paired.
        baseline_probes: shape (n, 2), as from `host_probes`.
        contender_probes: shape (m, 2).
        paired: use the differences within pairs.
    """
    if paired:
        # Not centred: the effect is wanted where the probes of a pair are alike.
        differences = contender_probes - baseline_probes
        found = _fit(contender - baseline, np.ones((baseline.size, 1)), differences)
    else:
        design = np.zeros((baseline.size + contender.size, 2))
        design[:, 0] = 1.0
        design[baseline.size :, 1] = 1.0
        probes = np.vstack((baseline_probes, contender_probes))
        found = _fit(np.concatenate((baseline, contender)), design, probes - probes.mean(axis=0))
    if isinstance(found, str):
        return Adjustment(reason=found)
    effect, error = float(found.coefficients[-1]), float(found.errors[-1])
    half = float(stdtrit(found.df, (1 + _CONFIDENCE) / 2)) * error
    return Adjustment(effect, effect - half, effect + half, found.kernels)


def adjusted_cvs(logs: Mapping[str, Floats], probes: Mapping[str, Floats]) -> dict[str, float]:
    """The spread of each variant's forks after adjusting for the host probe, with one slope for all variants.

    Args:
        logs: label -> ln of one value a fork, shape (n,); all finite.
        probes: label -> shape (n, 2).

    Returns:
        Label -> coefficient of variation in percent, of a log-normal value with the SD of the residuals;
        empty when there is no adjusting, and without the variants that have fewer than two forks.
    """
    labels = [label for label, values in logs.items() if values.size]
    if not labels:
        return {}
    owner = np.repeat(np.arange(len(labels)), [logs[label].size for label in labels])
    design = (owner[:, None] == np.arange(len(labels))).astype(np.float64)
    host = np.vstack([probes[label] for label in labels])
    found = _fit(np.concatenate([logs[label] for label in labels]), design, host - host.mean(axis=0))
    if isinstance(found, str):
        return {}
    spreads = {}
    for place, label in enumerate(labels):
        own = found.residuals[owner == place]
        # The kernels' degrees of freedom are borne by the variants in proportion to their own.
        df = (own.size - 1) * found.df / (owner.size - len(labels))
        if df > 0:
            spreads[label] = 100 * cv_of(math.sqrt(float((own**2).sum()) / df))
    return spreads


def _fit(values: Floats, design: Floats, probes: Floats) -> _Fit | str:
    """Fit with as many kernels as the number of values allows, or say why with none."""
    if not np.isfinite(probes).all():
        return "not every fork has a host probe"
    reason = f"too few values ({values.size}) to adjust"
    for count, least in _LEAST_DF.items():
        df = values.size - design.shape[1] - count
        if df < least:
            continue
        full = np.hstack((design, probes[:, :count]))
        if not _independent(full):
            reason = "the host probes do not vary on their own"
            continue
        return _solved(values, full, df, design.shape[1], KERNELS[:count])
    return reason


def _solved(values: Floats, full: Floats, df: int, keep: int, kernels: tuple[str, ...]) -> _Fit | str:
    coefficients = np.asarray(np.linalg.lstsq(full, values, rcond=None)[0], dtype=np.float64)
    residuals = values - full @ coefficients
    variance = float((residuals**2).sum()) / df
    if math.sqrt(variance) < _NO_SPREAD:
        return "nothing varies but with the host"
    errors = np.sqrt(variance * np.diag(np.linalg.inv(full.T @ full)))
    return _Fit(coefficients[:keep], errors[:keep], residuals, df, kernels)


def _independent(columns: Floats) -> bool:
    """Return whether no column follows from the others."""
    norms = np.linalg.norm(columns, axis=0)
    if norms.min() < _NO_VARIATION:
        return False
    return bool(np.linalg.matrix_rank(columns / norms, tol=_COLLINEAR) == columns.shape[1])


def _log_mean(times_ns: Sequence[int]) -> float:
    if not times_ns or min(times_ns) <= 0:
        return math.nan
    return math.log(math.fsum(times_ns) / len(times_ns))


class Side(msgspec.Struct, frozen=True):
    """A variant's forks in one task and metric."""

    label: str
    blocks: tuple[int, ...]
    values: tuple[float, ...]  # one a fork, in the metric's unit; NaN where the fork has none
    builds: tuple[int, ...]
    probes: Floats  # ln of the host probe around each, shape (n, 2), as from `host_probes`
    additive: bool = False
    signed: bool = False  # whether values may be below 0

    @classmethod
    def of(cls, metric: Metric, label: str, forks: Sequence[ForkRecord], found: ForkSummaries) -> "Side":
        """From a variant's finished forks and their summaries of one task, in the same order."""
        return cls(
            label=label,
            blocks=tuple(block for block, _ in found),
            values=tuple(fork_values(metric, found)),
            additive=metric.additive,
            builds=tuple(fork.index_build for fork in forks),
            probes=host_probes(forks),
        )

    def within(self, blocks: Sequence[int]) -> "Side":
        """Only the forks of some blocks, in their order; every block has one fork."""
        places = [self.blocks.index(block) for block in blocks]
        return msgspec.structs.replace(
            self,
            blocks=tuple(blocks),
            values=tuple(self.values[place] for place in places),
            builds=tuple(self.builds[place] for place in places),
            probes=self.probes[places],
        )

    def build_figures(self) -> dict[str, object]:
        """Return what `Figures` has of index builds: each fork's, the mean over them, and the two spreads."""
        found = Series.of(self.values, additive=self.additive, signed=self.signed).nested(self.builds)
        return {
            "builds": self.builds,
            "value": found.value,
            "between_builds_percent": _spread_percent(found.between_sd),
            "within_builds_percent": _spread_percent(found.within_sd),
        }


def forks_without_host(sides: Iterable[Side]) -> dict[str, float]:
    """Variant -> coefficient of variation of its forks, in percent, that the host probe leaves."""
    logs, probes = {}, {}
    for side in sides:
        if side.additive:
            continue
        series = Series.of(side.values)
        logs[side.label], probes[side.label] = series.points, side.probes[series.kept]
    return adjusted_cvs(logs, probes)


def compare_sides(
    metric: Metric,
    baseline: Side,
    contender: Side,
    *,
    paired: bool,
    judged: bool,
    by_build: bool,
    looks: int = 1,
) -> Comparison:
    """Compare two variants, and adjust the effect for the host beside it.

    `paired` uses the differences within the blocks that both finished; `by_build`, the build is the unit,
    and paired are builds of one number, which share their blocks: the mean of the differences in them.
    Without `judged` there is no verdict.
    """
    alone: list[Caveat] = []
    if paired:
        common = sorted(set(baseline.blocks) & set(contender.blocks))
        alone = [
            caveat.unpaired(side.label, len(side.blocks) - len(common))
            for side in (baseline, contender)
            if len(side.blocks) > len(common)
        ]
        baseline, contender = baseline.within(common), contender.within(common)
    numbers = (baseline.builds, baseline.builds if paired else contender.builds)
    plain = compare(
        baseline.values,
        contender.values,
        higher_is_better=metric.higher_is_better,
        margin=metric.margin,
        paired=paired,
        judged=judged,
        metric=metric.key,
        baseline=baseline.label,
        contender=contender.label,
        builds=numbers if by_build else None,
        looks=looks,
        additive=metric.additive,
        signed=baseline.signed or contender.signed,
        compared_as=metric.compared_as,
    )
    found = _adjusted(baseline, contender, numbers, paired=paired, by_build=by_build)
    return msgspec.structs.replace(
        plain,
        caveats=(*plain.caveats, *alone),
        adjusted_percent=_percent(found.effect),
        adjusted_low_percent=_percent(found.low),
        adjusted_high_percent=_percent(found.high),
        adjusted_for=" and ".join(found.kernels),
        adjusted_reason=found.reason,
    )


def _adjusted(
    baseline: Side,
    contender: Side,
    numbers: tuple[Sequence[int], Sequence[int]],
    *,
    paired: bool,
    by_build: bool,
) -> Adjustment:
    """In the units of the plain comparison: forks, or means over the forks of a build."""
    if baseline.additive:
        return Adjustment(reason="arithmetic means are not adjusted")
    if paired:
        series = Series.pairs(baseline.values, contender.values)
    else:
        series = (Series.of(baseline.values), Series.of(contender.values))
    logs = [one.points for one in series]
    probes = [side.probes[one.kept] for side, one in zip((baseline, contender), series, strict=True)]
    if min(values.size for values in logs) == 0:
        return Adjustment(reason="a side has no figures")
    if by_build:
        builds = [one.own(given) for given, one in zip(numbers, series, strict=True)]
        logs = [build_means(values, own) for values, own in zip(logs, builds, strict=True)]
        probes = [build_means(values, own) for values, own in zip(probes, builds, strict=True)]
    return adjusted_effect(*logs, *probes, paired=paired)


def _spread_percent(sd: float | None) -> float | None:
    return None if sd is None else 100 * sd


def _percent(log_ratio: float | None) -> float | None:
    return None if log_ratio is None else as_percent(log_ratio)
