"""Figures that may be 0, night by night: a night is the arithmetic mean of its forks."""

import math
from pathlib import Path
from typing import Any

import msgspec
import pytest

from benchctl.nightly.detection import Baselines, Detector
from benchctl.nightly.folder import read_series, write_figures
from benchctl.nightly.measure import figure_rows
from benchctl.nightly.model import Series
from benchctl.nightly.screening import Screened, canary_moved, nights_of, screen
from benchctl.track.model import Challenge, Task
from builders import make_fork, make_plan, make_record, make_summary
from night_records import KEY, night
from nightly.made import series as made

GC = msgspec.structs.replace(KEY, metric="gc")
MARGIN = 0.05


def pauses(*nights: list[float], variant: str = "es") -> Series:
    found = made(nights, key=msgspec.structs.replace(GC, variant=variant))
    return Series(**{**vars(found), "additive": True})


def test_a_night_is_the_arithmetic_mean_of_its_forks_and_its_spread_a_share_of_it():
    found = nights_of(pauses([0.0, 3.0, 3.0], [0.0, 0.0], [4.0]))
    assert found.means.tolist() == [math.log(2), -math.inf, math.log(4)]
    assert found.squares.tolist() == [1.0 + 0.25 + 0.25, 0.0, 0.0]


def test_zeros_are_kept_on_disk_where_a_metric_may_be_0_and_nowhere_else(tmp_path: Path):
    summaries = [make_summary("range", 2.0, meters={"gc": 0.0, "cpu": 0.0})]
    record = make_record(
        plan=make_plan(schedules=(Challenge("c", (Task("range"),)),), metrics="gc,cpu"),
        forks=(make_fork("es", 0, *summaries),),
    )
    rows = list(figure_rows(record, night=1, labels={"es": "es"}))
    assert [(one.metric, one.value) for one in rows] == [("gc", 0.0)]
    path = tmp_path / "figures.parquet"
    write_figures([*rows, rows[0]._replace(metric="cpu")], path)
    (found,) = read_series([path], None, pytest.fail)
    assert (found.key.metric, found.additive, found.values.tolist()) == ("gc", True, [0.0])


def screened(found: Series, night: int, **other: Any) -> Screened | None:
    usual = range(1, night)
    return screen(nights_of(found), night, usual=usual, margin=MARGIN, higher_is_better=False, **other)


def test_twice_the_pauses_are_screened_with_the_ratio_of_means():
    quiet = [
        [1.0, 0.0, 2.0, 1.0],
        [0.0, 2.0, 1.1, 1.0],
        [1.0, 1.0, 0.9, 1.0],
        [2.0, 0.0, 1.0, 1.05],
        [1.0] * 4,
    ]
    found = screened(pauses(*quiet * 6, [12.0, 9.0, 11.0, 10.0]), 31)
    assert found is not None
    assert (found.direction, found.since) == ("slower", 31)
    assert found.effect_percent == pytest.approx(950, abs=10)


@pytest.mark.parametrize("rare", [1, 6])
def test_a_night_without_any_leaves_nothing_to_screen_and_is_counted(rare: int):
    nights = [[0.0, 0.0] if number == rare else [1.0, 1.0 + number / 100] for number in range(1, 7)]
    nights[5] = nights[5] if rare == 6 else [9.0, 9.1]
    known = [night(number) for number in range(1, 7)]
    found = Detector(known, known[-1], Baselines.of(known, (), known[-1]), {}).detect([pauses(*nights)])
    assert (found.findings, found.watched, found.rare) == ((), 0, 1)


def test_a_canary_that_pauses_more_moves_as_a_whole():
    quiet = [[0.0, 2.0, 1.0], [1.0, 1.1, 1.0], [1.0, 0.9, 1.0], [2.0, 0.0, 1.1], [1.0, 0.0, 1.9]]
    tasks = [
        pauses(*quiet, [4.0, 5.0, 6.0], variant="canary"),
        pauses(*quiet, [5.0, 4.0, 6.0], variant="canary"),
    ]
    found = canary_moved(tasks, 6, usual=lambda _: range(1, 6), margin=MARGIN)
    (whole,) = found.moves
    assert whole.tasks == 2
    assert whole.screened.effect_percent == pytest.approx(402, abs=2)
