"""Notifiers of a suite: commands and webhooks that get the message of a night."""

import contextlib
import hashlib
import os
import re
import signal
import subprocess
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Final, Literal
from urllib.parse import urlsplit

import msgspec

from benchctl.endpoint import is_loopback
from benchctl.network import Courier, Trouble, Unanswered
from benchctl.nightly.model import Message, NightRecord

Occasion = Literal["alarm", "recovered", "broken", "always"]
"""An alarm raised tonight; one that recovered; a night that was not measured; every night."""

NIGHTS_TO_RETRY: Final = 14
"""A message that this many nights could not deliver is given up."""

_GRACE_S = 2.0
_MAX_ANSWER_BYTES = 64 * 1024
_OK, _REDIRECTS, _REFUSALS = 200, 300, 400
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+", re.ASCII)
_OWN_HEADERS = frozenset({"content-type", "content-length", "host", "idempotency-key", "transfer-encoding"})
# libcurl's own texts quote names and addresses, which may be secret.
_REASONS = {
    Trouble.UNRESOLVED: "unknown host",
    Trouble.REFUSED: "no connection",
    Trouble.UNTRUSTED: "its certificate is not trusted",
    Trouble.OTHER_NAME: "its certificate is for another host",
    Trouble.UNREADABLE_TRUST: "cannot read the trusted certificates",
}


