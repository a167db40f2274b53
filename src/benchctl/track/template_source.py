"""Files of tracks before rendering: assembled from parts, with limits on what rendering may consume."""

import glob
import io
import os
import re
import resource
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import jinja2.runtime
from jinja2.sandbox import SandboxedEnvironment

from benchctl.disk import open_regular
from benchctl.errors import UsageError

_LONGEST = 500


def cut(text: str) -> str:
    """Truncate a text to what a message can hold."""
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}... ({len(text):,} characters)"


# Limits on rendering: foreign templates may loop forever, or exhaust memory.
MOST_CHARACTERS = 2**26
"""Limit of a template with its parts, and of its output: 64 million."""

MOST_CPU_S = 2.0
MOST_BYTES = 2**30
_MOST_BITS = 2**16  # of an integer
_AGAIN_S = 0.1


class OutOfTimeError(Exception):
    """A template exceeds the time limit."""


class BoundedEnvironment(SandboxedEnvironment):
    """Jinja2's sandbox without single operations that take unlimited time or memory."""

    intercepted_binops = frozenset({"*", "**"})

    def call_binop(self, context: jinja2.runtime.Context, operator: str, left: Any, right: Any) -> Any:
        """Multiply or exponentiate.

        Raises:
            OverflowError: If the result would be too large.
        """
        if isinstance(left, int) and isinstance(right, int):
            bits = left.bit_length() * right if operator == "**" else left.bit_length() + right.bit_length()
            if bits > _MOST_BITS:
                raise OverflowError("a number has too many digits")
        for sequence, times in ((left, right), (right, left)):
            if isinstance(sequence, str | bytes | list | tuple) and isinstance(times, int):
                _check_size(len(sequence) * times)
        return super().call_binop(context, operator, left, right)


def _check_size(size: int) -> None:
    if size > MOST_CHARACTERS:
        raise OverflowError(f"a text or list would have {size:,} elements")


@contextmanager
def bounded(cpu_s: float = MOST_CPU_S, more_bytes: int = MOST_BYTES) -> Iterator[None]:
    """Limit the block's CPU time, in the main thread, and its additional memory.

    Args:
        cpu_s: seconds of CPU, not of the clock, which a busy machine would affect.
        more_bytes: of address space.

    Raises:
        OutOfTimeError: If the block takes longer. A single step of a C extension is not interrupted.
        MemoryError: If the block takes more.
    """
    with _cpu_bound(cpu_s), _memory_bound(more_bytes):
        yield


@contextmanager
def _cpu_bound(cpu_s: float) -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        # Signals only reach the main thread, which loads tracks.
        yield
        return
    inside = True

    def stop(_signal: int, _frame: FrameType | None) -> None:
        if inside:
            raise OutOfTimeError

    before = signal.signal(signal.SIGVTALRM, stop)
    # Repeatedly: Jinja2 swallows exceptions while folding constants.
    signal.setitimer(signal.ITIMER_VIRTUAL, cpu_s, _AGAIN_S)
    try:
        try:
            yield
        finally:
            inside = False
    finally:
        # A separate block: the signal may come at the very end of the inner one.
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, signal.SIG_DFL if before is None else before)


