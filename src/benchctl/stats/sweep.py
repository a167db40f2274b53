"""Sweeps: a figure along an axis such as clients, how fast it grows, and where two variants cross.

The unit is the block, as everywhere: what is fitted is fitted within each block, and the t-test is over the
blocks' estimates (Matthews, Altman, Campbell and Royston, BMJ 300, 1990: summary measures). So it needs no
model of how the points of a block hang together.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Literal

import msgspec
import numpy as np
from scipy.special import stdtr, stdtrit

from benchctl.results.model import FORKS_FOR_VERDICT
from benchctl.stats.arrays import Floats
from benchctl.stats.caveat import Caveat
from benchctl.stats.compare import LEVEL, Comparison, Series, own_interval
from benchctl.stats.inference import NO_SPREAD, contrast
from benchctl.stats.metrics import MetricKey, metric_of
from benchctl.stats.multiplicity import holm

_TWO = 2
_CONFIDENCE = 0.95
# Between neighbouring points, where a crossing is looked for; between two of these, for the end of a set.
_STEPS = 32

ByBlock = Mapping[int, float | None]
"""Block -> the value of that block's fork; None, or absent, where it has none.

Where index builds are the unit of replication: build -> the mean of its forks.
"""


class SweepAxis(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is swept."""

    name: str  # such as `clients`
    labels: tuple[str, ...]  # of the points, as they were asked for: `1`, `250k`, `1s`
    numbers: tuple[float, ...] = ()  # of the points, ascending; empty for flags and names
    fixed: str = ""  # what the other axes are held at: `docs 1m`; empty without any


