"""Sweeps: a figure along an axis such as clients or histories, how it grows, and what depends on the point.

The unit is the block, as everywhere: what is fitted is fitted within each block, and the t-test is over the
blocks' estimates (Matthews, Altman, Campbell and Royston, BMJ 300, 1990: summary measures). So it needs no
model of how the points of a block hang together. Along numbers the estimate is an exponent; between points
without numbers it is the change since the first one, and two variants' changes are compared: the interaction.
"""

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, islice
from types import MappingProxyType
from typing import Final, Literal

import msgspec
import numpy as np

from benchctl.results.model import Looks
from benchctl.results.plan import HISTORY, Axis, Place, Plan, SweepSpec, Swept
from benchctl.stats.analysis import (
    AtRecall,
    Bounded,
    Figures,
    PowerLaw,
    Row,
    SweepAxis,
    SweepCurve,
    SweepLine,
    SweepPair,
    weaknesses,
)
from benchctl.stats.arrays import Floats
from benchctl.stats.caveat import WITHHOLDING, Caveat, CaveatCode, Replicate
from benchctl.stats.compare import (
    DECIDED,
    LEVEL,
    Comparison,
    Series,
    Side,
    adjust,
    compare_sides,
    own_interval,
)
from benchctl.stats.inference import Method, contrast, holm
from benchctl.stats.metrics import RECALL, Metric, MetricKey, metric_of, task_at
from benchctl.stats.order import places_by_history
from benchctl.stats.outlook import with_least_effects
from benchctl.sweep.recall import TARGETS, line_at, rises
from benchctl.track.model import Task

_TWO = 2
_CONFIDENCE = 0.95
# Doubts about a point that hold for what is compared with it.
_INHERITED: Final[frozenset[CaveatCode]] = frozenset({"too-few-samples", "busy-host"})

ByBlock = Mapping[int, float | None]
"""Block -> the value of that block's fork; None, or absent, where it has none.

Where index builds are the unit of replication: build -> the mean of its forks.
"""


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
    margin: float | None = None,
    within: bool = True,
    looks: Looks = 1,
    replicate: Replicate = "fork",
    recalls: Mapping[str, Sequence[ByBlock]] = MappingProxyType({}),
) -> SweepCurve:
    """Fit what several variants came to along an axis.

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
        margin: relative difference that does not matter; None for the metric's own.
        within: whether a fork has all points.
        looks: how often the figures were looked at.
        replicate: what the keys of the values count.
        recalls: as `values`, the recall of the same searches; empty where they have none.

    Raises:
        ValueError: If the points are not as many as the values, or their numbers do not ascend.
    """
    if any(len(points) != len(axis.labels) for points in values.values()):
        raise ValueError(f"not every variant has {len(axis.labels)} points")
    if axis.numbers and (len(axis.numbers) != len(axis.labels) or np.any(np.diff(axis.numbers) <= 0)):
        raise ValueError(f"points that do not ascend: {axis.numbers}")
    known = metric_of(metric)
    compared_as = next((one.compared_as for point in comparisons for one in point), known.compared_as)
    known = msgspec.structs.replace(
        known, margin=known.margin if margin is None else margin, compared_as=compared_as
    )
    fitted = _Fit(axis, known, comparisons, caveats, within, looks, replicate)
    of_recall = msgspec.structs.replace(fitted, metric=RECALL)
    numbers = {name: _numbers(line) for name, line in values.items()}
    reached = {name: _numbers(line) for name, line in recalls.items()}
    if known.kind.additive or not (axis.numbers and any(map(rises, reached.values()))):
        reached = {}
    lines = {name: fitted.usable(points) for name, points in numbers.items()}
    baseline, *others = lines
    # Points that are variants of a single one are compared as variants.
    changing = () if axis.numbers or not (others or within) else range(1, len(axis.labels))
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
                means=tuple(fitted.mean(list(point.values())) for point in numbers[name]),
                forks=tuple(map(len, points)),
                growth=fitted.growth(points),
                changes=tuple(fitted.change(numbers[name], place) for place in changing),
                recall=tuple(of_recall.mean(list(point.values())) for point in reached.get(name, ())),
            )
            for name, points in lines.items()
        ),
        pairs=tuple(
            SweepPair(
                baseline,
                name,
                growth=fitted.growth_apart(lines[baseline], lines[name]),
                interactions=tuple(
                    fitted.interaction({side: numbers[side] for side in (baseline, name)}, place)
                    for place in changing
                    if not known.kind.additive
                ),
            )
            for name in others
        ),
        comparisons=tuple(tuple(point) for point in comparisons),
        caveats=tuple(caveats),
        at_recall=tuple(fitted.at_recall(target, numbers, reached) for target in TARGETS if reached),
    )


