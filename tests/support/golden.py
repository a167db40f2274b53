"""Texts that are kept in files: `--write-goldens` writes them anew, and the diff is read."""

import difflib
from pathlib import Path

import pytest


def agree(config: pytest.Config, path: Path, text: str) -> None:
    """Compare a text with its file, or write that."""
    if config.getoption("--write-goldens"):
        path.write_text(text, encoding="utf-8")
    kept = path.read_text(encoding="utf-8") if path.exists() else ""
    changes = difflib.unified_diff(kept.splitlines(), text.splitlines(), str(path), "now", lineterm="")
    assert text == kept, "\n".join(changes)