class Notifier(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """A command that gets the message as JSON on its standard input, or a webhook that it is posted to."""

    command: tuple[str, ...] = ()  # program and its arguments, without a shell; gets JSON on standard input
    webhook: str = ""  # URL, for one that is not a secret
    webhook_env: str = ""  # environment variable with the URL
    headers_env: dict[str, str] = {}  # environment variables with values of HTTP headers
    template: Literal["json", "slack"] = "json"  # `slack` sends {"text": ...}, which many chats accept
    timeout_s: Annotated[int, msgspec.Meta(ge=1, le=3600)] = 60  # seconds per attempt
    # Which nights to report; by default alarm, recovered and broken.
    when: Annotated[tuple[Occasion, ...], msgspec.Meta(min_length=1)] = ("alarm", "recovered", "broken")

    def __post_init__(self) -> None:
        """Refuse secrets, and what cannot work; no address is quoted."""
        if sum(map(bool, (self.command, self.webhook, self.webhook_env))) != 1:
            raise ValueError("a notifier has one of `command`, `webhook` and `webhook-env`")
        if self.command:
            if not self.command[0] or any("\0" in part for part in self.command):
                raise ValueError("`command` is a list of a program and its arguments")
            if self.headers_env or self.template != "json":
                raise ValueError("`headers-env` and `template` require a webhook")
        if self.webhook:
            self._check_address()
        for header in self.headers_env:
            if not _HEADER.fullmatch(header) or header.lower() in _OWN_HEADERS:
                raise ValueError("`headers-env` names a header that cannot be set")
        if not all(map(_VARIABLE.fullmatch, self.variables)):
            # Somebody may have put the secret itself here: it is not quoted.
            raise ValueError("the value of `...-env` is not the name of an environment variable")

    def _check_address(self) -> None:
        if not _is_postable(self.webhook):
            raise ValueError("`webhook` is not an http or https address")
        parts = urlsplit(self.webhook)
        if "@" in parts.netloc or parts.query or parts.fragment or self.template == "slack":
            raise ValueError(
                "the address in `webhook` may hold a secret: put it into an environment variable, and "
                "name that in `webhook-env`"
            )
        if self.headers_env and not _is_private(self.webhook):
            raise ValueError("`headers-env` requires https, or a host on loopback")

    @property
    def title(self) -> str:
        """Name in messages, without arguments and secrets."""
        if self.command:
            return f"command {self.command[0]}"
        return (
            f"webhook {urlsplit(self.webhook).hostname}" if self.webhook else f"webhook ${self.webhook_env}"
        )

    @property
    def variables(self) -> tuple[str, ...]:
        """Names of the environment variables that hold its secrets."""
        return (*filter(None, (self.webhook_env,)), *self.headers_env.values())

    @property
    def id(self) -> str:
        """A digest of where messages go, whatever the occasion."""
        target = (self.command, self.webhook, self.webhook_env, sorted(self.headers_env.items()))
        return hashlib.sha256(msgspec.json.encode(target)).hexdigest()[:12]

    def wants(self, message: Message) -> bool:
        """Return whether the message is about one of its occasions."""
        return (
            "always" in self.when
            or message.status in self.when
            or (bool(message.recovered) and "recovered" in self.when)
        )


class NotifyError(Exception):
    """A message was not delivered; its text holds no secret."""


@dataclass
class Notifying:
    """The notifiers of a suite, each tried until it fails: a night does not wait again for one that is down.

    A message may come twice, if benchctl is killed before it is kept that it was delivered: its id tells.
    """

    notifiers: Sequence[Notifier]
    environ: Mapping[str, str]
    folder: Path  # of the suite file: the working directory of commands
    failures: list[str] = field(default_factory=list)  # a sentence for each message that was not delivered
    _down: dict[str, str] = field(default_factory=dict)  # id -> why

    def send(
        self, message: Message, *, only: Collection[str] | None = None, final: bool = False
    ) -> list[str]:
        """Send a message to whom it concerns and return the ids of notifiers that did not get it.

        Args:
            message: of a night.
            only: ids of the notifiers that have yet to get it; None for all.
            final: it is not tried again.
        """
        if only is None:
            concerned = {notifier.id: notifier for notifier in self.notifiers if notifier.wants(message)}
        else:
            concerned = {notifier.id: notifier for notifier in self.notifiers if notifier.id in only}
        missing = []
        for key, notifier in concerned.items():
            is_tried = key not in self._down
            if is_tried:
                try:
                    if notifier.command:
                        _run(notifier, msgspec.json.encode(message), self.environ, self.folder)
                    else:
                        _post(notifier, message, self.environ)
                    continue
                except NotifyError as err:
                    self._down[key] = str(err)
            missing.append(key)
            if is_tried or final:
                then = "given up" if final else "tried again with the next night"
                night = f" of night {message.night}" if message.night else ""
                self.failures.append(
                    f"{notifier.title} did not get the message{night}: {self._down[key]}; {then}"
                )
        return missing


def undelivered(nights: Iterable[NightRecord], tonight: int) -> list[NightRecord]:
    """Return earlier nights whose message somebody has yet to get, the newest first.

    That is also a night that was killed before it sent anything.
    """
    recent = (night for night in nights if tonight - NIGHTS_TO_RETRY <= night.number < tonight)
    return sorted((night for night in recent if night.unnotified != ()), key=lambda night: -night.number)


def _run(notifier: Notifier, body: bytes, environ: Mapping[str, str], folder: Path) -> None:
    """Run a command with the message on its standard input; what it prints goes to standard error."""
    # A file in memory: neither a program that does not read nor a full disk can stop us.
    descriptor = os.memfd_create("message")
    with open(descriptor, "w+b", buffering=0) as message:  # noqa: PTH123 - a descriptor, no path
        message.write(body)
        message.seek(0)
        try:
            process = subprocess.Popen(
                notifier.command,
                stdin=message,
                stdout=2,
                cwd=folder,
                env=dict(environ),
                start_new_session=True,
            )
        except OSError as err:
            raise NotifyError(f"it cannot be started: {err.strerror}") from err
    try:
        status = process.wait(notifier.timeout_s)
    except subprocess.TimeoutExpired:
        raise NotifyError(f"it took longer than {notifier.timeout_s} s") from None
    finally:
        if process.returncode is None:
            _end(process)
    if status:
        raise NotifyError(f"it exited with {status}" if status > 0 else f"signal {-status} ended it")


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a program and all that it started; what ignores that is killed."""
    for how in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, how)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_GRACE_S)
    process.wait()


def _post(notifier: Notifier, message: Message, environ: Mapping[str, str]) -> None:
    """Post the message, with its id in the header `Idempotency-Key`; redirections are not followed."""
    url = notifier.webhook or _secret(environ, notifier.webhook_env)
    if not _is_postable(url):
        raise NotifyError(f"{notifier.webhook_env} holds no http or https address")
    if not _is_private(url) and (notifier.headers_env or "@" in urlsplit(url).netloc):
        raise NotifyError(f"the address in {notifier.webhook_env} is http, and secrets require https")
    headers = {
        "User-Agent": "benchctl",
        "Content-Type": "application/json; charset=utf-8",
        "Idempotency-Key": message.id,
        **{name: _secret(environ, variable) for name, variable in notifier.headers_env.items()},
    }
    chat = {"text": f"{message.subject}\n```\n{message.text}\n```"}
    body = msgspec.json.encode(chat if notifier.template == "slack" else message)
    with Courier(ca=environ.get("REQUESTS_CA_BUNDLE") or None, outside=True) as courier:
        try:
            status = courier.ask(
                "POST",
                url,
                headers=headers,
                body=body,
                deadline_s=notifier.timeout_s,
                max_bytes=_MAX_ANSWER_BYTES,
            ).status
        except Unanswered as err:
            if err.trouble is not Trouble.TOO_LARGE or err.partial is None:
                # Without its cause: that quotes the address.
                in_time = f"no response within {notifier.timeout_s} s"
                default = in_time if err.trouble is Trouble.TIMEOUT else "no valid response"
                raise NotifyError(_REASONS.get(err.trouble, default)) from None
            status = err.partial.status
    if not _OK <= status < _REDIRECTS:
        redirected = ", and redirections are not followed" if _REDIRECTS <= status < _REFUSALS else ""
        raise NotifyError(f"it responded with HTTP {status}{redirected}")


def _secret(environ: Mapping[str, str], variable: str) -> str:
    value = environ.get(variable, "").strip()
    if not value:
        raise NotifyError(f"the environment variable {variable} is not set")
    if not value.isascii() or not value.isprintable():
        raise NotifyError(f"{variable} holds characters that HTTP cannot send")
    return value


def _is_private(url: str) -> bool:
    """Return whether what is sent to an address is encrypted, or stays on this host."""
    parts = urlsplit(url)
    return parts.scheme == "https" or is_loopback(parts.hostname or "")


def _is_postable(url: str) -> bool:
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        return False
    readable = url.isascii() and url.isprintable() and " " not in url
    return readable and parts.scheme in {"http", "https"} and bool(parts.hostname)
