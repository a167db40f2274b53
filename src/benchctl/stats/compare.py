"""Two variants on one task and metric: effect, interval, p, and a verdict that may be read as it stands."""

import math
from collections.abc import Sequence
from typing import Literal

import msgspec

from benchctl.results.model import FORKS_FOR_VERDICT
from benchctl.stats import caveat
from benchctl.stats.arrays import Floats
from benchctl.stats.caveat import Caveat
from benchctl.stats.estimate import spread
from benchctl.stats.multiplicity import BLOCKS_FOR_EQUIVALENCE, EVERY_BLOCK, FIRST_LOOK, Method, adjusted_p
from benchctl.stats.permutation import permutation_p
from benchctl.stats.series import Series

Verdict = Literal["equivalent", "faster", "slower", "different", "inconclusive", "insufficient", "n/a"]
DECIDED: frozenset[Verdict] = frozenset({"equivalent", "faster", "slower", "different"})
LEVEL = 0.05
FORKS_FOR_QUOTING = 5
"""A verdict on fewer is provisional."""
_FORKS_FOR_CROSS_CHECK = 5

# exp of more than this is no float; a ratio that large stands for "beyond all measure".
_LARGEST_LOG = 700.0


class Comparison(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How a contender compares with the baseline. Percentages are of the baseline; intervals are unadjusted.

    Attributes:
        metric: machine name of the metric.
        baseline, contender: names of the variants.
        higher_is_better: which way is faster.
        paired: analysed as differences within blocks.
        judged: whether a verdict may be given at all.
        n_baseline, n_contender: forks with a value.
        baseline_value, contender_value: geometric means over forks, in the metric's unit; None without any.
            With several index builds, over the geometric means of the builds.
        effect_percent: contender / baseline - 1.
        low_percent, high_percent: 95 % interval of the effect.
        low90_percent, high90_percent: 90 % interval, which decides on equivalence.
        p: two-sided, Welch's t or paired t on the logarithms.
        p_adjusted: for the other tasks of this metric; None when it gets no verdict.
        p_permutation: cross-check by rearranging forks.
        p_permutation_least: the smallest value that p_permutation can take with this number of forks.
        p_permutation_exact: every arrangement was looked at; else a seeded draw of 9,999.
        verdict: from the contender's side: `faster` means that the contender is faster.
        provisional: a verdict that is not to be quoted: a side had not settled, or has fewer than five forks.
        error: standard error of the effect, in natural logarithms; None without a test.
        mde_percent: the difference that this test finds with 80 % power, before any adjustment of p.
        cv_baseline_percent, cv_contender_percent: SD over mean of the forks.
        margin_percent: differences below this do not matter in practice.
        looks: at the figures so far, in spite of which p and intervals hold: several where a run went on
            after it had been looked at, 0 where it was looked at after every block.
        caveats: doubts about this comparison.
        replicate: what intervals and p-values count: forks, or index builds where there are several.
        builds_baseline, builds_contender: index builds that have a fork with a value; 0 when forks count.
        adjusted_percent, adjusted_low_percent, adjusted_high_percent: the effect with the host probe held
            equal, and its 95 % interval. Never decides.
        adjusted_for: the kernels of the host probe that it was adjusted for.
        adjusted_reason: why there is no adjusted effect; empty when there is one.
    """

    metric: str
    baseline: str
    contender: str
    higher_is_better: bool
    paired: bool
    judged: bool
    n_baseline: int
    n_contender: int
    margin_percent: float
    looks: int = 1
    baseline_value: float | None = None
    contender_value: float | None = None
    effect_percent: float | None = None
    low_percent: float | None = None
    high_percent: float | None = None
    low90_percent: float | None = None
    high90_percent: float | None = None
    p: float | None = None
    p_adjusted: float | None = None
    p_permutation: float | None = None
    p_permutation_least: float | None = None
    p_permutation_exact: bool = True
    verdict: Verdict = "n/a"
    error: float | None = None
    mde_percent: float | None = None
    cv_baseline_percent: float | None = None
    cv_contender_percent: float | None = None
    caveats: tuple[Caveat, ...] = ()
    replicate: Literal["fork", "build"] = "fork"
    builds_baseline: int = 0
    builds_contender: int = 0
    adjusted_percent: float | None = None
    adjusted_low_percent: float | None = None
    adjusted_high_percent: float | None = None
    adjusted_for: str = ""
    adjusted_reason: str = ""
    provisional: bool = False

    @property
    def replicates(self) -> tuple[int, int]:
        """How many values of each side the interval rests on: forks, or index builds."""
        if self.replicate == "build":
            return self.builds_baseline, self.builds_contender
        return self.n_baseline, self.n_contender

    @property
    def direction(self) -> Literal["faster", "slower"] | None:
        """Which way the contender differs; None without an effect."""
        if not self.effect_percent:
            return None
        return "faster" if (self.effect_percent > 0) == self.higher_is_better else "slower"


def compare(  # noqa: PLR0913 - what was declared about two sides, by name
    baseline_values: Sequence[float],
    contender_values: Sequence[float],
    *,
    higher_is_better: bool,
    margin: float,
    paired: bool = False,
    judged: bool = True,
    metric: str = "",
    baseline: str = "baseline",
    contender: str = "contender",
    builds: tuple[Sequence[int], Sequence[int]] | None = None,
    looks: int = 1,
) -> Comparison:
    """Compare one value a fork of two variants; the p-value is adjusted as a family of one until `adjust`.

    Values that are not positive and finite are no measurements: they are left out, said so, and no verdict is
    given, because a fork rarely fails by chance. In pairs the partner is left out too.

    Args:
        baseline_values: one value a fork.
        contender_values: the same; in the order of the pairs when paired.
        higher_is_better: which way is faster.
        margin: relative difference that does not matter in practice, above 0.
        paired: use the differences within pairs, as declared before the run.
        judged: False to show the figures without a verdict.
        metric: machine name.
        baseline: name of the first variant.
        contender: name of the second.
        builds: the index build of each value, by side, where the build is the unit of replication: then means
            over the forks of a build are compared. Alike on both sides when paired. None to compare forks.
        looks: at the figures so far, as `spread` takes them.

    Raises:
        ValueError: paired values of different number.
    """
    if paired:
        left, right = Series.pairs(baseline_values, contender_values)
    else:
        left, right = Series.of(baseline_values), Series.of(contender_values)
    blank = Comparison(
        metric=metric,
        baseline=baseline,
        contender=contender,
        higher_is_better=higher_is_better,
        paired=paired,
        judged=judged,
        n_baseline=left.forks,
        n_contender=right.forks,
        looks=looks,
        margin_percent=100 * margin,
        baseline_value=left.value,
        contender_value=right.value,
        cv_baseline_percent=left.cv_percent,
        cv_contender_percent=right.cv_percent,
        caveats=tuple(
            caveat.missing_values(name, side.missing, side.missing + side.forks)
            for name, side in ((baseline, left), (contender, right))
            if side.missing and side.forks
        ),
    )
    if builds is None:
        return judge(_tested(blank, left.logs, right.logs))
    nests = [side.nested(numbers) for side, numbers in zip((left, right), builds, strict=True)]
    blank = msgspec.structs.replace(
        blank,
        replicate="build",
        builds_baseline=len(nests[0].forks),
        builds_contender=len(nests[1].forks),
        baseline_value=nests[0].value,
        contender_value=nests[1].value,
    )
    return judge(_tested(blank, nests[0].means, nests[1].means))


def adjust(comparisons: Sequence[Comparison], *, method: Method = "benjamini-hochberg") -> list[Comparison]:
    """Adjust the p-values of one family, the tasks of one metric, and give the verdicts that follow.

    Comparisons that get no verdict are not part of the family.

    Args:
        comparisons: of one metric, in any order.
        method: Benjamini-Hochberg for tables, Holm for a gate.

    Returns:
        The same comparisons in the same order.
    """
    family = [(place, one.p) for place, one in enumerate(comparisons) if _testable(one) and one.p is not None]
    adjusted = dict(
        zip((place for place, _ in family), adjusted_p([p for _, p in family], method), strict=True)
    )
    return [judge(one, adjusted.get(place)) for place, one in enumerate(comparisons)]


def judge(comparison: Comparison, p_adjusted: float | None = None) -> Comparison:
    """Give the verdict: the first rule that holds.

    Args:
        comparison: with its test done.
        p_adjusted: of its family; None for a family of one.
    """
    if not _testable(comparison):
        withheld: Verdict = "insufficient" if _too_few(comparison) else "n/a"
        return msgspec.structs.replace(comparison, p_adjusted=None, verdict=withheld)
    p = comparison.p if p_adjusted is None else p_adjusted
    return msgspec.structs.replace(comparison, p_adjusted=p, verdict=_verdict(comparison, p))


def _verdict(comparison: Comparison, p: float | None) -> Verdict:
    low, high = comparison.low90_percent, comparison.high90_percent
    if p is None or low is None or high is None:
        return "insufficient"
    # The margin is a ratio, alike in both directions: +5 % and its inverse, -4.76 %.
    above = comparison.margin_percent
    below = as_percent(-math.log1p(comparison.margin_percent / 100))
    looked_on = comparison.looks == EVERY_BLOCK
    if looked_on and min(comparison.replicates) < FIRST_LOOK:
        return "inconclusive"
    seen = not looked_on or min(comparison.replicates) >= BLOCKS_FOR_EQUIVALENCE
    if below < low and high < above and seen:
        return "equivalent"
    if p > LEVEL:
        return "inconclusive"
    if low > above or high < below:
        return comparison.direction or "different"
    return "different"


def _tested(blank: Comparison, baseline: Floats, contender: Floats) -> Comparison:
    """Fill in the effect, and with two replicates a side and more, everything that rests on their spread."""
    if baseline.size == 0 or contender.size == 0:
        return blank
    effect = float(contender.mean() - baseline.mean())
    blank = msgspec.structs.replace(blank, effect_percent=as_percent(effect))
    fewest = min(baseline.size, contender.size)
    if fewest == 1:
        sides = {blank.baseline: baseline.size, blank.contender: contender.size}
        alone = caveat.single_build if blank.replicate == "build" else caveat.single_fork
        return _doubting(blank, alone(sides))
    found = spread(baseline, contender, paired=blank.paired, looks=blank.looks)
    if found is None:
        return _doubting(blank, caveat.no_spread())
    cross = permutation_p(baseline, contender, paired=blank.paired)
    tested = msgspec.structs.replace(
        blank,
        low_percent=as_percent(found.interval95[0]),
        high_percent=as_percent(found.interval95[1]),
        low90_percent=as_percent(found.interval90[0]),
        high90_percent=as_percent(found.interval90[1]),
        p=found.p,
        error=found.error,
        mde_percent=as_percent(found.mde),
        p_permutation=cross.p,
        p_permutation_least=cross.least,
        p_permutation_exact=cross.exact,
    )
    if fewest < FORKS_FOR_VERDICT:
        few = caveat.few_builds if blank.replicate == "build" else caveat.few_forks
        return _doubting(tested, few(fewest, FORKS_FOR_VERDICT))
    # Of five pairs, no arrangement is as rare as the level, whatever they show. It does not know of looks.
    telling = blank.looks == 1 and fewest >= _FORKS_FOR_CROSS_CHECK and cross.least <= LEVEL
    if telling and (found.p <= LEVEL) != (cross.p <= LEVEL):
        return _doubting(tested, caveat.permutation_disagrees(found.p, cross.p))
    return tested


def _testable(comparison: Comparison) -> bool:
    return comparison.judged and comparison.effect_percent is not None and not _too_few(comparison)


def _too_few(comparison: Comparison) -> bool:
    """Something was measured that deserves a verdict, but not well enough for one."""
    if not comparison.judged or comparison.effect_percent is None:
        return False
    few = min(comparison.replicates) < FORKS_FOR_VERDICT
    # Few requests are a doubt about the row, unless a side's figure is the extreme of them.
    unfit = any(doubt.code in {"few-samples", "missing-values"} for doubt in comparison.caveats)
    return few or unfit or comparison.p is None


def _doubting(comparison: Comparison, doubt: Caveat) -> Comparison:
    return msgspec.structs.replace(comparison, caveats=(*comparison.caveats, doubt))


def as_percent(log_ratio: float) -> float:
    """A difference of natural logarithms as a change in percent."""
    return 100 * math.expm1(min(log_ratio, _LARGEST_LOG))
