"""Files of Lucene by what they are for; compound ones as Lucene 8 and 9 write them."""

import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchctl.engine.lucene_files import bytes_by_kind, compound_entries


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
    assert dict(compound_entries(entries(codec, order, files))) == files


@given(st.binary(max_size=200))
def test_what_is_no_compound_file_has_nothing(data: bytes):
    list(compound_entries(data))


def test_bytes_are_counted_by_what_they_are_for(tmp_path: Path):
    folder = tmp_path / "indices" / "x" / "0" / "index"
    folder.mkdir(parents=True)
    plain = {"_0.fdt": 30, "_0_Lucene90_0.dvd": 20, "_0_Lucene90_0.tim": 7, "_0.kdd": 5, "segments_2": 1}
    for name, size in plain.items():
        (folder / name).write_bytes(bytes(size))
    (folder / "_1.cfs").write_bytes(bytes(100))
    within = {".fdt": 60, "_Lucene90_0.dvd": 30, ".nvd": 2}
    (folder / "_1.cfe").write_bytes(made := entries("Lucene90CompoundEntries", "<", within))
    log = folder.with_name("translog")
    log.mkdir()
    for name, size in {"translog-3.tlog": 55, "translog.ckp": 8}.items():
        (log / name).write_bytes(bytes(size))
    (tmp_path / "index").mkdir()
    (tmp_path / "index" / "other.fdt").write_bytes(bytes(999))
    assert bytes_by_kind(tmp_path) == {
        "stored fields": 90, "doc values": 50, "postings": 7, "points": 5, "norms": 2,
        "translog": 63, "other": 1 + 8 + len(made),
    }  # fmt: skip
    assert next(iter(bytes_by_kind(tmp_path))) in ("stored fields", "other")
