"""YAML into plain values, each with its place; what readers of YAML disagree about is refused."""

import math
import re
from typing import Any, Final

import yaml

from benchctl.errors import UsageError

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
        UsageError: it is no YAML, or holds what is refused: a key twice in a mapping, tags, several
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
        UsageError: a key stands twice, is no word, or a merge is of something else than mappings.
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

    def value(self, node: yaml.Node, around: tuple[yaml.Node, ...]) -> Any:  # noqa: ANN401 - any YAML
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

    def _scalar(self, node: yaml.ScalarNode) -> Any:  # noqa: ANN401 - None, bool, int, float or str
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

    def _by_yaml_1_1(self, node: yaml.ScalarNode) -> Any:  # noqa: ANN401 - also a date
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
