"""JSON of a track, with places of its values: every error names file, line and JSON path."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

import msgspec

from benchctl.errors import UsageError, guess, nearest
from benchctl.track.template import Rendered
from benchctl.track.template_source import cut
from benchctl.yaml_file import COMPLAINT_PLACE, find_place, steps_of

T = TypeVar("T")

_NUMBER = re.compile(r"-?\d+(?:\.\d+)?[eE]\+?\d+|-?\d{19,}", re.ASCII)
_BYTE = re.compile(r"\(byte (?P<offset>\d+)\)")
_LARGEST = 2**64
_COMMENT = re.compile(r"#.*|//.*|_?comments?", re.IGNORECASE)
_AROUND = 3  # lines shown before and after an error
_WIDEST = 160
_PLACED = 100  # notes of a document that name their lines
LIKE = 0.8
"""More similar words, by difflib's measure, are typos."""
# Keys of Rally's and OpenSearch Benchmark's tracks that are ignored here.
_PASSING = frozenset(
    {
        "default",
        "short-description",
        "index-settings",
        "run-on-serverless",
        "serverless",
        "assertions",
        "auto-managed",
    }
)


_SPACE = re.compile(r"[ \t\n\r]*")
_DECODER = json.JSONDecoder()


def offset_of(text: str, where: str, key: str | None = None) -> int:
    """Return the offset of a value, or of the innermost value around it that exists.

    Args:
        text: Valid JSON.
        where: A path such as `$.schedule[3].operation`.
        key: A key of the object there, whose own offset is returned if it exists.
    """
    return find_place(partial(_members, text), _after_space(text, 0), steps_of(where), key)


def repeated_keys(text: str) -> Iterator[tuple[str, str, int]]:
    """Find duplicate keys of objects in valid JSON; parsers silently take the last one.

    Yields:
        (JSON path of the object, key, offset of the repetition).

    Raises:
        RecursionError: If the text is nested too deeply.
    """
    has_duplicates = False

    def look(pairs: list[tuple[str, object]]) -> None:
        nonlocal has_duplicates
        has_duplicates = has_duplicates or len(dict(pairs)) < len(pairs)

    # Numbers stay strings, whatever their size.
    json.loads(text, object_pairs_hook=look, parse_int=str, parse_float=str)
    if has_duplicates:  # finding their positions takes longer
        yield from _repeated(text, _after_space(text, 0), "$")


def _repeated(text: str, at: int, where: str) -> Iterator[tuple[str, str, int]]:
    seen: set[str] = set()
    for name, start, value in _members(text, at):
        if isinstance(name, int):
            inner = f"{where}[{name}]"
        else:
            inner = f"{where}.{name}"
            if name in seen:
                yield where, name, start
            seen.add(name)
        yield from _repeated(text, value, inner)


def _members(text: str, at: int) -> Iterator[tuple[str | int, int, int]]:
    """Yield the members of an object or array: key or position, offset of the member, offset of its value."""
    if text[at : at + 1] not in ("{", "["):
        return
    named = text[at] == "{"
    at = _after_space(text, at + 1)
    number = 0
    while text[at] not in "}]":
        start = at
        name: str | int = number
        if named:
            name, at = _DECODER.raw_decode(text, at)
            at = _after_space(text, _after_space(text, at) + 1)
        yield name, start, at
        _, at = _DECODER.raw_decode(text, at)
        at = _after_space(text, at)
        if text[at] == ",":
            at = _after_space(text, at + 1)
        number += 1


