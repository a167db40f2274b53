"""Status of a suite, in words: printed, mailed and shown on its page."""

import shlex
import textwrap
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final, Literal

from benchctl.nightly.model import (
    Alarm,
    Change,
    Event,
    Finding,
    Message,
    NightRecord,
    Raised,
    Recovered,
    SeriesKey,
    alarms_of,
)
from benchctl.report.numbers import counted, duration, interval, p_value, signed_percent, visible
from benchctl.report.table import command_lines
from benchctl.stats.metrics import metric_of

Standing = Literal["quiet", "alarm", "broken", "running"]
"""`quiet`: measured, and nothing to be woken for; `alarm`: it raised one; `broken`: it lacks figures."""

_FINDINGS_THAT_STAY_OPEN = ("unconfirmed", "held")
_SHORT_HASH = 12


def standing(record: NightRecord, events: Iterable[Event]) -> Standing:
    """Return the outcome of a night, from its record and the log of alarms."""
    if record.status == "running":
        return "running"
    if _raised_in(record, events):
        return "alarm"
    measured = record.forks_done or not record.forks_planned
    return "quiet" if record.status == "done" and measured else "broken"


def headline(record: NightRecord, events: Sequence[Event]) -> str:
    """Return the outcome as a clause: `quiet`, `2 alarms raised`, `broken: refused, the load was 3.1`."""
    recovered = _recovered_in(record, events)
    status = "" if record.status == "done" else record.status
    broken = ", ".join(part for part in (status, record.reason) if part)
    texts: dict[Standing, str] = {
        "running": "still running",
        "quiet": "quiet",
        "alarm": f"{counted(len(_raised_in(record, events)), 'alarm')} raised",
        "broken": f"broken: {broken}",
    }
    parts = [texts[standing(record, events)]]
    if recovered:
        parts.append(f"{len(recovered)} recovered")
    if record.status == "done":
        counts = Counter[str](finding.status for finding in record.findings)
        parts += [f"{counts[name]} {name}" for name in _FINDINGS_THAT_STAY_OPEN if counts[name]]
        parts += ["the host moved"] if record.canary_moved else []
        parts += ["on a noisy host"] if record.noise else []
    return ", ".join(parts)


def subject(record: NightRecord, events: Sequence[Event]) -> str:
    """Return the subject of the message, such as `big5 night 42: quiet`."""
    return f"{record.suite} night {record.number}: {headline(record, events)}"


def marks(record: NightRecord) -> tuple[str, ...]:
    """Return remarks on a night in a list of nights, in a word or two each."""
    notes = ["host moved"] if record.canary_moved else []
    notes += ["noisy host"] if record.noise else []
    if record.forks_done < record.forks_planned:
        notes.append(f"{record.forks_done} of {record.forks_planned} forks")
    counts = Counter(finding.status for finding in record.findings)
    notes += [f"{count} {status}" for status, count in counts.items()]
    return tuple(notes)


def not_watched(record: NightRecord) -> list[str]:
    """Return what a night could not have detected, a sentence each; nothing for a broken night."""
    if record.status != "done":
        return []
    reasons = []
    if record.canary_moved:
        held = sum(finding.status == "held" for finding in record.findings)
        reasons.append(f"The host moved: {record.canary_moved}. {counted(held, 'finding')} held.")
    reasons += [f"Noisy: {reason}." for reason in record.noise]
    if record.forks_done < record.forks_planned:
        limit = f" fitted into the budget of {duration(record.budget_s)}" if record.budget_s else " were done"
        reasons.append(f"{record.forks_done} of {record.forks_planned} forks of each variant{limit}.")
    reasons += [
        (
            f"Not confirmed: {series_name(finding.key)} {signed_percent(finding.effect_percent)}%: "
            f"{finding.reason}."
        )
        for finding in record.findings
        if finding.status == "unconfirmed"
    ]
    return [sentence(text) for text in (*reasons, *record.caveats)]


