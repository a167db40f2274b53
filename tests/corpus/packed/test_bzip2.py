"""bzip2 by blocks: marks at any bit, marks that are none, streams behind one another."""

import bz2
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchctl.corpus.packed import DamageError, Mark, decode_bzip2, decode_marks, find_marks
from corpus.packed import bzipped, text

RAW = text(900_000)


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """The descriptor of a file of three streams, one of them empty, with some ten blocks."""
    path = tmp_path_factory.mktemp("bzip2") / "file.bz2"
    path.write_bytes(bzipped(RAW[:500_000], b"", RAW[500_000:]))
    with path.open("rb") as file:
        yield file.fileno()


def test_marks_are_found_wherever_reads_begin(packed: int):
    expected = list(find_marks(packed, 0, None))
    assert [mark.is_end for mark in expected].count(True) == 3
    assert len(expected) > 10
    assert len({mark.at % 8 for mark in expected}) > 3
    for read_bytes in (1, 7, 4096, 100_003):
        if read_bytes == 1:
            bounds = (expected[1].at - 40, expected[1].at + 40)
            assert list(find_marks(packed, *bounds, read_bytes=1)) == [expected[1]]
        else:
            assert list(find_marks(packed, 0, None, read_bytes=read_bytes)) == expected


@given(st.data())
@settings(deadline=None, max_examples=25)
def test_what_only_looks_like_a_mark_is_passed_over(packed: int, data: st.DataObject):
    real = list(find_marks(packed, 0, None))
    # Not nearer to one another than could happen once in the life of the universe.
    gaps = data.draw(st.lists(st.integers(0, len(real) - 2), unique=True, max_size=4))
    false = [
        Mark(data.draw(st.integers(real[gap].at + 1, real[gap + 1].at - 1)), data.draw(st.booleans()), 0)
        for gap in gaps
        if not real[gap].is_end
    ]
    found = decode_marks(iter(sorted([*real, *false])), packed, 0, None, 2)
    assert b"".join(block for _, block in found) == RAW


def test_a_missing_block_is_noticed(packed: int):
    real = list(find_marks(packed, 0, None))
    for gone in range(len(real)):
        marks = iter(real[:gone] + real[gone + 1 :])
        with pytest.raises(DamageError):
            list(decode_marks(marks, packed, 0, None, 2))


def test_a_stream_with_blocks_left_out_does_not_match_its_checksum(tmp_path: Path):
    """A file from which exactly one block was cut: every block is sound, the stream is not."""
    raw = RAW[:400_000]
    path = tmp_path / "file.bz2"
    path.write_bytes(bz2.compress(raw, 1))
    with path.open("rb") as file:
        first, second, *rest = find_marks(file.fileno(), 0, None)
    bits = int.from_bytes(path.read_bytes())
    total = path.stat().st_size * 8
    keep = total - second.at
    cut = ((bits >> (total - first.at)) << keep) | (bits & ((1 << keep) - 1))
    end = rest[-1].at - (second.at - first.at) + 80
    cut = cut >> (first.at + keep - end) << (-end % 8)
    path.write_bytes(cut.to_bytes((end + 7) // 8))
    with path.open("rb") as file, pytest.raises(DamageError, match="the checksum of a stream"):
        list(decode_bzip2(file.fileno(), 0, None, 2))


def test_streams_of_older_compressors_begin_with_any_level(tmp_path: Path):
    path = tmp_path / "file.bz2"
    path.write_bytes(b"".join(bz2.compress(RAW[:250_000], level) for level in range(1, 10)))
    with path.open("rb") as file:
        found = b"".join(block for _, block in decode_bzip2(file.fileno(), 0, None, 2))
    assert found == RAW[:250_000] * 9
