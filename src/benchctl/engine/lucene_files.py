"""Lucene's files: bytes of an index by purpose, and equality of indices; compound files included."""

import hashlib
import struct
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from benchctl.disk import open_regular

# Of org.apache.lucene.codecs, versions 8 to 10, and of Elasticsearch's own formats.
KINDS = {
    "postings": "tim tip tmd doc pos pay psm",
    "bloom filters": "bfi bfm",
    "points": "kdd kdi kdm dim dii",
    "doc values": "dvd dvm dvs",
    "stored fields": "fdt fdx fdm",
    "norms": "nvd nvm",
    "vectors": "vec vem vex vemf veq vemq vemb veb",
    "term vectors": "tvd tvx tvm",
}
_KIND = {suffix: kind for kind, suffixes in KINDS.items() for suffix in suffixes.split()}
_NOT_CONTENT = {".si", ".cfe", ".lock"}
_ID_BYTES, _CHECKSUM_BYTES = 16, 8
_HEADER_BYTES = 256
_PIECE_BYTES = 1024 * 1024
_MOST_ENTRIES_BYTES = 1024 * 1024


def bytes_by_kind(data: Path) -> dict[str, int]:
    """Return bytes in a node's data folder by purpose, the most first, translogs included.

    Args:
        data: of a node that is stopped.

    Raises:
        OSError: If a file cannot be read.
    """
    found: Counter[str] = Counter()
    for folder in _shards(data):
        for name, size in _files(folder):
            found[_KIND.get(name.rpartition(".")[2], "other")] += size
        for file in (folder.parent / "translog").glob("translog*"):
            found["translog"] += file.stat(follow_symlinks=False).st_size
    return dict(found.most_common())


def _shards(data: Path) -> Iterator[Path]:
    """The folder that Lucene has of each shard."""
    for folder in data.rglob("index"):
        if folder.parent.name.isdigit() and folder.is_dir():
            yield folder


def _files(folder: Path) -> Iterator[tuple[str, int]]:
    for file in folder.iterdir():
        size = file.stat(follow_symlinks=False).st_size
        if file.suffix == ".cfs":
            with open_regular(file.with_suffix(".cfe"), follow=False) as entries:
                within = list(compound_entries(entries.read(_MOST_ENTRIES_BYTES)))
            yield from ((name, length) for name, _, length in within)
            yield "", size - sum(length for _, _, length in within)  # padding
        else:
            yield file.name, size


def compound_entries(data: bytes) -> Iterator[tuple[str, int, int]]:
    """Return name, offset and bytes of each file in a compound one.

    The form is that of Lucene90CompoundFormat: a header of CodecUtil, a count, and a name, an offset and a
    length of each. Lucene 8 (Lucene50CompoundFormat) writes the numbers big-endian. What is not of this form
    is empty.

    Args:
        data: of the file of entries, `.cfe`.
    """
    try:
        codec, at = _codec(data)
        at += _ID_BYTES
        at += 1 + data[at]  # suffix
        count, at = _vint(data, at)
        numbers = struct.Struct("<qq" if codec.startswith("Lucene90") else ">qq")
        found = []
        for _ in range(count):
            length, at = _vint(data, at)
            name = data[at : at + length].decode()
            at += length
            found.append((name, *numbers.unpack_from(data, at)))
            at += numbers.size
    except (IndexError, UnicodeDecodeError, struct.error):
        return
    yield from found


def _codec(data: bytes) -> tuple[str, int]:
    """Of the header of a file of a segment: name of the codec, and where the id of the segment begins."""
    end = 5 + data[4]  # behind a magic number; one byte of length up to 127 letters
    return data[5:end].decode("ascii"), end + 4  # version


def content_digest(data: Path) -> str:
    """Return a SHA-256 over all shards in a data folder: equal for equal documents in equal order.

    Left out is what is drawn or stamped anew in every build: the ids of segments, wherever they stand, the
    checksums that cover them, and the files that have times in them (`.si`, and the list of segments).

    Args:
        data: of a node that is stopped.

    Raises:
        OSError: If a file cannot be read.
    """
    # The folder of an index has a name that is drawn.
    shards = [f"{folder.parent.name} {_shard_digest(folder)}" for folder in _shards(data)]
    return hashlib.sha256("\n".join(sorted(shards)).encode()).hexdigest()


def _shard_digest(folder: Path) -> str:
    by_segment: dict[int, list[str]] = {}
    for path in folder.iterdir():
        if not path.name.startswith("_") or path.suffix in _NOT_CONTENT:
            continue
        number, _, kind = path.stem.removeprefix("_").partition("_")
        found = by_segment.setdefault(int(number, 36), [])
        with open_regular(path, follow=False) as file:
            _, at = _codec(head := file.read(_HEADER_BYTES))
            segment = head[at : at + _ID_BYTES]
            parts = [(f"{kind}{path.suffix}", 0, path.stat().st_size)]
            if path.suffix == ".cfs":
                with open_regular(path.with_suffix(".cfe"), follow=False) as entries:
                    parts = list(compound_entries(entries.read(_MOST_ENTRIES_BYTES)))
            found += [
                f"{name} {length} {_masked_digest(file, start, length - _CHECKSUM_BYTES, segment)}"
                for name, start, length in parts
                if not name.endswith(".si")
            ]
    return "\n".join(" ".join(sorted(files)) for _, files in sorted(by_segment.items()))


def _masked_digest(file: BinaryIO, start: int, length: int, segment: bytes) -> str:
    """Of a part of a file without the id of its segment."""
    found, held = hashlib.sha256(), b""
    file.seek(start)
    while length and (read := file.read(min(length, _PIECE_BYTES))):
        length -= len(read)
        piece = (held + read).replace(segment, bytes(_ID_BYTES))
        # The beginning of an id that the next piece has the rest of.
        held = piece[1 - _ID_BYTES :]
        found.update(piece[: len(piece) - len(held)])
    found.update(held)
    return found.hexdigest()


def _vint(data: bytes, at: int) -> tuple[int, int]:
    """A number in groups of seven bits, the least first, and where it ends."""
    value = shift = 0
    while True:
        value |= (data[at] & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if data[at - 1] < 0x80:  # noqa: PLR2004 - the bit that says that another group follows
            return value, at
