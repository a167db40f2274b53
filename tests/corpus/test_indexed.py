"""Files of documents of any format: read once, damage and truncation noticed, in bounded memory and space."""

import bz2
import gc
import random
import tracemalloc
import zipfile
from pathlib import Path

import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from benchctl.corpus.indexed import index_file, read_lines, unpacked
from benchctl.disk import RESERVE_BYTES
from benchctl.errors import BenchctlError
from benchctl.home import Home
from corpus.packed import PACKERS, SKIPPABLE_FRAME, cut, tarred, text, zipped

several = settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=40
)
COMPRESSED = [name for name in PACKERS if name not in {"plain", "tar"}]


def whole(path: Path) -> bytes:
    return b"".join(unpacked(path))


def written(folder: Path, data: bytes) -> Path:
    path = folder / "documents"
    path.write_bytes(data)
    return path


def kept_files(home: Home) -> list[str]:
    """What is kept in a home, without locks."""
    return sorted(path.suffix for path in (home.corpora / ".files").iterdir() if path.suffix != ".lock")


@pytest.mark.parametrize("packing", PACKERS)
@given(raw=st.binary(max_size=3000), places=st.lists(st.integers(0, 3000), max_size=4))
@several
def test_whatever_was_packed_comes_out(tmp_path: Path, packing: str, raw: bytes, places: list[int]):
    # A plain file that begins like a packed one is none.
    raw = b"{" + raw
    assert whole(written(tmp_path, PACKERS[packing](*cut(raw, places)))) == raw


def test_lines_that_look_like_a_skippable_frame_behind_their_brace_are_plain(tmp_path: Path):
    assert whole(written(tmp_path, b'{*M\x18"}\n')) == b'{*M\x18"}\n'


def test_a_short_file_that_ends_like_the_head_of_a_tar_is_none(tmp_path: Path):
    assert whole(written(tmp_path, b'{"made_by": "ustar')) == b'{"made_by": "ustar'


@pytest.mark.parametrize("packing", PACKERS)
def test_an_index_holds_blocks_of_whole_lines_of_a_size(packing: str, tmp_path: Path):
    raw = text(100_000)[:-1]  # no line end at its end
    home = Home(tmp_path / "home")
    index = index_file(written(tmp_path, PACKERS[packing](raw)), home, block_bytes=10_000)
    assert (index.lines, index.raw_bytes) == (raw.count(b"\n") + 1, len(raw))
    assert (index.copy_bytes is None) == (packing == "plain")
    ends = [block.raw_bytes for block in index.blocks[1:]]
    assert all(raw[end - 1 : end] == b"\n" for end in ends)
    assert [raw.count(b"\n", 0, end) for end in ends] == [block.lines for block in index.blocks[1:]]
    assert packing != "plain" or len(ends) == 0 or ends[0] >= 10_000
    assert b"".join(read_lines(index, home, [(0, index.lines)])) == raw + b"\n"


@pytest.mark.parametrize("packing", COMPRESSED)
def test_a_file_cut_short_anywhere_is_one_error_and_nothing_is_kept(packing: str, tmp_path: Path):
    packed = PACKERS[packing](*cut(text(400_000), [150_000]))
    home = Home(tmp_path / "home")
    draw = random.Random(2)  # noqa: S311 - test data
    for kept in [len(packed) - 1, *(draw.randrange(8, len(packed)) for _ in range(20))]:
        path = written(tmp_path, packed[:kept])
        if packing == "zst-frames" and whole_frames(packed[:kept]):
            continue
        with pytest.raises(BenchctlError, match=rf"cannot read the documents of {path}: .") as caught:
            index_file(path, home)
        assert "damaged or incomplete" in caught.value.hint
        assert kept_files(home) == []


def whole_frames(packed: bytes) -> bool:
    """Whether zstd itself finds nothing wrong."""
    try:
        zstandard.ZstdDecompressor().decompressobj(read_across_frames=True).decompress(packed)
    except zstandard.ZstdError:
        return False
    return packed.endswith(b"any")


@pytest.mark.parametrize("packing", COMPRESSED)
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


@pytest.mark.parametrize("packing", ["bz2", "zst", "gz"])
def test_what_follows_a_stream_is_not_ignored(packing: str, tmp_path: Path):
    path = written(tmp_path, PACKERS[packing](b"{}\n") + b"something else")
    with pytest.raises(BenchctlError, match="cannot read the documents"):
        whole(path)


def test_a_missing_file_and_a_folder_are_told(tmp_path: Path):
    home = Home(tmp_path / "home")
    with pytest.raises(BenchctlError, match="No such file"):
        index_file(tmp_path / "none", home)
    with pytest.raises(BenchctlError, match="Is a directory"):
        index_file(tmp_path, home)


