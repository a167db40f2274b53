"""Tracks in the styles of Rally and OpenSearch Benchmark, written for the tests of what loads them."""

from collections.abc import Mapping
from pathlib import Path

import msgspec

from benchctl.track.model import Challenge

TRACKS = Path(__file__).parent / "tracks"


def read_files(folder: Path) -> dict[str, str]:
    """All files of a folder by relative path."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_text(encoding="utf-8") for path in files}


BOOKS: Mapping[str, str] = read_files(TRACKS / "books")
"""Rally's style: several indices and challenges, parts in parts, a parameter source of a plug-in."""

SHOP: Mapping[str, str] = read_files(TRACKS / "shop")
"""OpenSearch Benchmark's style: parts beside the workload's folder, scoped variables, its own words."""


def write_files(folder: Path, files: Mapping[str, str]) -> Path:
    """Write files by relative path.

    Returns:
        The folder.
    """
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder


def challenge_text(challenge: Challenge) -> str:
    """Return the file of a challenge whose tasks run one after the other, with its own operations inline."""
    plain = msgspec.to_builtins(challenge)
    operations = plain.pop("operations", {})
    plain.pop("remarks", None)
    plain["schedule"] = [
        {**task, "operation": operations.get(task["operation"], task["operation"])}
        for task in plain["schedule"]
    ]
    text = msgspec.json.encode(plain)
    return msgspec.json.format(text, indent=2).decode() + "\n"
