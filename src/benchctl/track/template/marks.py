"""Which line of a template each character of the rendered text came from.

Jinja2 does not say. So the template is rendered once more with marks in it: one before every line of plain
text, which comes out wherever that line does. Marks are put in behind the lexer, so that they change neither
the trimming of white space nor anything within tags. Text that a template keeps in a variable stays without
marks, since it may be compared or turned into numbers.
"""

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import jinja2
from jinja2.ext import Extension
from jinja2.lexer import Token, TokenStream

from benchctl.track.template.assemble import Origin

_MARK = re.compile("\ue000([0-9]+)\ue001")
_DIGITS = 18
_TAG_TOKENS = 64  # where a tag says by then whether it keeps its text
# Blocks whose text is a value first.
_KEEPING = frozenset({"set", "filter", "macro", "call"})

OriginOf = Callable[[str | None, int], Origin | None]
"""(name of a template, line) -> the line of a file."""


@dataclass(frozen=True)
class Marked:
    """Rendered text and where it came from.

    Attributes:
        text: without the marks.
        offsets: where in the text a mark stood, ascending.
        origins: what each mark stands for, as many.
    """

    text: str
    offsets: tuple[int, ...]
    origins: tuple[Origin, ...]

    def origin(self, offset: int) -> Origin | None:
        """The line of a file that a character of the text came from."""
        place = bisect_right(self.offsets, offset) - 1
        return self.origins[place] if place >= 0 else None


class LineMarks:
    """Puts marks into every template that an environment compiles from now on.

    Args:
        environment: its templates must not have been compiled before.
        origin_of: what a line of a template stands for.
    """

    def __init__(self, environment: jinja2.Environment, origin_of: OriginOf) -> None:
        self.origins: list[Origin] = []
        self._origin_of = origin_of
        marks = self

        class Marking(Extension):
            def filter_stream(self, stream: TokenStream) -> Iterator[Token]:
                return marks.put_in(stream)

        environment.add_extension(Marking)

    def put_in(self, stream: TokenStream) -> Iterator[Token]:
        """The tokens of a template with marks in its plain text."""
        keeping = 0
        tokens = list(stream)
        for place, token in enumerate(tokens):
            if token.type == "block_begin":
                keeping += _keeps(tokens[place + 1 : place + _TAG_TOKENS])
            if token.type == "data" and not keeping:
                yield Token(token.lineno, "data", self._marked(stream.name, token.lineno, token.value))
            else:
                yield token

    def _marked(self, name: str | None, line: int, text: str) -> str:
        return "\n".join(self._mark(name, line + number) + row for number, row in enumerate(text.split("\n")))

    def _mark(self, name: str | None, line: int) -> str:
        origin = self._origin_of(name, line)
        if origin is None:
            return ""
        self.origins.append(origin)
        return f"\ue000{len(self.origins) - 1}\ue001"


def _keeps(tag: Sequence[Token]) -> int:
    """1 where a tag begins to keep its text as a value, -1 where one ends, else 0.

    Args:
        tag: the tokens behind `{%`.
    """
    word = tag[0].value if tag else ""
    if word.startswith("end"):
        return -int(word.removeprefix("end") in _KEEPING)
    if word == "set":
        # With the value in the tag, no text follows that would be kept.
        ending = next((token.type for token in tag if token.type in {"assign", "pipe", "block_end"}), "")
        return int(ending != "assign")
    return int(word in _KEEPING)


def read_marks(text: str, marks: LineMarks) -> Marked:
    """Take the marks out of what was rendered with them."""
    parts: list[str] = []
    offsets: list[int] = []
    origins: list[Origin] = []
    done = length = 0
    for match in _MARK.finditer(text):
        number = match[1]
        if len(number) > _DIGITS or int(number) >= len(marks.origins):
            continue  # the file's own characters
        plain = text[done : match.start()]
        parts.append(plain)
        length += len(plain)
        done = match.end()
        offsets.append(length)
        origins.append(marks.origins[int(number)])
    parts.append(text[done:])
    return Marked("".join(parts), tuple(offsets), tuple(origins))
