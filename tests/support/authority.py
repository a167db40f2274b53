"""A certificate authority for tests: made once a process, trusted by nobody who is not told."""

import ssl
from functools import cache
from pathlib import Path

import trustme


@cache
def authority() -> trustme.CA:
    """The authority."""
    return trustme.CA()


def server_context(*names: str) -> ssl.SSLContext:
    """What a server of these names shows."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority().issue_cert(*(names or ("127.0.0.1", "localhost"))).configure_cert(context)
    return context


def certificate_file(folder: Path) -> Path:
    """The authority's own certificate, for clients."""
    path = folder / "authority.pem"
    authority().cert_pem.write_to_path(path)
    return path