class Bounded(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A value with its 95 % interval; without ends where nothing tells how exact it is."""

    value: float
    low: float | None = None
    high: float | None = None


class PowerLaw(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A line as y ~ x^b, or the exponents of two lines compared."""

    exponent: Bounded | None = None  # b; None where there is none, for `reason`
    steps: tuple[tuple[str, str, Bounded], ...] = ()
    blocks: int = 0
    left_out: int = 0
    without: tuple[str, ...] = ()
    # Of the test that b is the same all along (orthogonal polynomials in ln x, Holm); None under three
    # points or two blocks.
    misfit_p: float | None = None
    # What b does along the axis if that test says it is not the same; empty if it does not.
    misfit: Literal["", "rises", "falls", "changes"] = ""
    reason: str = ""  # why `exponent` is missing, or has no interval


class SweepLine(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A variant along the axis."""

    variant: str
    # By point, over forks: geometric, or arithmetic of what may be 0 or is told by its difference; None
    # where no fork has a value.
    means: tuple[Bounded | None, ...]
    forks: tuple[int, ...]  # by point, that have a value
    growth: PowerLaw
    # By point, what must stand beside its value; empty where nothing is said of any.
    remarks: tuple[tuple[str, ...], ...] = ()


class Crossing(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A stretch of the axis in which the lines may be equal: nowhere in it does a t-test tell them apart.

    A place where they truly cross lies in such a stretch with 95 % confidence.
    """

    estimates: tuple[float, ...]  # where the means cross in it; mostly one, none where they only come close
    # `low`, `high`: its ends; None where it goes on beyond the measured points.
    low: float | None
    high: float | None
    # `below`, `above`: the variant that is faster on either side of it; empty beyond the measured points.
    below: str = ""
    above: str = ""


class SweepPair(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A line against the first one."""

    baseline: str
    contender: str
    growth: PowerLaw
    crossings: tuple[Crossing, ...] = ()
    ahead: str = ""  # the variant that is faster at every point and between; empty unless there is one
    p: float | None = None  # that the lines do not cross within the points; None where that cannot be tested
    reason: str = ""  # why crossings are not looked for; empty when they are

    @property
    def crosses(self) -> bool:
        """Whether one is faster at some point, and the other at another, beyond chance."""
        return self.p is not None and self.p <= LEVEL


class SweepCurve(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A metric of one task along one axis."""

    task: str
    challenge: str
    metric: MetricKey
    unit: str
    higher_is_better: bool
    axis: SweepAxis
    lines: tuple[SweepLine, ...]  # by variant, the baseline first
    pairs: tuple[SweepPair, ...]
    # By point, every further line against the first, as anywhere else.
    comparisons: tuple[tuple[Comparison, ...], ...] = ()
    paired: bool = True
    caveats: tuple[tuple[Caveat, ...], ...] = ()  # by point, doubts about what was measured there


def sweep_curve(
    values: Mapping[str, Sequence[ByBlock]],
    axis: SweepAxis,
    *,
    task: str,
    metric: MetricKey,
    challenge: str = "",
    unit: str = "",
    comparisons: Sequence[Sequence[Comparison]] = (),
    paired: bool = True,
    sequential: bool = False,
) -> SweepCurve:
    """Fit what several variants came to along an axis.

    Args:
        values: variant -> by point, what the forks of each block came to; the baseline first.
        axis: its points.
        task: its label.
        metric: machine name.
        challenge: its name.
        unit: of the values; empty for the metric's own.
        comparisons: by point, every further variant against the first.
        paired: compare within blocks, as declared before the run; otherwise blocks of different lines have
            nothing in common.
        sequential: whether the figures were looked at more than once.

    Raises:
        ValueError: If the points are not as many as the values, or their numbers do not ascend.
    """
    if any(len(points) != len(axis.labels) for points in values.values()):
        raise ValueError(f"not every variant has {len(axis.labels)} points")
    if axis.numbers and (len(axis.numbers) != len(axis.labels) or np.any(np.diff(axis.numbers) <= 0)):
        raise ValueError(f"points that do not ascend: {axis.numbers}")
    known = metric_of(metric)
    told = {one.compared_as for point in comparisons for one in point}
    arithmetic = known.figure.additive or bool(told - {"ratio"})
    fitted = _Fit(axis, additive=known.figure.additive, arithmetic=arithmetic, sequential=sequential)
    lines = {name: fitted.usable(points) for name, points in values.items()}
    baseline, *others = lines
    return SweepCurve(
        task=task,
        challenge=challenge,
        metric=metric,
        unit=unit or known.unit,
        higher_is_better=known.higher_is_better,
        axis=axis,
        lines=tuple(fitted.line(name, values[name], points) for name, points in lines.items()),
        pairs=tuple(
            fitted.pair(
                (baseline, name), (lines[baseline], lines[name]), higher=known.higher_is_better, paired=paired
            )
            for name in others
        ),
        comparisons=tuple(tuple(point) for point in comparisons),
        paired=paired,
    )


_Points = Sequence[Mapping[int, float]]


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
    """How the lines of one curve are fitted; means are `arithmetic` where comparisons are of such."""

    axis: SweepAxis
    additive: bool
    arithmetic: bool
    sequential: bool

    def usable(self, points: Sequence[ByBlock]) -> _Points:
        """By point: block -> ln of the value, or where these may be 0, the value itself."""
        found = []
        for point in points:
            series = Series.of(
                [math.nan if one is None else one for one in point.values()], additive=self.additive
            )
            kept = (block for block, usable in zip(point, series.kept.tolist(), strict=True) if usable)
            found.append(dict(zip(kept, series.points.tolist(), strict=True)))
        return found

    def line(self, name: str, values: Sequence[ByBlock], points: _Points) -> SweepLine:
        return SweepLine(
            variant=name,
            means=tuple(self._mean(list(point.values())) for point in values),
            forks=tuple(map(len, points)),
            growth=self._growth([points]),
        )

    def _mean(self, values: Sequence[float | None]) -> Bounded | None:
        series = Series.of([math.nan if one is None else one for one in values], additive=self.arithmetic)
        ends = own_interval(values, additive=self.arithmetic) or (None, None)
        return None if series.value is None else Bounded(series.value, *ends)

    def pair(
        self,
        names: tuple[str, str],
        sides: tuple[_Points, _Points],
        *,
        higher: bool,
        paired: bool,
    ) -> SweepPair:
        left, right = sides
        groups: list[_Points] = [right, left]
        if paired:
            groups = [
                [
                    {block: other[block] - value for block, value in own.items() if block in other}
                    for own, other in zip(left, right, strict=True)
                ]
            ]
        blank = SweepPair(*names, growth=self._growth(groups))
        if not self.axis.numbers:
            return msgspec.structs.replace(blank, reason=f"points of {self.axis.name} are no numbers")
        return self._crossings(blank, groups, names if not higher else names[::-1])

    def _common(self, groups: Sequence[_Points]) -> list[_Blocks]:
        """Of one group, or of the two sides that are not paired, at the points that both have."""
        found = [_Blocks.of(points) for points in groups]
        shared = set(found[0].places).intersection(*(one.places for one in found))
        if any(len(one.places) > len(shared) for one in found):
            found = [
                _Blocks.of([point if place in shared else {} for place, point in enumerate(points)])
                for points in groups
            ]
        return found

    # Growth.

    def _growth(self, groups: Sequence[_Points]) -> PowerLaw:
        """Fit one group; of two, the first minus the second."""
        blocks = self._common(groups)
        places = list(blocks[0].places)
        labels = [self.axis.labels[place] for place in places]
        told = PowerLaw(
            blocks=min(len(one.values) for one in blocks),
            left_out=max(one.left_out for one in blocks),
            without=tuple(label for label in self.axis.labels if label not in labels),
        )
        if refused := self._no_power():
            return msgspec.structs.replace(told, reason=refused)
        if len(places) < _TWO or not told.blocks:
            lacking = (
                "no block has all points" if len(places) >= _TWO else "fewer than two points have values"
            )
            return msgspec.structs.replace(told, reason=lacking)
        x = np.log(self.axis.numbers)[places]
        steps = np.diff(np.eye(len(x)), axis=0) / np.diff(x)[:, None]
        exponent = self._estimate(blocks, (x - x.mean()) / np.square(x - x.mean()).sum())
        reason = ""
        if exponent.low is None:
            reason = "only one block has all points" if told.blocks == 1 else "nothing varies between blocks"
        misfit_p, misfit = self._misfit(blocks, x)
        return msgspec.structs.replace(
            told,
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
        if self.additive:
            return "values may be 0, and nothing is a multiple of 0"
        if not self.axis.numbers:
            return f"points of {self.axis.name} are no numbers"
        return f"{self.axis.name} {self.axis.labels[0]} has no logarithm" if self.axis.numbers[0] <= 0 else ""

    def _estimate(self, blocks: Sequence[_Blocks], weights: Floats) -> Bounded:
        """A weighted sum of a block's points, over blocks."""
        values = [one.values @ weights for one in blocks]
        found = contrast(values, [1, -1][: len(values)], sequential=self.sequential)
        if found is None:
            return Bounded(float(values[0].mean() - sum(other.mean() for other in values[1:])))
        return Bounded(found.estimate, *found.interval(_CONFIDENCE))

    def _misfit(
        self, blocks: Sequence[_Blocks], x: Floats
    ) -> tuple[float | None, Literal["", "rises", "falls", "changes"]]:
        """Test what a straight line leaves over, by orthogonal polynomials of degree 2 and up.

        Each is a t-test over blocks, and they are adjusted by Holm's method, since Hotelling's test of all at
        once takes more blocks than points.
        """
        scaled = (x - x.mean()) / (x[-1] - x[0])
        basis, upper = np.linalg.qr(np.vander(scaled, increasing=True))
        polynomials = (basis * np.sign(np.diag(upper))).T[_TWO:]
        signs = [1, -1][: len(blocks)]
        found = [
            contrast([one.values @ weights for one in blocks], signs, sequential=self.sequential)
            for weights in polynomials
        ]
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

    # Crossings.

    def _crossings(self, blank: SweepPair, groups: Sequence[_Points], signs: tuple[str, str]) -> SweepPair:
        """Find where lines that are straight between neighbouring points cross.

        The set is Fieller's idea (Journal of the Royal Statistical Society B 16, 1954): all places at which a
        t-test of the difference does not reject 0. That they cross at all is a qualitative interaction, and
        is tested by the largest difference each way (Piantadosi and Gail, Statistics in Medicine 12, 1993).

        Args:
            blank: to be filled in.
            groups: differences within blocks, or values of the contender and the baseline.
            signs: the variants that are faster where the difference is positive, and negative.
        """
        blocks = self._common(groups)
        places = list(blocks[0].places)
        if len(places) < _TWO or min(len(one.values) for one in blocks) < FORKS_FOR_VERDICT:
            few = f"fewer than {FORKS_FOR_VERDICT} blocks have all points"
            return msgspec.structs.replace(
                blank, reason=few if len(places) >= _TWO else "fewer than two points have values"
            )
        numbers = np.asarray(self.axis.numbers)[places]
        logarithmic = bool(numbers[0] > 0)
        nodes = np.log(numbers) if logarithmic else numbers
        at_nodes = _Tested.at(nodes, nodes, blocks)
        if at_nodes.error.max() <= NO_SPREAD:
            return msgspec.structs.replace(blank, reason="nothing varies between blocks")
        between = np.linspace(nodes[:-1], nodes[1:], _STEPS, endpoint=False).ravel()
        roots = _roots(nodes, at_nodes.mean)
        grid = np.unique(np.concatenate([between, nodes, roots]))
        found = _Tested.at(grid, nodes, blocks)

        def beyond(places: Floats) -> Floats:
            return _Tested.at(places, nodes, blocks).beyond

        def told(place: float) -> float:
            return math.exp(place) if logarithmic else place

        def ahead(mean: float) -> str:
            return signs[0] if mean > 0 else signs[1]

        inside = found.beyond <= 0
        inside[np.isin(grid, roots)] = True
        edges = np.flatnonzero(np.diff(np.concatenate([[False], inside, [False]]).astype(np.int8)))
        crossings = []
        for first, last in zip(edges[::2].tolist(), (edges[1::2] - 1).tolist(), strict=True):
            low = None if first == 0 else _end(beyond, grid[first - 1], grid[first])
            high = None if last == grid.size - 1 else _end(beyond, grid[last + 1], grid[last])
            own = roots[(roots >= grid[first]) & (roots <= grid[last])]
            crossings.append(
                Crossing(
                    estimates=tuple(told(root) for root in own.tolist()),
                    low=None if low is None else told(low),
                    high=None if high is None else told(high),
                    below="" if low is None else ahead(found.mean[first - 1]),
                    above="" if high is None else ahead(found.mean[last + 1]),
                )
            )
        return msgspec.structs.replace(
            blank,
            crossings=tuple(crossings),
            ahead="" if crossings else ahead(float(found.mean[0])),
            p=at_nodes.p_of_crossing(),
        )


class _Tested(msgspec.Struct, frozen=True):
    """The difference of two lines, tested at some places; all of shape (places,)."""

    mean: Floats
    error: Floats
    df: Floats  # Satterthwaite's, as in `contrast`
    # How far the end of the 95 % interval is on the other side of 0; 0 and below where it is not.
    beyond: Floats

    @classmethod
    def at(cls, places: Floats, nodes: Floats, blocks: Sequence[_Blocks]) -> "_Tested":
        """Interpolate every block between its points, and test over blocks."""
        weights = np.array([np.interp(places, nodes, unit) for unit in np.eye(nodes.size)])
        sides = [one.values @ weights for one in blocks]
        sizes = [len(side) for side in sides]
        mean = sides[0].mean(axis=0) - sum(side.mean(axis=0) for side in sides[1:])
        parts = [side.var(axis=0, ddof=1) / size for side, size in zip(sides, sizes, strict=True)]
        variance = np.asarray(sum(parts))
        spread = sum(part**2 / (size - 1) for part, size in zip(parts, sizes, strict=True))
        # Where nothing varies, any number of degrees of freedom will do.
        varies = variance > NO_SPREAD**2
        df = np.where(varies, variance**2 / np.where(varies, spread, 1.0), 1.0)
        error = np.where(varies, np.sqrt(variance), NO_SPREAD)
        return cls(mean, error, df, np.abs(mean) - stdtrit(df, (1 + _CONFIDENCE) / 2) * error)

    def p_of_crossing(self) -> float:
        """That the difference is positive somewhere and negative elsewhere.

        The least favourable lines that never cross are equal at all points but one: so many tests can err.
        """
        p = [float(one) for one in 2 * stdtr(self.df, -np.abs(self.mean) / self.error)]
        sides = [
            min((one for one, mean in zip(p, sign * self.mean, strict=True) if mean > 0), default=1.0)
            for sign in (1, -1)
        ]
        return min(1.0, (self.mean.size - 1) * max(sides))


def _roots(nodes: Floats, means: Floats) -> Floats:
    """Return where a line through these means changes its sign."""
    left, right = means[:-1], means[1:]
    crossed = np.flatnonzero(left * right < 0)
    share = left[crossed] / (left[crossed] - right[crossed])
    at_nodes = nodes[1:-1][(means[1:-1] == 0) & (means[:-2] * means[2:] < 0)]
    return np.sort(np.concatenate([nodes[crossed] + share * np.diff(nodes)[crossed], at_nodes]))


def _end(beyond: Callable[[Floats], Floats], outside: float, inside: float) -> float:
    """Return where `beyond` falls to 0 between two places: looked for closely, and interpolated."""
    places = np.linspace(outside, inside, _STEPS + 1)
    heights = beyond(places)
    heights[-1] = min(heights[-1], 0.0)  # but for rounding, it is
    first = max(1, int(np.argmax(heights <= 0)))
    fall = float(heights[first - 1] - heights[first])
    share = min(1.0, float(heights[first - 1]) / fall) if fall > 0 else 1.0
    return float(places[first - 1] + share * (places[first] - places[first - 1]))