_Points = Sequence[Mapping[int, float]]


def _numbers(line: Sequence[ByBlock]) -> _Points:
    return [{block: math.nan if value is None else value for block, value in point.items()} for point in line]


class _Blocks(msgspec.Struct, frozen=True):
    """The blocks that have all points, and which points these are."""

    places: tuple[int, ...]
    values: Floats  # shape (blocks, places)
    left_out: int

    @classmethod
    def of(cls, points: _Points) -> "_Blocks":
        blocks = sorted(set().union(*points))
        places = tuple(place for place, point in enumerate(points) if 2 * len(point) >= max(1, len(blocks)))
        whole = [block for block in blocks if all(block in points[place] for place in places)]
        rows = [[points[place][block] for place in places] for block in whole]
        values = np.asarray(rows, dtype=np.float64).reshape(len(whole), len(places))
        return cls(places, values, len(blocks) - len(whole))


class _Fit(msgspec.Struct, frozen=True):
    """Fit of the lines of a curve; means are arithmetic where comparisons are of such."""

    axis: SweepAxis
    metric: Metric
    comparisons: Sequence[Sequence[Comparison]]
    caveats: Sequence[tuple[Caveat, ...]]
    within: bool
    looks: Looks
    replicate: Replicate

    def usable(self, points: _Points) -> _Points:
        """By point: block -> ln of the value, or where these may be 0, the value itself."""
        found = []
        for point in points:
            series = Series.of(list(point.values()), additive=self.metric.kind.additive)
            kept = (block for block, usable in zip(point, series.kept.tolist(), strict=True) if usable)
            found.append(dict(zip(kept, series.points.tolist(), strict=True)))
        return found

    def mean(self, values: Sequence[float]) -> Bounded | None:
        """Return the mean over forks with its interval; None without values."""
        series = Series.of(values, additive=self.metric.additive)
        ends = own_interval(values, additive=self.metric.additive) or (None, None)
        return None if series.value is None else Bounded(series.value, *ends)

    # Points against the first one.

    def change(self, points: _Points, place: int) -> Comparison:
        """Compare a point with the first one."""
        zeros = any(value == 0 for point in points for value in point.values())
        metric = msgspec.structs.replace(self.metric, zeros=zeros)
        sides = {self.axis.labels[at]: points[at] for at in (0, place)}
        return self._compared(metric, sides, (0, place))

    def interaction(self, lines: Mapping[str, _Points], place: int) -> Comparison:
        """Compare two lines by their ratios of a point to the first one."""
        sides = {
            name: {
                block: points[place][block] / (value or math.nan)
                for block, value in points[0].items()
                if block in points[place]
            }
            for name, points in lines.items()
        }
        # A ratio of ratios is none of differences, whatever readers are told at the points.
        metric = msgspec.structs.replace(self.metric, compared_as="ratio")
        return self._compared(metric, sides, (0, place))

    def at_recall(
        self, target: float, lines: Mapping[str, _Points], recalls: Mapping[str, _Points]
    ) -> AtRecall:
        """Compare lines where they reach a recall."""
        found = {
            name: line_at(target, name, recalls[name], points, self.axis, self.mean)
            for name, points in lines.items()
        }
        baseline, *others = found
        comparisons = []
        for name in others:
            sides = {side: found[side] for side in (baseline, name)}
            labels = {label for line, _ in sides.values() for label in line.between}
            values = {side: values for side, (_, values) in sides.items()}
            places = [place for place, label in enumerate(self.axis.labels) if label in labels]
            comparisons.append(self._compared(self.metric, values, places))
        return AtRecall(target, tuple(line for line, _ in found.values()), tuple(comparisons))

    def _compared(
        self,
        metric: Metric,
        sides: Mapping[str, Mapping[int, float]],
        places: Collection[int],
    ) -> Comparison:
        # Builds have one value each, and are numbered by themselves.
        first, other = (
            Side(label, tuple(values), tuple(values.values()), tuple(values), additive=metric.additive)
            for label, values in sides.items()
        )
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
        own = dict.fromkeys(doubt for doubt in doubts if doubt.code in _INHERITED)
        return msgspec.structs.replace(comparison, caveats=(*comparison.caveats, *own))

    # Growth.

    def growth_apart(self, left: _Points, right: _Points) -> PowerLaw:
        """Fit the second line against the first."""
        return self.growth(
            [
                {block: other[block] - value for block, value in own.items() if block in other}
                for own, other in zip(left, right, strict=True)
            ]
        )

    def growth(self, points: _Points) -> PowerLaw:
        """Fit one line, or the difference of two."""
        blocks = _Blocks.of(points)
        places = list(blocks.places)
        labels = [self.axis.labels[place] for place in places]
        law = PowerLaw(
            blocks=len(blocks.values),
            left_out=blocks.left_out,
            without=tuple(label for label in self.axis.labels if label not in labels),
        )
        if refused := self._no_power():
            return msgspec.structs.replace(law, reason=refused)
        if len(places) < _TWO or not law.blocks:
            lacking = (
                "no block has all points" if len(places) >= _TWO else "fewer than two points have values"
            )
            return msgspec.structs.replace(law, reason=lacking)
        x = np.log(self.axis.numbers)[places]
        steps = np.diff(np.eye(len(x)), axis=0) / np.diff(x)[:, None]
        exponent = self._estimate(blocks, (x - x.mean()) / np.square(x - x.mean()).sum())
        reason = ""
        if exponent.low is None:
            reason = "only one block has all points" if law.blocks == 1 else self._no_interval()
        misfit_p, misfit = self._misfit(blocks, x)
        return msgspec.structs.replace(
            law,
            exponent=exponent,
            steps=tuple(
                (*ends, self._estimate(blocks, step))
                for *ends, step in zip(labels, labels[1:], steps, strict=False)
            ),
            misfit_p=misfit_p,
            misfit=misfit,
            reason=reason,
        )

    def _no_power(self) -> str:
        """Return why this metric on this axis cannot be a power of it; empty when it can."""
        if self.metric.kind.additive:
            return "values may be 0, and nothing is a multiple of 0"
        if not self.axis.numbers:
            return f"points of {self.axis.name} are not numbers"
        return f"{self.axis.name} {self.axis.labels[0]} has no logarithm" if self.axis.numbers[0] <= 0 else ""

    def _no_interval(self) -> str:
        few = "fewer than 5 blocks, or " if self.looks is None else ""
        return f"{few}nothing varies between blocks"

    def _estimate(self, blocks: _Blocks, weights: Floats) -> Bounded:
        """A weighted sum of a block's points, over blocks."""
        values = blocks.values @ weights
        found = contrast([values], [1], looks=self.looks)
        if found is None:
            return Bounded(float(values.mean()))
        low, high = found.interval(_CONFIDENCE)
        return Bounded(found.estimate) if math.isinf(high) else Bounded(found.estimate, low, high)

    def _misfit(
        self, blocks: _Blocks, x: Floats
    ) -> tuple[float | None, Literal["", "rises", "falls", "changes"]]:
        """Test what a straight line leaves over, by orthogonal polynomials of degree 2 and up.

        Each is a t-test over blocks, and they are adjusted by Holm's method, since Hotelling's test of all at
        once takes more blocks than points.
        """
        scaled = (x - x.mean()) / (x[-1] - x[0])
        basis, upper = np.linalg.qr(np.vander(scaled, increasing=True))
        polynomials = (basis * np.sign(np.diag(upper))).T[_TWO:]
        found = [contrast([blocks.values @ weights], [1], looks=self.looks) for weights in polynomials]
        if not found or None in found:
            return None, ""
        tested = [one for one in found if one is not None]
        adjusted = holm([one.p for one in tested])
        least = min(adjusted)
        if least > LEVEL:
            return least, ""
        if adjusted[0] > LEVEL:
            return least, "changes"
        return least, "rises" if tested[0].estimate > 0 else "falls"


