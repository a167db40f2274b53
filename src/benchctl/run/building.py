"""Building a prepared index: a node on a scratch folder, filled, stopped, its data kept."""

import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from benchctl.corpus.bulk import frame_bodies, frame_created, frame_lines
from benchctl.disk import disk_errors
from benchctl.endpoint import Endpoint
from benchctl.engine.client import NodeRequestError, SearchClient
from benchctl.engine.jdk import Jdk
from benchctl.engine.launch import ClassArchive, Starts, starts_of
from benchctl.engine.node import Node, exercise
from benchctl.engine.prepared_index import (
    IndexKey,
    PreparedIndex,
    Sent,
    building,
    create,
    finish,
    keep,
)
from benchctl.errors import BenchctlError
from benchctl.home import Home
from benchctl.load.ingest import ingest
from benchctl.results.model import IndexFacts, IngestCosts
from benchctl.results.plan import EngineName
from benchctl.run.bench import Observer
from benchctl.run.documents import Parcel


def keep_logs(folder: Path, target: Path) -> None:
    """Move the folder of a node start (log, GC log, settings), if there is one; replaces the target.

    The target may be on another file system.

    Raises:
        BenchctlError: If the disk is full or cannot be written.
    """
    if not folder.is_dir():
        return
    with disk_errors(f"keep the node's logs in {target}"):
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(target, ignore_errors=True)
        try:
            shutil.move(folder, target)
        except shutil.Error as err:
            raise OSError(None, f"not all of {folder} can be copied: {str(err)[:300]}") from err


@contextmanager
def logs_kept_of_failure(folder: Path, target: Path) -> Iterator[None]:
    """Keep the logs of a node start that fails inside the block, beyond its scratch folder.

    Raises:
        BenchctlError: If the block raises one; with the new path of the logs.
    """
    try:
        yield
    except BenchctlError as err:
        # Why the node failed matters more than that its logs cannot be kept.
        with suppress(BenchctlError):
            keep_logs(folder, target)
        if folder.is_dir():
            raise
        raise relocated(err, folder, target) from err


def relocated(err: BenchctlError, folder: Path, target: Path) -> BenchctlError:
    """Return the error with the new path of a directory."""
    return BenchctlError(
        err.message.replace(str(folder), str(target)),
        hint=err.hint.replace(str(folder), str(target)),
        exit_code=err.exit_code,
    )


MOST_DOCUMENTS_PER_BODY = 2000
# Nodes accept 100 MB; bodies of a tenth are as fast, and several are in memory at a time.
MOST_BODY_BYTES = 8_000_000


def send_parcels(
    parcels: Sequence[Parcel],
    *,
    endpoint: Endpoint,
    clients: int,
    helper: EngineName | None = None,
    on_progress: Callable[[int], None],
) -> Sent:
    """Send all documents, in order, each body by the next free client.

    Args:
        parcels: the documents.
        endpoint: of the node or cluster.
        clients: concurrent senders.
        helper: of which official client the bulk helper sends; None for benchctl's own wire.
        on_progress: called with the number of documents acknowledged so far.

    Raises:
        BenchctlError: If the node refused documents or went away, or documents cannot be read.
    """
    done = ingest(
        ((parcel.target, bodies(parcel)) for parcel in parcels),
        endpoint=endpoint,
        clients=clients,
        helper=helper,
        on_progress=on_progress,
    )
    costs = IngestCosts(done.took_s, done.answered_s, client_s=done.client_s)
    return Sent(done.documents, done.body_bytes, done.seconds, costs)


def bodies(parcel: Parcel) -> Iterator[tuple[int, bytes]]:
    """Yield (documents, body of a bulk request) until all of a parcel's are in one."""
    per_body = MOST_DOCUMENTS_PER_BODY
    if parcel.bytes_each > 0:
        per_body = max(1, min(per_body, int(MOST_BODY_BYTES / parcel.bytes_each)))
    blocks = parcel.reader()
    if parcel.has_actions:
        return frame_bodies(blocks, per_body, framing=frame_lines, lines_each=2)
    return frame_bodies(blocks, per_body, framing=frame_created if parcel.data_stream else None)


# A dying JVM closes its sockets a moment before its process is gone.
NODE_DEATH_S = 1.0


