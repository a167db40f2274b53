"""Nights as the tests of several packages need them."""

from typing import Any

import msgspec

from benchctl.nightly.model import NIGHT_VERSION, Finding, NightRecord, NightVariant, SeriesKey
from benchctl.results.model import EngineFacts
from benchctl.results.plan import VariantSpec

KEY = SeriesKey("es", "short", "range", "throughput")


def variant(label: str = "es", role: Any = "watched", *, build: str = "b1", **spec: Any) -> NightVariant:
    """A variant whose node said what it is."""
    found = VariantSpec(label, "elasticsearch", "8.11.0", **spec)
    facts = EngineFacts(label, found.version, build, "9.8.0", f"sha-{build}", "Temurin 21", (), ())
    return NightVariant(label, role, "es", found, found, facts)


def night(number: int, **fields: Any) -> NightRecord:
    """A night that was measured."""
    record = NightRecord(
        night_version=NIGHT_VERSION,
        id=f"{number:05d}-20261101-0300",
        number=number,
        suite="big5",
        started="2026-11-01T03:00:00+00:00",
        status="done",
        era="same",
        variants=(variant(), variant("canary", "canary")),
    )
    return msgspec.structs.replace(record, **fields)


def finding(number: int, status: Any = "confirmed", *, key: SeriesKey = KEY, **fields: Any) -> Finding:
    """A series that was a fifth slower in a night."""
    found = Finding(
        key=key,
        direction="slower",
        effect_percent=-20.0,
        low_percent=-25.0,
        high_percent=-15.0,
        baseline_nights=number - 1,
        since=night(number).id,
        last_good=night(number - 1).id,
        status=status,
        reason="",
    )
    return msgspec.structs.replace(found, **fields)
