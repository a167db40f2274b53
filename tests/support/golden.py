"""Texts that are kept in files: `--write-goldens` writes them anew, and the diff is read."""

import difflib
import json
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
import pytest

from benchctl.errors import BenchctlError

MARKS = ("$", ">")
Cases = Callable[..., None]
"""The fixture `cases`: `agree_cases` of the test that asks."""


def agree(config: pytest.Config, path: Path, text: str) -> None:
    """Compare a text with its file, or write that."""
    if config.getoption("--write-goldens"):
        path.write_text(text, encoding="utf-8")
    kept = path.read_text(encoding="utf-8") if path.exists() else ""
    changes = difflib.unified_diff(kept.splitlines(), text.splitlines(), str(path), "now", lineterm="")
    assert text == kept, "\n".join(changes)


def agree_cases(
    request: pytest.FixtureRequest, name: str, tell: Callable[..., object], folder: object = ""
) -> None:
    """Compare what becomes of each input in `cases/NAME.txt` with the text below it.

    A case is what `tell` is given, one text after `$ ` and another after `> `, and, indented, what it returns
    or how it refuses.
    Texts that hold more than characters that can be read are JSON, after `$=`.
    """
    path = request.path.parent / "cases" / f"{name}.txt"
    cases = [_inputs(block) for block in path.read_text(encoding="utf-8").split("\n\n") if block.strip()]
    assert cases
    told = (_case(inputs, _outcome(tell, inputs, str(folder))) for inputs in cases)
    agree(request.config, path, "\n".join(told))


def _inputs(block: str) -> list[str]:
    """The texts of a case."""
    texts: dict[str, list[str]] = {}
    for line in block.splitlines():
        mark, text = line[:1], line[2:]
        if mark in MARKS:
            texts.setdefault(mark, []).append(json.loads(text) if line[1:2] == "=" else text)
    return ["\n".join(lines) for lines in texts.values()]


def _case(inputs: Sequence[str], message: str) -> str:
    lines = []
    for mark, text in zip(MARKS, inputs, strict=False):
        plain = all(line.isprintable() for line in text.split("\n"))
        parts = [f" {line}" for line in text.split("\n")] if plain else [f"={json.dumps(text)}"]
        lines += [f"{mark}{part}".rstrip() if part == " " else f"{mark}{part}" for part in parts]
    lines += [f"  {line}" for line in message.splitlines()]
    return "".join(f"{line}\n" for line in lines)


def _outcome(tell: Callable[..., object], inputs: Sequence[str], folder: str) -> str:
    try:
        told = tell(*inputs)
    except (BenchctlError, msgspec.ValidationError) as err:
        told = err
    return str(told).replace(folder, "FOLDER") if folder else str(told)
