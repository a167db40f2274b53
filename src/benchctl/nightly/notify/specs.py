"""Whom a suite tells: commands, webhooks and mail, as its file names them; secrets only by variable."""

import hashlib
import re
from typing import Annotated, Literal
from urllib.parse import urlsplit

import msgspec

from benchctl.endpoint import is_loopback

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
            if self.headers_env and not is_private(self.url):
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
        """Refuse what is no address, and passwords that everybody on the way could read."""
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


NotifierSpec = CommandSpec | WebhookSpec | SmtpSpec


def destination(spec: NotifierSpec) -> str:
    """A digest of where messages go; how long and on which occasions does not count."""
    where = msgspec.structs.replace(spec, when=USUAL, timeout_s=60)
    return hashlib.sha256(msgspec.json.encode(where, order="deterministic")).hexdigest()[:12]


def _is_host(name: str) -> bool:
    try:
        name.encode("idna")
    except UnicodeError:
        return False
    return bool(name) and name.isprintable() and not any(part in name for part in " /@")


def is_private(url: str) -> bool:
    """Whether nobody on the way can read what is sent to an address."""
    parts = urlsplit(url)
    return parts.scheme == "https" or is_loopback(parts.hostname or "")


def is_postable(url: str) -> bool:
    """Whether an address can be posted to at all."""
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        return False
    readable = url.isascii() and url.isprintable() and " " not in url
    return readable and parts.scheme in {"http", "https"} and bool(parts.hostname)


def _check_open_url(url: str) -> None:
    if not is_postable(url):
        raise ValueError("`url` is no http or https address")
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
