"""Values at equal recall, along an axis on which recall rises: within each block, between two of its points.

The recall of a block may waver from point to point. So the first point that reaches a recall counts, with the
one before it: those that anybody would end with who raises, say, the candidates until the recall suffices. No
line is fitted to all points, and nothing is known of recalls that these do not enclose.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from benchctl.stats.analysis import Bounded, RecallLine, SweepAxis

TARGETS: Final = (0.90, 0.95, 0.99)
_LEAST_RISE = 0.01
# Added to the share of neighbours that is missed, so that none has a logarithm.
_MISSED = 0.001


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


def line_at(
    target: float,
    variant: str,
    recalls: Sequence[Mapping[int, float]],
    points: Sequence[Mapping[int, float]],
    axis: SweepAxis,
    mean: Callable[[Sequence[float]], Bounded | None],
) -> tuple[RecallLine, dict[int, float]]:
    """Return a line at a recall, and its values by block, NaN where these do not reach it.

    `recalls` and `points`, the values, are by point; `mean` gives that over blocks.
    """
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


def rises(recalls: Sequence[Mapping[int, float]]) -> bool:
    """Return whether recall, by point, is higher by a hundredth or more than at the first, over blocks."""
    means = [mean for point in recalls if (mean := _mean(point.values())) is not None]
    return bool(means) and max(means) - means[0] >= _LEAST_RISE


def _mean(values: Iterable[float]) -> float | None:
    known = [value for value in values if not math.isnan(value)]
    return math.fsum(known) / len(known) if known else None


def _reason(target: float, lacking: Sequence[Sequence[float]], axis: SweepAxis) -> str:
    """`already 0.97 at candidates 10`, `not reached: 0.93 at candidates 200`, of blocks without a value.

    Of several blocks, it is what most of them lack, and the recall that is nearest to the target.
    """
    points = [[point for point in zip(own, axis.labels, strict=True) if point[0] >= 0] for own in lacking]
    points = [own for own in points if own]
    if not points:
        return "its recall is unknown"
    early = [own[0] for own in points if own[0][0] > target]
    short = [best for own in points if (best := max(own, key=lambda point: point[0]))[0] < target]
    if not early and not short:
        return "values are missing"
    word, (recall, label) = (
        ("already", min(early)) if len(early) >= len(short) else ("not reached:", max(short))
    )
    return f"{word} {_floor(recall)} at {axis.name} {label}"


def _floor(recall: float) -> str:
    """A recall in thousandths, never rounded up to what it does not reach."""
    return f"{math.floor(round(1000 * recall, 6)) / 1000:g}"
