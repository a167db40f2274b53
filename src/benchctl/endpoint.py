"""Endpoints of clusters: hosts, credentials, certificates."""

import base64
import hashlib
import hmac
import ipaddress
import re
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple, Self
from urllib.parse import parse_qsl, quote, urlsplit

import certifi
import truststore

from benchctl.errors import UsageError

_DEFAULT_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True)
class Signing:
    """An access key of AWS, for signatures of version 4.

    https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html
    """

    region: str
    service: str  # as AWS calls it: `es` for domains, `aoss` for serverless collections
    key_id: str = field(repr=False)
    secret: str = field(repr=False)

    def headers(self, method: str, url: str, sent: Mapping[str, str], body: bytes) -> dict[str, str]:
        """Return the headers that sign a request at this moment.

        `url` is absolute and encoded as it is sent; of the other headers `sent`, those of AWS are signed.
        """
        parts = urlsplit(url)
        stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
        added = {
            "host": parts.netloc.removesuffix(f":{_DEFAULT_PORTS[parts.scheme]}"),
            # Serverless collections refuse requests without it.
            "x-amz-content-sha256": hashlib.sha256(body).hexdigest(),
            "x-amz-date": stamp,
        }
        amz = {name.lower(): value for name, value in sent.items() if name.lower().startswith("x-amz-")}
        signed = dict(sorted((amz | added).items()))
        names = ";".join(signed)
        query = sorted(
            f"{quote(name, '-_.~')}={quote(value, '-_.~')}"
            for name, value in parse_qsl(parts.query, keep_blank_values=True)
        )
        request = [method, quote(parts.path or "/", "/-_.~"), "&".join(query)]
        request += [*(f"{name}:{value}" for name, value in signed.items()), "", names]
        canonical = "\n".join((*request, added["x-amz-content-sha256"]))
        scope = (stamp[:8], self.region, self.service, "aws4_request")
        text = "\n".join(
            ("AWS4-HMAC-SHA256", stamp, "/".join(scope), hashlib.sha256(canonical.encode()).hexdigest())
        )
        key = f"AWS4{self.secret}".encode()
        for part in (*scope, text):
            key = hmac.digest(key, part.encode(), "sha256")
        credential = f"Credential={self.key_id}/{'/'.join(scope)}"
        signature = f"AWS4-HMAC-SHA256 {credential}, SignedHeaders={names}, Signature={key.hex()}"
        return added | {"authorization": signature}


@dataclass(frozen=True)
class Auth:
    """Credentials; their text is in no representation, message or record."""

    scheme: str  # how they are sent, such as `basic`; this much may be told
    header: str = field(repr=False)  # the whole header line; empty where requests are only signed
    signing: Signing | None = None  # what requests are signed with; None where a header is enough

    @classmethod
    def basic(cls, user: str, password: str) -> Self:
        """Return a user and a password.

        Raises:
            UsageError: If the user's name holds a colon, which HTTP takes for its end.
        """
        if ":" in user:
            raise UsageError("a user's name cannot hold a colon")
        return cls("basic", f"Authorization: Basic {_encoded(f'{user}:{password}')}")

    @classmethod
    def api_key(cls, key: str) -> Self:
        """Return an API key: encoded, as engines hand it out, or as `ID:KEY`.

        Raises:
            UsageError: If it cannot be sent in a header.
        """
        encoded = _encoded(key) if ":" in key else _one_word(key, "an API key")
        return cls("api key", f"Authorization: ApiKey {encoded}")

    @classmethod
    def bearer(cls, token: str) -> Self:
        """Return a bearer token.

        Raises:
            UsageError: If it cannot be sent in a header.
        """
        return cls("bearer token", f"Authorization: Bearer {_one_word(token, 'a bearer token')}")

    @classmethod
    def aws(cls, key_id: str, secret: str, region: str, service: str = "es", session_token: str = "") -> Self:
        """Return an access key of AWS, with the token of its session if it is a temporary one.

        Raises:
            UsageError: If it cannot be sent in a header, or AWS has no such region or service.
        """
        for what, name in (("region", region), ("service", service)):
            if not re.fullmatch(r"[a-z0-9-]+", name):
                raise UsageError(
                    f"the {what} of AWS is small letters, digits and dashes, as in eu-central-1 or es"
                )
        token = _one_word(session_token, "a session token") if session_token else ""
        key_id, secret = _one_word(key_id, "an access key"), _one_word(secret, "a secret key")
        header = f"x-amz-security-token: {token}" if token else ""
        return cls(f"AWS access key ({service}, {region})", header, Signing(region, service, key_id, secret))


