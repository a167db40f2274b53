"""Telling somebody: whom, how a message gets there, and how no secret does."""

import base64
import contextlib
import hashlib
import re
import smtplib
import socket
import ssl
import threading
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from email.message import EmailMessage
from email.utils import format_datetime
from pathlib import Path
from typing import Annotated, Final, Literal
from urllib.parse import quote, quote_plus, unquote, urlsplit

import msgspec

from benchctl.endpoint import Auth, Endpoint, is_loopback, read_hosts, system_trust
from benchctl.errors import BenchctlError, UsageError
from benchctl.network import Courier, Trouble, Unanswered
from benchctl.nightly.model import Message
from benchctl.results.races import Layout
from benchctl.results.sql import StoredRun
from benchctl.results.store import RunFolder
from benchctl.run.export import StoreDownError, export

# Whom a suite tells: commands, webhooks, mail and stores, as its file names them; secrets only by variable.


Occasion = Literal["alarm", "recovered", "broken", "always"]
"""An alarm raised tonight; one that recovered; a night that was not measured; every night."""

USUAL: tuple[Occasion, ...] = ("alarm", "recovered", "broken")

Seconds = Annotated[int, msgspec.Meta(ge=1, le=3600)]

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+", re.ASCII)
_OWN_HEADERS = frozenset({"content-type", "content-length", "host", "idempotency-key", "transfer-encoding"})
# What needs no quotes in a header; others are too rare to try how each library and server takes them.
_ATOMS = r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+(?:\.[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+)*"
_ADDRESS = re.compile(_ATOMS + r"@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*", re.ASCII)
_PORTS = {"starttls": 587, "tls": 465, "none": 25}


class CommandSpec(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab", tag_field="kind", tag="command"
):
    """A program that gets the message as JSON on its standard input; exit status 0 means that it was told.

    Attributes:
        run: program and arguments; no shell reads them. Paths are relative to the suite file's folder.
        timeout_s: it is ended after that, with all that it started, seconds.
        when: on which occasions.
    """

    run: Annotated[tuple[str, ...], msgspec.Meta(min_length=1)]
    timeout_s: Seconds = 60
    when: Annotated[tuple[Occasion, ...], msgspec.Meta(min_length=1)] = USUAL

    def __post_init__(self) -> None:
        """Refuse what no process can be started with."""
        if not self.run[0] or any("\0" in part for part in self.run):
            raise ValueError("`run` is a program and its arguments")

    @property
    def title(self) -> str:
        """What messages call it; arguments stay out of it."""
        return f"command {self.run[0]}"

    @property
    def variables(self) -> tuple[str, ...]:
        """Names of the environment variables that hold its secrets."""
        return ()


class WebhookSpec(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab", tag_field="kind", tag="webhook"
):
    """An address that the message is posted to; an answer of 2xx means that it was told.

    Attributes:
        url: the address, where it may be read by everybody who reads the suite file.
        url_env: name of the variable that holds it, where knowing it is enough to use it.
        headers_env: variables that hold the values of further headers, by name of the header.
        template: `json` is the whole message, `slack` is `{"text": ...}`, which many chats understand.
        timeout_s: for all of it, seconds.
        when: on which occasions.
    """

    url: str = ""
    url_env: str = ""
    headers_env: dict[str, str] = {}
    template: Literal["json", "slack"] = "json"
    timeout_s: Seconds = 60
    when: Annotated[tuple[Occasion, ...], msgspec.Meta(min_length=1)] = USUAL

    def __post_init__(self) -> None:
        """Refuse addresses that hold secrets, and those that cannot be posted to; none is quoted."""
        if bool(self.url) == bool(self.url_env):
            raise ValueError("a webhook has `url` or `url-env`, one of them")
        if self.url:
            _check_open_url(self.url)
            if self.template == "slack":
                raise ValueError(
                    "the address of a chat is a secret: put it into the environment, and name it in `url-env`"
                )
            if self.headers_env and not _is_private(self.url):
                raise ValueError("`headers-env` holds secrets, which want https, or a host on loopback")
        else:
            _check_variable(self.url_env)
        for header, variable in self.headers_env.items():
            if not _HEADER.fullmatch(header) or header.lower() in _OWN_HEADERS:
                raise ValueError("`headers-env` names a header that cannot be set")
            _check_variable(variable)

    @property
    def title(self) -> str:
        """What messages call it: its host, or the variable that has its address."""
        return f"webhook {urlsplit(self.url).hostname}" if self.url else f"webhook ${self.url_env}"

    @property
    def variables(self) -> tuple[str, ...]:
        """Names of the environment variables that hold its secrets."""
        return tuple(name for name in (self.url_env, *self.headers_env.values()) if name)


class SmtpSpec(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab", tag_field="kind", tag="smtp"
):
    """Mail, handed to a server that takes it.

    Attributes:
        host: of the mail server.
        sender: whom it is from; `from` in the file.
        to: whom it is for.
        tls: `starttls` (the default) and `tls` check the server's certificate; `none` is for a server on
            this host, or one that takes mail without a password.
        port: 587, 465 or 25 if it is not given.
        user_env, password_env: variables that hold user and password; both or neither.
        timeout_s: for all of it, seconds.
        when: on which occasions.
    """

    host: str
    sender: str = msgspec.field(name="from")
    to: Annotated[tuple[str, ...], msgspec.Meta(min_length=1)]
    tls: Literal["starttls", "tls", "none"] = "starttls"
    port: Annotated[int, msgspec.Meta(ge=1, le=65535)] | None = None
    user_env: str = ""
    password_env: str = ""
    timeout_s: Seconds = 60
    when: Annotated[tuple[Occasion, ...], msgspec.Meta(min_length=1)] = USUAL

    def __post_init__(self) -> None:
        """Refuse what is not an address, and passwords that everybody on the way could read."""
        if not _is_host(self.host):
            raise ValueError("`host` is the name or address of a mail server")
        for address in (self.sender, *self.to):
            if not _ADDRESS.fullmatch(address):
                raise ValueError(f"{address!r} is not a mail address such as me@example.org")
        if bool(self.user_env) != bool(self.password_env):
            raise ValueError("a mail server wants both `user-env` and `password-env`, or neither")
        for variable in self.variables:
            _check_variable(variable)
        if self.user_env and self.tls == "none" and not is_loopback(self.host):
            raise ValueError("a password wants `tls: starttls` or `tls: tls`, or a server on loopback")

    @property
    def title(self) -> str:
        """What messages call it."""
        return f"smtp {self.host}"

    @property
    def server_port(self) -> int:
        """Where the server listens."""
        return _PORTS[self.tls] if self.port is None else self.port

    @property
    def variables(self) -> tuple[str, ...]:
        """Names of the environment variables that hold its secrets."""
        return (self.user_env, self.password_env) if self.user_env else ()


class StoreSpec(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab", tag_field="kind", tag="store"
):
    """A store of records, which is sent the night's run as `benchctl export --to` does it.

    Attributes:
        to: its address.
        streams: Rally's data streams instead of an index a month.
        samples: every request, beside the figures of tasks.
        environment: what records call the host.
        ca: file of certificates to trust, PEM; relative to the suite file's folder.
        user_env, password_env: variables that hold user and password; both or neither.
        api_key_env: variable that holds an API key instead.
        when: on which occasions; every night unless it says otherwise.
    """

    to: str
    streams: bool = False
    samples: bool = False
    environment: str = "benchctl"
    ca: str = ""
    user_env: str = ""
    password_env: str = ""
    api_key_env: str = ""
    when: Annotated[tuple[Occasion, ...], msgspec.Meta(min_length=1)] = ("always",)

    def __post_init__(self) -> None:
        """Refuse what is no address, and secrets that everybody on the way could read."""
        try:
            hosts = read_hosts(self.to)
        except UsageError as err:
            raise ValueError(err.message) from err
        if bool(self.user_env) != bool(self.password_env) or (self.user_env and self.api_key_env):
            raise ValueError("a store wants `user-env` and `password-env`, or `api-key-env`, or none of them")
        for variable in self.variables:
            _check_variable(variable)
        if self.variables and not all(map(_is_private, hosts)):
            raise ValueError("credentials want https, or a host on loopback")

    @property
    def title(self) -> str:
        """What messages call it."""
        return f"store {self.to}"

    @property
    def variables(self) -> tuple[str, ...]:
        """Names of the environment variables that hold its secrets."""
        return tuple(name for name in (self.user_env, self.password_env, self.api_key_env) if name)


NotifierSpec = CommandSpec | WebhookSpec | SmtpSpec | StoreSpec


def destination(spec: NotifierSpec) -> str:
    """A digest of where messages go; how long and on which occasions does not count."""
    where: NotifierSpec
    if isinstance(spec, StoreSpec):
        where = StoreSpec(spec.to)
    else:
        where = msgspec.structs.replace(spec, when=USUAL, timeout_s=60)
    return hashlib.sha256(msgspec.json.encode(where, order="deterministic")).hexdigest()[:12]


def _is_host(name: str) -> bool:
    try:
        name.encode("idna")
    except UnicodeError:
        return False
    return bool(name) and name.isprintable() and not any(part in name for part in " /@")


def _is_private(url: str) -> bool:
    """Whether what is sent to an address is encrypted, or stays on this host."""
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


def _check_open_url(url: str) -> None:
    if not _is_postable(url):
        raise ValueError("`url` is not an http or https address")
    parts = urlsplit(url)
    if "@" in parts.netloc:
        raise ValueError(
            "`url` holds credentials: put the address into the environment, and name it in `url-env`"
        )
    if parts.query or parts.fragment:
        raise ValueError(
            "`url` has a query, which may hold a token: put the address into the environment, and name it in "
            "`url-env`"
        )


def _check_variable(name: str) -> None:
    if not _VARIABLE.fullmatch(name):
        # Somebody may have put the secret itself here.
        raise ValueError("what is named in `...-env` is not the name of an environment variable")


# Secrets stay secret: what programs and servers say is cleaned before it is kept or shown.


WITHHELD = "[its words are withheld: they may hold a secret]"

_HIDDEN = "[secret]"
_TELLING = re.compile(
    r"token|secret|passw|pwd|credential|api_?key|auth(?!or)|webhook|cookie|private", re.IGNORECASE
)
# A shorter one is in so many words that hiding it would both spoil the text and tell what it is.
_LEAST_CHARACTERS = 4
_PASSED_ON = ("PATH", "SSH_AUTH_SOCK", "XAUTHORITY")


class Redactor:
    """Hides secrets in texts.

    Secrets are in the variables that notifiers name, whatever they are called, and in those of the
    environment with a telling name, since a command that is started may print them.
    """

    def __init__(self, notifiers: Iterable[NotifierSpec], environ: Mapping[str, str]) -> None:
        notifiers = tuple(notifiers)
        named = {name for spec in notifiers for name in spec.variables}
        addresses = {spec.url_env for spec in notifiers if isinstance(spec, WebhookSpec)}
        found = [environ.get(name, "") for name in named]
        telling = [
            value for name, value in environ.items() if _TELLING.search(name) and name not in _PASSED_ON
        ]
        # Of what nobody declared, short values are too often no secrets: `AUTH=yes`.
        found += [value for value in telling if len(value) > _LEAST_CHARACTERS]
        parts = [part for value in found for part in _parts(value)]
        parts += [part for name in addresses for part in _address_parts(environ.get(name, ""))]
        forms = {form for part in parts for form in _forms(part) if form.strip()}
        self._withhold = any(0 < len(environ.get(name, "")) < _LEAST_CHARACTERS for name in named)
        self._forms = sorted(
            (form for form in forms if len(form) >= _LEAST_CHARACTERS), key=len, reverse=True
        )

    def clean(self, text: str) -> str:
        """The text without secrets; nothing at all if one is too short to be found reliably."""
        if self._withhold:
            return WITHHELD if text.strip() else ""
        for form in self._forms:
            text = text.replace(form, _HIDDEN)
        return text


def _parts(value: str) -> set[str]:
    """A secret and its secret parts: the words of `Bearer TOKEN`, the lines of a key."""
    return {value, *value.split()} - {"Basic", "Bearer", "ApiKey", "Token"}


def _address_parts(url: str) -> set[str]:
    """Each part of a secret address: messages of libraries quote them alone."""
    try:
        parts = urlsplit(url)
        userinfo = parts.netloc.rpartition("@")[0]
        found = {parts.netloc, parts.hostname or "", parts.path, parts.query, parts.fragment, userinfo}
    except ValueError:
        return {url}
    found |= {*userinfo.split(":", 1), *parts.path.split("/"), *re.split(r"[&=;]", parts.query)}
    return {part for part in found if len(part) >= _LEAST_CHARACTERS}


def _forms(secret: str) -> set[str]:
    """How a secret looks in the logs of HTTP, mail and Python."""
    raw = secret.encode("utf-8", "surrogateescape")
    encoded = base64.b64encode(raw).decode("ascii")
    return {
        secret,
        secret.strip(),
        unquote(secret),
        quote(raw),
        quote(raw, safe=""),
        quote_plus(raw),
        encoded,
        encoded.rstrip("="),
        base64.urlsafe_b64encode(raw).decode("ascii"),
        repr(secret)[1:-1],
        secret.encode("unicode_escape").decode("ascii"),
        *(_inside_base64(raw, before) for before in range(3)),
    }


def _inside_base64(raw: bytes, before: int) -> str:
    """The part of the encoding of `raw`, after `before` bytes modulo 3, that depends on it alone.

    That is how user and password are encoded together.
    """
    encoded = base64.b64encode(bytes(before) + raw).decode("ascii")
    return encoded[-(-8 * before // 6) : 8 * (before + len(raw)) // 6]


# A message on its way, and why it did not arrive.


class SendError(Exception):
    """A message did not arrive.

    Args:
        reason: why, in words that hold no secret.
        silent: nobody answered, or only to be left alone: further messages need not be tried now.
        final: trying again would not help, or would tell some people twice.
    """

    def __init__(self, reason: str, *, silent: bool = False, final: bool = False) -> None:
        super().__init__(reason)
        self.reason = reason
        self.silent = silent
        self.final = final


LETTER_VERSION: Final = 1


class Letter(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """A message on its way; no field holds a secret.

    Attributes:
        letter_version: of this format.
        key: id of the message, the same at every attempt: who gets it twice can tell by it.
        destination: digest of where it goes.
        title: what messages call that.
        night: id of its night.
        created: wall clock, ISO 8601 with offset.
        subject: one line.
        text: one screen.
        body: the whole message as JSON.
        attempts: how often it was tried.
        reason: why the last attempt failed; empty before the first.
    """

    letter_version: int
    key: str
    destination: str
    title: str
    night: str
    created: str
    subject: str
    text: str
    body: msgspec.Raw
    attempts: int = 0
    reason: str = ""


def write_letter(message: Message, *, destination: str, title: str, created: str) -> Letter:
    """Address a message to one notifier."""
    return Letter(
        letter_version=LETTER_VERSION,
        key=message.id,
        destination=destination,
        title=title,
        night=message.night,
        created=created,
        subject=message.subject,
        text=message.text,
        body=msgspec.Raw(msgspec.json.encode(message)),
    )


# Filling a store: the run is on disk, and the letter only says which.


def fill_store(
    spec: StoreSpec, letter: Letter, *, environ: Mapping[str, str], folder: Path, runs: Path
) -> None:
    """Send the night's run to a store; nothing where the night has none.

    `folder` is that of the suite's file, `runs` that of its runs.

    Raises:
        SendError: it did not arrive whole, or the run is gone.
    """
    night = msgspec.json.decode(letter.body, type=Message)
    if not night.run:
        return
    secrets = [_stripped_secret(environ, name) for name in spec.variables]
    try:
        auth = None if not secrets else Auth.api_key(*secrets) if spec.api_key_env else Auth.basic(*secrets)
        endpoint = Endpoint(read_hosts(spec.to), auth, folder / spec.ca if spec.ca else None)
        run = RunFolder(runs / night.run)
        if not run.record_path.exists():
            raise SendError(f"its run {night.run} is gone", final=True)
        layout = Layout(spec.streams, spec.environment)
        for _ in export([StoredRun(run, run.load())], endpoint, layout, samples=spec.samples):
            pass
    except StoreDownError as err:
        raise SendError(err.message, silent=True) from None
    except BenchctlError as err:
        raise SendError(err.message) from None


# Telling people by mail: handed to one server, which sees to the rest.


_SHOWN_CHARACTERS = 300
_PERMANENT = 500
_BETWEEN_CUTS_S = 0.2


def send_mail(spec: SmtpSpec, letter: Letter, *, environ: Mapping[str, str], redactor: Redactor) -> None:
    """Hand a letter to the mail server.

    Its key is in the header Message-ID, so that mail that comes twice is shown once. `environ` holds the
    secrets, and in `SSL_CERT_FILE` whom to trust instead of the system's authorities.

    Raises:
        SendError: the server did not take it, or not for everybody.
    """
    mail = compose(spec, letter)
    login = tuple(_secret(environ, name) for name in spec.variables)
    context = _trusting(environ)
    deadline = _Deadline()
    try:
        with deadline.within(spec.timeout_s), _connected(spec, context, deadline) as server:
            if login:
                server.login(*login)
            refused = server.send_message(mail, from_addr=spec.sender, to_addrs=list(spec.to))
    except (smtplib.SMTPException, OSError) as err:
        # Without their causes: those quote what was sent.
        if deadline.passed:
            raise SendError(f"it took longer than {spec.timeout_s} s", silent=True) from None
        if isinstance(err, smtplib.SMTPException):
            raise _refusal(err, redactor) from None
        raise _unreachable(err, spec) from None
    if refused:
        # The others have it, and would get it again with every further attempt.
        raise SendError(f"everybody else has it, but it takes no mail for {', '.join(refused)}", final=True)


def compose(spec: SmtpSpec, letter: Letter) -> EmailMessage:
    """The mail: one screen of plain text, marked so that no holiday notice answers it."""
    mail = EmailMessage()
    mail["From"] = spec.sender
    mail["To"] = ", ".join(spec.to)
    mail["Subject"] = "".join(part if part.isprintable() else " " for part in letter.subject)
    mail["Date"] = format_datetime(datetime.fromisoformat(letter.created))
    mail["Message-ID"] = f"<{letter.key}@{spec.sender.rpartition('@')[2]}>"
    mail["Auto-Submitted"] = "auto-generated"
    mail.set_content(letter.text)
    return mail


def _trusting(environ: Mapping[str, str]) -> ssl.SSLContext:
    own = environ.get("SSL_CERT_FILE")
    trust = system_trust()
    try:
        return ssl.create_default_context(cafile=own or trust.file, capath=None if own else trust.folder)
    except OSError:
        raise SendError("the certificates in SSL_CERT_FILE cannot be read") from None


class _Deadline:
    """Cuts a connection when its time is over.

    The timeout of smtplib applies to a single read: a server that sends a byte now and then would keep
    the night for ever, and with it the lock of the suite.
    """

    def __init__(self) -> None:
        self.passed = False
        self.connection: smtplib.SMTP | None = None
        self._done = threading.Event()

    @contextlib.contextmanager
    def within(self, seconds: float) -> Iterator[None]:
        """A limit on the block's duration."""
        watch = threading.Thread(target=self._watch, args=(seconds,), name="mail-deadline", daemon=True)
        watch.start()
        try:
            yield
        finally:
            self._done.set()
            watch.join()

    def _watch(self, seconds: float) -> None:
        wait_s = seconds
        # Again and again: there may be no socket yet, or another one since encryption began.
        while not self._done.wait(wait_s):
            self.passed = True
            wait_s = _BETWEEN_CUTS_S
            connected = None if self.connection is None else self.connection.sock
            if connected is not None:
                with contextlib.suppress(OSError):
                    # As a plain socket: that of TLS is being read by the other thread.
                    socket.socket.shutdown(connected, socket.SHUT_RDWR)


class _Plain(smtplib.SMTP):
    def __init__(self, spec: SmtpSpec, deadline: _Deadline) -> None:
        deadline.connection = self
        super().__init__(spec.host, spec.server_port, timeout=spec.timeout_s)


class _Encrypted(smtplib.SMTP_SSL):
    def __init__(self, spec: SmtpSpec, deadline: _Deadline, context: ssl.SSLContext) -> None:
        deadline.connection = self
        super().__init__(spec.host, spec.server_port, timeout=spec.timeout_s, context=context)


def _connected(spec: SmtpSpec, context: ssl.SSLContext, deadline: _Deadline) -> smtplib.SMTP:
    if spec.tls == "tls":
        return _Encrypted(spec, deadline, context)
    server = _Plain(spec, deadline)
    if spec.tls == "starttls":
        try:
            server.starttls(context=context)
        except BaseException:
            server.close()
            raise
    return server


def _secret(environ: Mapping[str, str], variable: str) -> str:
    value = environ.get(variable, "")
    if not value:
        raise SendError(f"the environment variable {variable} is not set")
    if not value.isascii():
        raise SendError(f"{variable} holds characters that smtplib cannot send")
    return value


def _refusal(err: smtplib.SMTPException, redactor: Redactor) -> SendError:
    """What the server answered, or would not do."""
    match err:
        case smtplib.SMTPRecipientsRefused():
            codes = ", ".join(sorted({str(code) for code, _ in err.recipients.values()}))
            return SendError(f"it takes no mail for {', '.join(err.recipients)}: {codes}")
        case smtplib.SMTPResponseException():
            said = err.smtp_error
            text = said.decode("utf-8", "replace") if isinstance(said, bytes) else str(said)
            return SendError(
                f"it refuses: {err.smtp_code} {_shortened(text, redactor)}",
                silent=int(err.smtp_code) < _PERMANENT,
            )
        case smtplib.SMTPServerDisconnected():
            return SendError("it closed the connection", silent=True)
        case _:
            return SendError(f"it cannot do that: {_shortened(str(err), redactor)}")


def _unreachable(err: OSError, spec: SmtpSpec) -> SendError:
    """Why the server could not be reached."""
    match err:
        case ssl.SSLCertVerificationError():
            reason = f"its certificate is not trusted: {err.verify_message} (SSL_CERT_FILE names others)"
        case ssl.SSLError():
            reason = "it does not speak TLS as we do"
        case TimeoutError():
            reason = f"no answer within {spec.timeout_s} s"
        case _:
            reason = f"no connection: {err.strerror or 'it was refused'}"
    return SendError(reason, silent=True)


def _shortened(text: str, redactor: Redactor) -> str:
    return " ".join(redactor.clean(text).split())[:_SHOWN_CHARACTERS]


# Telling an address on the web: one POST, nothing followed, certificates checked.


_ANSWER_BYTES = 64 * 1024
_OK, _REDIRECTS, _REFUSALS, _FAILURES = 200, 300, 400, 500
_TOO_MANY_REQUESTS = 429

# libcurl's own texts quote names and addresses, which may be secret.
_REASONS = {
    Trouble.UNRESOLVED: "its name cannot be resolved",
    Trouble.REFUSED: "no connection",
    Trouble.UNTRUSTED: "its certificate is not trusted (REQUESTS_CA_BUNDLE names others)",
    Trouble.OTHER_NAME: "its certificate is for another name",
    Trouble.UNREADABLE_TRUST: "the certificates in REQUESTS_CA_BUNDLE cannot be read",
    Trouble.NO_TLS: "it does not speak TLS as we do",
    Trouble.NO_HTTP: "it does not speak HTTP",
    Trouble.BROKEN: "the connection broke",
}


def post(spec: WebhookSpec, letter: Letter, *, environ: Mapping[str, str], redactor: Redactor) -> None:
    """Post a letter, with its key in the header `Idempotency-Key`.

    `environ` holds the secrets, and in `REQUESTS_CA_BUNDLE` whom to trust instead of the system's
    authorities.

    Raises:
        SendError: there was no answer in time, or another one than 2xx.
    """
    url = spec.url or _stripped_secret(environ, spec.url_env)
    if not _is_postable(url):
        raise SendError(f"{spec.url_env} holds no http or https address")
    if not _is_private(url) and (spec.headers_env or "@" in urlsplit(url).netloc):
        raise SendError(f"the address in {spec.url_env} is http: its secrets want https")
    headers = {"Content-Type": "application/json; charset=utf-8", "Idempotency-Key": letter.key}
    for name, variable in spec.headers_env.items():
        headers[name] = _header_value(environ, variable)
    body = bytes(letter.body)
    if spec.template == "slack":
        body = msgspec.json.encode({"text": f"{letter.subject}\n```\n{letter.text}\n```"})
    status, answer = _exchange(spec, url, headers, body, environ)
    if not _OK <= status < _REDIRECTS:
        said = " ".join(redactor.clean(answer.decode("utf-8", "replace")).split())[:_SHOWN_CHARACTERS]
        what = "wants to be asked elsewhere, which is not followed" if status < _REFUSALS else "refuses"
        raise SendError(
            f"it {what}: HTTP {status}" + (f", {said}" if said else ""),
            silent=status >= _FAILURES or status == _TOO_MANY_REQUESTS,
        )


def _exchange(
    spec: WebhookSpec, url: str, headers: Mapping[str, str], body: bytes, environ: Mapping[str, str]
) -> tuple[int, bytes]:
    lines = [f"{name}: {value}" for name, value in {"User-Agent": "benchctl", **headers}.items()]
    with Courier(ca=environ.get("REQUESTS_CA_BUNDLE") or None, outside=True) as courier:
        try:
            answer = courier.ask(
                "POST", url, headers=lines, body=body, deadline_s=spec.timeout_s, most_bytes=_ANSWER_BYTES
            )
        except Unanswered as err:
            if err.trouble is Trouble.TOO_LARGE and err.partial is not None:
                return err.partial.status, err.partial.body
            if err.trouble is Trouble.TIMEOUT:
                raise SendError(f"no answer within {spec.timeout_s} s", silent=True) from None
            # Without its cause: that quotes the address.
            reason = _REASONS.get(err.trouble, "it cannot be asked at this address")
            raise SendError(reason, silent=True) from None
    return answer.status, answer.body


def _header_value(environ: Mapping[str, str], variable: str) -> str:
    value = _stripped_secret(environ, variable)
    if not value.isascii() or not value.isprintable():
        raise SendError(f"{variable} holds characters that no header can carry")
    return value


def _stripped_secret(environ: Mapping[str, str], variable: str) -> str:
    value = environ.get(variable, "").strip()
    if not value:
        raise SendError(f"the environment variable {variable} is not set")
    return value
