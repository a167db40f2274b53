"""`benchctl nightly install`: what starts a suite every night, printed, put in, or taken out."""

import os
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

import click

from benchctl.cli.streams import complain, emit, note, say
from benchctl.disk import disk_errors
from benchctl.errors import UsageError
from benchctl.home import open_folder, resolve_home
from benchctl.nightly.install import (
    LINGERING,
    Crontab,
    Daily,
    Job,
    Units,
    begin_secrets,
    block_of,
    environment_of,
    find_program,
    local_zone,
    missing_secrets,
    schedule_of,
    where_is,
)
from benchctl.nightly.suite import Suite, check_challenges, load_suite

Kind = Literal["cron", "systemd"]


@click.command("install")
@click.argument("suite_file", metavar="SUITE.yml", type=click.Path(path_type=Path))
@click.option("--at", metavar="HH:MM", help="Local time of day, such as 03:00.")
@click.option(
    "--days", default="", metavar="DAYS", help="Such as mon-fri or mon,thu; every day if not given."
)
@click.option(
    "--kind", type=click.Choice(("cron", "systemd")), help="Scheduler; cron where there is a crontab."
)
@click.option("--write", is_flag=True, help="Install it; without, it is only printed.")
@click.option("--remove", is_flag=True, help="Take out what was installed.")
def install_command(
    suite_file: Path, at: str | None, days: str, kind: Kind | None, *, write: bool, remove: bool
) -> None:
    """Have a suite run every night, by cron or systemd.

    Prints a crontab line, or a systemd service and its timer; with --write installs it for the user who asks
    (as root, systemd's units are the system's). What it prints is appended to nightly.log in the suite's
    folder, and the secrets of notifiers are read from the file `environment` there. Repeating it changes
    nothing but what is asked for.
    """
    suite = load_suite(suite_file)
    kind = kind or _kind(os.environ)
    if remove:
        if write or at or days:
            raise UsageError("--remove takes nothing but --kind")
        _remove(suite.name, kind)
        return
    if at is None:
        raise UsageError("--at is missing", hint="say when, such as --at 03:00")
    check_challenges(suite_file, suite)
    job = _job(suite, suite_file, Daily.parse(at, days))
    missing = missing_secrets(job.secrets, [name for spec in suite.notify for name in spec.variables])
    if write:
        _write(job, kind)
        if missing:
            begin_secrets(job, missing)
    elif kind == "cron":
        emit(block_of(job))
    else:
        for path, content in Units.usual(os.environ).files(job).items():
            emit(f"# {path}\n{content}\n")
    _advise(job, kind, missing)


def _job(suite: Suite, suite_file: Path, when: Daily) -> Job:
    """The job; its folder is made, because the log is opened before benchctl could make it."""
    folder = resolve_home().nightly / suite.name
    with disk_errors(f"make {folder}"):
        if not folder.is_dir():
            folder.mkdir(parents=True)
            open_folder(folder)
    environment, withheld = environment_of(os.environ)
    job = Job(
        suite=suite.name,
        file=suite_file.absolute(),
        when=when,
        program=find_program(),
        environment=environment,
        folder=folder,
    )
    if withheld:
        note(f"{', '.join(withheld)} holds a password and is not written down: put it into {job.secrets}")
    return job


def _kind(environ: Mapping[str, str]) -> Kind:
    """Cron, if there is one, or if there is neither and we can only print."""
    no_cron = where_is("crontab", environ) is None
    return "systemd" if no_cron and Units.usual(environ).is_running else "cron"


def _write(job: Job, kind: Kind) -> None:
    now = datetime.now(UTC)
    there = schedule_of(job.suite, environ=os.environ, now=now)
    if there is not None and there.kind != kind:
        raise UsageError(
            f"{job.suite} is started by {there.kind} already, {there.text}",
            hint=f"take that out first: benchctl nightly install {job.file} --remove --kind {there.kind}",
        )
    changed = Crontab(os.environ).install(job) if kind == "cron" else Units.usual(os.environ).install(job)
    there = schedule_of(job.suite, environ=os.environ, now=now)
    when = there.next_run if there is not None else None
    say(
        f"{job.suite}: {kind} {'starts it' if changed else 'starts it already,'} at {job.when.text}"
        + (f", next on {when:%Y-%m-%d %H:%M %Z}" if when is not None else "")
        + f"\nLog: {job.log}"
    )


def _remove(suite: str, kind: Kind) -> None:
    removed = Crontab(os.environ).remove(suite) if kind == "cron" else Units.usual(os.environ).remove(suite)
    say(f"{suite}: {kind} {'no longer starts it' if removed else 'did not start it'}")


def _advise(job: Job, kind: Kind, missing: tuple[str, ...]) -> None:
    """What remains to be done, and what not to expect."""
    if missing:
        note(f"its notifiers read {', '.join(missing)}, which {job.secrets} does not set")
        complain(f"  hint: write {missing[0]}='...' into it, a line each; it has to be of mode 600")
    if kind == "cron":
        return
    left_out = job.when.left_out(datetime.now(UTC), local_zone())
    if left_out is not None:
        note(f"systemd leaves {left_out} out: clocks jump over {job.when.at:%H:%M}")
    units = Units.usual(os.environ)
    user = os.environ.get("USER", "")
    if not units.system and not (user and (LINGERING / user).exists()):
        note(
            "a user's timers run only while that user is logged in, until `loginctl enable-linger` was called"
        )
