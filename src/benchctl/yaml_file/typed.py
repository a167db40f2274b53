"""YAML values into msgspec's typed forms; what does not fit is said with its line and in words."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Generic, TypeVar

import msgspec
from msgspec import inspect

from benchctl.disk import read_file
from benchctl.errors import UsageError
from benchctl.nearest import guess, suggestion
from benchctl.yaml_file.document import MOST_CHARACTERS, Document, Step

T = TypeVar("T")

_PLACE: Final = re.compile(r" - at (?P<key>`key` in )?`\$(?P<way>[^`]*)`$")
_STEP: Final = re.compile(r"\.(?P<field>[^.\[]+)|\[(?P<entry>[0-9]+)\]|\[\.\.\.\]")
_UNKNOWN: Final = re.compile(r"Object contains unknown field `(?P<name>.*)`", re.DOTALL)
_MISSING: Final = re.compile(r"Object missing required field `(?P<name>.*)`")
_EXPECTED: Final = re.compile(
    r"Expected `(?P<kinds>[^`]+)`(?P<bound>.*?)(, got `(?P<got>[^`]+)`)?", re.DOTALL
)
# Of amounts, as people leave them out; thousands of documents need none.
_UNITS: Final = ("m", "g", "s", "h", "%")
_WORDS: Final = {
    "str": "text", "int": "a whole number", "float": "a number", "bool": "true or false", "null": "nothing",
    "array": "a list", "object": "a mapping of names and values",
}  # fmt: skip


@dataclass(frozen=True)
class Typed(Generic[T]):
    """What a file says, and where it says it.

    Attributes:
        value: typed.
        document: its `refuse` makes errors that name the line, for what a type cannot tell.
    """

    value: T
    document: Document


def load_typed(path: Path, kind: type[T]) -> T:
    """Read a YAML file as a type.

    Args:
        path: of the file.
        kind: anything that msgspec can convert to; structs should forbid unknown fields. The description of
            a `msgspec.Meta`, such as `a time such as 30m`, is what messages call a value of that type.

    Raises:
        UsageError: it cannot be read, is no YAML, or does not fit: with file, line and column.
    """
    return read_typed(path, kind).value


def read_typed(path: Path, kind: type[T]) -> Typed[T]:
    """As `load_typed`, with the places of all values, for checks of one's own."""
    try:
        text = read_file(path, 4 * MOST_CHARACTERS).decode()
    except OSError as err:
        raise UsageError(f"cannot read {path}: {err.strerror or err}") from err
    except ValueError as err:
        raise UsageError(f"{path} is not UTF-8 text: {err}") from err
    return _typed(Document(text, str(path)), kind)


def decode(text: str, kind: type[T], *, name: str) -> T:
    """As `load_typed`, of a text.

    Args:
        text: YAML.
        kind: see there.
        name: what messages call it.
    """
    return _typed(Document(text, name), kind).value


def _typed(document: Document, kind: type[T]) -> Typed[T]:
    try:
        return Typed(msgspec.convert(document.value, kind), document)
    except msgspec.ValidationError as err:
        raise _Misfit(document, kind, str(err)).error() from err


