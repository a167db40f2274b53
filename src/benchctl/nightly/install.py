"""What starts a suite every night: a crontab line or a systemd timer, put in, taken out, and read again."""

import os
import re
import shlex
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from glob import escape
from pathlib import Path
from typing import Literal, Self
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo

import msgspec

from benchctl.disk import disk_errors, read_file
from benchctl.errors import BenchctlError, ExitCode, UsageError
from benchctl.nightly.folder import write_whole

# Programs of the system that are asked and told: crontab, systemctl.


_TIMEOUT_S = 60


def where_is(name: str, environ: Mapping[str, str]) -> str | None:
    """The path of a program; None when it is not installed."""
    return shutil.which(name, path=environ.get("PATH", os.defpath))


def _run_program(
    command: Sequence[str], environ: Mapping[str, str], *, told: bytes = b""
) -> subprocess.CompletedProcess[bytes]:
    """Run a program to its end in the C locale, whatever its exit status.

    Raises:
        BenchctlError: it cannot be started or does not end.
    """
    try:
        return subprocess.run(
            command,
            input=told,
            capture_output=True,
            env={**environ, "LC_ALL": "C"},
            timeout=_TIMEOUT_S,
            check=False,
        )
    except OSError as err:
        raise BenchctlError(f"cannot start {command[0]}: {err.strerror}") from err
    except subprocess.TimeoutExpired as err:
        raise BenchctlError(f"{command[0]} did not end within {_TIMEOUT_S} s") from err


def complaint_of(ended: subprocess.CompletedProcess[bytes]) -> str:
    """Its error output, on one line."""
    text = " ".join((ended.stderr or ended.stdout).decode("utf-8", "replace").split())
    return text or f"it exited with {ended.returncode} and said nothing"


# A time of day on some days of the week: as people, cron and systemd write it, and when it is next.


_DAY_NAMES = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
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
            UsageError: it is not a time, or names no days.
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
        names = ",".join(_DAY_NAMES[day].capitalize() for day in self.days)
        return ("" if self.days == EVERY_DAY else f"{names} ") + f"*-*-* {self.at:%H:%M}:00"

    @property
    def text(self) -> str:
        """For people."""
        days = ", ".join(_DAY_NAMES[day].capitalize() for day in self.days)
        return f"{self.at:%H:%M} " + ("every day" if self.days == EVERY_DAY else f"on {days}")

    def next_after(self, now: datetime, zone: ZoneInfo, *, makes_up: bool) -> datetime:
        """The next start, in `zone`, after `now`, which has an offset.

        If clocks are put back, the first of two such times counts: cron and systemd start once. `makes_up`
        says what happens to a time that clocks skip: cron starts after it, systemd leaves that day out.
        """
        today = now.astimezone(zone).date()
        # A week has the day; a second one where systemd leaves it out.
        candidates = (self._on(today + timedelta(days), zone, makes_up=makes_up) for days in range(16))
        return next(at for at in candidates if at is not None and at.astimezone(UTC) > now.astimezone(UTC))

    def left_out(self, now: datetime, zone: ZoneInfo) -> date | None:
        """The next day on which clocks skip that time; None when there is none in the year ahead."""
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
        raise UsageError(f"'{text}' is not a time of day", hint="write it as 03:00 or 23:30")
    return time(int(found["hour"]), int(found["minute"]))


def _days(text: str) -> tuple[int, ...]:
    days: set[int] = set()
    for part in text.lower().split(","):
        first, dash, last = part.strip().partition("-")
        start, end = _day(first, text), _day(last if dash else first, text)
        days |= {(start + step) % 7 for step in range((end - start) % 7 + 1)}
    return tuple(sorted(days))


def _day(name: str, text: str) -> int:
    if name not in _DAY_NAMES:
        raise UsageError(
            f"'{text}' names no days of the week", hint="write them as mon-fri, or mon,wed,fri, or sat-sun"
        )
    return _DAY_NAMES.index(name)


# What is started every night: program, suite, environment, log, and where its secrets are.


LOG_NAME = "nightly.log"
_SECRETS_NAME = "environment"

