"""Why a cluster cannot be used, in words that say what to do: refused, unnamed, untrusted, unauthorised."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from benchctl.endpoint import Endpoint, variable
from benchctl.engine.wires import NodeRequestError
from benchctl.errors import BenchctlError

_UNAUTHORISED = 401
_FORBIDDEN = 403
_REDIRECTED = range(300, 400)
_GATEWAY = (502, 503, 504)
_PRIVILEGES = (
    "it takes the cluster privilege 'monitor', and 'read', 'monitor' and 'view_index_metadata' on the index"
)


class _Trouble(NamedTuple):
    """One way in which a connection fails.

    Attributes:
        words: by which the client libraries tell it.
        text: what happened.
        hint: what to do; `{ca}` is how certificates are given, `{rest}` the address without the scheme.
        scheme: the only one that it is about; empty for both.
    """

    words: re.Pattern[str]
    text: str
    hint: str
    scheme: str = ""


def _words(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)


_NO_ENGINE = "see whether address and port are those of Elasticsearch or OpenSearch"

# The particular before the general.
_TROUBLES = (
    _Trouble(_words(r"deserialize"), "answers with something else than JSON", _NO_ENGINE),
    _Trouble(
        _words(r"hostname mismatch|ip address mismatch|doesn't match|not valid for"),
        "has a certificate for another name",
        "use the name that the certificate was made for",
        "https",
    ),
    _Trouble(
        _words(r"certificate.verify.failed|self.signed|unable to get.*issuer"),
        "has a certificate that is not trusted",
        "name the authority that signed it with {ca} (PEM)",
        "https",
    ),
    _Trouble(
        _words(r"wrong.version.number|record.layer|unknown.protocol|http.request"),
        "does not speak TLS",
        "if it speaks plain HTTP, write http:{rest}",
        "https",
    ),
    _Trouble(
        _words(r"resolve|name or service not known|getaddrinfo|nodename"),
        "has a name that cannot be resolved",
        "see whether the host's name is right",
    ),
    _Trouble(
        _words(r"timed? ?out"), "does not answer in time", "see whether it is up, or a firewall in between"
    ),
    _Trouble(
        _words(r"refused"), "refuses the connection", "see whether it is up, and whether the port is right"
    ),
    _Trouble(
        _words(r"bad ?status"),
        "does not speak HTTP",
        f"{_NO_ENGINE}; if it speaks TLS, write https:{{rest}}",
        "http",
    ),
    _Trouble(
        _words(r"aborted|disconnected|reset|without response"),
        "breaks the connection",
        "if it speaks TLS, write https:{rest}",
        "http",
    ),
)


@contextmanager
def explained(name: str, endpoint: Endpoint) -> Iterator[None]:
    """Turn what a cluster, or the way to it, refuses within the block into one clear error.

    Args:
        name: what the user calls the cluster.
        endpoint: where it is.

    Raises:
        BenchctlError: instead of NodeRequestError, or with the cluster's name in front.
    """
    try:
        yield
    except NodeRequestError as err:
        raise _explanation(err, name, endpoint) from err
    except BenchctlError as err:
        if err.message.startswith(f"{name}"):
            raise
        raise BenchctlError(
            f"{name} at {endpoint.title}: {err.message}", hint=err.hint, exit_code=err.exit_code
        ) from err


def _explanation(err: NodeRequestError, name: str, endpoint: Endpoint) -> BenchctlError:
    where = f"{name} at {endpoint.hosts[0]}"
    if err.status == _UNAUTHORISED:
        has = f"does not accept the {endpoint.auth.scheme}" if endpoint.auth else "asks for credentials"
        return BenchctlError(f"{where} {has} (HTTP 401)", hint=_credentials_hint(name, endpoint))
    if err.status == _FORBIDDEN:
        return BenchctlError(
            f"{where} does not allow this user what benchctl asks (HTTP 403): {err.reason}",
            hint=f"{_PRIVILEGES}; {_credentials_hint(name, endpoint)}",
        )
    if err.status in _REDIRECTED:
        return BenchctlError(
            f"{where} redirects elsewhere (HTTP {err.status})", hint="name the address that it redirects to"
        )
    if err.status and err.reason.lstrip().startswith("<"):
        return BenchctlError(
            f"{where} answers with a web page (HTTP {err.status}), as neither engine does",
            hint="see whether the cluster behind that proxy is up" if err.status in _GATEWAY else _NO_ENGINE,
        )
    if err.status:
        return BenchctlError(f"{where}: {err.message}", hint=err.hint)
    text, hint = _connection_trouble(err.reason, name, endpoint)
    return BenchctlError(f"{where} {text}", hint=hint)


def _credentials_hint(name: str, endpoint: Endpoint) -> str:
    """Where credentials of a target come from."""
    user, password, api_key, bearer = (
        variable(name, what) for what in ("user", "password", "api-key", "bearer")
    )
    option = endpoint.options.auth.format(name=name)
    return f"set {user} and {password}, {api_key}, or {bearer}; or give {option}"


def _connection_trouble(reason: str, name: str, endpoint: Endpoint) -> tuple[str, str]:
    """What happened, and what to do about it, from the client library's words."""
    scheme, _, rest = endpoint.hosts[0].partition(":")
    for trouble in _TROUBLES:
        if trouble.scheme in {"", scheme} and trouble.words.search(reason):
            return trouble.text, trouble.hint.format(ca=endpoint.options.ca.format(name=name), rest=rest)
    return (
        f"cannot be reached: {_brief(reason)}",
        "see whether it is up, and whether address and certificates are right",
    )


def _brief(reason: str) -> str:
    """A library's words without the representations of its own objects."""
    return re.sub(r"<[^<>]* object at 0x[0-9a-f]+>:? ?", "", reason)[:300]