class _Misfit:
    """One complaint of msgspec's, said with its place and in words.

    Args:
        document: that does not fit.
        kind: what it should be.
        said: msgspec's words.
    """

    def __init__(self, document: Document, kind: type[Any], said: str) -> None:
        self._document = document
        self._kind = kind
        self._whole = said
        place = _PLACE.search(said)
        self._said = said if place is None else said[: place.start()]
        self._steps = tuple(self._way("" if place is None else place["way"]))
        self._key = self._culprit(self._steps) if place is not None and place["key"] else None

    def error(self) -> UsageError:
        """What to tell the user."""
        if match := _UNKNOWN.fullmatch(self._said):
            return self._unknown(match["name"])
        if match := _MISSING.fullmatch(self._said):
            choices = self._choices(match["name"])
            described = " or ".join(self._described(match["name"]))
            hint = f"known: {', '.join(choices)}" if choices else described and f"add {described}"
            return self._refuse(f"'{match['name']}' is missing", hint=hint)
        if self._said.startswith(("Invalid enum value", "Invalid value")):
            written, choices = self._document.written(self._steps), self._choices()
            known = f"'{written}' is none of {', '.join(choices)}" if choices else self._said
            return self._refuse(known, hint=guess(written, choices))
        if match := _EXPECTED.fullmatch(self._said):
            return self._unexpected(match)
        return self._refuse(self._said)

    def _refuse(self, message: str, *, hint: str = "", key: str | None = None) -> UsageError:
        return self._document.refuse(self._steps, message, hint=hint, key=key or self._key)

    def _unknown(self, name: str) -> UsageError:
        known = [key for struct in _structs(self._info(), self._value()) for key in _keys(struct)]
        return self._refuse(f"unknown key '{name}'", hint=suggestion(name, known), key=name)

    def _unexpected(self, match: re.Match[str]) -> UsageError:
        kinds = match["kinds"].split(" | ")
        info = self._info()
        kinds_meant = [info] if self._key is None else [*_key_types(info)]
        described = list(dict.fromkeys(text for one in kinds_meant for text in _descriptions(one)))
        plain = " or ".join(_WORDS.get(kind, kind) for kind in kinds) + match["bound"]
        wanted = " or ".join(described) or plain
        value = self._value()
        if self._key is not None:
            return self._refuse(f"the key '{self._key}' should be {wanted}")
        if not self._steps and value is None:
            return self._refuse("the file is empty")
        hint = self._with_unit(value) or self._advice(kinds, value)
        return self._refuse(f"expected {wanted}, found {self._found(value)}", hint=hint)

    def _found(self, value: object) -> str:
        written = self._document.written(self._steps)
        if value is None:
            return "nothing"
        if isinstance(value, bool):
            return written
        if isinstance(value, int | float):
            return f"the number {written}"
        return f"'{written}'" if isinstance(value, str) else written

    def _advice(self, kinds: list[str], value: object) -> str:
        """How to write what was probably meant."""
        written = self._document.written(self._steps)
        if isinstance(value, bool | int | float):
            if "array" in kinds and "str" not in kinds:
                return f"write [{written}]"
            # A pattern would refuse the text, too, unless that is what was meant: 8.10 is no 8.1.
            return (
                f"text that looks like a number or truth needs quotes: '{written}'" if "str" in kinds else ""
            )
        if isinstance(value, str):
            if kinds == ["bool"]:
                return "write true or false"
            if {"int", "float"} & set(kinds) and re.fullmatch(r"[0-9.]+", value):
                return f"leave the quotes out: {written}"
            return f"write [{written}]" if kinds == ["array"] else ""
        return ""

    def _with_unit(self, value: object) -> str:
        """How to write an amount that only lacks its unit."""
        patterns = list(_patterns(self._info()))
        if not patterns or isinstance(value, bool) or not isinstance(value, int | float | str):
            return ""
        amounts = [f"{self._document.written(self._steps)}{unit}" for unit in _UNITS]
        found = [one for one in amounts if any(re.search(pattern, one) for pattern in patterns)]
        return f"write {' or '.join(found)}" if found else ""

    def _described(self, field: str) -> list[str]:
        """What a missing key of the mapping here should be, where its type has words of its own for that."""
        structs = _structs(self._info(), self._value())
        fields = [one for struct in structs for one in struct.fields if one.encode_name == field]
        return list(dict.fromkeys(text for one in fields for text in _descriptions(one.type)))

    def _choices(self, field: str | None = None) -> list[str]:
        """The words that may stand at a place: of a literal, or the tags of a union.

        Args:
            field: of the mapping there that is meant; None for the place itself.
        """
        info = self._info()
        if field is None:
            literals = [one for one in _members(info) if isinstance(one, inspect.LiteralType)]
            if literals or not self._steps:
                return [str(word) for one in literals for word in one.values]
            field = str(self._steps[-1])
            info = _kind_at(inspect.type_info(self._kind), self._steps[:-1], self._document.value)
        structs = [one for one in _members(info) if isinstance(one, inspect.StructType)]
        return [str(one.tag) for one in structs if one.tag_field == field]

    def _value(self) -> Any:  # noqa: ANN401 - any YAML
        return _at(self._document.value, self._steps)

    def _info(self) -> inspect.Type:
        return _kind_at(inspect.type_info(self._kind), self._steps, self._document.value)

    def _way(self, way: str) -> Iterator[Step]:
        """Steps of msgspec's path; it leaves the keys of mappings out: `$.margins[...]`."""
        steps: tuple[Step, ...] = ()
        for match in _STEP.finditer(way):
            if match["field"] is not None:
                step: Step | None = match["field"]
            elif match["entry"] is not None:
                step = int(match["entry"])
            else:
                step = self._culprit(steps)
            if step is None:
                return
            steps = (*steps, step)
            yield step

    def _culprit(self, steps: tuple[Step, ...]) -> str | None:
        """The key of a mapping with which alone the complaint stays the same."""
        for key in _at(self._document.value, steps):
            try:
                msgspec.convert(_only(self._document.value, steps, key), self._kind)
            except msgspec.ValidationError as err:
                if str(err) == self._whole:
                    return str(key)
        return None


