"""YAML that people write, as typed models: strict, with file, line and column in every error."""

import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Generic, TypeGuard, TypeVar

import msgspec
import yaml
from msgspec import inspect

from benchctl.disk import read_file
from benchctl.errors import UsageError, guess, suggestion

MOST_CHARACTERS: Final = 256 * 1024
"""Limit of a file: people write these by hand, and PyYAML takes seconds for more."""

MOST_VALUES: Final = 20_000
"""Limit of a file's values, aliases repeated: a few lines of aliases would fill the memory."""

MOST_LEVELS: Final = 50

T = TypeVar("T")
P = TypeVar("P")

Step = str | int
"""A key of a mapping, or a position in a list, from 0."""


# Places of values in a text, by the paths of msgspec's complaints.

COMPLAINT_PLACE: Final = re.compile(r" - at (?P<key>`key` in )?`(?P<path>\$[^`]*)`$")
"""Path in msgspec's messages."""

_STEP: Final = re.compile(r"\.(?P<field>[^.\[\]]+)|\[(?P<entry>[0-9]+|\.\.\.)\]")


def steps_of(path: str) -> Iterator[Step | None]:
    """Yield the steps of a path such as `$.a[1].b`; None for a key that msgspec leaves out, `[...]`."""
    for match in _STEP.finditer(path.removeprefix("$")):
        if match["field"] is not None:
            yield match["field"]
        else:
            yield None if match["entry"] == "..." else int(match["entry"])


def find_place(
    members: Callable[[P], Iterable[tuple[Step, P, P]]],
    root: P,
    steps: Iterable[Step | None],
    key: str | None = None,
) -> P:
    """Return the place of a value, or of the innermost value around it that exists.

    Args:
        members: Of the mapping or list at a place: key or position, place of the member, place of its value.
        root: The place of the whole.
        steps: The way to the value.
        key: A key of the mapping there, whose own place is returned if it exists.
    """
    place = root
    for step in steps:
        inner = next((value for name, _, value in members(place) if name == step), None)
        if inner is None:
            return place
        place = inner
    return next((member for name, member, _ in members(place) if name == key), place)


def _members_of(node: yaml.Node) -> Iterator[tuple[Step, yaml.Node, yaml.Node]]:
    if isinstance(node, yaml.MappingNode):
        yield from ((key.value, key, value) for key, value in node.value)
    elif isinstance(node, yaml.SequenceNode):
        yield from ((position, value, value) for position, value in enumerate(node.value))


def in_words(steps: Iterable[Step]) -> str:
    """Return a path for messages: `variants, entry 2, jdk`."""
    return ", ".join(f"entry {step + 1}" if isinstance(step, int) else shown(step) for step in steps)


def shown(text: str) -> str:
    """Return a text for a message: on one line, and not too long."""
    line = " ".join("".join(char if char.isprintable() else " " for char in text).split())
    return line if len(line) <= _MOST_SHOWN else f"{line[: _MOST_SHOWN - 3]}..."


# YAML into values. Keys are text, as written; what YAML 1.1 and 1.2 read differently is refused.

