"""What the network does to a download, in words."""

import contextlib
from collections.abc import Callable, Iterator
from urllib.parse import SplitResult

import requests

from benchctl.errors import BenchctlError

Progress = Callable[[str, int, int], None]
"""Told (what, bytes done, bytes in total) while something long goes on; the total is 0 when unknown."""

TIMEOUT_S = 30


@contextlib.contextmanager
def network_errors(doing: str, *, hint: str) -> Iterator[None]:
    """Turn what the network does inside the block into a BenchctlError.

    Args:
        doing: what is being done, for "cannot ...".
        hint: what to do about it.
    """
    try:
        yield
    except requests.RequestException as err:
        if isinstance(err, requests.Timeout) or "timed out" in str(err):
            reason = f"no answer within {TIMEOUT_S} s"
        elif isinstance(err, requests.exceptions.ChunkedEncodingError):
            reason = "the connection ended before everything had come"
        elif isinstance(err, requests.exceptions.SSLError):
            reason = "the certificate of its host is not trusted"
            hint = "name the certificates to trust, such as those of a proxy, in REQUESTS_CA_BUNDLE"
        elif isinstance(err, requests.ConnectionError):
            reason = "no connection"
        else:
            reason = str(err)
        raise BenchctlError(f"cannot {doing}: {reason}", hint=hint) from err


def shown(parts: SplitResult) -> str:
    """A URL for messages: without credentials and query."""
    return parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment="").geturl()
