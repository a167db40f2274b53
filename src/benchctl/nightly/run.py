"""`benchctl nightly run`: a night, its message, and how it exits."""

import contextlib
import os
import shlex
import threading
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

import click
import msgspec

from benchctl.cli.measuring import dry_run_option, measuring_options, only_say
from benchctl.cli.options import printed_as
from benchctl.cli.streams import complain, emit, note, say
from benchctl.cli.watch import watching
from benchctl.errors import BenchctlError, ExitCode, UsageError
from benchctl.home import Home, resolve_home
from benchctl.lock import HostBusy, host_lock, measuring_pid, process_hours
from benchctl.nightly.message import NIGHTS_TO_RETRY, Message, message_of
from benchctl.nightly.night import Ended, Shift, night_plan, resolve, run_night
from benchctl.nightly.records import NIGHT_VERSION, NightRecord, SuiteBusy, SuiteFolder
from benchctl.nightly.suite import Suite, load_suite
from benchctl.report.numbers import counted, json_text
from benchctl.results.store import RunStore
from benchctl.run.bench import Bench
from benchctl.run.study import within
from benchctl.spec import BusyAction

LONGEST_NIGHT_H = 24
"""Time after which a night counts as stuck and is reported, because nights are missing."""


@click.command("run")
@click.argument("path", type=click.Path(path_type=Path), metavar="SUITE.yml")
@dry_run_option
@measuring_options
@printed_as("text", "json", about="Output: text for people, json as notifiers get it.")
def run_command(
    path: Path,
    output_format: Literal["text", "json"],
    *,
    dry_run: bool,
    on_busy: BusyAction | None,
    quiet: bool,
) -> None:
    """Run a suite once, confirm changes and send alerts.

    Exit codes: 0 quiet, 3 an alarm was raised, 1 the night is broken. While another benchctl is measuring,
    it exits with 0 and runs nothing, unless the suite's `on-busy` or the option specifies wait or fail.
    """
    suite = load_suite(path)
    suite = msgspec.structs.replace(suite, on_busy=on_busy or suite.on_busy)
    home = resolve_home()
    folder = SuiteFolder(home.nightly / path.stem)
    if dry_run:
        _only_say(suite, home, folder)
        return
    try:
        ended, undelivered = _night(suite, path.absolute(), home, folder, quiet=quiet)
    except (SuiteBusy, HostBusy) as err:
        hung = isinstance(err, SuiteBusy) and process_hours(measuring_pid(folder.lock_name)) > LONGEST_NIGHT_H
        if suite.on_busy != "warn" or hung:
            raise
        say(f"{path.stem}: {err.message}; nothing is run")
        return
    message, trouble = message_of(ended.record, ended.alarms), [*ended.trouble, *undelivered]
    if not quiet or message.is_news or trouble:
        if output_format == "json":
            emit(json_text(message))
        else:
            say(message.text, nl=False)
    if ended.bug is not None:
        raise ended.bug
    _conclude(ended.record, message, trouble)


def _only_say(suite: Suite, home: Home, folder: SuiteFolder) -> None:
    """Describe the next night, after checking all that can be checked without it."""
    number = 1 + max((night.number for night in folder.nights(note)), default=0)
    plan, track, files = night_plan(suite, folder.root.name, number, resolve(suite), home)
    if suite.budget_s is not None:
        plan = msgspec.structs.replace(plan, stop=within(plan.stop, suite.budget_s))
    only_say(plan, track, files, home, RunStore(home.runs), suite.on_busy)


def _night(
    suite: Suite, file: Path, home: Home, folder: SuiteFolder, *, quiet: bool
) -> tuple[Ended, list[str]]:
    """Run a night and send its message; return why messages were not delivered, too."""
    waits = suite.on_busy == "wait"
    with watching(quiet=quiet) as observer:

        def waiting(holder: str) -> None:
            observer.note(f"waiting for another benchctl: {holder}")

        try:
            with folder.lock(wait=waits, on_wait=waiting), host_lock(wait=waits, on_wait=waiting):
                folder.claim(str(file))
                bench = Bench(home, RunStore(home.runs), observer, threading.Event())
                ended = run_night(Shift(suite, folder, bench))
                return ended, _notify(suite, file, folder, ended)
        except (SuiteBusy, HostBusy, UsageError):
            raise
        except BenchctlError as err:
            if err.exit_code == ExitCode.INTERRUPTED:
                hint = f"start another: benchctl nightly run {shlex.quote(str(file))}"
                raise BenchctlError(
                    f"the night of {folder.root.name} is interrupted", hint=hint, exit_code=err.exit_code
                ) from err
            # Not even a record can be kept, as on a disk that is full or became read-only.
            ended = _not_begun(folder, err)
            return ended, _notify(suite, file, folder, ended)


def _not_begun(folder: SuiteFolder, err: BenchctlError) -> Ended:
    """Report a night that could not even be written down."""
    record = NightRecord(
        night_version=NIGHT_VERSION,
        id="",
        number=0,
        suite=folder.root.name,
        started=datetime.now(UTC).astimezone().isoformat(timespec="seconds"),
        status="failed",
        reason=f"it could not start: {err.message}",
    )
    return Ended(record, ())


def _notify(suite: Suite, file: Path, folder: SuiteFolder, ended: Ended) -> list[str]:
    """Send tonight's message, then those of earlier nights that were not delivered; return failures."""
    # That is also a night that was killed before it sent anything.
    earlier = [
        night
        for night in reversed(folder.nights(note) if ended.record.id else [])
        if not night.told and 0 < ended.record.number - night.number <= NIGHTS_TO_RETRY
    ]
    failures: list[str] = []
    for record in (ended.record, *earlier):
        message = message_of(record, ended.alarms)
        if suite.notify is not None and suite.notify.wants(message):
            failure = suite.notify.send(message, os.environ, file.parent)
            if failure:
                # A receiver that is down is not waited for again.
                failures.append(f"{failure}; it is sent again with the next night")
                break
        elif record is not ended.record and message.is_news:
            complain(message.text.rstrip("\n"))
        # Where that cannot be kept, it is rather sent twice.
        with contextlib.suppress(BenchctlError):
            if record.id:
                folder.save(msgspec.structs.replace(record, told=True))
    return failures


def _conclude(record: NightRecord, message: Message, trouble: Sequence[str]) -> None:
    """Exit by how it ended; an alarm takes precedence over other trouble."""
    if message.raised:
        count = counted(len(message.raised), "alarm")
        raise BenchctlError("; ".join([f"{count} raised", *trouble]), exit_code=ExitCode.REGRESSION)
    if message.status == "broken":
        night = f"night {record.id}" if record.id else "the night"
        status = "incomplete" if record.status == "done" else record.status
        raise BenchctlError("; ".join([f"{night} is {status}: {record.reason}", *trouble]))
    if trouble:
        raise BenchctlError("; ".join(trouble))
