"""Nights, findings, alarms, runs and series as the tests of this package need them."""

import math
from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np

from benchctl.nightly.records import NIGHT_VERSION, Alarm, Finding, NightRecord, SeriesKey
from benchctl.nightly.series import Series
from benchctl.results.model import EngineFacts, RunRecord
from benchctl.results.plan import VariantSpec
from builders import make_plan, make_record

KEY = SeriesKey("es", "short", "range", "throughput")
OTHER = msgspec.structs.replace(KEY, task="sort")
HOST = SeriesKey("canary", "", "", "throughput")


def night_id(number: int) -> str:
    return f"{number:05d}-20261101-0300" if number else ""


def night(number: int, **fields: Any) -> NightRecord:
    """A night that was measured."""
    record = NightRecord(
        night_version=NIGHT_VERSION,
        id=night_id(number),
        number=number,
        suite="big5",
        started="2026-11-01T03:00:00+00:00",
        status="done",
        era="same",
        run=f"run-{number}",
        canary="canary",
        wall_s=3712.0,
    )
    return msgspec.structs.replace(record, **fields)


def finding(number: int, status: Any = "confirmed", *, key: SeriesKey = KEY, **fields: Any) -> Finding:
    """A series that is a fifth slower since a night."""
    made = Finding(
        key=key,
        direction="slower",
        effect_percent=-20.0,
        low_percent=-25.0,
        high_percent=-15.0,
        since=night_id(number),
        last_good=night_id(number - 1),
        status=status,
        reason=f"why it is {status}",
    )
    return msgspec.structs.replace(made, **fields)


def alarm(number: int, since: int, raised: int | None = None, key: SeriesKey = KEY, **fields: Any) -> Alarm:
    """An alarm about a series that is slower."""
    made = Alarm(number, night_id(raised or since), f"alarm {number}", finding(since, key=key))
    return msgspec.structs.replace(made, **fields)


def recovered(number: int, since: int, end: int, key: SeriesKey = KEY) -> Alarm:
    return alarm(number, since, key=key, recovered=night_id(end), end="as before")


def run(build: str = "b1", labels: Sequence[str] = ("es", "canary"), **spec: Any) -> RunRecord:
    """A night's run, of which nothing is known but its variants."""
    specs = tuple(VariantSpec(label, "elasticsearch", "8.11.0", **spec) for label in labels)
    facts = tuple(
        EngineFacts(label, "8.11.0", build, "9.8.0", f"sha-{build}", "Temurin 21", (), ()) for label in labels
    )
    return make_record(build, plan=make_plan(variants=specs), engines=facts)


def series(
    nights: Sequence[Sequence[float]],
    *,
    first: int = 1,
    key: SeriesKey = KEY,
    higher_is_better: bool = False,
    additive: bool = False,
) -> Series:
    """One list of values a night; an empty one is a missing night."""
    entries = [(number, value) for number, values in enumerate(nights, start=first) for value in values]
    return Series(
        key=key,
        unit="ms",
        higher_is_better=higher_is_better,
        nights=np.array([entry[0] for entry in entries], np.int64),
        values=np.array([entry[1] for entry in entries], np.float64),
        additive=additive,
    )


def drawn(levels: Sequence[float], *, seed: int) -> Series:
    """One level in natural logarithms a night, over 10 ms."""
    rng = np.random.default_rng(seed)
    means = math.log(10) + np.array(levels) + rng.normal(0, 0.02, len(levels))
    return series(np.exp(means[:, None]).tolist())
