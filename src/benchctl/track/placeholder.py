"""The `${name}` in texts that stand for changing values: how they are written and found."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Literal, NamedTuple

End = Literal["", "from", "to"]

_ENDS: Mapping[str | None, End] = {None: "", "from": "from", "to": "to"}
_SHOWN = 20
_NAME = re.compile(r"[A-Za-z_][\w-]*", re.ASCII)
_MARK = re.compile(r"\$\$\{|\$\{(?:(?P<name>[A-Za-z_][\w-]*)(?:\.(?P<end>from|to))?\})?", re.ASCII)


class Placeholder(NamedTuple):
    """`${name}` in a text, or one end of a range: `${name.from}`, `${name.to}`."""

    name: str
    end: End = ""

    def __str__(self) -> str:
        return f"${{{self.name}.{self.end}}}" if self.end else f"${{{self.name}}}"


def is_name(text: str) -> bool:
    """Whether a value may be called so."""
    return _NAME.fullmatch(text) is not None


def split_text(text: str) -> list[str | Placeholder]:
    """A text in pieces: what goes out as it stands (`$${` already read as `${`), and placeholders.

    Raises:
        ValueError: a `${` begins no placeholder.
    """
    pieces: list[str | Placeholder] = []
    plain = ""
    position = 0
    for mark in _MARK.finditer(text):
        plain += text[position : mark.start()]
        position = mark.end()
        if mark[0] == "$${":
            plain += "${"
        elif mark["name"] is None:
            start = text[mark.start() :][:_SHOWN]
            raise ValueError(
                f"'{start}' begins no placeholder: write ${{name}}, or $${{ for the characters themselves"
            )
        else:
            pieces += [plain] if plain else []
            pieces.append(Placeholder(mark["name"], _ENDS[mark["end"]]))
            plain = ""
    plain += text[position:]
    return [*pieces, plain] if plain else pieces


def placeholders(texts: Any) -> Iterator[Placeholder]:  # noqa: ANN401 - JSON of any shape
    """All placeholders in the strings of a JSON value; keys of objects hold none.

    Raises:
        ValueError: a `${` begins no placeholder.
    """
    if isinstance(texts, str):
        yield from (piece for piece in split_text(texts) if isinstance(piece, Placeholder))
    elif isinstance(texts, Mapping):
        for part in texts.values():
            yield from placeholders(part)
    elif isinstance(texts, list | tuple):
        for part in texts:
            yield from placeholders(part)
