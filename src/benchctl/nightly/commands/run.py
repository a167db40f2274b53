"""`benchctl nightly run`: a night, its message, and how it exits."""

import contextlib
import os
import shlex
import threading
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

import click
import msgspec

from benchctl.cli.measuring import dry_run_option, measuring_options, only_say
from benchctl.cli.options import printed_as
from benchctl.cli.resume import How
from benchctl.cli.streams import complain, emit, note, say
from benchctl.cli.watch import watching
from benchctl.errors import BenchctlError, ExitCode, UsageError
from benchctl.home import Home, resolve_home
from benchctl.lock import HostBusy, host_lock, measuring_pid, process_hours
from benchctl.nightly.folder import Known, SuiteBusy, SuiteFolder, check_name, recall, remember, suites
from benchctl.nightly.measure import (
    RESUME_WITHIN_H,
    night_plan,
    reason_to_discard,
    resolve,
    within_budget,
)
from benchctl.nightly.model import CUT_OFF, NIGHT_VERSION, Message, NightRecord
from benchctl.nightly.night import Ended, Shift, run_night
from benchctl.nightly.notify import NIGHTS_TO_RETRY, Notifying, undelivered
from benchctl.nightly.suite import Suite, check_challenges, load_suite
from benchctl.nightly.text import message_of
from benchctl.report.numbers import counted, json_text
from benchctl.results.store import RunStore
from benchctl.run.bench import Bench, Observer
from benchctl.run.orchestrate import More
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
    nothing is run, with 0, unless the suite's `on-busy` or the option says to wait or fail.
    """
    suite = load_suite(path)
    suite = msgspec.structs.replace(suite, on_busy=on_busy or suite.on_busy)
    check_challenges(path, suite)
    home = resolve_home()
    folder = SuiteFolder(home.nightly / suite.name)
    waiting = suite.on_busy == "wait"
    check_name(folder, str(path.absolute()))
    notifying = Notifying(suite.notify, os.environ, path.absolute().parent)
    if dry_run:
        _only_say(suite, home, folder)
        return
    late: list[Message] = []
    try:
        with (
            watching(quiet=quiet) as observer,
            folder.lock(wait=waiting, on_wait=lambda holder: observer.note(f"waiting for: {holder}")),
        ):
            ended, message = _night(suite, path, home, folder, observer, waiting=waiting)
            late = _notify(notifying, folder, ended, message)
    except (SuiteBusy, HostBusy) as err:
        hung = isinstance(err, SuiteBusy) and process_hours(measuring_pid(folder.lock_name)) > LONGEST_NIGHT_H
        if suite.on_busy != "warn" or hung:
            raise
        say(f"{suite.name}: {err.message}; nothing is run")
        return
    except BenchctlError as err:
        if err.exit_code == ExitCode.INTERRUPTED:
            raise _interrupted(suite, path) from err
        # Not even a lock can be had, as on a disk that became read-only.
        ended = _not_begun(suite, err)
        message = message_of(ended.record, ended.events)
        notifying.send(message, final=True)
    trouble = [*ended.trouble, *notifying.failures]
    for missed in late:
        note(f"night {missed.night} ended before its message was sent")
        complain(missed.text.rstrip("\n"))
    if not quiet or message.status != "quiet" or message.recovered or trouble:
        if output_format == "json":
            emit(json_text(message))
        else:
            say(message.text, nl=False)
    if ended.bug is not None:
        raise ended.bug
    _conclude(ended, message, trouble, late)


def _only_say(suite: Suite, home: Home, folder: SuiteFolder) -> None:
    """Describe the next night, after checking all that can be checked without it."""
    nights = folder.nights(note)
    last = nights[-1] if nights else None
    number = 1 + (last.number if last else 0)
    if last and last.status in CUT_OFF and not reason_to_discard(suite, last, datetime.now(UTC)):
        say(f"would resume night {last.id}, which was interrupted; all of it:")
        number = last.number
    with watching(quiet=True) as observer:
        plan, track, files = night_plan(suite, number, resolve(suite), home, observer.progress)
    only_say(within_budget(suite, plan), track, files, home, _store(suite, home), suite.on_busy)


@dataclass(frozen=True)
class BegunNight:
    """A night of a suite."""

    folder: SuiteFolder
    id: str

    @property
    def title(self) -> str:
        """Title for readers."""
        return f"night {self.id} of {self.folder.root.name}"

    def resume(self, how: How, budget_s: float | None) -> None:
        """Go on with it by its suite, if nothing else has become of it."""
        if budget_s is not None:
            raise UsageError(
                "--budget: a night has that of its suite", hint="set `budget` in the suite's file"
            )
        printed = how.printed_as("text", "json", what="a night")
        record = self.folder.load(self.id)
        if record.status not in CUT_OFF:
            note(f"{self.title} is {record.status}; nothing is measured")
            return
        path = Path(recall(self.folder).file)
        newest = max(night.number for night in self.folder.nights(note))
        reason = reason_to_discard(load_suite(path), record, datetime.now(UTC))
        if record.number < newest:
            reason = "a later night has begun"
        if reason:
            raise BenchctlError(
                f"{self.title} cannot be resumed: {reason}",
                hint=f"begin another: benchctl nightly run {path}",
            )
        click.get_current_context().invoke(
            run_command, path=path, output_format=printed, dry_run=False, on_busy=how.on_busy, quiet=how.quiet
        )

    def extend(self, more: More, how: How) -> None:
        """Refuse: all nights of a suite have as many forks."""
        del more, how
        raise UsageError(
            f"{self.title} has the forks of its suite, as all nights",
            hint="more of them from the next night on: set `forks` in the suite's file",
        )


def whole(home: Home, name: str, tags: Collection[str]) -> BegunNight | None:
    """Return the night of that id, or the one that was cut off and that a run with such tags is of."""
    names = {name} if name else set(tags)
    for suite in suites(home):
        for night_id in names if name or suite.root.name in names else ():
            if "/" in night_id or not night_id.strip(".") or not suite.night_path(night_id).is_dir():
                continue
            if name or _is_cut_off(suite, night_id):
                return BegunNight(suite, night_id)
    return None


def _is_cut_off(suite: SuiteFolder, night_id: str) -> bool:
    try:
        return suite.load(night_id).status in CUT_OFF
    except BenchctlError:
        return False


def _notify(notifying: Notifying, folder: SuiteFolder, ended: Ended, message: Message) -> list[Message]:
    """Send tonight's message, then those of earlier nights that were not delivered."""
    # Return the messages of nights that ended, or were given up, before they could send them.
    tonight = ended.record
    _keep_unnotified(folder, tonight, notifying.send(message, final=not tonight.id))
    late = []
    try:
        nights = folder.nights(note)
    except BenchctlError as err:
        note(err.message)
        return []
    for record in undelivered(nights, tonight.number):
        missed = message_of(record, ended.events)
        final = tonight.number - record.number >= NIGHTS_TO_RETRY
        missing = notifying.send(missed, only=record.unnotified, final=final)
        _keep_unnotified(folder, record, () if final else missing)
        if record.unnotified is None:
            late.append(missed)
    return late[::-1]


