"""Nights: their records, their figures as series, and what became of what they found."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal

import msgspec
import numpy as np
import numpy.typing as npt

from benchctl.results.model import EngineFacts, Environment
from benchctl.results.plan import VariantSpec
from benchctl.track.library import TrackSource

# The record of a night: what was measured, on what, what was found. Written as night.json.


NIGHT_VERSION: Final = 2

Role = Literal["watched", "canary"]
"""A watched variant is what alarms are about; a canary never changes, so that what moves it is the host."""

NightStatus = Literal["running", "done", "refused", "failed", "interrupted", "discarded"]
"""`refused`: the host was not fit to measure on. `discarded`: cut off, and the suite does not resume."""
CUT_OFF: Final = frozenset({"running", "interrupted"})
"""Of a night that nobody is at work on."""


Direction = Literal["faster", "slower"]


class SeriesKey(msgspec.Struct, frozen=True, forbid_unknown_fields=True, order=True):
    """Key of a value that is followed from night to night."""

    variant: str
    challenge: str  # title of the challenge; with its number where it runs more than once
    task: str  # label of the task; with its number where the challenge has several of that label
    metric: str


class NightVariant(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """A variant of a suite in one night."""

    label: str  # its name in the suite and in the night's run
    role: Role  # watched, or a canary
    asked: str  # as the suite has it, such as `es@latest`
    spec: VariantSpec  # what that meant, versions resolved
    # The same variant with nothing left to move: distribution and Java runtime by path where a version does
    # not say it; None when the night ended before that was known.
    pinned: VariantSpec | None = None
    facts: EngineFacts | None = None  # what the node said it is; None when none was started
    index_key: str = ""
    warmups: str = ""  # digest of what it alone warms up with; empty for nothing


class Change(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """Something that is not what it was in the night before."""

    what: str  # such as `kernel`, `benchctl`, `es: version`, `es: JVM flags`
    # `before`, `after`: in words; empty where there was or is nothing.
    before: str
    after: str
    variant: str = ""  # whose it is; empty for the host and benchctl


FindingStatus = Literal["confirmed", "refuted", "unconfirmed", "held", "same engine", "known"]
"""Outcome of a finding.