_SUITE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*", re.ASCII)
# What of the shell that installs it the night needs as well: where things are, and how to reach them.
_KEPT = (
    "BENCHCTL_HOME",
    "XDG_DATA_HOME",
    "BENCHCTL_MAVEN_REPOSITORY",
    "REQUESTS_CA_BUNDLE",
    "SSL_CERT_FILE",
    "http_proxy",
    "https_proxy",
    "HTTPS_PROXY",
    "no_proxy",
    "NO_PROXY",
)
_ASSIGNMENT_START = r"\s*(?:export\s+)?(?P<name>[A-Za-z_][A-Za-z0-9_]*)="
_ASSIGNMENT = re.compile(_ASSIGNMENT_START + r"\S")
# Under cron, a shell reads the file: it takes a blank for the end of the value, the rest for a command, and
# other characters mean something outside of quotes, too.
_NOT_PLAIN = re.compile(
    _ASSIGNMENT_START + r"(?:'[^']*'|\"[^\"]*\"|[^\s;&|<>()$`\\'\"])*(?:[;&|<>()$`\\]|[ \t]+[^\s#])"
)
_OTHERS = stat.S_IRWXG | stat.S_IRWXO


@dataclass(frozen=True)
class Job:
    """One suite, started once a night. Everything in it may be read by everybody.

    Attributes:
        suite: its name.
        file: the suite's file, absolute.
        program: benchctl, absolute, and arguments before its own.
        environment: variables that it is started with, in order.
        folder: of the suite, where its log and the file of its secrets are.
    """

    suite: str
    file: Path
    when: Daily
    program: tuple[str, ...]
    environment: tuple[tuple[str, str], ...]
    folder: Path

    def __post_init__(self) -> None:
        """Refuse what crontabs and unit files may not hold.

        Raises:
            UsageError: the suite's name, a path or a variable has such characters.
        """
        if not _SUITE.fullmatch(self.suite):
            raise UsageError(
                f"a suite called '{self.suite}' cannot be installed",
                hint="a name has letters, digits, dots, hyphens and underscores",
            )
        for text in (*self.program, str(self.file), str(self.folder), *dict(self.environment).values()):
            if not text.isprintable() or "\\" in text:
                raise UsageError(
                    f"{text!r} holds characters that crontabs and unit files read each in their own way",
                    hint="move it to a path without control characters and backslashes",
                )

    @property
    def command(self) -> tuple[str, ...]:
        """Program and arguments."""
        return (*self.program, "nightly", "run", str(self.file))

    @property
    def log(self) -> Path:
        """Its output is appended there."""
        return self.folder / LOG_NAME

    @property
    def secrets(self) -> Path:
        """A file of `NAME='value'` lines that nobody else may read; it may be missing."""
        return self.folder / _SECRETS_NAME


def find_program(executable: str = sys.executable) -> tuple[str, ...]:
    """How this benchctl is started from anywhere: its script beside Python, or Python itself."""
    # Not resolved: the link to Python inside a virtual environment is what makes it that environment.
    python = Path(executable).absolute()
    script = python.with_name("benchctl")
    return (str(script),) if script.is_file() else (str(python), "-m", "benchctl")


def environment_of(environ: Mapping[str, str]) -> tuple[tuple[tuple[str, str], ...], tuple[str, ...]]:
    """The environment of a night, and the names of variables that it needs but that hold a password.

    The search path comes first: absolute folders only, each once.
    """
    folders = [folder for folder in environ.get("PATH", "").split(":") if folder.startswith("/")]
    found = [("PATH", ":".join(dict.fromkeys(folders)) or "/usr/local/bin:/usr/bin:/bin")]
    withheld = []
    for name in _KEPT:
        value = environ.get(name, "")
        if "@" in urlsplit(value if "//" in value else f"//{value}").netloc:
            withheld.append(name)
        elif value:
            found.append((name, value))
    return tuple(found), tuple(withheld)


