"""A night on one screen, for mail and standard output; and how a suite stands, for `nightly status`."""

import shlex
import textwrap
from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from benchctl.report.nightly.standing import (
    alarm_sentence,
    change_text,
    effect_text,
    moment,
    night_label,
    not_watched,
    raised_in,
    recovered_in,
    subject,
)
from benchctl.report.numbers import counted, duration, p_value, visible
from benchctl.results.nightly.model import Alarm, Change, Event, NightRecord, Raised, alarms_of

WIDTH: Final = 100
LINES: Final = 24

_INDENT = "    "
_LEAST_LIST = 1
_MOST_CHANGES = 4
_MOST_DETAILED = 3
_MOST_COMMAND_LINES = 3


class _Sizes(msgspec.Struct, frozen=True):
    """How much of everything is said; what is left out is counted.

    Attributes:
        detailed: alarms with all that they carry.
        listed: entries of every list.
        wrapped: lines that a title or sentence may take.
        spaced: whether there are empty lines between the parts.
    """

    detailed: int
    listed: int
    wrapped: int
    spaced: bool = False


# From all there is to hardly anything: the first that fits the screen is taken.
_SIZES: Final = (
    *(_Sizes(_MOST_DETAILED, listed, 2, spaced=True) for listed in (12, 8, 6)),
    *(_Sizes(_MOST_DETAILED, listed, 2) for listed in (12, 8, 6, 4)),
    *(
        _Sizes(detailed, listed, wrapped)
        for detailed in (2, 1)
        for listed, wrapped in ((6, 2), (3, 2), (3, 1))
    ),
    *(_Sizes(0, listed, 1) for listed in (6, 4, 3, 2, _LEAST_LIST)),
)


def summary(
    record: NightRecord,
    events: Sequence[Event],
    *,
    site: str = "",
    width: int = WIDTH,
    lines: int = LINES,
) -> str:
    """One screen about a night: the answer, then new, recovered and open alarms, and what was not watched.

    Args:
        record: of the night.
        events: of the suite, all of them.
        site: path of the suite's page; empty for none.
        width: columns that no line exceeds but those with a path or a word that is longer.
        lines: that it has at most; 16 or more. What does not fit is counted.

    Returns:
        Text without control characters but line feeds, ended by one.
    """
    for sizes in _SIZES:
        found = _summary(record, events, site, width, sizes)
        if len(found) <= lines:
            break
    return "".join(f"{line}\n" for line in found)


def status_text(
    suite: str,
    record: NightRecord | None,
    events: Sequence[Event],
    *,
    next_run: str = "",
    holder: str = "",
    waits_for: str = "",
    site: str = "",
    width: int = WIDTH,
) -> str:
    """How a suite stands: its last night, the next, who runs it just now, and what is alarming.

    Args:
        suite: its name.
        record: of its last night; None when there was none.
        events: of the suite.
        next_run: when it starts next, in words; empty when nothing starts it.
        holder: who holds its lock, in words; empty when nobody does.
        waits_for: who measures, when that keeps the holder waiting; empty when it is itself at work.
        site: path of its page; empty for none.
        width: columns.
    """
    found = _wrapped(f"{suite}: no night yet" if record is None else subject(record, events), width)
    if record is not None:
        took = f", took {duration(record.wall_s)}" if record.wall_s else ""
        found.append(f"Last night:  {moment(record.started)}{took}")
    found.append(f"Next night:  {next_run or 'nothing starts it (benchctl nightly install)'}")
    if waits_for:
        found += _wrapped(f"Waiting now: {holder}, for another benchctl: {waits_for}", width)
    elif holder:
        found += _wrapped(f"Running now: {holder}", width)
    alarms = alarms_of(events)
    waiting = [alarm for alarm in alarms if alarm.state == "open"]
    known = [alarm for alarm in alarms if alarm.state == "acknowledged"]
    found.append(f"Alarming:    {counted(len(waiting), 'alarm') + ' open' if waiting else 'nothing'}")
    for alarm in waiting:
        found += _wrapped(f"#{alarm.raised.alarm}  {alarm.raised.title}", width, _INDENT)
    if waiting:
        found.append(f"{_INDENT}benchctl nightly ack says that somebody knows")
    for alarm in known:
        text = f"#{alarm.raised.alarm}  {alarm.raised.title} ({alarm_sentence(alarm)})"
        found += _wrapped(text, width, _INDENT)
    found += _listed("To know", [] if record is None else not_watched(record), width, _SIZES[0])
    found += [f"Page:        {visible(site)}"] if site else []
    return "".join(f"{line}\n" for line in found)


