"""A time of day on some days of the week: as people, cron and systemd write it, and when it is next."""

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Self
from zoneinfo import ZoneInfo

from benchctl.errors import UsageError

DAY_NAMES = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
EVERY_DAY = tuple(range(7))

_AT = re.compile(r"(?P<hour>[0-9]{1,2}):(?P<minute>[0-9]{2})", re.ASCII)
_CRON = re.compile(r"(?P<minute>[0-9]+) (?P<hour>[0-9]+) \* \* (?P<days>\*|[0-6,]+)", re.ASCII)
_CALENDAR = re.compile(r"(?:(?P<days>[A-Za-z,]+) )?\*-\*-\* (?P<at>[0-9:]{5}):00", re.ASCII)
_LAST_HOUR, _LAST_MINUTE = 23, 59
_DAYS_AHEAD = 400


@dataclass(frozen=True)
class Daily:
    """When a suite is started; in the local time of the host.

    Attributes:
        at: the time of day, to the minute.
        days: of the week, sorted; Monday is 0.
    """

    at: time
    days: tuple[int, ...] = EVERY_DAY

    @classmethod
    def parse(cls, at: str, days: str = "") -> Self:
        """From what was typed: `03:00`, and `mon-fri` or `mon,thu`; no days are all of them.

        Raises:
            UsageError: it is no time, or names no days.
        """
        return cls(_time(at), _days(days) if days else EVERY_DAY)

    @classmethod
    def from_cron(cls, fields: str) -> Self | None:
        """From the first five fields of a crontab line of ours; None for one that was changed."""
        found = _CRON.fullmatch(fields)
        if found is None or int(found["hour"]) > _LAST_HOUR or int(found["minute"]) > _LAST_MINUTE:
            return None
        at = time(int(found["hour"]), int(found["minute"]))
        if found["days"] == "*":
            return cls(at)
        numbers = [text for text in found["days"].split(",") if len(text) == 1]
        return cls(at, tuple(sorted({(int(text) - 1) % 7 for text in numbers}))) if numbers else None

    @classmethod
    def from_calendar(cls, text: str) -> Self | None:
        """From a calendar expression of ours; None for one that was changed."""
        found = _CALENDAR.fullmatch(text)
        try:
            return None if found is None else cls.parse(found["at"], found["days"] or "")
        except UsageError:
            return None

    @property
    def cron(self) -> str:
        """The first five fields of a crontab line."""
        # Sunday is 0 there, everywhere; it is 7 only in some.
        days = ",".join(str(number) for number in sorted((day + 1) % 7 for day in self.days))
        return f"{self.at.minute} {self.at.hour} * * {'*' if self.days == EVERY_DAY else days}"

    @property
    def calendar(self) -> str:
        """What systemd calls a calendar event."""
        names = ",".join(DAY_NAMES[day].capitalize() for day in self.days)
        return ("" if self.days == EVERY_DAY else f"{names} ") + f"*-*-* {self.at:%H:%M}:00"

    @property
    def text(self) -> str:
        """For people."""
        days = ", ".join(DAY_NAMES[day].capitalize() for day in self.days)
        return f"{self.at:%H:%M} " + ("every day" if self.days == EVERY_DAY else f"on {days}")

    def next_after(self, now: datetime, zone: ZoneInfo, *, makes_up: bool) -> datetime:
        """When it comes next.

        Where clocks are put back, the first of two such times counts: cron and systemd start once.

        Args:
            now: with an offset.
            zone: of the host.
            makes_up: what is done about a time that clocks jump over: cron starts when they have jumped,
                systemd leaves that day out.

        Returns:
            The time, in that zone.
        """
        today = now.astimezone(zone).date()
        # A week has the day; a second one where systemd leaves it out.
        candidates = (self._on(today + timedelta(days), zone, makes_up=makes_up) for days in range(16))
        return next(at for at in candidates if at is not None and at.astimezone(UTC) > now.astimezone(UTC))

    def left_out(self, now: datetime, zone: ZoneInfo) -> date | None:
        """The next day on which clocks jump over that time; None when there is none in the year ahead."""
        today = now.astimezone(zone).date()
        days = (today + timedelta(number) for number in range(_DAYS_AHEAD))
        return next(
            (
                day
                for day in days
                if day.weekday() in self.days and self._on(day, zone, makes_up=False) is None
            ),
            None,
        )

    def _on(self, day: date, zone: ZoneInfo, *, makes_up: bool) -> datetime | None:
        if day.weekday() not in self.days:
            return None
        at = datetime.combine(day, self.at, tzinfo=zone)
        while not _exists(at, zone):
            if not makes_up:
                return None
            at += timedelta(minutes=1)
        return at


def _exists(at: datetime, zone: ZoneInfo) -> bool:
    """Whether clocks ever show that time."""
    return at.astimezone(UTC).astimezone(zone).replace(tzinfo=None) == at.replace(tzinfo=None)


def _time(text: str) -> time:
    found = _AT.fullmatch(text.strip())
    if found is None or int(found["hour"]) > _LAST_HOUR or int(found["minute"]) > _LAST_MINUTE:
        raise UsageError(f"'{text}' is no time of day", hint="write it as 03:00 or 23:30")
    return time(int(found["hour"]), int(found["minute"]))


def _days(text: str) -> tuple[int, ...]:
    days: set[int] = set()
    for part in text.lower().split(","):
        first, dash, last = part.strip().partition("-")
        start, end = _day(first, text), _day(last if dash else first, text)
        days |= {(start + step) % 7 for step in range((end - start) % 7 + 1)}
    return tuple(sorted(days))


def _day(name: str, text: str) -> int:
    if name not in DAY_NAMES:
        raise UsageError(
            f"'{text}' names no days of the week", hint="write them as mon-fri, or mon,wed,fri, or sat-sun"
        )
    return DAY_NAMES.index(name)