confirmed: an interleaved run of last-good against tonight shows it, so an alarm is raised.
refuted: in that run both are equivalent.
unconfirmed: that run decided nothing or failed, or there was no time for it; the screen stays armed.
held: the canary moved too: it was the host.
same engine: nothing of the variant has changed since last-good, so it cannot be slower by itself.
known: an alarm is about it already, and it recovers.
"""


class Confirmation(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """Last-good against tonight, interleaved on fresh nodes, on one task and metric."""

    run: str
    forks_good: int
    forks_tonight: int
    # `effect_percent`, `low_percent`, `high_percent`: tonight over last-good, minus one; the 95% interval.
    # None where forks were too few.
    effect_percent: float | None
    low_percent: float | None
    high_percent: float | None
    # In spite of all looks at the run, by Benjamini and Hochberg over its tasks; None without a test.
    p_adjusted: float | None
    command: str


class Finding(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """A series that left its usual range in a night."""

    key: SeriesKey
    direction: Direction  # as confirmed; as screened where it was not
    effect_percent: float  # the nights since the change over the usual ones before it, minus one
    low_percent: float  # its 95% interval
    high_percent: float
    baseline_nights: int  # usual nights before it
    since: str  # id of the night in which it probably began
    # Id of the newest night that surely had the level from before; not always the one before `since`.
    last_good: str
    status: FindingStatus
    reason: str  # of the status, in a sentence
    confirmation: Confirmation | None = None


class NightRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """A night of a suite, whether it was measured or not. A night that never began has none."""

    night_version: int
    # Number and start, such as `00042-20261121-0300`; ids sort in the order in which nights began, whatever
    # the clock says.
    id: str
    number: int  # from 1; no two nights of a suite have the same
    suite: str
    started: str  # wall clock, ISO 8601 with offset: a label, never reckoned with
    status: NightStatus
    reason: str = ""  # of the status, where it is not `done`; else which variants have no figures, and why
    # Digest of everything that must be alike for nights to be compared: host, corpus, challenges, sizes.
    # Series begin anew where it changes.
    era: str = ""
    environment: Environment | None = None
    track: TrackSource | None = None  # where its track is from; None for one without a repository
    variants: tuple[NightVariant, ...] = ()
    # Of the plan that the suite asked for as its forks began, with the budget; empty before that is known.
    plan_digest: str = ""
    run: str = ""  # id of the night's run; empty when there is none
    # Every run that belongs to it, the confirming ones included; empty where there is none.
    runs: tuple[str, ...] = ()
    forks_planned: int = 0  # of every variant; done is the least of any
    forks_done: int = 0
    noise: tuple[str, ...] = ()  # why the night is marked as noisy; empty when it is not
    caveats: tuple[str, ...] = ()  # what else a reader should know
    changes: tuple[Change, ...] = ()
    findings: tuple[Finding, ...] = ()  # in order of the schedule
    canary_moved: str = ""  # why the canary says that the host moved; empty when it does not
    wall_s: float = 0.0  # from start to end, on a clock that does not jump
    budget_s: float = 0.0  # what it was to keep within
    unnotified: tuple[str, ...] | None = (
        None  # ids of notifiers that lack its message; None before it is sent
    )

    def variant(self, label: str) -> NightVariant | None:
        """Return one of its variants; None when it has no such."""
        return next((variant for variant in self.variants if variant.label == label), None)


# The figures of many nights, one series a variant, task and metric: flat arrays, one entry a fork.


@dataclass(frozen=True, eq=False)
class Series:
    """A series; entries sorted by night, then fork. Nights without a value are simply not there."""

    key: SeriesKey
    unit: str
    higher_is_better: bool
    nights: npt.NDArray[np.int64]  # number of the night of each entry, shape (n,), int64
    forks: npt.NDArray[np.int64]  # number of the fork of each entry, shape (n,), int64
    values: npt.NDArray[np.float64]  # in the unit, positive and finite, shape (n,), float64
    # Whether values may be 0 as well, so that a night is the arithmetic mean of its forks.
    additive: bool = False


# What became of findings, in the order in which it happened: an append-only log, and its state.


AlarmKind = Literal["figure", "host", "unwatched"]
"""A figure that changed; a canary off for so long that nobody watches; figures
that were held or unconfirmed for so long that nobody watches those."""

AlarmState = Literal["open", "acknowledged", "recovered"]


class Raised(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab", tag="raised"):
    """An alarm: it carries all that somebody who is woken by it wants to know."""

    alarm: int  # number, from 1; people type it
    at: str  # wall clock, ISO 8601
    night: str
    kind: AlarmKind
    title: str  # one line: what, how much, since when
    # The series; of an alarm that is not about a figure, as much of it as there is, else empty texts.
    key: SeriesKey
    direction: Direction | None = None  # which way; None for hosts
    # `effect_percent`, `low_percent`, `high_percent`: as confirmed, with the 95% interval; None likewise.
    effect_percent: float | None = None
    low_percent: float | None = None
    high_percent: float | None = None
    since: str = ""
    last_good: str = ""
    changes: tuple[Change, ...] = ()
    confirmation: Confirmation | None = None  # the run that confirmed it; None for hosts
    command: str = ""
    detail: str = ""

    def concerns(self, key: SeriesKey) -> bool:
        """Return whether it is about a series, too; fields that its key leaves empty match any."""
        pairs = zip(msgspec.structs.astuple(self.key), msgspec.structs.astuple(key), strict=True)
        return all(wanted in ("", found) for wanted, found in pairs)


class Acknowledged(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab", tag="acknowledged"
):
    """Somebody knows; the new level is the usual one from then on."""

    alarm: int
    at: str
    who: str
    text: str = ""


class Recovered(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab", tag="recovered"):
    """Alarm whose cause is gone: its value is as before, or no longer exists."""

    alarm: int
    at: str
    night: str
    text: str = ""


Event = Raised | Acknowledged | Recovered


class Alarm(msgspec.Struct, frozen=True):
    """An alarm and its state."""

    raised: Raised  # as it was raised
    # Open until it is acknowledged or recovers; acknowledged ones may still recover.
    state: AlarmState = "open"
    acknowledged: Acknowledged | None = None  # None when nobody has
    recovered: Recovered | None = None  # None when it has not


def alarms_of(events: Iterable[Event]) -> tuple[Alarm, ...]:
    """Return every alarm as it is after all events, in the order in which they were raised.

    Events about alarms that were never raised are skipped, so that a truncated log can be read.
    """
    alarms: dict[int, Alarm] = {}
    for event in events:
        match event:
            case Raised():
                alarms[event.alarm] = Alarm(event)
            case Acknowledged() if event.alarm in alarms:
                alarm = alarms[event.alarm]
                state: AlarmState = "recovered" if alarm.state == "recovered" else "acknowledged"
                alarms[event.alarm] = msgspec.structs.replace(alarm, state=state, acknowledged=event)
            case Recovered() if event.alarm in alarms:
                alarms[event.alarm] = msgspec.structs.replace(
                    alarms[event.alarm], state="recovered", recovered=event
                )
            case _:
                pass
    return tuple(alarms.values())


MESSAGE_VERSION: Final = 2

MessageStatus = Literal["quiet", "alarm", "broken"]


class Message(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab", kw_only=True):
    """A night, for somebody who was not there. New attributes may come; those here keep their meaning."""

    schema_version: int = MESSAGE_VERSION  # of this format; another number means another meaning
    id: str  # of the message, the same whenever it is sent again: receivers can tell it from a new one
    suite: str
    night: str
    number: int  # of the night, from 1
    started: str  # wall clock, ISO 8601 with offset
    # `alarm` when the night raised one; `broken` when there are no figures of it, or of one of its
    # variants; else `quiet`.
    status: MessageStatus
    subject: str  # one line without control characters
    text: str  # one screen, lines ended by a line feed
    raised: tuple[Alarm, ...] = ()
    recovered: tuple[Alarm, ...] = ()
    # Alarms that nobody has acknowledged and that did not recover; those just raised included.
    open: tuple[Alarm, ...] = ()
    findings: dict[FindingStatus, int] = {}  # how many series left their usual range, by what became of that
    not_watched: tuple[str, ...] = ()
    run: str = ""  # id of the night's run; empty when there is none
    wall_s: float = 0.0
