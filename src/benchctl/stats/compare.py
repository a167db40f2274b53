"""Values of forks, one side and two: means, index builds, effect, interval, p and verdict."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

import msgspec
import numpy as np

from benchctl.results.model import FORKS_FOR_VERDICT, ForkRecord, Looks
from benchctl.spec import ComparedAs
from benchctl.stats.caveat import Caveat, CaveatCode, Replicate, missed_percent
from benchctl.stats.inference import (
    Contrast,
    Floats,
    Integers,
    Mask,
    Method,
    Ratio,
    adjusted_p,
    at_look,
    contrast,
    difference_of,
    p_of_signs,
)
from benchctl.stats.metrics import ForkSummaries, Metric, fork_values


class Side(msgspec.Struct, frozen=True):
    """A variant's forks in one task and metric."""

    label: str
    blocks: tuple[int, ...]
    values: tuple[float, ...]  # one a fork, in the metric's unit; NaN where the fork has none
    units: tuple[int, ...]  # the index build, or run, of each
    # Whether means are arithmetic: of what is often 0, such as pauses, and of what is compared by
    # differences.
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

    @classmethod
    def plain(cls, values: Sequence[float], units: Sequence[int] = (), *, additive: bool = False) -> "Side":
        """From values alone, of blocks that are numbered from 0."""
        numbers = tuple(units) or (0,) * len(values)
        return cls("", tuple(range(len(values))), tuple(values), numbers, additive)

    def within(self, blocks: Iterable[int]) -> "Side":
        """Only the forks of some blocks, in their order; every block has one fork."""
        places = [self.blocks.index(block) for block in blocks]
        return msgspec.structs.replace(
            self,
            blocks=tuple(self.blocks[place] for place in places),
            values=tuple(self.values[place] for place in places),
            units=tuple(self.units[place] for place in places),
        )

    @property
    def usable(self) -> Mask:
        """Mask of values that are measurements: finite, and above 0 if compared by logarithms; shape (n,)."""
        raw = np.asarray(self.values, dtype=np.float64)
        return np.isfinite(raw) & (self.signed | ((raw >= 0) if self.additive else (raw > 0)))

    @property
    def points(self) -> Floats:
        """Natural logarithms of the usable values, or where means are arithmetic, these themselves."""
        usable = np.asarray(self.values, dtype=np.float64)[self.usable]
        return usable if self.additive else np.log(usable)

    @property
    def value(self) -> float | None:
        """Geometric or arithmetic mean; None without values."""
        return _mean(self.points, additive=self.additive)

    @property
    def cv_percent(self) -> float | None:
        """SD over mean of the values themselves; None under two, or when the mean is not above 0."""
        points = self.points
        if points.size <= 1:
            return None
        # Relative to the largest, so that nothing overflows.
        scaled = points if self.additive else np.exp(points - points.max())
        mean = float(scaled.mean())
        return float(100 * scaled.std(ddof=1) / mean) if mean > 0 else None

    def nested(self) -> "Nested":
        """By index build or run."""
        numbers = np.asarray(self.units, dtype=np.int64)[self.usable]
        means, counts = _means_of(self.points, numbers), np.unique(numbers, return_counts=True)[1]
        between, within = _components(self.points, numbers, means, counts)
        value = _mean(means, additive=self.additive)
        if self.additive and value and value > 0:
            between, within = (None if sd is None else sd / value for sd in (between, within))
        return Nested(means, between, within, value)

    def unit_figures(self) -> dict[str, object]:
        """Return what `Figures` has of units: each fork's, the mean over them, and the two spreads."""
        nested = self.nested()
        return {
            "units": self.units,
            "value": nested.value,
            "between_units_percent": None if nested.between_sd is None else 100 * nested.between_sd,
            "within_units_percent": None if nested.within_sd is None else 100 * nested.within_sd,
        }


def _mean(points: Floats, *, additive: bool) -> float | None:
    if points.size == 0:
        return None
    return float(points.mean()) if additive else float(np.exp(points.mean()))