_TAG: Final = "tag:yaml.org,2002:"
_NULLS: Final = frozenset({"", "~", "null", "Null", "NULL"})
_BOOLS: Final = {text: text.lower() == "true" for text in ("true", "True", "TRUE", "false", "False", "FALSE")}
_INT: Final = re.compile(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+", re.ASCII)
_FLOAT: Final = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?", re.ASCII)
_NOT_FINITE: Final = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
# Names of files and messages cannot hold these; written as escapes, YAML can.
_NO_TEXT: Final = re.compile("[\\x00\\ud800-\\udfff]")
_MOST_DIGITS: Final = 300  # more is beyond all number types
_MOST_SHOWN: Final = 60


class Document:
    """A YAML file: its value, and the places of everything in it.

    Args:
        text: The content of the file.
        name: The name of the file, for messages.

    Attributes:
        value: None, bool, int, float, str, list and dict of these.

    Raises:
        UsageError: If it is not YAML, or holds what is refused: duplicate keys, tags, several documents, a
            value that YAML 1.1 and 1.2 read differently (`no`, `23:00`, `010`), too many values or levels.
    """

    def __init__(self, text: str, name: str) -> None:
        self.name = name
        if len(text) > MOST_CHARACTERS:
            raise UsageError(f"{name} has {len(text):,} characters; {MOST_CHARACTERS:,} are allowed")
        self._values_left = MOST_VALUES
        self._root = _compose(text, name)
        self.value: Any = None if self._root is None else self._value(self._root, 0)

    def refuse(
        self, steps: Sequence[Step], message: str, *, hint: str = "", key: str | None = None
    ) -> UsageError:
        """Return an error about a value, with file, line, column and path.

        Args:
            steps: The way to the value, from the top.
            message: What is wrong, without a full stop.
            hint: What to do.
            key: The key of the mapping there that is meant.
        """
        line, column = self.place(steps, key)
        path = in_words(steps)
        return UsageError(f"{self.name}:{line}:{column}: {f'{path}: ' if path else ''}{message}", hint=hint)

    def place(self, steps: Sequence[Step], key: str | None = None) -> tuple[int, int]:
        """Return line and column, from 1, of a value or one of its keys, as `find_place` finds them."""
        return (1, 1) if self._root is None else _place(find_place(_members_of, self._root, steps, key))

    def written(self, steps: Sequence[Step]) -> str:
        """Return a value as the file has it, for messages; a list or mapping in a word."""
        node = None if self._root is None else find_place(_members_of, self._root, steps)
        if isinstance(node, yaml.ScalarNode):
            return shown(node.value)
        return "a list" if isinstance(node, yaml.SequenceNode) else "a mapping"

    def _value(self, node: yaml.Node, level: int) -> Any:
        self._values_left -= 1
        if self._values_left < 0:
            raise self._refuse(node, f"there are more than {MOST_VALUES:,} values", "repeat less by aliases")
        if level >= MOST_LEVELS:
            raise self._refuse(node, f"it is nested more than {MOST_LEVELS} levels deep")
        if isinstance(node, yaml.ScalarNode):
            return self._scalar(node)
        if isinstance(node, yaml.MappingNode):
            self._check_tag(node, "map")
            self._check_keys(node)
            return {key.value: self._value(value, level + 1) for key, value in node.value}
        self._check_tag(node, "seq")
        return [self._value(entry, level + 1) for entry in node.value]

    def _check_keys(self, node: yaml.MappingNode) -> None:
        first: dict[str, int] = {}
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode) or (key.value == "<<" and key.style is None):
                raise self._refuse(key, "a key must be a word", "check for a stray { or [")
            line, _ = _place(key)
            if key.value in first:
                message = f"duplicate key '{shown(key.value)}', first in line {first[key.value]}"
                raise self._refuse(key, message, "remove one of them")
            first[key.value] = line

    def _scalar(self, node: yaml.ScalarNode) -> Any:
        text = node.value
        if _NO_TEXT.search(text):
            raise self._refuse(node, f"{shown(ascii(text))} holds a character that no text can", "remove it")
        implicit = "str" if node.style is not None else _implicit_tag(text)
        if node.tag == f"{_TAG}str" and (node.style is not None or implicit != "str"):
            return text
        self._check_tag(node, implicit)
        if _NOT_FINITE.fullmatch(text):
            raise self._refuse(node, f"{shown(text)} is not a finite number")
        newer = _by_yaml_1_2(text)
        try:
            older = yaml.constructor.SafeConstructor().construct_object(node)
        except (yaml.YAMLError, ValueError):  # such as `=`, or the 30th of February
            older = ValueError()
        if type(older) is type(newer) and older == newer:
            return newer
        raise self._refuse(
            node,
            f"'{shown(text)}' is ambiguous in YAML without quotes",
            f"write '{shown(text)}' in quotes for the text",
        )

    def _check_tag(self, node: yaml.Node, implicit: str) -> None:
        if node.tag != f"{_TAG}{implicit}":
            name = shown(node.tag.replace(_TAG, "!!"))
            raise self._refuse(node, f"the tag {name} is not supported here", "remove it")

    def _refuse(self, node: yaml.Node, message: str, hint: str = "") -> UsageError:
        line, column = _place(node)
        return UsageError(f"{self.name}:{line}:{column}: {message}", hint=hint)


def _compose(text: str, name: str) -> yaml.Node | None:
    try:
        root: yaml.Node | None = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.reader.ReaderError as err:
        line, column = text.count("\n", 0, err.position) + 1, err.position - text.rfind("\n", 0, err.position)
        raise UsageError(f"{name}:{line}:{column}: a character that YAML does not allow") from err
    except yaml.MarkedYAMLError as err:
        mark = err.problem_mark or err.context_mark
        place = name if mark is None else f"{name}:{mark.line + 1}:{mark.column + 1}"
        problem = ": ".join(part for part in (err.context, err.problem) if part)
        hint = "put text with a : # { [ * & ! % @ or ` in it in quotes"
        raise UsageError(
            f"{place}: this is not YAML: {problem}", hint="indent with spaces" if "\\t" in problem else hint
        ) from err
    except RecursionError as err:
        raise UsageError(f"{name}: something in it is nested too deeply") from err
    return root


def _place(node: yaml.Node) -> tuple[int, int]:
    return node.start_mark.line + 1, node.start_mark.column + 1