def judged_curves(
    curves: Sequence[SweepCurve], method: Method = "benjamini-hochberg"
) -> Iterator[SweepCurve]:
    """Yield curves, which come metric by metric, with verdicts on changes, interactions and at equal recall.

    p-values of each are adjusted over the metric, with Holm's method over all. What few blocks or a weak
    point decide is provisional.
    """
    families = (
        [(curve.metric, one) for curve in curves for line in curve.lines for one in line.changes],
        [(curve.metric, one) for curve in curves for pair in curve.pairs for one in pair.interactions],
        [(curve.metric, one) for curve in curves for level in curve.at_recall for one in level.comparisons],
    )
    changes, interactions, levels = (
        (
            one
            for _, family in groupby(pairs, lambda pair: method == "holm" or pair[0])
            for one in with_least_effects(adjust([one for _, one in family], method=method), method)
        )
        for pairs in families
    )
    for curve in curves:
        lines = tuple(
            msgspec.structs.replace(
                line, changes=tuple(_marked(curve, (number,), changes, len(line.changes)))
            )
            for number, line in enumerate(curve.lines)
        )
        pairs = tuple(
            msgspec.structs.replace(
                pair, interactions=tuple(_marked(curve, (0, number), interactions, len(pair.interactions)))
            )
            for number, pair in enumerate(curve.pairs, 1)
        )
        at_recall = tuple(
            msgspec.structs.replace(level, comparisons=tuple(_marked_level(curve, level, levels)))
            for level in curve.at_recall
        )
        yield msgspec.structs.replace(curve, lines=lines, pairs=pairs, at_recall=at_recall)