class Nested(msgspec.Struct, frozen=True):
    """A side's forks by build."""

    # Of the points of a build's forks, by number of build, shape (builds,). Every build counts alike,
    # however many forks it has: where forks failed, the means differ in variance, but the variance between
    # them still estimates that of their mean without bias.
    means: Floats
    # Relative standard deviation of builds; 0 when forks explain all of it, None under two builds or when
    # no build has two forks.
    between_sd: float | None
    within_sd: float | None  # of forks on the same build; None when no build has two
    value: float | None  # mean over builds; None without any


def several_builds(done: Mapping[str, Sequence[ForkRecord]]) -> bool:
    """Return whether any fork ran on another build than the first one."""
    return any(fork.index_build > 0 for group in done.values() for fork in group)


def forks_by_build(forks: Sequence[ForkRecord]) -> tuple[int, ...]:
    """Return how many forks ran on each build that has any, by number of build."""
    counts = Counter(fork.index_build for fork in forks)
    return tuple(counts[build] for build in sorted(counts))


def _means_of(points: Floats, numbers: Integers) -> Floats:
    """Return the mean over the forks of each build, shape (builds,), from points of shape (n,)."""
    return np.asarray([points[numbers == build].mean() for build in np.unique(numbers)], dtype=np.float64)


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


_LEAST_FOR_SPREAD = 2


def own_interval(
    values: Sequence[float | None], builds: Sequence[int] = (), *, additive: bool = False
) -> tuple[float, float] | None:
    """Return the 95% t-interval of the mean over forks, in the unit of the values.

    Whether two variants differ is not to be read from whether their intervals overlap: that is what the
    interval of their difference is for.

    Args:
        values: one a fork; what is None, not positive or not finite is left out.
        builds: the index build of every fork; with several builds, their means are the values.
        additive: as of `Side`.

    Returns:
        Low and high; None under two usable values.
    """
    known = [math.nan if value is None else value for value in values]
    side = Side.plain(known, builds, additive=additive)
    logs = side.nested().means if len(set(builds)) > 1 else side.points
    if logs.size < _LEAST_FOR_SPREAD:
        return None
    middle, found = float(logs.mean()), contrast(logs)
    low, high = (middle, middle) if found is None else found.interval(0.95)
    return (max(low, 0.0), high) if additive else (math.exp(low), math.exp(high))


Verdict = Literal["equivalent", "faster", "slower", "different", "inconclusive", "insufficient", "n/a"]
VERDICT_WORDS: dict[str, str] = {"equivalent": "equal"}
HELD_WORDS: dict[str, str] = {**VERDICT_WORDS, "faster": "less", "slower": "more"}
"""Of what is held, such as memory or bytes on disk: it is neither fast nor slow."""
QUALITY_WORDS: dict[str, str] = {**VERDICT_WORDS, "faster": "better", "slower": "worse"}
"""Displayed name of a verdict, if it differs."""
DECIDED: frozenset[Verdict] = frozenset({"equivalent", "faster", "slower", "different"})
LEVEL = 0.05
FORKS_FOR_QUOTING = 5
"""A verdict on fewer is provisional."""
FORKS_FOR_RARE = 12
"""With fewer, `equal` shows the share that it may have missed, and a ratio of means is provisional."""
UNITS: dict[Replicate, str] = {"fork": "forks", "build": "index builds", "run": "runs"}

# exp of more than this is not a float; a ratio that large stands for "beyond all measure".
_LARGEST_LOG = 700.0


