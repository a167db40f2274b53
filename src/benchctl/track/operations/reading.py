"""One operation as it stands in a file, into its typed form."""

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from benchctl.errors import UsageError
from benchctl.nearest import nearest, suggestion
from benchctl.track.model import TrackOperation
from benchctl.track.operations.catalogue import (
    OPERATION_KEYS,
    OPERATION_TYPES,
    AnyOperation,
    decode_operation,
)
from benchctl.track.operations.search import Varying
from benchctl.track.plugin import BUILT_IN_PARAM_SOURCES, Plugin, PluginOperation
from benchctl.track.template.document import Document, encoded_names, fitting_key, know, refused
from benchctl.track.values import check_values

_TYPE = "operation-type"
_SOURCE = "param-source"
# What is that similar to a type of benchctl's is one, mistyped. Plug-ins have types such as `eql` and
# `create-pipeline`, which are not much further away.
_LIKE = 0.87
# Of a plug-in's operation, those that mean what they mean everywhere.
_COMMON = ("name", "include-in-reporting", "meta", "tags")
_UNKNOWN_KEY = re.compile(r"Object contains unknown field `(?P<key>.*)`", re.DOTALL)

_LACKING = re.compile(r"Object missing required field `")

know([*OPERATION_KEYS, _TYPE, _SOURCE])


class IncompleteError(UsageError):
    """An operation lacks a key that it cannot be run without."""


def read_operation(
    raw: Any,  # noqa: ANN401 - JSON of any shape
    document: Document,
    where: str,
    *,
    plugin: Plugin | None = None,
) -> TrackOperation:
    """Read one operation; one without a name is called like its type, one without a type is a search.

    An operation whose type or parameter source is not benchctl's own becomes a PluginOperation in a lenient
    document, unless its type looks like a typing mistake and no plug-in mentions it.

    Args:
        raw: its JSON.
        document: that it stands in.
        where: its JSON path.
        plugin: the Python plug-in beside the track.

    Raises:
        UsageError: its type or a key is unknown, or a value is wrong.
    """
    if not isinstance(raw, Mapping):
        raise document.refuse(where, "an operation is an object")
    kind = raw.get(_TYPE, "search")
    own = isinstance(kind, str) and kind in OPERATION_TYPES
    if document.lenient and isinstance(kind, str):
        source = raw.get(_SOURCE)
        if source is not None and not isinstance(source, str):
            raise document.refuse(f"{where}.{_SOURCE}", "is no text")
        sourced = source is not None and source not in BUILT_IN_PARAM_SOURCES and source != kind
        mentioned = plugin is not None and plugin.mentions(kind)
        if sourced or (not own and (mentioned or nearest(kind, OPERATION_TYPES, alike=_LIKE) is None)):
            return _plugin_operation(raw, kind, document, where)
    if not own:
        raise _unknown_type(kind, document, where)
    keys = {key: value for key, value in raw.items() if key != _SOURCE or not document.lenient}
    operation = _decoded({"name": kind, **keys}, str(kind), document, where)
    if isinstance(operation, Varying) and (wrong := check_values(operation.values, operation.templates)):
        raise document.refuse(where, wrong)
    return operation


def _decoded(keys: dict[str, Any], kind: str, document: Document, where: str) -> AnyOperation:
    """Decode an operation, without its keys that are only comments or belong elsewhere."""
    while True:
        try:
            return decode_operation(keys)
        except msgspec.ValidationError as err:
            unknown = _UNKNOWN_KEY.fullmatch(str(err))
            if _LACKING.match(str(err)):
                found = refused(err, document, where)
                raise IncompleteError(found.message, hint=found.hint) from err
            if unknown is None or unknown["key"] not in keys:
                raise refused(err, document, where) from err
            known = encoded_names(OPERATION_TYPES[kind])
            fitting_key(unknown["key"], known, document, where, others=True)
            del keys[unknown["key"]]


def _plugin_operation(raw: Mapping[str, Any], kind: str, document: Document, where: str) -> PluginOperation:
    """An operation of which only the plug-in knows what its keys mean."""
    common = {key: raw[key] for key in _COMMON if key in raw}
    plain = {"name": kind, **common, "type": kind, _SOURCE: raw.get(_SOURCE), "params": dict(raw)}
    try:
        return msgspec.convert(plain, PluginOperation)
    except msgspec.ValidationError as err:
        raise refused(err, document, where) from err


def _unknown_type(kind: object, document: Document, where: str) -> UsageError:
    return document.refuse(
        f"{where}.{_TYPE}",
        f"benchctl has no operation type '{kind}'",
        hint=suggestion(str(kind), sorted(OPERATION_TYPES)),
    )
