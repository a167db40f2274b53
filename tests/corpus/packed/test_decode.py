"""Decoding: all formats, from any entry on, damage and truncation noticed, in bounded memory."""

import bz2
import gc
import random
import tarfile
import threading
import tracemalloc
import zipfile
from pathlib import Path

import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from benchctl.corpus.packed import decode
from benchctl.errors import BenchctlError
from corpus.packed import PACKERS, SKIPPABLE_FRAME, cut, text, zipped

JUMPING = ("plain", "bz2", "zst-frames")
"""The formats of which parts can be decoded without what is before them."""

several = settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=40
)


def whole(path: Path, **options: int | None) -> bytes:
    return b"".join(block for _, block in decode(path, **options))


def written(folder: Path, data: bytes) -> Path:
    path = folder / "documents"
    path.write_bytes(data)
    return path


@pytest.mark.parametrize("packing", PACKERS)
@given(raw=st.binary(max_size=3000), places=st.lists(st.integers(0, 3000), max_size=4))
@several
def test_whatever_was_packed_comes_out(tmp_path: Path, packing: str, raw: bytes, places: list[int]):
    # A plain file that begins like a packed one is none.
    raw = b"{" + raw
    path = written(tmp_path, PACKERS[packing](*cut(raw, places)))
    found = list(decode(path, threads=2))
    assert b"".join(block for _, block in found) == raw
    assert found[0][0] == 0 or packing in {"bz2", "zst-frames"}
    assert all(block for _, block in found)


def test_a_short_file_that_ends_like_the_head_of_a_tar_is_none(tmp_path: Path):
    assert whole(written(tmp_path, b'{"made_by": "ustar')) == b'{"made_by": "ustar'


@pytest.mark.parametrize("packing", JUMPING)
def test_decoding_can_begin_and_end_at_every_entry(packing: str, tmp_path: Path):
    raw = text(1_000_000) * 9
    path = written(tmp_path, PACKERS[packing](*cut(raw, range(0, len(raw), 400_000))))
    entries, at = [], 0
    for entry, block in decode(path):
        entries.append((entry, at))
        at += len(block)
    assert len(entries) >= 3
    draw = random.Random(1)  # noqa: S311 - test data
    for _ in range(4):
        (start, begin), (stop, end) = sorted(draw.sample(entries, 2))
        assert whole(path, start=start, stop=stop) == raw[begin:end]
        assert whole(path, start=start) == raw[begin:]


@pytest.mark.parametrize("packing", [name for name in PACKERS if name != "plain"])
def test_a_file_cut_short_anywhere_is_one_error(packing: str, tmp_path: Path):
    packed = PACKERS[packing](*cut(text(400_000), [150_000]))
    draw = random.Random(2)  # noqa: S311 - test data
    for kept in [len(packed) - 1, *(draw.randrange(8, len(packed)) for _ in range(20))]:
        path = written(tmp_path, packed[:kept])
        if packing == "zst-frames" and whole_frames(packed[:kept]):
            continue
        with pytest.raises(BenchctlError, match=rf"cannot read the documents of {path}: .") as caught:
            whole(path)
        assert "damaged or incomplete" in caught.value.hint


def whole_frames(packed: bytes) -> bool:
    """Whether zstd itself finds nothing wrong."""
    try:
        zstandard.ZstdDecompressor().decompressobj(read_across_frames=True).decompress(packed)
    except zstandard.ZstdError:
        return False
    return packed.endswith(b"any")


@pytest.mark.parametrize("packing", [name for name in PACKERS if name != "plain"])
def test_a_changed_byte_is_an_error_or_changes_nothing(packing: str, tmp_path: Path):
    raw = text(300_000)
    packed = PACKERS[packing](*cut(raw, [100_000]))
    draw = random.Random(3)  # noqa: S311 - test data
    noticed = 0
    for _ in range(30):
        place = draw.randrange(4, len(packed))
        changed = bytearray(packed)
        changed[place] ^= 1 << draw.randrange(8)
        path = written(tmp_path, bytes(changed))
        try:
            found = whole(path)
        except BenchctlError:
            noticed += 1
        else:
            assert found == raw  # such as a date in a header
    assert noticed > 20


def test_a_missing_file_and_a_folder_are_told(tmp_path: Path):
    with pytest.raises(BenchctlError, match="No such file"):
        whole(tmp_path / "none")
    with pytest.raises(BenchctlError, match="Is a directory"):
        whole(tmp_path)


def test_archives_of_several_files_are_told(tmp_path: Path):
    path = written(tmp_path, zipped(b"{}\n"))
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("second.json", b"{}\n")
    with pytest.raises(BenchctlError, match="a zip of documents has one member; it has 2"):
        whole(path)
    with tarfile.open(tmp_path / "documents.tar", "w") as archive:
        archive.add(path, "documents.json")
    with pytest.raises(BenchctlError, match="it is a tar archive"):
        whole(tmp_path / "documents.tar")


def test_an_empty_file_has_nothing(tmp_path: Path):
    assert whole(written(tmp_path, b"")) == b""
    assert whole(written(tmp_path, SKIPPABLE_FRAME)) == b""
    assert whole(written(tmp_path, bz2.compress(b""))) == b""


@pytest.mark.parametrize("packing", PACKERS)
def test_whoever_stops_reading_leaves_no_thread(packing: str, tmp_path: Path):
    path = written(tmp_path, PACKERS[packing](*cut(text(3_000_000), range(0, 3_000_000, 100_000))))
    before = threading.active_count()
    reader = decode(path, threads=3)
    next(reader)
    reader.close()
    assert threading.active_count() == before


@pytest.mark.parametrize("packing", PACKERS)
def test_memory_does_not_grow_with_the_file(packing: str, tmp_path: Path):
    size = 15_000_000 if packing == "bz2" else 40_000_000  # it is slow
    raw = text(1_000_000)[:1_000_000] * (size // 1_000_000)
    path = written(tmp_path, PACKERS[packing](*cut(raw, range(0, len(raw), 1_000_000))))
    del raw
    gc.collect()
    tracemalloc.start()
    try:
        decoded = sum(len(block) for _, block in decode(path, threads=2))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert decoded == size
    assert peak < size * 3 // 4
