"""Where in a JSON text a value stands."""

import json
import re
from collections.abc import Iterator

_STEP = re.compile(r"\.(?P<key>[^.\[\]]+)|\[(?P<place>\d+)\]")
_SPACE = re.compile(r"[ \t\n\r]*")
_DECODER = json.JSONDecoder()


def offset_of(text: str, where: str, key: str | None = None) -> int:
    """The character where a value begins, or where the innermost value around it does that can be found.

    Args:
        text: valid JSON.
        where: a path such as `$.schedule[3].operation`.
        key: of the object there; its name is looked for instead of the object.
    """
    at = _space(text, 0)
    for match in _STEP.finditer(where.removeprefix("$")):
        step: str | int = int(match["place"]) if match["place"] is not None else match["key"]
        found = next((value for name, _, value in _children(text, at) if name == step), None)
        if found is None:
            return at
        at = found
    return next((start for name, start, _ in _children(text, at) if name == key), at)


def repeated_keys(text: str) -> Iterator[tuple[str, str, int]]:
    """Keys that an object gives more than once; the readers of JSON take the last one without a word.

    Args:
        text: valid JSON.

    Yields:
        (JSON path of the object, key, character where the key is given again).

    Raises:
        RecursionError: the text is nested too deeply.
    """
    found = False

    def look(pairs: list[tuple[str, object]]) -> None:
        nonlocal found
        found = found or len(dict(pairs)) < len(pairs)

    # Numbers stay texts: their size is no concern of this.
    json.loads(text, object_pairs_hook=look, parse_int=str, parse_float=str)
    if found:  # where they are takes longer to say
        yield from _repeated(text, _space(text, 0), "$")


def _repeated(text: str, at: int, where: str) -> Iterator[tuple[str, str, int]]:
    seen: set[str] = set()
    for name, start, value in _children(text, at):
        if isinstance(name, int):
            inner = f"{where}[{name}]"
        else:
            inner = f"{where}.{name}"
            if name in seen:
                yield where, name, start
            seen.add(name)
        yield from _repeated(text, value, inner)


def _children(text: str, at: int) -> Iterator[tuple[str | int, int, int]]:
    """The members of an object or array: key or place, where the member begins, where its value does."""
    if text[at : at + 1] not in ("{", "["):
        return
    named = text[at] == "{"
    at = _space(text, at + 1)
    number = 0
    while text[at] not in "}]":
        start = at
        name: str | int = number
        if named:
            name, at = _DECODER.raw_decode(text, at)
            at = _space(text, _space(text, at) + 1)
        yield name, start, at
        _, at = _DECODER.raw_decode(text, at)
        at = _space(text, at)
        if text[at] == ",":
            at = _space(text, at + 1)
        number += 1


def _space(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    return match.end() if match else at
