"""Every operation type that benchctl knows, by the name that Rally and OpenSearch Benchmark give it."""

import contextlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache, reduce
from operator import or_
from pathlib import Path
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Any, Union, get_args, get_origin

import msgspec

from benchctl.track.operations import admin, composite, search, table
from benchctl.track.operations.common import Operation

_MODULES = (search, composite, admin, table)


def _declared() -> Iterator[type[Operation]]:
    """The classes that name a type; to those that types have in common msgspec gives the class's own name."""
    for module in _MODULES:
        for kind in vars(module).values():
            own = (
                isinstance(kind, type) and issubclass(kind, Operation) and kind.__module__ == module.__name__
            )
            if own and kind.__struct_config__.tag != kind.__name__:
                yield kind


OPERATION_TYPES: Mapping[str, type[Operation]] = {
    str(kind.__struct_config__.tag): kind for kind in _declared()
}
"""Rally's name of a type -> its class: what else knows types has them from here."""

if TYPE_CHECKING:
    AnyOperation = Operation
else:
    AnyOperation = reduce(or_, OPERATION_TYPES.values())

OPERATION_KEYS = sorted(
    {field.encode_name for kind in OPERATION_TYPES.values() for field in msgspec.structs.fields(kind)}
)

# Rally reads these, too, for keys that its documentation writes otherwise.
_OTHER_SPELLINGS = {"index_filter": "index-filter", "retries_on_429": "retry-on-429"}
_TYPE = "operation-type"
_COMPOSITE = str(composite.Composite.__struct_config__.tag)
_STREAM = str(composite.Stream.__struct_config__.tag)
_TRUTHS = {"true": True, "false": False}
_WHOLE = re.compile(r"[+-]?\d{1,18}", re.ASCII)
_FRACTION = re.compile(r"[+-]?\d{1,18}(\.\d{1,18})?", re.ASCII)


def decode_operation(raw: dict[str, Any]) -> AnyOperation:
    """Read an operation; one that names no type is a search, as in Rally's oldest tracks.

    Numbers may stand as texts of digits, which is what templates often make of parameters.

    Raises:
        msgspec.ValidationError: If a key is unknown, missing or of the wrong type.
    """
    prepared = _prepared({_TYPE: "search", **raw})
    # Of a class, msgspec remembers what it looks like; of a union it finds that out anew every time.
    kind: Any = _class_of(prepared) or AnyOperation
    operation: AnyOperation = msgspec.convert(prepared, kind)
    if not composite.stands_alone(operation):
        raise msgspec.ValidationError(
            f"{operation.type_name}: only a composite can have it among its requests"
        )
    return operation


def _prepared(raw: Mapping[str, Any]) -> dict[str, Any]:
    """An operation's keys as its class has them."""
    kind = _class_of(raw)
    renamed = {_OTHER_SPELLINGS.get(key, key): value for key, value in raw.items()}
    if kind is None:
        return renamed
    fields = _types(kind)
    prepared = {
        key: _number(value, fields.get(key))
        for key, value in renamed.items()
        if value is not None or _takes_null(fields.get(key))
    }
    requests = prepared.get("requests")
    if raw[_TYPE] == _COMPOSITE and isinstance(requests, list):
        prepared["requests"] = [_step(step) for step in requests]
    return prepared


def _class_of(raw: Mapping[str, Any]) -> type[Operation] | None:
    return OPERATION_TYPES.get(raw[_TYPE]) if isinstance(raw[_TYPE], str) else None


@cache
def _types(kind: type[Operation]) -> Mapping[str, Any]:
    """The type of each of a class's keys."""
    return {field.encode_name: field.type for field in msgspec.structs.fields(kind)}


def _takes_null(wanted: Any) -> bool:
    """Return whether null means something to a key; else it says nothing, as in Rally."""
    return wanted is None or not _plain_types(wanted).isdisjoint({Any, NoneType})


