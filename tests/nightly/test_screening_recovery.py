import math
from typing import Any

import pytest

from benchctl.nightly.screening import recovered
from nightly.made import series


@pytest.mark.parametrize(
    ("values", "options", "back"),
    [
        ([12.0, 12.0, 10.1, 9.9, 10.0], {}, True),
        # Two nights may be chance, and a night that is missing between them does not matter.
        ([12.0, 12.0, 10.1, 9.9], {}, False),
        ([12.0, 10.1, 0, 9.9, 10.0], {}, True),
        ([10.0, 10.0, 0], {}, False),
        ([12.0, 12.0, 10.1], {"nights": 1}, True),
        ([10.0, 10.0], {}, False),
        ([10.0, 10.0], {"nights": 2}, True),
        # Outside the margin of the old level, or nearer to that of the alarm.
        ([12.0, 10.6, 10.6, 10.6], {}, False),
        ([12.0, 9.4, 9.4, 9.4], {}, False),
        ([10.6, 10.4, 10.4, 10.4], {"raised": 6.0}, False),
        ([10.6, 10.2, 10.2, 10.2], {"raised": 6.0}, True),
        # What got faster recovers by getting slower.
        ([8.0, 9.8, 10.1, 10.0], {"raised": -20.0}, True),
        ([8.0, 8.1, 8.0, 8.1], {"raised": -20.0}, False),
    ],
)
def test_nights_at_the_old_level_are_a_recovery(values: list[float], options: dict[str, Any], *, back: bool):
    found = series([[value] if value else [] for value in values])
    raised, nights = options.get("raised", 20.0), options.get("nights", 3)
    assert back == recovered(
        found,
        len(values),
        baseline_log=math.log(10),
        raised_effect_percent=raised,
        margin=0.05,
        nights=nights,
    )