def _summary(record: NightRecord, events: Sequence[Event], site: str, width: int, sizes: _Sizes) -> list[str]:
    alarms = {alarm.raised.alarm: alarm for alarm in alarms_of(events)}
    raised = raised_in(record, events)
    new = {event.alarm for event in raised}
    recovered = [alarms[event.alarm] for event in recovered_in(record, events) if event.alarm in alarms]
    waiting = [one for one in alarms.values() if one.state == "open" and one.raised.alarm not in new]
    rest = [_title(event) for event in raised[sizes.detailed :]]
    parts = [
        _wrapped(subject(record, events), width)[: 1 + sizes.wrapped],
        *(_alarm_lines(event, width, sizes) for event in raised[: sizes.detailed]),
        _listed("Also new" if sizes.detailed else "New", rest, width, sizes),
        _listed("Recovered", [_recovered(one) for one in recovered], width, sizes),
        _listed(
            "Open",
            [f"{_title(one.raised)} ({night_label(one.raised.night)})" for one in waiting],
            width,
            sizes,
        ),
        _listed("To know", not_watched(record), width, sizes),
        _listed("Changed", [_changes(record.changes)] if record.changes and not raised else [], width, sizes),
        _end(record, site, width),
    ]
    gap = [""] if sizes.spaced else []
    return [
        line for place, part in enumerate(filter(None, parts)) for line in (*(gap if place else ()), *part)
    ]


def _alarm_lines(event: Raised, width: int, sizes: _Sizes) -> list[str]:
    """What, how much, since when, what changed then, what confirmed it, and what repeats it."""
    found = _cut(_wrapped(f"#{event.alarm}  {event.title}", width), sizes.wrapped)
    since = f"since {night_label(event.since)}" if event.since else ""
    good = f"last good {night_label(event.last_good)}" if event.last_good else ""
    facts = [part for part in (effect_text(event), since, good) if part]
    if facts:
        found += _cut(_wrapped(", ".join(facts), width, _INDENT), sizes.wrapped)
    if event.detail:
        found += _cut(_wrapped(event.detail, width, _INDENT), sizes.wrapped)
    changed = _changes(event.changes) or "nothing that benchctl knows of"
    found += _cut(_wrapped(f"Changed then: {changed}", width, _INDENT), sizes.wrapped)
    if event.confirmation is not None:
        one = event.confirmation
        forks = f"{one.forks_good} + {one.forks_tonight} forks"
        text = f"Confirmed by run {one.run}: {forks}, p {p_value(one.p_adjusted)}"
        found += _cut(_wrapped(text, width, _INDENT), sizes.wrapped)
    return [*found, *_command_lines(event.command, width)]


def _command_lines(line: str, width: int) -> list[str]:
    """A command that a shell takes as it stands, over some lines; a longer one is on the alarm's page."""
    if not line:
        return []
    words = _quoted(line)
    found = [_INDENT]
    for place, word in enumerate(words):
        room = width - (0 if place == len(words) - 1 else len(" \\"))
        if found[-1].strip() and len(found[-1]) + len(word) > room:
            found[-1] += "\\"
            found.append(2 * _INDENT)
        found[-1] += f"{visible(word)} "
    if len(found) > _MOST_COMMAND_LINES:
        return [f"{_INDENT}The command that reproduces it is long: see the page of alarms."]
    return [text.rstrip() for text in found]


def _quoted(line: str) -> list[str]:
    try:
        return [shlex.quote(word) for word in shlex.split(line)]
    except ValueError:  # no shell would take it, either: it is shown as it is
        return line.split()


def _listed(title: str, entries: Sequence[str], width: int, sizes: _Sizes) -> list[str]:
    """A heading with its entries below it; those that do not fit are counted."""
    if not entries:
        return []
    found = [f"{title}:"]
    for entry in entries[: sizes.listed]:
        found += _cut(_wrapped(entry, width - len(_INDENT), ""), sizes.wrapped, indent="  ")
    more = len(entries) - sizes.listed
    return [*found, f"  and {more} more"] if more > 0 else found


def _end(record: NightRecord, site: str, width: int) -> list[str]:
    took = f", {duration(record.wall_s)}" if record.wall_s else ""
    run = f", run {record.run}" if record.run else ""
    found = _wrapped(f"Night {record.id}: {moment(record.started)}{took}{run}", width)
    return [*found, *([f"Page: {visible(site)}"] if site else [])]


def _title(event: Raised) -> str:
    return f"#{event.alarm}  {event.title}"


def _recovered(alarm: Alarm) -> str:
    text = alarm.recovered.text if alarm.recovered is not None else ""
    return f"{_title(alarm.raised)}{f' ({text})' if text else ''}"


def _changes(changes: Sequence[Change]) -> str:
    """The first few, and how many more."""
    texts = [change_text(change) for change in changes[:_MOST_CHANGES]]
    more = len(changes) - _MOST_CHANGES
    return "; ".join([*texts, *([f"and {more} more"] if more > 0 else [])])


def _wrapped(text: str, width: int, indent: str = "") -> list[str]:
    plain = " ".join(visible(text).split())
    return textwrap.wrap(
        plain, width, initial_indent=indent, subsequent_indent=f"{indent}{_INDENT}" if indent else _INDENT,
        break_on_hyphens=False,
    )  # fmt: skip


def _cut(found: Iterable[str], most: int, indent: str = "") -> list[str]:
    """The first lines; the last of them says when there would be more."""
    texts = [f"{indent}{line}" for line in found]
    if len(texts) <= most:
        return texts
    return [*texts[: most - 1], f"{_shorter(texts[most - 1])} ..."]


def _shorter(line: str) -> str:
    """Without as many of its last words as make room for four characters; a single long word is cut."""
    kept = line[: -len(" ...")]
    if not line[len(kept)].isspace() and kept.split()[1:]:
        kept = kept.rpartition(" ")[0]
    return kept.rstrip()
