"""Filling what a track declares: made on a node, sent its documents, merged, and committed to its disk."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from benchctl.engine.client import SearchClient
from benchctl.engine.declared import make_all
from benchctl.engine.prepared.index import IndexKey
from benchctl.engine.prepared.partial import NO_CLOCKS, EngineClocks
from benchctl.engine.prepared.settling import settle
from benchctl.errors import BenchctlError
from benchctl.results.model import IndexFacts, IngestReport

REFRESH_INTERVAL = "index.refresh_interval"


@dataclass(frozen=True)
class Sent:
    """What a sender did.

    Attributes:
        documents: acknowledged by the node.
        body_bytes: of the bulk requests.
        seconds: first request to last answer, without checkpoints.
        checkpoint_s: what checkpoints took.
        resumed: how often it was interrupted and taken up again.
        clocks: what the engine counted of its own work before the present node start.
    """

    documents: int
    body_bytes: int
    seconds: float
    checkpoint_s: float = 0.0
    resumed: int = 0
    clocks: EngineClocks = NO_CLOCKS


Sender = Callable[[], Sent]
"""Sends the whole corpus to where it belongs."""

Intervals = Mapping[str, str | None]
"""Refresh interval of each index as it was declared; None for the default."""


def fill(client: SearchClient, key: IndexKey, send: Sender) -> IndexFacts:
    """Create, ingest, refresh, force-merge and flush; the node is still up afterwards.

    Raises:
        BenchctlError: the node refused a step, lost documents, or did not merge to the stated segments.
    """
    intervals = create(client, key)
    return finish(client, key, intervals, send())


def create(client: SearchClient, key: IndexKey) -> Intervals:
    """Make what the key's track declares, ready to be sent the documents.

    Periodic refreshes are off from now on: they cut segments by the clock, and the same corpus would become
    another index each time.

    Returns:
        What `finish` sets back.

    Raises:
        BenchctlError: the node refuses something.
    """
    wanted = key.places
    make_all(client, key.track, wanted)
    intervals = client.setting(wanted.target, REFRESH_INTERVAL)
    for name in intervals:
        client.put_settings(name, {REFRESH_INTERVAL: "-1"})
    return intervals


def finish(client: SearchClient, key: IndexKey, intervals: Intervals, sent: Sent) -> IndexFacts:
    """Refresh, force-merge and flush what was sent, and say what became of it.

    Raises:
        BenchctlError: the node refused a step, lost documents, or did not merge to the stated segments.
    """
    target = key.places.target
    refresh_s = _timed(lambda: client.refresh(target))
    merge_s = _timed(lambda: client.force_merge(target, key.segments))
    for name, interval in intervals.items():
        client.put_settings(name, {REFRESH_INTERVAL: interval})
    flush_s = _timed(lambda: settle(client, target))
    return _facts(client, key, sent, refresh_s, merge_s, flush_s)


def _timed(step: Callable[[], object]) -> float:
    start = time.monotonic()
    step()
    return time.monotonic() - start


def _facts(
    client: SearchClient, key: IndexKey, sent: Sent, refresh_s: float, merge_s: float, flush_s: float
) -> IndexFacts:
    name = key.places.target
    clocks = sent.clocks.plus(EngineClocks.of(client.index_stats(name)))
    segments = tuple(client.segments(name))
    documents = client.count(name)
    expected = key.corpus.documents
    # Lines that say what to do with documents may also replace or delete them.
    counts = not any(file.has_actions for file in key.corpus.files)
    if counts and documents != expected:
        raise BenchctlError(
            f"{key.installation.engine} {key.installation.version} holds {documents:,} of "
            f"{expected:,} documents after the ingest",
            hint="the node's log says why; the half-built index was discarded",
        )
    most = key.segments * client.primary_shards(name)
    if len(segments) > most:
        raise BenchctlError(f"the force-merge left {len(segments)} segments, {most} were asked for")
    report = IngestReport(
        documents=sent.documents,
        body_bytes=sent.body_bytes,
        clients=key.clients,
        ingest_s=sent.seconds,
        refresh_s=refresh_s,
        force_merge_s=merge_s,
        flush_s=flush_s,
        engine_indexing_s=clocks.indexing_ms / 1000,
        engine_refresh_s=clocks.refresh_ms / 1000,
        engine_merge_s=clocks.merge_ms / 1000,
        engine_flush_s=clocks.flush_ms / 1000,
        checkpoint_s=sent.checkpoint_s,
        resumed=sent.resumed,
    )
    # The engine's own store size is a cached figure; the segments are what is there now.
    store_bytes = sum(segment.size_bytes for segment in segments)
    return IndexFacts(key.digest, documents, store_bytes, segments, report)
