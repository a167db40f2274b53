import math
from dataclasses import replace

from benchctl.nightly.simulation import rescreen
from nightly.made import drawn


def test_a_recorded_step_is_screened_once_and_located():
    found = rescreen(drawn([0.0] * 60 + [math.log(1.2)] * 40, seed=3, night_sd=0.01), margin=0.05)
    assert [one.night for one in found.findings] == [61]
    assert [point.night for point in found.change_points] == [61]
    assert found.nights == 100


def test_nights_to_come_change_no_finding():
    levels = [0.0] * 60 + [math.log(1.2)] * 40
    whole = rescreen(drawn(levels, seed=3, forks=2), margin=0.05).findings
    made = drawn(levels, seed=3, forks=2)
    cut = replace(made, nights=made.nights[:140], forks=made.forks[:140], values=made.values[:140])
    assert rescreen(cut, margin=0.05).findings == tuple(one for one in whole if one.night <= 70)


def test_an_unchanged_series_has_nothing():
    found = rescreen(drawn([0.0] * 40, seed=2, night_sd=0.001), margin=0.05)
    assert (found.findings, found.change_points) == ((), ())