def _implicit_tag(text: str) -> str:
    """Return the tag that YAML 1.1 gives to a scalar without quotes."""
    resolvers = yaml.SafeLoader.yaml_implicit_resolvers.get(text[:1], [])
    return next((tag.removeprefix(_TAG) for tag, pattern in resolvers if pattern.match(text)), "str")


def _by_yaml_1_2(text: str) -> str | float | bool | None:
    """Return the value of a scalar without quotes in the core schema of YAML 1.2."""
    if text in _NULLS:
        return None
    if text in _BOOLS:
        return _BOOLS[text]
    if _INT.fullmatch(text) and len(text) <= _MOST_DIGITS:
        return int(text, 0) if text[:2] in {"0o", "0x"} else int(text)
    if _FLOAT.fullmatch(text) and math.isfinite(float(text)):
        return float(text)
    return text


# Values into msgspec's typed forms.

_UNKNOWN: Final = re.compile(r"Object contains unknown field `(?P<name>.*)`", re.DOTALL)
_MISSING: Final = re.compile(r"Object missing required field `(?P<name>.*)`")
_EXPECTED: Final = re.compile(r"Expected `(?P<kinds>[^`]+)`(?P<bound>.*?)(, got `[^`]+`)?", re.DOTALL)
_KINDS: Final = {
    "str": "text", "int": "a whole number", "float": "a number", "bool": "true or false", "null": "nothing",
    "array": "a list", "object": "a mapping of names and values",
}  # fmt: skip


@dataclass(frozen=True)
class Typed(Generic[T]):
    """A typed value of a file, and the document, whose `refuse` serves checks that a type cannot make."""

    value: T
    document: Document


def read_typed(path: Path, kind: type[T]) -> Typed[T]:
    """Read a YAML file as a type.

    Args:
        path: The file.
        kind: Anything that msgspec can convert to; structs should forbid unknown fields. The description of
            a `msgspec.Meta`, such as `a time such as 30m`, is what messages call a value of that type.

    Raises:
        UsageError: If it cannot be read, is not YAML or does not fit: with file, line and column.
    """
    try:
        text = read_file(path, 4 * MOST_CHARACTERS).decode()
    except OSError as err:
        raise UsageError(f"cannot read {path}: {err.strerror or err}") from err
    except ValueError as err:
        raise UsageError(f"{path} is not UTF-8 text: {err}") from err
    document = Document(text, str(path))
    return Typed(convert(document, kind), document)


def convert(document: Document, kind: type[T]) -> T:
    """Convert the value of a document to a type.

    Raises:
        UsageError: If it does not fit.
    """
    try:
        return msgspec.convert(document.value, kind)
    except msgspec.ValidationError as err:
        raise _misfit(document, kind, str(err)) from err


def _misfit(document: Document, kind: type[Any], complaint: str) -> UsageError:
    """Return the error for a complaint of msgspec, with its place in the file."""
    match = COMPLAINT_PLACE.search(complaint)
    problem = complaint[: match.start()] if match else complaint
    steps: list[Step] = []
    value = document.value
    for step in steps_of(match["path"] if match else ""):
        inner = _culprit(document.value, steps, kind, complaint) if step is None else step
        if inner is None:
            break
        steps.append(inner)
        value = value[inner]
    kinds = _kinds_at(kind, document.value, steps)
    if match and match["key"]:
        key = _culprit(document.value, steps, kind, complaint)
        keys = [m for info, _ in kinds if isinstance(info, inspect.DictType) for m in _members(info.key_type)]
        return document.refuse(steps, f"the key '{key}' should be {_expected(problem, keys)}", key=key)
    if match := _UNKNOWN.fullmatch(problem):
        key = match["name"]
        names = [name for info, _ in kinds if _is_meant(info, value) for name in _keys(info)]
        return document.refuse(steps, f"unknown key '{key}'", hint=suggestion(key, names), key=key)
    if match := _MISSING.fullmatch(problem):
        tags = _tags(kinds, match["name"])
        hint = f"known: {', '.join(tags)}" if tags else ""
        return document.refuse(steps, f"'{match['name']}' is missing", hint=hint)
    if problem.startswith(("Invalid enum value", "Invalid value")):
        choices = [
            str(word) for info, _ in kinds if isinstance(info, inspect.LiteralType) for word in info.values
        ]
        if not choices and steps:
            choices = _tags(_kinds_at(kind, document.value, steps[:-1]), steps[-1])
        if choices:
            text = document.written(steps)
            problem = f"'{text}' is none of {', '.join(choices)}"
            return document.refuse(steps, problem, hint=guess(text, choices))
    if match := _EXPECTED.fullmatch(problem):
        return _unexpected(document, steps, value, match, kinds)
    return document.refuse(steps, problem)


