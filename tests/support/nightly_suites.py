"""Suites of nights made by hand: what reports of nights are tried on, plain and difficult."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import numpy as np

from benchctl.nightly.model import (
    NIGHT_VERSION,
    Acknowledged,
    Change,
    Confirmation,
    Event,
    Finding,
    NightRecord,
    NightVariant,
    Raised,
    Recovered,
    Series,
    SeriesKey,
)
from benchctl.results.model import EngineFacts
from builders import ES, OS, make_environment

FIRST = datetime(2026, 6, 1, 3, 0, tzinfo=UTC)
KEY = SeriesKey("es@latest", "big5", "range", "service_time_p90")
TASKS = ("desc_sort_timestamp", "composite-date_histogram-daily", "range")
VARIANTS = ("es@latest", "os@latest", "pinned")
COMMAND = "benchctl compare 20260709-0300-big5-a:es@latest 20260712-0300-big5-a:es@latest --challenge big5"
CONFIRMATION = Confirmation("20260712-0345-confirm-c", 8, 8, 11.8, 8.1, 15.6, 0.0004, COMMAND)
BUILD = "d9ec3fa628c7d0ba3d25692e277ba26814820b20"
MISSING = frozenset({20, 21, 55})


def started(number: int) -> datetime:
    return FIRST + timedelta(days=number - 1)


def night_id(number: int) -> str:
    return f"{number:05d}-{started(number):%Y%m%d-%H%M}"


def make_variant(label: str, number: int) -> NightVariant:
    """Versions change every twenty nights; `pinned` is a canary."""
    spec = msgspec.structs.replace(OS if label.startswith("os") else ES, name=label)
    version = spec.version if label == "pinned" else f"8.{11 + number // 20}.0"
    facts = EngineFacts(label, version, BUILD, "9.8.0", "a", "Temurin 21.0.8", (), ())
    return NightVariant(label, "canary" if label == "pinned" else "watched", label, spec, facts=facts)


def make_night(number: int, labels: Sequence[str] = VARIANTS, **more: Any) -> NightRecord:
    """A quiet night, but for what is given."""
    run = f"{started(number):%Y%m%d-%H%M}-big5-a"
    base = NightRecord(
        night_version=NIGHT_VERSION,
        id=night_id(number),
        number=number,
        suite="big5",
        started=started(number).isoformat(),
        status="done",
        era="e",
        environment=make_environment(benchctl_commit="0123456789abcdef" * 2),
        variants=tuple(make_variant(label, number) for label in labels),
        run=run,
        runs=(run,),
        forks_planned=5,
        forks_done=5,
        wall_s=3712.0,
        budget_s=5400.0,
    )
    return msgspec.structs.replace(base, **more)


def make_series(
    key: SeriesKey,
    numbers: Sequence[int],
    *,
    typical: float = 10.0,
    step: tuple[int, float] | None = None,
    forks: int = 5,
) -> Series:
    """Values that wobble by 1.5% from night to night; from a night on they are a factor greater."""
    rng = np.random.default_rng([len(key.variant), len(key.task), len(key.metric)])
    nights = np.repeat(np.array(numbers, dtype=np.int64), forks)
    logs = np.repeat(rng.normal(0, 0.015, len(numbers)), forks) + rng.normal(0, 0.012, nights.size)
    values = typical * np.exp(logs)
    if step is not None:
        values = np.where(nights >= step[0], step[1] * values, values)
    rate = key.metric == "throughput"
    fork = np.tile(np.arange(forks, dtype=np.int64), len(numbers))
    return Series(key, "queries/s" if rate else "ms", rate, nights, fork, values)


def make_raised(number: int = 1, **more: Any) -> Raised:
    """A slower `range`, since night 40, raised in night 42."""
    base = Raised(
        alarm=number,
        at="2026-07-12T04:01:12+00:00",
        night=night_id(42),
        kind="figure",
        title="range p90 service time on es@latest is 11.8% slower since night 40",
        key=KEY,
        direction="slower",
        effect_percent=11.8,
        low_percent=8.1,
        high_percent=15.6,
        since=night_id(40),
        last_good=night_id(39),
        changes=(
            Change("es@latest: version", "8.12.0", "8.13.0", "es@latest"),
            Change("kernel", "6.1.0", "6.1.7"),
        ),
        confirmation=CONFIRMATION,
        command=COMMAND,
    )
    return msgspec.structs.replace(base, **more)


def make_finding(**more: Any) -> Finding:
    """A slower `range` that nobody had the time to confirm."""
    base = Finding(
        key=KEY,
        direction="slower",
        effect_percent=9.7,
        low_percent=4.2,
        high_percent=15.4,
        baseline_nights=39,
        since=night_id(40),
        last_good=night_id(39),
        status="unconfirmed",
        reason="the budget left time for 3 forks per variant",
    )
    return msgspec.structs.replace(base, **more)


def eventful_nights(count: int = 70) -> list[NightRecord]:
    """Of everything that can happen, something."""
    confirmed = make_finding(status="confirmed", reason="8 + 8 forks show it", confirmation=CONFIRMATION)
    held = make_finding(status="held", reason="the canary moved the same way")
    edits: dict[int, dict[str, Any]] = {
        20: {"status": "refused", "reason": "the load was 3.1 on 2 CPUs", "run": "", "forks_done": 0},
        21: {"status": "failed", "reason": "no space left on the device", "run": "", "forks_done": 0},
        40: {"changes": make_raised().changes},
        42: {"findings": (confirmed,)},
        45: {"findings": (make_finding(),)},
        50: {"canary_moved": "pinned was 7% slower on 3 of 3 tasks", "findings": (held,)},
        52: {"noise": ("the load before the night was 1.4 on 2 CPUs",), "forks_done": 3},
        55: {"status": "interrupted", "reason": "the power went", "run": ""},
        60: {"changes": (Change("memory", "16 GiB", "24 GiB"),)},
    }
    return [
        make_night(number, era="f" if number >= 60 else "e", **edits.get(number, {}))
        for number in range(1, count + 1)
    ]


def eventful_log() -> tuple[Event, ...]:
    """Four alarms, two of them open."""
    unwatched = make_raised(
        2,
        at="2026-08-08T04:00:00+00:00",
        night=night_id(69),
        kind="unwatched",
        title="os@latest has been off in 5 successive nights, never confirmed: range",
        key=SeriesKey("os@latest", "", "", ""),
        **dict.fromkeys(("direction", "effect_percent", "low_percent", "high_percent", "confirmation")),
        since=night_id(69),
        last_good=night_id(68),
        changes=(),
    )
    recovering = make_raised(
        3,
        at="2026-06-30T04:00:00+00:00",
        night=night_id(30),
        title="desc_sort_timestamp throughput on os@latest is 6% lower since night 30",
        key=SeriesKey("os@latest", "big5", "desc_sort_timestamp", "throughput"),
        since=night_id(30),
        last_good=night_id(29),
    )
    known = make_raised(
        4,
        title="range throughput on es@latest is 10% lower since night 40",
        key=SeriesKey("es@latest", "big5", "range", "throughput"),
    )
    return (
        recovering,
        Recovered(3, "2026-07-08T04:00:00+00:00", night_id(38), "two nights within 1% of before"),
        make_raised(),
        known,
        Acknowledged(4, "2026-07-13T09:00:00+00:00", "bea", "the new default; see the release notes"),
        unwatched,
    )


def eventful_series(tasks: Sequence[str] = TASKS) -> list[Series]:
    """Seventy nights of two watched variants and a canary; on one, `range` is slower since night 40."""
    nights = eventful_nights()
    there = [night.number for night in nights if night.number not in MISSING]
    series = []
    for task in tasks:
        for metric, factor in (("throughput", 0.9), ("service_time_p90", 1.118)):
            for place, variant in enumerate(VARIANTS):
                step = (40, factor) if (variant, task) == ("es@latest", "range") else None
                key = SeriesKey(variant, "big5", task, metric)
                series.append(make_series(key, there, typical=40.0 + 7 * place, step=step))
    return sorted(series, key=lambda one: one.key)
