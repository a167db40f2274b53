import math
from typing import Any

import numpy as np
import pytest

from benchctl.nightly.simulation import Process, Replayed, generate, outcome_of, replay

TEN = math.log(1.1)


def replayed(*, seed: int = 1, most_forks: int | None = None, **options: Any) -> tuple[Replayed, Process]:
    process = Process(
        **{"series": 20, "nights": 60, "forks": 5, "step_night": 46, "fork_sd": 0.04, **options}
    )
    rng = np.random.default_rng(seed)
    return replay(generate(process, rng), rng, most_forks=most_forks), process


@pytest.mark.parametrize("fork_sd", [0.01, 0.04])
def test_eighty_unchanged_series_of_ninety_nights_raise_one_alarm_at_most(fork_sd: float):
    # The SD from night to night is 2 %, forks included.
    night_sd = math.sqrt(0.02**2 - fork_sd**2 / 5)
    found, _ = replayed(series=80, nights=90, fork_sd=fork_sd, night_sd=night_sd, seed=3)
    assert len(found.alarms) <= 1
    assert len(found.findings) > 0
    assert found.false_alarms == found.alarms


@pytest.mark.parametrize("fork_sd", [0.05, 0.15])
def test_noisy_forks_raise_no_more(fork_sd: float):
    found, _ = replayed(series=40, nights=60, fork_sd=fork_sd)
    assert len(found.alarms) <= 1


def test_bimodal_forks_raise_no_more():
    found, _ = replayed(series=40, slow_share=0.3)
    assert len(found.alarms) <= 1


def test_one_fork_a_night_raises_no_more():
    found, _ = replayed(series=40, forks=1)
    assert len(found.alarms) <= 1


def test_series_that_never_differ_are_never_found():
    found, _ = replayed(fork_sd=0.0, night_sd=0.0)
    assert found.findings == ()


def test_a_step_raises_an_alarm_on_each_series_once():
    found, process = replayed(step=TEN)
    outcome = outcome_of(found, process)
    assert outcome.until_screened.seen >= 19
    assert outcome.until_alarm.seen >= 18
    assert outcome.until_screened.p90 <= 4
    late = [one for one in found.alarms if one.night >= 46]
    assert len({one.series for one in late}) == len(late)
    assert all(one.screened.last_good < 46 for one in late)


def test_a_step_the_other_way_is_found_as_well():
    found, process = replayed(step=-TEN)
    assert outcome_of(found, process).until_alarm.seen >= 18
    assert {one.screened.direction for one in found.alarms} == {"faster"}


def test_a_drift_is_found_when_it_matters():
    found, process = replayed(drift=0.01, nights=75)
    outcome = outcome_of(found, process)
    assert outcome.until_alarm.seen >= 18
    assert outcome.until_screened.median >= 3


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


def test_what_there_is_no_time_for_stays_unconfirmed():
    found, process = replayed(step=TEN, fork_sd=0.15, most_forks=4)
    assert found.alarms == ()
    assert len(found.of_status("unconfirmed")) > 0
    assert outcome_of(found, process).until_alarm.seen == 0


def test_missing_nights_do_not_stop_the_replay():
    found, process = replayed(step=math.log(1.2), missing=0.2, nights=75, step_night=61)
    assert outcome_of(found, process).until_alarm.seen >= 18


def test_a_replay_is_the_same_every_time():
    assert replayed(step=TEN, nights=50) == replayed(step=TEN, nights=50)