@dataclass(frozen=True)
class Endpoint:
    """A cluster as clients see it."""

    # Scheme, host, port and path of every address, such as `https://search-1:9200` or `https://gate:443/team-a`.
    hosts: tuple[str, ...]
    auth: Auth | None = None
    ca: Path | None = None
    verify: bool = True
    proxy: str | None = None  # URL of the proxy on the way to it; benchctl's own nodes never have one

    @classmethod
    def of(cls, hosts: "str | Endpoint") -> "Endpoint":
        """Return an endpoint for comma-separated addresses; an endpoint stays as it is.

        Raises:
            UsageError: If an address is invalid; see `read_hosts`.
        """
        return hosts if isinstance(hosts, Endpoint) else cls(read_hosts(hosts))

    @property
    def headers(self) -> tuple[str, ...]:
        """Header lines of every request; secret."""
        return () if self.auth is None or not self.auth.header else (self.auth.header,)

    @property
    def signing(self) -> Signing | None:
        """The key that signs requests; None if they are not signed."""
        return None if self.auth is None else self.auth.signing

    @property
    def is_local(self) -> bool:
        """True if all hosts are on this host's loopback."""
        return all(is_loopback(urlsplit(host).hostname or "") for host in self.hosts)

    @property
    def is_encrypted(self) -> bool:
        """True if all hosts speak TLS."""
        return all(host.startswith("https:") for host in self.hosts)

    @property
    def title(self) -> str:
        """Name in messages."""
        return ", ".join(self.hosts)


class TrustStore(NamedTuple):
    """Certificates of trusted authorities; None where there is no such file or directory."""

    file: str | None  # a bundle, PEM
    folder: str | None  # certificates under their hashes


def system_trust() -> TrustStore:
    """Return this system's certificates; the bundle of certifi where it has none.

    For libcurl, which must be told: its library was built on systems that keep them elsewhere.
    """
    paths = ssl.get_default_verify_paths()
    if paths.cafile or paths.capath:
        return TrustStore(paths.cafile, paths.capath)
    return TrustStore(certifi.where(), None)


def tls_context(ca: Path | str | None = None, *, verify: bool = True) -> ssl.SSLContext:
    """Return a client's TLS settings.

    Args:
        ca: a bundle or a folder of certificates to trust instead of the system's.
        verify: whether certificates are checked.

    Raises:
        OSError: If `ca` holds no certificates.
    """
    if not verify:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    elif ca is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        is_folder = Path(ca).is_dir()
        context.load_verify_locations(None if is_folder else ca, ca if is_folder else None)
    else:
        context = truststore.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        if system_trust().file == certifi.where():
            context.load_verify_locations(certifi.where())
    return context


def read_hosts(text: str) -> tuple[str, ...]:
    """Return addresses of one cluster, as `https://one:9200,https://two:9200`.

    Raises:
        UsageError: If an address is not http or https, is a duplicate, or holds credentials.
    """
    hosts = tuple(_read_host(part.strip()) for part in text.split(","))
    if len(set(hosts)) < len(hosts):
        raise UsageError("duplicate address", hint="give every host once")
    return hosts


def _read_host(text: str) -> str:
    if "@" in text:
        # First of all, and the text itself stays out of the message: it holds the password.
        raise UsageError(
            "an address holds credentials, which other users see in the list of processes",
            hint="put them into the environment, or into a file: see --targets",
        )
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError as err:
        raise UsageError(f"the address '{text}' cannot be read: {err}") from err
    if parts.scheme not in _DEFAULT_PORTS or not parts.hostname:
        raise UsageError(
            f"'{text}' is not the address of a host", hint="write it as https://HOST:9200 or http://HOST:9200"
        )
    if parts.query or parts.fragment:
        raise UsageError(f"'{text}' is more than an address", hint="remove what follows its path")
    name = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    path = quote(parts.path.rstrip("/"), safe="/%:;=+,!$&'()*~-._")
    return f"{parts.scheme}://{name}:{_DEFAULT_PORTS[parts.scheme] if port is None else port}{path}"


def read_proxy(text: str) -> str:
    """Return the URL of a proxy.

    Raises:
        UsageError: If it is not an http or https address, or holds credentials.
    """
    if "@" in text:
        raise UsageError("the proxy's URL holds credentials, which other users see in the list of processes")
    try:
        parts = urlsplit(text)
        valid = parts.scheme in _DEFAULT_PORTS and bool(parts.hostname) and parts.port != 0
    except ValueError:
        valid = False
    if not valid or parts.path not in {"", "/"} or parts.query or parts.fragment:
        raise UsageError(f"invalid proxy '{text}'", hint="write it as http://HOST:3128")
    return text.rstrip("/")


def is_loopback(host: str) -> bool:
    """Return whether a host's name or address is this host's own."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode("ascii")


def _one_word(secret: str, what: str) -> str:
    """Give a secret back when it fits into a header line."""
    if not secret or not secret.isascii() or not secret.isprintable() or " " in secret:
        raise UsageError(f"{what} is empty or holds characters that cannot be sent")
    return secret


def variable(name: str, what: str) -> str:
    """Return the environment variable that holds a secret of a target.

    Args:
        name: of the target, such as `es-prod`.
        what: `user`, `password`, `api-key`, `bearer`, or what AWS asks for, such as `access-key`.
    """
    return "BENCHCTL_" + re.sub(r"[^A-Z0-9]", "_", f"{name}_{what}".upper())
