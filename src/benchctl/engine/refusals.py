"""Why a cluster cannot be used, in words that say what to do: refused, unnamed, untrusted, unauthorised."""

from collections.abc import Iterator
from contextlib import contextmanager

from benchctl.endpoint import Endpoint, variable
from benchctl.engine.wires import NodeRequestError
from benchctl.errors import BenchctlError
from benchctl.network import Trouble

_UNAUTHORISED = 401
_FORBIDDEN = 403
_REDIRECTED = range(300, 400)
_GATEWAY = (502, 503, 504)
_PRIVILEGES = (
    "it takes the cluster privilege 'monitor', and 'read', 'monitor' and 'view_index_metadata' on the index"
)


_NO_ENGINE = "see whether address and port are those of Elasticsearch or OpenSearch"

_TROUBLES = {
    Trouble.OTHER_NAME: (
        "has a certificate for another name",
        "use the name that the certificate was made for",
    ),
    Trouble.UNTRUSTED: (
        "has a certificate that is not trusted",
        "name the authority that signed it with {ca} (PEM)",
    ),
    Trouble.UNREADABLE_TRUST: (
        "has a certificate that cannot be checked",
        "see whether {ca} names certificates in PEM",
    ),
    Trouble.NO_TLS: ("does not speak TLS", "if it speaks plain HTTP, write http:{rest}"),
    Trouble.NO_HTTP: ("does not speak HTTP", f"{_NO_ENGINE}; if it speaks TLS, write https:{{rest}}"),
    Trouble.NO_JSON: ("answers with something else than JSON", _NO_ENGINE),
    Trouble.UNRESOLVED: ("has a name that cannot be resolved", "see whether the host's name is right"),
    Trouble.REFUSED: ("refuses the connection", "see whether it is up, and whether the port is right"),
    Trouble.TIMEOUT: ("does not answer in time", "see whether it is up, or a firewall in between"),
    Trouble.BROKEN: ("breaks the connection", "see its log; if it speaks TLS, write https:{rest}"),
    Trouble.TOO_LARGE: (
        "gives an answer that no search engine would",
        "see whether the address is right; benchctl reads no more of what it does not measure",
    ),
}
"""What happened and what to do; `{ca}` is how certificates are given, `{rest}` the address without scheme."""

# What the way there says beside: the others' words are those of a library, and add nothing.
_SAYING = (None, Trouble.OTHER, Trouble.TIMEOUT, Trouble.TOO_LARGE)
_UNKNOWN = ("cannot be reached", "see whether it is up, and whether address and certificates are right")


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
    text, hint = _UNKNOWN if err.trouble is None else _TROUBLES.get(err.trouble, _UNKNOWN)
    scheme, _, rest = endpoint.hosts[0].partition(":")
    if scheme == "https":
        hint = hint.replace("; if it speaks TLS, write https:{rest}", "")
    said = f": {err.request}: {err.reason}" if err.trouble in _SAYING else ""
    return BenchctlError(
        f"{where} {text}{said}",
        hint=hint.format(ca=endpoint.options.ca.format(name=name), rest=rest),
    )


def _credentials_hint(name: str, endpoint: Endpoint) -> str:
    """Where credentials of a target come from."""
    user, password, api_key, bearer = (
        variable(name, what) for what in ("user", "password", "api-key", "bearer")
    )
    option = endpoint.options.auth.format(name=name)
    return f"set {user} and {password}, {api_key}, or {bearer}; or give {option}"
