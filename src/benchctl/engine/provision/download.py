"""Downloads of archives over HTTP, and their checksums."""

import hashlib
from pathlib import Path
from typing import Literal
from urllib.parse import SplitResult

import requests

from benchctl.disk import FreeBytes, require_space
from benchctl.errors import BenchctlError
from benchctl.network import TIMEOUT_S, Progress, shown

Checksum = Literal["sha512", "sha1", "none"]
"""What a file was compared with that its source publishes; `none` when it publishes nothing."""

DAMAGED = "the download or the source is damaged: try again, or use another source"
_CHUNK_BYTES = 1024 * 1024
_SHA512_HEX_DIGITS = 128


def download(parts: SplitResult, target: Path, progress: Progress, free: FreeBytes) -> Path:
    """Download a URL into a file.

    Args:
        parts: the URL.
        target: the file to write.
        progress: told after each piece.
        free: how much can be written to a folder, bytes.

    Returns:
        The file.

    Raises:
        BenchctlError: the server refuses, or there is too little space.
        requests.RequestException: the network failed; `network_errors` says it in words.
    """
    headers = {"Accept-Encoding": "identity"}  # a transfer encoding would hide the archive's own bytes
    with requests.get(parts.geturl(), headers=headers, stream=True, timeout=TIMEOUT_S) as response:
        if response.status_code != requests.codes.ok:
            raise BenchctlError(
                f"cannot download {shown(parts)}: HTTP {response.status_code}", hint="check the URL"
            )
        total = int(response.headers.get("Content-Length", 0))
        require_space(target.parent, total, f"download {target.name}", available=free(target.parent))
        done = 0
        with target.open("wb") as sink:
            for chunk in response.iter_content(_CHUNK_BYTES):
                sink.write(chunk)
                done += len(chunk)
                progress(target.name, done, total)
    return target


def head(url: str) -> int:
    """The HTTP status of a URL, redirects followed, without its content."""
    return requests.head(url, timeout=TIMEOUT_S, allow_redirects=True).status_code


def published_sha512(parts: SplitResult) -> str:
    """The checksum beside a URL; empty when none is served there."""
    beside = parts._replace(path=f"{parts.path}.sha512").geturl()
    response = requests.get(beside, timeout=TIMEOUT_S)
    first = response.text.split(maxsplit=1)[:1] if response.status_code == requests.codes.ok else []
    return first[0] if first and len(first[0]) == _SHA512_HEX_DIGITS else ""


def digest(path: Path, kind: str) -> str:
    """The hexadecimal digest of a file's bytes; `kind` is a name that hashlib knows."""
    with path.open("rb") as raw:
        return hashlib.file_digest(raw, kind).hexdigest()


def compare(fetched: Path, kind: Checksum, published: str, what: str) -> None:
    """Compare a file with its published checksum.

    Args:
        fetched: the file.
        kind: which checksum.
        published: the text that was published; its first word counts.
        what: the file's name for the message.

    Raises:
        BenchctlError: they differ.
    """
    expected = (published.split(maxsplit=1) or [""])[0].lower()
    actual = digest(fetched, kind)
    if actual != expected:
        raise BenchctlError(
            f"{what} does not match its {kind}: {actual}, published is '{expected}'",
            hint=DAMAGED,
        )
