import math

import numpy as np
import pytest

from benchctl.nightly.screening import nights_of
from benchctl.nightly.simulation import Process, generate


def rng() -> np.random.Generator:
    return np.random.default_rng(1)


def test_a_suite_has_the_spread_that_was_asked_for():
    made = generate(Process(series=20, nights=200, forks=8, night_sd=0.03, fork_sd=0.1), rng())
    nights = [nights_of(one) for one in made.watched]
    assert np.mean([one.fork_sd() for one in nights]) == pytest.approx(0.1, rel=0.03)
    expected = math.sqrt(0.03**2 + 0.1**2 / 8)
    assert np.mean([one.means.std(ddof=1) for one in nights]) == pytest.approx(expected, rel=0.05)
    assert made.canaries == ()


def test_the_engine_steps_and_comes_back_and_the_canary_knows_nothing_of_it():
    process = Process(
        series=1, canaries=1, nights=30, night_sd=0, fork_sd=0, step=0.1, step_night=11, step_ends=21
    )
    made = generate(process, rng())
    assert nights_of(made.watched[0]).means - math.log(10) == pytest.approx(
        [0.0] * 10 + [0.1] * 10 + [0.0] * 10
    )
    assert nights_of(made.canaries[0]).means == pytest.approx([math.log(10)] * 30)


def test_an_engine_that_drifts_gets_slower_every_night():
    process = Process(series=1, nights=4, night_sd=0, fork_sd=0, drift=0.01, step_night=2)
    means = nights_of(generate(process, rng()).watched[0]).means
    assert means - math.log(10) == pytest.approx([0.0, 0.01, 0.02, 0.03])


def test_a_slower_host_slows_both():
    process = Process(series=1, canaries=1, nights=4, night_sd=0, fork_sd=0, host_step=0.2, host_night=3)
    made = generate(process, rng())
    for one in (*made.watched, *made.canaries):
        assert nights_of(one).means - math.log(10) == pytest.approx([0.0, 0.0, 0.2, 0.2])


def test_forks_land_in_two_states():
    made = generate(Process(series=1, nights=100, forks=10, night_sd=0, fork_sd=0, slow_share=0.3), rng())
    values = made.watched[0].values
    assert set(values.round(6)) == {10.0, 11.8}
    assert np.mean(values > 11) == pytest.approx(0.3, abs=0.05)


def test_missing_nights_are_missing_for_all():
    made = generate(Process(series=2, canaries=1, nights=100, missing=0.5), rng())
    there = [set(one.nights.tolist()) for one in (*made.watched, *made.canaries)]
    assert there[0] == there[1] == there[2]
    assert 30 < len(there[0]) < 70


def test_the_same_seed_gives_the_same_suite():
    one, other = (generate(Process(series=2, nights=5), rng()) for _ in range(2))
    assert [made.values.tolist() for made in one.watched] == [made.values.tolist() for made in other.watched]
