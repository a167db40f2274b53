"""Systemd: a service and its timer, for one user or, as root, for the system."""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from glob import escape
from pathlib import Path

from benchctl.disk import disk_errors, read_file
from benchctl.errors import BenchctlError, ExitCode, UsageError
from benchctl.nightly.install import programs
from benchctl.nightly.install.job import Job
from benchctl.results.nightly.folder import write_whole

SYSTEM_UNITS = Path("/etc/systemd/system")
BOOTED = Path("/run/systemd/system")
LINGERING = Path("/var/lib/systemd/linger")

_STOP_TIMEOUT_S = 300
_PLAIN = re.compile(r"[A-Za-z0-9_@%+=:,./-]+", re.ASCII)


def unit_name(suite: str) -> str:
    """Of the units of a suite, without `.service` and `.timer`."""
    return f"benchctl-nightly-{suite}"


def service_of(job: Job) -> str:
    """The service: one night.

    Exit code 3 is an alarm, and no failure of the service. It is ended by SIGTERM to benchctl alone, which
    stops its nodes and keeps finished forks.

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
    """The timer; a night that the machine was off for is made up when it is on again."""
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
        folder: of the files.
        system: of the system, not of a user.
        environ: the environment; `systemctl` is looked for in its PATH.
        booted: is there where systemd runs.
    """

    folder: Path
    system: bool
    environ: Mapping[str, str]
    booted: Path = BOOTED

    @classmethod
    def usual(cls, environ: Mapping[str, str], *, euid: int | None = None) -> "Units":
        """Root's are the system's; everybody else has their own."""
        if (os.geteuid() if euid is None else euid) == 0:
            return cls(SYSTEM_UNITS, system=True, environ=environ)
        config = Path(environ.get("XDG_CONFIG_HOME") or Path("~/.config").expanduser())
        return cls(config / "systemd" / "user", system=False, environ=environ)

    @property
    def is_running(self) -> bool:
        """Whether systemd runs this host."""
        return self.booted.is_dir() and programs.find("systemctl", self.environ) is not None

    def files(self, job: Job) -> dict[Path, str]:
        """What is to be written."""
        name = unit_name(job.suite)
        return {
            self.folder / f"{name}.service": service_of(job),
            self.folder / f"{name}.timer": timer_of(job),
        }

    def timer_path(self, suite: str) -> Path:
        """Where the timer of a suite is, if it is installed."""
        return self.folder / f"{unit_name(suite)}.timer"

    def install(self, job: Job) -> bool:
        """Write both units, and have the timer started now and at every boot.

        Returns:
            Whether any file changed.

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
        self._tell("enable", "--now", f"{unit_name(job.suite)}.timer")
        if changed:
            # One that runs already keeps to the time that it was started with.
            self._tell("restart", f"{unit_name(job.suite)}.timer")
        return changed

    def remove(self, suite: str) -> bool:
        """Stop the timer and remove both units; a night that is going on ends as it would.

        Returns:
            Whether there was any.

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
        ended = programs.run(self._systemctl(*arguments), self.environ)
        return None if ended.returncode else ended.stdout

    def _tell(self, *arguments: str) -> None:
        ended = programs.run(self._systemctl(*arguments), self.environ)
        if ended.returncode:
            raise BenchctlError(
                f"systemctl {' '.join(arguments)}: {programs.said(ended)}",
                hint=""
                if self.system
                else "a user's systemd runs while that user is logged in; see loginctl",
            )

    def _systemctl(self, *arguments: str) -> list[str]:
        program = programs.find("systemctl", self.environ) or "systemctl"
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
    """A path that has a line for itself: nothing is quoted there."""
    return str(path).replace("%", "%%")
