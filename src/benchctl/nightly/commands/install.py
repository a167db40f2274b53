"""`benchctl nightly install`: the crontab line, or the units of systemd, that start a suite every night."""

import os
import re
import shlex
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from glob import escape
from pathlib import Path
from urllib.parse import urlsplit

import click

from benchctl.cli.streams import emit, note
from benchctl.errors import UsageError
from benchctl.home import home_root
from benchctl.nightly.suite import check_challenges, load_suite

_AT = re.compile(r"([01]?[0-9]|2[0-3]):([0-5][0-9])", re.ASCII)
# What a night needs of the shell that it is set up in: where things are, and how to reach them.
_PASSED_ON = (
    "BENCHCTL_HOME",
    "XDG_DATA_HOME",
    "BENCHCTL_MAVEN_REPOSITORY",
    "BENCHCTL_ELASTICSEARCH_DOWNLOADS",
    "BENCHCTL_OPENSEARCH_DOWNLOADS",
    "CJDK_INDEX_URL",
    "REQUESTS_CA_BUNDLE",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "http_proxy",
    "HTTP_PROXY",
    "https_proxy",
    "HTTPS_PROXY",
    "all_proxy",
    "ALL_PROXY",
    "no_proxy",
    "NO_PROXY",
)
_DEFAULT_PATH = "/usr/local/bin:/usr/bin:/bin"
# What cron on Debian and its relatives takes for a command; others take more.
_MAX_CRON_BYTES = 998
_STOP_TIMEOUT_S = 300
_UNQUOTED = re.compile(r"[A-Za-z0-9_@%+=:,./-]+", re.ASCII)


@dataclass(frozen=True)
class Job:
    """A suite, started once a night. Nothing in it is secret.

    Raises:
        UsageError: If crontabs and unit files cannot hold one of its texts.
    """

    suite: str
    file: Path  # absolute
    hour: int
    minute: int
    program: tuple[str, ...]  # benchctl by its whole path, and arguments before its own
    environment: tuple[tuple[str, str], ...]
    secrets: tuple[str, ...]  # variables that it needs and that are not printed
    secrets_file: Path  # for systemd; cron has them in its table

    def __post_init__(self) -> None:
        """Refuse characters that crontabs and unit files read differently."""
        for text in (*self.command, str(self.secrets_file), *dict(self.environment).values()):
            if not text.isprintable() or "\\" in text:
                raise UsageError(
                    f"crontabs and unit files cannot hold {text!r}",
                    hint="use paths without control characters and backslashes",
                )

    @property
    def command(self) -> tuple[str, ...]:
        """Program and arguments: a quiet night prints nothing."""
        return (*self.program, "nightly", "run", "--quiet", str(self.file))

    @property
    def unit(self) -> str:
        """Name of its units, without their suffix."""
        return f"benchctl-nightly-{self.suite}"


@click.command("install")
@click.argument("suite_file", metavar="SUITE.yml", type=click.Path(path_type=Path))
@click.option("--at", required=True, metavar="HH:MM", help="Local time of day, such as 03:00.")
@click.option("--systemd", is_flag=True, help="Print a systemd service and its timer instead.")
def install_command(suite_file: Path, at: str, *, systemd: bool) -> None:
    """Print the crontab line that runs a suite every night.

    Nothing is installed: paste the line into `crontab -e`, or write the units to the paths above them.
    A quiet night prints nothing. An alarm prints its message, which cron mails, and exits with 3.
    """
    suite = load_suite(suite_file)
    check_challenges(suite_file, suite)
    time = _AT.fullmatch(at)
    if time is None:
        raise UsageError(f"--at: invalid time '{at}' (expected e.g. 03:00 or 23:30)")
    environment, withheld = environment_of(os.environ)
    job = Job(
        suite=suite.name,
        file=suite_file.absolute(),
        hour=int(time[1]),
        minute=int(time[2]),
        program=_find_program(),
        environment=environment,
        secrets=(*withheld, *dict.fromkeys(name for spec in suite.notify for name in spec.variables)),
        secrets_file=home_root() / "nightly" / suite.name / "environment",
    )
    if systemd:
        _print_units(job)
    else:
        emit(crontab_line(job))
        if job.secrets:
            note(f"set {', '.join(job.secrets)} in the crontab, above the line: {job.secrets[0]}='...'")
    if not suite.notify:
        otherwise = "as a failed unit" if systemd else "by mail, if cron can send mail on this host"
        note(f"{suite.name} has no `notify:`: an alarm is reported only {otherwise}")


