"""JSON of a track, with places of its values: every error names file, JSON path and line."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

import msgspec

from benchctl.errors import UsageError, nearest, suggestion
from benchctl.track.template import Rendered, cut
from benchctl.yaml_file import COMPLAINT_PLACE, find_place, steps_of

T = TypeVar("T")

_BYTE = re.compile(r" \(byte (\d+)\)")
_COMMENT = re.compile(r"#.*|//.*|_?comments?", re.IGNORECASE)
_AROUND = 3  # lines shown before and after an error
_WIDEST = 160
LIKE = 0.8
"""More similar words, by difflib's measure, are typos."""
# Keys of objects of a track's files: elsewhere they are misplaced rather than unknown. These mean nothing.
_VOCABULARY = {
    "default", "short-description", "index-settings", "run-on-serverless", "serverless", "assertions",
    "auto-managed",
}  # fmt: skip


# Places of values, which are looked for when an error is told.

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


def repeated_keys(text: str, at: int | None = None, where: str = "$") -> Iterator[tuple[str, str]]:
    """Find duplicate keys of objects in valid JSON; parsers silently take the last one.

    Yields:
        (JSON path of the object, key).
    """
    seen: set[str | int] = set()
    for name, _, value in _members(text, _after_space(text, 0) if at is None else at):
        if name in seen:
            yield where, str(name)
        seen.add(name)
        yield from repeated_keys(
            text, value, f"{where}[{name}]" if isinstance(name, int) else f"{where}.{name}"
        )


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

    place: str  # file and JSON path
    message: str
    challenge: str = ""  # the only one that it bears on; empty for all
    operation: str = ""  # the only one of the track's that it bears on; empty for all

    def __str__(self) -> str:
        return f"{self.place}: {self.message}"


class Document:
    """A JSON file of a track.

    Args:
        name: for messages.
        text: its rendered text; without it, errors have no line.
        lenient: whether misplaced keys are noted and ignored, as in Rally; typos are errors anyway.

    Attributes:
        remarks: what was ignored, or is probably not what was meant.
    """

    def __init__(self, name: str, text: str = "", *, lenient: bool = False) -> None:
        self.name = name
        self.lenient = lenient
        self.remarks: list[Remark] = []
        self._text = text

    def refuse(self, where: str, message: str, *, hint: str = "", key: str | None = None) -> UsageError:
        """Return an error about a value.

        Args:
            where: its JSON path.
            message: what is wrong, without a final full stop.
            hint: what to do.
            key: the key of the object there that is meant.
        """
        place = self.name
        if self._text:
            line = self._text.count("\n", 0, offset_of(self._text, where, key)) + 1
            place = f"{place}, line {line} of the rendered text"
        return UsageError(f"{place}: {cut(where)}: {cut(message)}", hint=cut(hint))

    def note(self, where: str, message: str) -> None:
        """Add a remark on a value."""
        self.remarks.append(Remark(f"{self.name}: {cut(where)}", cut(message)))

    def attribute(self, start: int, *, challenge: str = "", operation: str = "") -> None:
        """Attribute the remarks from number `start` on to a challenge or an operation of the track."""
        self.remarks[start:] = [
            msgspec.structs.replace(remark, challenge=challenge, operation=operation)
            for remark in self.remarks[start:]
        ]


def read_document(rendered: Rendered, *, lenient: bool = False) -> tuple[Document, Any]:
    """Parse the JSON of a rendered file; returns the document and its value.

    Raises:
        UsageError: If the file is not JSON; the message shows the rendered lines around the error. Or if an
            object has a duplicate key; in a lenient document that is noted, and the last one counts.
    """
    document = Document(str(rendered.path), rendered.text, lenient=lenient)
    try:
        value = msgspec.json.decode(rendered.text)
        for where, key in repeated_keys(rendered.text) if _has_repeated(rendered.text) else ():
            if not lenient:
                hint = "remove one of them: only the last would count"
                raise document.refuse(where, f"the key '{key}' is duplicated", hint=hint)
            document.note(where, f"the key '{key}' is duplicated, and the last one counts")
    except (msgspec.MsgspecError, UnicodeError) as err:
        raise _broken(rendered, str(err)) from err
    except RecursionError as err:
        raise UsageError(f"{rendered.path}: its JSON is nested too deeply") from err
    for name in rendered.undefined:
        message = (
            f"'{cut(name)}' has no value and came out as nothing: give it with --param, or a default in the "
            "file; braces of the request's own, such as Mustache's, go between {% raw %} and {% endraw %}"
        )
        document.remarks.append(Remark(str(rendered.path), message))
    return document, value


def _has_repeated(text: str) -> bool:
    """Return whether some object has a duplicate key; faster than finding out where."""
    has_duplicates = False

    def look(pairs: list[tuple[str, object]]) -> None:
        nonlocal has_duplicates
        has_duplicates = has_duplicates or len(dict(pairs)) < len(pairs)

    # Numbers stay strings, whatever their size.
    json.loads(text, object_pairs_hook=look, parse_int=str, parse_float=str)
    return has_duplicates


def _broken(rendered: Rendered, found: str) -> UsageError:
    """The error for invalid JSON, with its lines where the parser tells the place."""
    byte = _BYTE.search(found)
    reason = _BYTE.sub("", found).removeprefix("JSON is malformed: ")
    text, shown = rendered.text, ""
    if byte is not None or "truncated" in found:
        before = text.encode(errors="replace")[: int(byte[1]) if byte else None].decode(errors="replace")
        line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
        reason, shown = f"{reason}, in line {line}", f"\n{_excerpt(text, line, column)}"
    names = ", ".join(rendered.undefined)
    return UsageError(
        f"{rendered.path} is not JSON once its template is rendered: {reason}{shown}",
        hint=f"these have no value and came out as nothing: {names}; give them with --param" if names else "",
    )


def _excerpt(text: str, line: int, column: int) -> str:
    """The lines around an error, numbered, with a mark below its column."""
    rows = text.split("\n")
    left = max(0, column - _WIDEST // 2) if column > _WIDEST else 0
    first, last = max(1, line - _AROUND), min(len(rows), line + _AROUND)
    width = len(str(last))
    shown = [
        f"  {number:>{width}} | {rows[number - 1][left : left + _WIDEST]}"
        for number in range(first, last + 1)
    ]
    shown.insert(line - first + 1, f"  {'':{width}} | {'^':>{column - left}}")
    return "\n".join(row.rstrip() for row in shown)


# Values into typed forms.


def convert(raw: Any, kind: type[T], document: Document, where: str) -> T:
    """Convert JSON to a typed form.

    Raises:
        UsageError: If it does not fit; the message names file and JSON path.
    """
    if isinstance(raw, Mapping):
        known = encoded_names(kind)
        for key in raw:
            if key not in known:
                fitting_key(key, known, document, where)
        raw = {key: value for key, value in raw.items() if key in known}
    try:
        # Templates write numbers as texts, and whole ones as fractions.
        return msgspec.convert(raw, kind, strict=False)
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


def know(keys: Iterable[str]) -> None:
    """Add keys of some kind of object: elsewhere they are misplaced rather than unknown."""
    _VOCABULARY.update(keys)


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
        raise document.refuse(where, f"unknown key '{key}'", hint=suggestion(key, known), key=key)
    document.note(where, f"'{key}' means nothing here and is passed over")
