"""Building a prepared index: a node on a scratch folder, filled, stopped, and its data kept."""

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchctl.disk import free_bytes
from benchctl.engine.filling import create, finish
from benchctl.engine.jdk import Jdk
from benchctl.engine.launch import starts_of
from benchctl.engine.node import boot
from benchctl.engine.prepared_index import IndexKey, PreparedIndex, building, keep
from benchctl.errors import BenchctlError
from benchctl.home import Home
from benchctl.results.model import IndexFacts
from benchctl.run.documents import Parcel
from benchctl.run.leftovers import logs_kept_of_failure
from benchctl.run.observer import Observer
from benchctl.run.resuming import Keeping, OutdatedError, Resumption
from benchctl.run.sending import send_parcels

# A dying JVM closes its sockets a moment before its process is gone.
NODE_DEATH_S = 1.0


@dataclass(frozen=True)
class Workshop:
    """What all indices of a variant are built with.

    Attributes:
        home: where everything is kept.
        jdk: what nodes run on.
        heap_mb: their heap, MiB.
        parcels: the documents.
        keeping: when an ingest is put by.
        observer: told what happens.
    """

    home: Home
    jdk: Jdk
    heap_mb: int
    parcels: Sequence[Parcel]
    keeping: Keeping
    observer: Observer


def build_index(shop: Workshop, key: IndexKey, *, title: str, more: int) -> PreparedIndex:
    """Build an index, or finish one that an interrupted preparation had begun, and keep it.

    Args:
        shop: what with.
        key: of the index.
        title: how progress calls it.
        more: builds of the same kind that are to follow.

    Raises:
        BenchctlError: a step failed; what was half done is gone, but for an ingest that took long.
    """
    try:
        return _build(shop, key, title, more)
    except OutdatedError as err:
        shop.observer.note(f"{title}: {err}")
    return _build(shop, key, title, more)


def _build(shop: Workshop, key: IndexKey, title: str, more: int) -> PreparedIndex:
    resumption = Resumption(shop.home, key, shop.keeping, title=title, observer=shop.observer)
    resumption.note_others()
    put_by = resumption.bytes_put_by
    kept_logs = shop.home.logs / f"index-{key.folder_name}"
    with (
        resumption.said(),
        building(shop.home, key, free=lambda folder: free_bytes(folder) + put_by, more=more) as root,
        logs_kept_of_failure(root / "boot", kept_logs),
    ):
        resumption.take_up(root / "data")
        facts = _filled(shop, key, root, title, resumption)
        shutil.rmtree(root / "boot", ignore_errors=True)
        prepared = keep(shop.home, key, root, facts)
    resumption.discard()
    shop.observer.note(_summary(title, facts))
    return prepared


def _filled(shop: Workshop, key: IndexKey, root: Path, title: str, resumption: Resumption) -> IndexFacts:
    shop.observer.stage(f"{title}: starting a node to build the index")
    with boot(
        key.installation,
        shop.jdk,
        data=root / "data",
        folder=root / "boot",
        owner=shop.home.node_owner,
        heap_mb=shop.heap_mb,
        starts=starts_of(shop.home, key.installation),
    ) as node:
        intervals = resumption.intervals(node.client)
        if intervals is None:
            intervals = create(node.client, key)
        shop.observer.stage(f"{title}: ingesting {key.corpus.documents:,} documents")
        checkpoints = resumption.checkpoints(node.client, root / "data", intervals)
        before = resumption.before.documents
        try:
            sent = send_parcels(
                shop.parcels,
                endpoint=node.endpoint,
                clients=key.clients,
                on_progress=lambda new: shop.observer.progress(
                    "documents", before + new, key.corpus.documents
                ),
                checkpoints=checkpoints,
            )
        except BenchctlError:
            # The process knows better than the connection why it is gone.
            node.check_alive(within_s=NODE_DEATH_S)
            raise
        shop.observer.stage(f"{title}: refresh, force-merge, flush")
        facts = finish(node.client, key, intervals, resumption.whole(sent))
        shop.observer.stage(f"{title}: stopping the node that built the index")
        node.stop()
    return facts


def _summary(title: str, facts: IndexFacts) -> str:
    report = facts.ingest
    seconds = max(report.ingest_s, 1e-9)
    resumed = f", interrupted {report.resumed} x" if report.resumed else ""
    put_by = f"put by in {report.checkpoint_s:.1f} s, " if report.checkpoint_s else ""
    return (
        f"{title}: {report.documents:,} documents in {report.ingest_s:.1f} s{resumed} "
        f"({report.documents / seconds:,.0f} docs/s, "
        f"{report.body_bytes / seconds / 1e6:.0f} MB/s; "
        f"engine: indexing {report.engine_indexing_s:.1f} s, refresh {report.engine_refresh_s:.1f} s, "
        f"merge {report.engine_merge_s:.1f} s, flush {report.engine_flush_s:.1f} s), "
        f"{put_by}force-merged to {len(facts.segments)} in {report.force_merge_s:.1f} s"
    )