def _after_space(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    return match.end() if match else at


class Remark(msgspec.Struct, frozen=True, omit_defaults=True):
    """A part of a track that counts for less than its author may think."""

    place: str  # file, line and JSON path
    message: str
    challenge: str = ""  # the only one that it bears on; empty for all
    operation: str = ""  # the only one of the track's that it bears on; empty for all

    def __str__(self) -> str:
        return f"{self.place}: {self.message}"


class Document:
    """A JSON file of a track.

    Args:
        name: for messages.
        rendered: its text; without it, errors have no line.
        lenient: whether misplaced keys are noted and ignored, as in Rally; typos are errors anyway.

    Attributes:
        remarks: what was ignored, or is probably not what was meant.
    """

    def __init__(self, name: str, rendered: Rendered | None = None, *, lenient: bool = False) -> None:
        self.name = name
        self.lenient = lenient
        self.remarks: list[Remark] = []
        self._rendered = rendered

    def refuse(self, where: str, message: str, *, hint: str = "", key: str | None = None) -> UsageError:
        """Return an error about a value.

        Args:
            where: its JSON path.
            message: what is wrong, without a final full stop.
            hint: what to do.
            key: the key of the object there that is meant.
        """
        return UsageError(f"{self.place(where, key)}: {cut(where)}: {cut(message)}", hint=cut(hint))

    def note(self, where: str, message: str, *, key: str | None = None) -> None:
        """Add a note about a value, or about one of its keys."""
        # Finding a line scans the whole text.
        place = self.place(where, key) if len(self.remarks) < _PLACED else self.name
        self.remarks.append(Remark(f"{place}: {cut(where)}", cut(message)))

    def attribute(self, start: int, *, challenge: str = "", operation: str = "") -> None:
        """Attribute the remarks from number `start` on to a challenge or an operation of the track."""
        self.remarks[start:] = [
            msgspec.structs.replace(remark, challenge=challenge, operation=operation)
            for remark in self.remarks[start:]
        ]

    def repeated(self, where: str, key: str, offset: int) -> None:
        """Refuse a duplicate key at an offset; a lenient document ignores the first one.

        Raises:
            UsageError: If the document is not lenient.
        """
        place = f"{self._place_at(offset)}: {cut(where)}"
        message = f"the key '{cut(key)}' is duplicated"
        if not self.lenient:
            raise UsageError(f"{place}: {message}", hint="remove one of them: only the last would count")
        self.remarks.append(Remark(place, f"{message}, and the last one counts"))

    def place(self, where: str, key: str | None = None) -> str:
        """Return file and line of a JSON path; only the file if the line is unknown."""
        if self._rendered is None:
            return self.name
        return self._place_at(offset_of(self._rendered.text, where, key))

    def _place_at(self, offset: int) -> str:
        origin = None if self._rendered is None else self._rendered.origin(offset)
        return self.name if origin is None else str(origin)


def read_document(rendered: Rendered, *, lenient: bool = False) -> tuple[Document, Any]:
    """Parse the JSON of a rendered file; returns the document and its value.

    Raises:
        UsageError: If the file is not JSON; the message shows the lines around the error and their file. Or
            if an object has a duplicate key; in a lenient document that is noted, and the last one counts.
    """
    document = Document(str(rendered.path), rendered, lenient=lenient)
    try:
        value = msgspec.json.decode(rendered.text)
        for where, key, offset in repeated_keys(rendered.text):
            document.repeated(where, key, offset)
        for name, origin in rendered.undefined.items():
            document.remarks.append(Remark(str(origin or rendered.path), _undefined(name)))
    except msgspec.ValidationError as err:
        raise _beyond_bounds(rendered, str(err)) from err
    except (msgspec.MsgspecError, UnicodeError) as err:
        raise _broken(rendered, str(err)) from err
    except RecursionError as err:
        raise UsageError(f"{rendered.path}: its JSON is nested too deeply") from err
    return document, value


def _undefined(name: str) -> str:
    return (
        f"'{cut(name)}' has no value and came out as nothing: give it with --param, or a default in the "
        "file; braces that are the request's own, such as Mustache's, go between {% raw %} and {% endraw %}"
    )


def _broken(rendered: Rendered, found: str) -> UsageError:
    """The error for invalid JSON, in Python's words unless its parser accepts it, such as NaN."""
    text = rendered.text
    byte = _BYTE.search(found)
    reason = _BYTE.sub("", found).strip()
    offset = (
        0
        if byte is None
        else len(text.encode(errors="replace")[: int(byte["offset"])].decode(errors="replace"))
    )
    try:
        if "trailing comma" in reason:
            reason, offset = f"a trailing comma before {text[offset]}", text.rindex(",", 0, offset)
        else:
            json.loads(text)
    except json.JSONDecodeError as err:
        reason, offset = err.msg, err.pos
    except (RecursionError, ValueError):
        pass
    offset = min(offset, max(len(text) - 1, 0))
    line, column = text.count("\n", 0, offset) + 1, offset - text.rfind("\n", 0, offset)
    origin = rendered.origin(offset)
    came = f", in {origin}" if origin is not None else f", line {line}"
    return UsageError(
        f"{rendered.path} is not JSON once its template is rendered: {reason}{came}\n"
        f"{_excerpt(rendered, line, column)}",
        hint=_hint(rendered.undefined),
    )


def _beyond_bounds(rendered: Rendered, found: str) -> UsageError:
    """The error for a number that JSON allows and no type holds; msgspec does not tell where it is."""
    numbers = _NUMBER.finditer(rendered.text)
    large = next((match for match in numbers if abs(float(match[0])) >= _LARGEST), None)
    if large is None:
        return UsageError(f"{rendered.path}: {found}")
    place = rendered.origin(large.start()) or rendered.path
    return UsageError(f"{place}: {cut(large[0])} is beyond all bounds")


def _excerpt(rendered: Rendered, line: int, column: int) -> str:
    """The rendered lines around an error, with line numbers of the files that they came from."""
    rows = rendered.text.split("\n")
    shown: list[tuple[str, str]] = []
    left = max(0, column - _WIDEST // 2) if column > _WIDEST else 0
    offset = sum(len(row) + 1 for row in rows[: max(0, line - 1 - _AROUND)])
    for number in range(max(1, line - _AROUND), min(len(rows), line + _AROUND) + 1):
        row = rows[number - 1]
        first = offset + len(row) - len(row.lstrip())
        origin = rendered.origin(first)
        label = f"{origin.path.name}:{origin.line}" if origin is not None else str(number)
        shown.append((label, row[left : left + _WIDEST]))
        if number == line:
            shown.append(("", " " * (column - 1 - left) + "^"))
        offset += len(row) + 1
    width = max(len(label) for label, _ in shown)
    return "\n".join(f"  {label:>{width}} | {row}".rstrip() for label, row in shown)


def _hint(undefined: Iterable[str]) -> str:
    names = ", ".join(undefined)
    return f"these have no value and came out as nothing: {names}; give them with --param" if names else ""


def convert(raw: Any, kind: type[T], document: Document, where: str) -> T:
    """Convert JSON to a typed form.

    Raises:
        UsageError: If it does not fit; the message names file and JSON path.
    """
    if isinstance(raw, Mapping):
        raw = _fitting_keys(raw, encoded_names(kind), document, where)
    try:
        return msgspec.convert(raw, kind)
    except msgspec.ValidationError as err:
        raise refused(err, document, where) from err


def refused(err: msgspec.ValidationError, document: Document, where: str) -> UsageError:
    """Return the error for a complaint of msgspec, with its place in the file."""
    match = COMPLAINT_PLACE.search(str(err))
    inner = match["path"].removeprefix("$") if match else ""
    complaint = COMPLAINT_PLACE.sub("", str(err))
    return document.refuse(f"{where}{inner}", _MISSING.sub(r"'\1' is missing", complaint))


_MISSING = re.compile(r"Object missing required field `(.*)`")
_KEYS: dict[Any, tuple[str, ...]] = {}


def encoded_names(kind: Any) -> tuple[str, ...]:
    """Return the keys of a struct in JSON."""
    if kind not in _KEYS:
        # Slower than parsing a task.
        _KEYS[kind] = tuple(field.encode_name for field in msgspec.structs.fields(kind))
    return _KEYS[kind]


_VOCABULARY: set[str] = set(_PASSING)


def know(keys: Iterable[str]) -> None:
    """Add keys of some kind of object: elsewhere they are misplaced rather than unknown."""
    _VOCABULARY.update(keys)


def _fitting_keys(
    raw: Mapping[str, Any], known: Sequence[str], document: Document, where: str
) -> dict[str, Any]:
    """An object without comments and misplaced keys.

    Raises:
        UsageError: If a key is unknown.
    """
    kept: dict[str, Any] = {}
    for key, value in raw.items():
        if key in known:
            kept[key] = value
        else:
            fitting_key(key, known, document, where)
    return kept


def fitting_key(
    key: str, known: Sequence[str], document: Document, where: str, *, others: bool = False
) -> None:
    """Ignore an object's unexpected key if it is a comment or misplaced.

    Args:
        key: none of the known ones.
        known: keys that the object may have.
        document: only lenient ones may have misplaced keys.
        where: JSON path of the object.
        others: also ignore unknown keys that resemble no known one.

    Raises:
        UsageError: If the key is unknown.
    """
    if _COMMENT.fullmatch(key):
        return
    near = nearest(key, known, alike=LIKE)
    if not document.lenient or not (key in _VOCABULARY or (others and not near)):
        raise document.refuse(where, f"unknown key '{key}'", hint=_meant(key, known), key=key)
    document.note(where, f"'{key}' means nothing here and is passed over", key=key)


def _meant(key: str, known: Sequence[str]) -> str:
    meant = guess(key, known)
    if meant:
        return meant
    if key in _VOCABULARY:
        return f"'{key}' is a key of another kind of object"
    elsewhere = nearest(key, sorted(_VOCABULARY))
    if elsewhere is not None:
        return f"'{elsewhere}' is a key of another kind of object; known here: {', '.join(known)}"
    return f"known keys: {', '.join(known)}"
