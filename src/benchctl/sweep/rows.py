"""The curves of a run: every task and metric of a sweep, as the rows of its analysis have them."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import msgspec

from benchctl.results.plan import Axis, Plan, SweepSpec, Swept
from benchctl.stats.analysis import Figures, Row, weaknesses
from benchctl.stats.compare import Series
from benchctl.stats.metrics import MetricKey, metric_of
from benchctl.stats.parts import SweepAxis, SweepCurve
from benchctl.sweep.curve import ByBlock, sweep_curve
from benchctl.track.model import Task

_FEWEST_POINTS = 3

_Curve = tuple[str, int, str, MetricKey, str, str]
"""(challenge, task, label, metric, unit, the other axes) of a curve."""


def swept_curves(rows: Sequence[Row], plan: Plan, *, paired: bool, sequential: bool) -> Iterator[SweepCurve]:
    """Yield every task and metric of a sweep along its first axis, at each point of the others.

    So is every `clients_list` of a challenge, a sweep over clients within a fork, and every parameter of a
    microbenchmark with three numbers or more.
    """
    swept = plan.swept or SweepSpec((), plan.variants, {}, ())
    if swept.variants and {side.variant for row in rows for side in row.figures} != swept.variants.keys():
        return
    found: dict[tuple[_Curve, Axis], dict[str, dict[str, tuple[Row, Figures]]]] = {}
    for row in rows:
        of = swept.schedules[row.schedule] if swept.schedules else Swept(row.challenge)
        own = _own_axis(plan, row)
        axes = [*((own.axis,) if own else ()), *swept.axes]
        for side in row.figures if axes else ():
            first, *others = axes
            variant = swept.variants.get(side.variant, Swept(side.variant))
            at = {**({own.axis.name: own.value} if own else {}), **of.at, **variant.at}
            fixed = ", ".join(f"{axis.name} {at[axis.name] or 'none'}" for axis in others)
            curve_of = (0, own.name) if own else (row.task, row.label)
            key = (of.of, *curve_of, row.metric, row.unit, fixed), first
            found.setdefault(key, {}).setdefault(variant.of, {})[at[first.name]] = row, side
    for ((challenge, _, label, metric, unit, fixed), axis), lines in found.items():
        additive = metric_of(metric).figure.additive
        # A task may be none of the metric at some points: closed loops have no latency of their own.
        places = [
            place for place, value in enumerate(axis.values) if any(value in one for one in lines.values())
        ]
        points = [[lines[name][axis.values[place]] for name in lines] for place in places]
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
            paired=paired,
            sequential=sequential,
        )
        yield msgspec.structs.replace(
            curve,
            caveats=tuple(
                tuple(dict.fromkeys(doubt for row, _ in point for doubt in row.caveats)) for point in points
            ),
            lines=tuple(
                msgspec.structs.replace(
                    line,
                    remarks=tuple(
                        weaknesses([point[number][1]], point[number][0].caveats) for point in points
                    ),
                )
                for number, line in enumerate(curve.lines)
            ),
        )


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
    """Sweep within a challenge or microbenchmark: the curve, and the position of a task on it."""

    name: str
    axis: Axis
    value: str


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


def _param_axis(tasks: Sequence[Task], task: Task) -> _OwnAxis | None:
    """Of a microbenchmark's parameters, the one with most numbers."""
    found: list[_OwnAxis] = []
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
        found.append(_OwnAxis(":".join(filter(None, (benchmark, ",".join(others)))), axis, value))
    most = max(found, key=lambda one: len(one.axis.values), default=None)
    return most if most is not None and len(most.axis.values) >= _FEWEST_POINTS else None


def _params(task: Task) -> dict[str, str]:
    """Of a microbenchmark, with its number of threads; none of an imported one."""
    meta = task.meta
    return {**meta["params"], "threads": str(meta["threads"])} if "benchmark" in meta else {}