@contextmanager
def _memory_bound(more_bytes: int) -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    bound = _address_space_bytes() + more_bytes
    for limit in (soft, hard):
        bound = bound if limit == resource.RLIM_INFINITY else min(bound, limit)
    resource.setrlimit(resource.RLIMIT_AS, (bound, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def _address_space_bytes() -> int:
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    return pages * resource.getpagesize()


#
# Rally and OpenSearch Benchmark insert the parts' text before rendering: so a variable set in a track is
# known in its parts, and a part may be half an array.

_COLLECT = re.compile(
    r"""(?P<comment>\{\#(?:.*?\#\}|.*))
      | \{\{-?\s*\w+\.collect\(\s*parts\s*=\s*
        (?P<quote>["'])(?P<parts>(?:(?!(?P=quote)).)+)(?P=quote)\s*\)\s*-?\}\}""",
    re.DOTALL | re.VERBOSE,
)
_MOST_PIECES = 20_000  # against parts that keep collecting others
# Each `*/..` multiplies the folders to search.
_CLIMBS = re.compile(r"[*?\[].*/\.\.(/|$)", re.DOTALL)

MISSING_PART = "benchctl_missing_part"
"""The template function in place of a missing part: an error only if the template gets there."""


class Origin(NamedTuple):
    """A line of a file, from 1."""

    path: Path
    line: int

    def __str__(self) -> str:
        return f"{self.path}, line {self.line}"


class _Piece(NamedTuple):
    text: str
    start: Origin


@dataclass(frozen=True)
class Reach:
    """The limits of what a track may read: its own directory, and those next to it.

    Parts that several tracks of a repository share are beside their folders. Out of reach are files beside
    the track's folder, hidden folders there, and everything further up.
    """

    folder: Path  # of the track, resolved

    def allows(self, path: Path) -> bool:
        """Return whether a resolved path may be read."""
        if path.is_relative_to(self.folder):
            return True
        if not path.is_relative_to(self.folder.parent):
            return False
        inner = path.relative_to(self.folder.parent).parts
        return len(inner) > 1 and not inner[0].startswith(".")

    def holds(self, path: Path) -> bool:
        """Return whether a path is an existing file that may be read."""
        try:
            return self.allows(path.resolve()) and path.is_file()
        except (OSError, ValueError):  # an impossible name
            return False

    def find(self, base: Path, pattern: str, where: str) -> list[Path]:
        """Find files that match a glob pattern, relative to `base`, sorted by path; `where` is for messages.

        Raises:
            UsageError: If the pattern points out of reach.
        """
        if _CLIMBS.search(pattern):
            raise UsageError(f"{where}: '{cut(pattern)}' goes up again after a wildcard")
        if not self.allows(Path(os.path.normpath(base.resolve() / pattern))):
            raise UsageError(f"{where}: '{cut(pattern)}' points outside the track and its siblings")
        try:
            matches = sorted(glob.glob(os.path.join(glob.escape(str(base)), pattern)))  # noqa: PTH118, PTH207 - pathlib's own refuses some patterns
        except (ValueError, re.error) as err:
            raise UsageError(f"{where}: '{cut(pattern)}' is not a pattern of file names: {err}") from err
        paths = [Path(os.path.normpath(name)) for name in matches]
        for path in paths:
            if not self.allows(path.resolve()):
                raise UsageError(f"{where}: '{path}' leads outside the track and its siblings")
        return [path for path in paths if path.is_file()]


@dataclass
class Assembled:
    """A file with its parts."""

    text: str
    lines: list[Origin]  # origin of each line
    # Patterns that matched no file; the template calls MISSING_PART with an index into this list.
    missing: list[str] = field(default_factory=list)

    def origin(self, line: int) -> Origin | None:
        """Return the origin of a line of the template, from 1."""
        return self.lines[line - 1] if 1 <= line <= len(self.lines) else None


def read_text(path: Path) -> str:
    """Read the text of a file, with newlines as Jinja2 counts them.

    Raises:
        UsageError: If it cannot be read, is not UTF-8, or is too large.
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
    """Assemble a file with everything that it collects.

    Raises:
        UsageError: If a file cannot be read, is out of reach, or collects itself.
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
    """The text of a file, cut where its parts are inserted."""
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
    """The files of a `collect`, separated by commas."""
    paths = reach.find(place.path.parent, pattern, str(place))
    if not paths:
        yield _Piece(f"{{{{ {MISSING_PART}({len(missing)}) }}}}", place)
        missing.append(f"{place}: collect(parts='{cut(pattern)}') finds no file in {place.path.parent}")
    for number, part in enumerate(paths):
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
    """For each line, the origin of its first non-blank piece."""
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
