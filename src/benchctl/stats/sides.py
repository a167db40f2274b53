"""Two variants in one task and metric: compared over forks or builds, and with the host's speed taken out."""

from collections.abc import Iterable, Sequence

import msgspec

from benchctl.results.model import ForkRecord
from benchctl.stats import caveat
from benchctl.stats.arrays import Floats
from benchctl.stats.builds import build_means
from benchctl.stats.caveat import Caveat
from benchctl.stats.compare import Comparison, as_percent, compare
from benchctl.stats.covariate import Adjustment, adjusted_cvs, adjusted_effect, host_probes
from benchctl.stats.metrics import Metric
from benchctl.stats.series import Series
from benchctl.stats.values import ForkSummaries, fork_values


class Side(msgspec.Struct, frozen=True):
    """One variant's forks in one task and metric; all of the same length.

    Attributes:
        label: the variant.
        blocks: of each fork.
        values: one a fork, in the metric's unit; NaN where the fork has none.
        builds: the index build of each fork.
        probes: ln of the host probe around each, shape (n, 2), as from `host_probes`.
    """

    label: str
    blocks: tuple[int, ...]
    values: tuple[float, ...]
    builds: tuple[int, ...]
    probes: Floats

    @classmethod
    def of(cls, metric: Metric, label: str, forks: Sequence[ForkRecord], found: ForkSummaries) -> "Side":
        """From a variant's finished forks and their summaries of one task, in the same order."""
        return cls(
            label=label,
            blocks=tuple(block for block, _ in found),
            values=tuple(fork_values(metric, found)),
            builds=tuple(fork.index_build for fork in forks),
            probes=host_probes(forks),
        )

    def within(self, blocks: Sequence[int]) -> "Side":
        """Only the forks of some blocks, in their order; every block has one fork."""
        places = [self.blocks.index(block) for block in blocks]
        return Side(
            label=self.label,
            blocks=tuple(blocks),
            values=tuple(self.values[place] for place in places),
            builds=tuple(self.builds[place] for place in places),
            probes=self.probes[places],
        )

    def build_figures(self) -> dict[str, object]:
        """What `Figures` has of index builds: each fork's, the mean over them, and the two spreads."""
        found = Series.of(self.values).nested(self.builds)
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
        series = Series.of(side.values)
        logs[side.label], probes[side.label] = series.logs, side.probes[series.kept]
    return adjusted_cvs(logs, probes)


def compare_sides(
    metric: Metric, baseline: Side, contender: Side, *, paired: bool, judged: bool, by_build: bool
) -> Comparison:
    """Compare two variants, and adjust the effect for the host beside it.

    Args:
        metric: what is compared.
        baseline: one side.
        contender: the other.
        paired: use the differences within the blocks that both finished. With `by_build`, the unit is the
            pair of builds of one number, which share their blocks: the mean of the differences in them.
        judged: False to show the figures without a verdict.
        by_build: indices were built several times, and the build is the unit.
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
    """Over the same units as the plain comparison: forks, or means over the forks of a build."""
    if paired:
        series = Series.pairs(baseline.values, contender.values)
    else:
        series = (Series.of(baseline.values), Series.of(contender.values))
    logs = [one.logs for one in series]
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
