"""Secrets stay secret: what programs and servers say is cleaned before it is kept or shown."""

import base64
import re
from collections.abc import Iterable, Mapping
from urllib.parse import quote, quote_plus, unquote, urlsplit

from benchctl.nightly.notify.specs import NotifierSpec, WebhookSpec

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

    Args:
        notifiers: the variables that they name hold secrets, whatever they are called.
        environ: the environment; what is named like a secret there is taken for one, since a command that
            is started may print it.
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
        """The text without any secret; none of it at all where one is too short to be found for sure."""
        if self._withhold:
            return WITHHELD if text.strip() else ""
        for form in self._forms:
            text = text.replace(form, _HIDDEN)
        return text


def _parts(value: str) -> set[str]:
    """A secret, and what of it is secret by itself: the words of `Bearer TOKEN`, the lines of a key."""
    return {value, *value.split()} - {"Basic", "Bearer", "ApiKey", "Token"}


def _address_parts(url: str) -> set[str]:
    """Of an address that is a secret, each part: messages of libraries quote them alone."""
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
    """What of a text encoded together with others, as user and password are, depends on it alone.

    Args:
        raw: the text.
        before: bytes before it, modulo 3.
    """
    encoded = base64.b64encode(bytes(before) + raw).decode("ascii")
    return encoded[-(-8 * before // 6) : 8 * (before + len(raw)) // 6]