def _marked(
    curve: SweepCurve, numbers: tuple[int, ...], comparisons: Iterator[Comparison], count: int
) -> Iterator[Comparison]:
    """The next comparisons of points with the first, of numbered lines, marked if they are provisional."""
    for place, comparison in enumerate(islice(comparisons, count), 1):
        yield _weakened(curve, comparison, dict.fromkeys(numbers, (0, place)))


def _marked_level(
    curve: SweepCurve, level: AtRecall, comparisons: Iterator[Comparison]
) -> Iterator[Comparison]:
    """The next comparisons of lines at a recall, marked by the points that these lie between."""
    places = [tuple(map(curve.axis.labels.index, line.between)) for line in level.lines]
    for number, comparison in enumerate(islice(comparisons, len(level.comparisons)), 1):
        yield _weakened(curve, comparison, {0: places[0], number: places[number]})


def _weakened(curve: SweepCurve, comparison: Comparison, used: Mapping[int, Collection[int]]) -> Comparison:
    remarks = {number: curve.lines[number].remarks for number in used if curve.lines[number].remarks}
    weak = (
        comparison.few
        or any(doubt.code == "busy-host" for doubt in comparison.caveats)
        or any(points[place] for number, points in remarks.items() for place in used[number])
    )
    return msgspec.structs.replace(comparison, provisional=weak and comparison.verdict in DECIDED)


# The curves of a run: every task and metric of a sweep, as the rows of its analysis have them.

_FEWEST_POINTS = 3

_Curve = tuple[str, int, str, MetricKey, str, str]
"""(challenge, task, label, metric, unit, the other axes) of a curve."""


def swept_curves(
    rows: Sequence[Row],
    plan: Plan,
    *,
    margins: Mapping[MetricKey, float],
    method: Method,
    looks: Looks,
) -> Iterator[SweepCurve]:
    """Yield every task and metric of a sweep along its first axis, at each point of the others.

    So is every `clients_list` of a challenge, a sweep over clients within a fork, every parameter of a
    microbenchmark with three numbers or more, and without a sweep, every operation that runs after different
    tasks.
    """
    yield from judged_curves(list(_curves(rows, plan, margins, looks=looks)), method)


