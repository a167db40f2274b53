"""Curves of a sweep: what is at every point, what depends on the point, and values at equal recall.

The unit is the block, as everywhere: ratios of points, and values at a recall, are formed within each block,
and the t-test is over the blocks (Matthews, Altman, Campbell and Royston, BMJ 300, 1990: summary measures).
So it needs no model of how the points of a block hang together.
"""

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import groupby, islice
from types import MappingProxyType
from typing import Final

import msgspec

from benchctl.results.model import Looks
from benchctl.results.plan import Plan
from benchctl.stats.analysis import (
    AtRecall,
    Bounded,
    Figures,
    RecallLine,
    Row,
    SweepAxis,
    SweepCurve,
    SweepLine,
    SweepPair,
    weaknesses,
)
from benchctl.stats.caveat import WITHHOLDING, Caveat, CaveatCode, Replicate
from benchctl.stats.compare import DECIDED, Comparison, Side, adjust, compare_sides, own_interval
from benchctl.stats.inference import Method
from benchctl.stats.metrics import RECALL, Metric, MetricKey, metric_of
from benchctl.stats.outlook import with_outlooks

TARGETS: Final = (0.90, 0.95, 0.99)
"""Recalls that values are compared at."""
_LEAST_RISE = 0.01
# Added to the share of neighbours that is missed, so that none has a logarithm.
_MISSED = 0.001
# Doubts about a point that hold for what is compared with it.
_INHERITED: Final[frozenset[CaveatCode]] = frozenset({"too-few-samples", "busy-host"})

ByBlock = Mapping[int, float | None]
"""Block -> the value of that block's fork; None, or absent, where it has none.

Where index builds are the unit of replication: build -> the mean of its forks.
"""
_Points = Sequence[Mapping[int, float]]


def sweep_curve(  # noqa: PLR0913 - values and what they are held against, by name
    values: Mapping[str, Sequence[ByBlock]],
    axis: SweepAxis,
    *,
    task: str,
    metric: MetricKey,
    challenge: str = "",
    unit: str = "",
    comparisons: Sequence[Sequence[Comparison]] = (),
    caveats: Sequence[tuple[Caveat, ...]] = (),
    remarks: Mapping[str, Sequence[tuple[str, ...]]] = MappingProxyType({}),
    margin: float | None = None,
    within: bool = True,
    looks: Looks = 1,
    replicate: Replicate = "fork",
    recalls: Mapping[str, Sequence[ByBlock]] = MappingProxyType({}),
) -> SweepCurve:
    """Compare what several variants came to along an axis.

    p-values of changes, interactions and values at equal recall are not adjusted yet: see `judged_curves`.

    Args:
        values: variant -> by point, what the forks of each block came to; the baseline first.
        axis: its points.
        task: its label.
        metric: machine name.
        challenge: its name.
        unit: of the values; empty for the metric's own.
        comparisons: by point, every further variant against the first.
        caveats: by point, doubts about what was measured there.
        remarks: variant -> by point, what must stand beside its value.
        margin: relative difference that does not matter; None for the metric's own.
        within: whether a fork has all points.
        looks: how often the figures were looked at.
        replicate: what the keys of the values count.
        recalls: as `values`, the recall of the same searches; empty where they have none.

    Raises:
        ValueError: If the points are not as many as the values.
    """
    if any(len(points) != len(axis.labels) for points in values.values()):
        raise ValueError(f"not every variant has {len(axis.labels)} points")
    known = metric_of(metric)
    compared_as = next((one.compared_as for point in comparisons for one in point), known.compared_as)
    known = msgspec.structs.replace(
        known, margin=known.margin if margin is None else margin, compared_as=compared_as
    )
    lines = {name: _numbers(line) for name, line in values.items()}
    reached = {name: _numbers(line) for name, line in recalls.items()}
    if known.kind.additive or not (axis.numbers and any(map(_rises, reached.values()))):
        reached = {}
    beside = tuple(tuple(remarks.get(name, ())) for name in lines)
    comparing = _Comparing(axis, known, comparisons, caveats, beside, looks, replicate)
    of_recall = msgspec.structs.replace(comparing, metric=RECALL)
    baseline, *others = lines
    # Where recall rises, it is at equal recall that variants are compared.
    further = () if reached else range(1, len(axis.labels))
    told = tuple(map(tuple, comparisons))
    # Points that are variants of a single one are compared as variants.
    if further and within and not others:
        told = ((), *((comparing.change(lines[baseline], at),) for at in further))
    return SweepCurve(
        task=task,
        challenge=challenge,
        metric=metric,
        unit=unit or known.unit,
        higher_is_better=known.higher_is_better,
        axis=axis,
        lines=tuple(
            SweepLine(
                variant=name,
                means=tuple(comparing.mean(list(point.values())) for point in points),
                forks=tuple(
                    Side.plain([*point.values()], additive=known.kind.additive).points.size
                    for point in points
                ),
                remarks=said,
                recall=tuple(of_recall.mean(list(point.values())) for point in reached.get(name, ())),
            )
            for (name, points), said in zip(lines.items(), beside, strict=True)
        ),
        pairs=tuple(
            SweepPair(
                baseline,
                name,
                tuple(
                    comparing.interaction({side: lines[side] for side in (baseline, name)}, number, at)
                    for at in further
                    if not known.kind.additive
                ),
            )
            for number, name in enumerate(others, 1)
        ),
        comparisons=told,
        caveats=tuple(caveats),
        at_recall=tuple(comparing.at_recall(target, lines, reached) for target in TARGETS if reached),
    )


