"""Files of Lucene; compound ones as Lucene 8 and 9 write them."""

import os
import struct
import zlib
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchctl.engine.prepared_index import compound_entries, content_digest


def entries(codec: str, order: str, files: dict[str, int]) -> bytes:
    name = codec.encode()
    data = bytes([0x3F, 0xD7, 0x6C, 0x17, len(name)]) + name + bytes(4 + 16) + b"\0" + _vint(len(files))
    for file, size in files.items():
        data += _vint(len(file.encode())) + file.encode() + struct.pack(f"{order}qq", 64, size)
    return data


def _vint(value: int) -> bytes:
    return bytes([value]) if value < 128 else bytes([value & 0x7F | 0x80]) + _vint(value >> 7)


@pytest.mark.parametrize(
    ("codec", "order"), [("Lucene90CompoundEntries", "<"), ("Lucene50CompoundEntries", ">")]
)
@given(files=st.dictionaries(st.text(min_size=1, max_size=200), st.integers(0, 2**62), max_size=200))
def test_what_is_in_a_compound_file(codec: str, order: str, files: dict[str, int]):
    found = list(compound_entries(entries(codec, order, files)))
    assert found == [(name, 64, size) for name, size in files.items()]


@given(st.binary(max_size=200))
def test_what_is_no_compound_file_has_nothing(data: bytes):
    list(compound_entries(data))


def file_of(segment: bytes, content: bytes, codec: bytes = b"Codec") -> bytes:
    """As CodecUtil writes one: a header with the id of the segment, and a checksum at the end."""
    header = bytes([0x3F, 0xD7, 0x6C, 0x17, len(codec)]) + codec + bytes(4) + segment + b"\0"
    return header + content + zlib.crc32(segment + content).to_bytes(8)


def shard(root: Path, uuid: str, segment: bytes, content: bytes, *, compound: bool, name: str = "_0") -> None:
    folder = root / "indices" / uuid / "0" / "index"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.si").write_bytes(os.urandom(50))
    (folder / "segments_3").write_bytes(os.urandom(50))
    files = {".fdt": file_of(segment, content), "_L9_0.tmd": file_of(segment, b"in it: " + segment + content)}
    if not compound:
        for suffix, data in files.items():
            (folder / f"{name}{suffix}").write_bytes(data)
        return
    head = file_of(segment, b"")[:-8]
    table = _vint(len(files))
    for suffix, data in files.items():
        table += _vint(len(suffix)) + suffix.encode() + struct.pack("<qq", len(head), len(data))
        head += data
    (folder / f"{name}.cfs").write_bytes(head + os.urandom(8))
    (folder / f"{name}.cfe").write_bytes(
        file_of(segment, b"", b"Lucene90CompoundEntries")[:-8] + table + os.urandom(8)
    )


# As drawn ones: neither stands in itself twice.
FIRST, SECOND = bytes(range(16)), bytes(range(100, 116))


@pytest.mark.parametrize("compound", [True, False])
# An id may stand across the bounds of what is read at once.
@given(content=st.binary(max_size=99), before=st.integers(-40, 40))
@settings(max_examples=25)
def test_the_same_content_has_the_same_digest_whatever_was_drawn(
    *, content: bytes, before: int, compound: bool
):
    large = bytes(1024 * 1024 - 40 + before) + content
    with TemporaryDirectory() as name:
        roots = [Path(name, str(number)) for number in range(4)]
        for root, uuid, segment, found in (
            (roots[0], "AbC", FIRST, FIRST + large + FIRST),
            (roots[1], "xYz", SECOND, SECOND + large + SECOND),
            (roots[2], "xYz", SECOND, SECOND + large + SECOND[:-1] + b"i"),
        ):
            shard(root, uuid, segment, found, compound=compound)
        first, second, other, none = map(content_digest, roots)
    assert first == second != other
    assert none not in {first, other}


def test_documents_in_other_segments_or_another_order_of_these_are_other_content(tmp_path: Path):
    for place, order in (("a", "12"), ("b", "21"), ("c", "1")):
        for number, part in enumerate(order):
            shard(tmp_path / place, "u", b"i" * 16, part.encode(), compound=False, name=f"_{number}")
    assert len({content_digest(tmp_path / place) for place in "abc"}) == 3