def _raised_in(record: NightRecord, events: Iterable[Event]) -> list[Raised]:
    return [event for event in events if isinstance(event, Raised) and event.night == record.id]


def _recovered_in(record: NightRecord, events: Iterable[Event]) -> list[Recovered]:
    return [event for event in events if isinstance(event, Recovered) and event.night == record.id]


def metric_title(key: str) -> str:
    """Return what tables call a metric; an unknown machine name as it is."""
    try:
        return metric_of(key).title
    except ValueError:
        return key


def task_name(key: SeriesKey, *, challenges: int = 2) -> str:
    """Return the task, with its challenge where a suite has several."""
    return f"{key.challenge}: {key.task}" if challenges > 1 and key.challenge else key.task


def series_name(key: SeriesKey) -> str:
    """Return the known parts of a series: `range p90 service time on es@latest`."""
    figure = " ".join(part for part in (key.task, metric_title(key.metric) if key.metric else "") if part)
    return " on ".join(part for part in (figure, key.variant) if part) or "the host"


def effect_text(one: Raised | Finding) -> str:
    """Return an effect as `+12.3% (95% interval +8.1 to +16.9)`; empty without one."""
    if one.effect_percent is None:
        return ""
    size = f"{signed_percent(one.effect_percent)}%"
    if one.low_percent is None or one.high_percent is None:
        return size
    return f"{size} (95% interval {interval(one.low_percent, one.high_percent)})"


def change_text(change: Change) -> str:
    """Return a change as `es: version 8.11.0 -> 8.12.0`; long hashes are shortened."""
    before, after = (_short(text) for text in (change.before, change.after))
    return f"{change.what} {before or 'none'} \N{RIGHTWARDS ARROW} {after or 'none'}"


def moment(wall_clock: str) -> str:
    """Return `2026-11-21T03:00:12+00:00` as people write it, to the minute."""
    return wall_clock[:16].replace("T", " ")


def night_label(night_id: str) -> str:
    """Return what people call the night of an id: `night 42`, or the id itself if it has no number."""
    number = night_id.partition("-")[0]
    return f"night {int(number)}" if number.isascii() and number.isdigit() else night_id


def alarm_sentence(alarm: Alarm) -> str:
    """Return an alarm's state: `open`, `acknowledged by ann: known`, `recovered in night 44: ...`."""
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
    """Return a text with one full stop, whether it has one already or not."""
    return f"{text[:1].upper()}{text[1:].rstrip('. ')}."


# A night on one screen, for mail and standard output; and how a suite stands, for `nightly status`.


WIDTH: Final = 100
LINES: Final = 24

_INDENT = "    "
_MOST_CHANGES = 4
_MOST_COMMAND_LINES = 3

# (alarms with all that they carry, entries of every list, lines of a title or sentence): from all there is to
# hardly anything, the first that fits the screen is taken. What is left out is counted.
_SIZES: Final = (
    *((3, listed, 2) for listed in (12, 8, 6, 4)),
    *((detailed, listed, wrapped) for detailed in (2, 1) for listed, wrapped in ((6, 2), (3, 2), (3, 1))),
    *((0, listed, 1) for listed in (6, 4, 3, 2, 1)),
)


def summary(
    record: NightRecord,
    events: Sequence[Event],
    *,
    width: int = WIDTH,
    lines: int = LINES,
) -> str:
    """Return one screen about a night: the answer, then alarms by state, and what was not watched.

    Args:
        record: of the night.
        events: of the suite, all of them.
        width: columns; only lines with a longer path or word exceed it.
        lines: at most; 16 or more. What does not fit is counted.

    Returns:
        Text without control characters except line feeds, and with one at its end.
    """
    for size in _SIZES:
        parts = _summary(record, events, width, size)
        # Empty lines between the parts where there is room.
        rows = sum(map(len, parts))
        gap = [""] if rows + len(parts) - 1 <= lines else []
        if rows <= lines:
            break
    joined = [line for place, part in enumerate(parts) for line in (*(gap if place else ()), *part)]
    return "".join(f"{line}\n" for line in joined)