def _numbers(line: Sequence[ByBlock]) -> _Points:
    return [{block: math.nan if value is None else value for block, value in point.items()} for point in line]


class _Comparing(msgspec.Struct, frozen=True):
    """Comparisons of the lines of a curve; means are arithmetic where comparisons are of such."""

    axis: SweepAxis
    metric: Metric
    comparisons: Sequence[Sequence[Comparison]]
    caveats: Sequence[tuple[Caveat, ...]]
    remarks: Sequence[Sequence[tuple[str, ...]]]  # by line and point
    looks: Looks
    replicate: Replicate

    def mean(self, values: Sequence[float]) -> Bounded | None:
        """Return the mean over forks with its interval; None without values."""
        side = Side.plain(values, additive=self.metric.additive)
        ends = own_interval(values, additive=self.metric.additive) or (None, None)
        return None if side.value is None else Bounded(side.value, *ends)

    def change(self, points: _Points, at: int) -> Comparison:
        """Compare a point of a line with its first one."""
        zeros = any(value == 0 for point in points for value in point.values())
        metric = msgspec.structs.replace(self.metric, zeros=zeros)
        sides = {self.axis.labels[place]: points[place] for place in (0, at)}
        return self._compared(metric, sides, {0: (0, at)})

    def interaction(self, lines: Mapping[str, _Points], number: int, at: int) -> Comparison:
        """Compare the first line with a numbered one by their ratios of a point to the first point."""
        sides = {
            name: {
                block: points[at][block] / (value or math.nan)
                for block, value in points[0].items()
                if block in points[at]
            }
            for name, points in lines.items()
        }
        # A ratio of ratios is none of differences, whatever readers are told at the points.
        metric = msgspec.structs.replace(self.metric, compared_as="ratio")
        return self._compared(metric, sides, {0: (0, at), number: (0, at)})

    def at_recall(
        self, target: float, lines: Mapping[str, _Points], recalls: Mapping[str, _Points]
    ) -> AtRecall:
        """Compare lines where they reach a recall."""
        found = {
            name: _line_at(target, name, recalls[name], points, self.axis, self.mean)
            for name, points in lines.items()
        }
        baseline, *others = found
        places = {name: tuple(map(self.axis.labels.index, line.between)) for name, (line, _) in found.items()}
        comparisons = tuple(
            self._compared(
                self.metric,
                {side: found[side][1] for side in (baseline, name)},
                {0: places[baseline], number: places[name]},
            )
            for number, name in enumerate(others, 1)
        )
        return AtRecall(target, tuple(line for line, _ in found.values()), comparisons)

    def _compared(
        self,
        metric: Metric,
        sides: Mapping[str, Mapping[int, float]],
        used: Mapping[int, Collection[int]],
    ) -> Comparison:
        """Compare values by block that are made of these points, by number of the line.

        It is provisional, should it get a verdict, if blocks are few or one of the points is weak.
        """
        # Builds have one value each, and are numbered by themselves.
        first, other = (
            Side(label, tuple(values), tuple(values.values()), tuple(values), additive=metric.additive)
            for label, values in sides.items()
        )
        places = sorted(set().union(*used.values()))
        doubts = [doubt for at in places for doubt in (self.caveats[at] if self.caveats else ())]
        told = [one for at in places for one in (self.comparisons[at] if self.comparisons else ())]
        comparison = compare_sides(
            metric,
            first,
            other,
            paired=True,
            judged=all(one.judged for one in told) and not any(one.code in WITHHOLDING for one in doubts),
            replicate=self.replicate,
            looks=self.looks,
        )
        weak = comparison.few or any(doubt.code == "busy-host" for doubt in doubts)
        weak |= any(self.remarks[line][at] for line, own in used.items() if self.remarks[line] for at in own)
        own = dict.fromkeys(doubt for doubt in doubts if doubt.code in _INHERITED)
        return msgspec.structs.replace(comparison, caveats=(*comparison.caveats, *own), provisional=weak)


