"""Two variants in one task and metric, compared over forks, index builds or runs."""

from collections.abc import Sequence

import msgspec

from benchctl.results.model import ForkRecord
from benchctl.stats import caveat
from benchctl.stats.caveat import Caveat, Replicate
from benchctl.stats.compare import Comparison, Series, compare
from benchctl.stats.metrics import ForkSummaries, Metric, fork_values


class Side(msgspec.Struct, frozen=True):
    """A variant's forks in one task and metric."""

    label: str
    blocks: tuple[int, ...]
    values: tuple[float, ...]  # one a fork, in the metric's unit; NaN where the fork has none
    units: tuple[int, ...]  # the index build, or run, of each
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
            units=tuple(fork.index_build for fork in forks),
        )

    def within(self, blocks: Sequence[int]) -> "Side":
        """Only the forks of some blocks, in their order; every block has one fork."""
        places = [self.blocks.index(block) for block in blocks]
        return msgspec.structs.replace(
            self,
            blocks=tuple(blocks),
            values=tuple(self.values[place] for place in places),
            units=tuple(self.units[place] for place in places),
        )

    def unit_figures(self) -> dict[str, object]:
        """Return what `Figures` has of units: each fork's, the mean over them, and the two spreads."""
        found = Series.of(self.values, additive=self.additive, signed=self.signed).nested(self.units)
        return {
            "units": self.units,
            "value": found.value,
            "between_units_percent": _spread_percent(found.between_sd),
            "within_units_percent": _spread_percent(found.within_sd),
        }


def compare_sides(
    metric: Metric,
    baseline: Side,
    contender: Side,
    *,
    paired: bool,
    judged: bool,
    replicate: Replicate,
    sequential: bool = False,
) -> Comparison:
    """Compare two variants.

    `paired` uses the differences within the blocks that both finished. Where builds or runs are the unit,
    paired are those of one number, which share their blocks: the mean of the differences in them. Without
    `judged` there is no verdict.
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
        replicate=replicate,
        units=(baseline.units, baseline.units if paired else contender.units),
        sequential=sequential,
        additive=metric.additive,
        signed=baseline.signed or contender.signed,
        compared_as=metric.compared_as,
    )
    return msgspec.structs.replace(plain, caveats=(*plain.caveats, *alone))


def _spread_percent(sd: float | None) -> float | None:
    return None if sd is None else 100 * sd
