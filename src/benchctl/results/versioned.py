"""JSON files with a version: another one is refused, not misread."""

from pathlib import Path
from typing import TypeVar

import msgspec

from benchctl.disk import disk_errors, read_file, replacing
from benchctl.errors import BenchctlError

T = TypeVar("T")


def read_versioned(path: Path, kind: type[T], what: str, version: int) -> T | None:
    """Read a file of the only supported version; None when there is none.

    `what` is `record` for a version at `record-version`; also in messages.

    Raises:
        BenchctlError: it cannot be read, is damaged, or of another version.
    """
    try:
        raw = read_file(path)
    except FileNotFoundError:
        return None
    except OSError as err:
        raise BenchctlError(f"cannot read {path}: {err.strerror}") from err
    try:
        found = _version(raw, what)
        if found != version:
            raise BenchctlError(
                f"{path}: unsupported {what} version {found} (expected {version})",
                hint="read it with the benchctl that wrote it, or delete it",
            )
        return msgspec.json.decode(raw, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError) as err:
        raise BenchctlError(f"{path} is damaged: {err}") from err


def write_versioned(path: Path, content: msgspec.Struct) -> None:
    """Replace a file, making its folder: readers, also after a power cut, find the old or the new one.

    Raises:
        BenchctlError: the disk is full or cannot be written.
    """
    text = msgspec.json.format(msgspec.json.encode(content), indent=1)
    with disk_errors(f"write {path}"):
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path, durable=True) as partial:
            partial.write_bytes(text + b"\n")


def _version(raw: bytes, what: str) -> int:
    """The value of the version's key; nothing else is read yet."""
    key = f"{what}-version"
    typed = msgspec.defstruct("Versioned", [("version", int)], rename={"version": key})
    return int(msgspec.structs.astuple(msgspec.json.decode(raw, type=typed))[0])