# Values at equal recall, along an axis on which recall rises. The recall of a block may waver from point to
# point. So the first point that reaches a recall counts, with the one before it: those that anybody would end
# with who raises, say, the candidates until the recall suffices. No line is fitted to all points, and nothing
# is known of recalls that these do not enclose.


def value_at(
    target: float, recalls: Sequence[float], values: Sequence[float]
) -> tuple[float, tuple[int, ...]]:
    """Return the value at a recall, and the points that it lies between.

    There, ln(value) is linear in the logarithm of the share that is missed: both go by powers of the
    candidates. On points twice as far as the ones before, a straight line in recall would be off by 4%.

    `recalls` and `values` are by point, NaN for none; so is the value where no two neighbouring points
    enclose the target.
    """
    place = next((place for place, recall in enumerate(recalls) if recall >= target), 0)
    if recalls[place] == target:
        return values[place], (place,)
    if not (place and recalls[place - 1] < target):
        return math.nan, ()
    around = (recalls[place - 1], target, recalls[place])
    below, at, above = (math.log(1 + _MISSED - recall) for recall in around)
    low, high = (math.log(value) if value > 0 else math.nan for value in values[place - 1 : place + 1])
    return math.exp(low + (below - at) / (below - above) * (high - low)), (place - 1, place)


def _line_at(
    target: float,
    variant: str,
    recalls: _Points,
    points: _Points,
    axis: SweepAxis,
    mean: Callable[[Sequence[float]], Bounded | None],
) -> tuple[RecallLine, dict[int, float]]:
    """A line at a recall, and its values by block, NaN where these do not reach it."""
    values: dict[int, float] = {}
    used: set[int] = set()
    lacking: list[list[float]] = []
    for block in sorted(set().union(*points)):
        own, at = ([point.get(block, math.nan) for point in line] for line in (recalls, points))
        values[block], places = value_at(target, own, at)
        if math.isnan(values[block]):
            lacking.append(own)
        else:
            used.update(places)
    between = tuple(axis.labels[place] for place in sorted(used))
    reason = _reason(target, lacking, axis) if lacking else ""
    reached = len(values) - len(lacking)
    return RecallLine(variant, mean([*values.values()]), reached, len(values), between, reason), values


def _rises(recalls: _Points) -> bool:
    """Return whether recall, by point, is higher by a hundredth or more than at the first, over blocks."""
    known = [[value for value in point.values() if not math.isnan(value)] for point in recalls]
    means = [math.fsum(values) / len(values) for values in known if values]
    return bool(means) and max(means) - means[0] >= _LEAST_RISE


def _reason(target: float, lacking: Sequence[Sequence[float]], axis: SweepAxis) -> str:
    """`already 0.97 at candidates 10`, `not reached: 0.93 at candidates 200`: what most such blocks lack."""
    points = [[point for point in zip(own, axis.labels, strict=True) if point[0] >= 0] for own in lacking]
    early = [own[0] for own in points if own and own[0][0] > target]
    short = [best for own in points if own and (best := max(own, key=lambda point: point[0]))[0] < target]
    if not early and not short:
        return "values are missing"
    word, (recall, label) = (
        ("already", min(early)) if len(early) >= len(short) else ("not reached:", max(short))
    )
    # In thousandths, never rounded up to what it does not reach.
    return f"{word} {math.floor(round(1000 * recall, 6)) / 1000:g} at {axis.name} {label}"


# Verdicts.


