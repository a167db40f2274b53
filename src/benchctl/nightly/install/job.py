"""What is started every night: program, suite, environment, log, and where its secrets are."""

import os
import re
import stat
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from benchctl.disk import disk_errors
from benchctl.errors import UsageError
from benchctl.nightly.install.daily import Daily

LOG_NAME = "nightly.log"
SECRETS_NAME = "environment"

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
        when: the times.
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
        """Refuse what crontabs and unit files cannot hold for sure.

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
        """What it prints is appended there."""
        return self.folder / LOG_NAME

    @property
    def secrets(self) -> Path:
        """A file of `NAME='value'` lines that nobody else may read; it need not be there."""
        return self.folder / SECRETS_NAME


def find_program(executable: str = sys.executable) -> tuple[str, ...]:
    """How this benchctl is started from anywhere: its script beside Python, or Python itself."""
    # Not resolved: the link to Python inside a virtual environment is what makes it that environment.
    python = Path(executable).absolute()
    script = python.with_name("benchctl")
    return (str(script),) if script.is_file() else (str(python), "-m", "benchctl")


def environment_of(environ: Mapping[str, str]) -> tuple[tuple[tuple[str, str], ...], tuple[str, ...]]:
    """What a night is started with, and the names of variables that it would need but that hold a password.

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
    """Which variables a file of secrets does not set; of values, only whether they need quotes is looked at.

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
    """Make the file of secrets, empty but for what belongs into it, and closed to others.

    Returns:
        Whether it was made; one that is there is left alone.

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
