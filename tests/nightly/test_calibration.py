"""The screen and its confirmation over made-up nights; `nightly.simulation` prints the table at any size."""

import pytest

from nightly.simulation import CELLS, FIVE, TEN, Process, share_screened

SERIES = 200


@pytest.mark.parametrize("at", [10, 60])
@pytest.mark.parametrize(("step", "least"), [(TEN, 0.95), (-TEN, 0.95), (FIVE, 0.6), (-FIVE, 0.6)])
def test_a_step_is_screened_within_six_nights(at: int, step: float, least: float):
    assert share_screened(Process(nights=at + 5, step=step, at=at), SERIES, 2) >= least


@pytest.mark.parametrize(
    ("cell", "least", "most"),
    [
        ("no change, t3", 0.0, 0.4),
        ("no change, AR .3", 0.0, 0.4),
        ("+10 % at night 5", 0.7, 1.0),
        ("+10 % at night 60, t3", 0.95, 1.0),
        ("+10 % at night 60, AR .3", 0.95, 1.0),
        ("+1 % a night from night 30 on", 0.95, 1.0),
    ],
)
def test_other_noise_early_steps_and_drifts_do_what_the_documentation_reports(
    cell: str, least: float, most: float
):
    assert least <= share_screened(CELLS[cell], SERIES, 3) <= most
