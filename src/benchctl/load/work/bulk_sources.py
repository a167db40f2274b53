"""Which documents a bulk operation sends: of which corpora, and how many of each file."""

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from benchctl.errors import BenchctlError
from benchctl.load.workload import Source, WorkContext
from benchctl.track.operations.declared import Names, names_of
from benchctl.track.operations.search import Bulk


@dataclass(frozen=True)
class Portion:
    """The documents of a file that are sent, from its beginning.

    Attributes:
        source: the file.
        documents: how many.
    """

    source: Source
    documents: int


def sources_of(operation: Bulk, context: WorkContext) -> list[Source]:
    """The files that an operation takes documents from, in their order.

    Raises:
        BenchctlError: there are none.
    """
    if context.sources:
        found = [one for one in context.sources if _is_meant(operation, one)]
    elif context.documents is not None and operation.corpora is None:
        found = [Source(context.documents, context.document_count)]
    else:
        found = []
    if not found:
        asked = _asked(operation)
        raise BenchctlError(
            f"operation '{operation.name}' sends documents{asked}, and there is no corpus to take them from"
        )
    return found


def portions(operation: Bulk, sources: Sequence[Source]) -> list[Portion]:
    """How many documents of each file: a share of each in whole requests, rounded up, or the first so many.

    Raises:
        BenchctlError: more are asked for than there are.
    """
    wanted = operation.ingest_doc_count
    if wanted is None:
        return [Portion(one, _share(operation, one.document_count)) for one in sources]
    total = sum(one.document_count for one in sources)
    if wanted > total:
        raise BenchctlError(
            f"operation '{operation.name}': ingest-doc-count is {wanted:,}, and there are {total:,} documents"
        )
    found = []
    for one in sources:
        taken = min(wanted, one.document_count)
        found.append(Portion(one, taken))
        wanted -= taken
    return found


def _share(operation: Bulk, documents: int) -> int:
    bodies = math.ceil(documents / operation.bulk_size)
    return math.ceil(bodies * operation.ingest_percentage / 100) * operation.bulk_size


def _is_meant(operation: Bulk, source: Source) -> bool:
    return (
        _is_among(source.corpus, operation.corpora)
        and _is_among(source.index, operation.indices)
        and _is_among(source.data_stream, operation.data_streams)
    )


def _is_among(name: str | None, names: Names) -> bool:
    chosen: Collection[str] = names_of(names)
    return not chosen or name in chosen


def _asked(operation: Bulk) -> str:
    """What it asks for, in words."""
    keys = {
        "corpora": operation.corpora,
        "indices": operation.indices,
        "data-streams": operation.data_streams,
    }
    said = [f"{key} {', '.join(names_of(names))}" for key, names in keys.items() if names is not None]
    return f" of {' and '.join(said)}" if said else ""