@dataclass(frozen=True)
class Workshop:
    """Inputs of an index build.

    Attributes:
        home: where it is built and kept.
        jdk: runtime of its node.
        heap_mb: heap of its node, MiB.
        parcels: its documents.
        observer: told of progress.
        title: its name in progress messages.
        more: how many builds of the same kind follow.
        beside: whether another index is built at the same time.
        starts: how its node is started.
        archive: of the engine's classes, that its node writes as well; None for none.
        ask: asks its node, once it is filled, and keeps the answers in the index's folder.
    """

    home: Home
    jdk: Jdk
    heap_mb: int
    parcels: Sequence[Parcel]
    observer: Observer
    title: str
    more: int = 0
    beside: bool = False
    starts: Starts | None = None
    archive: ClassArchive | None = None
    ask: Callable[[SearchClient, Path], None] | None = None


def build_index(shop: Workshop, key: IndexKey) -> PreparedIndex:
    """Build an index, and keep it.

    Raises:
        BenchctlError: If a step fails; nothing of it is kept.
    """
    try:
        return _build(shop, key)
    except BenchctlError:
        # Where none starts that is to write an archive of its classes, another node may.
        if shop.archive is None or not shop.archive.refusal:
            raise
        return _build(replace(shop, archive=None), key)


def _build(shop: Workshop, key: IndexKey) -> PreparedIndex:
    title, more = shop.title, shop.more
    kept_logs = shop.home.logs / f"index-{key.folder_name}"
    with (
        building(shop.home, key, more=more) as root,
        logs_kept_of_failure(root / "boot", kept_logs),
    ):
        facts = _fill(shop, key, root)
        shutil.rmtree(root / "boot", ignore_errors=True)
        prepared = keep(shop.home, key.folder_name, root, facts)
    shop.observer.note(_summary(title, facts))
    return prepared


def _fill(shop: Workshop, key: IndexKey, root: Path) -> IndexFacts:
    title = shop.title
    shop.observer.stage(f"{title}: starting a node to build the index")
    with Node(
        key.installation,
        shop.jdk,
        data=root / "data",
        folder=root / "boot",
        owner=shop.home.node_owner,
        heap_mb=shop.heap_mb,
        starts=shop.starts or starts_of(shop.home, key.installation),
        archive=shop.archive,
    ) as node:
        client = node.client
        if shop.archive is not None:
            exercise(client)
        declared = create(client, key)
        node.wait_shards(key.places.target)
        shop.observer.stage(f"{title}: ingesting {key.corpus.documents:,} documents")
        try:
            sent = send_parcels(
                shop.parcels,
                endpoint=node.endpoint,
                clients=key.clients,
                helper=key.installation.engine if key.ingest_client == "official" else None,
                on_progress=lambda sent: shop.observer.progress("documents", sent, key.corpus.documents),
            )
        except BenchctlError:
            # The process tells more than the connection about why it is gone.
            node.check_alive(within_s=NODE_DEATH_S)
            raise
        shop.observer.stage(f"{title}: refresh, force-merge, flush")
        facts = finish(client, key, declared, sent)
        if shop.ask is not None:
            shop.observer.stage(f"{title}: collecting results to compare")
            try:
                shop.ask(client, root)
            except NodeRequestError:
                # What is missing is asked on a copy of the index later.
                node.check_alive(within_s=NODE_DEATH_S)
        shop.observer.stage(f"{title}: stopping the node")
        node.stop()
    report = msgspec.structs.replace(facts.ingest, beside=shop.beside)
    return msgspec.structs.replace(facts, ingest=report)


def _summary(title: str, facts: IndexFacts) -> str:
    report = facts.ingest
    seconds = max(report.ingest_s, 1e-9)
    return (
        f"{title}: {report.documents:,} documents in {report.ingest_s:.1f} s "
        f"({report.documents / seconds:,.0f} docs/s, "
        f"{report.body_bytes / seconds / 1e6:.0f} MB/s; "
        f"engine: indexing {report.engine_indexing_s:.1f} s, refresh {report.engine_refresh_s:.1f} s, "
        f"merge {report.engine_merge_s:.1f} s, flush {report.engine_flush_s:.1f} s), "
        f"force-merged to {len(facts.segments)} in {report.force_merge_s:.1f} s"
    )
