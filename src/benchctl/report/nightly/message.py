"""What is told about a night: the JSON that notifiers get, and that `benchctl nightly run` prints."""

from collections import Counter
from collections.abc import Sequence
from typing import Final, Literal

import msgspec

from benchctl.report.nightly.standing import not_watched, standing, subject
from benchctl.report.nightly.text import WIDTH, summary
from benchctl.report.numbers import visible
from benchctl.results.nightly.model import Alarm, Event, FindingStatus, NightRecord, alarms_of

MESSAGE_VERSION: Final = 1

MessageStatus = Literal["quiet", "alarm", "broken"]


class Message(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab", kw_only=True):
    """One night, for somebody who was not there. New attributes may come; those here keep their meaning.

    Attributes:
        schema_version: of this format; another number means another meaning.
        id: of the message, the same whenever it is sent again: receivers can tell it from a new one.
        suite: name of the suite.
        night: id of the night.
        number: of the night, from 1.
        started: wall clock, ISO 8601 with offset.
        status: `alarm` when the night raised one; `broken` when there are no figures of it, or of one of its
            variants; else `quiet`.
        subject: one line without control characters.
        text: one screen, lines ended by a line feed.
        raised: alarms that this night raised.
        recovered: alarms that recovered in this night.
        open: alarms that nobody has acknowledged and that did not recover; those just raised included.
        findings: how many series left their usual range, by what became of that.
        not_watched: what could not be seen in this night, a sentence each.
        run: id of the night's run; empty when there is none.
        site: path of the suite's page; empty when none is written.
        wall_s: how long the night took.
    """

    schema_version: int = MESSAGE_VERSION
    id: str
    suite: str
    night: str
    number: int
    started: str
    status: MessageStatus
    subject: str
    text: str
    raised: tuple[Alarm, ...] = ()
    recovered: tuple[Alarm, ...] = ()
    open: tuple[Alarm, ...] = ()
    findings: dict[FindingStatus, int] = {}
    not_watched: tuple[str, ...] = ()
    run: str = ""
    site: str = ""
    wall_s: float = 0.0


def message_of(
    record: NightRecord, events: Sequence[Event], *, site: str = "", width: int = WIDTH
) -> Message:
    """What to tell about a night.

    Args:
        record: of the night, finished.
        events: of the suite, all of them, the night's own included.
        site: path of the suite's page.
        width: columns of the text.
    """
    found = standing(record, events)
    alarms = alarms_of(events)
    return Message(
        # A night that could not even begin has no id, and the next such one is news again.
        id=f"{record.suite}/{record.id or record.started.replace(':', '')}",
        suite=record.suite,
        night=record.id,
        number=record.number,
        started=record.started,
        status="broken" if found == "running" else found,
        subject=" ".join(visible(subject(record, events)).split()),
        text=summary(record, events, site=site, width=width),
        raised=tuple(alarm for alarm in alarms if alarm.raised.night == record.id),
        recovered=tuple(
            alarm for alarm in alarms if alarm.recovered is not None and alarm.recovered.night == record.id
        ),
        open=tuple(alarm for alarm in alarms if alarm.state == "open"),
        findings=dict(Counter(finding.status for finding in record.findings)),
        not_watched=tuple(not_watched(record)),
        run=record.run,
        site=site,
        wall_s=record.wall_s,
    )
