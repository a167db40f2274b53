"""Messages are written down before they are sent, to programs and others, and tried until they arrive."""

import contextlib
import os
import signal
import subprocess
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import BinaryIO, Final

import msgspec

from benchctl.disk import read_file
from benchctl.errors import BenchctlError
from benchctl.nightly.detection import number_of
from benchctl.nightly.folder import SuiteFolder, write_whole
from benchctl.nightly.model import Message, NightRecord
from benchctl.nightly.notify import (
    LETTER_VERSION,
    CommandSpec,
    Letter,
    NotifierSpec,
    Redactor,
    SendError,
    StoreSpec,
    WebhookSpec,
    destination,
    fill_store,
    post,
    send_mail,
    write_letter,
)

MOST_ATTEMPTS = 10
MOST_DAYS = 14

_NO_NIGHT = "00000"

Send = Callable[[NotifierSpec, Letter], None]
"""Sends one letter; raises SendError."""


# Telling a program: the message as JSON on its standard input.

_TAIL_BYTES = 2000
_GRACE_S = 2.0


def run_command(
    spec: CommandSpec, letter: Letter, *, environ: Mapping[str, str], folder: Path, redactor: Redactor
) -> None:
    """Run a program with a letter on its standard input.

    `folder` is its working directory, where a program with a slash in its path is looked for; its output
    is redacted.

    Raises:
        SendError: it could not be started, took too long, or failed; its last words are in the reason.
    """
    # Files in memory: a program that never reads, a grandchild that keeps its output open, a full disk, none
    # of them can stop us.
    with _in_memory("message") as message, _in_memory("output") as output:
        message.write(bytes(letter.body))
        message.seek(0)
        try:
            process = subprocess.Popen(
                spec.run,
                stdin=message,
                stdout=output,
                stderr=output,
                cwd=folder,
                env=dict(environ),
                start_new_session=True,
            )
        except OSError as err:
            raise SendError(f"it cannot be started: {err.strerror}", silent=True) from err
        try:
            status = process.wait(spec.timeout_s)
        except subprocess.TimeoutExpired:
            raise SendError(
                f"it took longer than {spec.timeout_s} s{_last_words(output, redactor)}"
            ) from None
        finally:
            if process.returncode is None:
                _end(process)
        if status:
            how = f"it exited with {status}" if status > 0 else f"signal {-status} ended it"
            raise SendError(how + _last_words(output, redactor))