def _keep_unnotified(folder: SuiteFolder, record: NightRecord, missing: Sequence[str]) -> None:
    """Keep who has yet to get the message; where that cannot be written, it is rather sent twice."""
    if record.id:
        with contextlib.suppress(BenchctlError):
            folder.save(msgspec.structs.replace(record, unnotified=tuple(missing)))


def _interrupted(suite: Suite, path: Path) -> BenchctlError:
    """Return advice to repeat the night: a run's own would leave the night as it is."""
    again = f"benchctl nightly run {shlex.quote(str(path))}"
    within = f"resumes it within {RESUME_WITHIN_H:.0f} hours"
    return BenchctlError(
        f"the night of {suite.name} is interrupted",
        hint=f"{again} {within if suite.on_cut_off == 'resume' else 'begins another'}",
        exit_code=ExitCode.INTERRUPTED,
    )


def _night(
    suite: Suite, path: Path, home: Home, folder: SuiteFolder, observer: Observer, *, waiting: bool
) -> tuple[Ended, Message]:
    store = _store(suite, home)
    with host_lock(
        wait=waiting, on_wait=lambda holder: observer.note(f"waiting for another benchctl: {holder}")
    ):
        try:
            remember(folder, Known(str(path.absolute()), str(store.root)))
            ended = run_night(Shift(suite, path, folder, Bench(home, store, observer, threading.Event())))
        except BenchctlError as err:
            if err.exit_code == ExitCode.INTERRUPTED:
                raise
            ended = _not_begun(suite, err)
    return ended, message_of(ended.record, ended.events)


def _store(suite: Suite, home: Home) -> RunStore:
    return RunStore(home.runs if suite.runs is None else Path(suite.runs))


def _not_begun(suite: Suite, err: BenchctlError) -> Ended:
    """Report a night that could not even be written down, as on a full disk."""
    record = NightRecord(
        night_version=NIGHT_VERSION,
        id="",
        number=0,
        suite=suite.name,
        started=datetime.now(UTC).astimezone().isoformat(timespec="seconds"),
        status="failed",
        reason=f"it could not begin: {err.message}",
    )
    return Ended(record, ())


def _conclude(ended: Ended, message: Message, trouble: list[str], late: Sequence[Message]) -> None:
    """Exit by how it ended; an alarm takes precedence over other trouble."""
    raised = len(ended.raised) + sum(len(message.raised) for message in late)
    if raised:
        count = counted(raised, "alarm")
        raise BenchctlError("; ".join([f"{count} raised", *trouble]), exit_code=ExitCode.REGRESSION)
    if message.status == "broken":
        night = f"night {ended.record.id}" if ended.record.id else "the night"
        status = "incomplete" if ended.record.status == "done" else ended.record.status
        raise BenchctlError("; ".join([f"{night} is {status}: {ended.record.reason}", *trouble]))
    if trouble:
        raise BenchctlError("; ".join(trouble))
