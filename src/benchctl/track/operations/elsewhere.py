"""Operation types that do not speak HTTP to a node: they load, and a task of them is unsupported."""

from typing import ClassVar

from benchctl.track.operations.search import Bulk, Search
from benchctl.track.operations.vectors import BulkVectorDataSet, VectorSearch


class ProtoBulk(Bulk, frozen=True, kw_only=True, tag="proto-bulk"):
    """A bulk request over gRPC.

    Attributes:
        document_format: how its documents are encoded.
    """

    speaks: ClassVar[str] = "gRPC"

    document_format: str | None = None


class ProtoSearch(Search, frozen=True, kw_only=True, tag="proto-search"):
    """A search over gRPC."""

    speaks: ClassVar[str] = "gRPC"


class ProtoVectorSearch(VectorSearch, frozen=True, kw_only=True, tag="proto-vector-search"):
    """A search for vectors over gRPC."""

    speaks: ClassVar[str] = "gRPC"


class ProtoBulkVectorDataSet(BulkVectorDataSet, frozen=True, kw_only=True, tag="proto-bulk-vector-data-set"):
    """Vectors of a data set over gRPC."""

    speaks: ClassVar[str] = "gRPC"


class ProduceStreamMessage(Bulk, frozen=True, kw_only=True, tag="produce-stream-message"):
    """Documents of the corpus into a stream that the node reads."""

    speaks: ClassVar[str] = "the protocol of a message broker"


Elsewhere = ProtoBulk | ProtoSearch | ProtoVectorSearch | ProtoBulkVectorDataSet | ProduceStreamMessage
"""Operations that benchctl has no way to send; each says what it would have to speak."""
