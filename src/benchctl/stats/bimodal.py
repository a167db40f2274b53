"""Do forks fall apart into groups? A JIT that lands in two states is a finding, not an outlier."""

import math
from collections.abc import Sequence

import numpy as np

from benchctl.results.figures import TaskSummary

_ERRORS = 3.0
_LEAST_GAP = math.log(1.05)
_LEAST_FORKS = 3


def separate_groups(values: Sequence[float], relative_error: float) -> float | None:
    """The largest gap between neighbouring forks, when noise inside forks cannot explain it.

    Args:
        values: one value a fork; what is not above 0 is no value.
        relative_error: standard error of one such value within its fork, as a fraction of it.

    Returns:
        The gap in percent of its lower end; None when it is under 5 % or 3 standard errors, or there are
        fewer than three forks.
    """
    usable = [value for value in values if value > 0]
    if len(usable) < _LEAST_FORKS:
        return None
    gap = float(np.diff(np.sort(np.log(np.asarray(usable, dtype=np.float64)))).max())
    if gap <= max(_LEAST_GAP, _ERRORS * relative_error):
        return None
    return 100 * math.expm1(gap)


def within_fork_error(summaries: Sequence[TaskSummary]) -> float:
    """Standard error of a fork's mean service time as a fraction of it, root mean square over forks.

    Returns:
        Infinite when no fork can tell, so that nothing is called a group on its strength.
    """
    squares = [
        (summary.sd_ns / summary.mean_ns) ** 2 / summary.effective_samples
        for summary in summaries
        if summary.sd_ns is not None and summary.mean_ns and summary.effective_samples
    ]
    return math.sqrt(math.fsum(squares) / len(squares)) if squares else math.inf