def _only(value: Any, steps: tuple[Step, ...], key: str) -> Any:  # noqa: ANN401 - any YAML
    """A value with one key alone in the mapping at a place."""
    if not steps:
        return {key: value[key]}
    step, *rest = steps
    inner = _only(value[step], tuple(rest), key)
    if isinstance(value, dict):
        return {**value, step: inner}
    return [inner if place == step else one for place, one in enumerate(value)]


def _at(value: Any, steps: Iterable[Step]) -> Any:  # noqa: ANN401 - any YAML
    for step in steps:
        value = value[step]
    return value


def _kind_at(info: inspect.Type, steps: Iterable[Step], value: Any) -> inspect.Type:  # noqa: ANN401 - any YAML
    """What a type wants at a place within it; anything where the type does not say."""
    for step in steps:
        info = next(_inner(info, step, value), inspect.AnyType())
        value = value[step]
    return info


def _inner(info: inspect.Type, step: Step, value: object) -> Iterator[inspect.Type]:
    yield from (
        field.type for struct in _structs(info, value) for field in struct.fields if field.encode_name == step
    )
    for one in _members(info):
        if isinstance(one, inspect.DictType) and isinstance(step, str):
            yield one.value_type
        elif isinstance(one, inspect.ListType | inspect.VarTupleType) and isinstance(step, int):
            yield one.item_type
        elif isinstance(one, inspect.TupleType) and isinstance(step, int) and step < len(one.item_types):
            yield one.item_types[step]


def _structs(info: inspect.Type, value: object) -> Iterator[inspect.StructType]:
    """Those members of a type that a mapping is meant to be: by its tag where there is one."""
    if not isinstance(value, dict):
        return
    for one in _members(info):
        if isinstance(one, inspect.StructType) and (
            one.tag_field is None or value.get(one.tag_field) == one.tag
        ):
            yield one


def _keys(struct: inspect.StructType) -> list[str]:
    tag = [] if struct.tag_field is None else [struct.tag_field]
    return [*tag, *(field.encode_name for field in struct.fields)]


def _members(info: inspect.Type) -> Iterator[inspect.Type]:
    """The types of a union, or the type itself, without what is only said about it."""
    if isinstance(info, inspect.Metadata):
        yield from _members(info.type)
    elif isinstance(info, inspect.UnionType):
        for one in info.types:
            yield from _members(one)
    else:
        yield info


def _key_types(info: inspect.Type) -> Iterator[inspect.Type]:
    """What the keys of a mapping should be."""
    for one in _members(info):
        if isinstance(one, inspect.DictType):
            yield one.key_type


def _patterns(info: inspect.Type) -> Iterator[str]:
    """What texts of a type have to match."""
    for one in _members(info):
        if isinstance(one, inspect.StrType) and one.pattern is not None:
            yield one.pattern


def _descriptions(info: inspect.Type) -> Iterator[str]:
    """What the members of a type call their values, where they have words of their own for them."""
    if isinstance(info, inspect.Metadata):
        text = (info.extra_json_schema or {}).get("description")
        if text:
            yield text
        else:
            yield from _descriptions(info.type)
    elif isinstance(info, inspect.UnionType):
        for one in info.types:
            if not isinstance(one, inspect.NoneType):
                yield from _descriptions(one)
