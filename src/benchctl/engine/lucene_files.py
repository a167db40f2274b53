"""What the bytes of an index are for, by the names of Lucene's files, those within compound ones included."""

import struct
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

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
_MOST_ENTRIES_BYTES = 1024 * 1024


def bytes_by_kind(data: Path) -> dict[str, int]:
    """Bytes of all indices in a node's data folder, by what they are for, the most first, translogs included.

    Args:
        data: of a node that is stopped.

    Raises:
        OSError: it cannot be read.
    """
    found: Counter[str] = Counter()
    for shard in (folder.parent for folder in data.rglob("index") if folder.is_dir()):
        if shard.name.isdigit():
            for name, size in _files(shard / "index"):
                found[_KIND.get(name.rpartition(".")[2], "other")] += size
            for file in (shard / "translog").glob("translog*"):
                found["translog"] += file.stat(follow_symlinks=False).st_size
    return dict(found.most_common())


def _files(folder: Path) -> Iterator[tuple[str, int]]:
    for file in folder.iterdir():
        size = file.stat(follow_symlinks=False).st_size
        if file.suffix == ".cfs":
            with open_regular(file.with_suffix(".cfe"), follow=False) as entries:
                within = list(compound_entries(entries.read(_MOST_ENTRIES_BYTES)))
            yield from within
            yield "", size - sum(length for _, length in within)  # padding
        else:
            yield file.name, size


def compound_entries(data: bytes) -> Iterator[tuple[str, int]]:
    """Name and bytes of each file in a compound one.

    The form is that of Lucene90CompoundFormat: a header of CodecUtil, a count, and a name, an offset and a
    length of each. Lucene 8 (Lucene50CompoundFormat) writes the numbers big-endian. What is not of this form
    is empty.

    Args:
        data: of the file of entries, `.cfe`.
    """
    try:
        codec_bytes = data[4]  # one byte of length up to 127 letters
        codec = data[5 : 5 + codec_bytes].decode("ascii")
        at = 5 + codec_bytes + 4 + 16  # version, id of the segment
        at += 1 + data[at]  # suffix
        count, at = _vint(data, at)
        numbers = struct.Struct("<qq" if codec.startswith("Lucene90") else ">qq")
        found = []
        for _ in range(count):
            length, at = _vint(data, at)
            name = data[at : at + length].decode()
            at += length
            found.append((name, numbers.unpack_from(data, at)[1]))
            at += numbers.size
    except (IndexError, UnicodeDecodeError, struct.error):
        return
    yield from found


def _vint(data: bytes, at: int) -> tuple[int, int]:
    """A number in groups of seven bits, the least first, and where it ends."""
    value = shift = 0
    while True:
        value |= (data[at] & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if data[at - 1] < 0x80:  # noqa: PLR2004 - the bit that says that another group follows
            return value, at