class Comparison(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Comparison of a contender with the baseline: percentages of the baseline, unadjusted intervals."""

    metric: str
    baseline: str
    contender: str
    higher_is_better: bool
    paired: bool  # analysed as differences within blocks
    judged: bool
    n_baseline: int
    n_contender: int
    margin_percent: float
    # In the metric's unit, where the difference is judged by it instead of the ratio; else None.
    margin_difference: float | None = None
    # How often the figures were looked at, which p and intervals allow for; None for after every block.
    looks: Looks = 1
    # `baseline_value`, `contender_value`: geometric means over forks, in the metric's unit; None without
    # any. Where index builds or runs count, over the geometric means of these. Arithmetic where there is a
    # difference.
    baseline_value: float | None = None
    contender_value: float | None = None
    effect_percent: float | None = None  # contender / baseline - 1
    # `low_percent`, `high_percent`: 95% interval of the effect; the upper end is None without any.
    low_percent: float | None = None
    high_percent: float | None = None
    # `low90_percent`, `high90_percent`: 90% interval, which decides on equivalence.
    low90_percent: float | None = None
    high90_percent: float | None = None
    # Two-sided, Welch's t or paired t on the logarithms, or on the values where there is a difference; by
    # rearranging forks where a side is 0 in all of them, and None where both are.
    p: float | None = None
    p_adjusted: float | None = None  # for the others of its family; None when it gets no verdict
    # How p was adjusted, and over how many p-values, this one included; None and 1 where it stands alone.
    adjustment: Method | None = None
    family: int = 1
    verdict: Verdict = "n/a"  # from the contender's side: `faster` means that the contender is faster
    # Share of forks, builds or runs that `equivalent` may have missed, whatever they are like: an interval
    # fails just where a rare state was not drawn, so that no data can say so. None from twelve on.
    missed_percent: float | None = None
    # Standard error of the effect, in natural logarithms; None without a test, and where the ratio has
    # none.
    error: float | None = None
    # The difference that this many forks find with 80% power, p adjusted; None outside an analysis.
    mde_percent: float | None = None
    # Forks a side that an open one lacks until its verdict; None where it has one, or it takes too many.
    further: int | None = None
    cv_baseline_percent: float | None = None
    cv_contender_percent: float | None = None
    caveats: tuple[Caveat, ...] = ()
    # What intervals and p-values count: forks, index builds where there are several, runs where those are.
    replicate: Replicate = "fork"
    # `units_baseline`, `units_contender`: builds or runs that have a fork with a value; 0 when forks count.
    units_baseline: int = 0
    units_contender: int = 0
    # A verdict that is not to be quoted: a side had not settled, or has fewer than five forks.
    provisional: bool = False
    # What readers are told: the change in percent, or the difference. The verdict goes by the change, which
    # the margin is one of.
    compared_as: ComparedAs = "ratio"
    # Contender - baseline, arithmetic means over forks, in the metric's unit; None where the means are
    # geometric.
    difference: float | None = None
    # `difference_low`, `difference_high`: its 95% interval.
    difference_low: float | None = None
    difference_high: float | None = None
    # `difference_low90`, `difference_high90`: its 90% interval.
    difference_low90: float | None = None
    difference_high90: float | None = None
    # By how much the engines' difference is larger than that of the figures, which hold the pauses of several
    # clients in a closed loop; what counts as equal has to be so after it.
    stretch: float = 1.0

    @property
    def replicates(self) -> tuple[int, int]:
        """Number of values per variant behind the interval: forks, index builds or runs."""
        if self.replicate == "fork":
            return self.n_baseline, self.n_contender
        return self.units_baseline, self.units_contender

    @property
    def forks_for_quoting(self) -> int:
        """Replicates below which a verdict is provisional: more for ratios of arithmetic means.

        Where 15% of one side's forks take five times as long, six find a wrong difference in .38 of cases.
        """
        of_means = self.difference is not None and self.compared_as == "ratio" and not self.has_zero
        return FORKS_FOR_RARE if of_means else FORKS_FOR_QUOTING

    @property
    def few(self) -> bool:
        """True if there are fewer."""
        return min(self.replicates) < self.forks_for_quoting

    @property
    def gapped(self) -> bool:
        """True if a variant has values in some forks only; gaps are hardly random, so no verdict follows."""
        return any(doubt.code == "missing-values" for doubt in self.caveats)

    @property
    def direction(self) -> Literal["faster", "slower"] | None:
        """Direction in which the contender differs; None if undecided."""
        change = self.effect_percent if self.difference is None else self.difference
        return None if not change else "faster" if (change > 0) == self.higher_is_better else "slower"

    @property
    def has_zero(self) -> bool:
        """True if no ratio or difference can be given because a variant is 0 in every fork.

        There may be a verdict all the same.
        """
        values = self.baseline_value, self.contender_value
        differing = self.compared_as == "difference" and values[0] != values[1]
        return None not in values and 0.0 in values and not differing


def compare_sides(
    metric: Metric,
    baseline: Side,
    contender: Side,
    *,
    paired: bool,
    judged: bool,
    replicate: Replicate,
    looks: Looks = 1,
    stretch: float = 1.0,
) -> Comparison:
    """Compare two variants; the p-value is adjusted as a family of one until `adjust`.

    Values that are not positive and finite are not measurements: they are left out, said so, and no verdict
    is given, because a fork rarely fails by chance. In pairs the partner is left out too.

    Args:
        metric: what is compared, with its margin.
        baseline: values of the first variant; where they are `additive`, the effect is that of arithmetic
            means, by `Ratio`, and there is a difference.
        contender: the same of the second.
        paired: use the differences within the blocks that both finished. Where builds or runs are the unit,
            paired are those of one number, which share their blocks.
        judged: False to show the figures without a verdict.
        replicate: the unit of replication; of builds and runs, means over their forks are compared.
        looks: how often the figures were looked at.
        stretch: by how much, from 1, the difference in question is larger than that of the values.
    """
    if paired:
        common = sorted(set(baseline.blocks) & set(contender.blocks))
        baseline, contender = baseline.within(common), contender.within(common)
    missing = [int((~side.usable).sum()) for side in (baseline, contender)]
    gaps = [
        Caveat(
            "missing-values",
            f"{count} of {len(side.values)} values of {side.label} are missing, which may not be chance: no "
            "verdict",
        )
        for side, count in zip((baseline, contender), missing, strict=True)
        if 0 < count < len(side.values)
    ]
    if paired:
        both = np.asarray(baseline.blocks)[baseline.usable & contender.usable].tolist()
        baseline, contender = baseline.within(both), contender.within(both)
        contender = msgspec.structs.replace(contender, units=baseline.units)
    sides, signed = (baseline, contender), baseline.signed or contender.signed
    points = [side.points for side in sides]
    blank = Comparison(
        metric=metric.key,
        baseline=baseline.label,
        contender=contender.label,
        higher_is_better=metric.higher_is_better,
        paired=paired,
        judged=judged,
        n_baseline=points[0].size,
        n_contender=points[1].size,
        compared_as=metric.compared_as,
        looks=looks,
        stretch=stretch,
        margin_percent=100 * metric.margin,
        baseline_value=baseline.value,
        contender_value=contender.value,
        cv_baseline_percent=baseline.cv_percent,
        cv_contender_percent=contender.cv_percent,
        caveats=tuple(gaps),
    )
    if replicate != "fork":
        nests = [side.nested() for side in sides]
        points = [nest.means for nest in nests]
        blank = msgspec.structs.replace(
            blank,
            replicate=replicate,
            units_baseline=points[0].size,
            units_contender=points[1].size,
            baseline_value=nests[0].value,
            contender_value=nests[1].value,
        )
    return judge(_tested(blank, points[0], points[1], additive=baseline.additive, signed=signed))


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
    how = {"adjustment": method, "family": len(family)} if len(family) > 1 else {}
    return [
        msgspec.structs.replace(judge(one, adjusted.get(place)), **(how if place in adjusted else {}))
        for place, one in enumerate(comparisons)
    ]


def judge(comparison: Comparison, p_adjusted: float | None = None) -> Comparison:
    """Give the verdict: the first rule that holds.

    Args:
        comparison: with its test done.
        p_adjusted: of its family; None for a family of one.
    """
    if not _testable(comparison):
        withheld: Verdict = "insufficient" if _too_few(comparison) else "n/a"
        return msgspec.structs.replace(comparison, p_adjusted=None, verdict=withheld, missed_percent=None)
    p = comparison.p if p_adjusted is None else p_adjusted
    verdict, fewest = _verdict(comparison, p), min(comparison.replicates)
    missed = missed_percent(fewest) if verdict == "equivalent" and fewest < FORKS_FOR_RARE else None
    return msgspec.structs.replace(comparison, p_adjusted=p, verdict=verdict, missed_percent=missed)


def _verdict(comparison: Comparison, p: float | None) -> Verdict:
    low, high = comparison.low90_percent, comparison.high90_percent
    effect, above = comparison.effect_percent, comparison.margin_percent
    # The margin is a ratio, alike in both directions: +5% and its inverse, -4.76%.
    reach = math.log1p(above / 100)
    below = as_percent(-reach)
    least, most = as_percent(-reach / comparison.stretch), as_percent(reach / comparison.stretch)
    if comparison.has_zero:
        low, high = _zero_bounds(comparison)
        effect = low
        # Nothing but zeros cannot be told apart whatever the truth is: it is no test, and adjusts no other.
        p = 1.0 if p is None else p
    elif comparison.margin_difference is not None:
        low, high = comparison.difference_low90, comparison.difference_high90
        effect, above, below = (
            comparison.difference,
            comparison.margin_difference,
            -comparison.margin_difference,
        )
        least, most = below / comparison.stretch, above / comparison.stretch
    if p is None:
        return "insufficient"
    if low is not None and least < low and (math.inf if high is None else high) < most:
        return "equivalent"
    if p > LEVEL:
        return "inconclusive"
    if effect is not None and not below <= effect <= above:
        return comparison.direction or "different"
    return "different"


def _zero_bounds(comparison: Comparison) -> tuple[float, float]:
    """The ratio to or of 0 in percent, which it is if the test says that there is a difference.

    A side of zeros is the same times any factor, so that rearranging forks rejects all other ratios or none.
    """
    if comparison.baseline_value == comparison.contender_value:
        return 0.0, 0.0
    ratio = math.inf if comparison.baseline_value == 0 else as_percent(-math.inf)
    return ratio, ratio


def _tested(
    blank: Comparison, baseline: Floats, contender: Floats, *, additive: bool, signed: bool
) -> Comparison:
    """Fill in the effect, and with two replicates a side and more, everything that rests on their spread."""
    if baseline.size == 0 or contender.size == 0:
        return blank
    means = float(baseline.mean()), float(contender.mean())
    if additive:
        blank = msgspec.structs.replace(blank, difference=means[1] - means[0])
    if blank.has_zero and not signed:
        return _with_zeros(blank, baseline, contender)
    if additive:
        effect = 100 * (means[1] / means[0] - 1) if means[0] > 0 else None
    else:
        effect = as_percent(means[1] - means[0])
    blank = msgspec.structs.replace(blank, effect_percent=effect)
    if min(baseline.size, contender.size) == 1:
        return _doubting_few(blank, baseline.size, contender.size)
    if additive:
        ratio = Ratio.of(baseline, contender, paired=blank.paired, looks=blank.looks)
        tested = None if ratio is None else _on_values(blank, ratio, signed=signed)
    else:
        logs = difference_of(baseline, contender, paired=blank.paired, looks=blank.looks)
        tested = None if logs is None else _on_logs(blank, logs)
    if tested is None:
        text = f"the values of all {blank.replicate}s are identical, so no test is possible"
        return _doubting(blank, "no-spread", text)
    return _doubting_few(tested, baseline.size, contender.size)


def _on_logs(blank: Comparison, found: Contrast) -> Comparison:
    wide, narrow = (found.interval(level) for level in (0.95, 0.90))
    ends = [None if math.isinf(end) else as_percent(end) for end in (*wide, *narrow)]
    return msgspec.structs.replace(
        blank,
        low_percent=ends[0],
        high_percent=ends[1],
        low90_percent=ends[2],
        high90_percent=ends[3],
        p=found.p,
        error=found.error,
    )


def _on_values(blank: Comparison, found: Ratio, *, signed: bool) -> Comparison:
    """The difference, and the ratio as far as the baseline is clearly above 0."""
    wide, narrow = found.difference.interval(0.95), found.difference.interval(0.90)
    tested = msgspec.structs.replace(blank, p=found.p, error=found.log_error)
    if math.isinf(wide[1]):
        return tested
    tested = msgspec.structs.replace(
        tested,
        difference_low=wide[0],
        difference_high=wide[1],
        difference_low90=narrow[0],
        difference_high90=narrow[1],
    )
    floor = -math.inf if signed else 0.0
    (low, high), (low90, high90) = (
        (100 * (max(least, floor) - 1), None if math.isinf(most) else 100 * (most - 1))
        for least, most in (found.bounds(level) for level in (0.95, 0.90))
    )
    text = (
        ""
        if high is not None
        else f"values of {blank.baseline} are so small that the ratio has no upper limit"
    )
    if signed and (high is None or math.isinf(low)):
        tested = msgspec.structs.replace(tested, effect_percent=None, error=None)
        text = f"{blank.baseline} is not clearly above 0: no ratio is possible, only a difference"
    else:
        tested = msgspec.structs.replace(
            tested, low_percent=low, high_percent=high, low90_percent=low90, high90_percent=high90
        )
    return _doubting(tested, "no-ratio", text) if text and blank.compared_as != "difference" else tested


def _with_zeros(blank: Comparison, baseline: Floats, contender: Floats) -> Comparison:
    """Test by rearranging forks: where a side is 0 in all of them, nothing is known of the spread.

    No arrangement lies further apart than this one, so that p follows from the number of those that lie as
    far apart. Looked at after every block, forks are compared in the order of the blocks.
    """
    named = ((blank.baseline, baseline), (blank.contender, contender))
    never = [name for name, side in named if not side.any()]
    fewest = min(baseline.size, contender.size)
    tested = _doubting(
        blank,
        "no-ratio",
        f"0 in every {blank.replicate} of {' and '.join(never)}, so no ratio is possible; what happens in "
        f"{missed_percent(fewest):.0f}% of {blank.replicate}s or fewer may have been missed",
    )
    if len(never) == 1 and fewest > 1:
        tested = msgspec.structs.replace(tested, p=_p_of_zeros(blank, baseline, contender))
    return _doubting_few(tested, baseline.size, contender.size)


def _p_of_zeros(blank: Comparison, baseline: Floats, contender: Floats) -> float:
    if blank.looks is None:
        fewest = min(baseline.size, contender.size)
        differing = np.count_nonzero(baseline[:fewest] != contender[:fewest])
        return p_of_signs(int(differing), 0)
    positive = int(np.count_nonzero(baseline) + np.count_nonzero(contender))
    if blank.paired:
        return at_look(2.0 * 0.5**positive, blank.looks)
    forks, side = baseline.size + contender.size, max(baseline, contender, key=np.count_nonzero).size
    arranged = 2 * math.comb(forks - positive, side - positive) / math.comb(forks, side)
    return at_look(arranged, blank.looks)


def _doubting_few(tested: Comparison, baseline: int, contender: int) -> Comparison:
    if min(baseline, contender) >= FORKS_FOR_VERDICT:
        return tested
    interval = ", an interval 2" if min(baseline, contender) == 1 else ""
    needs = f"a verdict needs {FORKS_FOR_VERDICT} per variant{interval}"
    text = f"too few {UNITS[tested.replicate]} ({baseline} and {contender}): {needs}"
    return _doubting(tested, "few-units", text)


def _testable(comparison: Comparison) -> bool:
    return _measured(comparison) and not _too_few(comparison)


def _measured(comparison: Comparison) -> bool:
    found = comparison.difference if comparison.compared_as == "difference" else comparison.effect_percent
    return comparison.judged and (found is not None or comparison.has_zero)


def _too_few(comparison: Comparison) -> bool:
    """Something was measured that deserves a verdict, but not well enough for one."""
    if not _measured(comparison):
        return False
    few = min(comparison.replicates) < FORKS_FOR_VERDICT
    unfit = comparison.gapped or any(doubt.code == "too-few-samples" for doubt in comparison.caveats)
    return few or unfit or (comparison.p is None and not comparison.has_zero)


def _doubting(comparison: Comparison, code: CaveatCode, text: str) -> Comparison:
    return msgspec.structs.replace(comparison, caveats=(*comparison.caveats, Caveat(code, text)))


def as_percent(log_ratio: float) -> float:
    """Return a difference of natural logarithms as a change in percent."""
    return 100 * math.expm1(min(log_ratio, _LARGEST_LOG))
