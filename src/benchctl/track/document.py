"""JSON of a track, with places of its values: every error names file, JSON path and line."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, partial
from typing import Any, TypeVar, cast

import msgspec

from benchctl.errors import UsageError, nearest, suggestion
from benchctl.track.template import Rendered, cut
from benchctl.yaml_file import COMPLAINT_PLACE, find_place, steps_of

T = TypeVar("T")

_BYTE = re.compile(r" \(byte (\d+)\)")
_MISSING = re.compile(r"Object missing required field `(.*)`")
_COMMENT = re.compile(r"#.*|//.*|_?comments?", re.IGNORECASE)
_AROUND = 60  # characters shown before and after an error
LIKE = 0.8
"""More similar words, by difflib's measure, are typos."""
# OpenSearch Benchmark's, of other types or without effect here: similar to others, but no typos.
_NO_TYPOS = frozenset({"bulk_size", "retry-max-wait-period", "ramp-down-time-period"})


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
    repeated: list[bool] = []
    try:
        value = msgspec.json.decode(rendered.text)
        # Finding out where takes longer. Numbers stay strings, whatever their size.
        json.loads(
            rendered.text,
            object_pairs_hook=lambda pairs: repeated.append(len(dict(pairs)) < len(pairs)),
            parse_int=str,
            parse_float=str,
        )
        for where, key in repeated_keys(rendered.text) if any(repeated) else ():
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


def _broken(rendered: Rendered, found: str) -> UsageError:
    """The error for invalid JSON, with its line where the parser gives the place."""
    byte = _BYTE.search(found)
    reason = _BYTE.sub("", found).removeprefix("JSON is malformed: ")
    if byte is not None or "truncated" in found:
        text = rendered.text
        at = (
            len(text.encode(errors="replace")[: int(byte[1])].decode(errors="replace")) if byte else len(text)
        )
        line, column = text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at)
        shown = text[max(at - column + 1, at - _AROUND) : at + _AROUND].split("\n", 1)[0].strip()
        reason = f"{reason}, in line {line}, column {column}: {shown}"
    names = ", ".join(rendered.undefined)
    return UsageError(
        f"{rendered.path} is not JSON once its template is rendered: {reason}",
        hint=f"these have no value and came out as nothing: {names}; give them with --param" if names else "",
    )


# Values into typed forms.


def convert(raw: Any, kind: type[T], document: Document, where: str) -> T:
    """Convert JSON to a typed form; as in Rally, nulls in an object mean nothing.

    Raises:
        UsageError: If it does not fit; the message names file and JSON path.
    """
    if isinstance(raw, Mapping):
        raw = known_keys(raw, encoded_names(cast("Any", kind)), document, where)
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


@cache  # slower than parsing a task
def encoded_names(kind: Any) -> tuple[str, ...]:
    """Return the keys of a struct in JSON."""
    return tuple(field.encode_name for field in msgspec.structs.fields(kind))


def known_keys(
    raw: Mapping[str, Any], known: Sequence[str], document: Document, where: str
) -> dict[str, Any]:
    """Return an object without comments and nulls; a lenient document may also have keys that mean nothing.

    Raises:
        UsageError: If a key is unknown, and the document not lenient or the key probably a typo.
    """
    for key in raw:
        if key in known or _COMMENT.fullmatch(key):
            continue
        is_typo = key not in _NO_TYPOS and nearest(key, known, alike=LIKE) is not None
        if is_typo or not document.lenient:
            raise document.refuse(where, f"unknown key '{key}'", hint=suggestion(key, known), key=key)
        document.note(where, f"'{key}' means nothing here and is passed over")
    return {key: value for key, value in raw.items() if key in known and value is not None}
