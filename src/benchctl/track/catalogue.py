"""Every operation type that benchctl can run, by Rally's name."""

from types import UnionType
from typing import Any, get_args

import msgspec

from benchctl.track import admin
from benchctl.track.operation import (
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
    | admin.ForceMerge
    | admin.Refresh
    | admin.Flush
    | admin.ClusterHealth
    | admin.IndexStats
    | admin.NodeStats
    | admin.PutSettings
    | admin.CreateIndex
    | admin.DeleteIndex
    | admin.CreateDataStream
    | admin.DeleteDataStream
    | admin.CreateIndexTemplate
    | admin.DeleteIndexTemplate
    | admin.CreateComposableTemplate
    | admin.DeleteComposableTemplate
    | admin.CreateComponentTemplate
    | admin.DeleteComponentTemplate
    | admin.PutPipeline
    | admin.CreateSnapshotRepository
    | admin.DeleteSnapshotRepository
    | admin.CreateSnapshot
    | admin.RestoreSnapshot
    | admin.WaitForSnapshotCreate
    | admin.WaitForRecovery
    | admin.FieldCaps
    | admin.Sql
    | admin.Esql
)


def _classes(union: UnionType) -> dict[str, type[Operation]]:
    return {str(kind.__struct_config__.tag): kind for kind in get_args(union)}


OPERATION_TYPES = _classes(AnyOperation)
"""Rally's name of a type -> its class."""

OPERATION_KEYS = sorted(
    {field.encode_name for kind in OPERATION_TYPES.values() for field in msgspec.structs.fields(kind)}
)


def decode_operation(raw: dict[str, Any]) -> AnyOperation:
    """Read an operation; one that names no type is a search, as in Rally's oldest tracks.

    Raises:
        msgspec.ValidationError: a key is unknown, missing or of the wrong type.
    """
    operation: AnyOperation = msgspec.convert({"operation-type": "search", **raw}, AnyOperation)
    return operation
