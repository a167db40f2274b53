"""Every operation type that benchctl knows, by the name that Rally and OpenSearch Benchmark give it."""

import re
from collections.abc import Mapping
from functools import cache
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin

import msgspec

from benchctl.track.operations import (
    admin,
    declared,
    elsewhere,
    languages,
    machine_learning,
    streams,
    transforms,
    vectors,
)
from benchctl.track.operations.search import (
    Bulk,
    CompositeAgg,
    MultiSearch,
    Operation,
    PaginatedSearch,
    RawRequest,
    ScrollSearch,
    Search,
    Sleep,
)

AnyOperation = (
    Search
    | PaginatedSearch
    | ScrollSearch
    | CompositeAgg
    | MultiSearch
    | RawRequest
    | Bulk
    | Sleep
    | vectors.VectorSearch
    | vectors.BulkVectorDataSet
    | languages.Sql
    | languages.Esql
    | languages.EsqlProfile
    | streams.Composite
    | streams.OpenPointInTime
    | streams.CreatePointInTime
    | streams.ClosePointInTime
    | streams.DeletePointInTime
    | streams.ListAllPointInTime
    | streams.SubmitAsyncSearch
    | streams.GetAsyncSearch
    | streams.DeleteAsyncSearch
    | admin.ForceMerge
    | admin.Refresh
    | admin.Flush
    | admin.ClusterHealth
    | admin.IndexStats
    | admin.NodeStats
    | admin.PutSettings
    | admin.UpdateConcurrentSegmentSearchSettings
    | admin.PutPipeline
    | admin.DeletePipeline
    | admin.CreateSearchPipeline
    | admin.CreateSnapshotRepository
    | admin.DeleteSnapshotRepository
    | admin.CreateSnapshot
    | admin.RestoreSnapshot
    | admin.WaitForSnapshotCreate
    | admin.WaitForCurrentSnapshotsCreate
    | admin.WaitForRecovery
    | admin.FieldCaps
    | admin.RunUntil
    | declared.CreateIndex
    | declared.DeleteIndex
    | declared.CreateDataStream
    | declared.DeleteDataStream
    | declared.CreateIndexTemplate
    | declared.DeleteIndexTemplate
    | declared.CreateComposableTemplate
    | declared.DeleteComposableTemplate
    | declared.CreateComponentTemplate
    | declared.DeleteComponentTemplate
    | transforms.CreateTransform
    | transforms.StartTransform
    | transforms.WaitForTransform
    | transforms.DeleteTransform
    | transforms.TransformStats
    | transforms.CreateIlmPolicy
    | transforms.DeleteIlmPolicy
    | transforms.Downsample
    | transforms.ShrinkIndex
    | machine_learning.CreateMlDatafeed
    | machine_learning.DeleteMlDatafeed
    | machine_learning.StartMlDatafeed
    | machine_learning.StopMlDatafeed
    | machine_learning.CreateMlJob
    | machine_learning.DeleteMlJob
    | machine_learning.OpenMlJob
    | machine_learning.CloseMlJob
    | machine_learning.RegisterMlModel
    | machine_learning.DeployMlModel
    | machine_learning.DeleteMlModel
    | machine_learning.CreateMlConnector
    | machine_learning.DeleteMlConnector
    | machine_learning.RegisterRemoteMlModel
    | machine_learning.TrainKnnModel
    | machine_learning.DeleteKnnModel
    | elsewhere.ProtoBulk
    | elsewhere.ProtoSearch
    | elsewhere.ProtoVectorSearch
    | elsewhere.ProtoBulkVectorDataSet
    | elsewhere.ProduceStreamMessage
)


def _classes(union: UnionType) -> dict[str, type[Operation]]:
    return {str(kind.__struct_config__.tag): kind for kind in get_args(union)}


OPERATION_TYPES = _classes(AnyOperation)
"""Rally's name of a type -> its class."""

OPERATION_KEYS = sorted(
    {field.encode_name for kind in OPERATION_TYPES.values() for field in msgspec.structs.fields(kind)}
)

# Rally reads these, too, for keys that its documentation writes otherwise.
_OTHER_SPELLINGS = {"index_filter": "index-filter", "retries_on_429": "retry-on-429"}
_TYPE = "operation-type"
_COMPOSITE = str(streams.Composite.__struct_config__.tag)
_STREAM = str(streams.Stream.__struct_config__.tag)
_TRUTHS = {"true": True, "false": False}
_WHOLE = re.compile(r"[+-]?\d{1,18}", re.ASCII)
_FRACTION = re.compile(r"[+-]?\d{1,18}(\.\d{1,18})?", re.ASCII)


def decode_operation(raw: dict[str, Any]) -> AnyOperation:
    """Read an operation; one that names no type is a search, as in Rally's oldest tracks.

    Numbers may stand as texts of digits, which is what templates often make of parameters.

    Raises:
        msgspec.ValidationError: a key is unknown, missing or of the wrong type.
    """
    prepared = _prepared({_TYPE: "search", **raw})
    # Of a class, msgspec remembers what it looks like; of a union it finds that out anew every time.
    kind: Any = _class_of(prepared) or AnyOperation
    operation: AnyOperation = msgspec.convert(prepared, kind)
    if not streams.stands_alone(operation):
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
    found = {
        key: _number(value, fields.get(key))
        for key, value in renamed.items()
        if value is not None or _takes_null(fields.get(key))
    }
    requests = found.get("requests")
    if raw[_TYPE] == _COMPOSITE and isinstance(requests, list):
        found["requests"] = [_step(step) for step in requests]
    return found


def _class_of(raw: Mapping[str, Any]) -> type[Operation] | None:
    return OPERATION_TYPES.get(raw[_TYPE]) if isinstance(raw[_TYPE], str) else None


@cache
def _types(kind: type[Operation]) -> Mapping[str, Any]:
    """The type of each of a class's keys."""
    return {field.encode_name: field.type for field in msgspec.structs.fields(kind)}


def _takes_null(wanted: Any) -> bool:  # noqa: ANN401 - any type
    """Whether null means something to a key; else it says nothing, as in Rally."""
    return wanted is None or not _plain_types(wanted).isdisjoint({Any, NoneType})


def _step(raw: object) -> object:
    """A part of a composite: as in Rally, a stream has no type, and an operation needs no name."""
    if not isinstance(raw, dict):
        return raw
    if "stream" in raw:
        steps = raw["stream"]
        known = [_step(step) for step in steps] if isinstance(steps, list) else steps
        return {_TYPE: _STREAM, **raw, "stream": known}
    return _prepared({"name": raw.get(_TYPE, ""), **raw}) if _TYPE in raw else raw


def _number(value: object, wanted: Any) -> object:  # noqa: ANN401 - any type
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


def _plain_types(wanted: Any) -> frozenset[Any]:  # noqa: ANN401 - any type
    """The types that a union is made of, without what annotations add to them."""
    if hasattr(wanted, "__metadata__"):
        return _plain_types(wanted.__origin__)
    if get_origin(wanted) in {Union, UnionType}:
        return frozenset(plain for part in get_args(wanted) for plain in _plain_types(part))
    return frozenset({wanted})