def missing_secrets(file: Path, names: Iterable[str]) -> tuple[str, ...]:
    """Variables that a file of secrets does not set; values are only checked for missing quotes.

    Raises:
        UsageError: it is open to others, cannot be read, or has a value that a shell reads otherwise.
    """
    try:
        with file.open(encoding="utf-8", errors="replace") as opened:
            mode = file.stat().st_mode
            if mode & _OTHERS:
                raise UsageError(
                    f"{file} is for secrets and open to other users (mode {stat.S_IMODE(mode):o})",
                    hint=f"chmod 600 {file}",
                )
            found = {match["name"] for line in _plain(file, opened) if (match := _ASSIGNMENT.match(line))}
    except FileNotFoundError:
        found = set()
    except OSError as err:
        raise UsageError(f"cannot read {file}: {err.strerror}") from err
    return tuple(dict.fromkeys(name for name in names if name not in found))


def _plain(file: Path, lines: Iterable[str]) -> Iterator[str]:
    for number, line in enumerate(lines, 1):
        if match := _NOT_PLAIN.match(line):
            raise UsageError(
                f"{file}, line {number}: a shell would not take the value of {match['name']} as it stands",
                hint=f"put it into quotes: {match['name']}='...'",
            )
        yield line


def begin_secrets(job: Job, names: Iterable[str]) -> bool:
    """Make a file of secrets, with instructions only and closed to others, if there is none.

    Returns:
        Whether it was made.

    Raises:
        BenchctlError: it cannot be written.
    """
    lines = "".join(f"#{name}='...'\n" for name in names)
    with disk_errors(f"write {job.secrets}"):
        try:
            descriptor = os.open(job.secrets, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        except FileExistsError:
            return False
        with open(descriptor, "w", encoding="utf-8") as file:  # noqa: PTH123 - a descriptor, no path
            file.write(
                f"# Secrets of the notifiers of {job.suite}: take the # away, and fill them in.\n{lines}"
            )
    return True


# Cron: a marked block in the user's crontab, put in, replaced and taken out; no other line is touched.


# What cron on Debian and its relatives takes for a command; others take more.
_MOST_CHARACTERS = 998
_TOLD_LINES = 20
# Of cron and of busybox.
_NONE_YET = re.compile(r"no crontab for|can't open '[^']*': No such file or directory")


def block_of(job: Job) -> str:
    """The lines of a suite, between its marks.

    The environment is set within the line: lines of their own would apply to everything that follows,
    too. Cron takes a per cent sign for the end of the line. Cron mails what it prints: the end of the log
    of a night that failed, which may be one in which benchctl did not even start and could tell nobody.

    Raises:
        UsageError: it is longer than cron takes.
    """
    secrets, log = shlex.quote(str(job.secrets)), shlex.quote(str(job.log))
    steps = [
        "set -a",
        *(f"{name}={shlex.quote(value)}" for name, value in job.environment),
        f"[ ! -f {secrets} ] || . {secrets}",
        f"exec {shlex.join(job.command)}",
    ]
    alarm = ExitCode.REGRESSION.value
    line = f"({'; '.join(steps)}) >>{log} 2>&1 || [ $? -eq {alarm} ] || tail -n {_TOLD_LINES} {log}"
    command = line.replace("%", r"\%")
    if len(command.encode()) > _MOST_CHARACTERS:
        raise UsageError(
            f"the crontab line is {len(command.encode())} bytes long, and cron takes {_MOST_CHARACTERS}",
            hint="install with a shorter search path, such as PATH=/usr/bin:/bin, or with --kind systemd",
        )
    begin, end = _marks(job.suite)
    return f"{begin}\n{job.when.cron} {command}\n{end}\n"


class Crontab:
    """The crontab of the user who runs benchctl; `crontab` is looked for in the PATH of `environ`.

    Raises:
        BenchctlError: cron is not installed.
    """

    def __init__(self, environ: Mapping[str, str]) -> None:
        program = where_is("crontab", environ)
        if program is None:
            raise BenchctlError(
                "cron is not installed here: there is no crontab program",
                hint="install it (the package is called cron or cronie), or use --kind systemd; or have "
                "whatever starts jobs here run what `benchctl nightly install --kind cron` prints",
            )
        self._program = program
        self._environ = environ

    def read(self) -> str:
        """All of it; empty when there is none.

        Raises:
            BenchctlError: it cannot be read. Nothing may be written then, or other lines might be lost.
        """
        ended = _run_program([self._program, "-l"], self._environ)
        if ended.returncode:
            why = complaint_of(ended)
            if not _NONE_YET.search(why) or ended.stdout:
                raise BenchctlError(f"cannot read the crontab: {why}", hint="`crontab -l` has to work first")
            return ""
        return _text(ended.stdout)

    def install(self, job: Job) -> bool:
        """Install a suite, or replace its lines; return whether anything changed.

        Raises:
            BenchctlError: the crontab cannot be read or written, or its marks are damaged.
        """
        return self._replace(job.suite, block_of(job))

    def remove(self, suite: str) -> bool:
        """Remove a suite; return whether it was there.

        Raises:
            BenchctlError: as `install`.
        """
        return self._replace(suite, "")

    def _replace(self, suite: str, block: str) -> bool:
        before = self.read()
        after = with_block(before, suite, block)
        if after == before:
            return False
        ended = _run_program(
            [self._program, "-"], self._environ, told=after.encode("utf-8", "surrogateescape")
        )
        if ended.returncode:
            raise BenchctlError(f"cannot write the crontab: {complaint_of(ended)}")
        # Some take a crontab and say nothing of what they did not like.
        if self.read().rstrip("\n") != after.rstrip("\n"):
            raise BenchctlError(
                "the crontab is not what was written",
                hint="look at it: crontab -l; somebody else may be editing",
            )
        return True


def with_block(text: str, suite: str, block: str) -> str:
    """A crontab with the block of a suite replaced; an empty one removes it.

    Raises:
        BenchctlError: its marks are damaged.
    """
    before, old, after = _split(text, suite)
    if not old and not block:
        return text
    # Cron passes over a last line that does not end.
    if block and before and not before.endswith("\n"):
        before += "\n"
    return before + block + after


def block_in(text: str, suite: str) -> str:
    """The lines of a suite in a crontab, with their marks; empty when it is not there.

    Raises:
        BenchctlError: its marks are damaged.
    """
    return _split(text, suite)[1]


def _split(text: str, suite: str) -> tuple[str, str, str]:
    """What is before the block of a suite, the block with its marks, and what is after it."""
    begin, end = _marks(suite)
    lines = text.split("\n")
    begins = [number for number, line in enumerate(lines) if line.strip() == begin]
    ends = [number for number, line in enumerate(lines) if line.strip() == end]
    if not begins and not ends:
        return text, "", ""
    if len(begins) != 1 or len(ends) != 1 or ends[0] < begins[0]:
        raise BenchctlError(
            f"the crontab has '{begin}' and '{end}' not once each, in this order",
            hint="remove these lines and what belongs to them: crontab -e",
        )
    before = "".join(f"{line}\n" for line in lines[: begins[0]])
    block = "".join(f"{line}\n" for line in lines[begins[0] : ends[0] + 1])
    return before, block, "\n".join(lines[ends[0] + 1 :])


def _marks(suite: str) -> tuple[str, str]:
    return f"# benchctl nightly {suite} begin", f"# benchctl nightly {suite} end"


def _text(raw: bytes) -> str:
    # Whatever bytes other lines hold, they are written back as they were.
    return raw.decode("utf-8", "surrogateescape")


# Systemd: a service and its timer, for one user or, as root, for the system.


_SYSTEM_UNITS = Path("/etc/systemd/system")
_BOOTED = Path("/run/systemd/system")
LINGERING = Path("/var/lib/systemd/linger")

_STOP_TIMEOUT_S = 300
_PLAIN = re.compile(r"[A-Za-z0-9_@%+=:,./-]+", re.ASCII)


def _unit_name(suite: str) -> str:
    return f"benchctl-nightly-{suite}"


def service_of(job: Job) -> str:
    """The service: one night.

    Exit code 3 is an alarm, not a failure of the service. SIGTERM goes to benchctl alone, which stops its
    nodes and keeps finished forks.

    Raises:
        UsageError: systemd would not start a program with such a path.
    """
    if any(quote in job.program[0] for quote in "\"'"):
        raise UsageError(
            f"systemd starts no program with quotes in its path: {job.program[0]}",
            hint="install benchctl elsewhere, or use --kind cron",
        )
    environment = "".join(f"Environment={_quoted(f'{name}={value}')}\n" for name, value in job.environment)
    program, *arguments = job.command
    # No variables are looked for in the program's path.
    # Files of variables may be several: a star, a question mark and brackets stand for other characters.
    secrets = _path(escape(str(job.secrets)))
    command = " ".join([_quoted(program), *(_quoted(part, variables=True) for part in arguments)])
    return (
        "[Unit]\n"
        f"Description=benchctl nightly: {job.suite}\n"
        "\n"
        "[Service]\n"
        "Type=oneshot\n"
        f"{environment}"
        f"EnvironmentFile=-{secrets}\n"
        f"ExecStart={command}\n"
        f"SuccessExitStatus={ExitCode.REGRESSION.value}\n"
        f"StandardOutput=append:{_path(job.log)}\n"
        f"StandardError=append:{_path(job.log)}\n"
        "KillMode=mixed\n"
        f"TimeoutStopSec={_STOP_TIMEOUT_S}\n"
    )


def timer_of(job: Job) -> str:
    """The timer; a night missed because the machine was off is made up when it is on again."""
    return (
        "[Unit]\n"
        f"Description=benchctl nightly: {job.suite}, {job.when.text}\n"
        "\n"
        "[Timer]\n"
        f"OnCalendar={job.when.calendar}\n"
        "Persistent=true\n"
        "AccuracySec=1s\n"
        "\n"
        "[Install]\n"
        "WantedBy=timers.target\n"
    )


@dataclass(frozen=True)
class Units:
    """Unit files of one user or of the system, and the systemd that reads them.

    Attributes:
        system: of the system, not of a user.
        environ: the environment; `systemctl` is looked for in its PATH.
        booted: exists if systemd runs.
    """

    folder: Path
    system: bool
    environ: Mapping[str, str]
    booted: Path = _BOOTED

    @classmethod
    def usual(cls, environ: Mapping[str, str], *, euid: int | None = None) -> "Units":
        """Root's are the system's; everybody else has their own."""
        if (os.geteuid() if euid is None else euid) == 0:
            return cls(_SYSTEM_UNITS, system=True, environ=environ)
        config = Path(environ.get("XDG_CONFIG_HOME") or Path("~/.config").expanduser())
        return cls(config / "systemd" / "user", system=False, environ=environ)

    @property
    def is_running(self) -> bool:
        """Whether systemd runs this host."""
        return self.booted.is_dir() and where_is("systemctl", self.environ) is not None

    def files(self, job: Job) -> dict[Path, str]:
        """What is to be written."""
        name = _unit_name(job.suite)
        return {
            self.folder / f"{name}.service": service_of(job),
            self.folder / f"{name}.timer": timer_of(job),
        }

    def timer_path(self, suite: str) -> Path:
        """Where the timer of a suite is, if it is installed."""
        return self.folder / f"{_unit_name(suite)}.timer"

    def install(self, job: Job) -> bool:
        """Write both units, and start the timer now and at every boot; return whether any file changed.

        Raises:
            BenchctlError: systemd does not run here or refuses, or the files cannot be written.
        """
        self._require()
        changed = False
        with disk_errors(f"make {self.folder}"):
            self.folder.mkdir(parents=True, exist_ok=True)
        for path, content in self.files(job).items():
            if _content(path) != content.encode():
                write_whole(path, content.encode())
                changed = True
        self._tell("daemon-reload")
        self._tell("enable", "--now", f"{_unit_name(job.suite)}.timer")
        if changed:
            # One that runs already keeps to the time that it was started with.
            self._tell("restart", f"{_unit_name(job.suite)}.timer")
        return changed

    def remove(self, suite: str) -> bool:
        """Stop the timer and remove both units; a running night goes on. Returns whether there were any.

        Raises:
            BenchctlError: as `install`.
        """
        timer = self.timer_path(suite)
        paths = [path for path in (timer, timer.with_suffix(".service")) if path.exists()]
        if not paths:
            return False
        self._require()
        if timer in paths:
            self._tell("disable", "--now", timer.name)
        with disk_errors(f"remove {timer}"):
            for path in paths:
                path.unlink()
        self._tell("daemon-reload")
        return True

    def ask(self, *arguments: str) -> bytes | None:
        """What `systemctl` prints; None where it cannot be asked."""
        if not self.is_running:
            return None
        ended = _run_program(self._systemctl(*arguments), self.environ)
        return None if ended.returncode else ended.stdout

    def _tell(self, *arguments: str) -> None:
        ended = _run_program(self._systemctl(*arguments), self.environ)
        if ended.returncode:
            raise BenchctlError(
                f"systemctl {' '.join(arguments)}: {complaint_of(ended)}",
                hint=""
                if self.system
                else "a user's systemd runs while that user is logged in; see loginctl",
            )

    def _systemctl(self, *arguments: str) -> list[str]:
        program = where_is("systemctl", self.environ) or "systemctl"
        return [program, *([] if self.system else ["--user"]), "--no-ask-password", *arguments]

    def _require(self) -> None:
        if not self.is_running:
            raise BenchctlError(
                "systemd does not run this host",
                hint="use --kind cron; or have whatever starts jobs here run what "
                "`benchctl nightly install --kind cron` prints",
            )


def _content(path: Path) -> bytes | None:
    try:
        return read_file(path)
    except OSError:
        return None


def _quoted(text: str, *, variables: bool = False) -> str:
    """A word of a unit file: a per cent sign begins a specifier and, in arguments, a dollar a variable."""
    text = text.replace("%", "%%")
    if variables:
        text = text.replace("$", "$$")
    if _PLAIN.fullmatch(text):
        return text
    return '"' + text.replace('"', '\\"') + '"'


def _path(path: Path | str) -> str:
    """A path on a line of its own, where nothing is quoted."""
    return str(path).replace("%", "%%")


# What starts a suite, and when it does so next.


_LOCAL_TIME = Path("/etc/localtime")
_FIELDS = 5


@dataclass(frozen=True)
class Schedule:
    """What is installed for a suite.

    Attributes:
        kind: of what starts it.
        text: when, in words; verbatim if somebody changed it to what we cannot read.
        next_run: None when unknown, and when it does not run.
        where: which file or table has it.
    """

    kind: Literal["cron", "systemd"]
    text: str
    next_run: datetime | None
    where: str

    @property
    def next_words(self) -> str:
        """The next start, or why that is unknown; and what starts it."""
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

    Programs are looked for in the PATH of `environ`; `now` has an offset. `zone` None looks up the
    host's, and `units` None are in the usual place.
    """
    zone = local_zone() if zone is None else zone
    units = Units.usual(environ) if units is None else units
    return _from_systemd(suite, units, now, zone) or _from_cron(suite, environ, now, zone)


def local_zone(path: Path = _LOCAL_TIME) -> ZoneInfo:
    """The zone that cron and systemd use, regardless of TZ here."""
    try:
        with path.open("rb") as file:
            return ZoneInfo.from_file(file, key=_zone_name(path))
    except (OSError, ValueError):
        return ZoneInfo("UTC")


def _zone_name(path: Path) -> str:
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
    listed = units.ask("list-timers", "--all", "--output=json", f"{_unit_name(suite)}.timer")
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


# The log that nights append to, kept from growing for ever.


MOST_BYTES = 4_000_000
_KEPT_BYTES = 1_000_000

_MARK = b"[older lines were removed]\n"


def bound_log(path: Path, *, most: int = MOST_BYTES, kept: int = _KEPT_BYTES) -> bool:
    """Drop the older lines of a long log, in place: this process may be appending to it.

    To be called before a night begins, under the suite's lock. A log that cannot be cut, or is missing,
    is left as it is. One of over `most` bytes keeps up to `kept`. Returns whether it was cut.
    """
    try:
        with path.open("r+b") as file:
            size = path.stat().st_size
            if size <= most:
                return False
            file.seek(size - kept)
            file.readline()
            rest = file.read()
            file.seek(0)
            file.write(_MARK + rest)
            file.truncate()
            return True
    except OSError:
        return False
