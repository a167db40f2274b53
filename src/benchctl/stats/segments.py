"""Segments of one fork's service times of one task: where it changed its level, and whether it settled."""

import math
from collections.abc import Callable
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from benchctl.results.figures import Course, CourseKind
from benchctl.stats.arrays import Floats, Integers, Mask

if TYPE_CHECKING:
    from ruptures.base import BaseCost

LEAST_REQUESTS = 20
# A last level that began later than this share of the requests may not have lasted.
STEADY_BEFORE = 0.75
# Levels within 1 % are one.
_ALIKE = math.log(1.01)
_PENALTY = 15.0
_MOST_PHI = 0.9
# Those over a change of level are among the largest.
_KEPT_STEPS = 0.9

# Pelt is a Python loop over pairs of candidates: of 128 it takes some 20 ms, of 1,000 two seconds.
_MOST_CANDIDATES = 128
# Two values have a variance; a mean over fewer values is no level.
_SHORTEST = 2

# Tukey's fences around the neighbours before and behind; 1.5 quartile ranges are 2.7 SD of normal noise.
_WINDOW = 25
_LEAST_WINDOW = 5
_FENCE = 1.5

# SD that a segment is taken to have at least, in natural logarithms and in SD of the noise: the logarithm of
# a variance has no bound below, and two equal values would be the best of all segments.
_LEAST_SD = 1e-3
_LEAST_SHARE_OF_NOISE = 0.25

Error = Callable[[int, int], float]


def find_course(values_ns: Floats, begins: Integers, of: int) -> Course | None:
    """Cut a course into segments of constant mean and variance, and say what kind of course it is.

    On logarithms: outliers out (Tukey 1977), PELT with a normal likelihood of mean and variance (Killick,
    Fearnhead, Eckley 2012; `ruptures`) and a penalty of 15 ln n (1 + phi) / (1 - phi) for n values of
    autocorrelation phi; then neighbouring segments within 1 % become one. The kinds are those of Barrett et
    al. 2017, but for one: here the last level must begin before the last quarter of the requests.

    Args:
        values_ns: service times in the order of the requests, shape (n,), nanoseconds, all above 0; medians
            of groups of requests where they are many.
        begins: requests before each value, shape (n,), ascending from 0.
        of: requests.

    Returns:
        None under 20 values.
    """
    if values_ns.size < LEAST_REQUESTS:
        return None
    logs = np.log(values_ns)
    kept = np.flatnonzero(~_outliers(logs))
    logs = logs[kept]
    bounds = _merged(logs, _change_points(logs))
    levels = [float(logs[low:high].mean()) for low, high in pairwise([*bounds, logs.size])]
    places = (0, *(int(begins[kept[bound]]) for bound in bounds[1:]))
    return Course(
        kind=_kind(levels, places[-1], of),
        steady_from=places[-1],
        of=of,
        bounds=places,
        levels_ns=tuple(math.exp(level) for level in levels),
    )


def _kind(levels: list[float], last_from: int, of: int) -> CourseKind:
    if len(levels) == 1:
        return "flat"
    if last_from >= STEADY_BEFORE * of:
        return "no steady state"
    return "warm-up" if levels[-1] <= min(levels) + _ALIKE else "slowdown"


def _outliers(logs: Floats) -> Mask:
    """Values that lie outside the fences of the 25 before them and of the 25 behind them.

    So the first values of a new level are none, however far it lies from the old one. The very first requests
    are slow by nature: up to the fifth, none counts as an outlier. Of the last four, those before decide.
    """
    before = _outside(logs, short=False)
    behind = _outside(logs[::-1], short=True)[::-1]
    return before & behind


def _outside(logs: Floats, *, short: bool) -> Mask:
    """Which values lie outside the fences of up to 25 before them; `short` where there are under five."""
    quartiles = np.empty((logs.size, 2))
    known = min(_WINDOW, logs.size)
    for place in range(_LEAST_WINDOW, known):
        quartiles[place] = np.quantile(logs[:place], (0.25, 0.75))
    if logs.size > known:
        windows = np.lib.stride_tricks.sliding_window_view(logs[:-1], known)
        quartiles[known:] = np.quantile(windows, (0.25, 0.75), axis=1).T
    low, high = quartiles.T
    reach = _FENCE * (high - low) + _LEAST_SD
    outside = (logs < low - reach) | (logs > high + reach)
    outside[:_LEAST_WINDOW] = short
    return outside


