"""Figures that may be 0, night by night: a night is the arithmetic mean of its forks."""

import math
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from benchctl.nightly.change_points import change_points
from benchctl.nightly.detection import Baselines, Detector
from benchctl.nightly.folder import read_series, write_figures
from benchctl.nightly.measure import figure_rows
from benchctl.nightly.model import Series
from benchctl.nightly.screening import canary_moved, forks_to_confirm, judge, nights_of, screen, too_rare
from benchctl.nightly.site.charts import sparkline
from benchctl.nightly.site.history import history_of
from benchctl.stats.compare import compare
from benchctl.track.model import Challenge, Task
from builders import make_fork, make_plan, make_record, make_summary
from night_records import KEY, night
from nightly.made import series as made

GC = msgspec.structs.replace(KEY, metric="gc")
MARGIN = 0.05


def pauses(*nights: list[float], variant: str = "es") -> Series:
    found = made(nights, key=msgspec.structs.replace(GC, variant=variant))
    return Series(**{**vars(found), "additive": True})


def drawn(rng: np.random.Generator, events: float, forks: int) -> list[float]:
    """Pauses of forks: as many as there happen to be, each of some length."""
    happened = rng.poisson(events, forks)
    return np.where(happened > 0, rng.gamma(2.0 * np.maximum(happened, 1)), 0.0).tolist()


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
    rows = list(figure_rows(record, night=1, night_id="00001-x", labels={"es": "es"}))
    assert [(one.metric, one.value) for one in rows] == [("gc", 0.0)]
    path = tmp_path / "figures.parquet"
    write_figures([*rows, rows[0]._replace(metric="cpu")], path)
    (found,) = read_series([path], None, pytest.fail)
    assert (found.key.metric, found.additive, found.values.tolist()) == ("gc", True, [0.0])


def test_twice_the_pauses_are_screened_with_the_ratio_of_means():
    quiet = [
        [1.0, 0.0, 2.0, 1.0],
        [0.0, 2.0, 1.1, 1.0],
        [1.0, 1.0, 0.9, 1.0],
        [2.0, 0.0, 1.0, 1.05],
        [1.0] * 4,
    ]
    found = screen(pauses(*quiet, [4.0, 1.0, 2.0, 1.0]), 6, candidates=range(1, 6), margin=MARGIN)
    assert found is not None
    assert (found.direction, found.since) == ("slower", 6)
    assert found.effect_percent == pytest.approx(99.5, abs=0.1)
    assert forks_to_confirm(pauses(*quiet), found.effect_log) > 5


@pytest.mark.parametrize("rare", [1, 6])
def test_a_night_without_any_leaves_nothing_to_screen_and_is_counted(rare: int):
    nights = [[0.0, 0.0] if number == rare else [1.0, 1.0 + number / 100] for number in range(1, 7)]
    nights[5] = nights[5] if rare == 6 else [9.0, 9.1]
    known = [night(number) for number in range(1, 7)]
    found = Detector(known, known[-1], Baselines.of(known, (), known[-1]), {}).detect([pauses(*nights)])
    assert (found.findings, found.watched, found.rare) == ((), 0, 1)
    assert too_rare(pauses(*nights), range(1, 7))
    assert not too_rare(pauses(*nights), [2, 3])
    assert change_points(nights_of(pauses(*(nights * 4)))) == ()


def test_a_canary_that_pauses_more_moves_as_a_whole():
    quiet = [[0.0, 2.0, 1.0], [1.0, 1.1, 1.0], [1.0, 0.9, 1.0], [2.0, 0.0, 1.1], [1.0, 0.0, 1.9]]
    tasks = [
        pauses(*quiet, [4.0, 5.0, 6.0], variant="canary"),
        pauses(*quiet, [5.0, 4.0, 6.0], variant="canary"),
    ]
    found = canary_moved(tasks, 6, candidates=lambda _: range(1, 6), margin=MARGIN)
    (whole,) = found.whole
    assert whole.tasks == 2
    assert whole.screened.effect_percent == pytest.approx(402, abs=2)


def test_histories_with_zeros_are_drawn():
    found = history_of(pauses([0.0, 3.0], [0.0, 0.0]))
    assert (found.means.tolist(), found.lows.tolist()) == (pytest.approx([1.5, 0.0]), [0.0, 0.0])
    for values in (found.means, np.zeros(2)):
        text = sparkline(found.numbers, values, span=(1, 2), label="", position=0)
        assert "nan" not in text
        assert "inf" not in text


class Outcome(msgspec.Struct):
    """What became of series that never changed."""

    screened: int = 0
    alarms: int = 0
    nights: int = 0


def unchanged(events: float, forks: int, count: int) -> Outcome:
    """Series of 55 nights whose rate of events varies from night to night, with fresh forks for findings."""
    rng = np.random.default_rng([round(events), forks])
    total = Outcome()
    for _ in range(count):
        found = pauses(*(drawn(rng, events * math.exp(rng.normal(0, 0.05)), forks) for _ in range(55)))
        refuted: list[int] = []
        for number in range(2, 56):
            total.nights += 1
            one = screen(found, number, candidates=range(1, number), margin=MARGIN, resets=refuted)
            if one is not None:
                total.screened += 1
                refuted.append(number)
                total.alarms += confirmed(rng, (events, events), forks_of(found, one), one.direction)
    return total


def forks_of(found: Series, one: Any) -> int:
    return min(forks_to_confirm(found, one.effect_log), 12)


def confirmed(rng: np.random.Generator, events: tuple[float, float], forks: int, direction: Any) -> bool:
    sides = [drawn(rng, one, forks) for one in events]
    fresh = compare(*sides, higher_is_better=False, margin=MARGIN, paired=True, additive=True)
    return judge([(fresh, direction)])[0].confirmed


@pytest.mark.parametrize("events", [3, 10, 50])
@pytest.mark.parametrize("forks", [3, 6])
def test_what_rarely_happens_is_screened_by_chance_about_as_often_as_other_figures(events: float, forks: int):
    """Three events a fork make skewed nights; a screen errs at 1 %, and what is confirmed far less."""
    found = unchanged(events, forks, 15)
    assert found.screened <= 0.035 * found.nights
    assert found.alarms <= 1


def test_twice_as_many_events_raise_an_alarm():
    rng = np.random.default_rng(7)
    raised = 0
    for _ in range(20):
        nights = [drawn(rng, 20.0 * (1 if number < 46 else 2), 6) for number in range(1, 48)]
        one = screen(pauses(*nights), 47, candidates=range(1, 47), margin=MARGIN)
        raised += one is not None and confirmed(rng, (20.0, 40.0), forks_of(pauses(*nights), one), "slower")
    assert raised >= 18
