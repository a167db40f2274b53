"""Foreign tracks that real nodes run, as people write them; their documents are made here, too."""

import bz2
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from foreign_tracks import read_files

TRACKS = Path(__file__).parent / "tracks"
LOANS = 3_000
OVERDUE = 1_000
SHELVES = 5
READERS = 400
VISITS = 600

LIBRARY: Mapping[str, str] = read_files(TRACKS / "library")
"""Rally's style: challenges and operations in parts, an index that is a template, one bzip2 file."""

HOUSE: Mapping[str, str] = read_files(TRACKS / "house")
"""OpenSearch Benchmark's style: two indices, and a data stream that the schedule makes from a template."""

DOORS: Mapping[str, str] = read_files(TRACKS / "doors")
"""Rally's style with nothing but a data stream, which its only challenge asks."""


def write_library(folder: Path) -> Path:
    """The track of loans with its documents."""
    loans = [
        {
            "day": f"2024-{1 + number % 12:02d}-01",
            "shelf": f"s{number % SHELVES}",
            "title": f"book {number}",
            "overdue": number < OVERDUE,
        }
        for number in range(LOANS)
    ]
    text = _lines(loans)
    _write(folder, LIBRARY, DOCUMENTS=LOANS, RAW_BYTES=len(text))
    (folder / "documents.json.bz2").write_bytes(bz2.compress(text))
    return folder


def write_house(folder: Path) -> Path:
    """The workload of readers and visits with its documents."""
    _write(folder, HOUSE, READERS=READERS, VISITS=VISITS)
    for name in ("readers", "fines"):
        (folder / f"{name}.ndjson").write_bytes(
            _lines({"name": f"{name}-{number}"} for number in range(READERS))
        )
    action = {"create": {"_index": "visits-2024"}}
    pairs = [line for visit in visits() for line in (action, visit)]
    (folder / "visits.json.bz2").write_bytes(bz2.compress(_lines(pairs)))
    return folder


def write_doors(folder: Path) -> Path:
    """The track of a data stream with its documents."""
    _write(folder, DOORS, VISITS=VISITS)
    (folder / "visits.json.bz2").write_bytes(bz2.compress(_lines(visits())))
    return folder


def visits() -> list[dict[str, Any]]:
    """Who came through which door; every third through the one in the north."""
    return [
        {"@timestamp": 1_704_067_200_000 + 60_000 * number, "door": "north" if number % 3 == 0 else "south"}
        for number in range(VISITS)
    ]


def _lines(documents: Iterable[Mapping[str, Any]]) -> bytes:
    return "".join(json.dumps(one) + "\n" for one in documents).encode()


def _write(folder: Path, files: Mapping[str, str], **numbers: int) -> None:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        for word, number in numbers.items():
            text = text.replace(f": {word}", f": {number}").replace(f"({word})", f"({number})")  # noqa: PLW2901
        path.write_text(text, encoding="utf-8")
