"""Track files with their collected parts put in their places, and where each line came from.

Rally and OpenSearch Benchmark put the parts' text in before anything is rendered: that is why a variable that
a track sets is known in its parts, and why a part may hold half an array.
"""

import glob
import io
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from benchctl.disk import open_regular
from benchctl.errors import UsageError
from benchctl.track.template.bounds import MOST_CHARACTERS
from benchctl.track.template.excerpt import cut

_COLLECT = re.compile(
    r"""(?P<comment>\{\#(?:.*?\#\}|.*))
      | \{\{-?\s*\w+\.collect\(\s*parts\s*=\s*
        (?P<quote>["'])(?P<parts>(?:(?!(?P=quote)).)+)(?P=quote)\s*\)\s*-?\}\}""",
    re.DOTALL | re.VERBOSE,
)
_MOST_PIECES = 20_000  # parts that collect others again and again would take for ever

# Each `*/..` multiplies the folders that are looked through.
_CLIMBS = re.compile(r"[*?\[].*/\.\.(/|$)", re.DOTALL)

MISSING_PART = "benchctl_missing_part"
"""The template function that stands where a part is missing: an error only where the template gets there."""


class Origin(NamedTuple):
    """A line of a file; the first one is 1."""

    path: Path
    line: int

    def __str__(self) -> str:
        return f"{self.path}, line {self.line}"


class _Piece(NamedTuple):
    text: str
    start: Origin


@dataclass(frozen=True)
class Reach:
    """What a track may read: its own folder, and the folders beside it.

    Parts that several tracks of a repository share stand beside their folders. Files that lie beside the
    track's folder, hidden folders there, and everything further up are out of reach.

    Attributes:
        folder: of the track, resolved.
    """

    folder: Path

    def allows(self, path: Path) -> bool:
        """Whether a resolved path may be read."""
        if path.is_relative_to(self.folder):
            return True
        if not path.is_relative_to(self.folder.parent):
            return False
        inner = path.relative_to(self.folder.parent).parts
        return len(inner) > 1 and not inner[0].startswith(".")

    def holds(self, path: Path) -> bool:
        """Whether a path is that of a file that may be read."""
        try:
            return self.allows(path.resolve()) and path.is_file()
        except (OSError, ValueError):  # no file can have such a name
            return False

    def find(self, base: Path, pattern: str, where: str) -> list[Path]:
        """Files that match a pattern, sorted by path.

        Args:
            base: what the pattern is relative to.
            pattern: of `glob`.
            where: for messages.

        Raises:
            UsageError: the pattern points out of reach.
        """
        if _CLIMBS.search(pattern):
            raise UsageError(f"{where}: '{cut(pattern)}' goes up again behind a wildcard")
        if not self.allows(Path(os.path.normpath(base.resolve() / pattern))):
            raise UsageError(f"{where}: '{cut(pattern)}' points outside the track and the folders beside it")
        try:
            found = sorted(glob.glob(os.path.join(glob.escape(str(base)), pattern)))  # noqa: PTH118, PTH207 - pathlib's own refuses some patterns
        except (ValueError, re.error) as err:
            raise UsageError(f"{where}: '{cut(pattern)}' is no pattern of file names: {err}") from err
        paths = [Path(os.path.normpath(name)) for name in found]
        for path in paths:
            if not self.allows(path.resolve()):
                raise UsageError(f"{where}: '{path}' leads outside the track and the folders beside it")
        return [path for path in paths if path.is_file()]


@dataclass
class Assembled:
    """A file with its parts.

    Attributes:
        text: the template.
        lines: where each line of it came from.
        missing: patterns that matched no file; the template calls MISSING_PART with a place in this list.
    """

    text: str
    lines: list[Origin]
    missing: list[str] = field(default_factory=list)

    def origin(self, line: int) -> Origin | None:
        """Where a line of the template came from; the first one is 1."""
        return self.lines[line - 1] if 1 <= line <= len(self.lines) else None


def read_text(path: Path) -> str:
    """The text of a file, with newlines as Jinja2 counts them.

    Raises:
        UsageError: it cannot be read, is not UTF-8, or is too large.
    """
    try:
        with open_regular(path) as raw, io.TextIOWrapper(raw, encoding="utf-8-sig") as file:
            text = file.read(MOST_CHARACTERS + 1)
    except OSError as err:
        raise UsageError(f"cannot read {path}: {err.strerror}") from err
    except UnicodeDecodeError as err:
        raise UsageError(f"{path} is not UTF-8 text: {err}", hint="save it as UTF-8") from err
    if len(text) > MOST_CHARACTERS:
        raise UsageError(f"{path} has more than {MOST_CHARACTERS:,} characters")
    return text


def assemble(path: Path, reach: Reach) -> Assembled:
    """A file with everything that it collects.

    Raises:
        UsageError: a file cannot be read, lies out of reach, or collects itself.
    """
    missing: list[str] = []
    pieces: list[_Piece] = []
    characters = 0
    for piece in _pieces(path, reach, (path.resolve(),), missing):
        pieces.append(piece)
        characters += len(piece.text)
        if characters > MOST_CHARACTERS:
            raise UsageError(f"{path} and its parts have more than {MOST_CHARACTERS:,} characters")
        if len(pieces) > _MOST_PIECES:
            raise UsageError(
                f"{path} collects more than {_MOST_PIECES:,} parts", hint=f"the last one: {piece.start}"
            )
    return Assembled("".join(piece.text for piece in pieces), _line_origins(pieces), missing)


def _pieces(path: Path, reach: Reach, inside: tuple[Path, ...], missing: list[str]) -> Iterator[_Piece]:
    """The text of a file, cut where its parts go in."""
    text = read_text(path)
    done = 0
    for match in _COLLECT.finditer(text):
        if match["comment"]:
            continue
        yield _Piece(text[done : match.start()], _at(path, text, done))
        done = match.end()
        yield from _parts(_at(path, text, match.start()), match["parts"], reach, inside, missing)
    yield _Piece(text[done:], _at(path, text, done))


def _parts(
    place: Origin, pattern: str, reach: Reach, inside: tuple[Path, ...], missing: list[str]
) -> Iterator[_Piece]:
    """The files that a `collect` names, with commas in between."""
    found = reach.find(place.path.parent, pattern, str(place))
    if not found:
        yield _Piece(f"{{{{ {MISSING_PART}({len(missing)}) }}}}", place)
        missing.append(f"{place}: collect(parts='{cut(pattern)}') finds no file in {place.path.parent}")
    for number, part in enumerate(found):
        resolved = part.resolve()
        if resolved in inside:
            steps = (*inside[inside.index(resolved) :], resolved)
            way = " > ".join(os.path.relpath(step, reach.folder) for step in steps)
            raise UsageError(f"{place}: collects itself: {way}")
        if number:
            yield _Piece(",\n", place)
        yield from _pieces(part, reach, (*inside, resolved), missing)


def _at(path: Path, text: str, offset: int) -> Origin:
    return Origin(path, text.count("\n", 0, offset) + 1)


def _line_origins(pieces: list[_Piece]) -> list[Origin]:
    """For each line, the place of the first thing on it that is not white space."""
    lines: list[Origin] = []
    blank = False
    for piece in pieces:
        for number, row in enumerate(piece.text.split("\n")):
            here = Origin(piece.start.path, piece.start.line + number)
            if number or not lines:
                lines.append(here)
                blank = True
            elif blank:
                lines[-1] = here
            blank = blank and not row.strip()
    return lines