def autocorrelation(logs: Floats) -> float:
    """Lag-1 autocorrelation of the noise, whatever the levels are that it lies on; from 0 to 0.9.

    Differences over two steps against those over one, as Chakar, Lebarbier, Lévy-Leduc and Robin 2017; with
    mean squares of all but the largest tenth in place of their squared medians, which have nearly twice the
    error. The usual estimator takes a change of level for correlation, and a penalty made of it hides that
    very change.
    """
    one, two = (_trimmed_square(logs[lag:] - logs[:-lag]) for lag in (1, 2))
    return min(max(two / one - 1, 0.0), _MOST_PHI) if one > 0 else 0.0


def _trimmed_square(steps: Floats) -> float:
    squares = np.sort(steps**2)
    return float(squares[: math.ceil(_KEPT_STEPS * squares.size)].mean())


def _change_points(logs: Floats) -> list[int]:
    """Where segments begin, the first one 0."""
    # It takes a tenth of a second to load, and is needed when the first fork's node is gone.
    from ruptures import Pelt  # noqa: PLC0415 - see above

    phi = autocorrelation(logs)
    penalty = _PENALTY * math.log(logs.size) * (1 + phi) / (1 - phi)
    # Pelt cuts at multiples of its jump only, which is 5 unless told otherwise.
    jump = -(-logs.size // _MOST_CANDIDATES)
    cost = _normal_cost(logs)
    found = Pelt(custom_cost=cost, min_size=_SHORTEST, jump=jump).fit(logs).predict(pen=penalty)
    return _refined([0, *found], cost.error, jump, penalty)


def _refined(cuts: list[int], error: Error, jump: int, penalty: float) -> list[int]:
    """Move each cut to the best place around it, and drop those that do not earn their penalty there.

    A change between two multiples of the jump leaves a segment of both levels, which is none in the end.

    Args:
        cuts: from 0 to the number of values.
        error: of a segment.
        jump: cuts are less than this away from their places.
        penalty: what a cut has to lower the errors by.
    """
    while len(cuts) > _SHORTEST:
        gains = []
        for place in range(1, len(cuts) - 1):
            low, cut, high = cuts[place - 1 : place + 2]
            near = range(max(low + _SHORTEST, cut - jump + 1), min(high - _SHORTEST, cut + jump - 1) + 1)
            split = {at: error(low, at) + error(at, high) for at in near}
            cuts[place] = min(split, key=split.__getitem__)
            gains.append(error(low, high) - split[cuts[place]])
        weakest = int(np.argmin(gains))
        if gains[weakest] >= penalty:
            break
        del cuts[weakest + 1]
    return cuts[:-1]


def _normal_cost(logs: Floats) -> "BaseCost":
    """Twice the negative log-likelihood of normal segments, up to a constant; each takes constant time.

    In place of ruptures' own `CostNormal`, which computes the variance of every candidate anew, and adds
    1e-6 to it whatever its unit is (the noise of service times may be 0.1 %, whose variance that is).
    """
    from ruptures.base import BaseCost  # noqa: PLC0415 - see `_change_points`

    centred = logs - logs.mean()
    sums = np.concatenate([[0.0], np.cumsum(centred)]).tolist()
    squares = np.concatenate([[0.0], np.cumsum(centred**2)]).tolist()
    noise = float(np.median(np.abs(np.diff(logs)))) / 0.954  # the median of a difference of two normal values
    floor = max(_LEAST_SD, _LEAST_SHARE_OF_NOISE * noise) ** 2
    log = math.log

    class NormalCost(BaseCost):  # type: ignore[misc]  # ruptures has no types
        model = "normal in constant time"
        min_size = _SHORTEST

        def fit(self, signal: Any) -> "NormalCost":  # noqa: ANN401 - ruptures' type
            self.signal = signal
            return self

        def error(self, start: int, end: int) -> float:
            size = end - start
            mean = (sums[end] - sums[start]) / size
            variance = (squares[end] - squares[start]) / size - mean * mean
            return size * log(max(variance, 0.0) + floor)

    return NormalCost()


def _merged(logs: Floats, begins: list[int]) -> list[int]:
    """Where segments begin once neighbours within 1 % are one, the closest first."""
    begins = list(begins)
    while len(begins) > 1:
        ends = [*begins, logs.size]
        levels = [logs[low:high].mean() for low, high in pairwise(ends)]
        steps = np.abs(np.diff(levels))
        closest = int(np.argmin(steps))
        if steps[closest] > _ALIKE:
            break
        del begins[closest + 1]
    return begins
