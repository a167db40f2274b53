"""Sending documents to a node or cluster that is being prepared: parcel after parcel, in bulk."""

from collections.abc import Callable, Iterator, Sequence

from benchctl.corpus.bulk import frame_bodies, frame_created, frame_lines
from benchctl.corpus.documents import Range, within
from benchctl.endpoint import Endpoint
from benchctl.engine.filling import Sent
from benchctl.load.ingest import Checkpoints, Stream, ingest
from benchctl.run.documents import Parcel

MOST_DOCUMENTS_PER_BODY = 2000
# Nodes take 100 MB; bodies of a tenth are as fast, and a few of them are in memory at a time.
MOST_BODY_BYTES = 8_000_000


def send_parcels(
    parcels: Sequence[Parcel],
    *,
    endpoint: Endpoint,
    clients: int,
    on_progress: Callable[[int], None],
    checkpoints: Checkpoints | None = None,
) -> Sent:
    """Send all documents, in order, each body by the next free client.

    Args:
        parcels: what goes where; their documents are numbered through.
        endpoint: of the node or cluster.
        clients: concurrent senders.
        on_progress: told the number of documents acknowledged so far.
        checkpoints: which documents are still to be sent, and how to put them by; None for all of them, and
            for losing them in an interruption.

    Raises:
        BenchctlError: the node refused documents or went away, or documents cannot be read.
    """
    missing = (
        [(0, sum(parcel.documents for parcel in parcels))] if checkpoints is None else checkpoints.missing
    )
    done = ingest(
        _streams(parcels, missing),
        endpoint=endpoint,
        clients=clients,
        on_progress=on_progress,
        checkpoints=checkpoints,
    )
    return Sent(done.documents, done.body_bytes, done.seconds, done.checkpoint_s)


def _streams(parcels: Sequence[Parcel], missing: Sequence[Range]) -> Iterator[Stream]:
    """The missing documents, each parcel's to where they go."""
    first = 0
    for parcel in parcels:
        for start, stop in within(missing, first, first + parcel.documents):
            yield parcel.target, bodies(parcel, start - first, stop - first)
        first += parcel.documents


def bodies(parcel: Parcel, start: int = 0, stop: int | None = None) -> Iterator[tuple[int, bytes]]:
    """Documents [start, stop) of a parcel as bodies of bulk requests; all of them unless told otherwise.

    Yields:
        (documents, body).
    """
    per_body = MOST_DOCUMENTS_PER_BODY
    if parcel.bytes_each > 0:
        per_body = max(1, min(per_body, int(MOST_BODY_BYTES / parcel.bytes_each)))
    blocks = parcel.reader(start, stop)
    if parcel.has_actions:
        return frame_bodies(blocks, per_body, framing=frame_lines, lines_each=2)
    return frame_bodies(blocks, per_body, framing=frame_created if parcel.data_stream else None)