def _print_units(job: Job) -> None:
    is_root = os.geteuid() == 0
    config = Path(os.environ.get("XDG_CONFIG_HOME") or Path("~/.config").expanduser())
    folder = Path("/etc/systemd/system") if is_root else config / "systemd" / "user"
    systemctl = "systemctl" if is_root else "systemctl --user"
    emit(f"# {folder / job.unit}.service\n{service_unit(job)}\n")
    emit(f"# {folder / job.unit}.timer\n{timer_unit(job)}")
    if job.secrets:
        note(f"write {', '.join(job.secrets)} to {job.secrets_file}, mode 600: {job.secrets[0]}='...'")
    note(f"then: {systemctl} daemon-reload && {systemctl} enable --now {job.unit}.timer")
    if not is_root:
        note("the timers of a user who is not logged in need: loginctl enable-linger")


def _find_program() -> tuple[str, ...]:
    """Return how this benchctl is started from anywhere: its script beside Python, or Python itself."""
    # Not resolved: the link to Python inside a virtual environment is what makes it that environment.
    python = Path(sys.executable).absolute()
    script = python.with_name("benchctl")
    return (str(script),) if script.is_file() else (str(python), "-m", "benchctl")


def environment_of(environ: Mapping[str, str]) -> tuple[tuple[tuple[str, str], ...], tuple[str, ...]]:
    """Return the environment of a night, and names of variables that it needs but that hold a password.

    The search path comes first: absolute folders only, each once.
    """
    folders = [folder for folder in environ.get("PATH", "").split(":") if folder.startswith("/")]
    passed_on = [("PATH", ":".join(dict.fromkeys(folders)) or _DEFAULT_PATH)]
    withheld = []
    for name in _PASSED_ON:
        value = environ.get(name, "")
        if "@" in urlsplit(value if "//" in value else f"//{value}").netloc:
            withheld.append(name)
        elif value:
            # Cron starts elsewhere, where a relative path would be another home.
            passed_on.append((name, str(home_root(environ)) if name == "BENCHCTL_HOME" else value))
    return tuple(passed_on), tuple(withheld)


def crontab_line(job: Job) -> str:
    """Return the line of a crontab, environment included, with its line feed.

    Output and exit status are the night's: cron mails what is printed.

    Raises:
        UsageError: If it is longer than cron takes.
    """
    variables = [f"{name}={shlex.quote(value)}" for name, value in job.environment]
    # Cron takes a per cent sign for the end of the line.
    command = " ".join([*variables, shlex.join(job.command)]).replace("%", r"\%")
    if len(command.encode()) > _MAX_CRON_BYTES:
        raise UsageError(
            f"the crontab line has {len(command.encode())} bytes, and cron takes {_MAX_CRON_BYTES}",
            hint="run it with a shorter search path, such as PATH=/usr/bin:/bin, or use --systemd",
        )
    return f"{job.minute} {job.hour} * * * {command}\n"


def service_unit(job: Job) -> str:
    """Return the service of one night: an alarm, exit code 3, fails the unit.

    SIGTERM goes to benchctl alone, which stops its nodes and keeps finished forks.

    Raises:
        UsageError: If systemd would not start a program with such a path.
    """
    program, *arguments = job.command
    if any(quote in program for quote in "\"'"):
        raise UsageError(
            f"systemd starts no program with quotes in its path: {program}",
            hint="install benchctl elsewhere, or use cron",
        )
    environment = "".join(f"Environment={_quoted(f'{name}={value}')}\n" for name, value in job.environment)
    if job.secrets:
        # A star, a question mark and brackets would match other files.
        environment += f"EnvironmentFile={escape(str(job.secrets_file)).replace('%', '%%')}\n"
    # No variables are looked for in the program's path.
    command = " ".join([_quoted(program), *(_quoted(part, variables=True) for part in arguments)])
    return (
        "[Unit]\n"
        f"Description=benchctl nightly: {job.suite}\n"
        "\n"
        "[Service]\n"
        "Type=oneshot\n"
        f"{environment}"
        f"ExecStart={command}\n"
        "KillMode=mixed\n"
        f"TimeoutStopSec={_STOP_TIMEOUT_S}\n"
    )


def timer_unit(job: Job) -> str:
    """Return the timer; a night missed because the machine was off is made up when it is on again."""
    return (
        "[Unit]\n"
        f"Description=benchctl nightly: {job.suite}, every day\n"
        "\n"
        "[Timer]\n"
        f"OnCalendar=*-*-* {job.hour:02}:{job.minute:02}:00\n"
        "Persistent=true\n"
        "AccuracySec=1s\n"
        "\n"
        "[Install]\n"
        "WantedBy=timers.target\n"
    )


def _quoted(text: str, *, variables: bool = False) -> str:
    """Quote a word of a unit file: `%` begins a specifier and, in arguments, `$` a variable."""
    text = text.replace("%", "%%")
    if variables:
        text = text.replace("$", "$$")
    if _UNQUOTED.fullmatch(text):
        return text
    return '"' + text.replace('"', '\\"') + '"'
