"""What starts a suite, and when it does so next."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal
from zoneinfo import ZoneInfo

import msgspec

from benchctl.errors import BenchctlError
from benchctl.nightly.install.crontab import Crontab, block_in
from benchctl.nightly.install.daily import Daily
from benchctl.nightly.install.systemd import Units, unit_name

_LOCAL_TIME = Path("/etc/localtime")
_FIELDS = 5


@dataclass(frozen=True)
class Schedule:
    """What is installed for a suite.

    Attributes:
        kind: of what starts it.
        text: when, in words; as somebody changed it, where we cannot read it.
        next_run: None when it cannot be told, and when it does not run.
        where: which file or table has it.
    """

    kind: Literal["cron", "systemd"]
    text: str
    next_run: datetime | None
    where: str

    @property
    def next_words(self) -> str:
        """When it is started next, or why that cannot be said; and by what."""
        if self.next_run is None:
            return f"{self.text} ({self.where})"
        return f"{self.next_run:%Y-%m-%d %H:%M %Z} ({self.kind}, {self.text})"


class _Timer(msgspec.Struct):
    """One entry of `systemctl list-timers`; microseconds since 1970, 0 or nothing for never."""

    unit: str
    next: int | None = None


def schedule_of(
    suite: str,
    *,
    environ: Mapping[str, str],
    now: datetime,
    zone: ZoneInfo | None = None,
    units: Units | None = None,
) -> Schedule | None:
    """What starts a suite; None when nothing that we installed does.

    Args:
        suite: its name.
        environ: the environment; programs are looked for in its PATH.
        now: with an offset.
        zone: of the host; None to look it up.
        units: where timers are; None for the usual place.
    """
    zone = local_zone() if zone is None else zone
    units = Units.usual(environ) if units is None else units
    return _from_systemd(suite, units, now, zone) or _from_cron(suite, environ, now, zone)


def local_zone(path: Path = _LOCAL_TIME) -> ZoneInfo:
    """The zone that cron and systemd go by, whatever TZ says here."""
    try:
        with path.open("rb") as file:
            return ZoneInfo.from_file(file, key=_zone_name(path))
    except (OSError, ValueError):
        return ZoneInfo("UTC")


def _zone_name(path: Path) -> str:
    """Such as `Europe/Berlin`, from where the link leads; empty when it is none."""
    return str(path.resolve()).partition("/zoneinfo/")[2]


def _from_cron(suite: str, environ: Mapping[str, str], now: datetime, zone: ZoneInfo) -> Schedule | None:
    try:
        table = Crontab(environ).read()
    except BenchctlError:
        # No cron, or none for this user: then it is not what starts the suite.
        return None
    try:
        block = block_in(table, suite)
    except BenchctlError as err:
        return Schedule("cron", err.message, None, "crontab")
    if not block:
        return None
    lines = [line for line in block.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    if not lines:
        return Schedule("cron", "its line is commented out", None, "crontab")
    fields = " ".join(lines[0].split(None, _FIELDS)[:_FIELDS])
    daily = Daily.from_cron(fields)
    if daily is None or len(lines) > 1:
        return Schedule("cron", f"changed by hand: {fields}", None, "crontab")
    return Schedule("cron", daily.text, daily.next_after(now, zone, makes_up=True), "crontab")


def _from_systemd(suite: str, units: Units, now: datetime, zone: ZoneInfo) -> Schedule | None:
    path = units.timer_path(suite)
    try:
        content = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return None
    lines = [line.partition("=")[2] for line in content.splitlines() if line.startswith("OnCalendar=")]
    daily = Daily.from_calendar(lines[0]) if len(lines) == 1 else None
    text = f"changed by hand: {' and '.join(lines)}" if daily is None else daily.text
    listed = units.ask("list-timers", "--all", "--output=json", f"{unit_name(suite)}.timer")
    if listed is None:
        # Not running, or too old to speak JSON.
        guess = daily.next_after(now, zone, makes_up=False) if daily and units.is_running else None
        return Schedule("systemd", text, guess, str(path))
    try:
        timers = msgspec.json.decode(listed, type=list[_Timer])
    except msgspec.MsgspecError:
        timers = []
    at_us = next((timer.next for timer in timers if timer.unit == path.name), None)
    at = datetime.fromtimestamp(at_us / 1e6, UTC).astimezone(zone) if at_us else None
    return Schedule("systemd", text, at, str(path))
