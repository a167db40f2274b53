"""A night and a suite in words, and the command or webhook that gets the message of a night."""

import contextlib
import os
import re
import shlex
import signal
import subprocess
import textwrap
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Final, Literal
from urllib.parse import urlsplit

import msgspec

from benchctl.endpoint import is_loopback
from benchctl.network import Courier, Trouble, Unanswered
from benchctl.nightly.records import Alarm, NightRecord, number_of
from benchctl.report.numbers import counted, duration, interval, signed_percent, visible
from benchctl.report.table import command_lines

Standing = Literal["quiet", "alarm", "broken", "running"]
"""`quiet`: measured, and nothing to be woken for; `alarm`: it raised one; `broken`: it lacks values."""

WIDTH: Final = 100
NIGHTS_TO_RETRY: Final = 14
"""A message that this many nights could not deliver is given up."""

_INDENT: Final = "    "
# What a screen holds: alarms with all that they carry, entries of every list, lines of a command.
_DETAILED: Final = 3
_LISTED: Final = 8
_MOST_COMMAND_LINES: Final = 3
_GRACE_S: Final = 2.0
_MAX_ANSWER_BYTES: Final = 64 * 1024
_OK, _REDIRECTS = 200, 300
_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)


MESSAGE_VERSION: Final = 3