@contextlib.contextmanager
def _in_memory(name: str) -> Iterator[BinaryIO]:
    with open(os.memfd_create(name), "w+b", buffering=0) as file:  # noqa: PTH123 - a descriptor, no path
        yield file


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a program and all that it started; what ignores that is killed."""
    for how in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, how)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_GRACE_S)
    process.wait()


def _last_words(output: BinaryIO, redactor: Redactor) -> str:
    """The end of its output; redacted as a whole first, or the cut might leave half a secret."""
    size = output.seek(0, os.SEEK_END)
    # A secret that began before the part that is looked at is cut off with the line that it is in.
    start = max(size - 16 * _TAIL_BYTES, 0)
    output.seek(start)
    said = redactor.clean(output.read(16 * _TAIL_BYTES).decode("utf-8", "replace"))
    if start:
        said = said.partition("\n")[2]
    said = " / ".join(line.strip() for line in said[-_TAIL_BYTES:].splitlines() if line.strip())
    return f": {said}" if said else ""


# The outbox.


@dataclass(frozen=True)
class Undelivered:
    """A message that did not reach one notifier. No field holds a secret.

    Attributes:
        notifier: what messages call it.
        night: id of the night that the message is about; empty if unreadable.
        subject: of the message.
        reason: why.
        attempts: how often it was tried.
        given_up: it is not tried again.
    """

    notifier: str
    night: str
    subject: str
    reason: str
    attempts: int
    given_up: bool

    @property
    def text(self) -> str:
        """All of it in a sentence."""
        then = "given up" if self.given_up else "tried again with the next night"
        about = f" about night {self.night}" if self.night else ""
        return f"{self.notifier} was not told{about}: {self.reason}; {then}"


@dataclass(frozen=True)
class _Waiting:
    """A letter, and where it is kept; nowhere when the disk would not have it."""

    letter: Letter
    path: Path | None
    unkept: str = ""


def deliver(
    outbox: Path,
    message: Message,
    notifiers: Sequence[NotifierSpec],
    *,
    environ: Mapping[str, str],
    folder: Path,
    runs: Path,
    now: datetime,
    send: Send | None = None,
) -> list[Undelivered]:
    """Tell everybody who wants to know of this night, and first what they could not be told before.

    A message arrives at least once; receivers can tell duplicates by its key. The caller holds the
    suite's lock. Standard output is the caller's as well.

    Args:
        outbox: folder of what waits; created when missing.
        message: of tonight.
        notifiers: as in the suite's file.
        environ: the environment, secrets included.
        folder: of the suite's file, where commands are started.
        runs: folder of the suite's runs.
        now: wall clock, with its offset.
        send: how a letter is sent; None for the real thing.

    Returns:
        What did not arrive, older first; it never raises for a notifier that fails.
    """
    redactor = Redactor(notifiers, environ)
    send = send or _sender(environ, folder, runs, redactor)
    by_destination = {destination(spec): spec for spec in notifiers}
    waiting, failed = _read(outbox)
    # Somebody may be named twice, for other occasions: once is enough.
    wanted = {destination(spec): spec for spec in notifiers if _wants(spec, message)}.values()
    tonight = _keep_all(outbox, message, wanted, now)
    # A night that was cut off while it told may tell once more, and knows better now.
    anew = {(one.letter.key, one.letter.destination) for one in tonight}
    waiting = [one for one in waiting if (one.letter.key, one.letter.destination) not in anew] + tonight
    silent: dict[str, str] = {}
    for one in waiting:
        letter = one.letter
        spec = by_destination.get(letter.destination)
        if spec is None:
            failed.append(_give_up(one, "the suite does not name it any more"))
        elif letter.destination in silent:
            failed.append(_put_back(one, letter, f"not tried: {silent[letter.destination]}", now))
        else:
            try:
                send(spec, letter)
            except SendError as err:
                reason = redactor.clean(err.reason)
                if err.silent:
                    silent[letter.destination] = reason
                tried = msgspec.structs.replace(letter, attempts=letter.attempts + 1)
                failed.append(
                    _give_up(one, reason, tried) if err.final else _put_back(one, tried, reason, now)
                )
            else:
                _forget(one)
    return failed


def _sender(environ: Mapping[str, str], folder: Path, runs: Path, redactor: Redactor) -> Send:
    def send(spec: NotifierSpec, letter: Letter) -> None:
        if isinstance(spec, CommandSpec):
            run_command(spec, letter, environ=environ, folder=folder, redactor=redactor)
        elif isinstance(spec, StoreSpec):
            fill_store(spec, letter, environ=environ, folder=folder, runs=runs)
        elif isinstance(spec, WebhookSpec):
            post(spec, letter, environ=environ, redactor=redactor)
        else:
            send_mail(spec, letter, environ=environ, redactor=redactor)

    return send


def _wants(spec: NotifierSpec, message: Message) -> bool:
    return (
        "always" in spec.when
        or message.status in spec.when
        or (bool(message.recovered) and "recovered" in spec.when)
    )


def _keep_all(
    outbox: Path, message: Message, notifiers: Iterable[NotifierSpec], now: datetime
) -> list[_Waiting]:
    letters = [
        write_letter(
            message, destination=destination(spec), title=spec.title, created=now.isoformat("T", "seconds")
        )
        for spec in notifiers
    ]
    return [_keep(outbox / _file_name(letter), letter) for letter in letters]


def _keep(path: Path, letter: Letter) -> _Waiting:
    """Write a letter down; on a full disk it is sent all the same: that may be what it is about."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, msgspec.json.encode(letter))
    except (BenchctlError, OSError) as err:
        reason = err.message if isinstance(err, BenchctlError) else str(err.strerror)
        return _Waiting(letter, None, reason)
    return _Waiting(letter, path)