_Kinds = list[tuple[inspect.Type, str]]
"""The types that a value may have, and what their descriptions call it."""


def _unexpected(
    document: Document, steps: list[Step], value: object, match: re.Match[str], kinds: _Kinds
) -> UsageError:
    """Return the error for a value of another type than expected."""
    wanted = _expected(match[0], kinds)
    if not steps and value is None:
        return document.refuse(steps, "the file is empty")
    if match["bound"] == " of length >= 1" and value in ([], {}, ""):
        return document.refuse(steps, "it is empty")
    text = document.written(steps)
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    shape = f"the number {text}" if is_number else f"'{text}'" if isinstance(value, str) else text
    is_text = "str" in match["kinds"].split(" | ") and not any(description for _, description in kinds)
    looks_typed = is_text and isinstance(value, bool | int | float)
    return document.refuse(
        steps,
        f"expected {wanted}, found {'nothing' if value is None else shape}",
        hint=f"text that looks like a number or truth needs quotes: '{text}'" if looks_typed else "",
    )


def _expected(problem: str, kinds: _Kinds) -> str:
    """Return what is expected in a complaint: as the types describe it, or in a word for each."""
    described = dict.fromkeys(description for _, description in kinds if description)
    match = _EXPECTED.fullmatch(problem)
    if described or match is None:
        return " or ".join(described)
    return " or ".join(_KINDS.get(kind, kind) for kind in match["kinds"].split(" | ")) + match["bound"]


def _tags(kinds: _Kinds, key: Step) -> list[str]:
    structs = [info for info, _ in kinds if isinstance(info, inspect.StructType)]
    return [str(struct.tag) for struct in structs if struct.tag_field == key]


def _keys(struct: inspect.StructType) -> list[str]:
    tag = [] if struct.tag_field is None else [struct.tag_field]
    return [*tag, *(field.encode_name for field in struct.fields)]


def _is_meant(info: inspect.Type, value: object) -> TypeGuard[inspect.StructType]:
    """Return whether a type is a struct that a mapping is meant to be: by its tag if there is one."""
    return (
        isinstance(info, inspect.StructType)
        and isinstance(value, dict)
        and (info.tag_field is None or value.get(info.tag_field) == info.tag)
    )


def _kinds_at(kind: type[Any], value: Any, steps: Iterable[Step]) -> _Kinds:
    """Return the types that a value within a value of some type may have."""
    kinds = [*_members(inspect.type_info(kind))]
    for step in steps:
        kinds = [inner for info, _ in kinds for inner in _inner_kinds(info, value, step)]
        value = value[step]
    return kinds


def _inner_kinds(info: inspect.Type, value: object, step: Step) -> Iterator[tuple[inspect.Type, str]]:
    if _is_meant(info, value):
        for field in info.fields:
            if field.encode_name == step:
                yield from _members(field.type)
    elif isinstance(info, inspect.DictType) and isinstance(step, str):
        yield from _members(info.value_type)
    elif isinstance(info, inspect.ListType | inspect.VarTupleType) and isinstance(step, int):
        yield from _members(info.item_type)
    elif isinstance(info, inspect.TupleType) and isinstance(step, int) and step < len(info.item_types):
        yield from _members(info.item_types[step])


def _members(info: inspect.Type, description: str = "") -> Iterator[tuple[inspect.Type, str]]:
    """Yield the types of a union, or the type itself, each with its description."""
    if isinstance(info, inspect.Metadata):
        # The description of a setting is its help, which names no kind of value.
        schema = info.extra_json_schema or {}
        own = info.extra.get("value", "") if info.extra else schema.get("description", "")
        yield from _members(info.type, description or own)
    elif isinstance(info, inspect.UnionType):
        for member in info.types:
            yield from _members(member, description)
    else:
        yield info, "" if isinstance(info, inspect.NoneType) else description


def _culprit(value: Any, steps: Sequence[Step], kind: type[Any], complaint: str) -> str | None:
    """Return the key of a mapping with which alone the complaint stays the same."""
    mapping = value
    for step in steps:
        mapping = mapping[step]
    for key in mapping:
        try:
            msgspec.convert(_with_only(value, steps, key), kind)
        except msgspec.ValidationError as err:
            if str(err) == complaint:
                return str(key)
    return None


def _with_only(value: Any, steps: Sequence[Step], key: str) -> Any:
    """Return a copy of a value whose mapping at a place has one key only."""
    if not steps:
        return {key: value[key]}
    step, *remaining = steps
    copy: Any = dict(value) if isinstance(value, dict) else list(value)
    copy[step] = _with_only(value[step], remaining, key)
    return copy