def test_archives_of_several_files_or_of_none_are_told(tmp_path: Path):
    path = written(tmp_path, zipped(b"{}\n"))
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("second.json", b"{}\n")
    with pytest.raises(BenchctlError, match="a zip of documents has one member; it has 2"):
        whole(path)
    with pytest.raises(BenchctlError, match="a tar of documents has one file; it has 'folder/documents1"):
        whole(written(tmp_path, tarred(b"{}\n", files=2)))
    with pytest.raises(BenchctlError, match="a tar of documents has one file; it has none"):
        whole(written(tmp_path, tarred(files=0)))


def test_an_empty_file_has_nothing(tmp_path: Path):
    for empty in (b"", SKIPPABLE_FRAME, bz2.compress(b""), tarred(b"")):
        assert whole(written(tmp_path, empty)) == b""
    assert index_file(tmp_path / "documents", Home(tmp_path / "home")).lines == 0


def test_a_copy_needs_space_which_is_asked_for_first_and_on_the_way(tmp_path: Path):
    raw = text(2_000_000)
    path, home = written(tmp_path, PACKERS["bz2"](raw)), Home(tmp_path / "home")
    needed = RESERVE_BYTES + 3 * path.stat().st_size
    with pytest.raises(BenchctlError, match=r"not enough space in .* to unpack documents"):
        index_file(path, home, pytest.fail, free=lambda _: needed - 1)
    left = iter([needed, RESERVE_BYTES + 1_000_000, RESERVE_BYTES - 1])
    with pytest.raises(BenchctlError, match="not enough space"):
        index_file(path, home, block_bytes=100_000, free=lambda _: next(left))
    assert kept_files(home) == []
    index_file(path, home, free=lambda _: needed)
    assert kept_files(home) == [".json", ".zst"]


def test_an_interrupted_import_leaves_nothing_and_is_done_again(tmp_path: Path):
    path, home = written(tmp_path, PACKERS["gz"](text(500_000))), Home(tmp_path / "home")

    def interrupt(_: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        index_file(path, home, interrupt, block_bytes=100_000)
    assert kept_files(home) == []
    assert index_file(path, home).raw_bytes == len(text(500_000))


def test_a_copy_that_is_gone_is_made_again_and_a_damaged_one_is_told(tmp_path: Path):
    raw = text(100_000)
    path, home = written(tmp_path, PACKERS["gz"](raw)), Home(tmp_path / "home")
    index = index_file(path, home)
    (copy,) = (home.corpora / ".files").glob("*.zst")
    copy.unlink()
    assert index_file(path, home) == index
    with copy.open("r+b") as file:
        file.seek(copy.stat().st_size // 2)
        file.write(b"\0" * 100)
    with pytest.raises(BenchctlError, match=rf"cannot read the documents of {copy}"):
        b"".join(read_lines(index_file(path, home), home, [(0, 1)]))


def test_copies_of_files_that_are_gone_are_removed_with_the_next_import(tmp_path: Path):
    home = Home(tmp_path / "home")
    first = written(tmp_path, PACKERS["gz"](text(1000)))
    index_file(first, home)
    second = first.rename(tmp_path / "moved")
    index_file(second, home)
    assert kept_files(home) == [".json", ".zst"]


def test_a_line_that_no_node_would_take_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("benchctl.corpus.indexed._MOST_LINE_BYTES", 1 << 20)
    path = written(tmp_path, b"{" + b" " * (2 << 20))
    with pytest.raises(BenchctlError, match="longer than 1 MiB"):
        index_file(path, Home(tmp_path / "home"))


@pytest.mark.parametrize("packing", PACKERS)
def test_memory_does_not_grow_with_the_file(packing: str, tmp_path: Path):
    size = 20_000_000
    raw = text(size)[:size]
    path = written(tmp_path, PACKERS[packing](*cut(raw, range(0, len(raw), 1_000_000))))
    home = Home(tmp_path / "home")
    del raw
    gc.collect()
    tracemalloc.start()
    try:
        index = index_file(path, home, block_bytes=1 << 20)
        read = sum(map(len, read_lines(index, home, [(0, index.lines)])))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert read - size in {0, 1}  # a last line end
    assert peak < size * 3 // 5


def test_a_frame_that_holds_far_more_than_it_weighs_is_read_in_bounded_memory(tmp_path: Path):
    path = written(tmp_path, zstandard.ZstdCompressor().compress(b"{}\n" * (100 << 20)))
    most = 0
    for chunk in unpacked(path):
        most = max(most, len(chunk))
    assert path.stat().st_size < 1 << 20
    assert 0 < most <= 8 << 20
