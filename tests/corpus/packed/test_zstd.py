"""Zstandard by frames: where they lie, which are decoded together, and which never as a whole."""

from pathlib import Path

import pytest
import zstandard

from benchctl.corpus.packed import DamageError, decode, find_frames
from benchctl.errors import BenchctlError
from corpus.packed import SKIPPABLE_FRAME, text

PARTS = [text(size, seed=size) for size in (1, 1000, 200_000, 1_000_000)]


def packed(part: bytes, *, size: bool = True, checksum: bool = True) -> bytes:
    return zstandard.ZstdCompressor(write_content_size=size, write_checksum=checksum).compress(part)


@pytest.mark.parametrize("checksum", [True, False])
@pytest.mark.parametrize("size", [True, False])
def test_frames_are_found_where_they_lie(size: bool, checksum: bool, tmp_path: Path):  # noqa: FBT001 - all cases
    made = [packed(part, size=size, checksum=checksum) for part in PARTS]
    path = tmp_path / "file.zst"
    path.write_bytes(SKIPPABLE_FRAME.join([b"", *made, b""]))
    with path.open("rb") as file:
        found = list(find_frames(file.fileno(), 0, None))
        data = path.read_bytes()
        assert [data[frame.at : frame.stop] for frame in found] == made
        assert list(find_frames(file.fileno(), found[1].at, found[3].at)) == found[1:3]
    for frame, part in zip(found, PARTS, strict=True):
        if size:
            assert frame.most_bytes == len(part)
        else:
            assert len(part) <= frame.most_bytes < len(part) + (1 << 21)


def test_what_is_no_frame_is_told_with_its_place(tmp_path: Path):
    path = tmp_path / "file.zst"
    first = packed(PARTS[1])
    path.write_bytes(first + b"not a frame at all")
    with path.open("rb") as file, pytest.raises(DamageError, match=f"no frame at byte {len(first)}"):
        list(find_frames(file.fileno(), 0, None))


def test_a_large_frame_comes_in_blocks_and_small_ones_together(tmp_path: Path):
    large = text(1_000_000) * 40
    path = tmp_path / "file.zst"
    small = [packed(part) for part in PARTS[:3]]
    path.write_bytes(b"".join([*small, packed(large), *small]))
    entries = [entry for entry, _ in decode(path)]
    assert b"".join(block for _, block in decode(path)) == b"".join([*PARTS[:3], large, *PARTS[:3]])
    large_at = sum(len(frame) for frame in small)
    behind = path.stat().st_size - large_at
    assert [entry for entry in entries if entry >= 0] == [0, large_at, behind]
    assert entries.count(-1) > 30
    assert b"".join(block for _, block in decode(path, start=behind)) == b"".join(PARTS[:3])
    assert b"".join(block for _, block in decode(path, start=large_at, stop=behind)) == large


def test_a_large_frame_cut_short_is_told_before_any_of_it_is_given_out(tmp_path: Path):
    path = tmp_path / "file.zst"
    path.write_bytes(packed(text(1_000_000) * 40)[:-5])
    with pytest.raises(BenchctlError, match="it ends in the middle of a frame"):
        next(decode(path))


def test_far_reaching_windows_are_read(tmp_path: Path):
    parameters = zstandard.ZstdCompressionParameters(window_log=28, enable_ldm=True)
    path = tmp_path / "file.zst"
    with (
        path.open("wb") as file,
        zstandard.ZstdCompressor(compression_params=parameters).stream_writer(file) as writer,
    ):
        writer.write(PARTS[3])
    assert b"".join(block for _, block in decode(path)) == PARTS[3]
