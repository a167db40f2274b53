"""What is published beside an archive about its bytes, and whether they are those."""

import hashlib
from pathlib import Path
from typing import Literal
from urllib.parse import SplitResult

from benchctl.errors import BenchctlError
from benchctl.network import TIMEOUT_S, outside

Checksum = Literal["sha512", "sha1", "none"]
"""What a file was compared with that its source publishes; `none` when it publishes nothing."""

DAMAGED = "the download or the source is damaged: try again, or use another source"
_SHA512_HEX_DIGITS = 128
_MOST_BYTES = 1 << 16
_OK = 200


def published_sha512(parts: SplitResult) -> str:
    """The checksum beside a URL; empty when none is served there."""
    beside = parts._replace(path=f"{parts.path}.sha512").geturl()
    with outside() as courier:
        answer = courier.ask("GET", beside, deadline_s=TIMEOUT_S, most_bytes=_MOST_BYTES)
    text = answer.body.decode(errors="replace") if answer.status == _OK else ""
    first = text.split(maxsplit=1)[:1]
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
