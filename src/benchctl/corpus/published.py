"""The published files of big5's documents: names, sizes and counts, as its own workload declares them."""

from collections.abc import Mapping
from typing import Literal

import msgspec

from benchctl.errors import UsageError
from benchctl.track.corpora import Corpus, Documents, SourcePart

NAME = "big5"
SIZES = (60, 100, 880, 1000)
"""About how many GB each of them has, unpacked."""

Packing = Literal["zst", "bz2"]


class _Size(msgspec.Struct, frozen=True):
    documents: int
    raw_bytes: int
    packed_bytes: Mapping[Packing, int | None]


_FILES = {
    60: _Size(69_223_950, 64_048_001_338, {"zst": 4_309_639_180, "bz2": 3_494_648_233}),
    100: _Size(116_000_000, 107_321_418_111, {"zst": 7_306_225_533, "bz2": 6_023_614_688}),
    # The workload declares the same 27,685,953,536 bytes for both, so at most one of them is right.
    880: _Size(1_020_000_000, 943_679_382_267, {"zst": None, "bz2": None}),
    1000: _Size(1_160_800_000, 1_073_936_121_222, {"zst": 73_368_668_568, "bz2": 60_567_183_163}),
}
_PARTS: Mapping[tuple[int, Packing], tuple[SourcePart, ...]] = {
    (1000, "zst"): (
        SourcePart("documents-1000-zstd-part0", 21_474_836_480),
        SourcePart("documents-1000-zstd-part1", 21_474_836_480),
        SourcePart("documents-1000-zstd-part2", 21_474_836_480),
        SourcePart("documents-1000-zstd-part3", 8_944_159_128),
    ),
    (1000, "bz2"): (
        SourcePart("documents-1000-part0", 20_189_061_054),
        SourcePart("documents-1000-part1", 20_189_061_054),
        SourcePart("documents-1000-part2", 20_189_061_055),
    ),
}


def big5_corpus(size: int, packing: Packing) -> Corpus:
    """One of the published files as a track would declare it, without a word on where it is published.

    Args:
        size: one of SIZES.
        packing: how it is compressed.

    Raises:
        UsageError: there is no such size.
    """
    if size not in _FILES:
        raise UsageError(
            f"there is no published big5 corpus of size {size}",
            hint=f"give --size, one of {', '.join(map(str, SIZES))}",
        )
    facts = _FILES[size]
    documents = Documents(
        source_file=f"documents-{size}.json.{packing}",
        document_count=facts.documents,
        compressed_bytes=facts.packed_bytes[packing],
        uncompressed_bytes=facts.raw_bytes,
        source_file_parts=_PARTS.get((size, packing), ()),
        target_index=NAME,
    )
    return Corpus(NAME, (documents,))
