"""The detector over made-up nights: false alarms, delays and costs.

`pytest tests/nightly/test_calibration.py --repetitions 2000` replays 200 series, as the table of
`docs/pages/how-to/nightly.md` does.
"""

import math
from typing import Any

import numpy as np
import pytest

from benchctl.nightly.screening import Screened, nights_of
from nightly.simulation import (
    Delay,
    Outcome,
    Process,
    Replayed,
    ReplayedFinding,
    generate,
    outcome_of,
    replay,
)

TEN = math.log(1.1)
# Of the SD of a night's mean, 2 %, what five forks with one of 4 % leave to the nights themselves.
NIGHT_SD = math.sqrt(0.02**2 - 0.04**2 / 5)


@pytest.fixture(scope="session")
def series(pytestconfig: pytest.Config) -> int:
    """Number of series in a replay."""
    repetitions: int = pytestconfig.getoption("--repetitions")
    return max(repetitions // 10, 10)


def replayed(*, seed: int = 1, most_forks: int | None = 20, **options: Any) -> tuple[Replayed, Process]:
    defaults = {"series": 20, "nights": 60, "forks": 5, "step_night": 46, "fork_sd": 0.04}
    process = Process(**defaults | {"night_sd": NIGHT_SD} | options)
    rng = np.random.default_rng(seed)
    return replay(generate(process, rng), rng, most_forks=most_forks), process


def delays(**options: Any) -> tuple[Delay, Delay, Outcome]:
    """Nights until the change of night 61 is screened, and until its alarm."""
    outcome = outcome_of(*replayed(nights=90, step_night=61, **options))
    assert outcome.until_screened is not None
    assert outcome.until_alarm is not None
    return outcome.until_screened, outcome.until_alarm, outcome


@pytest.mark.parametrize(
    "options",
    [
        {"nights": 90},
        {"fork_sd": 0.01, "night_sd": 0.02},
        {"fork_sd": 0.15},
        {"slow_share": 0.3},
        {"forks": 1},
        {"night_sd": 0.05},
    ],
)
def test_unchanged_series_hardly_ever_raise_an_alarm(series: int, options: dict[str, Any]):
    found, _ = replayed(series=2 * series, seed=3, **options)
    assert len(found.findings) > 0
    assert found.false_alarms == found.alarms
    assert len(found.alarms) <= 1 + series // 200


def test_series_that_never_differ_are_never_found():
    found, _ = replayed(fork_sd=0.0, night_sd=0.0)
    assert found.findings == ()


def test_a_change_by_ten_per_cent_raises_one_alarm_on_each_series(series: int):
    screened, alarm, _ = delays(series=series, step=TEN)
    assert screened.seen >= 0.95 * series
    assert alarm.seen >= 0.95 * series
    assert screened.p90 is not None
    assert screened.p90 <= 4
    found, _ = replayed(series=series, step=TEN, most_forks=None)
    late = [one for one in found.alarms if one.night >= 46]
    assert len({one.series for one in late}) >= len(late) - series // 20
    assert all(one.screened.last_good < 46 for one in late)


def test_a_change_by_the_margin_is_found_within_weeks(series: int):
    screened, alarm, _ = delays(series=series, step=math.log(1.05))
    assert screened.seen >= 0.9 * series
    assert alarm.seen >= 0.85 * series
    assert screened.median is not None
    assert screened.median <= 6


def test_a_change_that_forks_are_too_noisy_for_stays_unconfirmed(series: int):
    _, alarm, outcome = delays(series=series, step=TEN, fork_sd=0.15, night_sd=0.02)
    assert alarm.seen < 0.8 * series
    assert alarm.p90 is None
    assert outcome.screened["unconfirmed"] > series


def test_a_step_the_other_way_is_found_as_well():
    found, process = replayed(step=-TEN, most_forks=None)
    outcome = outcome_of(found, process)
    assert outcome.until_alarm is not None
    assert outcome.until_alarm.seen >= 18
    assert {one.screened.direction for one in found.alarms} == {"faster"}


def test_a_drift_is_found_when_it_matters():
    outcome = outcome_of(*replayed(drift=0.01, nights=75, most_forks=None))
    assert outcome.until_screened is not None
    assert outcome.until_alarm is not None
    assert outcome.until_alarm.seen >= 18
    assert (outcome.until_screened.median or 0) >= 3


def test_what_steps_and_comes_back_recovers_mostly_without_a_second_alarm():
    found, _ = replayed(step=math.log(1.2), step_ends=54, fork_sd=0.02)
    assert found.recoveries >= 17
    assert len(found.of_status("known")) > 0
    # Who is outside the margin of the old level in one of the two nights is alarmed about as faster.
    assert len([one for one in found.alarms if one.night >= 54]) <= 2


def test_a_slower_host_is_held_by_the_canary_and_refuted_without_one():
    with_canary, _ = replayed(host_step=TEN, host_night=46, canaries=20)
    without, _ = replayed(host_step=TEN, host_night=46)
    assert len(with_canary.of_status("held")) > 100
    assert len(with_canary.alarms) + len(without.alarms) <= 1
    assert with_canary.forks < without.forks / 2


def test_missing_nights_do_not_stop_the_detector():
    found, process = replayed(step=math.log(1.2), missing=0.2, nights=75, step_night=61)
    outcome = outcome_of(found, process)
    assert outcome.until_alarm is not None
    assert outcome.until_alarm.seen >= 18


# The model itself.


def test_the_model_has_the_spread_and_the_changes_that_were_asked_for():
    rng = np.random.default_rng(1)
    made = generate(Process(series=20, nights=200, forks=8, night_sd=0.03, fork_sd=0.1), rng)
    nights = [nights_of(one) for one in made.watched]
    assert np.mean([one.fork_sd() for one in nights]) == pytest.approx(0.1, rel=0.03)
    expected = math.sqrt(0.03**2 + 0.1**2 / 8)
    assert np.mean([one.means.std(ddof=1) for one in nights]) == pytest.approx(expected, rel=0.05)
    changes = Process(
        series=1, canaries=1, nights=6, night_sd=0, fork_sd=0, step=0.1, step_night=3, step_ends=5
    )
    made = generate(changes, rng)
    assert nights_of(made.watched[0]).means - math.log(10) == pytest.approx([0, 0, 0.1, 0.1, 0, 0])
    assert nights_of(made.canaries[0]).means == pytest.approx([math.log(10)] * 6)


def test_delays_count_from_the_night_of_the_change_and_the_first_that_shows_it_is_one():
    screened = Screened(("step",), "slower", 10.0, 5.0, 15.0, 9, 2.3, 0.095, 10, 9)
    found = (
        ReplayedFinding(0, 10, screened, "refuted", 10, real=True),
        ReplayedFinding(0, 12, screened, "confirmed", 10, real=True),
        ReplayedFinding(1, 13, screened, "confirmed", 10, real=True),
        ReplayedFinding(2, 9, screened, "confirmed", 10, real=True),
        ReplayedFinding(2, 11, screened, "confirmed", 10, real=False),
    )
    outcome = outcome_of(Replayed(4, 20, found, 1), Process(series=4, nights=20, step=0.1, step_night=10))
    assert outcome.until_screened == Delay(median=4, p90=None, seen=2, of=4)
    assert outcome.until_alarm == Delay(median=4, p90=None, seen=2, of=4)
    assert (outcome.alarms, outcome.false_alarms, outcome.confirmations, outcome.forks) == (4, 1, 5, 50)
