"""Whether the figure of an open alarm is back at its old level."""

import math
from typing import Final

from benchctl.results.nightly.model import Series
from benchctl.stats.nightly.nights import nights_of

NIGHTS_TO_RECOVER: Final = 3


def recovered(
    series: Series,
    night: int,
    *,
    baseline_log: float,
    raised_effect_percent: float,
    margin: float,
    nights: int = NIGHTS_TO_RECOVER,
) -> bool:
    """Say whether a series is back, in three nights running.

    A night counts as back when it is inside the margin of the old level and nearer to it than to the level of
    the alarm. One such night may be chance: of an effect of 5 % with a night SD of 2 %, one in ten is, two
    running are one in a hundred.

    Args:
        series: that the alarm is about.
        night: number of the night that is looked at.
        baseline_log: mean ln of the old level.
        raised_effect_percent: of the alarm.
        margin: relative difference that matters in practice.
        nights: how many of the newest nights, this one included, must be back.

    Returns:
        False when the night has no value, or there are fewer nights.
    """
    found = nights_of(series)
    here = found.places_of((night,))
    if here.size == 0 or here[0] + 1 < nights:
        return False
    newest = found.means[int(here[0]) + 1 - nights : int(here[0]) + 1]
    raised = math.log1p(raised_effect_percent / 100)
    for mean in newest:
        away = float(mean) - baseline_log
        if abs(away) >= math.log1p(margin) or abs(away) >= abs(away - raised):
            return False
    return True