def _put_back(one: _Waiting, letter: Letter, reason: str, now: datetime) -> Undelivered:
    """Keep a letter for the next night, unless it was tried often or long enough."""
    age = now - datetime.fromisoformat(letter.created)
    if letter.attempts >= MOST_ATTEMPTS:
        return _give_up(one, f"{reason}; tried {letter.attempts} times", letter)
    if age > timedelta(days=MOST_DAYS):
        return _give_up(one, f"{reason}; tried for {age.days} days", letter)
    if one.path is None:
        return _give_up(one, f"{reason}; and it could not be kept: {one.unkept}", letter)
    kept = _keep(one.path, msgspec.structs.replace(letter, reason=reason))
    if kept.path is None:
        # The letter as it was is still there: it is tried again, only the count is behind.
        reason = f"{reason}; its outbox cannot be written: {kept.unkept}"
    return _undelivered(letter, reason, given_up=False)


def _give_up(one: _Waiting, reason: str, letter: Letter | None = None) -> Undelivered:
    _forget(one)
    return _undelivered(one.letter if letter is None else letter, reason, given_up=True)


def _undelivered(letter: Letter, reason: str, *, given_up: bool) -> Undelivered:
    return Undelivered(letter.title, letter.night, letter.subject, reason, letter.attempts, given_up)


def _forget(one: _Waiting) -> None:
    if one.path is not None:
        # A folder that became read-only leaves the letter there: it is delivered again, as promised.
        with contextlib.suppress(OSError):
            one.path.unlink()


def _read(outbox: Path) -> tuple[list[_Waiting], list[Undelivered]]:
    """Read what waits; an unreadable file is set aside, so that it is reported once."""
    found: list[_Waiting] = []
    failed: list[Undelivered] = []
    for path in _paths(outbox):
        try:
            found.append(_Waiting(_load(path), path))
        except (OSError, msgspec.MsgspecError, ValueError):
            with contextlib.suppress(OSError):
                path.rename(path.with_suffix(".unreadable"))
            failed.append(Undelivered("somebody", "", "", f"{path.name} cannot be read", 0, given_up=True))
    return found, failed


def _paths(outbox: Path) -> list[Path]:
    """Files of letters; names sort by night."""
    try:
        return sorted(path for path in outbox.iterdir() if path.suffix == ".json" and path.name[0] != ".")
    except OSError:
        return []


def _load(path: Path) -> Letter:
    letter = msgspec.json.decode(read_file(path), type=Letter)
    if letter.letter_version != LETTER_VERSION:
        raise ValueError(f"version {letter.letter_version}")
    if datetime.fromisoformat(letter.created).tzinfo is None:
        raise ValueError("no offset")
    return letter


def _file_name(letter: Letter) -> str:
    """One a night and notifier; nights sort in the order in which they began, one that did not is first."""
    return f"{letter.night or _NO_NIGHT}.{letter.destination}.json"


# Up to which night somebody was told: one that was killed before it told is told of by the next.


_NAME: Final = "told"


def remember_told(folder: SuiteFolder, night: NightRecord) -> None:
    """Keep that the messages about a night are sent, or wait in the outbox.

    If that cannot be written, the night is reported again: rather twice than never.
    """
    if night.id:
        with contextlib.suppress(BenchctlError):
            write_whole(folder.root / _NAME, f"{night.id}\n".encode())


def untold(folder: SuiteFolder, nights: Iterable[NightRecord], tonight: NightRecord) -> list[NightRecord]:
    """The nights before tonight's that were not reported, in order; none if that was never kept."""
    try:
        last = number_of((folder.root / _NAME).read_text(encoding="utf-8", errors="replace"))
    except OSError:
        return []
    return sorted(
        (night for night in nights if last and last < night.number < tonight.number),
        key=lambda night: night.number,
    )
