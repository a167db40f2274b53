"""Which nights are old, and whose a run is."""

from collections.abc import Collection, Iterable, Sequence

from benchctl.results.nightly.model import Alarm, NightRecord

_ENGINES = 2


def old_nights(nights: Iterable[NightRecord], keep: int, spared: Collection[str]) -> list[NightRecord]:
    """The nights before the newest `keep` that have a run, in order; among them nights that were cut off.

    Args:
        nights: in any order.
        keep: at least 1.
        spared: ids of nights that never are old.
    """
    ordered = sorted(nights, key=lambda night: night.number)
    measured = [night.number for night in ordered if night.run]
    if len(measured) <= keep:
        return []
    return [night for night in ordered if night.number < measured[-keep] and night.id not in spared]


def looked_into(alarms: Iterable[Alarm]) -> frozenset[str]:
    """Ids of the nights that open alarms are about: somebody is going to want all of them."""
    return frozenset(
        night
        for alarm in alarms
        if alarm.state == "open"
        for night in (alarm.raised.last_good, alarm.raised.since, alarm.raised.night)
    )


def confirmed_against(nights: Iterable[NightRecord]) -> frozenset[str]:
    """Ids of the newest nights that had the last two engines of a variant.

    What crept up while an engine stayed the same is confirmed against the one before, however long ago.
    """
    found: dict[str, dict[str, str]] = {}
    for night in sorted(nights, key=lambda night: night.number, reverse=True):
        for variant in night.variants:
            engines = found.setdefault(variant.label, {})
            if variant.facts is not None and len(engines) < _ENGINES:
                engines.setdefault(variant.facts.archive_sha256, night.id)
    return frozenset(night for engines in found.values() for night in engines.values())


def night_of_run(tags: Collection[str], nights: Sequence[NightRecord]) -> NightRecord | None:
    """The night that a run was made in, by its tags; None when it was none of them."""
    if "nightly" not in tags:
        return None
    return next((night for night in nights if night.id in tags and night.suite in tags), None)