def judged_curves(
    curves: Sequence[SweepCurve], method: Method = "benjamini-hochberg"
) -> Iterator[SweepCurve]:
    """Yield curves, which come metric by metric, with verdicts on changes, interactions and at equal recall.

    p-values of each are adjusted over the metric, with Holm's method over all.
    """
    families = (
        [(curve.metric, one) for curve in curves for one in curve.changes],
        [(curve.metric, one) for curve in curves for pair in curve.pairs for one in pair.interactions],
        [(curve.metric, one) for curve in curves for level in curve.at_recall for one in level.comparisons],
    )
    changes, interactions, levels = (
        (
            msgspec.structs.replace(one, provisional=one.provisional and one.verdict in DECIDED)
            for _, family in groupby(pairs, lambda pair: method == "holm" or pair[0])
            for one in with_outlooks(adjust([one for _, one in family], method=method), method)
        )
        for pairs in families
    )

    def judged(own: Sequence[Comparison], family: Iterator[Comparison]) -> tuple[Comparison, ...]:
        return tuple(islice(family, len(own)))

    for curve in curves:
        alone = not curve.pairs
        yield msgspec.structs.replace(
            curve,
            comparisons=tuple(judged(point, changes) if alone else point for point in curve.comparisons),
            pairs=tuple(
                msgspec.structs.replace(pair, interactions=judged(pair.interactions, interactions))
                for pair in curve.pairs
            ),
            at_recall=tuple(
                msgspec.structs.replace(level, comparisons=judged(level.comparisons, levels))
                for level in curve.at_recall
            ),
        )


# The curves of a run: every task and metric of a sweep, as the rows of its analysis have them.

_Sides = dict[str, dict[str, tuple[Row, Figures]]]
"""Variant -> value of the axis -> the row and its side."""


def swept_curves(
    rows: Sequence[Row],
    plan: Plan,
    *,
    margins: Mapping[MetricKey, float],
    method: Method,
    looks: Looks,
) -> Iterator[SweepCurve]:
    """Yield every task and metric of a sweep along its axis."""
    yield from judged_curves(list(_curves(rows, plan, margins, looks=looks)), method)


def _curves(
    rows: Sequence[Row], plan: Plan, margins: Mapping[MetricKey, float], *, looks: Looks
) -> Iterator[SweepCurve]:
    swept = plan.swept
    # Of a run that is compared at one point, no axis is left.
    if swept is None or not swept.axes:
        return
    if {side.variant for row in rows for side in row.figures} != swept.variants.keys():
        return
    (axis,) = swept.axes
    found: dict[tuple[tuple[str, int, str], MetricKey, str], _Sides] = {}
    for row in rows:
        of = swept.schedules[row.schedule]
        key = (of.of, row.task, row.label), row.metric, row.unit
        for side in row.figures:
            variant = swept.variants[side.variant]
            value = {**of.at, **variant.at}[axis.name]
            found.setdefault(key, {}).setdefault(variant.of, {})[value] = row, side
    recalls = {place: lines for (place, metric, _), lines in found.items() if metric == RECALL.key}
    for (place, metric, unit), lines in found.items():
        challenge, _, label = place
        additive = metric_of(metric).kind.additive
        # A task may be none of the metric at some points: closed loops have no latency of their own.
        values = [value for value in axis.values if any(value in one for one in lines.values())]
        points = [[lines[name][value] for name in lines] for value in values]
        reached = recalls.get(place, {})
        yield sweep_curve(
            {
                name: [_by_unit(point[number][1], additive=additive) for point in points]
                for number, name in enumerate(lines)
            },
            SweepAxis(
                axis.name,
                tuple(value or "none" for value in values),
                tuple(
                    number
                    for value, number in zip(axis.values, axis.numbers, strict=False)
                    if value in values
                ),
            ),
            task=label,
            metric=metric,
            challenge=challenge,
            unit=unit,
            # Points of a single variant are compared with the first one, which rows tell.
            comparisons=[
                [one for row, side in point for one in row.comparisons if one.contender == side.variant]
                for point in points
                if len(lines) > 1
            ],
            caveats=[
                tuple(dict.fromkeys(doubt for row, _ in point for doubt in row.caveats)) for point in points
            ],
            remarks={
                name: [weaknesses([point[number][1]], point[number][0].caveats) for point in points]
                for number, name in enumerate(lines)
            },
            margin=margins.get(metric),
            within=not any(variant.at for variant in swept.variants.values()),
            looks=looks,
            replicate="build" if any(side.units for point in points for _, side in point) else "fork",
            recalls={
                name: [_by_unit(own[value][1], additive=True) if value in own else {} for value in values]
                for name, own in reached.items()
                if reached.keys() == lines.keys()
            },
        )


def _by_unit(side: Figures, *, additive: bool) -> ByBlock:
    """The values of a side by block, or where builds of the index are what counts, their means by build."""
    if not side.units:
        return dict(zip(side.blocks, side.values, strict=True))
    by_build: dict[int, list[float]] = {}
    for build, value in zip(side.units, side.values, strict=True):
        by_build.setdefault(build, []).append(math.nan if value is None else value)
    return {build: Side.plain(values, additive=additive).value for build, values in by_build.items()}
