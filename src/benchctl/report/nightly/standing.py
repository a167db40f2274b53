"""How a night stands, in the words that its page, its message and the feed share."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Literal

from benchctl.report.numbers import counted, duration, interval, signed_percent
from benchctl.results.nightly.model import (
    Alarm,
    Change,
    Event,
    Finding,
    NightRecord,
    Raised,
    Recovered,
    SeriesKey,
)
from benchctl.stats.metrics import metric_of

Standing = Literal["quiet", "alarm", "broken", "running"]
"""`quiet`: measured, and nothing to be woken for; `alarm`: it raised one; `broken`: it lacks figures."""

_FINDINGS_THAT_STAY_OPEN = ("unconfirmed", "held")
_SHORT_HASH = 12


def standing(record: NightRecord, events: Iterable[Event]) -> Standing:
    """What became of a night, from its record and the log of alarms."""
    if record.status == "running":
        return "running"
    if raised_in(record, events):
        return "alarm"
    measured = record.forks_done or not record.forks_planned
    return "quiet" if record.status == "done" and measured else "broken"


def look(record: NightRecord, events: Iterable[Event]) -> Standing | Literal["unwatched"]:
    """How pages show a night: as it stands, or that quiet says little, as the host moved or was noisy."""
    found = standing(record, events)
    return "unwatched" if found == "quiet" and (record.canary_moved or record.noise) else found


def headline(record: NightRecord, events: Sequence[Event]) -> str:
    """The same as a clause: `quiet`, `2 alarms raised, 1 recovered`, `broken: refused, the load was 3.1`."""
    recovered = recovered_in(record, events)
    status = "" if record.status == "done" else record.status
    broken = ", ".join(part for part in (status, record.reason) if part)
    found: dict[Standing, str] = {
        "running": "still running",
        "quiet": "quiet",
        "alarm": f"{counted(len(raised_in(record, events)), 'alarm')} raised",
        "broken": f"broken: {broken}",
    }
    parts = [found[standing(record, events)]]
    if recovered:
        parts.append(f"{len(recovered)} recovered")
    if record.status == "done":
        counts = Counter[str](finding.status for finding in record.findings)
        parts += [f"{counts[name]} {name}" for name in _FINDINGS_THAT_STAY_OPEN if counts[name]]
        parts += ["the host moved"] if record.canary_moved else []
        parts += ["on a noisy host"] if record.noise else []
    return ", ".join(parts)


def subject(record: NightRecord, events: Sequence[Event]) -> str:
    """One line: `big5 night 42: quiet`."""
    return f"{record.suite} night {record.number}: {headline(record, events)}"


def marks(record: NightRecord) -> tuple[str, ...]:
    """What a reader of a list of nights should know of one, in a word or two each."""
    found = ["host moved"] if record.canary_moved else []
    found += ["noisy host"] if record.noise else []
    if record.forks_done < record.forks_planned:
        found.append(f"{record.forks_done} of {record.forks_planned} forks")
    counts = Counter(finding.status for finding in record.findings)
    found += [f"{count} {status}" for status, count in counts.items()]
    found += [f"{counted(len(record.answers), 'answer')} changed"] if record.answers else []
    return tuple(found)


def not_watched(record: NightRecord) -> list[str]:
    """What nobody could have seen in a night, a sentence each; nothing of a night that is broken."""
    if record.status != "done":
        return []
    found = []
    if record.canary_moved:
        held = sum(finding.status == "held" for finding in record.findings)
        found.append(f"The host moved: {record.canary_moved}. {counted(held, 'finding')} held.")
    found += [f"Noisy: {reason}." for reason in record.noise]
    if record.forks_done < record.forks_planned:
        limit = f" fitted into the budget of {duration(record.budget_s)}" if record.budget_s else " were done"
        found.append(f"{record.forks_done} of {record.forks_planned} forks of each variant{limit}.")
    found += [
        f"Not confirmed: {series_name(one.key)} {signed_percent(one.effect_percent)} %: {one.reason}."
        for one in record.findings
        if one.status == "unconfirmed"
    ]
    return [sentence(text) for text in (*found, *record.caveats)]


def raised_in(record: NightRecord, events: Iterable[Event]) -> list[Raised]:
    """The alarms that a night raised."""
    return [event for event in events if isinstance(event, Raised) and event.night == record.id]


def recovered_in(record: NightRecord, events: Iterable[Event]) -> list[Recovered]:
    """The alarms that recovered in a night."""
    return [event for event in events if isinstance(event, Recovered) and event.night == record.id]


def metric_title(key: str) -> str:
    """What tables call a metric; a machine name that is nobody's stands for itself."""
    try:
        return metric_of(key).title
    except ValueError:
        return key


def task_name(key: SeriesKey, *, challenges: int = 2) -> str:
    """The task, with its challenge where a suite has several."""
    return f"{key.challenge}: {key.task}" if challenges > 1 and key.challenge else key.task


def series_name(key: SeriesKey) -> str:
    """As much of a series as there is: `range p90 service time on es@latest`."""
    figure = " ".join(part for part in (key.task, metric_title(key.metric) if key.metric else "") if part)
    return " on ".join(part for part in (figure, key.variant) if part) or "the host"


def effect_text(one: Raised | Finding) -> str:
    """`+12.3 % (95 % interval +8.1 to +16.9)`; empty where there is none."""
    if one.effect_percent is None:
        return ""
    size = f"{signed_percent(one.effect_percent)} %"
    if one.low_percent is None or one.high_percent is None:
        return size
    return f"{size} (95 % interval {interval(one.low_percent, one.high_percent)})"


def change_text(change: Change) -> str:
    """`es: version 8.11.0 -> 8.12.0`; long hashes are shortened."""
    before, after = (_short(text) for text in (change.before, change.after))
    return f"{change.what} {before or 'none'} \N{RIGHTWARDS ARROW} {after or 'none'}"


def moment(wall_clock: str) -> str:
    """`2026-11-21T03:00:12+00:00` as people write it, to the minute."""
    return wall_clock[:16].replace("T", " ")


def night_label(night_id: str) -> str:
    """What people call the night of an id: `night 42`, and the id itself where that says no number."""
    number = night_id.partition("-")[0]
    return f"night {int(number)}" if number.isascii() and number.isdigit() else night_id


def alarm_sentence(alarm: Alarm) -> str:
    """How it stands: `open`, `acknowledged by ann: known`, `recovered in night 44: ...`."""
    if alarm.recovered is not None:
        return _with(f"recovered in {night_label(alarm.recovered.night)}", alarm.recovered.text)
    if alarm.acknowledged is not None:
        return _with(f"acknowledged by {alarm.acknowledged.who or 'somebody'}", alarm.acknowledged.text)
    return "open"


def _with(words: str, text: str) -> str:
    return f"{words}: {text}" if text else words


def _short(text: str) -> str:
    is_hash = len(text) > _SHORT_HASH and all(char in "0123456789abcdef" for char in text)
    return text[:_SHORT_HASH] if is_hash else text


def sentence(text: str) -> str:
    """One full stop, whether the reason inside had its own."""
    return f"{text[:1].upper()}{text[1:].rstrip('. ')}."