def _curves(
    rows: Sequence[Row], plan: Plan, margins: Mapping[MetricKey, float], *, looks: Looks
) -> Iterator[SweepCurve]:
    swept = plan.swept or SweepSpec((), plan.variants, {}, ())
    if swept.variants and {side.variant for row in rows for side in row.figures} != swept.variants.keys():
        return
    histories = _history_axes(plan, dict.fromkeys((row.schedule, row.task) for row in rows))
    derived = {own.axis for own in histories.values()}
    of_variants = {name for variant in swept.variants.values() for name in variant.at}
    found: dict[tuple[_Curve, Axis], dict[str, dict[str, tuple[Row, Figures]]]] = {}
    for row in rows:
        of = swept.schedules[row.schedule] if swept.schedules else Swept(row.challenge)
        own = _own_axis(plan, row) or histories.get((row.schedule, row.task))
        # Whether something depends on the history comes before how it grows.
        by_history = [axis for axis in swept.axes[:1] if axis.name == HISTORY]
        axes = [*by_history, *((own.axis,) if own else ()), *swept.axes[len(by_history) :]]
        for side in row.figures if axes else ():
            first, *others = axes
            variant = swept.variants.get(side.variant, Swept(side.variant))
            at = {**({own.axis.name: own.value} if own else {}), **of.at, **variant.at}
            fixed = ", ".join(f"{axis.name} {at[axis.name] or 'none'}" for axis in others)
            curve_of = (of.of, row.task, row.label)
            if own:
                curve_of = ("" if own.axis in derived else of.of, own.group, own.name)
            key = (*curve_of, row.metric, row.unit, fixed), first
            found.setdefault(key, {}).setdefault(variant.of, {})[at[first.name]] = row, side
    recalls = {
        (challenge, task, label, fixed, axis): lines
        for ((challenge, task, label, metric, _, fixed), axis), lines in found.items()
        if metric == RECALL.key
    }
    for ((challenge, task, label, metric, unit, fixed), axis), lines in found.items():
        additive = metric_of(metric).kind.additive
        # A task may be none of the metric at some points: closed loops have no latency of their own.
        places = [
            place for place, value in enumerate(axis.values) if any(value in one for one in lines.values())
        ]
        points = [[lines[name][axis.values[place]] for name in lines] for place in places]
        reached = recalls.get((challenge, task, label, fixed, axis), {})
        curve = sweep_curve(
            {
                name: [_by_unit(point[number][1], additive=additive) for point in points]
                for number, name in enumerate(lines)
            },
            SweepAxis(
                axis.name,
                tuple(axis.labels[place] for place in places),
                tuple(axis.numbers[place] for place in places if axis.numbers),
                fixed,
                derived=axis in derived,
            ),
            task=label,
            metric=metric,
            challenge=challenge,
            unit=unit,
            # Points of a single variant are compared with the first one, which rows tell.
            comparisons=[
                [
                    comparison
                    for row, side in point
                    for comparison in row.comparisons
                    if comparison.contender == side.variant
                ]
                for point in points
                if len(lines) > 1
            ],
            caveats=[
                tuple(dict.fromkeys(doubt for row, _ in point for doubt in row.caveats)) for point in points
            ],
            margin=margins.get(metric),
            within=axis.name not in of_variants,
            looks=looks,
            replicate="build" if any(side.units for point in points for _, side in point) else "fork",
            recalls={
                name: [
                    _by_unit(own[value][1], additive=True) if value in own else {}
                    for value in (axis.values[place] for place in places)
                ]
                for name, own in reached.items()
                if reached.keys() == lines.keys()
            },
        )
        yield msgspec.structs.replace(
            curve,
            lines=tuple(
                msgspec.structs.replace(
                    line,
                    remarks=tuple(
                        (
                            *weaknesses([point[number][1]], point[number][0].caveats),
                            *_unequal(plan, points[0][number][0], point[number][0], derived=axis in derived),
                        )
                        for point in points
                    ),
                )
                for number, line in enumerate(curve.lines)
            ),
        )