def status_text(
    suite: str,
    record: NightRecord | None,
    events: Sequence[Event],
    *,
    holder: str = "",
    waits_for: str = "",
    width: int = WIDTH,
) -> str:
    """Return the state of a suite: its last night, who runs it now, and open alarms.

    Args:
        suite: its name.
        record: of its last night; None when there was none.
        events: of the suite.
        holder: who holds its lock, in words; empty when nobody does.
        waits_for: who is measuring, if the holder waits for that; empty when it is at work itself.
        width: columns.
    """
    lines = _wrapped(f"{suite}: no night yet" if record is None else subject(record, events), width)
    if record is not None:
        took = f", took {duration(record.wall_s)}" if record.wall_s else ""
        lines.append(f"Last night:  {moment(record.started)}{took}")
    if waits_for:
        lines += _wrapped(f"Waiting now: {holder}, for another benchctl: {waits_for}", width)
    elif holder:
        lines += _wrapped(f"Running now: {holder}", width)
    alarms = alarms_of(events)
    waiting = [alarm for alarm in alarms if alarm.state == "open"]
    acknowledged = [alarm for alarm in alarms if alarm.state == "acknowledged"]
    lines.append(f"Alarming:    {counted(len(waiting), 'alarm') + ' open' if waiting else 'nothing'}")
    for alarm in waiting:
        lines += _wrapped(f"#{alarm.raised.alarm}  {alarm.raised.title}", width, _INDENT)
    if waiting:
        lines.append(f"{_INDENT}acknowledge with: benchctl nightly ack")
    for alarm in acknowledged:
        text = f"#{alarm.raised.alarm}  {alarm.raised.title} ({alarm_sentence(alarm)})"
        lines += _wrapped(text, width, _INDENT)
    lines += _listed("To know", [] if record is None else not_watched(record), width, 12, 2)
    return "".join(f"{line}\n" for line in lines)


def _summary(
    record: NightRecord, events: Sequence[Event], width: int, size: tuple[int, int, int]
) -> list[list[str]]:
    """Return the parts of the screen, those without anything to say left out."""
    detailed, most, wrapped = size
    alarms = {alarm.raised.alarm: alarm for alarm in alarms_of(events)}
    raised = _raised_in(record, events)
    new = {event.alarm for event in raised}
    recovered = [alarms[event.alarm] for event in _recovered_in(record, events) if event.alarm in alarms]
    waiting = [
        alarm.raised for alarm in alarms.values() if alarm.state == "open" and alarm.raised.alarm not in new
    ]
    lists = (
        ("Also new" if detailed else "New", [_title(event) for event in raised[detailed:]]),
        ("Recovered", [_recovered(alarm) for alarm in recovered]),
        ("Open", [f"{_title(alarm)} ({night_label(alarm.night)})" for alarm in waiting]),
        ("To know", not_watched(record)),
        ("Changed", [_changes(record.changes)] if record.changes and not raised else []),
    )
    parts = [
        _wrapped(subject(record, events), width)[: 1 + wrapped],
        *(_alarm_lines(event, width, wrapped) for event in raised[:detailed]),
        *(_listed(title, entries, width, most, wrapped) for title, entries in lists),
        _end(record, width),
    ]
    return [part for part in parts if part]