def _step(raw: object) -> object:
    """A part of a composite: as in Rally, a stream has no type, and an operation needs no name."""
    if not isinstance(raw, dict):
        return raw
    if "stream" in raw:
        steps = raw["stream"]
        stream = [_step(step) for step in steps] if isinstance(steps, list) else steps
        return {_TYPE: _STREAM, **raw, "stream": stream}
    return _prepared({"name": raw.get(_TYPE, ""), **raw}) if _TYPE in raw else raw


def _number(value: object, wanted: Any) -> object:
    """A text of digits as a number, and one of a truth as that, where a key takes those and no texts.

    A whole number may also be written as a fraction, such as the 2500.0 that a template computes.
    """
    if not isinstance(value, str | float):
        return value
    kinds = _plain_types(wanted)
    if isinstance(value, float):
        return int(value) if value.is_integer() and int in kinds and float not in kinds else value
    if str in kinds:
        return value
    if bool in kinds and value in _TRUTHS:
        return _TRUTHS[value]
    if int in kinds and _WHOLE.fullmatch(value):
        return int(value)
    return float(value) if float in kinds and _FRACTION.fullmatch(value) else value


def _plain_types(wanted: Any) -> frozenset[Any]:
    """The types that a union is made of, without what annotations add to them."""
    if hasattr(wanted, "__metadata__"):
        return _plain_types(wanted.__origin__)
    if get_origin(wanted) in {Union, UnionType}:
        return frozenset(plain for part in get_args(wanted) for plain in _plain_types(part))
    return frozenset({wanted})


BUILT_IN_PARAM_SOURCES = frozenset({"file-reader", "bulk", "search"})
"""Names under which a track may ask for what its operation type does anyway."""

FILE_NAMES = ("track.py", "workload.py")
"""Rally's and OpenSearch Benchmark's names of a plug-in's main file."""

_MOST_CHARACTERS = 2**22


@dataclass(frozen=True)
class Plugin:
    """The Python plug-in beside a track, which reading the track does not execute."""

    name: str  # of its main file
    text: str  # of all its files; only to see which names occur there

    def mentions(self, name: str) -> bool:
        """Return whether a name stands in it as a text, as it does where it is registered."""
        return f'"{name}"' in self.text or f"'{name}'" in self.text


def find_plugin(folder: Path) -> Plugin | None:
    """Find the plug-in of a track's directory."""
    name = next((name for name in FILE_NAMES if (folder / name).is_file()), None)
    if name is None:
        return None
    texts: list[str] = []
    for path in sorted(folder.glob("**/*.py")):
        with contextlib.suppress(OSError):
            if path.is_file():  # a pipe or a device would be read for ever
                with path.open(encoding="utf-8", errors="replace") as file:
                    texts.append(file.read(_MOST_CHARACTERS))
    return Plugin(name, "\n".join(texts))


class PluginOperation(Operation, frozen=True, kw_only=True, tag="plugin"):
    """An operation whose type or parameter source is not benchctl's own."""

    type: str  # its operation type, as the track calls it
    param_source: str | None = None  # what makes its parameters; None means the type's own way
    params: dict[str, Any] = msgspec.field(default_factory=dict)  # all that the track says about it

    @property
    def type_name(self) -> str:
        """The track's name of its type."""
        return self.type

    @property
    def reported(self) -> bool:
        """Return whether tables show it: yes unless the track says otherwise, as in Rally."""
        return self.include_in_reporting is not False

    @property
    def ends(self) -> bool:
        """Return whether it ends by itself: only its code knows, so a task may leave that to it."""
        return True

    @property
    def unit(self) -> str:
        """The unit of its throughput, unless its runner names one: that of other types of its name."""
        return OPERATION_TYPES.get(self.type, Operation).counts

    @property
    def lacks(self) -> str:
        """The thing that it needs and benchctl does not have, in words."""
        if self.param_source is not None:
            return f"param source '{self.param_source}'"
        return f"operation type '{self.type}'"
