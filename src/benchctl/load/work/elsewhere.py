"""Operations that benchctl cannot ask whatever the node is: their tasks are unsupported, and say why."""

from benchctl.load.request import Answer
from benchctl.load.workload import Numbered, Script, Workload, WorkOrder
from benchctl.results.samples import Outcome
from benchctl.track.operations.search import BulkVectorDataSet, Elsewhere, VectorSearch


def open_elsewhere(operation: Elsewhere, order: WorkOrder) -> Workload:
    """A request over something else than HTTP."""
    return cannot(f"{operation.type_name} speaks {operation.speaks}: benchctl speaks HTTP", order)


def open_data_set(operation: VectorSearch | BulkVectorDataSet, order: WorkOrder) -> Workload:
    """Vectors out of a file."""
    return cannot(f"{operation.type_name} takes vectors from a data set: benchctl reads none", order)


def cannot(reason: str, order: WorkOrder) -> Workload:
    """Work of which nothing is sent.

    Args:
        reason: why not, as tables show it.
        order: for whom.
    """
    return Numbered(lambda _number: lacking(reason), order.clients)


def lacking(reason: str) -> Script:
    """One operation of which nothing is sent, for a reason."""
    yield from ()
    return Answer(Outcome.HTTP_ERROR, reason=reason, lacking=reason)