def _alarm_lines(event: Raised, width: int, wrapped: int) -> list[str]:
    """Return what, how much, since when, what changed then, what confirmed it, and what repeats it."""
    since = f"since {night_label(event.since)}" if event.since else ""
    good = f"last good {night_label(event.last_good)}" if event.last_good else ""
    texts = [
        ", ".join(part for part in (effect_text(event), since, good) if part),
        event.detail,
        f"Changed then: {_changes(event.changes) or 'nothing that benchctl knows of'}",
    ]
    if (confirmation := event.confirmation) is not None:
        forks = f"{confirmation.forks_good} + {confirmation.forks_tonight} forks"
        texts.append(f"Confirmed by run {confirmation.run}: {forks}, p {p_value(confirmation.p_adjusted)}")
    return [
        *_wrapped(f"#{event.alarm}  {event.title}", width, most=wrapped),
        *(line for text in texts for line in _wrapped(text, width, _INDENT, wrapped)),
        *_command_lines(event, width),
    ]


def _command_lines(event: Raised, width: int) -> list[str]:
    """Return a command as a shell takes it, over some lines; a longer one is on the suite's page."""
    try:
        words = shlex.split(event.command)
    except ValueError:  # no shell would take it, either: it is shown as it is
        words = event.command.split()
    lines = list(map(visible, command_lines(words, width, lead=_INDENT)))
    if len(lines) > _MOST_COMMAND_LINES:
        return [f"{_INDENT}The command that reproduces it is long: see benchctl nightly status --html"]
    return lines if words else []


def _listed(title: str, entries: Sequence[str], width: int, most: int, wrapped: int) -> list[str]:
    """Return a heading with its entries below it; those that do not fit are counted."""
    if not entries:
        return []
    lines = [line for entry in entries[:most] for line in _wrapped(entry, width - 2, "  ", wrapped)]
    more = [f"  and {len(entries) - most} more"] if len(entries) > most else []
    return [f"{title}:", *lines, *more]


def _end(record: NightRecord, width: int) -> list[str]:
    took = f", {duration(record.wall_s)}" if record.wall_s else ""
    run = f", run {record.run}" if record.run else ""
    return _wrapped(f"Night {record.id}: {moment(record.started)}{took}{run}", width)


def _title(event: Raised) -> str:
    return f"#{event.alarm}  {event.title}"


def _recovered(alarm: Alarm) -> str:
    text = alarm.recovered.text if alarm.recovered is not None else ""
    return f"{_title(alarm.raised)}{f' ({text})' if text else ''}"


def _changes(changes: Sequence[Change]) -> str:
    """Return the first few changes, and how many more."""
    texts = [change_text(change) for change in changes[:_MOST_CHANGES]]
    more = len(changes) - _MOST_CHANGES
    return "; ".join([*texts, *([f"and {more} more"] if more > 0 else [])])


def _wrapped(text: str, width: int, indent: str = "", most: int | None = None) -> list[str]:
    """Fold a text, to at most so many lines, the last of which tells if there is more."""
    return textwrap.wrap(
        " ".join(visible(text).split()),
        width,
        initial_indent=indent,
        subsequent_indent=f"{indent}{_INDENT}",
        break_on_hyphens=False,
        max_lines=most,
        placeholder=" ...",
    )


def message_of(record: NightRecord, events: Sequence[Event], *, width: int = WIDTH) -> Message:
    """Return the message about a finished night, from all events of the suite, the night's own included."""
    state = standing(record, events)
    alarms = alarms_of(events)
    return Message(
        # A night that could not even begin has no id, and the next such one is news again.
        id=f"{record.suite}/{record.id or record.started.replace(':', '')}",
        suite=record.suite,
        night=record.id,
        number=record.number,
        started=record.started,
        status="broken" if state == "running" else state,
        subject=" ".join(visible(subject(record, events)).split()),
        text=summary(record, events, width=width),
        raised=tuple(alarm for alarm in alarms if alarm.raised.night == record.id),
        recovered=tuple(
            alarm for alarm in alarms if alarm.recovered is not None and alarm.recovered.night == record.id
        ),
        open=tuple(alarm for alarm in alarms if alarm.state == "open"),
        findings=dict(Counter(finding.status for finding in record.findings)),
        not_watched=tuple(not_watched(record)),
        run=record.run,
        wall_s=record.wall_s,
    )