class Message(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab", kw_only=True):
    """A night, for somebody who was not there. New attributes may come; those here keep their meaning."""

    schema_version: int = MESSAGE_VERSION  # of this format; another number means another meaning
    id: str  # of the message, the same whenever it is sent again: receivers can tell it from a new one
    suite: str
    night: str
    # `alarm` when the night raised one; `broken` when there are no values of it, or of one of its
    # variants; else `quiet`.
    status: Standing
    subject: str  # one line without control characters
    text: str  # one screen, lines ended by a line feed
    raised: tuple[Alarm, ...] = ()
    recovered: tuple[Alarm, ...] = ()
    # Alarms that nobody has acknowledged and that did not recover; those just raised included.
    open: tuple[Alarm, ...] = ()
    run: str = ""  # id of the night's run; empty when there is none
    warnings: tuple[str, ...] = ()  # what weakens the values of that run
    has_new_warnings: bool = False  # whether the night before had not all of these

    @property
    def is_news(self) -> bool:
        """Return whether somebody should read it."""
        return self.status != "quiet" or bool(self.recovered) or self.has_new_warnings


def message_of(record: NightRecord, alarms: Sequence[Alarm]) -> Message:
    """Return the message about a finished night, from all alarms of the suite, the night's own included."""
    return Message(
        # A night that could not even begin has no id, and the next such one is news again.
        id=f"{record.suite}/{record.id or record.started.replace(':', '')}",
        suite=record.suite,
        night=record.id,
        status=standing(record, alarms),
        subject=" ".join(visible(subject(record, alarms)).split()),
        text=_summary(record, alarms),
        raised=tuple(alarm for alarm in alarms if alarm.night == record.id),
        recovered=tuple(alarm for alarm in alarms if record.id and alarm.recovered == record.id),
        open=tuple(alarm for alarm in alarms if alarm.is_open),
        run=record.run,
        warnings=record.warnings,
        has_new_warnings=record.has_new_warnings,
    )


def standing(record: NightRecord, alarms: Sequence[Alarm]) -> Standing:
    """Return the outcome of a night."""
    if record.status == "running":
        return "running"
    if any(alarm.night == record.id for alarm in alarms):
        return "alarm"
    return "quiet" if record.status == "done" and not record.reason else "broken"


def headline(record: NightRecord, alarms: Sequence[Alarm]) -> str:
    """Return the outcome as a clause.

    Such as `no alarms`, `2 alarms`, `broken (refused, the load was 3.1)`, and what makes it unreliable.
    """
    raised = sum(alarm.night == record.id for alarm in alarms)
    recovered = sum(alarm.recovered == record.id for alarm in alarms)
    status = "" if record.status == "done" else record.status
    texts: dict[Standing, str] = {
        "running": "still running",
        "quiet": "no alarms",
        "alarm": f"{counted(raised, 'new alarm')}",
        "broken": f"broken ({', '.join(filter(None, (status, record.reason)))})",
    }
    counts = Counter(finding.status for finding in record.findings)
    parts = [texts[standing(record, alarms)], f"{recovered} recovered" if recovered else ""]
    parts += [f"{counts['unconfirmed']} unconfirmed"] if counts["unconfirmed"] else []
    parts += [f"{counts['held']} attributed to the host"] if counts["held"] else []
    moved = [finding for finding in record.findings if finding.status == "host"]
    unreliable = [f"canary {signed_percent(finding.effect_percent)}%" for finding in moved[:1]]
    unreliable += ["busy host"] if record.noise else []
    trust = f"; results unreliable ({', '.join(unreliable)})" if unreliable else ""
    warned = f"; {counted(len(record.warnings), 'warning')}" if record.warnings else ""
    return ", ".join(filter(None, parts)) + trust + warned


def subject(record: NightRecord, alarms: Sequence[Alarm]) -> str:
    """Return the subject of the message, such as `Suite big5, night 42: no alarms`."""
    return f"Suite {record.suite}, night {record.number}: {headline(record, alarms)}"


def remarks(record: NightRecord) -> list[str]:
    """Return what a night could not have detected, and what else to know of it, a sentence each."""
    reasons = [record.host_moved] if record.host_moved else []
    reasons += [f"busy host: {reason}" for reason in record.noise]
    reasons += [
        f"not confirmed: {finding.key.task} {finding.key.metric} on {finding.key.variant} "
        f"{signed_percent(finding.effect_percent)}%: {finding.reason}"
        for finding in record.findings
        if finding.status == "unconfirmed"
    ]
    texts = [f"{text[:1].upper()}{text[1:]}" for text in (*reasons, *record.caveats)]
    return [f"{text.rstrip('. ')}." for text in (*record.warnings, *texts)]


def alarm_lines(alarm: Alarm) -> list[str]:
    """Return what an alarm says: how much, since when, what changed then, what confirmed it, its state."""
    finding = alarm.finding
    bounds = interval(finding.low_percent, finding.high_percent)
    run = f"run {finding.run}: " if finding.run else ""
    nights = f"since night {number_of(finding.since)}, last good night {number_of(finding.last_good)}"
    return [
        f"{signed_percent(finding.effect_percent)}% (95% interval {bounds}), {nights}",
        f"Changes in that night: {'; '.join(alarm.changes) or 'none were recorded'}",
        f"{finding.status.capitalize()}: {run}{finding.reason}",
        *filter(None, [alarm_state(alarm)]),
    ]


def alarm_state(alarm: Alarm) -> str:
    """Return `Acknowledged by ann: known`, `Recovered in night 44: ...`; empty for an open alarm."""
    if alarm.recovered:
        return f"Recovered in night {number_of(alarm.recovered)}: {alarm.end}"
    return f"Acknowledged by {alarm.acknowledged}" if alarm.acknowledged else ""


def moment(wall_clock: str) -> str:
    """Return `2026-11-21T03:00:12+00:00` as people write it, to the minute."""
    return wall_clock[:16].replace("T", " ")


def _summary(record: NightRecord, alarms: Sequence[Alarm]) -> str:
    """Return about one screen on a night: the answer, then alarms by state, and what was not watched."""
    raised = [alarm for alarm in alarms if alarm.night == record.id]
    recovered = [alarm for alarm in alarms if record.id and alarm.recovered == record.id]
    others = [alarm for alarm in alarms if alarm.is_open and alarm not in raised]
    took = f", {duration(record.wall_s)}" if record.wall_s else ""
    run = f", run {record.run}" if record.run else ""
    parts = [
        _wrapped(subject(record, alarms), most=3),
        *(_detailed(alarm) for alarm in raised[:_DETAILED]),
        _listed("Also new", [_titled(alarm) for alarm in raised[_DETAILED:]]),
        _listed("Recovered", [f"{_titled(alarm)} ({alarm.end})" for alarm in recovered]),
        _listed("Open", [f"{_titled(alarm)} (night {number_of(alarm.night)})" for alarm in others]),
        _listed("Notes", remarks(record)),
        _listed("Changed", [] if raised else record.changes),
        _wrapped(f"Night {record.id}: {moment(record.started)}{took}{run}"),
    ]
    return "\n".join("".join(f"{line}\n" for line in part) for part in parts if part)


def _detailed(alarm: Alarm) -> list[str]:
    lines = [line for text in alarm_lines(alarm) for line in _wrapped(text, _INDENT)]
    command = list(map(visible, command_lines(shlex.split(alarm.finding.command), WIDTH, lead=_INDENT)))
    if len(command) > _MOST_COMMAND_LINES:
        command = [f"{_INDENT}The command that repeats it is long: see benchctl nightly status --html DIR"]
    return [*_wrapped(_titled(alarm)), *lines, *(command if alarm.finding.command else [])]


def status_text(suite: str, record: NightRecord | None, alarms: Sequence[Alarm], holder: str = "") -> str:
    """Return the state of a suite: its last night, if any, who holds its lock, and alarms that last."""
    lines = _wrapped(f"{suite}: no night yet" if record is None else subject(record, alarms))
    if record is not None:
        took = f", took {duration(record.wall_s)}" if record.wall_s else ""
        lines.append(f"Last night:  {moment(record.started)}{took}")
    if holder:
        lines += _wrapped(f"Running now: {holder}")
    count = sum(alarm.is_open for alarm in alarms)
    lines.append(f"Open alarms: {count or 'none'}")
    for alarm in (alarm for alarm in alarms if not alarm.recovered):
        state = alarm_state(alarm)
        lines += _wrapped(f"{_titled(alarm)}{f' ({state})' if state else ''}", _INDENT)
    if count:
        lines.append(f"{_INDENT}acknowledge with: benchctl nightly ack {shlex.quote(suite)} --all")
    lines += _listed("Notes", [] if record is None else remarks(record))
    return "".join(f"{line}\n" for line in lines)


def _titled(alarm: Alarm) -> str:
    return f"#{alarm.number} {alarm.title}"


def _listed(title: str, entries: Sequence[str]) -> list[str]:
    """Return a heading with its entries below it; those that do not fit are counted."""
    lines = [line for entry in entries[:_LISTED] for line in _wrapped(entry, "  ", most=2)]
    more = [f"  and {len(entries) - _LISTED} more"] if len(entries) > _LISTED else []
    return [f"{title}:", *lines, *more] if entries else []


def _wrapped(text: str, indent: str = "", most: int | None = None) -> list[str]:
    """Fold a text, to at most so many lines, the last of which tells if there is more."""
    return textwrap.wrap(
        " ".join(visible(text).split()),
        WIDTH,
        initial_indent=indent,
        subsequent_indent=f"{indent}{_INDENT}",
        break_on_hyphens=False,
        max_lines=most,
        placeholder=" ...",
    )


# The receiver of messages.


class Notifier(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """A command that gets the message as JSON on its standard input, or a webhook that it is posted to."""

    command: tuple[str, ...] = ()  # program and its arguments, without a shell; gets JSON on standard input
    webhook_env: str = ""  # environment variable with the URL that JSON is posted to
    template: Literal["json", "slack"] = "json"  # `slack` posts {"text": ...}, which many chats accept
    timeout_s: Annotated[int, msgspec.Meta(ge=1, le=3600)] = 60  # seconds per attempt
    quiet_nights: bool = False  # report every night, not only alarms, recoveries and broken nights

    def __post_init__(self) -> None:
        """Refuse what cannot work; nothing is quoted, since somebody may have written a secret."""
        if bool(self.command) == bool(self.webhook_env):
            raise ValueError("`notify` has either `command` or `webhook-env`")
        if self.command and (not self.command[0] or any("\0" in part for part in self.command)):
            raise ValueError("`command` is a list of a program and its arguments")
        if self.webhook_env and not _VARIABLE.fullmatch(self.webhook_env):
            raise ValueError("`webhook-env` is not the name of an environment variable")

    @property
    def title(self) -> str:
        """Name in messages, without arguments and secrets."""
        return f"command {self.command[0]}" if self.command else f"webhook ${self.webhook_env}"

    def wants(self, message: Message) -> bool:
        """Return whether the message is to be sent."""
        return self.quiet_nights or message.is_news

    def send(self, message: Message, environ: Mapping[str, str], folder: Path) -> str:
        """Send a message; return why it was not delivered, without secrets, or an empty text.

        Args:
            message: of a night. It may come twice, if benchctl is killed before it is kept that it was
                delivered: its id tells.
            environ: has the secrets.
            folder: of the suite file: the working directory of a command.
        """
        body = msgspec.json.encode(message)
        if self.template == "slack":
            body = msgspec.json.encode({"text": f"{message.subject}\n```\n{message.text}\n```"})
        reason = self._run(body, environ, folder) if self.command else self._post(body, message.id, environ)
        night = f" of night {message.night}" if message.night else ""
        return reason and f"{self.title} did not get the message{night}: {reason}"

    def _run(self, body: bytes, environ: Mapping[str, str], folder: Path) -> str:
        """Run the command; what it prints goes to standard error."""
        # A file in memory: neither a program that does not read nor a full disk can stop us.
        with open(os.memfd_create("message"), "w+b", buffering=0) as message:  # noqa: PTH123 - a descriptor
            message.write(body)
            message.seek(0)
            try:
                process = subprocess.Popen(
                    self.command,
                    stdin=message,
                    stdout=2,
                    cwd=folder,
                    env=dict(environ),
                    start_new_session=True,
                )
            except OSError as err:
                return f"it cannot be started: {err.strerror}"
        try:
            status = process.wait(self.timeout_s)
        except subprocess.TimeoutExpired:
            return f"it took longer than {self.timeout_s} s"
        finally:
            if process.returncode is None:
                _end(process)
        return f"it ended with {status}" if status else ""

    def _post(self, body: bytes, message_id: str, environ: Mapping[str, str]) -> str:
        """Post the message, with its id in the header `Idempotency-Key`; redirections are not followed."""
        url = environ.get(self.webhook_env, "").strip()
        if not url:
            return f"the environment variable {self.webhook_env} is not set"
        if not _is_postable(url):
            return f"{self.webhook_env} holds no https address, or http one on loopback"
        headers = {
            "User-Agent": "benchctl",
            "Content-Type": "application/json; charset=utf-8",
            "Idempotency-Key": message_id,
        }
        with Courier(ca=environ.get("REQUESTS_CA_BUNDLE") or None, outside=True) as courier:
            try:
                status = courier.ask(
                    "POST",
                    url,
                    headers=headers,
                    body=body,
                    deadline_s=self.timeout_s,
                    max_bytes=_MAX_ANSWER_BYTES,
                ).status
            except Unanswered as err:
                if err.trouble is not Trouble.TOO_LARGE or err.partial is None:
                    # libcurl's own texts quote names and addresses, which may be secret.
                    return f"no response ({err.trouble.name.replace('_', ' ').lower()})"
                status = err.partial.status
        return "" if _OK <= status < _REDIRECTS else f"it responded with HTTP {status}"


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a program and all that it started; what ignores that is killed."""
    for how in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, how)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_GRACE_S)
    process.wait()


def _is_postable(url: str) -> bool:
    """Return whether what is sent to an address is encrypted, or stays on this host."""
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        return False
    if not url.isascii() or not url.isprintable() or " " in url or not parts.hostname:
        return False
    return parts.scheme == "https" or (parts.scheme == "http" and is_loopback(parts.hostname))
