"""The filling of what a track declares: created on a node, indexed, merged, committed."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from benchctl.engine.client import SearchClient
from benchctl.engine.declared import make_all
from benchctl.engine.prepared_index import IndexKey
from benchctl.errors import BenchctlError
from benchctl.results.model import IndexFacts, IngestCosts, IngestReport

SETTLE_TIMEOUT_S = 60.0
SETTLE_PAUSE_S = 0.1


def settle(client: SearchClient, name: str) -> None:
    """Commit until the last commit is the only one and the translog is empty.

    With an asynchronous translog the engine keeps older commits, their segments and gigabytes of translog
    until everything before them is on disk; a copy of the data would include all of that.

    Raises:
        BenchctlError: If that takes too long.
    """
    deadline = time.monotonic() + SETTLE_TIMEOUT_S
    while True:
        client.flush(name)
        # Segments that were merged away stay open until the next refresh.
        client.refresh(name)
        left = client.translog_operations(name)
        if left == 0:
            return
        if time.monotonic() > deadline:
            raise BenchctlError(
                f"the translog still holds {left:,} operations after {SETTLE_TIMEOUT_S:.0f} s"
            )
        time.sleep(SETTLE_PAUSE_S)


REFRESH_INTERVAL = "index.refresh_interval"
# As large as engines take them: nothing is committed by size, and nothing merged unless that is asked for.
_NO_OTHER_CUTS = {
    "index.translog.flush_threshold_size": "1pb",
    "index.merge.policy.segments_per_tier": 100_000,
    "index.merge.policy.max_merge_at_once": 100_000,
}


@dataclass(frozen=True)
class Sent:
    """Result of a sender."""

    documents: int  # acknowledged by the node
    body_bytes: int  # of the bulk requests
    seconds: float  # first request to last answer
    costs: IngestCosts


Sender = Callable[[], Sent]
"""Indexes the whole corpus."""

Declared = Mapping[str, Mapping[str, str | None]]
"""Index -> settings that are others while it is filled, as they were declared; None for the default."""


def fill(client: SearchClient, key: IndexKey, send: Sender) -> IndexFacts:
    """Create, ingest, refresh, force-merge and flush; the node is still up afterwards.

    Raises:
        BenchctlError: If the node refused a step, lost documents, or did not merge to the stated segments.
    """
    declared = create(client, key)
    return finish(client, key, declared, send())


def create(client: SearchClient, key: IndexKey) -> Declared:
    """Create what the key's track declares, ready for the documents.

    Periodic refreshes are switched off: they cut segments by the clock, and the same corpus would become a
    different index each time. For one that is to be the same each time, segments are neither cut by size nor
    merged before all are there: whoever sends the documents refreshes at always the same ones.

    Returns:
        What `finish` is to restore.

    Raises:
        BenchctlError: If the node refuses something.
    """
    wanted = key.places
    make_all(client, key.track, wanted, key.index_settings)
    meanwhile = {REFRESH_INTERVAL: "-1", **(_NO_OTHER_CUTS if key.deterministic else {})}
    declared: dict[str, dict[str, str | None]] = {}
    for setting in meanwhile:
        for name, value in client.setting(wanted.target, setting).items():
            declared.setdefault(name, {})[setting] = value
    for name in declared:
        client.put_settings(name, meanwhile)
    return declared


def finish(client: SearchClient, key: IndexKey, declared: Declared, sent: Sent) -> IndexFacts:
    """Refresh, force-merge and flush the documents, and report on the index.

    Raises:
        BenchctlError: If the node refused a step, lost documents, or did not merge to the stated segments.
    """
    target = key.places.target
    refresh_s = _timed(lambda: client.refresh(target))
    merge_s = _timed(lambda: client.force_merge(target, key.segments))
    for name, settings in declared.items():
        client.put_settings(name, settings)
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
    clocks = client.write_clocks_of(name)
    segments = tuple(client.segments(name))
    documents = client.count(name)
    expected = key.corpus.documents
    # Action lines may also replace or delete documents.
    counts = not any(file.has_actions for file in key.corpus.files)
    if counts and documents != expected:
        raise BenchctlError(
            f"{key.installation.engine} {key.installation.version} holds {documents:,} of "
            f"{expected:,} documents after the ingest",
            hint="see the node's log; the half-built index was discarded",
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
        costs=sent.costs,
    )
    # The engine's own store size is cached; the segments are current.
    store_bytes = sum(segment.size_bytes for segment in segments)
    return IndexFacts(key.digest, documents, store_bytes, segments, report)