def _unequal(plan: Plan, first: Row, other: Row, *, derived: bool) -> tuple[str, ...]:
    """Return what a place of an operation has besides its history that the first one has not."""
    tasks = [plan.schedules[row.schedule].schedule[row.task] for row in (first, other)]
    requests = {
        (task.warmup_iterations, task.iterations, task.warmup_time_period, task.time_period) for task in tasks
    }
    return ("not as often asked",) if derived and len(requests) > 1 else ()


def _by_unit(side: Figures, *, additive: bool) -> ByBlock:
    """The values of a side by block, or where builds of the index are what counts, their means by build."""
    if not side.units:
        return dict(zip(side.blocks, side.values, strict=True))
    by_build: dict[int, list[float]] = {}
    for build, value in zip(side.units, side.values, strict=True):
        by_build.setdefault(build, []).append(math.nan if value is None else value)
    return {build: Series.of(values, additive=additive).value for build, values in by_build.items()}


@dataclass(frozen=True)
class _OwnAxis:
    """Sweep within a fork or microbenchmark: the curve, and the position of a task on it."""

    name: str
    axis: Axis
    value: str
    group: int = 0  # of alike places, from 1, where the axis is what ran before


def _own_axis(plan: Plan, row: Row) -> _OwnAxis | None:
    tasks = plan.schedules[row.schedule].schedule
    task = tasks[row.task]
    if plan.micro is not None:
        return _param_axis(tasks, task)
    counts = sorted({one.clients for one in tasks if one.swept == task.swept})
    if not task.swept or len(counts) < 2:  # noqa: PLR2004 - a point is no curve
        return None
    axis = Axis("clients", tuple(map(str, counts)), tuple(map(float, counts)))
    return _OwnAxis(task.swept, axis, str(task.clients))


def _history_axes(plan: Plan, places: Iterable[Place]) -> dict[Place, _OwnAxis]:
    """Of operations that run after different tasks: the curve over these."""
    if plan.swept is not None or plan.micro is not None or plan.redline is not None:
        return {}
    axes: dict[Place, _OwnAxis] = {}
    groups = places_by_history(plan, places)
    tasks = [task_at(plan, next(iter(group.values()))) for group in groups]
    names = [task.operation for task in tasks]
    for number, (task, group) in enumerate(zip(tasks, groups, strict=True), 1):
        load = f", {task.clients} clients" + (f", {task.rate_per_s:g}/s" if task.rate_per_s else "")
        name = task.operation + (load if names.count(task.operation) > 1 else "")
        axis = Axis(HISTORY, tuple(group))
        axes |= {place: _OwnAxis(name, axis, history, number) for history, place in group.items()}
    return axes


def _param_axis(tasks: Sequence[Task], task: Task) -> _OwnAxis | None:
    """Of a microbenchmark's parameters, the one with most numbers."""
    axes: list[_OwnAxis] = []
    alike = [_params(one) for one in tasks if one.meta.get("benchmark") == task.meta.get("benchmark")]
    for name, value in _params(task).items():
        try:
            numbers = {one[name]: float(one[name]) for one in alike}
        except ValueError:
            continue
        values = sorted(numbers, key=numbers.__getitem__)
        axis = Axis(name, tuple(values), tuple(numbers[one] for one in values))
        benchmark, _, marks = task.label.partition(":")
        others = [mark for mark in marks.split(",") if mark != f"{name}={value}"]
        axes.append(_OwnAxis(":".join(filter(None, (benchmark, ",".join(others)))), axis, value))
    most = max(axes, key=lambda one: len(one.axis.values), default=None)
    return most if most is not None and len(most.axis.values) >= _FEWEST_POINTS else None


def _params(task: Task) -> dict[str, str]:
    """Of a microbenchmark, with its number of threads."""
    meta = task.meta
    return {**meta["params"], "threads": str(meta["threads"])} if "benchmark" in meta else {}
