"""What became of findings, in the order in which it happened: an append-only log, and its state."""

from collections.abc import Iterable
from typing import Literal

import msgspec

from benchctl.results.nightly.model import Change, Confirmation, Direction, SeriesKey

AlarmKind = Literal["figure", "answer", "host", "unwatched"]
"""A figure that changed; an answer that changed; a canary off for so long that nobody watches; figures
that were held or unconfirmed for so long that nobody watches those."""

AlarmState = Literal["open", "acknowledged", "recovered"]


class Raised(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab", tag="raised"):
    """An alarm: it carries all that somebody who is woken by it wants to know.

    Attributes:
        alarm: number, from 1; people type it.
        at: wall clock, ISO 8601.
        night: id of the night that raised it.
        kind: what sort.
        title: one line: what, how much, since when.
        key: the series; of an alarm that is not about a figure, as much of it as there is, else empty texts.
        direction: which way; None for answers and hosts.
        effect_percent, low_percent, high_percent: as confirmed, with the 95 % interval; None likewise.
        since: id of the first night that shows it.
        last_good: id of the newest night that does not.
        changes: what changed then.
        confirmation: the run that confirmed it; None for answers and hosts.
        command: what reproduces it.
        baseline_log: mean of the natural logarithms of the figure over the nights before; None likewise.
        detail: more, in words.
        operations: of an alarm about answers, the names of the operations.
    """

    alarm: int
    at: str
    night: str
    kind: AlarmKind
    title: str
    key: SeriesKey
    direction: Direction | None = None
    effect_percent: float | None = None
    low_percent: float | None = None
    high_percent: float | None = None
    since: str = ""
    last_good: str = ""
    changes: tuple[Change, ...] = ()
    confirmation: Confirmation | None = None
    command: str = ""
    baseline_log: float | None = None
    detail: str = ""
    operations: tuple[str, ...] = ()

    def concerns(self, key: SeriesKey) -> bool:
        """Whether it is about a series, too: what its key leaves open is any."""
        pairs = zip(msgspec.structs.astuple(self.key), msgspec.structs.astuple(key), strict=True)
        named = not self.operations or key.task in self.operations
        return named and all(wanted in ("", found) for wanted, found in pairs)


class Acknowledged(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab", tag="acknowledged"
):
    """Somebody knows; the new level is the usual one from then on.

    Attributes:
        alarm: which.
        at: wall clock.
        who: user name.
        text: why it is all right, or who sees to it.
    """

    alarm: int
    at: str
    who: str
    text: str = ""


class Recovered(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab", tag="recovered"):
    """What the alarm was about is as it was before, or is there no more.

    Attributes:
        alarm: which.
        at: wall clock.
        night: id of the night that showed it.
        text: how it shows, or why nothing of it is left.
    """

    alarm: int
    at: str
    night: str
    text: str = ""


class Annotated(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab", tag="annotated"):
    """Something that somebody knows happened.

    Attributes:
        at: wall clock of writing it down.
        night: id of the first night that it bears on; empty for the next one.
        number: of that night; the number that the next one would get.
        text: what.
        who: user name.
        rebase: the usual level of every series is found anew from that night on.
    """

    at: str
    night: str
    number: int
    text: str
    who: str = ""
    rebase: bool = False


Event = Raised | Acknowledged | Recovered | Annotated


class Alarm(msgspec.Struct, frozen=True):
    """An alarm, and how it stands.

    Attributes:
        raised: as it was raised.
        state: open until it is acknowledged or recovers; acknowledged ones may still recover.
        acknowledged: None when nobody has.
        recovered: None when it has not.
    """

    raised: Raised
    state: AlarmState = "open"
    acknowledged: Acknowledged | None = None
    recovered: Recovered | None = None


def alarms_of(events: Iterable[Event]) -> tuple[Alarm, ...]:
    """Every alarm as it stands after all events, in the order in which they were raised.

    Events about alarms that were never raised are passed over: a log that was cut short still reads.
    """
    found: dict[int, Alarm] = {}
    for event in events:
        match event:
            case Raised():
                found[event.alarm] = Alarm(event)
            case Acknowledged() if event.alarm in found:
                alarm = found[event.alarm]
                state: AlarmState = "recovered" if alarm.state == "recovered" else "acknowledged"
                found[event.alarm] = msgspec.structs.replace(alarm, state=state, acknowledged=event)
            case Recovered() if event.alarm in found:
                found[event.alarm] = msgspec.structs.replace(
                    found[event.alarm], state="recovered", recovered=event
                )
            case _:
                pass
    return tuple(found.values())


def annotations_of(events: Iterable[Event]) -> tuple[Annotated, ...]:
    """What was written down, in that order."""
    return tuple(event for event in events if isinstance(event, Annotated))
