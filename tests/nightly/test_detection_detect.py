from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
import pytest

from benchctl.nightly.detection import Baselines, Detected, Detector, same_engine
from benchctl.nightly.model import NightRecord, Series, SeriesKey
from night_records import KEY, night, variant

CANARY = msgspec.structs.replace(KEY, variant="canary")
QUIET = (100.0, 101.0, 99.0, 100.5, 99.5)


def series(key: SeriesKey, levels: Sequence[float]) -> Series:
    """Five forks a night, from night 1 on; a level of 0 is a night without a value."""
    there = [(number, level) for number, level in enumerate(levels, 1) if level]
    return Series(
        key=key,
        unit="queries/s",
        higher_is_better=True,
        nights=np.repeat([number for number, _ in there], 5),
        forks=np.tile(np.arange(5), len(there)),
        values=np.concatenate([level * np.linspace(0.995, 1.005, 5) for _, level in there]),
    )


def nights(count: int, **tonight: Any) -> list[NightRecord]:
    return [*(night(number) for number in range(1, count)), night(count, **tonight)]


def detector(known: Sequence[NightRecord], margins: dict[str, float] | None = None) -> Detector:
    return Detector(known, known[-1], Baselines.of(known, (), known[-1]), margins or {})


def detected(
    *levels: float, canary: Sequence[float] = (), margins: dict[str, float] | None = None
) -> Detected:
    known = nights(len(levels))
    return detector(known, margins).detect(
        [series(KEY, levels), series(CANARY, canary or [50.0] * len(levels))]
    )


def test_a_figure_as_usual_is_no_finding():
    found = detected(*QUIET, 100.0)
    assert (found.findings, found.watched, found.young) == ((), 1, 0)


def test_a_slower_night_is_a_finding_that_waits_to_be_looked_into():
    found = detected(*QUIET, 70.0)
    (one,) = found.findings
    assert (one.key, one.direction, one.status) == (KEY, "slower", "unconfirmed")
    assert one.effect_percent == pytest.approx(-30, abs=0.5)
    assert (one.since, one.last_good) == (night(6).id, night(5).id)


def test_what_the_canary_shows_as_well_is_held():
    found = detected(*QUIET, 70.0, canary=(50.0, 50.5, 49.5, 50.2, 49.8, 35.0))
    assert [one.status for one in found.findings] == ["held"]
    assert "the canary is slower" in found.canary.text


def test_a_canary_by_itself_is_no_finding():
    found = detected(*QUIET, 100.0, canary=(50.0, 50.5, 49.5, 50.2, 49.8, 35.0))
    assert found.findings == ()


def test_a_margin_of_the_suite_counts_for_its_metric_alone():
    assert detected(*QUIET, 80.0, margins={"throughput": 0.6}).findings == ()
    assert len(detected(*QUIET, 80.0, margins={"service_time_p90": 0.6}).findings) == 1


def test_a_series_without_an_earlier_night_is_young():
    found = detected(0, 0, 0, 0, 0, 70.0)
    assert (found.findings, found.watched, found.young) == ((), 0, 1)


@pytest.mark.parametrize(
    ("changes", "expected"), [((), 5), ((3,), 2), ((5,), 4)], ids=["never", "early", "last night"]
)
def test_last_good_is_the_newest_night_before_that_had_another_engine(
    changes: tuple[int, ...], expected: int
):
    builds = ["old"] * 5 if changes else ["new"] * 5
    for change in changes:
        builds[change - 1 :] = ["new"] * (6 - change)
    known = [
        night(number, variants=(variant(build=build),)) for number, build in enumerate([*builds, "new"], 1)
    ]
    (one,) = detector(known).detect([series(KEY, [*QUIET, 70.0])]).findings
    assert one.last_good == night(expected).id


@pytest.mark.parametrize(
    "other",
    [
        variant(build="b2"),
        variant(jvm_flags=("-XX:-Inline",)),
        variant(settings={"a": "b"}),
        msgspec.structs.replace(variant(), facts=None),
    ],
)
def test_what_makes_another_engine(other: Any):
    assert same_engine(variant(), variant())
    assert not same_engine(variant(), other)
