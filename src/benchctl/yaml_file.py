"""YAML that people write for benchctl into typed models: strict, with file, line and words in every error."""

import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final, Generic, TypeVar

import msgspec
import yaml
from msgspec import Meta, inspect

from benchctl.disk import read_file
from benchctl.errors import UsageError
from benchctl.nearest import guess, suggestion

MOST_CHARACTERS: Final = 256 * 1024
"""Of a file: people write these by hand, and PyYAML takes seconds for more."""

MOST_VALUES: Final = 20_000
"""In a file, with what aliases repeat: a few lines of aliases of aliases would fill the memory."""

MOST_LEVELS: Final = 50

Step = str | int
"""A key of a mapping, or a position in a list, from 0."""

Pairs = dict[str, tuple[yaml.Node, yaml.Node]]
"""The key and value nodes of a mapping, by the text of the key."""

_TAG: Final = "tag:yaml.org,2002:"
_NULLS: Final = frozenset({"", "~", "null", "Null", "NULL"})
_BOOLS: Final = {text: text.lower() == "true" for text in ("true", "True", "TRUE", "false", "False", "FALSE")}
_INT: Final = re.compile(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+", re.ASCII)
_FLOAT: Final = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?", re.ASCII)
_NOT_FINITE: Final = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
# Written as escapes: names of files and messages cannot hold them.
_NO_TEXT: Final = re.compile("[\\x00\\ud800-\\udfff]")
# What needs no quotes within [ ]: a comma would end it.
_PLAIN_ENTRY: Final = re.compile(r"[\w./@+=:-]+")
_MOST_DIGITS: Final = 300  # more is beyond all number types
_MOST_SHOWN: Final = 60


class Document:
    """One YAML file.

    Args:
        text: of the file.
        name: of the file, for messages.

    Attributes:
        name: the same.
        unfolded, merged: mappings with what they merge, and how much that was; `pairs` keeps them.
        value: None, bool, int, float, str, list and dict of these; keys are always text, as written.

    Raises:
        UsageError: it is not YAML, or holds what is refused: a key twice in a mapping, tags, several
            documents, a value that YAML 1.1 and 1.2 read differently (`no`, `23:00`, `010`), too much.
    """

    def __init__(self, text: str, name: str) -> None:
        self.name = name
        if len(text) > MOST_CHARACTERS:
            raise UsageError(f"{name} has {len(text):,} characters; {MOST_CHARACTERS:,} are the most")
        # What merges unfold to is kept: merges of merges would take longer than anybody waits.
        self.unfolded: dict[yaml.Node, Pairs] = {}
        self.merged = 0
        self._root = _composed(text, name)
        self.value: Any = None if self._root is None else _Reader(self).value(self._root, ())

    def refuse(
        self, steps: tuple[Step, ...], message: str, *, hint: str = "", key: str | None = None
    ) -> UsageError:
        """A complaint about a value, with file, line, column and the way to it in words.

        Args:
            steps: the way to the value, from the top.
            message: what is wrong, in a sentence without its end.
            hint: what to do.
            key: of the mapping there that is meant.
        """
        line, column = self.place(steps, key)
        way = in_words(steps)
        said = f"{way}: {message}" if way else message
        return UsageError(f"{self.name}:{line}:{column}: {said}", hint=hint)

    def place(self, steps: tuple[Step, ...], key: str | None = None) -> tuple[int, int]:
        """Line and column of a value, both from 1; of the nearest thing around it where it is not there.

        Args:
            steps: the way to it.
            key: of the mapping there, whose own place is wanted.
        """
        if self._root is None:
            return 1, 1
        node = self._root
        for step in steps:
            inner = self._inner(node, step)
            if inner is None:
                return _place(node)
            node = inner
        if key is not None and isinstance(node, yaml.MappingNode):
            pair = pairs(node, self).get(key)
            return _place(node if pair is None else pair[0])
        return _place(node)

    def written(self, steps: tuple[Step, ...]) -> str:
        """A value as its file has it, for messages; a list or mapping in a word."""
        node = self._root
        for step in steps:
            node = None if node is None else self._inner(node, step)
        if isinstance(node, yaml.ScalarNode):
            return shown(node.value)
        return "a list" if isinstance(node, yaml.SequenceNode) else "a mapping"

    def _inner(self, node: yaml.Node, step: Step) -> yaml.Node | None:
        if isinstance(node, yaml.MappingNode) and isinstance(step, str):
            pair = pairs(node, self).get(step)
            return None if pair is None else pair[1]
        if isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
            inner: yaml.Node = node.value[step]
            return inner
        return None


def in_words(steps: tuple[Step, ...]) -> str:
    """The way to a value: `variants, entry 2, jdk`."""
    return ", ".join(f"entry {step + 1}" if isinstance(step, int) else shown(step) for step in steps)


def shown(text: str) -> str:
    """A text for a message: on one line, not too long."""
    one_line = " ".join("".join(char if char.isprintable() else " " for char in text).split())
    return one_line if len(one_line) <= _MOST_SHOWN else f"{one_line[: _MOST_SHOWN - 3]}..."


def pairs(node: yaml.MappingNode, document: Document, levels: int = 0) -> Pairs:
    """A mapping's keys and values; those of a merge (`<<`) go behind its own and give way to them.

    Raises:
        UsageError: a key stands twice, is not a word, or a merge is of something else than mappings.
    """
    if node in document.unfolded:
        return document.unfolded[node]
    own: Pairs = {}
    merged: list[yaml.Node] = []
    for key, value in node.value:
        if not isinstance(key, yaml.ScalarNode):
            raise _refused(document, key, "a key must be a word", "is there a { or [ that should not be?")
        if key.value == "<<" and key.style is None:
            merged += value.value if isinstance(value, yaml.SequenceNode) else [value]
        elif key.value in own:
            first, _ = _place(own[key.value][0])
            raise _refused(
                document, key, f"'{shown(key.value)}' stands twice, first in line {first}", "leave one out"
            )
        else:
            own[key.value] = (key, value)
    for other in merged:
        if not isinstance(other, yaml.MappingNode) or levels >= MOST_LEVELS:
            raise _refused(document, other, "<< takes a mapping, or a list of them", "write <<: *NAME")
        more = pairs(other, document, levels + 1)
        document.merged += len(more) + 1
        if document.merged > MOST_VALUES:
            raise _refused(document, other, f"<< repeats more than {MOST_VALUES:,} values", "repeat less")
        own = {**more, **own}
    document.unfolded[node] = own
    return own


class _Reader:
    """Values of a document's nodes."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self._left = MOST_VALUES
        self._constructor = yaml.constructor.SafeConstructor()

    def value(self, node: yaml.Node, around: tuple[yaml.Node, ...]) -> Any:
        """What a node holds.

        Args:
            node: to be read.
            around: the nodes that it stands in.
        """
        self._left -= 1
        if self._left < 0:
            raise self._refuse(node, f"there are more than {MOST_VALUES:,} values", "repeat less by aliases")
        if node in around:
            raise self._refuse(node, "it holds itself", "an alias cannot stand within its own anchor")
        if len(around) >= MOST_LEVELS:
            raise self._refuse(node, f"it is nested more than {MOST_LEVELS} levels deep")
        if isinstance(node, yaml.ScalarNode):
            return self._scalar(node)
        self._refuse_tag(node, "map" if isinstance(node, yaml.MappingNode) else "seq")
        inside = (*around, node)
        if isinstance(node, yaml.MappingNode):
            found = pairs(node, self._document)
            return {key: self.value(inner, inside) for key, (_, inner) in found.items()}
        return [self.value(inner, inside) for inner in node.value]

    def _scalar(self, node: yaml.ScalarNode) -> Any:
        text = node.value
        if _NO_TEXT.search(text):
            raise self._refuse(
                node, f"{shown(ascii(text))} holds a character that no text can", "leave it out"
            )
        plain = node.style is None
        if node.tag == f"{_TAG}str" and (not plain or _meaning_by_yaml_1_1(text) != f"{_TAG}str"):
            return text
        self._refuse_tag(node, _meaning_by_yaml_1_1(text).removeprefix(_TAG) if plain else "str")
        if _NOT_FINITE.fullmatch(text):
            raise self._refuse(node, f"{shown(text)} is not a finite number")
        newer = _by_yaml_1_2(text)
        older = self._by_yaml_1_1(node)
        if type(older) is not type(newer) or older != newer:
            raise self._disagreement(node, older, newer)
        return newer

    def _by_yaml_1_1(self, node: yaml.ScalarNode) -> Any:
        try:
            return self._constructor.construct_object(node)
        except (yaml.YAMLError, ValueError):  # such as `=`, or the 30th of February
            return _Unreadable()

    def _disagreement(self, node: yaml.ScalarNode, older: object, newer: object) -> UsageError:
        text = shown(node.value)
        readings = [_reading(older), _reading(newer)]
        numbers = [str(one).lower() for one in (older, newer) if isinstance(one, bool | int | float)]
        forms = [*dict.fromkeys(numbers), f"'{text}' in quotes for the text"]
        return self._refuse(
            node,
            f"{text} without quotes is {readings[0]} to some readers of YAML and {readings[-1]} to others",
            f"write {', or '.join(forms)}",
        )

    def _refuse_tag(self, node: yaml.Node, usual: str) -> None:
        if node.tag != f"{_TAG}{usual}":
            name = shown(node.tag.replace(_TAG, "!!"))
            raise self._refuse(node, f"the tag {name} means nothing here", "leave it out")

    def _refuse(self, node: yaml.Node, message: str, hint: str = "") -> UsageError:
        return _refused(self._document, node, message, hint)


class _Unreadable:
    """What YAML 1.1 would stumble over."""


def _composed(text: str, name: str) -> yaml.Node | None:
    try:
        root: yaml.Node | None = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.reader.ReaderError as err:
        line, column = text.count("\n", 0, err.position) + 1, err.position - text.rfind("\n", 0, err.position)
        raise UsageError(f"{name}:{line}:{column}: a character that YAML does not allow") from err
    except yaml.MarkedYAMLError as err:
        raise _broken(err, name) from err
    except RecursionError as err:
        raise UsageError(f"{name}: something in it is nested too deeply") from err
    return root


def _broken(err: yaml.MarkedYAMLError, name: str) -> UsageError:
    mark = err.problem_mark or err.context_mark
    place = name if mark is None else f"{name}:{mark.line + 1}:{mark.column + 1}"
    said = ": ".join(part for part in (err.context, err.problem) if part)
    hint = "indent with spaces" if "\\t" in said else "put text with a : # { [ * & ! % @ or ` in it in quotes"
    return UsageError(f"{place}: this is not YAML: {said}", hint=hint)


def _refused(document: Document, node: yaml.Node, message: str, hint: str = "") -> UsageError:
    line, column = _place(node)
    return UsageError(f"{document.name}:{line}:{column}: {message}", hint=hint)


def _place(node: yaml.Node) -> tuple[int, int]:
    return node.start_mark.line + 1, node.start_mark.column + 1


def _meaning_by_yaml_1_1(text: str) -> str:
    """The tag that a scalar without quotes gets."""
    known = yaml.SafeLoader.yaml_implicit_resolvers.get(text[:1], [])
    return next((str(tag) for tag, pattern in known if pattern.match(text)), f"{_TAG}str")


def _by_yaml_1_2(text: str) -> str | float | bool | None:
    """A scalar without quotes in the core schema of YAML 1.2."""
    if text in _NULLS:
        return None
    if text in _BOOLS:
        return _BOOLS[text]
    if _INT.fullmatch(text) and len(text) <= _MOST_DIGITS:
        prefixed = text[:2] in {"0o", "0x"}
        return int(text, 0) if prefixed else int(text)
    if _FLOAT.fullmatch(text) and math.isfinite(float(text)):
        return float(text)
    return text


def _reading(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return f"the number {value}"
    if isinstance(value, str):
        return "text"
    return "an error" if isinstance(value, _Unreadable) else "a date"


# Amounts as people write them into YAML: times, sizes, shares, numbers of documents.

Duration = Annotated[
    str, Meta(pattern=r"^[0-9]{1,9}(\.[0-9]{1,9})?(s|m|h)$", description="a time such as 90s, 30m or 2h")
]
HeapSize = Annotated[str, Meta(pattern=r"^[0-9]{1,9}[mMgG]$", description="a heap size such as 512m or 4g")]
Percent = Annotated[
    str, Meta(pattern=r"^[0-9]{1,9}(\.[0-9]{1,9})? ?%$", description="a percentage such as 3% or 0.5%")
]
Documents = Annotated[
    str,
    Meta(
        pattern=r"^[0-9]+(_[0-9]+)*(\.[0-9]+)?[kmbKMB]?$",
        description="a number of documents such as 300k, 1m or 20_000",
    ),
]

_SECONDS: Final = {"s": 1, "m": 60, "h": 3600}


def seconds(text: Duration) -> float:
    """A time, seconds."""
    return float(text[:-1]) * _SECONDS[text[-1]]


def mebibytes(text: HeapSize) -> int:
    """A heap size, MiB."""
    return int(text[:-1]) * (1024 if text[-1] in "gG" else 1)


def fraction(text: Percent) -> float:
    """A percentage, as a fraction of one."""
    return float(re.sub(r" ?%$", "", text)) / 100


# YAML values into msgspec's typed forms; what does not fit is said with its line and in words.

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
        UsageError: it cannot be read, is not YAML, or does not fit: with file, line and column.
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
        if match["bound"] == " of length >= 1" and value in ([], {}, ""):
            return self._refuse("it is empty", hint="" if wanted == plain else f"write {wanted}")
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
        if "object" in kinds and (value is None or isinstance(value, list)):
            return "write {} where all is as usual" if value is None else "write NAME: {...}, a line each"
        if isinstance(value, bool | int | float):
            # A pattern would refuse the text, too, unless that is what was meant: 8.10 is no 8.1.
            quoted = f"text that looks like a number or truth needs quotes: '{written}'"
            return quoted if "str" in kinds else f"write [{written}]" if "array" in kinds else ""
        if isinstance(value, str):
            if kinds == ["bool"]:
                return "write true or false"
            if {"int", "float"} & set(kinds) and re.fullmatch(r"[0-9.]+", value):
                return f"leave the quotes out: {written}"
            entry = written if _PLAIN_ENTRY.fullmatch(written) else f'"{written}"'
            return f"write [{entry}]" if {*kinds} - {"null"} == {"array"} else ""
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

    def _value(self) -> Any:
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


def _only(value: Any, steps: tuple[Step, ...], key: str) -> Any:
    """A value with one key alone in the mapping at a place."""
    if not steps:
        return {key: value[key]}
    step, *rest = steps
    inner = _only(value[step], tuple(rest), key)
    if isinstance(value, dict):
        return {**value, step: inner}
    return [inner if place == step else one for place, one in enumerate(value)]


def _at(value: Any, steps: Iterable[Step]) -> Any:
    for step in steps:
        value = value[step]
    return value


def _kind_at(info: inspect.Type, steps: Iterable[Step], value: Any) -> inspect.Type:
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
    for one in _members(info):
        if isinstance(one, inspect.DictType):
            yield one.key_type


def _patterns(info: inspect.Type) -> Iterator[str]:
    for one in _members(info):
        if isinstance(one, inspect.StrType) and one.pattern is not None:
            yield one.pattern


def _descriptions(info: inspect.Type) -> Iterator[str]:
    """What the members of a type call their values, where they have words of their own for them."""
    if isinstance(info, inspect.Metadata):
        text = (info.extra_json_schema or {}).get("description")
        # That of a setting is its help, which names no kind of value.
        if text and not info.extra:
            yield text
        else:
            yield from _descriptions(info.type)
    elif isinstance(info, inspect.UnionType):
        for one in info.types:
            if not isinstance(one, inspect.NoneType):
                yield from _descriptions(one)
