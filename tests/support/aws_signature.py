"""AWS's Signature Version 4 by the rules that AWS publishes, from the side of the service."""

import hashlib
import hmac
from collections.abc import Mapping
from urllib.parse import parse_qsl, quote, unquote


def signature(
    method: str, target: str, headers: Mapping[str, str], body: bytes, secret: str, *, twice: bool = True
) -> str:
    """What the signature of a request has to be, hexadecimal; `headers` have lower-case names.

    `twice`: whether the path is percent-encoded once more than it came, as by all services but S3.
    """
    fields = _fields(headers)
    scope = fields["Credential"].split("/", 1)[1]
    path, _, query = target.partition("?")
    pairs = sorted(
        (quote(name, "-_.~"), quote(value, "-_.~"))
        for name, value in parse_qsl(query, keep_blank_values=True)
    )
    names = fields["SignedHeaders"].split(";")
    canonical = "\n".join(
        [
            method,
            quote(path if twice else unquote(path), "/-_.~"),
            "&".join(f"{name}={value}" for name, value in pairs),
            *(f"{name}:{' '.join(headers[name].split())}" for name in names),
            "",
            ";".join(names),
            headers.get("x-amz-content-sha256", hashlib.sha256(body).hexdigest()),
        ]
    )
    text = "\n".join(
        [
            "AWS4-HMAC-SHA256",
            headers["x-amz-date"],
            scope,
            hashlib.sha256(canonical.encode()).hexdigest(),
        ]
    )
    key = f"AWS4{secret}".encode()
    for part in (*scope.split("/"), text):
        key = hmac.digest(key, part.encode(), "sha256")
    return key.hex()


def refusal(method: str, target: str, headers: Mapping[str, str], body: bytes, secret: str) -> str:
    """Why AWS would refuse a request; empty if it would not."""
    if not headers.get("authorization", "").startswith("AWS4-HMAC-SHA256 "):
        return "not signed"
    signed = _fields(headers)["SignedHeaders"].split(";")
    unsigned = [name for name in headers if name.startswith("x-amz-") and name not in signed]
    if "host" not in signed or unsigned:
        return f"headers are not signed: {unsigned}"
    said = headers.get("x-amz-content-sha256")
    if said != hashlib.sha256(body).hexdigest():
        return "the body is another one"
    expected = signature(method, target, headers, body, secret)
    return "" if hmac.compare_digest(expected, _fields(headers)["Signature"]) else "the signature is wrong"


def _fields(headers: Mapping[str, str]) -> dict[str, str]:
    parts = headers["authorization"].partition(" ")[2].split(",")
    return dict(part.strip().split("=", 1) for part in parts)
