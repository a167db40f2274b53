"""What the forks of one variant say about their own mean: for plots, where sides stand beside each other."""

import math
from collections.abc import Sequence

from scipy.special import stdtrit

from benchctl.stats.builds import build_means
from benchctl.stats.series import Series

_CONFIDENCE = 0.95
_LEAST_FOR_SPREAD = 2


def own_interval(values: Sequence[float | None], builds: Sequence[int] = ()) -> tuple[float, float] | None:
    """The 95 % t-interval of the geometric mean over forks, in the unit of the values.

    Whether two variants differ is not to be read from whether their intervals overlap: that is what the
    interval of their difference is for.

    Args:
        values: one a fork; what is None, not positive or not finite is left out.
        builds: the index build of every fork; with several builds, their means are the values.

    Returns:
        Low and high; None under two usable values.
    """
    series = Series.of([math.nan if value is None else value for value in values])
    logs = series.logs
    if len(set(builds)) > 1:
        logs = build_means(logs, series.own(builds))
    if logs.size < _LEAST_FOR_SPREAD:
        return None
    middle = float(logs.mean())
    reach = float(stdtrit(logs.size - 1, 0.5 + _CONFIDENCE / 2) * logs.std(ddof=1) / math.sqrt(logs.size))
    return math.exp(middle - reach), math.exp(middle + reach)
